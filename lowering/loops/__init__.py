"""The loop language: every value is a scalar expression of its index."""
