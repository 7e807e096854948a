"""Tests of numpy_code: NumPy programs that write into their arrays."""
