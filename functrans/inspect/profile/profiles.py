"""What was measured of a program: times of its steps, as data, a table, a page and a trace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from functrans.core.errors import public
from functrans.inspect.costs import costliest_line
from functrans.inspect.machine import Machine
from functrans.inspect.pages import save_page
from functrans.inspect.profile.devices import TimedCollective
from functrans.inspect.profile.page import page_of
from functrans.inspect.profile.roofline import roofline
from functrans.inspect.utilisation import idle_on_cpu, idle_steps
from functrans.lowering.report import KernelReport, Line, MemoryStep, Report, bytes_text, count_text

__all__ = ["BETWEEN", "OVERLAP", "Profile", "Row", "Timed", "seconds_text", "step_text"]

BETWEEN: Final = "between"
"""The row of what is of no step: the call, copies of results, other work of the machine."""
OVERLAP: Final = "at once"
"""The row of what collectives take beside computation, which is in the time of both."""
TITLES: Final = ("step", "time", "share", "", "moved", "arithmetic", "reaches", "line")
BAR: Final = 12


@dataclass(frozen=True)
class Timed:
    """A kernel or a call, and the seconds that all its runs take: of a loop what is of no step of
    its body."""

    kernel: KernelReport
    seconds: float

    @property
    def bandwidth(self) -> float:
        """Bytes moved in a second."""
        return _rate(self.kernel.moved, self.seconds)

    @property
    def flops(self) -> float:
        """Floating-point operations in a second."""
        return _rate(self.kernel.flops, self.seconds)


def _rate(amount: object, seconds: float) -> float:
    return amount / seconds if isinstance(amount, int) and seconds > 0 else 0.0


@dataclass(frozen=True)
class Row:
    """A row of the table; `step` is None of what lies between steps."""

    name: str
    seconds: float
    share: float
    reaches: str
    line: Line | None
    step: Timed | None


class Profile:
    """Times of the steps of a program: as a table, as a page with a roofline, as a trace.

    `steps` are in order, `rows` the longest first, with what lies between the steps; `seconds` is a
    whole run. `note` says how the steps were timed, where that has to be known. Of several devices
    `collectives` are timed by themselves, and `computing` is a run without them; the `overlap` is
    the time in which devices exchange and compute at once.
    """

    def __init__(self, report: Report, steps: Sequence[Timed], seconds: float,
                 limits: Machine, note: str = "",
                 collectives: Sequence[TimedCollective] = (),
                 computing: float | None = None) -> None:
        self.report = report
        self.steps = tuple(_with_work(steps))
        self.seconds = seconds
        self.machine = limits
        self.note = note
        self.collectives = tuple(collectives)
        self.computing = computing

    @property
    def exchanging(self) -> float:
        """Seconds of all collectives, by themselves."""
        return sum(c.seconds for c in self.collectives)

    @property
    def overlap(self) -> float:
        """Seconds of the collectives that pass beside computation, 0 where that is not known."""
        if self.computing is None:
            return 0.0
        both = self.exchanging + self.computing - self.seconds
        return min(max(both, 0.0), self.exchanging, self.computing)

    def share(self, step: Timed) -> tuple[float, str]:
        """The part of what the machine can do that a step reaches, and of what: the larger."""
        moved, flops = step.bandwidth / self.machine.bandwidth, step.flops / self.machine.flops
        return (moved, "bandwidth") if moved >= flops else (flops, "FLOP rate")

    def reaches(self, step: Timed) -> str:
        """`41% of FLOP rate`; above the rate of a copy it is that of a cache."""
        reached, of = self.share(step)
        if not reached:
            return ""
        if of == "bandwidth" and reached > 1:
            return f"cache: {reached:.1f} x memory"
        if reached > 1:
            return f"{reached:.1f} x a large product"
        return f"{reached:.0%} of {of}"

    @property
    def between(self) -> float:
        """Seconds of a run that are of no step: below 0 where steps by themselves take longer."""
        return self.seconds - sum(t.seconds for t in self.steps) - self.exchanging + self.overlap

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The steps, the longest first, and what lies between them: the times add up to a run."""
        found = [Row(step_text(t.kernel), t.seconds, t.seconds / self.seconds, self.reaches(t),
                     costliest_line(self.report, t.kernel), t) for t in self.steps]
        found += [Row(step_text(c.kernel), c.seconds, c.seconds / self.seconds,
                      f"{bytes_text(int(c.bus_rate))}/s of bus", next(iter(c.kernel.lines), None),
                      Timed(c.kernel, c.seconds)) for c in self.collectives]
        found.sort(key=lambda row: -row.seconds)
        if self.overlap:
            found.append(Row(OVERLAP, -self.overlap, -self.overlap / self.seconds,
                             f"{self.overlap / self.exchanging:.0%} of collectives", None, None))
        return (*found, Row(BETWEEN, self.between, self.between / self.seconds, "", None, None))

    @property
    def idle(self) -> tuple[str, ...]:
        """Steps that use little of the machine for over a tenth of the run, and why."""
        by_kernel = {id(t.kernel): t for t in self.steps}
        look = idle_steps if self.report.multiprocessors else idle_on_cpu
        return tuple(look(self.report, [(t.kernel, t.seconds) for t in self.steps],
                          self.seconds, lambda kernel, _: self.share(by_kernel[id(kernel)])))

    @property
    def timeline(self) -> tuple[MemoryStep, ...]:
        """The temporaries that are alive at each step, with the lines that hold them."""
        return tuple(self.report.timeline)

    @property
    def head(self) -> str:
        """What was run, where, and what the machine can do."""
        busy = "" if self.machine.stable else " at least: it is busy"
        return (f"{self.report.name}: {seconds_text(self.seconds)} a run ({self.report.target}); "
                f"this machine: {bytes_text(int(self.machine.bandwidth))}/s, "
                f"{count_text(int(self.machine.flops), 'FLOP')}/s{busy}")

    def __str__(self) -> str:
        rows = [TITLES, *[_cells(row) for row in self.rows]]
        widths = [max(len(row[c]) for row in rows) for c in range(len(TITLES))]
        lines = ["  ".join(_aligned(c, text, widths[c]) for c, text in enumerate(row)).rstrip()
                 for row in rows]
        warned = [f"! {line}" for line in self.idle]
        return "\n".join([self.head, lines[0], "-" * len(lines[0]), *lines[1:], *warned,
                          *([self.note] if self.note else [])])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return page_of(self)

    @public
    def save(self, path: str | Path) -> None:
        """Write the page to an HTML file, which needs no network and no other file.

        Raises ArgumentError for a name that does not end with `.html`.
        """
        save_page(path, f"profile of {self.report.name}", page_of(self))

    def roofline(self) -> str:
        """A picture as SVG: the rates of kernels under what bandwidth and arithmetic allow."""
        points = [(t.kernel.name, t.kernel.flops / t.kernel.moved, t.flops, t.seconds)
                  for t in self.steps
                  if isinstance(t.kernel.flops, int) and isinstance(t.kernel.moved, int)
                  and t.kernel.flops > 0 and t.kernel.moved > 0 and t.seconds > 0]
        return roofline(points, self.machine.bandwidth, self.machine.flops)

    def save_trace(self, path: str | Path) -> None:
        """Write one run as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open.

        What lies between steps is its last span, and the temporaries are a counter.
        """
        events: list[dict[str, Any]] = [
            {"ph": "M", "pid": 1, "tid": 1, "name": "process_name",
             "args": {"name": self.report.target}},
            {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name",
             "args": {"name": self.report.name}}]
        at = 0.0
        alive = {s.step: s.nbytes for s in self.timeline if s.step}
        for t in self.steps:
            told = {"lines": [str(line) for line in t.kernel.lines], "about": t.kernel.about,
                    "bytes moved": str(t.kernel.moved), "flops": str(t.kernel.flops),
                    "runs": str(t.kernel.runs)}
            events.append({"ph": "X", "pid": 1, "tid": 1, "name": t.kernel.name,
                           "cat": t.kernel.kind, "ts": 1e6 * at, "dur": 1e6 * t.seconds,
                           "args": told})
            if t.kernel.name in alive:
                events.append({"ph": "C", "pid": 1, "name": "temporaries", "ts": 1e6 * at,
                               "args": {"bytes": alive[t.kernel.name]}})
            at += t.seconds
        if self.collectives:
            events.append({"ph": "M", "pid": 1, "tid": 2, "name": "thread_name",
                           "args": {"name": f"collectives on {self.report.mesh}"}})
        # how far they reach into the computation is known, and not where in it each begins
        begin = max(0.0, at - self.overlap)
        for c in self.collectives:
            events.append({"ph": "X", "pid": 1, "tid": 2, "name": c.kernel.name,
                           "cat": c.kernel.kind, "ts": 1e6 * begin, "dur": 1e6 * c.seconds,
                           "args": {"lines": [str(line) for line in c.kernel.lines],
                                    "about": c.kernel.about, "bytes received": str(c.nbytes),
                                    "bytes a second": str(int(c.bus_rate)),
                                    "runs": str(c.kernel.runs)}})
            begin += c.seconds
        at = max(at, begin) if self.collectives else at
        if self.between > 0:
            events.append({"ph": "X", "pid": 1, "tid": 1, "name": BETWEEN, "cat": BETWEEN,
                           "ts": 1e6 * at, "dur": 1e6 * self.between,
                           "args": {"about": "the call, copies of results, other work"}})
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, indent=1)
        Path(path).write_text(text, encoding="utf-8")


def _with_work(steps: Sequence[Timed]) -> list[Timed]:
    """Each step with the work of its time: that of a loop is what is left of its body's steps.

    Where these have no times of their own (iterations on several threads) it has their work.
    """
    timed = {t.kernel.place for t in steps if t.kernel.place and t.seconds}
    silent = [t.kernel for t in steps if t.kernel.place and t.kernel.place not in timed]
    inside = {k.place for k in silent}
    found = []
    for t in steps:
        kernel = t.kernel
        if kernel.place in inside:
            continue
        if kernel.kind in timed and not kernel.source:
            kernel = replace(kernel, flops=0, moved=0)
        elif kernel.kind in inside:
            parts = [k for k in silent if k.place == kernel.kind]
            kernel = replace(kernel, flops=sum([k.flops for k in parts], start=kernel.flops),
                             moved=sum([k.moved for k in parts], start=kernel.moved))
        found.append(t if kernel is t.kernel else replace(t, kernel=kernel))
    return found


def step_text(kernel: KernelReport) -> str:
    """What a step is called, and how often it runs."""
    return kernel.name if kernel.runs == 1 else f"{kernel.name} x {kernel.runs}"


def _cells(row: Row) -> list[str]:
    bar = "#" * min(max(round(BAR * row.share), 0), BAR)
    kernel = row.step.kernel if row.step is not None else None
    moved = bytes_text(kernel.moved) if kernel is not None and kernel.moved != 0 else ""
    flops = count_text(kernel.flops, "FLOP") if kernel is not None and kernel.flops != 0 else ""
    return [row.name, seconds_text(row.seconds), f"{row.share:.0%}", bar, moved, flops,
            row.reaches, str(row.line or "")]


def _aligned(column: int, text: str, width: int) -> str:
    return text.rjust(width) if column in (1, 2, 4, 5) else text.ljust(width)


def seconds_text(seconds: float) -> str:
    """`1.5 ms`, in three digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{1e6 * seconds:.3g} us"
