"""The workloads of cpu.py, by what they show; each module's functions carry `@workload`."""
