"""Kernels that are written by hand, with parameters: text of Triton for products and attention.

A template is a description of the problem (`Matmul`, `Attention`, `Convolution`), a `Config`, and
two functions: `configs(problem)` gives the few configurations worth trying, the likely best first,
and `kernels(problem, config)` the launches. Only `kernel.compiled` needs Triton.
"""
