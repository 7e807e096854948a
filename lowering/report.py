"""What is known of a compiled program, as data: what text, pages and pictures are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from functrans.core.avals import ShapedArray
from functrans.core.byte_text import byte_text as bytes_text
from functrans.core.byte_text import count_text
from functrans.core.dims import Size
from functrans.core.jaxpr import Atom, Jaxpr, jaxpr_parts
from functrans.core.record import Record
from functrans.core.source import Source, shown_file

__all__ = [
    "NAME",
    "CodeValue",
    "CollectiveNote",
    "Contracted",
    "KernelReport",
    "Law",
    "Line",
    "LoopLine",
    "MemoryStep",
    "Peak",
    "Reason",
    "Report",
    "Rewrite",
    "RewritePass",
    "ScheduleDecision",
    "ScheduleLine",
    "ScheduleRun",
    "TracedProgram",
    "Value",
    "bytes_text",
    "count_text",
    "line_of",
    "received_bytes",
]


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


@lru_cache(maxsize=1 << 14)  # 70 us otherwise, and programs have few lines
def line_of(source: Source | None) -> Line | None:
    """Where an operation was asked for; None where that is not known."""
    if source is None:
        return None
    text = source.text.splitlines()[:1]
    return Line(source.filename, source.line, text[0] if text else "")


class TracedProgram(Record):
    """What a report is about: a traced program, what its inputs are called and which are donated.

    `backend` is the name of what compiles it, `results` are what its outputs are called.
    """

    name: str
    jaxpr: Jaxpr
    inputs: Sequence[str]
    donated: frozenset[int]
    backend: str
    results: Sequence[str] = ()


class Law(Record):
    """A law of a pass, how often it was applied and at which lines."""

    table: str
    name: str
    count: int
    lines: tuple[Line, ...]


class CodeValue(Record):
    """A value that the source of a kernel computes or reads: its type, the equation of the program
    that makes it, by number, and the line that asked for it.

    Of an equation in the body of a loop or a branch, `equation` is the one that has the body, and
    `inside` the way from there: the number of the body and that of an equation, and so on. It is
    the `result` of that number. An input of the program is its `argument` of that number; one of a
    body has the way to the body, too.
    """

    type: str
    equation: int | None
    line: Line | None
    inside: tuple[int, ...] = ()
    argument: int | None = None
    result: int = 0


class LoopLine(Record):
    """A line of the loops of a kernel; what is inside of a loop has more `depth`.

    The `kind` is `loop` (over a `variable` of so many values, and `how` it is done: in parallel, in
    vectors, as a reduction, ...), `load`, `value`, `reduce`, `store`, or `note`. `values` are those
    that it is about, the one that is computed or moved first, `nbytes` what it moves in all.
    """

    depth: int
    kind: str
    text: str
    how: str = ""
    variable: str = ""
    size: Size | None = None
    values: tuple[CodeValue, ...] = ()
    nbytes: Size = 0

    def __str__(self) -> str:
        size = "" if self.size is None else f" in {self.size}"
        head = f"for {self.variable}{size}" if self.kind == "loop" else f"{self.kind} {self.text}"
        moved = bytes_text(self.nbytes) if self.nbytes != 0 else ""
        told = ", ".join(filter(None, (self.how, moved)))
        return f"{'  ' * self.depth}{head.rstrip()}{f'  # {told}' if told else ''}"


class KernelReport(Record):
    """A step of a compiled program: a kernel, or a call.

    `equations` are those of the simplified program that it computes, by number. `about` says how it
    is computed, `function` what it is called in the `source`; `flops` and `moved` (bytes) are what
    it does in one run of the program, 0 where that is not known, of which it is `runs` runs.
    `parts` are its equations launch by launch. `instructions` makes the text of its machine code,
    where that is not `ptx`, and `instruction_lines` the instructions, each with the line of the
    source that it is for: of a GPU's kernel those of SASS, beside `ptx_lines`. Of a GPU's kernel
    are known the `programs` of a launch, `spills`, the numbers of a thread that are in memory for
    want of registers, and an `estimate` of the seconds of all its runs.

    A step of a loop or a branch names it as its `place`, and `per` says what `runs`, `flops` and
    `moved` are of where that is not one run of the program: `iteration` of a loop that decides
    itself when it ends, `call` of a branch. `on_host` is why the host computes it, if it does.
    `flops_per` says what `flops` are of, where a loop inside of the kernel decides itself when it
    ends: an `iteration`. `operands` are the values that pointers of the source are of, and
    `values_by_line` makes those that each of its lines computes or moves.
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
    place: str = ""
    per: str = ""
    on_host: str = ""
    instruction_lines: Callable[[], Sequence[tuple[str, int]]] | None = field(
        default=None, repr=False, compare=False)
    operands: Mapping[str, CodeValue] = field(default_factory=dict, repr=False, compare=False)
    values_by_line: Callable[[], Sequence[tuple[CodeValue, ...]]] | None = field(
        default=None, repr=False, compare=False)
    make_loops: Callable[[], Sequence[LoopLine]] | None = field(
        default=None, repr=False, compare=False)
    flops_per: str = ""
    ptx_lines: Callable[[], Sequence[tuple[str, int]]] | None = field(
        default=None, repr=False, compare=False)

    @property
    def loops(self) -> tuple[LoopLine, ...]:
        """Its loops, and what is computed, read and written in each."""
        return () if self.make_loops is None else tuple(self.make_loops())


class Rewrite(Record, eq=False):
    """One application of a law: the equation and what stands in its place, as text."""

    table: str
    law: str
    line: Line | None
    before: str
    after: str
    of: tuple[Atom, ...] = field(default=(), repr=False)
    """The results of the equation, variables of the program before."""
    by: tuple[Atom, ...] = field(default=(), repr=False)
    """What replaces them, variables of the program after unless a later law replaces these."""


class RewritePass(Record, eq=False):
    """A pass that changed the program: before and after, and its rewrites in order.

    `depth` is 0 for the whole program, more for the body of a loop.
    """

    name: str
    before: Jaxpr = field(repr=False)
    after: Jaxpr = field(repr=False)
    rewrites: tuple[Rewrite, ...] = field(repr=False)
    depth: int = 0


NAME: Final = "\N{SECTION SIGN}"
"""What stands in a `ScheduleLine` for the name of a value."""


class ScheduleLine(Record):
    """A line of a schedule, in whose text `NAME` stands for each value that it is `of`.

    A value is a variable of the program, or a text where the program has none.
    """

    text: str
    of: tuple[Atom | str, ...] = ()
    line: Line | None = None


class ScheduleDecision(Record):
    """What was decided on a value, and why; it is at these lines of the schedule before and after.

    The `kind` is `once`, `alone`, `fused`, `refused`, `changed` or `placed`.
    """

    kind: str
    text: ScheduleLine
    reason: str
    line: Line | None
    before: tuple[int, ...]
    after: tuple[int, ...]


class ScheduleRun(Record, eq=False):
    """A step on the way from a program to kernels: the schedule before and after, and why."""

    name: str
    before: tuple[ScheduleLine, ...] = field(repr=False)
    after: tuple[ScheduleLine, ...] = field(repr=False)
    decisions: tuple[ScheduleDecision, ...] = field(repr=False)


class Reason(Record):
    """Why a value goes through memory between kernels, and what of a user changes that.

    `nbytes` are those of the value, `readers` the steps that read it where that is all there is to
    say; `advice` is empty where nothing is to be gained.
    """

    line: Line | None
    value: str
    nbytes: Size
    why: str
    advice: str = ""
    readers: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.line}: " if self.line else ""
        if not self.value:
            return f"{place}{self.why}"
        return f"{place}{self.value} {self.why}"


class Contracted(Record):
    """Values of a sum of products, and whether they were made or computed from their factors.

    `flops` and `nbytes`, of what is alive at the peak, are of either way by estimate; None where
    there is no such way.
    """

    values: tuple[str, ...]
    reductions: tuple[str, ...]
    line: Line | None
    never_made: bool
    made_flops: int | None
    made_nbytes: int | None
    factors_flops: int | None
    factors_nbytes: int | None


class Value(Record):
    """A temporary: its type, its bytes, and the line that asked for it."""

    type: str
    nbytes: int
    line: Line | None


class MemoryStep(Record):
    """The temporaries that are alive while a step runs: how many bytes, and which, the largest
    first."""

    step: str
    nbytes: int
    number: int = field(repr=False)
    held: Sequence[tuple[int, int, Value]] = field(repr=False, compare=False)
    """All temporaries of the program, each with the first and the last step that need it."""

    @property
    def values(self) -> tuple[Value, ...]:
        """The temporaries of the step."""
        found = [v for first, last, v in self.held if first <= self.number <= last]
        return tuple(sorted(found, key=lambda v: -v.nbytes))


class Peak(Record):
    """The step at which most bytes of temporaries are needed, and these, the largest first."""

    step: str
    nbytes: int
    line: Line | None
    values: tuple[Value, ...]


class CollectiveNote(Record):
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


def received_bytes(name: str, aval: ShapedArray, n: int) -> Any:
    """Bytes that each of n devices receives in a collective whose operand has that type."""
    if name in ("psum", "pmax", "pmin"):
        return 2 * aval.nbytes * (n - 1) // n
    if name == "all_gather":
        return aval.nbytes * (n - 1)
    return aval.nbytes if name == "ppermute" else aval.nbytes * (n - 1) // n


class Report(Record):
    """What the compiler did with a program, for a GPU of so many multiprocessors."""

    name: str
    target: str
    traced: Jaxpr
    simplified: Jaxpr
    inputs: Sequence[str]
    laws: Sequence[Law]
    kernels: Sequence[KernelReport]
    decisions: Sequence[str]
    reasons: Sequence[Reason]
    memory: Sequence[str]
    bytes: dict[str, Size]
    peak: Peak | None
    text: str = field(default="", repr=False)
    multiprocessors: int = 0
    mesh: str = ""
    """The mesh that it runs on, of which this is the program of each device."""
    collectives: Sequence[CollectiveNote] = ()
    results: Sequence[str] = ()
    """What its outputs are called."""
    passes: Sequence[RewritePass] = ()
    contracted: Sequence[Contracted] = ()
    timeline: Sequence[MemoryStep] = ()
    """Temporaries step by step; where no steps have names, in order."""
    make_schedule: Callable[[], Sequence[ScheduleRun]] | None = field(
        default=None, repr=False, compare=False)

    @cached_property
    def schedule(self) -> Sequence[ScheduleRun]:
        """The steps from the simplified program to kernels; none where a backend tells none."""
        return () if self.make_schedule is None else self.make_schedule()

    @property
    def apart(self) -> list[str]:
        """The `reasons` as text."""
        return list(dict.fromkeys(map(str, self.reasons)))

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
