"""Triton kernels for GPUs: the same schedule as in C, written for blocks of threads."""
