"""Where values are materialised, and which are computed together; kernels fall out of that."""
