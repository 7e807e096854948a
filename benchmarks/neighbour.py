"""How much slower a program gets when one other process keeps a core busy.

Barriers of threads that wait by spinning lose whole time slices to a neighbour. Each library's rows
are its median with the neighbour over its median without, so there is no peer to beat.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from bounds import SUBJECT, duration
from cpu_workloads import memory, models
from cpu_workloads.entries import Peers, Workload
from harness import Row, measure, summarise

SLOWDOWN = 1.5
WORKLOADS: dict[str, Workload] = {
    "one busy neighbour: 10-op chain, 2^24": memory.chain_large,
    "one busy neighbour: MLP gradient": models.mlp_gradient,
}
TITLES = list(WORKLOADS)


@contextlib.contextmanager
def busy_process() -> Iterator[None]:
    """A process that computes in one thread while the block runs."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.2)
        yield
    finally:
        process.kill()
        process.wait()


def rows(peers: Peers, quick: bool) -> Iterator[Row]:
    """Median with the neighbour over median without, by library."""
    for title, item in WORKLOADS.items():
        case = item.case(replace(peers, numpy=False, compile=False))
        timings = {n: t for n, t in case.timings.items() if n in (SUBJECT, "jax", "torch")}
        case = replace(case, timings=timings, bound=SLOWDOWN)
        seconds = 2.0 if quick else 10.0
        quiet = measure(case, 1000, seconds, 3, 0.003)
        with busy_process():
            busy = measure(case, 1000, seconds, 3, 0.003)
        yield slowdown(title, quiet, busy)


def slowdown(title: str, quiet: Row, busy: Row) -> Row:
    """The row of ratios."""
    common = [name for name in quiet.seconds if name in busy.seconds]
    ratios: Mapping[str, list[float]] = {
        name: [busy.seconds[name] / quiet.seconds[name]] for name in common
    }
    row = summarise(title, ratios, SLOWDOWN, unit="x", errors=quiet.errors | busy.errors)
    row.note = "quiet: " + ", ".join(f"{n} {duration(quiet.seconds[n])}" for n in common)
    return row
