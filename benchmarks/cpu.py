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

import argparse
import gc
import math
import sys

import compile_time
import copy_limit
import neighbour
from bounds import LIMIT_BYTES, SUBJECT
from cpu_workloads import memory, models, products, small
from cpu_workloads.entries import Peers, Workload, workloads_of
from harness import (
    Row,
    first_line,
    load,
    measure,
    print_header,
    print_row,
    read_results,
    write_results,
)

NAME = "cpu"
MODULES = (memory, products, models, small)
REST = 0.003


def workloads() -> list[Workload]:
    """All rows that are timed in this process."""
    return [item for module in MODULES for item in workloads_of(module)]


def kept_seconds(record: dict) -> dict[str, float]:
    """The peers' times of an earlier run."""
    return {n: s for n, s in (record.get("kept", {}) | record["seconds"]).items() if n != SUBJECT}


def measured(item: Workload, peers: Peers, options: argparse.Namespace, record: dict) -> Row:
    """The row of a workload; of its earlier times, those of libraries that are left out now."""
    kept = kept_seconds(record) if record else {}
    if not options.subject_only:
        kept = {name: kept[name] for name in kept if name == "torch.compile"}
    effort = (15, 1.0, 3) if options.quick else (options.rounds, 10.0, 9)
    try:
        return measure(item.case(peers), *effort, REST, kept)
    except Exception as error:  # a row that cannot even be made must not end the table
        return Row(item.title, {}, bound=math.nan, errors={SUBJECT: first_line(error)})


def main() -> int:
    parser = argparse.ArgumentParser(description="functrans on CPUs beside its peers.")
    parser.add_argument("--rounds", type=int, default=100, help="interleaved rounds a row, at most")
    parser.add_argument("--only", default="", help="only rows whose title contains this")
    parser.add_argument("--quick", action="store_true", help="about a second a row; writes nothing")
    parser.add_argument("--compile", action="store_true", help="torch.compile too")
    parser.add_argument("--subject-only", action="store_true", help="functrans alone")
    parser.add_argument("--no-write", action="store_true", help="leave the results file alone")
    options = parser.parse_args()

    busy = load()
    if busy > 0.5:
        print(f"The machine is busy (load {busy:.1f}): the figures will be too high.")
    for name, call in copy_limit.limits().items():
        print(f"{name}: {LIMIT_BYTES / copy_limit.median_seconds(call) / 1e9:.1f} GB/s")
    peers = Peers() if options.subject_only else Peers.installed(options.compile)
    earlier = read_results(NAME)
    rows: list[Row] = []
    chosen = [item for item in workloads() if options.only in item.title]
    extra = compile_time.TITLES + neighbour.TITLES
    width = max(map(len, [item.title for item in chosen] + extra))
    print_header(width)

    def keep(row: Row) -> None:
        """Show the row, and write it at once: a crash in a later one must not lose it."""
        rows.append(row)
        print_row(row, width)
        if not (options.no_write or options.quick or options.subject_only):
            write_results(NAME, rows, busy, list(earlier.values()))

    for item in chosen:
        keep(measured(item, peers, options, earlier.get(item.title, {})))
        gc.collect()
    for module in (compile_time, neighbour):
        if any(options.only in title for title in module.TITLES):
            for row in module.rows(peers, options.quick):
                if options.only in row.title:
                    keep(row)
    missed = sum(not row.passed for row in rows)
    print(f"\n{len(rows) - missed} of {len(rows)} rows pass")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
