"""Configurations that were timed: which one won, for a kind of GPU and sizes of a class.

Programs are written twice where something is to be timed: once to learn what there is, and, when
all candidates were compiled side by side and timed, with the winners. Times are kept on disk in
the cache of compiled programs, so that later processes have the same winners.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from typing import Any, Final, TypeVar

import numpy as np

from functrans import _runtime
from functrans.core import config
from functrans.core.avals import ShapedArray
from functrans.core.errors import BackendError
from functrans.core.record import Record
from functrans.lowering.progress import Progress
from functrans.lowering.schedule.target import Target
from functrans.lowering.store.cache import Cache, digest, literal, matches, program_cache
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    ArrivalCounters,
    KernelOperand,
    Launches,
    PartialResults,
)
from functrans.lowering.triton.kernels.source import NONE_REJECTED, RejectedKernels
from functrans.lowering.triton.machine.device import unit_of
from functrans.lowering.triton.machine.kernel_cache import compiled_units
from functrans.lowering.triton.machine.measure import seconds_of
from functrans.lowering.triton.machine.unit import triton_version
from functrans.lowering.triton.products.choosing import Chooser
from functrans.lowering.triton.steps.spec import GPUProgram, Launch, Pointer
from functrans.lowering.triton.templates.kernel import BYTES, EpilogueSource

__all__ = ["Tuner", "candidate_program", "chooser_for", "shape_class"]

FORMAT: Final = "1"
MOST, MOST_THOROUGH = 3, 4
"""Candidates that are timed: of 16 calls of a transformer on an H100 one gained more than 3 %."""
WORTH_NANOSECONDS: Final = 100e3
"""With "auto", what takes less is left to the model: a candidate takes 0.2 s to compile."""
MOST_CALLS: Final = 16
"""With "auto", the calls of a program that are timed, the longest, however often it is written: 25
of a radiance field took 75 kernels and 10 s of its first call."""
NEAR: Final = 1.5
"""With "auto", candidates that the model thinks so much slower than the best are not timed."""
SCHEMA: Final = {"problem": str, "configs": [str], "seconds": [float]}

C = TypeVar("C")
Seconds = Callable[[Sequence[GPUProgram]], Sequence[float | None]]


class _Untuned(Record, frozen=False, eq=False):
    title: str
    problem: str
    configs: Sequence[Any]
    launches: Callable[[Any], Launches]
    expected: float


class Tuner(Chooser):
    """Takes what was fastest, where that is known, and remembers what is to be timed.

    `device` is the name of a GPU; `seconds` times programs (None for one that cannot run), and is
    None where nothing is timed.
    """

    def __init__(self, target: Target, device: str, cache: Cache,
                 seconds: Seconds | None, thorough: bool = False,
                 rejected: RejectedKernels = NONE_REJECTED) -> None:
        super().__init__(target, rejected)
        self.device, self.cache, self.seconds, self.thorough = device, cache, seconds, thorough
        self.untuned: dict[str, _Untuned] = {}
        self.tuned: dict[str, float] = {}  # the nanoseconds that calls were expected to take
        self.timings: dict[str, str] = {}

    @property
    def notes(self) -> list[str]:
        return list(self.timings.values())

    def __call__(self, title: str, problem: Any, configs: Sequence[C],
                 launches: Callable[[C], Any], nanoseconds: Callable[[C], float]) -> C:
        told = shape_class(problem)
        key = digest(FORMAT, self.device, self.target.name, triton_version(), told)
        known = self._known(key)
        timed = [c for c in configs if repr(c) in known]
        if timed:
            best = min(timed, key=lambda c: known[repr(c)])
            self._note(key, title, {repr(c): known[repr(c)] for c in timed})
            return best
        expected = nanoseconds(configs[0])
        if self.seconds is not None and (self.thorough or expected >= WORTH_NANOSECONDS):
            different = list({repr(c): c for c in configs}.values())
            tried = [c for c in different[:MOST_THOROUGH if self.thorough else MOST]
                     if self.thorough or nanoseconds(c) <= NEAR * expected]
            if len(tried) > 1:
                self.untuned[key] = _Untuned(title, told, tried, launches, expected)
        return configs[0]

    def _note(self, key: str, title: str, seconds: dict[str, float]) -> None:
        times = ", ".join([f"{c} {1e6 * seconds[c]:.1f} us" for c in sorted(
            seconds, key=seconds.__getitem__)])
        self.timings[key] = f"{title}: timed on {self.device}: {times}"

    def tune(self, program: GPUProgram) -> bool:
        """As `Chooser.tune`; where the first configurations win, the program stays, with notes."""
        untuned, self.untuned = self.untuned, {}
        if not untuned or self.seconds is None:
            return False
        if not self.thorough:
            expected = self.tuned | {key: u.expected for key, u in untuned.items()}
            longest = sorted(expected, key=lambda key: -expected[key])[:MOST_CALLS]
            untuned = {key: untuned[key] for key in longest if key in untuned}
            if not untuned:
                return False
        self.tuned |= {key: u.expected for key, u in untuned.items()}
        # beside them what the program has besides
        programs = {key: [candidate_program(u.launches(c)) for c in u.configs]
                    for key, u in untuned.items()}
        with suppress(BackendError):  # what cannot be compiled is no candidate, as is found below
            compiled_units([unit_of(p, step, self.target)
                            for p in (*itertools.chain(*programs.values()), program)
                            for step in p.steps if isinstance(step, Launch)], self.cache)
        others, before = False, len(self.timings)
        with Progress() as progress:
            for k, (key, u) in enumerate(untuned.items()):
                progress.show(f"timing forms of product {k + 1} of {len(untuned)} on the GPU; "
                              "the fastest stay on the disk")
                times = {repr(c): t for c, t in zip(u.configs, self.seconds(programs[key]),
                                                    strict=True) if t is not None}
                told = {"problem": u.problem, "configs": [*times], "seconds": [*times.values()]}
                if times:
                    self.cache.keep(f"{key}.tuned", repr(told).encode())
                    self._note(key, u.title, times)
                others |= not times or min(times, key=times.__getitem__) != repr(u.configs[0])
        _kept.cache_clear()
        if not others:
            program.notes.extend(self.notes[before:])
        return others

    def _known(self, key: str) -> dict[str, float]:
        data = _kept(self.cache, key)
        if data is None:
            return {}
        try:
            told = literal(data)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return {}
        if not matches(told, SCHEMA):
            return {}
        return dict(zip(told["configs"], told["seconds"], strict=False))


@lru_cache(maxsize=4096)  # programs for other sizes ask for the same again
def _kept(cache: Cache, key: str) -> bytes | None:
    """What is on disk of a problem."""
    return cache.read(f"{key}.tuned")


def chooser_for(target: Target, gpu: int | None, may_time: bool = True,
                rejected: RejectedKernels = NONE_REJECTED) -> Chooser:
    """What chooses for a program that is compiled now: for a GPU that is here, or for a target."""
    settings = config.current()
    if gpu is None or settings.autotune == "off" or settings.deterministic:
        return Chooser(target, rejected)
    return Tuner(target, _runtime.cuda_devices()[gpu][0], program_cache(),
                 (lambda programs: seconds_of(programs, gpu, target)) if may_time else None,
                 settings.autotune == "thorough", rejected)


def candidate_program(found: Launches) -> GPUProgram:
    """The launches of a call on inputs of bytes, one for each tensor."""
    tensors = [t for t in found.touched if not isinstance(t, ArrivalCounters)]
    where: dict[KernelOperand, int] = {t: k for k, t in enumerate(tensors)}
    places = {name: Pointer("tickets") if isinstance(t, ArrivalCounters)
              else Pointer("input", where[t], offset) for name, (t, offset) in found.places.items()}
    steps: list[Any] = [
        Launch(k, kernel.name, kernel.grid,
               tuple([places[x.name] if x.value is None else x.value for x in kernel.arguments]),
               tuple([x.type for x in kernel.arguments]),
               tuple([x.divisible for x in kernel.arguments]), kernel.warps, kernel.stages,
               kernel.fuses)
        for k, kernel in enumerate(found.kernels)]
    inputs = [ShapedArray((_nbytes(t),), np.dtype(np.uint8)) for t in tensors]
    return GPUProgram([k.text for k in found.kernels], steps, inputs, [], [], 0,
                      arrival_counters=max(k.arrivals for k in found.kernels))


def _nbytes(t: Any) -> int:
    return t.nbytes if isinstance(t, PartialResults) else t.size * BYTES[MEMORY[t.dtype]]


def shape_class(value: Any) -> str:
    """A problem as a text that is the same for sizes that are near, and alike as multiples of 16.

    >>> shape_class((1000, 1024, 3))
    '(1024/8,1024/16,3)'
    """
    if type(value) is int and abs(value) > 64:
        step = 1 << (abs(value).bit_length() - 3)  # four sizes between powers of two
        return f"{-(-value // step) * step}/{min(value & -value, 16)}"
    if isinstance(value, EpilogueSource):
        return f"Epilogue({[a.type for a in value.arguments]},{value.result is None})"
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(shape_class, value))})"
    kind: type = type(value)
    names = _names(kind)
    if names is None:
        return repr(value)
    return f"{type(value).__name__}({','.join([shape_class(getattr(value, n)) for n in names])})"


@cache
def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass."""
    return tuple([f.name for f in fields(kind)]) if is_dataclass(kind) else None
