"""What is known of a compiled program, as data: what text, pages and pictures are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr, jaxpr_parts
from functrans.core.source import Source, shown_file

__all__ = ["KernelReport", "Law", "Line", "Peak", "Report", "TracedProgram", "Value", "bytes_text",
           "count_text", "line_of"]


LONGEST = 64  # characters of a line of code in a text


@dataclass(frozen=True, order=True)
class Line:
    """A line of the user's code."""

    file: str
    number: int
    text: str

    @property
    def place(self) -> str:
        return f"{Path(shown_file(self.file)).name}:{self.number}"

    def __str__(self) -> str:
        text = self.text if len(self.text) <= LONGEST else f"{self.text[:LONGEST]} ..."
        return f"{self.place}  {text}".rstrip()


def line_of(source: Source | None) -> Line | None:
    """Where an operation was asked for; None where that is not known."""
    if source is None:
        return None
    text = source.text.splitlines()[:1]
    return Line(source.filename, source.line, text[0] if text else "")


@dataclass(frozen=True)
class TracedProgram:
    """What a report is about: a traced program, what its inputs are called and which are donated.

    `backend` is the name of what compiles it.
    """

    name: str
    jaxpr: Jaxpr
    inputs: Sequence[str]
    donated: frozenset[int]
    backend: str


@dataclass(frozen=True)
class Law:
    """A law of a pass, how often it was applied and at which lines."""

    table: str
    name: str
    count: int
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class KernelReport:
    """A step of a compiled program: a kernel, or a call.

    `equations` are those of the simplified program that it computes, by number. `about` says how it
    is computed, `function` what it is called in the `source`; `flops` and `moved` (bytes) are what
    it does in one run of the program, 0 where that is not known, of which it is `runs` runs.
    `parts` are its equations launch by launch. `instructions` makes the text of its machine code,
    where that is not `ptx`. Of a GPU's kernel are known the `programs` of a launch, `spills`, the
    numbers of a thread that are in memory for want of registers, and an `estimate` of the seconds
    of all its runs.
    """

    name: str
    kind: str
    equations: tuple[int, ...]
    lines: tuple[Line, ...]
    about: str
    flops: Size
    moved: Size
    language: str = ""
    function: str = ""
    source: str = field(default="", repr=False)
    ptx: str = field(default="", repr=False)
    parts: tuple[tuple[int, ...], ...] = field(default=(), repr=False)
    runs: int = 1
    instructions: Callable[[], str] | None = field(default=None, repr=False, compare=False)
    programs: int = field(default=0, repr=False)
    spills: int = field(default=0, repr=False)
    estimate: float = field(default=0.0, repr=False)


@dataclass(frozen=True)
class Value:
    """A temporary: its type, its bytes, and the line that asked for it."""

    type: str
    nbytes: int
    line: Line | None


@dataclass(frozen=True)
class Peak:
    """The step at which most bytes of temporaries are needed, and these, the largest first."""

    step: str
    nbytes: int
    line: Line | None
    values: tuple[Value, ...]


@dataclass(frozen=True)
class CollectiveNote:
    """A collective of a program of several devices, and what asked for it."""

    name: str
    axes: tuple[str, ...]
    aval: str
    """The type of its operand on a device."""
    nbytes: int
    """Bytes that each device receives, once."""
    asked_by: str
    why: str
    source: Source | None

    @property
    def line(self) -> Line | None:
        """The line of the user that it is for."""
        return line_of(self.source)


@dataclass(frozen=True)
class Report:
    """What the compiler did with a program, for a GPU of so many multiprocessors."""

    name: str
    target: str
    traced: Jaxpr
    simplified: Jaxpr
    inputs: Sequence[str]
    laws: Sequence[Law]
    kernels: Sequence[KernelReport]
    decisions: Sequence[str]
    apart: Sequence[str]
    memory: Sequence[str]
    bytes: dict[str, Size]
    peak: Peak | None
    text: str = field(default="", repr=False)
    multiprocessors: int = 0
    mesh: str = ""
    """The mesh that it runs on, of which this is the program of each device."""
    collectives: Sequence[CollectiveNote] = ()

    def equations(self) -> list[tuple[str, Line | None]]:
        """The equations of the simplified program as text, and the user's lines."""
        texts = jaxpr_parts(self.simplified)[1]
        return [(text, line_of(e.source))
                for text, e in zip(texts, self.simplified.eqns, strict=True)]

    def kernels_of(self) -> dict[int, list[int]]:
        """By the number of an equation, the numbers of the kernels that compute it."""
        found: dict[int, list[int]] = {}
        for k, kernel in enumerate(self.kernels):
            for e in kernel.equations:
                found.setdefault(e, []).append(k)
        return found


def bytes_text(n: Size) -> str:
    """A number of bytes in three digits: `1.05 MB`."""
    return f"{_short(n)}B"


def count_text(n: Size, unit: str) -> str:
    """A number in three digits: `8.39 MFLOP`."""
    return f"{_short(n)}{unit}"


def _short(n: Size) -> str:
    if not isinstance(n, int):
        return f"({n}) "
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= scale:
            return f"{n / scale:.3g} {prefix}"
    return f"{n} "
