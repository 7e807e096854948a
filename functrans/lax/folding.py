"""`reduce`: elements combined by any function, and the k largest or smallest of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, overload

from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.lax import elementwise
from functrans.primitives.broadcast import broadcast_in_dim, prod, reduce_sum, transpose
from functrans.primitives.convert import convert_element_type
from functrans.primitives.reduce import (
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_xor,
)
from functrans.primitives.shape import concatenate, reshape, slice_in_dim, squeeze
from functrans.primitives.sort import top_k
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike, PyTree

__all__ = ["approx_max_k", "approx_min_k", "reduce"]

_REDUCTIONS: dict[Callable[..., Any], Callable[..., Array]] = {
    elementwise.add: reduce_sum, elementwise.mul: reduce_prod, elementwise.max: reduce_max,
    elementwise.min: reduce_min, elementwise.bitwise_and: reduce_and,
    elementwise.bitwise_or: reduce_or, elementwise.bitwise_xor: reduce_xor}


@overload
def reduce(operands: ArrayLike, init_values: ArrayLike, computation: Callable[[Any, Any], Any],
           dimensions: Sequence[int]) -> Array: ...


@overload
def reduce(operands: PyTree, init_values: PyTree, computation: Callable[[Any, Any], Any],
           dimensions: Sequence[int]) -> PyTree: ...


def reduce(operands: PyTree, init_values: PyTree, computation: Callable[[Any, Any], Any],
           dimensions: Sequence[int]) -> PyTree:
    """The elements along some axes, and the initial values, combined into one.

    `computation` takes two pytrees of scalars as the operands are one of arrays, and returns one;
    it is associative, and combines neighbours, half as many in each of log2 n steps. `lax.add` and
    its like are the reductions of their names. Raises ShapeError for arrays of different shapes,
    ArgumentError for another tree of initial values or of results.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> ft.lax.reduce(jnp.arange(6).reshape(2, 3), 0, ft.lax.add, (1,)).tolist()
    [3, 12]
    >>> largest = lambda x, y: ft.tree.map(lambda a, b: jnp.where(x[0] > y[0], a, b), x, y)
    >>> values, places = jnp.array([3.0, 7.0, 5.0]), jnp.arange(3)
    >>> [v.item() for v in ft.lax.reduce((values, places), (-jnp.inf, -1), largest, (0,))]
    [7.0, 1]
    """
    leaves, structure = tree_flatten(operands)
    firsts, init_structure = tree_flatten(init_values)
    if structure != init_structure or not leaves:
        raise ArgumentError(f"lax.reduce: {len(leaves)} arrays and {len(firsts)} initial values.",
                            where=user_source(), why="there is an initial value for each array.")
    xs = [to_array(x, "reduce: an operand") for x in leaves]
    inits = [convert_element_type(to_array(v, "reduce: an initial value"), x.dtype)
             for v, x in zip(firsts, xs, strict=True)]
    shape = tuple(xs[0].shape)
    if any(tuple(x.shape) != shape for x in xs) or any(v.ndim for v in inits):
        raise ShapeError(f"lax.reduce: arrays of shapes {[tuple(x.shape) for x in xs]} with "
                         f"initial values of shapes {[tuple(v.shape) for v in inits]}.",
                         where=user_source(),
                         why="the arrays have one shape, and initial values are scalars.")
    axes = sorted({operator.index(d) % max(len(shape), 1) for d in dimensions})
    call = _on_leaves(computation, structure, xs)
    reduction = _REDUCTIONS.get(computation) if len(xs) == 1 else None
    if reduction is not None:
        found = [reduction(xs[0], tuple(axes))]
        whole: tuple[Any, ...] = tuple(found[0].shape)
    else:
        kept = [d for d in range(len(shape)) if d not in axes]
        whole = tuple(shape[d] for d in kept)
        size = prod([shape[d] for d in axes])
        if not isinstance(size, int):
            raise ShapeError("lax.reduce by a function along an axis of symbolic size.",
                             where=user_source(), fix="functrans.lax.scan(...)")
        rows = [reshape(transpose(x, (*axes, *kept)), (size, prod(whole))) for x in xs]
        if not size:
            return tree_unflatten(structure, [broadcast_in_dim(v, whole, ()) for v in inits])
        found = [reshape(x, whole) for x in _fold(call, rows, size)]
    inits = [broadcast_in_dim(v, whole, ()) for v in inits]
    return tree_unflatten(structure, _over(call, len(whole))(inits, found))


Call = Callable[[list[Any], list[Any]], list[Any]]


def _on_leaves(computation: Callable[[Any, Any], Any], structure: Any, xs: list[Array]) -> Call:
    """`computation` on lists of leaves, with a check of what it returns."""
    def call(a: list[Any], b: list[Any]) -> list[Any]:
        outs, returned = tree_flatten(computation(tree_unflatten(structure, a),
                                                  tree_unflatten(structure, b)))
        if returned != structure or any(get_aval(o).shape != get_aval(v).shape
                                        for o, v in zip(outs, a, strict=True)):
            raise ArgumentError("lax.reduce: the function returns another tree, or other shapes, "
                                "than it is given.", where=user_source())
        return [convert_element_type(o, x.dtype) for o, x in zip(outs, xs, strict=True)]

    return call


def _over(call: Call, axes: int) -> Call:
    for _ in range(axes):
        call = vmap(call)
    return call


def _fold(call: Call, rows: list[Array], size: int) -> list[Array]:
    """All rows combined: pairs of neighbours, then pairs of the results, ..."""
    of_rows = _over(call, 2)
    while size > 1:
        half = size // 2
        pairs = [reshape(slice_in_dim(x, 0, 2 * half), (half, 2, x.shape[1])) for x in rows]
        first, second = ([squeeze(slice_in_dim(p, i, i + 1, axis=1), (1,)) for p in pairs]
                         for i in (0, 1))
        combined = of_rows(first, second)
        if size % 2:
            combined = [concatenate([y, slice_in_dim(x, size - 1, size)], 0)
                        for y, x in zip(combined, rows, strict=True)]
        rows, size = combined, size - half
    return [squeeze(x, (0,)) for x in rows]


def approx_max_k(operand: Array, k: int, reduction_dimension: int = -1,
                 recall_target: float = 0.95, reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True) -> tuple[Array, Array]:
    """The k largest values along an axis, and their places: exactly, which is an approximation too.

    The arguments after the axis are of an approximation on TPUs, and change nothing here.

    >>> import functrans as ft
    >>> [x.tolist() for x in ft.lax.approx_max_k(ft.numpy.array([1.0, 3.0, 2.0]), 2)]
    [[3.0, 2.0], [1, 2]]
    """
    return _top(operand, k, reduction_dimension)


def approx_min_k(operand: Array, k: int, reduction_dimension: int = -1,
                 recall_target: float = 0.95, reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True) -> tuple[Array, Array]:
    """The k smallest values along an axis, and their places; see `approx_max_k`.

    >>> import functrans as ft
    >>> [x.tolist() for x in ft.lax.approx_min_k(ft.numpy.array([1.0, 3.0, 2.0]), 2)]
    [[1.0, 2.0], [0, 2]]
    """
    values, places = _top(elementwise.neg(operand), k, reduction_dimension)
    return elementwise.neg(values), places


def _top(operand: ArrayLike, k: int, dimension: int) -> tuple[Array, Array]:
    x = to_array(operand, "approx_max_k: the operand")
    axis = dimension % max(x.ndim, 1)
    order = (*(d for d in range(x.ndim) if d != axis), axis)
    back = tuple(order.index(d) for d in range(x.ndim))
    values, places = top_k(transpose(x, order), k)
    return transpose(values, back), transpose(places, back)
