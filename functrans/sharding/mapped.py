"""`pmap` and `smap`: functions mapped over devices, which `shard_map` runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.communicator import this_process
from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError, AxisSizeError, ShapeError, publish, shown
from functrans.core.mesh import Mesh, PartitionSpec
from functrans.core.source import user_source
from functrans.core.tree import broadcast_prefix, tree_flatten, tree_map, tree_unflatten
from functrans.device import Device, current_device, devices
from functrans.primitives.broadcast import move_axis
from functrans.primitives.index import index_in_dim
from functrans.primitives.shape import expand_dims
from functrans.transforms.flat import check_callable, name_of, wraps
from functrans.transforms.jit.api import jit
from functrans.transforms.shard_map import INFER, shard_map
from functrans.transforms.vmap import vmap

if TYPE_CHECKING:
    from functrans.typing import AxisName, PyTree

__all__ = ["pmap", "smap"]

_AXIS = "pmap"  # of the mesh, where the user has no name for it


def pmap(fun: Callable[..., Any], axis_name: AxisName | None = None, *, in_axes: PyTree = 0,
         out_axes: PyTree = 0,
         static_broadcasted_argnums: int | Sequence[int] = (),
         devices: Sequence[Device] | None = None, backend: str | None = None,
         axis_size: int | None = None,
         donate_argnums: int | Sequence[int] = ()) -> Callable[..., Any]:
    """`fun` compiled and run on several devices, each with one element along a mapped axis.

    `in_axes` and `out_axes` are those of `vmap`, which it is on a single device, for an axis of any
    size; several devices take as many elements as they are, or fewer. `axis_name` is for
    collectives. Arguments in `static_broadcasted_argnums` are hashable Python values. Results lie
    on the devices, divided along the mapped axis. The memory of arguments in `donate_argnums` may
    become that of results, as by `jit`; they are gone then.
    Raises ShapeError for a longer axis, AxisSizeError where arguments differ in it, ArgumentError
    for a donated argument that is static, or not there.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> with ft.config.cpu_devices(4):
    ...     four = ft.devices("cpu")
    >>> normalize = ft.pmap(lambda x: x / ft.lax.psum(x, "i"), axis_name="i", devices=four)
    >>> normalize(jnp.array([1.0, 2.0, 3.0, 2.0])).tolist()
    [0.125, 0.25, 0.375, 0.25]
    """
    check_callable(fun, "pmap")
    static = {static_broadcasted_argnums} if isinstance(static_broadcasted_argnums, int) \
        else set(static_broadcasted_argnums)
    donated = {donate_argnums} if isinstance(donate_argnums, int) else set(donate_argnums)
    what = f"pmap of {name_of(fun)}"
    if donated & static:
        raise ArgumentError(f"{what}: argument {min(donated & static)} is static and donated.",
                            where=user_source(), why="only arrays have memory to give.")
    name = _AXIS if axis_name is None else axis_name
    programs: dict[Any, Any] = {}

    def place() -> list[Device]:
        if devices is not None:
            return list(devices)
        found = _devices(backend or current_device().platform)
        return [d for d in found if d.process_index == this_process()]

    @wraps(fun, "pmap")
    def mapped(*args: Any, **kwargs: Any) -> Any:
        fixed = tuple([(i, a) for i, a in enumerate(args) if i in static])
        given = [a for i, a in enumerate(args) if i not in static]
        axes = in_axes
        if isinstance(in_axes, (tuple, list)):
            if len(in_axes) not in (len(args), len(given)):
                raise ArgumentError(f"{what}: in_axes has {len(in_axes)} entries, for {len(args)} "
                                    "arguments.", where=user_source())
            axes = tuple([a for i, a in enumerate(in_axes) if i not in static]
                         if len(in_axes) == len(args) else in_axes)
        leaves, tree = tree_flatten((tuple(given), kwargs))
        gone = _donated_leaves(what, args, static, donated)
        wanted = [*broadcast_prefix(axes, tuple(given), lambda a: a is None,
                                    what=f"{what}: in_axes"), *[0] * len(tree_flatten(kwargs)[0])]
        size = _size(what, leaves, wanted, axis_size)
        found = place()
        if len(found) > 1 and size > len(found):
            raise ShapeError(f"{what} over an axis of size {size} needs as many devices, and there "
                             f"are {len(found)}.", where=user_source(),
                             fix="ft.vmap inside of it, over the elements of each device")
        key = (fixed, tree, tuple(wanted), size, tuple(found))
        run = programs.get(key)
        if run is None:
            run = programs[key] = jit(_over(
                _body(fun, fixed, tree), wanted, out_axes, name, size, found),
                donate_argnums=gone)
        return run(*leaves)

    return mapped


_devices = devices  # which an argument of pmap hides


def _donated_leaves(what: str, args: Sequence[Any], static: set[int],
                    donated: set[int]) -> tuple[int, ...]:
    """The numbers of the leaves of donated arguments among those of all that are not static."""
    if wrong := [i for i in donated if not -len(args) <= i < len(args)]:
        raise ArgumentError(f"{what}: argument {wrong[0]} is donated, of {len(args)}.",
                            where=user_source(), fix="donate_argnums=(0,)  # positions from 0 on")
    wanted = {i % len(args) for i in donated}
    found: list[int] = []
    start = 0
    for i, a in enumerate(args):
        if i in static:
            continue
        end = start + len(tree_flatten(a)[0])
        found += range(start, end) if i in wanted else ()
        start = end
    return tuple(found)


def _body(fun: Callable[..., Any], fixed: Sequence[tuple[int, Any]], tree: Any) -> Any:
    """The function of leaves; static arguments stand where they were."""
    def body(*leaves: Any) -> Any:
        args, kwargs = tree_unflatten(tree, leaves)
        args = list(args)
        for i, value in fixed:
            args.insert(i, value)
        return fun(*args, **kwargs)

    return body


def _size(what: str, leaves: Sequence[Any], axes: Sequence[Any], said: int | None) -> int:
    sizes = set() if said is None else {said}
    for x, axis in zip(leaves, axes, strict=True):
        if axis is None:
            continue
        shape = np.shape(x)
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(f"{what}: an argument of shape {shape} has no axis {axis}.",
                             where=user_source(), fix="in_axes=None for what is not mapped")
        sizes.add(shape[axis])
    if len(sizes) != 1:
        raise AxisSizeError(f"{what}: mapped axes have the sizes {sorted(sizes)}." if sizes else
                            f"{what}: no argument is mapped.", where=user_source(),
                            fix="axis_size=n" if not sizes else "arguments of one size there")
    return int(sizes.pop())


def _over(body: Any, axes: Sequence[Any], out_axes: Any, name: Any, size: int,
          found: Sequence[Device]) -> Any:
    if len(found) == 1:
        return vmap(body, tuple(axes), out_axes, axis_name=name, axis_size=size)
    mesh = Mesh(np.array(found[:size], object), (name,))

    def one(*parts: Any) -> list[Any]:
        outs, trees[:] = _flat(body(*[x if a is None else index_in_dim(x, 0, a, keepdims=False)
                                      for x, a in zip(parts, axes, strict=True)]))
        return [expand_dims(x, (0,)) for x in outs]

    trees: list[Any] = []

    def run(*leaves: Any) -> Any:
        specs = [PartitionSpec() if a is None else
                 PartitionSpec(*[None] * (a % np.ndim(x)), name)
                 for x, a in zip(leaves, axes, strict=True)]
        outs = shard_map(one, mesh, tuple(specs), PartitionSpec(name), check_vma=False)(*leaves)
        dummy = tree_unflatten(trees[0], [0] * len(outs))
        wanted = broadcast_prefix(out_axes, dummy, lambda a: a is None, what="pmap: out_axes")
        return tree_unflatten(trees[0], [
            index_in_dim(x, 0, 0, keepdims=False) if a is None else move_axis(x, 0, a % x.ndim)
            for x, a in zip(outs, wanted, strict=True)])

    return run


def _flat(outs: Any) -> tuple[list[Any], list[Any]]:
    leaves, tree = tree_flatten(outs)
    return [to_array(x) for x in leaves], [tree]


def smap(f: Callable[..., Any] | None = None, /, *, in_axes: PyTree = INFER, out_axes: PyTree,
         axis_name: str) -> Callable[..., Any]:
    """`shard_map` along one axis of the mesh of the scope, by numbers of axes.

    `in_axes` and `out_axes` say, as pytrees that are prefixes of the arguments and of the result,
    which axis of an array is divided along `axis_name`; None for none. `f` gets the parts, with
    that axis. Raises ShardingError where there is no mesh, or an axis does not divide.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> with ft.config.cpu_devices(2):
    ...     mesh = ft.make_mesh((2,), ("x",), devices=ft.devices("cpu"))
    >>> with ft.set_mesh(mesh):
    ...     total = ft.smap(lambda x: ft.lax.psum(x.sum(), "x"), in_axes=0, out_axes=None,
    ...                     axis_name="x")(jnp.arange(4.0))
    >>> total.item()
    6.0
    """
    if f is None:
        return lambda f: smap(f, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    check_callable(f, "smap")

    out_specs = tree_map(lambda a: PartitionSpec() if a is None else PartitionSpec(axis_name),
                         out_axes, is_leaf=lambda a: a is None)

    def moved(outs: Any, to_front: bool) -> Any:
        leaves, tree = tree_flatten(outs)
        axes = broadcast_prefix(out_axes, outs, lambda a: a is None, what="smap: out_axes")
        for x, a in zip(leaves, axes, strict=True):
            _spec("out_axes", a, np.ndim(x), axis_name)
        return tree_unflatten(tree, [
            x if a is None else move_axis(to_array(x), *((a % np.ndim(x), 0) if to_front
                                                         else (0, a % np.ndim(x))))
            for x, a in zip(leaves, axes, strict=True)])

    @wraps(f, "smap")
    def mapped(*args: Any) -> Any:
        specs: Any = in_axes
        if in_axes is not INFER:
            axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
            leaves, tree = tree_flatten(args)
            wanted = broadcast_prefix(axes, args, lambda a: a is None, what="smap: in_axes")
            specs = tree_unflatten(tree, [_spec("in_axes", a, np.ndim(x), axis_name)
                                          for x, a in zip(leaves, wanted, strict=True)])
        parts = shard_map(lambda *xs: moved(f(*xs), True), None, specs, out_specs,
                          axis_names={axis_name})
        return moved(parts(*args), False)

    return mapped


def _spec(what: str, axis: Any, ndim: int, name: Any) -> PartitionSpec:
    if axis is None:
        return PartitionSpec()
    if not isinstance(axis, int) or not -ndim <= axis < ndim:
        raise ShapeError(f"smap: {what} has {shown(axis)} for an array of {ndim} axes.",
                         where=user_source(), fix="an axis of it, or None")
    return PartitionSpec(*[None] * (axis % ndim), name)


publish(globals(), __all__)
