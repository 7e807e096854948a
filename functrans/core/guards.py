"""Guards: what a trace decided on sizes that its program shall not be tied to.

While a function is traced for named sizes, the sizes of the call at hand are its hints. What Python
decides on a size is decided by the hints and kept as a guard: the program serves every call whose
sizes keep all of them. Where a decision makes two sizes one, or needs a value, the trace starts
again with fewer names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from functrans.core.bounds import NEGATED, OPERATORS, provable
from functrans.core.dims import Decider, Dim, Size, bounds_of, deciding, size_value
from functrans.core.record import Record
from functrans.core.source import Source, describe_source, user_source

if TYPE_CHECKING:
    import sympy

__all__ = ["UNDECIDED", "Guard", "Respecialize", "SizeScope", "sizes_decided"]

class Guard(Record):
    """A relation of sizes that held when a program was traced, and the line that asked for it."""

    op: str
    left: Size
    right: Size
    source: Source | None = None

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Whether it holds for values of all its names."""
        left, right = size_value(self.left, sizes), size_value(self.right, sizes)
        return left is not None and right is not None and OPERATORS[self.op](left, right)

    @property
    def relation(self) -> sympy.Basic:
        """The guard as a relation of sympy over its names."""
        import sympy  # noqa: PLC0415  lazy: guards are checked without it

        kinds = {"==": sympy.Eq, "!=": sympy.Ne, "<": sympy.Lt, "<=": sympy.Le, ">": sympy.Gt,
                 ">=": sympy.Ge}
        sides = [s.expr if isinstance(s, Dim) else sympy.Integer(s)
                 for s in (self.left, self.right)]
        return kinds[self.op](*sides)

    def __str__(self) -> str:
        where = describe_source(self.source)
        return f"{self.left} {self.op} {self.right}{where and ', asked '}{where}"


class Respecialize(BaseException):
    """A trace must start again with some names replaced: no `except Exception` may swallow it."""

    def __init__(self, sizes: Mapping[str, Size], guard: Guard, needs_value: bool) -> None:
        super().__init__(f"{guard}")
        self.sizes = dict(sizes)
        self.guard = guard
        self.needs_value = needs_value


class SizeScope:
    """One trace's decisions on sizes: hints for the names, and the guards that came of them."""

    def __init__(self, hints: Mapping[str, int]) -> None:
        self.hints = dict(hints)
        self._guards: dict[tuple[str, str, str], Guard] = {}
        self._answers: dict[tuple[str, str, str], bool] = {}

    @property
    def guards(self) -> tuple[Guard, ...]:
        return tuple(self._guards.values())

    def decide(self, op: str, left: Size, right: Size) -> bool | None:
        """Whether the relation holds with the hints; None where there are no hints for it."""
        if op == "==" and isinstance(right, Dim) and str(left) > str(right):
            left, right = right, left  # one guard for both ways to ask
        key = (op, str(left), str(right))
        answer = self._answers.get(key)
        if answer is None:
            answer = self._decide(op, left, right)
            if answer is not None:
                self._answers[key] = answer
        return answer

    def _decide(self, op: str, left: Size, right: Size) -> bool | None:
        mine, theirs = size_value(left, self.hints), size_value(right, self.hints)
        if mine is None or theirs is None:
            return None
        answer: bool = OPERATORS[op](mine, theirs)
        if provable(op, left, right, bounds_of(left, right)) is answer:
            return answer
        guard = Guard(op if answer else NEGATED[op], left, right, user_source())
        if guard.op == "==":
            self._unify(guard)
        self._guards[guard.op, str(left), str(right)] = guard
        return answer

    def _unify(self, guard: Guard) -> None:
        """Equal sizes become one size, so that types that are compared later are equal too."""
        for name, other in ((guard.left, guard.right), (guard.right, guard.left)):
            if isinstance(name, Dim) and name.is_name and (
                    not isinstance(other, Dim) or name.name not in other.names()):
                raise Respecialize({name.name: other}, guard, needs_value=False)
        # a total such as 12 = B*D in a reshape; a remainder is no size of an axis
        if isinstance(guard.left, Dim) and isinstance(guard.right, int) and guard.right \
                and not guard.left.is_remainder:
            names = guard.left.names()
            raise Respecialize({n: self.hints[n] for n in names}, guard, needs_value=False)

    def pin(self, size: Dim) -> None:
        """Python needs the value: the names become ints."""
        value = size_value(size, self.hints)
        if value is None:
            return
        guard = Guard("==", size, value, user_source())
        raise Respecialize({n: self.hints[n] for n in size.names()}, guard, needs_value=True)


class _Undecided:
    """A trace without a call: there are no sizes at hand, and a branch on one is an error."""

    def decide(self, op: str, left: Size, right: Size) -> None:
        return None

    def pin(self, size: Dim) -> None:
        return None


UNDECIDED = _Undecided()


@contextmanager
def sizes_decided(scope: Decider | None) -> Iterator[None]:
    """Sizes are decided by `scope` inside; by none where it is None."""
    outer = deciding.scope
    deciding.scope = scope
    try:
        yield
    finally:
        deciding.scope = outer
