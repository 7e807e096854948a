"""associative_scan: all partial results of an associative operation in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from functrans.core.avals import get_aval
from functrans.core.errors import AxisSizeError, ShapeError, hide_internal_frames
from functrans.core.keypath import keystr
from functrans.core.source import user_source
from functrans.core.tree import PyTreeDef, check_same_structure, tree_paths, tree_unflatten
from functrans.lax.bodies import leaves_of
from functrans.primitives.shape import concatenate, expand_dims, reshape, rev, slice_in_dim
from functrans.transforms.flat import check_callable
from functrans.typing import Array

T = TypeVar("T")

__all__ = ["associative_scan"]


def associative_scan(fn: Callable[[T, T], T], elems: T, reverse: bool = False,
                     axis: int = 0) -> T:
    """The results of combining the first 1, 2, ..., n elements along `axis` with `fn`.

    Shapes are those of `elems`.

    `fn(a, b)` is associative; it takes two trees with the structure of `elems`, whose arrays hold
    many elements along `axis`, and combines them element by element. `reverse` combines from the
    last element on. Takes about 2 log2(n) steps, each over whole arrays.
    Raises AxisSizeError where the arrays differ in size, TreeMismatchError for another result.

    >>> import functrans as ft
    >>> ft.lax.associative_scan(ft.lax.add, ft.numpy.arange(5.0)).tolist()
    [0.0, 1.0, 3.0, 6.0, 10.0]
    """
    check_callable(fn, "associative_scan")
    leaves, tree = leaves_of(elems, "associative_scan: elems")
    if not leaves:
        return elems
    axes = [_axis(x, axis, keystr(p)) for x, p in zip(leaves, tree_paths(tree), strict=True)]
    sizes = [x.shape[a] for x, a in zip(leaves, axes, strict=True)]
    if any(s != sizes[0] for s in sizes):
        table = ", ".join(f"elems{keystr(p)} has {s}"
                          for p, s in zip(tree_paths(tree), sizes, strict=True))
        raise AxisSizeError(f"associative_scan: the sizes along axis {axis} differ: {table}.",
                            where=user_source())

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        out = fn(tree_unflatten(tree, a), tree_unflatten(tree, b))
        check_same_structure(tree, out, "associative_scan: the result of fn", where=user_source())
        return leaves_of(out, "associative_scan: the result of fn")[0]

    try:
        results: T = _associative_scan(combine, leaves, axes, tree, reverse)
        return results
    except Exception as error:
        raise hide_internal_frames(error) from error.__cause__


def _associative_scan(combine: Callable[..., list[Any]], leaves: list[Any], axes: Sequence[int],
                      tree: PyTreeDef, reverse: bool) -> Any:
    def flip(xs: Sequence[Any]) -> list[Any]:
        return [rev(x, (a,)) for x, a in zip(xs, axes, strict=True)] if reverse else list(xs)

    def cut(xs: Sequence[Any], start: int, stop: int, stride: int = 1) -> list[Any]:
        return [slice_in_dim(x, start, stop, stride, a) for x, a in zip(xs, axes, strict=True)]

    def scan(xs: list[Any]) -> list[Any]:
        n = xs[0].shape[axes[0]]
        if n < 2:
            return xs
        half = n // 2
        odd = scan(combine(cut(xs, 0, 2 * half, 2), cut(xs, 1, 2 * half, 2)))
        first = cut(xs, 0, 1)
        if n == 2:
            even = first
        else:
            later = combine(cut(odd, 0, (n - 1) // 2), cut(xs, 2, n, 2))
            even = [concatenate([f, e], a) for f, e, a in zip(first, later, axes, strict=True)]
        pairs = [_interleave(e, o, a, half)
                 for e, o, a in zip(cut(even, 0, half), odd, axes, strict=True)]
        if n % 2 == 0:
            return pairs
        last = cut(even, half, half + 1)
        return [concatenate([p, e], a) for p, e, a in zip(pairs, last, axes, strict=True)]

    return tree_unflatten(tree, flip(scan(flip(leaves))))


def _interleave(even: Any, odd: Any, axis: int, half: int) -> Any:
    """Elements of two arrays of one size along `axis` in turn."""
    both = concatenate([expand_dims(even, (axis + 1,)), expand_dims(odd, (axis + 1,))], axis + 1)
    return reshape(both, (*even.shape[:axis], 2 * half, *even.shape[axis + 1:]))


def _axis(x: Array, axis: int, path: str) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(f"associative_scan: elems{path} is {get_aval(x)}, without axis {axis}.",
                         where=user_source())
    return axis % x.ndim
