"""The workloads of gpu.py, by what they show; each module's functions carry `@workload`."""
