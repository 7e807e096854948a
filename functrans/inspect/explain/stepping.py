"""Stepping from a program to its kernels: the passes, then the schedule, step by step.

Each step has the program, or the schedule, before and after it, and every rewrite or decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, overload

from functrans.core.errors import ArgumentError
from functrans.core.jaxpr import Atom, Jaxpr
from functrans.core.notation import Names, bodies, equation_line
from functrans.lowering.report import (
    NAME,
    Line,
    Report,
    Rewrite,
    RewritePass,
    ScheduleDecision,
    ScheduleLine,
    ScheduleRun,
)

__all__ = ["PassStep", "StepRewrite", "SteppedLines", "Stepping"]

CONTEXT: Final = 2
"""Unchanged lines around a change that a text shows."""
COLUMN: Final = 62  # characters of either side of a text
WORDS: Final = {"once": "computed once", "alone": "by itself", "fused": "fused",
                "refused": "refused", "changed": "changed", "placed": "placed"}


@dataclass(frozen=True)
class SteppedLines:
    """Lines of the program before that became lines after, by number; `kind` is how.

    It is one of `equal`, `replace`, `delete` and `insert`.
    """

    kind: str
    before: range
    after: range


@dataclass(frozen=True)
class StepRewrite:
    """A rewrite or a decision of a step, and the numbers of its lines before and after.

    `law` is the law that was applied, or the reason, and `became` what stands in place of what the
    `text` says; nothing of decisions.
    """

    rewrite: Rewrite | ScheduleDecision
    law: str
    text: str
    became: str
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def line(self) -> Line | None:
        """The line that asked for it."""
        return self.rewrite.line

    def __str__(self) -> str:
        place = f"  # {self.line.place}" if self.line is not None else ""
        became = f"  ->  {self.became}" if self.became else ""
        return f"{self.law}{place}\n    {self.text}{became}"


@dataclass(frozen=True)
class PassStep:
    """One step: the lines of the program or the schedule before and after, how they differ, and
    its rewrites or decisions. `run` is what the compiler noted."""

    number: int
    run: RewritePass | ScheduleRun
    before: tuple[str, ...]
    after: tuple[str, ...]
    parts: tuple[SteppedLines, ...]
    rewrites: tuple[StepRewrite, ...]

    @property
    def is_of_schedule(self) -> bool:
        """Whether it is a step of the schedule, after all passes over the program."""
        return isinstance(self.run, ScheduleRun)

    @property
    def title(self) -> str:
        """`3. rewrites: 94 -> 82 equations, 12 rewrites`."""
        run, count = self.run, len(self.rewrites)
        if isinstance(run, ScheduleRun):
            kinds = Counter(d.kind for d in run.decisions)
            told = ", ".join(f"{n} {WORDS[kind]}" for kind, n in kinds.items())
            told = told or f"{len(self.before)} -> {len(self.after)} values"
            return f"{self.number + 1}. schedule, {run.name}: {told}"
        told = f", {count} rewrite{'s' * (count != 1)}" if count else ""
        inside = " in a body" if run.depth else ""
        return (f"{self.number + 1}. {run.name}{inside}: {len(run.before.eqns)} -> "
                f"{len(run.after.eqns)} equations{told}")

    def __str__(self) -> str:
        lines = [self.title, ""]
        for part in self.parts:
            if part.kind == "equal":
                lines += self._unchanged(part)
                continue
            left = [self.before[k] for k in part.before]
            right = [self.after[k] for k in part.after]
            for k in range(max(len(left), len(right))):
                old = left[k] if k < len(left) else ""
                new = right[k] if k < len(right) else ""
                lines.append(_side_by_side(old, new, "-" if old else " ", "+" if new else " "))
        if self.rewrites:
            lines += ["", *map(str, self.rewrites)]
        return "\n".join(lines)

    def _unchanged(self, part: SteppedLines) -> Iterator[str]:
        pairs = [_side_by_side(self.before[a], self.after[b], " ", " ")
                 for a, b in zip(part.before, part.after, strict=True)]
        left_out = len(pairs) - 2 * CONTEXT
        if left_out <= 1:
            yield from pairs
        else:
            yield from pairs[:CONTEXT]
            yield f"  ... {left_out} {'lines' if self.is_of_schedule else 'equations'} as they were"
            yield from pairs[-CONTEXT:]


def _side_by_side(old: str, new: str, left: str, right: str) -> str:
    return f"{left} {_cut(old):<{COLUMN}} | {right} {_cut(new)}".rstrip()


def _cut(text: str) -> str:
    return text if len(text) <= COLUMN else f"{text[:COLUMN - 3]}..."


class Stepping(Sequence[PassStep]):
    """The steps of a program from what was traced to its kernels; also a place among them.

    The passes over the program come first, then the steps of its schedule. `forward` and `backward`
    go to the next and the previous step, and give it.
    """

    def __init__(self, report: Report) -> None:
        self._names = Names(dict(zip(report.traced.invars, report.inputs, strict=False)))
        self._runs: list[RewritePass | ScheduleRun] = [*report.passes, *report.schedule]
        self._known: dict[int, PassStep] = {}
        self._lines: dict[Jaxpr, _Lines] = {}
        self._at = -1

    def __len__(self) -> int:
        return len(self._runs)

    @overload
    def __getitem__(self, number: int) -> PassStep: ...
    @overload
    def __getitem__(self, number: slice) -> list[PassStep]: ...

    def __getitem__(self, number: int | slice) -> PassStep | list[PassStep]:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} steps that changed something")
        number %= len(self)
        if number not in self._known:
            for k in range(number + 1):  # in order: names are given as values appear
                if k not in self._known:
                    self._known[k] = self._step(k)
        return self._known[number]

    def forward(self) -> PassStep:
        """The next step. Raises ArgumentError after the last one."""
        return self._go(self._at + 1)

    def backward(self) -> PassStep:
        """The previous step. Raises ArgumentError before the first one."""
        return self._go(self._at - 1)

    def _go(self, to: int) -> PassStep:
        if not 0 <= to < len(self):
            raise ArgumentError(f"there is no step {'before' if to < 0 else 'after'} this one.",
                                fix=f"there are {len(self)}: stepping[0] is the first one")
        self._at = to
        return self[to]

    def __str__(self) -> str:
        return "\n".join([step.title for step in self]) or "no pass changed the program"

    @property
    def passes(self) -> tuple[PassStep, ...]:
        """The steps that are passes over the program."""
        return tuple([step for step in self if not step.is_of_schedule])

    @property
    def schedule(self) -> tuple[PassStep, ...]:
        """The steps of the schedule: what is computed once, fusion, epilogues, memory, ..."""
        return tuple([step for step in self if step.is_of_schedule])

    def __repr__(self) -> str:
        return str(self)

    def lines(self, jaxpr: Jaxpr) -> _Lines:
        """The equations of a program, with names that are the same in all programs; those of
        bodies follow the equation that has them."""
        found = self._lines.get(jaxpr)
        if found is None:
            found = self._lines[jaxpr] = _Lines([], {})
            self._write(jaxpr, "", found)
        return found

    def _write(self, jaxpr: Jaxpr, indent: str, found: _Lines) -> None:
        for eqn in jaxpr.eqns:
            found.makers.update(dict.fromkeys(eqn.outvars, len(found.texts)))
            found.texts.append(f"{indent}{equation_line(eqn, self._names)}")
            for label, body in bodies(eqn):
                found.texts.append(f"{indent}  {label}: {len(body.eqns)} equations")
                self._write(body, f"{indent}    ", found)

    def _step(self, number: int) -> PassStep:
        run = self._runs[number]
        if isinstance(run, ScheduleRun):
            before, after = (tuple([self._written(line) for line in side])
                             for side in (run.before, run.after))
            rewrites = tuple([StepRewrite(d, f"{WORDS[d.kind]}{': ' * bool(d.reason)}{d.reason}",
                                          self._written(d.text), "", d.before, d.after)
                              for d in run.decisions])
        else:
            old, new = self.lines(run.before), self.lines(run.after)
            before, after = tuple(old.texts), tuple(new.texts)
            rewrites = tuple([StepRewrite(r, f"{r.table}: {r.law}", r.before, r.after or "gone",
                                          _places(r.of, old.makers), _places(r.by, new.makers))
                              for r in run.rewrites])
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        parts = tuple([SteppedLines(kind, range(a, b), range(c, d))
                       for kind, a, b, c, d in matcher.get_opcodes()])
        return PassStep(number, run, before, after, parts, rewrites)

    def _written(self, line: ScheduleLine) -> str:
        """A line of a schedule with the names of its values."""
        first, *rest = line.text.split(NAME)
        names = [x if isinstance(x, str) else self._names(x) for x in line.of]
        return first + "".join([f"{name}{text}" for name, text in zip(names, rest, strict=False)])


@dataclass(frozen=True)
class _Lines:
    """A program as text, and the lines that values are made in."""

    texts: list[str]
    makers: dict[Atom, int]


def _places(atoms: Sequence[Atom], makers: dict[Atom, int]) -> tuple[int, ...]:
    return tuple(sorted({makers[a] for a in atoms if a in makers}))
