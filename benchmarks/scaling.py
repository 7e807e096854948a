"""Programs on 1, 2, 4, ... threads of a CPU: times, efficiency, and two processes side by side.

    python benchmarks/scaling.py [--only WORD] [--threads 1,2,4] [--budget SECONDS] [--out FILE]

The programs are the first twenty of benchmarks/programs/ at their small size. A figure is the
median of rounds that take the numbers of threads in turn; the efficiency of n threads is
time(1) / (n time(n)). The last columns are all threads by OpenMP, and two processes at once, each
with all threads, over one alone: 2 is a fair share, more is collapse.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import program_folder
import programs as suite

import functrans as ft

COUNT, ROUNDS, ROUND_SECONDS = 20, 5, 0.05
FOLDER: program_folder.Folder = suite.FOLDER


def seconds(run: Callable[[], Any], calls: int) -> float:
    """Of one call."""
    run()
    start = time.perf_counter()
    for _ in range(calls):
        out = run()
    ft.block_until_ready(out)
    return (time.perf_counter() - start) / calls


def prepared(name: str) -> Callable[[], Any]:
    """A compiled program with its arguments."""
    step, arguments = FOLDER.make(name, ft, "small")
    arguments = ft.device_put(arguments)
    run = ft.jit(step)
    return lambda: run(*arguments)


def measure(name: str, counts: list[int]) -> dict[str, Any]:
    """The times of a program by threads, and with OpenMP's."""
    run = prepared(name)
    ft.block_until_ready(run())
    calls = max(1, math.ceil(ROUND_SECONDS / max(seconds(run, 1), 1e-6)))
    calls = min(calls, 10_000)
    settings = [*[("functrans", n) for n in counts], ("openmp", counts[-1])]
    found: dict[Any, list[float]] = {s: [] for s in settings}
    for _ in range(ROUNDS):
        for layer, n in settings:
            with ft.config.threads(layer, n):
                found[layer, n].append(seconds(run, calls))
    return {"program": name, "openmp": statistics.median(found[settings[-1]]),
            "seconds": {n: statistics.median(found["functrans", n]) for n in counts}}


def beside(name: str, calls: int) -> float:
    """Two processes at once over one alone, by the slower of both."""
    def start() -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, __file__, "--work", name, str(calls)],
                                stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)

    def times(processes: list[subprocess.Popen[str]]) -> list[float]:
        for p in processes:
            assert p.stdout is not None
            p.stdout.readline()  # it is compiled
        for p in processes:
            assert p.stdin is not None
            p.stdin.write("go\n")
            p.stdin.flush()
        return [float(p.communicate()[0]) for p in processes]

    alone = times([start()])[0]
    return max(times([start(), start()])) / alone


def work(name: str, calls: int) -> None:
    """One of the processes: `calls` calls when told to."""
    run = prepared(name)
    ft.block_until_ready(run())
    print("ready", flush=True)
    sys.stdin.readline()
    print(seconds(run, calls), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--threads")
    parser.add_argument("--budget", type=float, default=600)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work[0], int(options.work[1]))
        return
    most = len(os.sched_getaffinity(0))
    counts = [int(n) for n in options.threads.split(",")] if options.threads else \
        [n for n in (1, 2, 4, 8, 16, 32) if n <= most]
    end, rows = time.monotonic() + options.budget, []
    names = [n for n in FOLDER.names() if any(w in n for w in options.only.split("|"))][:COUNT]
    print(f"{'program':24}" + "".join(f"{n:>4} threads      " for n in counts)
          + "   openmp   beside")
    for name in names:
        if time.monotonic() > end:
            print(f"{name:24} not run: the budget is spent")
            continue
        row = measure(name, counts)
        alone, least = row["seconds"][1], row["seconds"][counts[-1]]
        row["beside"] = beside(name, min(max(1, math.ceil(0.3 / least)), 20_000))
        rows.append(row)
        print(f"{name:24}" + "".join(
            f"{1e3 * s:9.3f} ms {alone / (n * s):4.2f} " for n, s in row["seconds"].items())
            + f"{row['openmp'] / least:8.2f} {row['beside']:8.2f}", flush=True)
    for n in counts[1:]:
        ratios = [r["seconds"][1] / (n * r["seconds"][n]) for r in rows]
        print(f"efficiency of {n} threads: {statistics.geometric_mean(ratios):.2f} "
              f"({min(ratios):.2f} to {max(ratios):.2f})")
    if options.out:
        options.out.write_text(json.dumps(
            {"date": time.strftime("%Y-%m-%d"), "processor": platform.processor() or
             platform.machine(), "cores": most, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
