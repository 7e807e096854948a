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
import math
import os
import platform
import re
import statistics
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from bounds import LIMIT_BYTES, LIMITS, SUBJECT, UNITS, AtMost, Bound, Peer, duration

PEERS = ("numpy", "jax", "jaxlib", "torch")
RESULTS = Path(__file__).parent / "results"
ROUND_SECONDS, CASE_SECONDS, LEAST_ROUNDS = 0.002, 10.0, 15
SLOW_SECONDS, SLOW_ROUNDS = 1.0, 3
REACH = 14
QUIET_SHARE, QUIET_SECONDS = 0.1, 0.5


@dataclass(frozen=True)
class Timing:
    """A statement and the names it uses; it must wait for its result.

    `outcome` gives the result as NumPy arrays, where it is to be compared with the others'.
    """

    statement: str
    names: Mapping[str, Any]
    outcome: Callable[[], Sequence[np.ndarray]] | None = None

    def timer(self) -> timeit.Timer:
        return timeit.Timer(self.statement, globals=dict(self.names))


@dataclass(frozen=True)
class Case:
    """One row: `timings` by library, and the bound that functrans has to keep.

    A bound is a number of seconds, the name of a peer, or one of bounds.py; the time may exceed
    those that are measured by `slack`. Results are compared with `reference`, or with the first
    library of the row that has an outcome, within `tolerance` of its largest element. With `unit`
    GB/s, GFLOP/s or TFLOP/s, `amount` is how many bytes or operations the program needs.
    """

    title: str
    timings: Mapping[str, Timing]
    bound: float | str | Bound
    slack: float = 1.03
    unit: str = ""
    amount: float = 0.0
    tolerance: float = 1e-4
    reference: Callable[[], Sequence[np.ndarray]] | None = None


@dataclass
class Row:
    """A measured case, by library: medians, quartiles and minima in seconds; bound and verdict.

    `kept` holds medians of earlier runs, of libraries that this run left out. `errors` says, by
    library, what was raised or how the result is wrong. A row of unit "x" holds ratios, one of
    unit "MB" megabytes.
    """

    title: str
    seconds: dict[str, float]
    minima: dict[str, float] = field(default_factory=dict)
    quartiles: dict[str, tuple[float, float]] = field(default_factory=dict)
    bound: float = 0.0
    bound_is: str = ""
    note: str = ""
    unit: str = ""
    amount: float = 0.0
    kept: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    date: str = ""

    @property
    def passed(self) -> bool:
        """Whether functrans ran, was right and kept the bound; a NaN bound is never kept."""
        return SUBJECT not in self.errors and self.seconds[SUBJECT] <= self.bound

    @property
    def verdict(self) -> str:
        """pass; FAIL, with the reason where it is not the time; or that there was no peer."""
        if SUBJECT in self.errors:
            return "FAIL wrong" if SUBJECT in self.seconds else "FAIL error"
        if math.isnan(self.bound):
            return "no peer"
        return "pass" if self.passed else "FAIL"

    def show(self, seconds: float, name: str = SUBJECT) -> str:
        """The time of a library in the unit of the row; a limit moves its own number of bytes."""
        if name in LIMITS:
            return f"{LIMIT_BYTES / seconds / 1e9:.3g} GB/s"
        if self.unit == "x":
            return f"{seconds:.3g}x"
        if self.unit == "MB":
            return f"{seconds:.3g} MB"
        if self.unit:
            rate = self.amount / seconds / UNITS[self.unit]
            return f"{rate:.0f} {self.unit}" if rate >= 1000 else f"{rate:.3g} {self.unit}"
        return duration(seconds)


def optional_module(name: str) -> ModuleType | None:
    """The module, or None with a line of explanation if it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        print(f"({name} is not installed: its column is left out)")
        return None


def loops_for(timer: timeit.Timer, seconds: float) -> int:
    """How many calls take about `seconds`; also warms caches up, so the first counts for little."""
    if timer.timeit(1) >= 20 * seconds:
        return 1
    timer.timeit(2)
    number = 1
    while (taken := min(timer.repeat(3, number))) < seconds / 4:
        number *= 4 if taken < seconds / 16 else 2
    return max(1, round(number * seconds / taken))


def measure(
    case: Case,
    rounds: int,
    seconds: float = CASE_SECONDS,
    least: int = LEAST_ROUNDS,
    rest: float = 0.0,
    kept: Mapping[str, float] | None = None,
) -> Row:
    """Time the libraries of `case` in up to `rounds` interleaved rounds, garbage collection off.

    A round of a library lasts about ROUND_SECONDS, less than a time slice of the system, so that
    the median is of rounds that nothing interrupted even where other programs run. Slow cases make
    fewer rounds, at least `least`, to end in about `seconds`. Before each round of a library
    `rest` is slept, and until the threads of the one before do (`await_quiet`). Every second time
    the order turns round, so that none always comes after the same one.
    A library whose call takes more than SLOW_SECONDS is in the first SLOW_ROUNDS only.
    """
    timings, errors = runnable(case)
    errors |= wrong_results(case, timings, errors)
    timers = {name: timing.timer() for name, timing in timings.items()}
    loops = {name: loops_for(timer, ROUND_SECONDS) for name, timer in timers.items()}
    samples: dict[str, list[float]] = {name: [] for name in timers}
    names = list(timers)
    end = time.perf_counter() + seconds
    for index in range(rounds):
        if index >= least and time.perf_counter() > end:
            break
        if index == SLOW_ROUNDS:
            names = [n for n in names if statistics.median(samples[n]) < SLOW_SECONDS]
        if not names:
            break
        shift = index % len(names)
        order = names[shift:] + names[:shift]
        for name in order[::-1] if index // len(names) % 2 else order:
            if rest:
                await_quiet(rest)
                if not samples[name] or samples[name][-1] < SLOW_SECONDS:
                    # Caches, pages and sleeping threads are this library's again: after a peer that
                    # moved 160 MB, calls of 50 us took 1 ms (300, 130, 76 us, ...) to be so, and
                    # one of 2.9 ms took 4.9.
                    timers[name].timeit(loops[name])
            samples[name].append(timers[name].timeit(loops[name]) / loops[name])
    return summarise(case.title, samples, case.bound, case.slack,
                     unit=case.unit, amount=case.amount, errors=errors, kept=kept)  # fmt: skip


def await_quiet(rest: float) -> None:
    """Sleep `rest` seconds, again and again until one in which no thread of the process computes.

    Idle threads of some libraries look for work before they sleep, on the next one's cores: those
    of NumPy's OpenBLAS for 45 ms. Given up after QUIET_SECONDS: threads that never sleep are no
    reason to measure nothing.
    """
    end = time.perf_counter() + QUIET_SECONDS
    while True:
        begin, used = time.perf_counter(), time.process_time()
        time.sleep(rest)
        now = time.perf_counter()
        if time.process_time() - used < QUIET_SHARE * (now - begin) or now >= end:
            return


def runnable(case: Case) -> tuple[dict[str, Timing], dict[str, str]]:
    """The timings that run, and what the others raised; one bad row must not end the table."""
    timings: dict[str, Timing] = {}
    errors: dict[str, str] = {}
    for name, timing in case.timings.items():
        try:
            timing.timer().timeit(1)
        except Exception as error:
            errors[name] = first_line(error)
        else:
            timings[name] = timing
    return timings, errors


def first_line(error: BaseException) -> str:
    """Class and first line of the message, short enough for a table."""
    lines = str(error).strip().splitlines() or [""]
    text = f"{type(error).__name__}: {lines[0]}"[:160]
    return f"{text} [{first_line(error.__cause__)}]" if error.__cause__ else text


def wrong_results(
    case: Case, timings: Mapping[str, Timing], errors: Mapping[str, str]
) -> dict[str, str]:
    """How the results of libraries differ from the reference's, where they do."""
    outcomes = {n: t.outcome for n, t in timings.items() if t.outcome and n not in errors}
    if case.reference is not None:
        reference, expected = "float64", case.reference()
    else:
        reference = next((name for name in outcomes if name != SUBJECT), "")
        if not reference:
            return {}
        expected = outcomes[reference]()
    wrong = {}
    for name, outcome in outcomes.items():
        if name == reference:
            continue
        if reason := difference(outcome(), expected, case.tolerance):
            wrong[name] = f"wrong: {reason} ({reference} is the reference)"
    return wrong


def difference(
    actual: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float
) -> str:
    """How `actual` is off by more than `tolerance` of the largest element; empty if it is not."""
    if len(actual) != len(expected):
        return f"{len(actual)} arrays instead of {len(expected)}"
    for index, (a, e) in enumerate(zip(actual, expected)):
        if a.shape != e.shape:
            return f"output {index} has shape {a.shape} instead of {e.shape}"
        half = a.dtype.itemsize == 2 and a.dtype.kind not in "iu"
        a, e = (x.astype(np.float32) if x.dtype.itemsize < 4 else x for x in (a, e))
        if not a.size:
            continue
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.abs(a.astype(np.float64) - e) if a.dtype.kind in "iu" else np.abs(a - e)
            # where an operation rounds halves moves some across a comparison, to another branch
            worst = np.quantile(off, 0.99) if half else np.max(off)
            error = float(worst) / max(float(np.max(np.abs(e))), 1e-30)
        if not error <= tolerance:
            return f"output {index} is off by {error:.1e} of its largest element"
    return ""


def summarise(
    title: str,
    samples: Mapping[str, Sequence[float]],
    bound: float | str | Bound,
    slack: float = 1.0,
    *,
    unit: str = "",
    amount: float = 0.0,
    errors: Mapping[str, str] | None = None,
    kept: Mapping[str, float] | None = None,
) -> Row:
    """The row of medians and quartiles of `samples` (seconds by library)."""
    row = Row(title, {name: statistics.median(times) for name, times in samples.items()})
    for name, times in samples.items():
        row.minima[name], row.quartiles[name] = min(times), (min(times), max(times))
        if len(times) > 1:
            low, _, high = statistics.quantiles(times, n=4)
            row.quartiles[name] = (low, high)
    row.unit, row.amount, row.errors = unit, amount, dict(errors or {})
    row.kept = {name: value for name, value in (kept or {}).items() if name not in samples}
    row.date = datetime.date.today().isoformat()
    if isinstance(bound, str):
        bound = Peer(bound)
    elif not isinstance(bound, Bound):
        bound = AtMost(bound)
    if isinstance(bound, AtMost):
        slack = 1.0  # nothing was measured that could vary
    row.bound = bound.seconds(row.kept | row.seconds, amount) * slack
    row.bound_is = bound.label
    return row


def print_header(width: int, reach: int = REACH) -> None:
    """The line above the rows of a table, whose bounds take `reach` columns."""
    print(f"\n{'':<{width}} {SUBJECT:>12} {'(fastest)':>14} {'reach':>{reach}}             peers")


def print_row(row: Row, width: int, reach: int = REACH) -> None:
    """Print median, minimum, bound, verdict and the peers' medians in one line, notes below it."""
    peers = [f"{n} {row.show(s, n)}" for n, s in row.seconds.items() if n != SUBJECT]
    peers += [f"{n} {row.show(s, n)} (kept)" for n, s in row.kept.items() if n != SUBJECT]
    value = fastest = "-"
    if SUBJECT in row.seconds:
        value, fastest = row.show(row.seconds[SUBJECT]), f"({row.show(row.minima[SUBJECT])})"
    if math.isnan(row.bound) and not row.bound_is:
        row.bound_is = "-"
    bound = row.bound_is or (f"{row.bound:.3g}x" if row.unit == "x" else duration(row.bound))
    print(f"{row.title:<{width}} {value:>12} {fastest:>14} {bound:>{reach}}   {row.verdict:<11}"
          f"{', '.join(peers)}", flush=True)  # fmt: skip
    for name, error in row.errors.items():
        print(f"{'':<{width}} {name}: {error}", flush=True)
    if row.note:
        print(f"{'':<{width}} {row.note}", flush=True)


def print_table(rows: Sequence[Row]) -> None:
    """Print the rows, a line each."""
    width = max(len(row.title) for row in rows)
    print_header(width)
    for row in rows:
        print_row(row, width)


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


def gpu_slug(name: str) -> str:
    """The short name of a kind of GPU: h100 of NVIDIA H100 80GB HBM3."""
    found = re.search(r"[A-Z]+\d+", name)
    return (found[0] if found else "other").lower()


def results_path(name: str, gpu: str = "") -> Path:
    """Where the results of this processor stand, or of a kind of GPU."""
    slug = re.sub(r"[^a-z0-9]+", "-", processor().lower()).strip("-")
    return RESULTS / f"{name}-{gpu_slug(gpu) if gpu else slug}.json"


def read_results(name: str, gpu: str = "") -> dict[str, dict[str, Any]]:
    """The rows of an earlier run on this device with these versions of the peers, by title."""
    path = results_path(name, gpu)
    if not path.exists():
        return {}
    record = json.loads(path.read_text())
    now = versions(PEERS)
    if any(record["versions"].get(peer, now[peer]) != now[peer] for peer in now):
        return {}
    return {row["title"]: row for row in record["rows"]}


def row_record(row: Row) -> dict[str, Any]:
    """A row as it stands in the file."""
    unit = {"unit": row.unit, "amount": row.amount} if row.unit else {}
    kept = {"kept": row.kept} if row.kept else {}
    errors = {"errors": row.errors} if row.errors else {}
    return {
        "title": row.title,
        **unit,
        "seconds": row.seconds,
        "quartiles": row.quartiles,
        "minima": row.minima,
        **kept,
        **errors,
        "bound": None if math.isnan(row.bound) else row.bound,
        "bound_is": row.bound_is or "fixed",
        "passed": row.passed,
        "date": row.date,
    }


def write_results(
    name: str, rows: Sequence[Row], load_before: float, beside: Sequence[dict[str, Any]] = (),
    gpu: str = "",
) -> Path:  # fmt: skip
    """Write benchmarks/results/<name>-<cpu or gpu>.json and return its path.

    `beside` are rows of earlier runs to keep, where `rows` has none of their title.
    """
    measured = {row.title: row_record(row) for row in rows}
    merged = {row["title"]: measured.pop(row["title"], row) for row in beside} | measured
    record = {
        "date": datetime.date.today().isoformat(),
        "device": ({"name": gpu} if gpu else {}) | {
            "processor": processor(), "cores": os.cpu_count(), "system": platform.system()},
        "versions": versions(["functrans", *["triton"] * bool(gpu), *PEERS]),
        "load_before": round(load_before, 2),
        "unit": "seconds, median",
        "rows": list(merged.values()),
    }
    RESULTS.mkdir(exist_ok=True)
    path = results_path(name, gpu)
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path
