"""Programs that read and write cells: equations that `make_jaxpr` writes around a pure program.

A variable of type `RefArray` stands for a cell. Running such an equation is what the user's
function did: within a transform or another function that is staged, the cell is read and written
there. So no interpreter and no compiler meets these operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from functrans.core.avals import ShapedArray
from functrans.core.cells import RefCell
from functrans.core.errors import NonArrayError, ShapeError, shown
from functrans.core.primitive import Primitive, Sample
from functrans.core.source import user_source

__all__ = ["ref_get_p", "ref_set_p"]


class _OfCell(Primitive, abstract=True):
    """An operation on a cell, which happens where it is bound."""

    has_effect = True
    is_interpreted = False

    def evaluate(self, *operands: Any, **params: Any) -> NoReturn:
        raise TypeError(f"{self.name} is done where it is bound, and never interpreted")

    jvp = batch = evaluate

    def samples(self) -> Iterator[Sample]:
        return iter(())  # cells are no arrays: tests/mutable/test_ref_programs.py runs them

    def _cell(self, cell: Any) -> RefCell:
        if not isinstance(cell, RefCell):
            raise NonArrayError(
                f"the program takes a reference, got {shown(cell)} of type {type(cell).__name__}.",
                where=user_source(), why="it was made of a function that was given one.",
                fix="functrans.new_ref(x)")
        return cell


class RefGet(_OfCell):
    """What is in a cell."""

    def type(self, cell: ShapedArray) -> ShapedArray:
        return ShapedArray(cell.shape, cell.dtype)

    def bind(self, *args: Any, **params: Any) -> Any:
        return self._cell(args[0]).value


class RefSet(_OfCell):
    """Put another value of the same type into a cell."""

    multiple_results = True

    def type(self, cell: ShapedArray, x: ShapedArray) -> list[ShapedArray]:
        if cell.shape != x.shape or cell.dtype != x.dtype:
            raise ShapeError(f"ref_set: a reference {cell} does not hold {x}.")
        return []

    def bind(self, *args: Any, **params: Any) -> Any:
        self._cell(args[0]).value = args[1]
        return []


ref_get_p = RefGet()
ref_set_p = RefSet()
