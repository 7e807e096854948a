"""Timing of work that a device does later: many calls, one wait, interleaved rounds, medians.

A round of a library is so many calls, one after the other, that they last ROUND_SECONDS; then the
last result is waited for, whose device finishes in order. All libraries are measured this way, by
the same clock: not all of them give events.
"""

from __future__ import annotations

import gc
import itertools
import math
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from bounds import SUBJECT
from cpu_workloads.entries import Peers
from harness import Row, first_line, summarise

import functrans as ft
from gpu_workloads.arrays import difference, leaves
from gpu_workloads.entries import Column, Entries, Workload

ROUND_SECONDS, QUICK_SECONDS = 0.03, 0.01
ROUNDS, QUICK_ROUNDS = 9, 3
ROW_SECONDS = 8.0
SLOW_SECONDS, SLOW_ROUNDS = 0.5, 2
SLOW = 10
"""A time so many times the bound is called slow: there are no kernels for it yet."""
PATIENCE = 90.0
Report = Callable[[dict[str, Any]], None]


class LostDevice(Exception):
    """The device answers no more in this process; `row` is what was measured before."""

    def __init__(self, row: Row) -> None:
        super().__init__(row.title)
        self.row = row


def burst(column: Column, calls: int) -> float:
    """Seconds of so many calls."""
    run, wait = column.run, column.wait
    arguments = list(itertools.islice(itertools.cycle(column.sets), calls))
    out = None
    start = time.perf_counter()
    for values in arguments:
        out = None  # its memory is free for the next
        out = run(*values)
    wait(out)
    return time.perf_counter() - start


def calls_for(column: Column, seconds: float) -> tuple[int, float]:
    """How many calls last about `seconds`, and the seconds of one; warms up too."""
    calls = 1
    while (taken := burst(column, calls)) < seconds / 2 and calls < 2**20:
        calls *= 8 if taken < seconds / 16 else 2
    return max(1, math.ceil(calls * seconds / taken)), taken / calls


def wrong(column: Column, expected: list[Any], workload: Workload) -> str:
    """How the results are off: of the first call, and of one after calls with other arguments."""
    if column.tensors is None:
        column.wait(column.run(*column.sets[0]))
        return ""
    start = time.perf_counter()
    found = difference(column.tensors(column.run(*column.sets[0])), expected,
                       workload.tolerance, workload.stray)  # fmt: skip
    if found or time.perf_counter() - start > PATIENCE / 6:
        return found
    for values in (*column.sets[1:3], column.sets[0], column.sets[0]):
        out = None
        out = column.run(*values)
    found = difference(column.tensors(out), expected, workload.tolerance, workload.stray)
    return f"after more calls, {found}" if found else ""


def narrow(x: Any) -> Any:
    """A result in float64 as float32, which takes half of the memory and is exact enough."""
    x = x.detach()
    return x.float() if x.is_floating_point() else x


def measure(
    workload: Workload, torch: ModuleType, peers: Peers, device: str, dry: bool, quick: bool,
    report: Report,
) -> Row:  # fmt: skip
    """The row of a workload. `report` gets what is known so far, and how long the next may take."""
    title = workload.title
    report({"title": title, "column": "the data", "limit": PATIENCE})
    add = Entries(torch, peers, device, dry)
    workload.fill(add)
    expected = [narrow(x) for x in leaves(add.reference())] if add.reference else []
    empty(torch)
    errors: dict[str, str] = {}
    estimates: dict[str, float] = {}
    calls: dict[str, int] = {}
    seconds = QUICK_SECONDS if quick or dry else ROUND_SECONDS
    kwargs = {"unit": add.work.unit, "amount": add.work.amount, "errors": errors}
    for name in sorted(add.columns, key=lambda name: name == SUBJECT):
        limit = workload.limit if name == SUBJECT else PATIENCE
        report({"column": name, "limit": limit, **kwargs, "estimates": estimates})
        column = add.columns[name]
        try:
            if reason := wrong(column, expected, workload):
                errors[name] = f"wrong: {reason} (float64 is the reference)"
            calls[name], estimates[name] = calls_for(column, seconds)
        except Exception as error:  # one library that cannot must not end the row
            errors[name] = first_line(error)
            if not alive(torch):
                samples = {name: [value] for name, value in estimates.items()}
                raise LostDevice(summarise(title, samples, workload.bound, **kwargs)) from error
        empty(torch)
    del expected
    empty(torch)
    report({"column": "the rounds", "limit": PATIENCE, **kwargs, "estimates": estimates})
    samples = rounds(add, calls, estimates, QUICK_ROUNDS if quick or dry else ROUNDS)
    row = summarise(title, samples, workload.bound, **kwargs)
    if row.seconds.get(SUBJECT, 0) > SLOW * row.bound and not dry:
        row.note = f"slow: {row.seconds[SUBJECT] / row.bound:.0f} times the bound"
    add.columns.clear()
    empty(torch)
    return row


def rounds(
    add: Entries, calls: dict[str, int], estimates: dict[str, float], count: int
) -> dict[str, list[float]]:
    """Seconds of a call by library, in rounds whose order rotates."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    names, end = list(calls), time.perf_counter() + ROW_SECONDS
    gc.disable()
    try:
        for index in range(count):
            if index == SLOW_ROUNDS:
                names = [name for name in names if estimates[name] < SLOW_SECONDS]
            if not names or (index >= SLOW_ROUNDS and time.perf_counter() > end):
                break
            shift = index % len(names)
            for name in names[shift:] + names[:shift]:
                samples[name].append(burst(add.columns[name], calls[name]) / calls[name])
    finally:
        gc.enable()
    return {name: times for name, times in samples.items() if times}


def empty(torch: ModuleType) -> None:
    """Give memory that nothing uses back to the device, for the other libraries."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    for device in ft.devices():
        device.release_cached()


def alive(torch: ModuleType) -> bool:
    """Whether the device still answers: a kernel that faults ends it for the process."""
    if not torch.cuda.is_available():
        return True
    try:
        torch.cuda.synchronize()
        return bool(torch.ones(8, device="cuda").sum() == 8)
    except Exception:
        return False
