"""Timing of peers against each other: interleaved rounds, medians, one table, one JSON file.

A `Case` is one row: a statement for each library that can run it. Every round times every library
once, in an order that rotates, so that a slow moment of the machine falls on all of them alike. The
statements are compiled into the timing loop (as `timeit` does), because at a microsecond a call the
call of a wrapper would be a tenth of the result.
"""

from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import json
import os
import platform
import re
import statistics
import time
import timeit
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

RESULTS = Path(__file__).parent / "results"
SUBJECT = "functrans"
ROUND_SECONDS, CASE_SECONDS, LEAST_ROUNDS = 0.002, 10.0, 15


@dataclass(frozen=True)
class Timing:
    """A statement and the names it uses; it must wait for its result."""

    statement: str
    names: Mapping[str, Any]

    def timer(self) -> timeit.Timer:
        return timeit.Timer(self.statement, globals=dict(self.names))


@dataclass(frozen=True)
class Case:
    """One row: `timings` by library, and the bound that functrans has to keep, in seconds.

    `bound` may instead name a peer: functrans then has to be as fast as it, within `slack`.
    """

    title: str
    timings: Mapping[str, Timing]
    bound: float | str
    slack: float = 1.03


@dataclass
class Row:
    """A measured case, by library: medians, quartiles and minima in seconds; bound and verdict."""

    title: str
    seconds: dict[str, float]
    minima: dict[str, float] = field(default_factory=dict)
    quartiles: dict[str, tuple[float, float]] = field(default_factory=dict)
    bound: float = 0.0
    bound_is: str = ""
    note: str = ""

    @property
    def passed(self) -> bool:
        return self.seconds[SUBJECT] <= self.bound


def optional_module(name: str) -> ModuleType | None:
    """The module, or None with a line of explanation if it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        print(f"({name} is not installed: its column is left out)")
        return None


def loops_for(timer: timeit.Timer, seconds: float) -> int:
    """How many calls take about `seconds`; also warms caches up."""
    timer.timeit(3)
    number = 1
    while (taken := timer.timeit(number)) < seconds / 4:
        number *= 4 if taken < seconds / 16 else 2
    return max(1, round(number * seconds / taken))


def measure(case: Case, rounds: int) -> Row:
    """Time the libraries of `case` in up to `rounds` interleaved rounds, garbage collection off.

    A round of a library lasts about ROUND_SECONDS, less than a time slice of the system, so that
    the median is of rounds that nothing interrupted even where other programs run. Slow cases make
    fewer rounds, to end in about CASE_SECONDS.
    """
    timers = {name: timing.timer() for name, timing in case.timings.items()}
    loops = {name: loops_for(timer, ROUND_SECONDS) for name, timer in timers.items()}
    samples: dict[str, list[float]] = {name: [] for name in timers}
    names = list(timers)
    end = time.perf_counter() + CASE_SECONDS
    for index in range(rounds):
        if index >= LEAST_ROUNDS and time.perf_counter() > end:
            break
        shift = index % len(names)
        for name in names[shift:] + names[:shift]:
            samples[name].append(timers[name].timeit(loops[name]) / loops[name])
    return summarise(case.title, samples, case.bound, case.slack)


def summarise(
    title: str, samples: Mapping[str, Sequence[float]], bound: float | str, slack: float = 1.0
) -> Row:
    """The row of medians and quartiles of `samples` (seconds by library)."""
    row = Row(title, {name: statistics.median(times) for name, times in samples.items()})
    for name, times in samples.items():
        low, _, high = statistics.quantiles(times, n=4)
        row.quartiles[name], row.minima[name] = (low, high), min(times)
    if isinstance(bound, str):
        row.bound, row.bound_is = row.seconds[bound] * slack, bound
    else:
        row.bound = bound
    return row


def duration(seconds: float) -> str:
    """Seconds with three digits and a unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def print_table(rows: Sequence[Row]) -> None:
    """Print median, minimum, bound, verdict and the peers' medians, a row a line."""
    width = max(len(row.title) for row in rows)
    print(f"\n{'':<{width}} {SUBJECT:>10} {'(fastest)':>11} {'at most':>9}         peers")
    for row in rows:
        bound = row.bound_is if row.bound_is else duration(row.bound)
        verdict = "pass" if row.passed else "FAIL"
        peers = ", ".join(
            f"{name} {duration(seconds)}"
            for name, seconds in row.seconds.items()
            if name != SUBJECT
        )
        value, fastest = duration(row.seconds[SUBJECT]), f"({duration(row.minima[SUBJECT])})"
        print(f"{row.title:<{width}} {value:>10} {fastest:>11} {bound:>9}   {verdict}  {peers}")
        if row.note:
            print(f"{'':<{width}} {row.note}")


def processor() -> str:
    """The processor's model name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Installed versions of Python and of `packages`, those that are there."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def load() -> float:
    """How many processes wanted a core in the last minute."""
    return os.getloadavg()[0]


def write_results(name: str, rows: Sequence[Row], load_before: float) -> Path:
    """Write benchmarks/results/<name>-<cpu>.json and return its path."""
    cpu = processor()
    slug = re.sub(r"[^a-z0-9]+", "-", cpu.lower()).strip("-")
    record = {
        "date": datetime.date.today().isoformat(),
        "device": {"processor": cpu, "cores": os.cpu_count(), "system": platform.system()},
        "versions": versions(["functrans", "numpy", "jax", "jaxlib", "torch"]),
        "load_before": round(load_before, 2),
        "unit": "seconds, median",
        "rows": [
            {
                "title": row.title,
                "seconds": row.seconds,
                "quartiles": row.quartiles,
                "minima": row.minima,
                "bound": row.bound,
                "bound_is": row.bound_is or "fixed",
                "passed": row.passed,
            }
            for row in rows
        ],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{slug}.json"
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path
