"""Triton's interpreter, on NumPy arrays."""
