"""The CPU backend beside JAX, PyTorch and NumPy, and beside what the memory can do.

    python benchmarks/cpu.py [--only WORD] [--quick] [--compile] [--subject-only] [--no-write]

All libraries are measured in the same interleaved rounds, with their default settings. Every row
first compares the results. --compile adds torch.compile (20 s a row); its times are kept in the
results file and stand in later tables, as long as the versions stay. --subject-only measures
functrans alone and takes all peers from there. --quick makes short rounds and writes no file.
Rows of the first result (compile_time.py) and of a busy neighbour (neighbour.py) come last.
Close other programs first. The exit status is 1 if a bound is missed.
"""

from __future__ import annotations

import gc
import sys

import compile_time
import copy_limit
import neighbour
from bounds import LIMIT_BYTES
from cpu_workloads import memory, models, products, small
from cpu_workloads.entries import Workload, workloads_of
from table import Table, parse_options, peers_for

MODULES = (memory, products, models, small)


def workloads() -> list[Workload]:
    """All rows that are timed in this process."""
    return [item for module in MODULES for item in workloads_of(module)]


def main() -> int:
    options = parse_options("functrans on CPUs beside its peers.")
    chosen = [item for item in workloads() if options.only in item.title]
    extra = compile_time.TITLES + neighbour.TITLES
    table = Table("cpu", options, [item.title for item in chosen] + extra)
    for name, call in copy_limit.limits().items():
        print(f"{name}: {LIMIT_BYTES / copy_limit.median_seconds(call) / 1e9:.1f} GB/s")
    peers = peers_for(options)
    table.header()
    for item in chosen:
        table.keep(table.measured(item, peers))
        gc.collect()
    for module in (compile_time, neighbour):
        if any(options.only in title for title in module.TITLES):
            for row in module.rows(peers, options.quick):
                if options.only in row.title:
                    table.keep(row)
    return table.close()


if __name__ == "__main__":
    sys.exit(main())
