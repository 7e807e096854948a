"""Tiered compilation: a baseline build of a program runs first, the full one is made meanwhile.

gcc's time is that of the instructions that it is given, and most of those of a kernel of lanes are
copies of few functions: eight powers, 48 gathers. The baseline build calls them, works at one
vector of lanes after another, leaves most passes of gcc out, and is cut into more units, which
compilers take side by side. What is computed is the same, so that both builds give the same bits
(but for those of a NaN). A program that has run for a while gets the full build: it is made in the
background, and takes the place of the baseline one between two calls.

Processor time of gcc in s, of the full build and of the baseline build, as 16 cores have it, on an
EPYC: of the longest unit, and of all with the assembler and the linker.

| program | full | baseline | full, all | baseline, all |
|---|---|---|---|---|
| `lane_dormand_prince` | 0.13 | 0.05 | 0.13 | 0.20 |
| `lane_forest` | 0.15 | 0.06 | 0.16 | 0.26 |
| `lane_bracketing` | 0.23 | 0.07 | 0.25 | 0.18 |
| `posterior_walk` | 0.60 | 0.06 | 0.71 | 0.58 |
| `cart_pole` | 0.31 | 0.05 | 0.32 | 0.37 |
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import re
import signal
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from functrans._runtime import Program
from functrans.core.errors import BackendError
from functrans.lowering.c.pieces import HIDDEN, in_pieces
from functrans.lowering.c.toolchain import Children, is_clang
from functrans.lowering.c.units import Parts, called_names, in_small_units, in_units

if TYPE_CHECKING:
    from functrans.lowering.c.program import ProgramText

__all__ = ["BASELINE_FLAGS", "QuietChildren", "baseline_units", "in_background"]

BASELINE_FLAGS: Final = ("-Og", "-fira-region=one", "-fipa-ra")
"""Few passes, and registers for whole functions: 0.55 to 0.95 of the time of gcc. A caller saves
those registers alone that a function changes: a call of a gather or of a power changes few."""
LEAST: Final = 24
"""Instructions of a function that is called: of fewer a call is no saving."""
PLAIN: Final = 0.65
"""What gcc takes for an instruction of a baseline build, beside one of a full build."""
LEAST_SAVED: Final = 200
"""Instructions less in the longest unit that are worth two builds: gcc takes 10 ms or more."""
LONG: Final = 400
"""Instructions of a function that is worth a unit, which gcc takes 15 ms to begin."""
PIECE: Final = 250
"""Instructions of a piece of a kernel that is a unit."""
APART: Final = 60
"""Instructions of a function that is called and is elsewhere, together with others."""
TOGETHER: Final = 80
"""Instructions of functions that are elsewhere together."""
WIDE: Final = "_f64"
PASSES: Final = '#pragma GCC optimize("O1")\n'
STEP: Final = 40
"""Instructions of a kernel that take gcc as long as a call of a kernel or of the library."""
LEAST_CORES: Final = 8
"""Fewer have enough to do with the units that there are."""
CALLED: Final = "static __attribute__((noinline)) "
MOST_WORK: Final = 10_000_000_000
"""Additions of elements, a second of one core or less. A program whose first call is taken to be
longer has the full build at once."""

AFTER: Final = 50_000_000
"""Nanoseconds that a program runs before its full build is begun."""

_INSTRUCTION = re.compile(r"__builtin_\w+|__asm__|[-+*/&|^<>?~]=?|\[")
_STEP = re.compile(r"ft_run\(|&m\)|\bk\d+\(|\(ft_range\)number|\bft->lib|\bmemcpy\(")


def baseline_units(text: ProgramText) -> list[str] | None:
    """The units of the baseline build of a program; None where there is none."""
    if is_clang() or text.is_fallback or text.main.work > MOST_WORK:
        return None
    prelude = text.main.prelude
    functions, source = prelude.functions(), prelude.source()
    weights = _Weights(_instructions(functions))
    full = _longest(text.parts, len(text.units), weights.work)
    if full < LEAST_SAVED:
        return None
    parts = text.single_parts()
    if not parts.head.startswith(source):
        return None
    parts = replace(parts, head=parts.head[len(source):])
    cores = len(os.sched_getaffinity(0))
    alone = LONG if cores >= LEAST_CORES else math.inf
    often = sum(map(weights.calls, (parts.first, *parts.kernels, *parts.bodies)), Counter())
    inner = often + sum((weights.calls(_body(text)) for text in functions.values()), Counter())
    called = weights.called = {name for name, n in weights.counts.items()
                               if n >= (LEAST if often[name] > 1 else alone)
                               or (n >= APART and inner[name] > 1)
                               or (n >= LONG and WIDE in name)}
    own = _instructions(functions, called)
    groups = _grouped([name for name in functions if name in called and own[name] >= APART
                       and _head(functions[name], name) is not None], own, cores)
    pieces: list[str] = []
    if cores >= LEAST_CORES:
        most = max(PIECE, sum(map(weights.work, parts.kernels)) // cores)
        cut = [in_pieces(kernel, most, weights.of_line) if weights.work(kernel) > most
               else (kernel, []) for kernel in parts.kernels]
        parts = replace(parts, kernels=[kernel for kernel, _ in cut])
        pieces = [piece for _, of in cut for piece in of]
        units = in_small_units(parts, weights.with_steps, PIECE,
                               max(cores - len(pieces) - len(groups), LEAST_CORES // 2))
        longest = max(map(weights.work, parts.kernels), default=0)
    else:
        units = in_units(parts, divided=True) or [parts.text]
        longest = _longest(parts, len(units), weights.work)
    if full - PLAIN * longest < LEAST_SAVED:
        return None
    apart = {name for group in groups for name in group}
    called_source = _calling(functions, source, called)
    head = _elsewhere(functions, called_source, apart)
    return [*(_with_functions(functions, _elsewhere(functions, called_source, apart - {*group}),
                              group) for group in groups),
            *(head + unit for unit in (*pieces, *units))]


def _longest(parts: Parts, units: int, work: Callable[[str], int]) -> int:
    """About the work of the longest of some units."""
    works = [work(text) for text in parts.kernels]
    return max([(sum(works) + work(parts.first)) // units, *works])


class _Weights:
    """About how many instructions gcc is given for texts, where some functions are `called`."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = counts
        self.called: Collection[str] = ()
        self._calls: dict[str, Counter[str]] = {}

    def calls(self, text: str) -> Counter[str]:
        found = self._calls.get(text)
        if found is None:
            found = self._calls[text] = Counter(called_names(text))
        return found

    def work(self, text: str) -> int:
        return text.count(" = ") + sum([
            n if name in self.called else n * self.counts.get(name, 0)
            for name, n in self.calls(text).items()])

    def of_line(self, line: str) -> int:
        return 1 + sum([1 if name in self.called else self.counts.get(name, 0)
                        for name in called_names(line)])

    def with_steps(self, text: str) -> float:
        """The work with that of steps, which kernels have none of."""
        return self.work(text) + (STEP * len(_STEP.findall(text))
                                  if text.startswith("static int") else 0)


def _grouped(names: Sequence[str], counts: Mapping[str, int], cores: int) -> list[list[str]]:
    """Units of functions: on few cores those alone that are to have passes of their own."""
    wide = [name for name in names if WIDE in name]
    if cores < LEAST_CORES:
        return [wide] if sum(counts[name] for name in wide) >= LONG else []
    groups: list[list[str]] = []
    for some in (wide, [name for name in names if WIDE not in name]):
        work = TOGETHER
        for name in some:
            if work >= TOGETHER:
                groups.append([])
                work = 0
            groups[-1].append(name)
            work += counts[name]
    return groups


def _instructions(functions: Mapping[str, str],
                  called: Collection[str] = ()) -> dict[str, int]:
    """About how many instructions functions are, with those that they call, but for some that are
    not inlined. gcc takes 0.05 to 0.07 ms for one; an element that is read from a vector or put
    into one is one, too."""
    counts: dict[str, int] = {}
    for name, text in functions.items():
        body = _body(text)
        counts[name] = sum(1 + (found == "[") for found in _INSTRUCTION.findall(body)) + sum(
            1 if other in called else counts.get(other, 0)
            for other in called_names(body) if other != name)
    return counts


def _body(text: str) -> str:
    return text[text.index("{"):]


def _calling(functions: Mapping[str, str], source: str, called: Collection[str]) -> str:
    for name in sorted(called):
        text = functions[name]
        source = source.replace(text, text.replace("INL ", CALLED, 1), 1)
    return source


def _elsewhere(functions: Mapping[str, str], source: str, names: Collection[str]) -> str:
    """The text of the functions, of which those with these names are called, where they are in
    another unit."""
    for name in names:
        text = functions[name]
        source = source.replace(text.replace("INL ", CALLED, 1),
                                f"{HIDDEN} {_head(text, name)};\n", 1)
    return source


def _with_functions(functions: Mapping[str, str], source: str, names: Sequence[str]) -> str:
    """A unit that has some functions for others. Long chains in float64 take half of the time with
    the passes of -O1: 92 and 50 ms for a digamma function and its logarithm."""
    for name in names:
        text = functions[name].replace("INL ", CALLED, 1)
        source = source.replace(text, text.replace(
            CALLED, f"{HIDDEN} __attribute__((noinline)) ", 1), 1)
    return (PASSES if any(WIDE in name for name in names) else "") + source


def _head(text: str, name: str) -> str | None:
    """How an inlined function begins; None of a text with others before it."""
    found = re.search(r"^INL (\w+ (\w+)\([^()]*\)) \{", text, re.M)
    return found[1] if found and found[2] == name else None


# --- What is done in the background

class QuietChildren(Children):
    """Compilers that leave the cores to others, and of which none starts once Python ends."""

    def start(self, command: Sequence[str], errors: os.PathLike[str], stdin: int | None = None,
              stdout: int | None = None) -> int:
        with _work.lock:
            if _work.is_over:
                raise _OverError
            _work.children = self
            pid = super().start(command, errors, stdin, stdout)  # type: ignore[arg-type]
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, pid, 10)
        return pid


class _OverError(Exception):
    """Python ends."""


class _Work:
    """Builds that wait for their turn, and the thread that makes one at a time."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.waiting: deque[Callable[[], None]] = deque()
        self.thread: Thread | None = None
        self.children: QuietChildren | None = None
        self.is_over = False

    def add(self, job: Callable[[], None]) -> None:
        with self.lock:
            self.waiting.append(job)
            if self.thread is None:
                self.thread = Thread(target=self._run, name="functrans-builds", daemon=True)
                self.thread.start()

    def _run(self) -> None:
        while True:
            with self.lock:
                if self.is_over or not self.waiting:
                    self.thread = None
                    return
                job = self.waiting.popleft()
            # the baseline build stays where the full one cannot be made: it computes the same
            with contextlib.suppress(_OverError, BackendError, OSError):
                job()
            self.children = None

    def end(self) -> None:
        """Stop the compilers and wait for the thread, which removes what they wrote."""
        with self.lock:
            self.is_over = True
            thread = self.thread
            for pid in self.children.running if self.children is not None else ():
                with contextlib.suppress(OSError):
                    os.killpg(pid, signal.SIGKILL)
        if thread is not None:
            thread.join(1.0)

    def forget(self) -> None:
        """In the child of a fork there is no such thread."""
        self.lock = Lock()
        self.waiting.clear()
        self.thread = self.children = None


_work: Final = _Work()
atexit.register(_work.end)
os.register_at_fork(after_in_child=_work.forget)


def in_background(program: Program, make: Callable[[], os.PathLike[str]]) -> None:
    """Give a program what `make` builds, once it has run for `AFTER`.

    `make` may not hold the program, which holds it.
    """
    def begin(program: Program) -> None:
        # where no thread can be started the baseline build stays
        with contextlib.suppress(RuntimeError):
            _work.add(lambda: program.replace(make()))

    program.watch(begin, AFTER)
