"""Inner products of the gradients of single samples: with a direction, and with each other."""

from __future__ import annotations

import math
from typing import Any

import functrans.numpy as jnp
from functrans import tree
from functrans.core.errors import ArgumentError, NonScalarGradError, shown
from functrans.per_sample.batches import (
    Function,
    Tree,
    checked,
    in_chunks,
    like_params,
    named,
    split_batch,
    wide,
)
from functrans.per_sample.gradients import wide_grads
from functrans.transforms.derivatives import jacrev
from functrans.transforms.flat import name_of
from functrans.transforms.staged import ShapeDtypeStruct, eval_shape

__all__ = ["gram", "inner_products", "ntk"]


def _rows(x: Any, ndim: int = 1) -> Any:
    """x with all but the leading `ndim` dimensions as one."""
    return x.reshape(*x.shape[:ndim], math.prod(x.shape[ndim:]))


def inner_products(loss: Function, *, in_axes: Any = 0, chunk_size: int | None = None) -> Function:
    """The inner product of every sample's gradient with a direction, a tree like params.

    `(params, direction, *batch)` to [B]. Where the direction is a gradient of other samples this is
    their influence, to first order (Pruthi et al. 2020, arXiv:2002.08484). The dtype is that of the
    gradients, float32 for half precision. Raises TreeMismatchError or ShapeError for another tree.

    >>> import functrans as ft
    >>> squared_error = lambda w, x, y: (w @ x - y) ** 2
    >>> xs, ys = ft.numpy.array([[1.0, 0.0], [2.0, 1.0]]), ft.numpy.array([0.0, 1.0])
    >>> w, direction = ft.numpy.array([3.0, 1.0]), ft.numpy.array([1.0, -1.0])
    >>> inner_products(squared_error)(w, direction, xs, ys).tolist()
    [6.0, 12.0]
    """
    checked("inner_products", loss, chunk_size)

    def run(params: Tree, direction: Tree, *batch: Any) -> Any:
        split = split_batch("inner_products", loss, params, batch, in_axes)
        like_params("per_sample.inner_products: direction", params, direction)

        def part(leaves: Tree) -> tuple[Tree, Tree]:
            g = wide_grads(loss, params, split, leaves)
            parts = tree.map(lambda x, d: _rows(x) @ wide(jnp.asarray(d)).reshape(-1), g, direction)
            return (), sum(tree.leaves(parts))

        return in_chunks(part, split.leaves, chunk_size)[1]

    return named("inner_products", loss, run)


def gram(loss: Function, *, in_axes: Any = 0, chunk_size: int | None = None) -> Function:
    """The inner products of the gradients of all pairs of samples: `(params, *batch)` to [B, B].

    `(params, *batch, other=batch2)`, with the tuple of arguments of a second batch, to [B, B2]. The
    dtype is that of the gradients, float32 for half precision. With `chunk_size` the gradients of
    the second batch are computed again for every chunk of the first.

    >>> import functrans as ft
    >>> squared_error = lambda w, x, y: (w @ x - y) ** 2
    >>> xs, ys = ft.numpy.array([[1.0, 0.0], [2.0, 1.0]]), ft.numpy.array([0.0, 1.0])
    >>> gram(squared_error)(ft.numpy.array([3.0, 1.0]), xs, ys).tolist()
    [[36.0, 144.0], [144.0, 720.0]]
    """
    checked("gram", loss, chunk_size)

    def run(params: Tree, *batch: Any, other: tuple[Any, ...] | None = None) -> Any:
        if other is not None and not isinstance(other, tuple):
            raise ArgumentError(
                f"per_sample.gram: other must be a tuple of arguments, got {shown(other)}.",
                why="it is a batch, as what follows params.", fix="other=(xs, ys)")
        first = split_batch("gram", loss, params, batch, in_axes)
        second = None if other is None else split_batch("gram", loss, params, other, in_axes)

        def gradients(batch: Any, leaves: Tree) -> list[Any]:
            return [_rows(x) for x in tree.leaves(wide_grads(loss, params, batch, leaves))]

        return _pairs(gradients, _sum_of_products, first, second, chunk_size)

    return named("gram", loss, run)


def ntk(f: Function, *, outputs: str = "trace", chunk_size: int | None = None) -> Function:
    """The neural tangent kernel of f(params, x): `(params, x1, x2=None)` to [B1, B2].

    The Jacobians J of single samples in params give J1 J2ᵀ (Jacot et al. 2018, arXiv:1806.07572);
    x2 is x1 where it is not given. For f with an array as its output, `outputs="full"` gives [B1,
    B2, *out, *out], and "trace" the mean of the diagonal over all outputs, as the trace over axes
    of neural-tangents (Novak et al. 2022, arXiv:2206.08720). The dtype is that of the Jacobians,
    float32 for half precision.

    >>> import functrans as ft
    >>> f = lambda w, x: w @ x
    >>> w, xs = ft.numpy.ones((3, 2)), ft.numpy.array([[1.0, 0.0], [2.0, 1.0]])
    >>> ntk(f)(w, xs).tolist(), ntk(f, outputs="full")(w, xs).shape
    ([[1.0, 2.0], [2.0, 5.0]], (2, 2, 3, 3))
    """
    checked("ntk", f, chunk_size)
    if outputs not in ("trace", "full"):
        raise ArgumentError(f"per_sample.ntk: outputs is {shown(outputs)}.",
                            fix='outputs="trace" or outputs="full"')

    def run(params: Tree, x1: Tree, x2: Tree = None) -> Any:
        first = split_batch("ntk", f, params, (x1,))
        second = None if x2 is None else split_batch("ntk", f, params, (x2,))
        shape = _output_shape(f, params, first)
        count = math.prod(shape)

        def jacobians(batch: Any, leaves: Tree) -> list[Any]:
            parts = tree.leaves(batch.map(jacrev(f), params, leaves))
            flat = [wide(j).reshape(j.shape[0], count, math.prod(j.shape[1 + len(shape):]))
                    for j in parts]
            return flat if outputs == "full" else [_rows(j) for j in flat]

        if outputs == "trace":
            return _pairs(jacobians, _sum_of_products, first, second, chunk_size) / max(count, 1)
        kernel = _pairs(jacobians, _sum_of_outer_products, first, second, chunk_size)
        return kernel.reshape(*kernel.shape[:2], *shape, *shape)

    return named("ntk", f, run)


def _output_shape(f: Function, params: Tree, batch: Any) -> tuple[Any, ...]:
    sample = [ShapeDtypeStruct(x.shape[1:], x.dtype) for x in batch.leaves]
    out = eval_shape(lambda params, leaves: f(params, *batch.sample(leaves)), params, sample)
    if not isinstance(out, ShapeDtypeStruct):
        raise NonScalarGradError(
            f"per_sample.ntk: {name_of(f)} returned a {type(out).__name__}, not one array.",
            why="the kernel has an entry for each pair of elements of the output.",
            fix="return one array, or its part: lambda params, x: f(params, x)[0]")
    return out.shape


def _sum_of_products(first: list[Any], second: list[Any]) -> Any:
    """[B1, B2] from lists of [B1, p] and [B2, p]."""
    return sum(a @ b.T for a, b in zip(first, second, strict=True))


def _sum_of_outer_products(first: list[Any], second: list[Any]) -> Any:
    """[B1, B2, k, k] from lists of [B1, k, p] and [B2, k, p]."""
    return sum(jnp.einsum("aip,bjp->abij", a, b) for a, b in zip(first, second, strict=True))


def _pairs(derivatives: Function, product: Function, first: Any, second: Any,
           chunk_size: int | None) -> Any:
    """product(derivatives(first), derivatives(second)), [B1, B2, ...], by chunks of both."""
    if chunk_size is None:
        rows = derivatives(first, first.leaves)
        return product(rows, rows if second is None else derivatives(second, second.leaves))
    second = first if second is None else second

    def part(leaves: Tree) -> tuple[Tree, Tree]:
        rows = derivatives(first, leaves)

        def columns(others: Tree) -> tuple[Tree, Tree]:
            return (), product(rows, derivatives(second, others)).swapaxes(0, 1)

        return (), in_chunks(columns, second.leaves, chunk_size)[1].swapaxes(0, 1)

    return in_chunks(part, first.leaves, chunk_size)[1]
