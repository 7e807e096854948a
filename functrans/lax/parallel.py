"""Collectives over the named axes of vmap and of meshes, on pytrees, with jax.lax's names.

Over an axis of a mesh, within `shard_map`, the sum is the same on all devices, and so are the
largest and the smallest value: types say so (`core/varying.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from functrans.core.avals import get_aval
from functrans.core.axes import axis_names, bound_axis_size, manual_axes
from functrans.core.convert import to_array
from functrans.core.dims import Size
from functrans.core.errors import ArgumentError
from functrans.core.primitive import Primitive
from functrans.core.source import user_source
from functrans.core.tree import map_leaves
from functrans.core.varying import vary
from functrans.lax.grouped import Groups
from functrans.primitives.arithmetic import add, div, mul
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import move_axis, reduce_sum
from functrans.primitives.collective import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    join_first,
    over_mesh,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    psum_scatter_p,
)
from functrans.primitives.compare import eq, select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.index import index_in_dim
from functrans.primitives.reduce import reduce_max, reduce_min
from functrans.primitives.shape import reshape
from functrans.typing import Array, AxisName

T = TypeVar("T")
IndexGroups: TypeAlias = Sequence[Sequence[int]] | None

__all__ = ["all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pcast", "pmax",
           "pmean", "pmin", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes", "pvary"]


def axis_size(axis_name: AxisName) -> Size:
    """The size of a named axis, or the product of several.

    Raises AxisNameError when no enclosing vmap binds it.

    >>> import functrans as ft
    >>> ft.vmap(lambda x: x * ft.lax.axis_size("i"), axis_name="i")(ft.numpy.ones(3)).tolist()
    [3.0, 3.0, 3.0]
    """
    size: Size = 1
    for name in axis_names(axis_name):
        size = size * bound_axis_size(name)
    return size


def _ready(leaf: Any, axis_name: Any) -> Any:
    """A leaf as an array that may vary along those of the axes that are of a mesh."""
    x = to_array(leaf)
    mesh = over_mesh(axis_name)
    return vary(x, mesh) if mesh else x


def _reduced(primitive: Primitive, x: Any, axis_name: Any) -> Any:
    """A reduction over named axes; those of a mesh at once, whose result is the same everywhere."""
    out = primitive.bind(_ready(x, axis_name), axis_name=axis_name)
    mesh, manual = over_mesh(axis_name), manual_axes()
    return out if not mesh or manual is None or manual.checked else vary(out, mesh)


def psum(x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> T:
    """The sum of a pytree over a named axis (or several); of a Python number, times its size.

    With `axis_index_groups`, lists of positions of one axis, each of which is in one of them, the
    sum over the members of each group. Raises AxisNameError when no enclosing vmap or
    shard_map binds the name, ArgumentError for groups that are none.

    >>> import functrans as ft
    >>> ft.vmap(lambda x: x / ft.lax.psum(x, "i"), axis_name="i")(ft.numpy.ones(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    size = axis_size(axis_name)
    if axis_index_groups is not None:
        groups = Groups("psum", axis_index_groups, axis_name, size, equal=False)
        return map_leaves(lambda leaf: groups.scaled(leaf) if isinstance(
            leaf, (int, float, complex)) else groups.sum(_ready(leaf, axis_name)), x)
    return map_leaves(lambda leaf: leaf * size if isinstance(leaf, (int, float, complex)) else
                    _reduced(psum_p, leaf, axis_name), x)


def pmean(x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> T:
    """The mean of a pytree over a named axis.

    >>> import functrans as ft
    >>> ft.vmap(lambda x: ft.lax.pmean(x, "i"), axis_name="i")(ft.numpy.arange(3.0)).tolist()
    [1.0, 1.0, 1.0]
    """
    size = axis_size(axis_name)
    groups = None if axis_index_groups is None else \
        Groups("pmean", axis_index_groups, axis_name, size, equal=False)

    def mean(leaf: Any) -> Any:
        total = _reduced(psum_p, leaf, axis_name) if groups is None else \
            groups.sum(_ready(leaf, axis_name))
        if total.dtype.kind in "biu":
            total = convert_element_type(total, "float32")
        if groups is None or groups.is_equal:
            return div(total, float(size if groups is None else groups.size))
        return div(total, convert_element_type(groups.length, total.dtype))

    return map_leaves(mean, x)


def pmax(x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> T:
    """The largest element of a pytree over a named axis, elementwise.

    >>> ft.vmap(lambda x: x - lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 5, 2]))
    Array([-4,  0, -3], dtype=int32)
    """
    found: T = _extremum(pmax_p, reduce_max, x, axis_name, axis_index_groups)
    return found


def pmin(x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> T:
    """The smallest element of a pytree over a named axis, elementwise.

    >>> ft.vmap(lambda x: x - lax.pmin(x, "i"), axis_name="i")(jnp.array([3, 1, 2]))
    Array([2, 0, 1], dtype=int32)
    """
    found: T = _extremum(pmin_p, reduce_min, x, axis_name, axis_index_groups)
    return found


def _extremum(primitive: Primitive, reduce: Callable[..., Any], x: Any, axis_name: Any,
              axis_index_groups: IndexGroups) -> Any:
    size = axis_size(axis_name)
    if axis_index_groups is None:
        return map_leaves(lambda leaf: _reduced(primitive, leaf, axis_name), x)
    groups = Groups(primitive.name, axis_index_groups, axis_name, size, equal=False)

    def within(leaf: Any) -> Any:
        x = _ready(leaf, axis_name)
        # of a group of fewer members each counts itself again
        return groups.combine(x, x, lambda ys: reduce(ys, (0,)))

    return map_leaves(within, x)


def _steps(axis_name: Any) -> list[Any]:
    """The named axes in the steps in which data goes along them: axes of a mesh at once."""
    names = axis_names(axis_name)
    return [names] if len(names) > 1 and over_mesh(names) == set(names) else list(names)


def all_gather(x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups = None, axis: int = 0,
               tiled: bool = False) -> T:
    """The values of a pytree at all positions of a named axis, stacked along `axis`.

    With `tiled` they are joined along the existing axis instead; with `axis_index_groups`, groups
    of one size, those of the group.

    >>> import functrans as ft
    >>> ft.vmap(lambda x: ft.lax.all_gather(x, "i"), axis_name="i")(ft.numpy.arange(2)).tolist()
    [[0, 1], [0, 1]]
    """
    def gather(leaf: Any) -> Any:
        out = _ready(leaf, axis_name)
        at = axis % (out.ndim + (not tiled))
        if groups is not None:
            out = move_axis(groups.gather(out), 0, at)
            return join_first(out, at) if tiled else out
        for k, name in enumerate(reversed(_steps(axis_name))):  # the first one goes slowest
            out = all_gather_p.bind(out, axis_name=name, axis_size=axis_size(name), dimension=at)
            if k:
                out = join_first(out, at)
        return join_first(out, at) if tiled else out

    size = axis_size(axis_name)
    groups = None if axis_index_groups is None else \
        Groups("all_gather", axis_index_groups, axis_name, size, equal=True)
    return map_leaves(gather, x)


def psum_scatter(x: T, axis_name: AxisName, *, scatter_dimension: int = 0,
                 axis_index_groups: IndexGroups = None, tiled: bool = False) -> T:
    """The sum over a named axis, of which position i gets part i along `scatter_dimension`.

    That dimension has the size of the named axis and is removed; with `tiled` it is divided into
    as many blocks, and stays. With `axis_index_groups`, groups of one size, that of the group.

    >>> rows = jnp.array([[1, 2], [10, 20]])
    >>> ft.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(rows)
    Array([11, 22], dtype=int32)
    """
    size = axis_size(axis_name)
    groups = None if axis_index_groups is None else \
        Groups("psum_scatter", axis_index_groups, axis_name, size, equal=True)
    if groups is not None:
        size = groups.size

    def scatter(leaf: Any) -> Any:
        leaf = _ready(leaf, axis_name)
        if tiled:
            return scatter_blocks(leaf)
        if leaf.shape[scatter_dimension] != size:
            raise ArgumentError(f"psum_scatter: dimension {scatter_dimension} of {leaf.aval} must "
                                f"have the size {size} of the axis {axis_name!r}.",
                                where=user_source())
        return along(leaf, scatter_dimension % leaf.ndim)

    def scatter_blocks(leaf: Any) -> Any:
        at = scatter_dimension % leaf.ndim
        if leaf.shape[at] % size != 0:
            raise ArgumentError(f"psum_scatter: dimension {scatter_dimension} of {leaf.aval} does "
                                f"not divide into the {size} positions of the axis {axis_name!r}.",
                                where=user_source())
        blocks = reshape(leaf, (*leaf.shape[:at], size, leaf.shape[at] // size,
                                *leaf.shape[at + 1:]))
        return along(blocks, at)

    def along(leaf: Any, at: int) -> Any:
        if groups is not None:
            return reduce_sum(groups.exchange(move_axis(leaf, at, 0)), (0,))
        steps = _steps(axis_name)
        for k, name in enumerate(steps):
            rest = math.prod([int(axis_size(n)) for n in steps[k + 1:]])
            if len(steps) > 1:
                leaf = reshape(leaf, (*leaf.shape[:at], axis_size(name), rest,
                                      *leaf.shape[at + 1:]))
            leaf = psum_scatter_p.bind(leaf, axis_name=name, axis_size=axis_size(name),
                                       dimension=at)
        return reshape(leaf, (*leaf.shape[:at], *leaf.shape[at + 1:])) if len(steps) > 1 else leaf

    return map_leaves(scatter, x)


def ppermute(x: T, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> T:
    """A pytree sent along a named axis by (source, destination) pairs; others receive zeros.

    Raises ArgumentError when a source or destination appears twice or is out of range.

    >>> import functrans as ft
    >>> shift = lambda x: ft.lax.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> ft.vmap(shift, axis_name="i")(ft.numpy.array([1, 2, 3])).tolist()
    [0, 1, 2]
    """
    size = axis_size(axis_name)
    pairs = tuple((int(s), int(d)) for s, d in perm)
    for label, ends in (("source", [s for s, _ in pairs]), ("destination", [d for _, d in pairs])):
        if len(set(ends)) != len(ends) or any(not 0 <= e < size for e in ends):
            raise ArgumentError(f"ppermute: the {label}s {ends} are not distinct positions of the "
                                f"axis {axis_name!r} of size {size}.", where=user_source())
    (name,) = _one_step("ppermute", axis_name)
    return map_leaves(lambda leaf: ppermute_p.bind(_ready(leaf, axis_name), axis_name=name,
                                                 perm=pairs), x)


def _one_step(what: str, axis_name: Any) -> list[Any]:
    """The named axes where they can be taken at once: one, or several of a mesh."""
    steps = _steps(axis_name)
    if len(steps) != 1:
        raise ArgumentError(f"{what} over the axes {axis_name!r}.", where=user_source(),
                            why="axes of vmap are taken one by one.",
                            fix=f"{what} over {axis_name[0]!r} alone")
    return steps


def pshuffle(x: T, axis_name: AxisName, perm: Sequence[int]) -> T:
    """A pytree permuted along a named axis: position i gets the value at perm[i].

    >>> ft.vmap(lambda x: lax.pshuffle(x, "i", (2, 0, 1)), axis_name="i")(jnp.array([10, 20, 30]))
    Array([30, 10, 20], dtype=int32)
    """
    return ppermute(x, axis_name, [(s, d) for d, s in enumerate(perm)])


def all_to_all(x: T, axis_name: AxisName, split_axis: int, concat_axis: int, *,
               axis_index_groups: IndexGroups = None, tiled: bool = False) -> T:
    """Parts of a pytree exchanged along a named axis: position i gets part i of every position.

    The parts are along `split_axis`, which has the size of the named axis and goes, and those that
    came are stacked along a new `concat_axis`; with `tiled` they are blocks, and joined along the
    axis that is there. With `axis_index_groups`, groups of one size, they are exchanged within the
    group. Raises ArgumentError for another size.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(4).reshape(2, 2)
    >>> ft.vmap(lambda row: ft.lax.all_to_all(row, "i", 0, 0), axis_name="i")(x).tolist()
    [[0, 2], [1, 3]]
    """
    size = axis_size(axis_name)
    (name,) = _one_step("all_to_all", axis_name)
    groups = None if axis_index_groups is None else \
        Groups("all_to_all", axis_index_groups, axis_name, size, equal=True)
    if groups is not None:
        size = groups.size

    def exchange(leaf: Any) -> Any:
        leaf = _ready(leaf, axis_name)
        split = split_axis % leaf.ndim
        n = leaf.shape[split]
        if n != size if not tiled else n % size != 0:
            raise ArgumentError(f"all_to_all: dimension {split_axis} of {leaf.aval} and the {size} "
                                f"positions of the axis {axis_name!r}.", where=user_source(),
                                why="there is a block for each position." if tiled
                                else "there is an element for each position.")
        parts = leaf if not tiled else reshape(
            leaf, (*leaf.shape[:split], size, n // size, *leaf.shape[split + 1:]))
        at = concat_axis % leaf.ndim
        if groups is not None:
            moved = move_axis(groups.exchange(move_axis(parts, split, 0)), 0, at)
        else:
            moved = all_to_all_p.bind(parts, axis_name=name, axis_size=size, split=split, concat=at)
        return join_first(moved, at) if tiled else moved

    return map_leaves(exchange, x)


def pswapaxes(x: T, axis_name: AxisName, axis: int, *,
              axis_index_groups: IndexGroups = None) -> T:
    """A named axis exchanged with an axis of the same size.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(4).reshape(2, 2)
    >>> ft.vmap(lambda row: ft.lax.pswapaxes(row, "i", 0), axis_name="i")(x).tolist()
    [[0, 2], [1, 3]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: T, axis_name: AxisName, source: int) -> T:
    """The value of one position of a named axis, at all positions.

    >>> import functrans as ft
    >>> one = lambda x: ft.lax.pbroadcast(x, "i", 2)
    >>> ft.vmap(one, axis_name="i")(ft.numpy.arange(3)).tolist()
    [2, 2, 2]
    """
    size = axis_size(axis_name)
    if isinstance(size, int) and not 0 <= source < size:
        raise ArgumentError(f"pbroadcast: position {source} of the axis {axis_name!r} of size "
                            f"{size}.", where=user_source())

    def one(leaf: Any) -> Any:
        x = _ready(leaf, axis_name)
        if over_mesh(axis_name):  # what comes from one device is the same everywhere
            mine = eq(axis_index(axis_name), source)
            return _reduced(psum_p, select_n(mine, zeros(get_aval(x).strong()), x), axis_name)
        everything = all_gather_p.bind(x, axis_name=axis_name, axis_size=size, dimension=0)
        return index_in_dim(everything, source, 0, keepdims=False)

    return map_leaves(one, x)


def pcast(x: T, axis_name: AxisName, *, to: str) -> T:
    """x itself, as what may differ between the devices along an axis of a mesh.

    Over axes of vmap nothing says whether values differ along them. `to` is "varying", "unreduced"
    or "reduced", as in JAX; raises ArgumentError for another word.

    >>> mesh, P = ft.make_mesh((1,), ("i",)), ft.P
    >>> shifted = lambda x: x + lax.pcast(jnp.ones(()), "i", to="varying")
    >>> f = ft.shard_map(shifted, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    >>> f(jnp.arange(2.0)).tolist()
    [1.0, 2.0]
    """
    if to not in ("varying", "unreduced", "reduced"):
        raise ArgumentError(f"pcast: to={to!r}.", where=user_source(), fix='to="varying"')
    axis_size(axis_name)
    return pvary(x, axis_name) if to == "varying" else x


def pvary(x: T, axis_name: AxisName) -> T:
    """x itself, as what may differ between the devices along axes of a mesh.

    The cotangents of all devices are added up where this is.

    >>> mesh, P = ft.make_mesh((1,), ("i",)), ft.P
    >>> shifted = lambda x: x + lax.pvary(1.0, "i")
    >>> f = ft.shard_map(shifted, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    >>> f(jnp.arange(2.0)).tolist()
    [1.0, 2.0]
    """
    return map_leaves(lambda leaf: _ready(leaf, axis_name), x)


def axis_index(axis_name: AxisName) -> Array:
    """The position along a named axis, int32.

    >>> import functrans as ft
    >>> ft.vmap(lambda x: ft.lax.axis_index("i"), axis_name="i")(ft.numpy.zeros(3)).tolist()
    [0, 1, 2]
    """
    axis_size(axis_name)
    first, *rest = axis_names(axis_name)
    at = axis_index_p.bind(axis_name=first)
    for name in rest:  # the first one goes slowest
        at = add(mul(at, int(axis_size(name))), axis_index_p.bind(axis_name=name))
    return at
