"""Batches of samples: what is mapped of their arguments, chunks of them, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import functrans.numpy as jnp
from functrans import lax, tree
from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.dims import Dim
from functrans.core.errors import (
    ArgumentError,
    AxisSizeError,
    DTypeError,
    IntegerGradError,
    ShapeError,
    public,
    shown,
)
from functrans.core.keypath import keystr
from functrans.core.tree import PyTreeDef, check_same_structure
from functrans.transforms.checkpoint import checkpoint
from functrans.transforms.flat import check_callable, name_of
from functrans.transforms.staged import ShapeDtypeStruct, eval_shape
from functrans.transforms.vmap import vmap

__all__ = ["Batch", "Function", "Tree", "checked", "in_chunks", "like_params", "named", "narrow",
           "split_batch", "wide"]

Function: TypeAlias = Callable[..., Any]
Tree: TypeAlias = Any


def checked(what: str, loss: Any, chunk_size: Any) -> None:
    """Refuse a loss that is no function and a chunk size that is no positive int."""
    check_callable(loss, f"per_sample.{what}")
    if chunk_size is not None and (not isinstance(chunk_size, int) or isinstance(chunk_size, bool)
                                   or chunk_size < 1):
        raise ArgumentError(
            f"per_sample.{what}: chunk_size must be a positive int, got {shown(chunk_size)}.",
            fix=f"per_sample.{what}({name_of(loss)}, chunk_size=32)")


def named(what: str, loss: Function, run: Function) -> Function:
    """`run` as users call it: named after the loss, without frames of the package in errors."""
    run.__name__ = run.__qualname__ = f"{what}_{name_of(loss)}"
    return public(run)


@dataclass(frozen=True)
class Batch:
    """The arguments of a batch: `leaves` are mapped along axis 0, the other ones are `fixed`."""

    leaves: list[Any]
    fixed: list[Any]
    structure: PyTreeDef
    size: Any

    def sample(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments that are made of these leaves and of those that are not mapped."""
        given = iter(leaves)
        arguments: tuple[Any, ...] = tree.unflatten(
            self.structure, [next(given) if x is None else x for x in self.fixed])
        return arguments

    def map(self, fun: Function, params: Tree, leaves: Sequence[Any]) -> Tree:
        """fun(params, *sample) for every sample of `leaves`: vmap(fun, (None, 0, ...))."""
        def one(params: Tree, *leaves: Any) -> Tree:
            return fun(params, *self.sample(leaves))
        return vmap(one, in_axes=(None, *[0] * len(leaves)))(params, *leaves)


def split_batch(what: str, loss: Function, params: Tree, batch: tuple[Any, ...], in_axes: Any = 0,
                at_least: int = 0) -> Batch:
    """The leaves of a batch, samples along axis 0, once params and batch were found to be right."""
    _check_params(what, params)
    if isinstance(in_axes, (tuple, list)) and len(in_axes) != len(batch):
        raise ArgumentError(
            f"per_sample.{what}: in_axes has {len(in_axes)} entries, but the batch has "
            f"{len(batch)} arguments after params.", why="params are never mapped.",
            fix=f"in_axes=({', '.join(['0'] * len(batch))}{',' if len(batch) == 1 else ''})")
    pairs, structure = tree.flatten_with_path(batch)
    names = [f"batch argument {keystr(path[:1], simple=True)}{keystr(path[1:])}"
             for path, _ in pairs]
    values = [to_array(x, f"per_sample.{what}: {name}") for name, (_, x) in zip(names, pairs)]
    axes = tree.broadcast_prefix(
        tuple(in_axes) if isinstance(in_axes, list) else in_axes, batch,
        is_leaf=lambda x: x is None, what=f"per_sample.{what}: in_axes", full_what="the batch")
    for name, x, axis in zip(names, values, axes):
        if axis is not None and not -x.ndim <= axis < x.ndim:
            raise ShapeError(
                f"per_sample.{what}: {name} is {get_aval(x)} and has no axis {axis} of samples.",
                why="every argument after params is mapped over samples, unless in_axes says None.",
                fix="stack the samples, or in_axes=(0, None) for an argument that all share")
    mapped = [jnp.moveaxis(x, a, 0) if a else x for x, a in zip(values, axes) if a is not None]
    sizes = [(name, get_aval(x), x.shape[a]) for name, x, a in zip(names, values, axes)
             if a is not None]
    _check_sizes(what, name_of(loss), sizes, at_least)
    fixed = [x if a is None else None for x, a in zip(values, axes)]
    return Batch(mapped, fixed, structure, sizes[0][2])


def _check_params(what: str, params: Tree) -> None:
    pairs = tree.leaves_with_path(params)
    if not pairs:
        raise ArgumentError(f"per_sample.{what}: params has no leaves, got {shown(params)}.",
                            why="gradients are taken with respect to params.",
                            fix="the parameters are the first argument of the loss")
    for path, x in pairs:
        aval = get_aval(to_array(x, f"per_sample.{what}: params{keystr(path)}"))
        if dtypes.kind(aval.dtype) != "f":
            is_complex = dtypes.kind(aval.dtype) == "c"
            raise (DTypeError if is_complex else IntegerGradError)(
                f"per_sample.{what}: params{keystr(path)} is {aval}, which is not floating.",
                why="norms and moments are those of real gradients." if is_complex else
                "derivatives are defined for floating arguments.",
                fix="keep the real and imaginary part as two parameters" if is_complex else
                "x.astype('float32'), or close over it: it is no parameter")


def _check_sizes(what: str, name: str, sizes: Sequence[tuple[str, Any, Any]],
                 at_least: int) -> None:
    if not sizes:
        raise AxisSizeError(f"per_sample.{what} of {name}: no argument of the batch is mapped.",
                            why="the number of samples is the size of the axis that is mapped.",
                            fix="f(params, xs, ys), with samples along axis 0 of xs and ys")
    first, aval, size = sizes[0]
    for other, other_aval, n in sizes[1:]:
        if n != size:
            raise AxisSizeError(
                f"per_sample.{what} of {name}: {first} is {aval} with {size} samples, {other} is "
                f"{other_aval} with {n}.", why="a sample is an element of every argument.",
                fix="pass as many of each, or in_axes=(0, None) for an argument that all share")
    if not isinstance(size, Dim) and size < at_least:
        raise AxisSizeError(
            f"per_sample.{what} of {name}: {size} samples, at least {at_least} are needed.",
            why=f"{first} is {aval}.", fix="leave out batches that are too small")


def in_chunks(run: Callable[[Tree], tuple[Tree, Tree]], batch: Tree,
              chunk_size: int | None) -> tuple[Tree, Tree]:
    """`run(batch)` over chunks of samples: first results are added up, second ones joined."""
    size = tree.leaves(batch)[0].shape[0]
    if chunk_size is None or isinstance(size, Dim) or size <= chunk_size:
        return run(batch)
    count, rest = divmod(size, chunk_size)
    whole = size - rest
    chunks = tree.map(lambda x: x[:whole].reshape(count, chunk_size, *x.shape[1:]), batch)

    def step(sums: Tree, chunk: Tree) -> tuple[Tree, Tree]:
        more, each = checkpoint(run, prevent_cse=False)(chunk)
        return tree.map(jnp.add, sums, more), each

    shapes, _ = eval_shape(run, tree.map(lambda x: ShapeDtypeStruct(x.shape[1:], x.dtype), chunks))
    zeros = tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    sums, joined = lax.scan(step, zeros, chunks)
    joined = tree.map(lambda y: y.reshape(whole, *y.shape[2:]), joined)
    if rest:
        more, last = run(tree.map(lambda x: x[whole:], batch))
        sums = tree.map(jnp.add, sums, more)
        joined = tree.map(lambda a, b: jnp.concatenate([a, b]), joined, last)
    return sums, joined


def wide(x: Any) -> Any:
    """x, in float32 where it has half precision: what is added up over samples and parameters."""
    return x.astype("float32") if dtypes.is_half(x.dtype) else x


def narrow(x: Any, like: Any) -> Any:
    """x in the dtype of `like`."""
    return x.astype(get_aval(like).dtype)


def like_params(what: str, params: Tree, other: Tree) -> None:
    """Refuse a tree, `what`, that has not the structure and the shapes of params."""
    check_same_structure(params, other, what, fix="give it the structure of params")
    for (path, x), y in zip(tree.leaves_with_path(params), tree.leaves(other), strict=True):
        if get_aval(x).shape != get_aval(y).shape:
            raise ShapeError(f"{what}{keystr(path)} is {get_aval(y)}, but "
                             f"params{keystr(path)} is {get_aval(x)}.",
                             why="an inner product is one of two vectors of the same space.",
                             fix="tree.map(jnp.zeros_like, params) has the right shapes")
