"""Arguments with cells among them, for transforms: by their values, or as what is closed over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from functrans.core.cells import (
    FrameKind,
    RefCell,
    cells_in_use,
    framed,
    lifting,
    own_cells,
)
from functrans.core.errors import ArgumentError, LeakedTracerError
from functrans.core.source import user_source
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.transforms.flat import adopt_attributes, split_aux

__all__ = ["CellArguments", "cell_arguments", "closing_over", "holds_cells", "refuse_twice",
           "with_cells_carried", "write_all", "write_results"]

R = TypeVar("R")


def holds_cells(args: Any) -> bool:
    """Whether a leaf of the arguments is a cell."""
    return any(isinstance(x, RefCell) for x in tree_flatten(args)[0])


def refuse_twice(cells: Sequence[RefCell], what: str) -> None:
    """Raise ArgumentError where one cell is two arguments."""
    if len(set(cells)) < len(cells):
        raise ArgumentError(f"{what}: one reference is two of its arguments.",
                            where=user_source(),
                            why="a write into one would have to be seen in the other.",
                            fix="give it once, or functrans.new_ref(r[...]) for a copy")


def write_all(cells: Sequence[RefCell], values: Sequence[Any]) -> None:
    """What is in cells from now on."""
    for cell, value in zip(cells, values, strict=True):
        cell.value = value


def write_results(cells: Sequence[RefCell], values: Sequence[Any], written: Collection[int]
                  ) -> None:
    """Put into cells what comes out of a call that is known to write into some of them.

    `vmap` makes of a value that nobody wrote one for each lane, which stays out of a cell that is
    not mapped.
    """
    for i, (cell, value) in enumerate(zip(cells, values, strict=True)):
        try:
            cell.value = value
        except LeakedTracerError:
            if i in written:
                raise


class CellArguments:
    """A pytree of arguments, the cells among its leaves, and where these are."""

    def __init__(self, args: Any, what: str) -> None:
        self.leaves, self.tree = tree_flatten(args)
        self.places = [i for i, x in enumerate(self.leaves) if isinstance(x, RefCell)]
        self.cells: list[RefCell] = [self.leaves[i] for i in self.places]
        refuse_twice(self.cells, what)

    @property
    def values(self) -> Any:
        """The arguments with what is in the cells in place of them."""
        return tree_unflatten(self.tree, [x.value if isinstance(x, RefCell) else x
                                          for x in self.leaves])

    @property
    def others(self) -> tuple[Any, ...]:
        """The leaves that are no cells."""
        return tuple([x for x in self.leaves if not isinstance(x, RefCell)])

    def among(self, others: Sequence[Any], cells: Sequence[Any] | None = None) -> Any:
        """The arguments with these leaves in place of those that are no cells, and of the cells."""
        rest, of_cells = iter(others), iter(self.cells if cells is None else cells)
        return tree_unflatten(self.tree, [next(of_cells if isinstance(x, RefCell) else rest)
                                          for x in self.leaves])

    def filled(self, values: Any) -> tuple[Any, list[RefCell]]:
        """The arguments with new cells that hold values of the same structure, and these cells."""
        leaves = list(tree_flatten(values)[0])
        own = own_cells([type(c) for c in self.cells], [leaves[i] for i in self.places])
        for i, cell in zip(self.places, own, strict=True):
            leaves[i] = cell
        return tree_unflatten(self.tree, leaves), own

    def pure(self, fun: Callable[..., Any], what: str, has_aux: bool) -> Callable[..., Any]:
        """`fun` of values in place of the cells, for its result and what is there afterwards."""
        def of_values(*values: Any) -> Any:
            leaves = list(tree_flatten(values)[0])
            contents = [leaves[i] for i in self.places]
            for i, cell in zip(self.places, self.cells, strict=True):
                leaves[i] = cell
            with framed(FrameKind.RULE, self, what, self.cells, contents) as last:
                out = fun(*tree_unflatten(self.tree, leaves))
                after = last()
            if has_aux:
                out, aux = split_aux(out, what)
                return (out, after), aux
            return out, after

        adopt_attributes(of_values, fun)
        return of_values


def cell_arguments(args: tuple[Any, ...], what: str) -> CellArguments | None:
    """The arguments of a call with cells among them; None where there is no cell."""
    return CellArguments(args, what) if cells_in_use() and holds_cells(args) else None


def closing_over(args: Sequence[Any], what: str
                 ) -> tuple[Callable[[Callable[..., Any]], Callable[..., Any]], tuple[Any, ...]]:
    """What makes of a function of `args` one of the leaves that are no cells, and these leaves."""
    given = CellArguments(tuple(args), what)

    def of_rest(fun: Callable[..., Any]) -> Callable[..., Any]:
        def closed(*rest: Any) -> Any:
            return fun(*given.among(rest))

        adopt_attributes(closed, fun)
        return closed

    return of_rest, given.others


def with_cells_carried(run: Callable[[Callable[..., Any], tuple[Any, ...]], Any],
                       fun: Callable[..., Any], args: tuple[Any, ...], name: str) -> Any:
    """`run(fun, args)` of a function that is staged: the cells that it writes are results of it.
    """
    of_rest, rest = closing_over(args, name)
    closed = of_rest(fun)

    def once(owner: object, cells: tuple[RefCell, ...]) -> Any:
        def carrying(values: list[Any], *leaves: Any) -> Any:
            with framed(FrameKind.BODY, owner, name, cells, values) as last:
                return closed(*leaves), last()

        adopt_attributes(carrying, fun)
        out, values = run(carrying, ([c.value for c in cells], *rest))
        write_all(cells, values)
        return out

    return lifting(once)
