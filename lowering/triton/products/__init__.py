"""Products and convolutions: which template, in which configuration, on which operands."""
