"""`vmap` for users: axes given as pytree prefixes, names, and chunks that bound memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import numpy as np

from functrans.core.avals import get_aval
from functrans.core.axes import MappedAxis
from functrans.core.cells import RefCell, cells_in_use, own_cells
from functrans.core.dims import Dim, Size, deciding
from functrans.core.errors import (
    ArgumentError,
    AxisSizeError,
    NonArrayError,
    ShapeError,
    shown,
)
from functrans.core.keypath import keystr
from functrans.core.source import user_source
from functrans.core.trace import is_array
from functrans.core.tree import (
    PyTreeDef,
    broadcast_prefix,
    tree_flatten,
    tree_paths,
    tree_unflatten,
)
from functrans.primitives.broadcast import broadcast_batch, move_axis
from functrans.primitives.shape import slice_in_dim
from functrans.transforms.batching import batch_flat
from functrans.transforms.cells import kinds_of, refuse_twice, with_tokens, write_all
from functrans.transforms.chunks import auto_chunk, map_chunks
from functrans.transforms.flat import (
    FlatFunction,
    adopt_attributes,
    argument_name,
    check_callable,
    flatten_args,
    name_of,
    wraps,
)

if TYPE_CHECKING:
    from functrans._array_types import SameDecorator
    from functrans.typing import AxisName, PyTree

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["vmap"]


@overload
def vmap(fun: Callable[P, R], in_axes: PyTree = 0, out_axes: PyTree = 0,
         axis_name: AxisName | None = None, axis_size: int | None = None, *,
         chunk_size: int | str | None = None) -> Callable[P, R]: ...


@overload
def vmap(fun: None = None, *, in_axes: PyTree = 0, out_axes: PyTree = 0,
         axis_name: AxisName | None = None, axis_size: int | None = None,
         chunk_size: int | str | None = None) -> SameDecorator: ...


def vmap(fun: Callable[..., Any] | None = None, in_axes: PyTree = 0, out_axes: PyTree = 0,
         axis_name: AxisName | None = None, axis_size: int | None = None, *,
         chunk_size: int | str | None = None) -> Callable[..., Any]:
    """The function that applies `fun` to every element along an axis of its arguments, at once.

    `in_axes` and `out_axes` are ints, None (not mapped), or pytrees of these that are prefixes of
    the tuple of arguments and of the output; keyword arguments are mapped along axis 0. `axis_name`
    names the axis for collectives. `axis_size` is needed only when nothing is mapped. `chunk_size`
    maps that many elements at a time, which bounds memory, also of a gradient through the result.
    With `chunk_size="auto"` as many as fit: in a compiled function the `memory_limit` of `jit`, or
    half of the memory that is free, decides, for the program as a whole; elsewhere an estimate of
    what the function needs does. Without `fun`, returns a decorator.
    Raises AxisSizeError where sizes differ, TreeMismatchError where `in_axes` does not fit.

    >>> import functrans as ft
    >>> ft.vmap(lambda x, y: x @ y, in_axes=(0, None))(ft.numpy.eye(2), ft.numpy.ones(2)).tolist()
    [1.0, 1.0]
    """
    if fun is None:
        return functools.partial(vmap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name,
                                 axis_size=axis_size, chunk_size=chunk_size)
    check_callable(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if chunk_size not in (None, "auto") and (
            not isinstance(chunk_size, int) or isinstance(chunk_size, bool) or chunk_size < 1):
        raise ArgumentError(f'vmap: chunk_size must be a positive int or "auto", got '
                            f"{shown(chunk_size)}.", fix="vmap(fun, chunk_size=32)")

    if axis_size is not None and not isinstance(axis_size, Dim) and (
            not isinstance(axis_size, (int, np.integer)) or axis_size < 0):
        raise ArgumentError(f"vmap: axis_size must be a non-negative int, got {shown(axis_size)}.",
                            fix="vmap(fun, in_axes=None, axis_size=8)")

    @wraps(fun, "vmap")
    def vmap_fun(*args: Any, **kwargs: Any) -> Any:
        try:
            leaves, tree = flatten_args((args, kwargs), f"vmap of {name_of(fun)}", keywords=True)
        except NonArrayError:
            if cells_in_use() and (mapped := _with_cells(fun, in_axes, out_axes, args, kwargs)):
                inner, all_axes, both_axes, arguments, write = mapped
                return write(vmap(inner, all_axes, both_axes, axis_name, axis_size,
                                  chunk_size=chunk_size)(*arguments))
            if type(in_axes) is int or not (held := _without_axis(fun, in_axes, args)):
                raise
            inner, axes_of_rest, rest = held
            return vmap(inner, axes_of_rest, out_axes, axis_name, axis_size,
                        chunk_size=chunk_size)(*rest, **kwargs)
        axes = _input_axes(in_axes, args, kwargs, leaves, tree, name_of(fun))
        size = _axis_size(leaves, axes, tree, axis_size, name_of(fun))
        axes = [None if a is None else a % x.ndim for a, x in zip(axes, leaves, strict=True)]
        flat = FlatFunction(lambda a, k: fun(*a, **k), tree, {}, "vmap")
        if chunk_size == "auto" and isinstance(size, Dim) and deciding.scope is not None:
            deciding.scope.pin(size)  # what fits is decided for each number of elements
        if chunk_size is not None and not isinstance(size, Dim):
            chunk = chunk_size if isinstance(chunk_size, int) else auto_chunk(
                flat, MappedAxis(size, axis_name), leaves, axes)
            if size > chunk:
                return _map_in_chunks(flat, leaves, axes, size, chunk, axis_name, out_axes)
        outs, mapped = batch_flat(flat, MappedAxis(size, axis_name), leaves, axes)
        wanted = _output_axes(out_axes, flat.out_tree)
        placed = [_place(x, a, w, size, flat.out_tree, i)
                  for i, (x, a, w) in enumerate(zip(outs, mapped, wanted, strict=True))]
        return tree_unflatten(flat.out_tree, placed)

    return vmap_fun


def _input_axes(in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
                leaves: Sequence[Any], tree: PyTreeDef, name: str) -> list[int | None]:
    if type(in_axes) is int:
        axes: list[Any] = [in_axes] * len(leaves)
    else:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ArgumentError(
                f"vmap: in_axes has {len(in_axes)} entries, but {name} was called with "
                f"{len(args)} positional arguments.", where=user_source(),
                fix=f"in_axes=({', '.join(['0'] * len(args))}{',' if len(args) == 1 else ''})")
        axes = broadcast_prefix(in_axes, args, what="vmap: in_axes", is_leaf=_is_none)
        axes = list(axes) + [0] * (len(leaves) - len(axes))
    for i, (axis, x) in enumerate(zip(axes, leaves, strict=True)):
        if axis is None:
            continue
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise ArgumentError(f"vmap: in_axes holds {shown(axis)}; its leaves are ints or None.",
                                fix="in_axes=0, in_axes=(0, None), in_axes=({'w': 0},)")
        if not -x.ndim <= axis < x.ndim:
            raise ShapeError(
                f"vmap: in_axes asks for axis {axis} of {_leaf_name(tree, i)}, which is "
                f"{get_aval(x)}.", where=user_source(),
                fix=f"an axis from {-x.ndim} to {x.ndim - 1}" if x.ndim else
                    "x[None] for an axis" if len(leaves) == 1 else
                    "use None for arguments that are not mapped: in_axes=(0, None)")
    return axes


def _without_axis(fun: Callable[..., Any], in_axes: Any, args: tuple[Any, ...]) -> Any:
    """`fun` of the leaves that are arrays or mapped, their axes, and these leaves.

    The others, functions for instance, are what they are for all elements. None where there are
    none of these.
    """
    leaves, tree = tree_flatten(args)
    axes = broadcast_prefix(in_axes, args, what="vmap: in_axes", is_leaf=_is_none)
    held = {i: x for i, (x, axis) in enumerate(zip(leaves, axes, strict=True))
            if axis is None and not is_array(x) and not isinstance(x, (int, float, complex))}
    if not held:
        return None

    def of_rest(*rest: Any, **kwargs: Any) -> Any:
        following = iter(rest)
        values = [held[i] if i in held else next(following) for i in range(len(leaves))]
        return fun(*tree_unflatten(tree, values), **kwargs)

    adopt_attributes(of_rest, fun)
    kept = [i for i in range(len(leaves)) if i not in held]
    return of_rest, tuple(axes[i] for i in kept), [leaves[i] for i in kept]


def _with_cells(fun: Callable[..., Any], in_axes: Any, out_axes: Any, args: tuple[Any, ...],
                kwargs: dict[str, Any]) -> Any:
    """`fun` of what is in cells that are mapped, for that and what will be; None without these.

    With it come the axes of arguments and results, the arguments, and what writes the results.
    """
    leaves, tree = tree_flatten((args, kwargs))
    axes = [in_axes] * len(leaves) if type(in_axes) is int else list(
        broadcast_prefix(in_axes, args, what="vmap: in_axes", is_leaf=_is_none))
    axes += [0] * (len(leaves) - len(axes))
    places = [i for i, x in enumerate(leaves) if isinstance(x, RefCell) and axes[i] is not None]
    cells = [leaves[i] for i in places]
    if not cells:
        return None
    refuse_twice(cells, f"vmap of {name_of(fun)}")
    held = {i: x for i, x in enumerate(leaves) if axes[i] is None}
    mapped = [i for i in range(len(leaves)) if i not in held and i not in places]
    whole = with_tokens(cells)
    kinds = kinds_of(whole)
    cell_axes = [axes[places[n if of is None else of]] for n, (_, of) in enumerate(kinds)]

    def inner(contents: Sequence[Any], *rest: Any) -> Any:
        own = own_cells(kinds, contents)
        values: dict[int, Any] = {**held, **dict(zip(mapped, rest, strict=True)),
                                  **dict(zip(places, own, strict=False))}
        given, keywords = tree_unflatten(tree, [values[i] for i in range(len(leaves))])
        return fun(*given, **keywords), [c.value for c in own]

    def write(found: Any) -> Any:
        out, values = found
        write_all(whole, values)
        return out

    adopt_attributes(inner, fun)
    return (inner, (cell_axes, *[axes[i] for i in mapped]), (out_axes, cell_axes),
            ([c.value for c in whole], *[leaves[i] for i in mapped]), write)


def _is_none(x: Any) -> bool:
    return x is None


def _leaf_name(tree: PyTreeDef, index: int) -> str:
    """`argument 0`, `argument 1 at ['w']` or `keyword argument x`, for a leaf of (args, kwargs)."""
    return argument_name(tree_paths(tree)[index], keywords=True)


def _axis_size(leaves: Sequence[Any], axes: Sequence[int | None], tree: PyTreeDef,
               axis_size: int | None, name: str) -> Size:
    sizes = [(i, x.shape[a]) for i, (x, a) in enumerate(zip(leaves, axes, strict=True))
             if a is not None]
    if not sizes and axis_size is None:
        raise AxisSizeError(f"vmap of {name}: no argument is mapped.", where=user_source(),
                            why="in_axes is None for all of them, so the size is not known.",
                            fix="vmap(fun, in_axes=None, axis_size=n)")
    size = sizes[0][1] if axis_size is None else axis_size
    if any(s != size for _, s in sizes):
        table = "; ".join(f"{_leaf_name(tree, i)} is {get_aval(leaves[i])} with size {s} along "
                          f"axis {axes[i]}" for i, s in sizes)
        stated = "" if axis_size is None else f"; axis_size={axis_size}"
        raise AxisSizeError("vmap got inconsistent sizes for array axes to be mapped, "
                            f"calling {name}: {table}{stated}.", where=user_source(),
                            why="all arguments are mapped in step.",
                            fix="use None in in_axes for what is not mapped")
    return size


def _output_axes(out_axes: Any, out_tree: PyTreeDef) -> list[int | None]:
    if type(out_axes) is int:
        return [out_axes] * out_tree.num_leaves
    dummy = tree_unflatten(out_tree, [0] * out_tree.num_leaves)
    return list(broadcast_prefix(out_axes, dummy, what="vmap: out_axes", is_leaf=_is_none))


def _output_name(tree: PyTreeDef, index: int) -> str:
    path = keystr(tree_paths(tree)[index])
    return f"the output at {path}" if path else "the output"


def _place(x: Any, mapped: int | None, wanted: int | None, size: Size, tree: PyTreeDef,
           index: int) -> Any:
    if wanted is None:
        if mapped is not None:
            raise ArgumentError(
                f"vmap: out_axes is None for {_output_name(tree, index)}, which depends on a "
                "mapped argument.", where=user_source(),
                why="an output without a mapped axis must be the same for all elements.",
                fix="out_axes=0, or reduce it inside by lax.psum(x, axis_name)")
        return x
    ndim = get_aval(x).ndim + (mapped is None)
    if not -ndim <= wanted < ndim:
        raise ShapeError(f"vmap: out_axes asks for axis {wanted} of {_output_name(tree, index)}, "
                         f"which has {ndim} dimensions with its mapped axis.", where=user_source(),
                         fix=f"out_axes from {-ndim} to {ndim - 1}")
    if mapped is None:
        x, mapped = broadcast_batch(x, size), 0
    return move_axis(x, mapped, wanted % ndim)


def _map_in_chunks(flat: FlatFunction, leaves: Sequence[Any], axes: Sequence[int | None],
                   size: int, chunk_size: int, axis_name: Any, out_axes: Any) -> Any:
    """Whole chunks in a loop, the rest once; the mapped axis is in front until the end."""
    if axis_name is not None:
        raise ArgumentError("vmap: axis_name and chunk_size exclude each other.",
                            why="a collective needs all elements of the axis at once.",
                            fix="vmap(fun, axis_name=...), or lax.map over chunks outside of it")
    mapped = [move_axis(x, a, 0) for x, a in zip(leaves, axes, strict=True) if a is not None]

    def run(count: int, parts: Sequence[Any]) -> list[Any]:
        rest = iter(parts)
        values = [x if a is None else next(rest) for x, a in zip(leaves, axes, strict=True)]
        outs, at = batch_flat(flat, MappedAxis(count), values,
                              [None if a is None else 0 for a in axes])
        return [broadcast_batch(x, count) if a is None else move_axis(x, a, 0)
                for x, a in zip(outs, at, strict=True)]

    outs = map_chunks(run, mapped, size, chunk_size)
    wanted = _output_axes(out_axes, flat.out_tree)
    return tree_unflatten(flat.out_tree, [
        _place(x if w is not None else slice_in_dim(x, 0, 1).reshape(x.shape[1:]),
               0 if w is not None else None, w, size, flat.out_tree, i)
        for i, (x, w) in enumerate(zip(outs, wanted, strict=True))])


