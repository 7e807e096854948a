"""Loops over lanes as kernels in C: each vector of lanes walks its own loop, state in registers."""
