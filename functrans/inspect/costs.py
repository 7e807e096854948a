"""What of a program costs: its steps by time or bytes, memory, launches, and the host."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from functrans.core.dims import Size
from functrans.core.jaxpr import Equation, subjaxprs
from functrans.lowering.report import (
    KernelReport,
    Line,
    Report,
    bytes_text,
    count_text,
    line_of,
)

__all__ = ["Costs", "KernelCost", "StepGroup", "costliest_line", "costs_of"]

BANDWIDTH: Final = 30e9
"""Bytes in a second of a CPU that is not there yet, ..."""
PRODUCTS: Final = 200e9
"""... its arithmetic in products of matrices, ..."""
ELEMENTS: Final = 10e9
"""... and in other kernels: of a core of a server, by `profile` on several. Only the order of the
steps depends on them."""
STEP: Final = 50e-9
"""Seconds of any step."""

_NUMBER: Final = re.compile(r" #?\d+$")
"""What tells steps of one code apart: `k9 #2`, `gemm 39`."""


@dataclass(frozen=True)
class KernelCost:
    """A step of a program with its part of the time of a run, by estimate."""

    kernel: KernelReport
    seconds: float
    share: float
    line: Line | None
    """The line of the equation that costs most in it."""


@dataclass(frozen=True)
class StepGroup:
    """Steps of one code for one line, as those of layers that repeat are."""

    steps: tuple[KernelCost, ...]

    @property
    def share(self) -> float:
        """Their part of the time of a run."""
        return sum(c.share for c in self.steps)

    @property
    def name(self) -> str:
        """That of the step where it is one, else what they have in common."""
        name = self.steps[0].kernel.name
        return name if len(self.steps) == 1 else _NUMBER.sub("", name)


@dataclass(frozen=True)
class Costs:
    """What costs, most first."""

    steps: tuple[KernelCost, ...]
    launches: int
    """Of steps in a run; loops that decide themselves when they end count once."""
    is_bounded: bool
    """Whether the launches of all loops are counted."""
    moved: Size
    flops: Size
    peak: Size
    """Bytes of arguments, results and temporaries."""
    on_host: tuple[tuple[str, str], ...]
    """What the host computes of a program for it or for a GPU, and why."""
    has_open_loops: bool = False
    """Whether arithmetic is that of one iteration of some loop, which decides when it ends."""

    @property
    def groups(self) -> tuple[StepGroup, ...]:
        """The steps, those of one code and line together, most first."""
        groups: dict[tuple[str, Line | None], list[KernelCost]] = {}
        for c in self.steps:
            groups.setdefault((_NUMBER.sub("", c.kernel.name), c.line), []).append(c)
        found = [StepGroup(tuple(steps)) for steps in groups.values()]
        return tuple(sorted(found, key=lambda group: -group.share))

    def __str__(self) -> str:
        more = "" if self.is_bounded else ", and those of a loop that decides when it ends"
        plural = "es" * (self.launches != 1)
        once = " with one iteration of each loop that decides when it ends" * self.has_open_loops
        return (f"{self.launches} launch{plural}{more}; {bytes_text(self.moved)} moved, "
                f"{count_text(self.flops, 'FLOP')}{once}; peak of memory {bytes_text(self.peak)}")


def costs_of(report: Report) -> Costs:
    """The costs of a program, by what its report knows."""
    steps = [k for k in report.kernels if not (report.kernels and _is_loop(k, report))]
    seconds = [_seconds(k) for k in steps]
    total = sum(seconds) or 1.0
    found = [KernelCost(k, s, s / total, costliest_line(report, k))
             for k, s in zip(steps, seconds, strict=True)]
    found.sort(key=lambda c: -c.seconds)
    return Costs(tuple(found), sum(k.runs for k in steps),
                 not any(k.per for k in steps), sum([k.moved for k in steps], start=0),
                 sum([k.flops for k in steps], start=0), report.bytes.get("peak", 0),
                 tuple([(k.name, k.on_host) for k in steps if k.on_host]),
                 any(k.per or k.flops_per for k in steps))


def _is_loop(kernel: KernelReport, report: Report) -> bool:
    """Whether a step is a loop whose body has steps of its own, which do its work."""
    return kernel.kind in ("scan", "while", "cond", "function") and not kernel.source and any(
        k.place == kernel.kind for k in report.kernels)


def _seconds(kernel: KernelReport) -> float:
    if kernel.estimate:
        return kernel.estimate
    moved = kernel.moved if isinstance(kernel.moved, int) else 0
    flops = kernel.flops if isinstance(kernel.flops, int) else 0
    rate = PRODUCTS if any(n in kernel.kind for n in ("gemm", "conv", "chain")) else ELEMENTS
    return STEP * kernel.runs + max(moved / BANDWIDTH, flops / rate)


def costliest_line(report: Report, kernel: KernelReport) -> Line | None:
    """The line that asked for the equation of a step that has most arithmetic, or moves most.

    Of steps in loops and libraries, of which no equations are known, it is the last one.
    """
    eqns = [report.simplified.eqns[e] for e in kernel.equations]
    placed = [(e, line) for e in eqns if (line := line_of(e.source)) in kernel.lines]
    if not placed:
        return kernel.lines[-1] if kernel.lines else None
    return max(placed, key=lambda pair: _work(pair[0]))[1]


def _work(eqn: Equation) -> tuple[float, float]:
    if eqn.primitive.higher_order:
        inner = [_work(e) for body in subjaxprs(eqn) for e in body.eqns]
        return sum(w[0] for w in inner), sum(w[1] for w in inner)
    cost = eqn.primitive.cost(*[a.aval for a in eqn.invars], **eqn.params)
    return tuple([float(n) if isinstance(n, (int, float)) else 0.0  # type: ignore[return-value]
                  for n in (cost.flops, cost.bytes)])
