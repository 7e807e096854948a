"""Fourier transforms and dense linear algebra by the libraries of CUDA."""
