"""What is noted of a kernel as it is written, for who looks at it: nothing that runs reads it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from functrans.core.jaxpr import Equation
from functrans.core.record import Record
from functrans.lowering.loops.expr import Expr, values_of_names
from functrans.lowering.loops.tensor import Call, Stored, Tensor

__all__ = ["NOTHING_NOTED", "KernelNotes", "NamedValue", "named_values"]


class NamedValue(NamedTuple):
    """A variable of a function of a kernel, and the values that it is, or is elements of.

    The `function` of the kernel itself is the empty text.
    """

    function: str
    name: str
    values: tuple[Tensor, ...]


class KernelNotes(Record, eq=False):
    """Values by the variables that hold them, and how large tiles are, by the loop's variable.

    `steps` are what it computes of a schedule in which some values are `stored`, and
    `origins` the equations that values come from. The body of a loop has launches of its own, its
    `phases`: functions of the kernel by name.
    """

    values: Sequence[NamedValue] = ()
    tiles: Mapping[str, int] = field(default_factory=dict)
    phases: Sequence[tuple[str, Any]] = ()
    steps: Sequence[Any] = ()
    stored: Collection[Tensor] = ()
    origins: Mapping[Tensor | Call, Equation] = field(default_factory=dict)

    def is_stored(self, t: Tensor) -> bool:
        return isinstance(t, Stored) or t in self.stored


NOTHING_NOTED = KernelNotes()


def named_values(names: Mapping[str, Expr], reads: Iterable[tuple[Tensor, Expr]],
                 known: Iterable[tuple[Tensor, str]] = ()) -> Iterator[NamedValue]:
    """The values of variables that expressions have been written to.

    `reads` are the elements that a builder made, and of which values; of some values it is `known`
    which variables they are.
    """
    for name, values in values_of_names(names, reads).items():
        yield NamedValue("", name, values)
    for t, name in known:
        yield NamedValue("", name, (t,))
