"""Arguments with cells among them, for transforms: by their values, or as what is closed over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from functrans.core.cells import FrameKind, RefCell, framed, lifting, own_cells
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.transforms.flat import adopt_attributes

__all__ = ["CellArguments", "closing_over", "holds_cells", "refuse_twice", "with_cells_carried",
           "write_all"]

R = TypeVar("R")


def holds_cells(args: Any) -> bool:
    """Whether a leaf of the arguments is a cell."""
    return any(isinstance(x, RefCell) for x in tree_flatten(args)[0])


def refuse_twice(cells: Sequence[RefCell], what: str) -> None:
    """Raise ArgumentError where one cell is two arguments."""
    if len(set(cells)) < len(cells):
        raise ArgumentError(f"{what}: one reference is two of its arguments.",
                            where=user_source(),
                            why="a write into one would have to be seen in the other.")


def write_all(cells: Sequence[RefCell], values: Sequence[Any]) -> None:
    """What is in cells from now on."""
    for cell, value in zip(cells, values, strict=True):
        cell.value = value


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

    def among(self, others: Sequence[Any]) -> Any:
        """The arguments with these leaves in place of those that are no cells."""
        rest = iter(others)
        return tree_unflatten(self.tree, [x if isinstance(x, RefCell) else next(rest)
                                          for x in self.leaves])

    def filled(self, values: Any) -> tuple[Any, list[RefCell]]:
        """The arguments with new cells that hold values of the same structure, and these cells."""
        leaves = list(tree_flatten(values)[0])
        own = own_cells([type(c) for c in self.cells], [leaves[i] for i in self.places])
        for i, cell in zip(self.places, own, strict=True):
            leaves[i] = cell
        return tree_unflatten(self.tree, leaves), own


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
