"""What stands for names of JAX that functrans has no name of its own for."""
