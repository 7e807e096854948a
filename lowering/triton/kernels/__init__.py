"""Kernels of the schedule as Triton functions."""
