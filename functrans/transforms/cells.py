"""Cells in transforms: as arguments, by their values or closed over, and where they end.

A cell that is made in a function that is staged or mapped ends before the backward part begins.
Backward rules that are given such a cell are ordered by its token, as those of others are
(`functrans.core.cells`). The token begins as zeros where the cell was made. Where the function
ends, its results pass through an operation that takes the token and what is in the cell: the
cotangent of the token is what is in the cell, so that the backward part begins with that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from functrans._runtime import get_trace
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.axes import MappedAxis
from functrans.core.cells import (
    FrameKind,
    RefCell,
    TokenCell,
    cells_in_use,
    framed,
    has_tokens,
    lifting,
    own_cells,
)
from functrans.core.errors import ArgumentError, LeakedTracerError
from functrans.core.jaxpr import Jaxpr, Var
from functrans.core.primitive import HigherOrder, Linear, Primitive, Sample
from functrans.core.source import user_source
from functrans.core.trace import Tracer, process_in
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import broadcast_batch, move_axis
from functrans.primitives.convert import convert_element_type
from functrans.transforms.closed import stage_closed
from functrans.transforms.flat import adopt_attributes, split_aux
from functrans.transforms.tangents import is_differentiable

__all__ = ["CellArguments", "cell_arguments", "closing_over", "end_tangents", "holds_cells",
           "kinds_of", "refuse_twice", "token_of", "with_cells_carried", "with_tokens", "write_all",
           "write_results"]

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
        own = own_cells([(type(c), None) for c in self.cells], [leaves[i] for i in self.places])
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


class CellBegins(HigherOrder):
    """The token of a cell where that is made: zeros, which each lane of a `vmap` has its own of."""

    always_mapped = True

    def type(self, *, aval: ShapedArray) -> list[ShapedArray]:
        return [aval]

    def called(self, operands: Sequence[Any], *, aval: ShapedArray) -> tuple[Jaxpr, Sequence[Any]]:
        return stage_closed(lambda: [zeros(aval)], (), name=self.name), ()

    def evaluate(self, *, aval: ShapedArray) -> list[Any]:
        return [np.zeros(aval.shape, aval.dtype)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, aval: ShapedArray,
            **rules: Any) -> tuple[list[Any], list[Any]]:
        return [*self.bind(aval=aval)], [None]

    linearize = jvp

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, aval: ShapedArray,
              axis: MappedAxis, **rules: Any) -> tuple[list[Any], list[int | None]]:
        return self.bind(aval=aval.with_shape((axis.size, *aval.shape))), [0]


class CellsEnd(HigherOrder):
    """Results of a function as they are, at the end of cells that were made in it.

    Operands are the results, the tokens of `cells` cells and what is in these.
    """

    def type(self, *avals: ShapedArray, cells: int) -> list[ShapedArray]:
        return list(avals[:len(avals) - 2 * cells])

    def called(self, operands: Sequence[Any], *, cells: int) -> tuple[Jaxpr, Sequence[Any]]:
        invars = tuple([Var(get_aval(x)) for x in operands])
        return Jaxpr((), invars, (), invars[:len(invars) - 2 * cells], name=self.name), operands

    def evaluate(self, *arrays: Any, cells: int) -> list[Any]:
        return list(arrays[:len(arrays) - 2 * cells])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, cells: int,
            **rules: Any) -> tuple[list[Any], list[Any]]:
        count = len(primals) - 2 * cells
        outs = self.bind(*primals, cells=cells)
        return outs, end_tangents(tangents[:count], tangents[count:count + cells],
                                  primals[count + cells:])

    linearize = jvp

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, cells: int,
              axis: MappedAxis, **rules: Any) -> tuple[list[Any], list[int | None]]:
        moved, at = _together(operands, axes, cells, axis.size)
        return self.bind(*moved, cells=cells), at[:len(at) - 2 * cells]


class CellsEndLinear(Primitive):
    """The derivative of `CellsEnd`: the cotangents of the tokens are what is in the cells."""

    multiple_results = True
    widens_halves = False

    def type(self, *avals: ShapedArray, cells: int) -> list[ShapedArray]:
        return list(avals[:len(avals) - 2 * cells])

    def evaluate(self, *arrays: Any, cells: int) -> list[Any]:
        return list(arrays[:len(arrays) - 2 * cells])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, cells: int
            ) -> tuple[list[Any], list[Any]]:
        return [*self.bind(*primals, cells=cells)], list(tangents[:len(tangents) - 2 * cells])

    def transpose(self, cts: Sequence[Any], *operands: Any, cells: int) -> list[Any]:
        tokens, contents = operands[len(cts):len(cts) + cells], operands[len(cts) + cells:]
        starts = [convert_element_type(x, t.aval.dtype) if isinstance(t, Linear) else None
                  for t, x in zip(tokens, contents, strict=True)]
        return [*cts, *starts, *[None] * cells]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, cells: int) -> Any:
        size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
        moved, at = _together(operands, axes, cells, size)
        return self.bind(*moved, cells=cells), at[:len(at) - 2 * cells]

    def samples(self) -> Iterator[Sample]:
        return iter(())  # as of custom_vjp_linear, only its transpose means something


cell_begins_p = CellBegins()
cells_end_p = CellsEnd()
cells_end_linear_p = CellsEndLinear()


def end_tangents(outs: Sequence[Any], tokens: Sequence[Any], contents: Sequence[Any]
                 ) -> list[Any]:
    """Tangents of results, those of the tokens, and what is in the cells; None is zero."""
    pairs = [(t, x) for t, x in zip(tokens, contents, strict=True) if t is not None]
    given = [t for t in outs if t is not None]
    if pairs and given:
        given = [*cells_end_linear_p.bind(*given, *[t for t, _ in pairs], *[x for _, x in pairs],
                                          cells=len(pairs))]
    passed = iter(given)
    return [None if t is None else next(passed) for t in outs]


def _together(operands: Sequence[Any], axes: Sequence[int | None], cells: int, size: Any
              ) -> tuple[list[Any], list[int | None]]:
    """Operands and their mapped axes, where a token and what is in its cell have both or none."""
    moved, at = list(operands), list(axes)
    first = len(moved) - 2 * cells
    for i in range(first, first + cells):
        if axes[i] is None and axes[i + cells] is None:
            continue
        for j in (i, i + cells):
            axis = axes[j]
            moved[j] = broadcast_batch(moved[j], size) if axis is None else \
                move_axis(moved[j], axis, 0)
            at[j] = 0
    return moved, at


def _end(tokens: Sequence[TokenCell], outs: Sequence[Any]) -> Sequence[Any]:
    """The results of a function, after which the cells with these tokens are no more."""
    left = [(t.left, t.of.left) for t in tokens if t.home is None or t.home.alive]
    pairs = [(t, x) for t, x in left if x is not None]
    places = [i for i, x in enumerate(outs)
              if isinstance(x, Tracer) and is_differentiable(x.aval)]
    if not pairs or not places:
        return outs
    found = cells_end_p.bind(*[outs[i] for i in places], *[t for t, _ in pairs],
                             *[x for _, x in pairs], cells=len(pairs))
    ended = list(outs)
    for i, x in zip(places, found, strict=True):
        ended[i] = x
    return ended


def token_of(cell: RefCell) -> TokenCell:
    """What backward rules that write into a cell are ordered by."""
    if cell.token is None:
        token = TokenCell(cell)
        scope = cell.scope
        if scope is not None and not scope.trace.has_tokens:
            (start,) = process_in(cell.home, cell_begins_p, (), {"aval": token.aval})
            token = TokenCell(cell, start)
            scope.tokens.append(token)
            scope.end = _end
        cell.token = token
    return cell.token


def with_tokens(cells: Sequence[RefCell]) -> list[RefCell]:
    """Cells that a function is given by their values, and the tokens of those that need one.

    Backward rules may be run in a `grad` around, or after the cell has ended.
    """
    in_grad = has_tokens(get_trace())
    return [*cells, *[token_of(c) for c in cells
                      if (in_grad or c.scope is not None) and _may_have_token(c)]]


def _may_have_token(cell: RefCell) -> bool:
    try:
        return TokenCell(cell).aval is not None
    except ArgumentError:
        return False


def kinds_of(cells: Sequence[RefCell]) -> tuple[tuple[type[RefCell], int | None], ...]:
    """The classes of cells, and of a token the place of its cell among them."""
    places = {c: i for i, c in enumerate(cells)}
    return tuple([(type(c), places[c.of] if isinstance(c, TokenCell) else None) for c in cells])
