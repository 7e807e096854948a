"""Products, convolutions, attention: which template, in which configuration, on which operands."""
