"""`profile`: how long each kernel of a program takes, and how near that is to what can be done."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from functrans.core import config
from functrans.core.cuda import gpu_of
from functrans.core.errors import ArgumentError, BackendError, public
from functrans.core.trace import Tracer
from functrans.inspect.explain.explanation import inspected, lowered_of, report_of
from functrans.inspect.machine import Machine, machine
from functrans.inspect.profile.roofline import roofline
from functrans.inspect.utilisation import idle_steps
from functrans.lowering.backend import computes_on_gpus, default_backend, is_built_in
from functrans.lowering.report import KernelReport, Report, bytes_text, count_text
from functrans.lowering.report_parts import computes_nothing
from functrans.placement import device_put
from functrans.typing import PyTree

__all__ = ["Profile", "Timed", "profile"]


@dataclass(frozen=True)
class Timed:
    """A kernel or a call, and the median of the seconds that it takes."""

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


class Profile:
    """Times of the steps of a program: as a table, as a page with a roofline, as a trace.

    `steps` are in order; `seconds` is a whole run, with what lies between the steps. `note` says
    how the steps were timed, where that has to be known.
    """

    def __init__(self, report: Report, steps: Sequence[Timed], seconds: float,
                 limits: Machine, note: str = "") -> None:
        self.report = report
        self.steps = tuple(steps)
        self.seconds = seconds
        self.machine = limits
        self.note = note

    def share(self, step: Timed) -> tuple[float, str]:
        """The part of what the machine can do that a step reaches, and of what: the larger."""
        moved, flops = step.bandwidth / self.machine.bandwidth, step.flops / self.machine.flops
        return (moved, "bandwidth") if moved >= flops else (flops, "FLOP rate")

    @property
    def idle(self) -> tuple[str, ...]:
        """Of a GPU: steps that use little of it for over a tenth of the run, and why."""
        by_kernel = {id(t.kernel): t for t in self.steps}
        return tuple(idle_steps(self.report, [(t.kernel, t.seconds) for t in self.steps],
                                self.seconds, lambda kernel, _: self.share(by_kernel[id(kernel)])))

    def _rows(self) -> list[list[str]]:
        return [[_step_text(t.kernel), _seconds_text(t.seconds), f"{t.seconds / self.seconds:.0%}",
                 bytes_text(t.kernel.moved), count_text(t.kernel.flops, "FLOP"),
                 "{:.0%} of {}".format(*self.share(t)),
                 str(t.kernel.lines[0]) if t.kernel.lines else ""] for t in self.steps]

    def _head(self) -> str:
        return (f"{self.report.name}: {_seconds_text(self.seconds)} a run ({self.report.target}); "
                f"this machine: {bytes_text(int(self.machine.bandwidth))}/s, "
                f"{count_text(int(self.machine.flops), 'FLOP')}/s")

    @property
    def between(self) -> float:
        """Seconds of a run that are of no step: below 0 where steps by themselves take longer."""
        return self.seconds - sum(t.seconds for t in self.steps)

    def __str__(self) -> str:
        rows = [TITLES, *self._rows(), ["between", _seconds_text(self.between),
                                       f"{self.between / self.seconds:.0%}", "", "", "", ""]]
        widths = [max(len(row[c]) for row in rows) for c in range(len(TITLES))]
        lines = ["  ".join(_aligned(c, text, widths[c]) for c, text in enumerate(row)).rstrip()
                 for row in rows]
        return "\n".join([self._head(), lines[0], "-" * len(lines[0]), *lines[1:],
                          *self.idle, *([self.note] if self.note else [])])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        cells = "".join(f"<th style='text-align:left'>{t}</th>" for t in TITLES)
        rows = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>"
                       for row in self._rows())
        return (f"<div><b>{escape(self._head())}</b><table><tr>{cells}</tr>{rows}</table>"
                f"{''.join(f'<div>{escape(line)}</div>' for line in self.idle)}"
                f"{escape(self.note)}{self.roofline()}</div>")

    def roofline(self) -> str:
        """A picture as SVG: the rates of kernels under what bandwidth and arithmetic allow."""
        points = [(t.kernel.name, t.kernel.flops / t.kernel.moved, t.flops, t.seconds)
                  for t in self.steps
                  if isinstance(t.kernel.flops, int) and isinstance(t.kernel.moved, int)
                  and t.kernel.flops > 0 and t.kernel.moved > 0 and t.seconds > 0]
        return roofline(points, self.machine.bandwidth, self.machine.flops)

    def save_trace(self, path: str | Path) -> None:
        """Write one run as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open."""
        events: list[dict[str, Any]] = [
            {"ph": "M", "pid": 1, "tid": 1, "name": "process_name",
             "args": {"name": self.report.target}},
            {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name",
             "args": {"name": self.report.name}}]
        at = 0.0
        for t in self.steps:
            told = {"lines": [str(line) for line in t.kernel.lines], "about": t.kernel.about,
                    "bytes moved": str(t.kernel.moved), "flops": str(t.kernel.flops)}
            events.append({"ph": "X", "pid": 1, "tid": 1, "name": t.kernel.name,
                           "cat": t.kernel.kind, "ts": 1e6 * at, "dur": 1e6 * t.seconds,
                           "args": told})
            at += t.seconds
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, indent=1)
        Path(path).write_text(text, encoding="utf-8")


def _as_it_ran(kernel: KernelReport, runs: int | None) -> KernelReport:
    """A kernel with the runs that were counted, where loops decide how many there are."""
    if runs is None or runs == kernel.runs:
        return kernel
    flops, moved = (n * runs // kernel.runs if isinstance(n, int) else n
                    for n in (kernel.flops, kernel.moved))
    return replace(kernel, runs=runs, flops=flops, moved=moved,
                   estimate=kernel.estimate * runs / kernel.runs)


TITLES = ["step", "time", "share", "moved", "arithmetic", "reaches", "first line"]


def _step_text(kernel: KernelReport) -> str:
    return kernel.name if kernel.runs == 1 else f"{kernel.name} x {kernel.runs}"


def _aligned(column: int, text: str, width: int) -> str:
    return text.rjust(width) if 1 <= column <= 4 else text.ljust(width)


def _seconds_text(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{1e6 * seconds:.3g} us"


@public
def profile(f: Callable[..., Any], *args: PyTree, **kwargs: PyTree) -> Profile:
    """How long each kernel and call of `f`, jitted or not, takes on these arguments, when warm.

    The program runs for 0.3 s; times are medians. On a GPU each step is run many times in a row.
    Times are compared with a copy and a product of matrices on this machine, measured once.
    Arguments are not donated. Raises ArgumentError for arguments without values, and BackendError
    for a program that is not compiled.

    >>> import functrans as ft
    >>> x = ft.numpy.ones((256, 256))
    >>> profiled = ft.profile(lambda x: ft.numpy.tanh(x @ x), x)
    >>> [step.kernel.kind for step in profiled.steps]
    ['gemm with epilogue']
    >>> print(str(profiled).splitlines()[1].split()[:3])
    ['step', 'time', 'share']
    """
    if isinstance(kwargs.get("target"), str):
        raise ArgumentError("profile has no target: it runs the function where its arguments are.",
                            fix='functrans.device_put(x, "cpu") or "gpu:0"')
    lowered = lowered_of(f, args, kwargs).without_donation()
    inputs = lowered.inputs(*args, **kwargs)
    if len(inputs) != len(lowered.jaxpr.invars):
        raise ArgumentError(f"{lowered.jaxpr.name} was traced for other arguments than these.",
                            fix="arguments as those of functrans.lower, with values")
    if any(isinstance(x, Tracer) for x in inputs):
        raise ArgumentError("profile runs the function, and an argument is traced: it has no value "
                            "yet.", fix="call functrans.profile outside of jit, grad, vmap and "
                                        "other transforms; they may be of the function itself")
    if any(not hasattr(x, "__array__") and not np.isscalar(x) for x in inputs):
        raise ArgumentError("profile runs the function, and an argument has no value.",
                            fix="arrays; or functrans.explain, which takes ShapeDtypeStructs")
    if computes_nothing(lowered.jaxpr):
        raise BackendError(f"{lowered.jaxpr.name} has no steps that can be timed.",
                           why="it computes nothing: its results are its arguments, or constants.",
                           fix="a function that computes on its arguments: "
                               "functrans.profile(lambda x: functrans.numpy.sin(x), x)")
    if is_built_in(lowered.backend):
        gpu = gpu_of(inputs)
        lowered = lowered.compiled_by(default_backend(gpu))
    else:
        gpu = gpu_of(inputs) if computes_on_gpus(lowered.backend) else None
    if gpu is not None:
        inputs = [device_put(x, f"gpu:{gpu}") for x in inputs]
    with config.scope(backend=lowered.backend):
        times = inspected(lowered, lowered.backend).timed_steps(inputs, gpu)
    report = report_of(lowered, f, args, kwargs)
    limits = machine("cpu" if gpu is None else f"gpu:{gpu}")
    if times.steps is None:
        steps = [Timed(k, times.whole) for k in report.kernels]
        return Profile(report, steps, times.whole, limits, times.note or "The program was timed "
                       f"as a whole: {lowered.backend} tells of no steps.")
    kernels = [_as_it_ran(k, runs) for k, runs in
               itertools.zip_longest(report.kernels, times.runs[:len(report.kernels)])]
    steps = [Timed(k, s) for k, s in zip(kernels, times.steps, strict=False)]
    return Profile(report, steps, times.whole, limits, times.note)
