"""Programs over several GPUs, the same for functrans, JAX and PyTorch (benchmarks/devices.py)."""
