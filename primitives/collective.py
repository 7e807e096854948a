"""Operations over named axes: those of vmap, which interprets them, and those of meshes of devices.

Along an axis of a mesh a program runs on each device, and its collectives call the `Group` of the
rank that runs it (`core/communicator.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from functrans.core.avals import SAME, ShapedArray, get_aval
from functrans.core.axes import MappedAxis, axis_names, manual_axes
from functrans.core.communicator import Group, ReduceOp, current_member, group_here
from functrans.core.dims import Size
from functrans.core.primitive import Primitive, Sample
from functrans.core.varying import set_pvary
from functrans.primitives.arithmetic import div, mul
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import (
    broadcast_batch,
    move_axis,
    reduce_sum,
)
from functrans.primitives.compare import eq, select_n
from functrans.primitives.convert import convert_element_type
from functrans.primitives.reduce import reduce_max, reduce_min
from functrans.primitives.shape import concatenate, iota, reshape, slice_in_dim

__all__ = ["Collective", "all_gather_p", "all_to_all_p", "axis_index_p", "join_first",
           "over_mesh", "pmax_p", "pmin_p", "ppermute_p", "psum_p", "psum_scatter_p", "pvary_p"]


def over_mesh(axis_name: Any) -> frozenset[Any]:
    """Those of some named axes that are of a mesh, bound by a `shard_map`."""
    manual = manual_axes()
    return SAME if manual is None else manual.names.intersection(axis_names(axis_name))


class Collective(Primitive, abstract=True):
    """Linear in its one operand; over other mapped axes it works element by element."""

    collective = True
    widens_halves = False

    def group(self, axis_name: Any) -> Group:
        """The group of the rank that this thread runs."""
        return group_here(axis_names(axis_name), self.name)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        return self.bind(x, **params), self.bind(t, **params)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        return self.bind(operands[0], **params), axes[0]

    def samples(self) -> Iterator[Sample]:
        """None: they have a value only inside a vmap or a shard_map, where tests call them."""
        return iter(())


class CollectiveReduction(Collective, abstract=True):
    """All elements of named axes combined into one, which all of them get."""

    op: ClassVar[ReduceOp]

    def type(self, x: ShapedArray, *, axis_name: Any) -> ShapedArray:
        return x.varying_along(x.varying.difference(axis_names(axis_name)))

    def evaluate(self, x: Any, *, axis_name: Any) -> Any:
        out = np.empty(x.shape, x.dtype)
        self.group(axis_name).all_reduce(x, out, self.op)
        return out

    def rest(self, out: Any, axis: MappedAxis, axis_name: Any) -> Any:
        """What is left to do over the other axes, once one is reduced."""
        rest = tuple(n for n in axis_names(axis_name) if n != axis.name)
        return self.bind(out, axis_name=rest) if rest else out


class Psum(CollectiveReduction):
    """The sum of x over a named axis, or several."""

    op = "sum"

    def transpose(self, ct: Any, x: Any, *, axis_name: Any) -> tuple[Any]:
        mesh = over_mesh(axis_name)
        rest = tuple(n for n in axis_names(axis_name) if n not in mesh)
        if mesh:
            ct = pvary_p.bind(ct, axis_name=tuple(n for n in axis_names(axis_name) if n in mesh))
        return (psum_p.bind(ct, axis_name=rest) if rest else ct,)

    def batch_collective(self, operands: Sequence[Any], axes: Sequence[int | None], *,
                         axis: MappedAxis, axis_name: Any) -> Any:
        (x,), (at,) = operands, axes
        out = mul(x, _count(axis.size, x)) if at is None else reduce_sum(x, (at,))
        return self.rest(out, axis, axis_name), None


class CollectiveExtremum(CollectiveReduction, abstract=True):
    """The largest or smallest element; the derivative is shared by all that are equal to it."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, axis_name: Any = (),
            **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        out = self.bind(x, axis_name=axis_name)
        chosen = eq(x, out)
        share = psum_p.bind(convert_element_type(chosen, x.dtype), axis_name=axis_name)
        kept = select_n(chosen, zeros(get_aval(t).strong()), t)
        return out, div(psum_p.bind(kept, axis_name=axis_name), share)

    def batch_collective(self, operands: Sequence[Any], axes: Sequence[int | None], *,
                         axis: MappedAxis, axis_name: Any) -> Any:
        (x,), (at,) = operands, axes
        reduce = reduce_max if self.op == "max" else reduce_min
        return self.rest(x if at is None else reduce(x, (at,)), axis, axis_name), None


class Pmax(CollectiveExtremum):
    """The largest x over a named axis, elementwise."""

    op = "max"


class Pmin(CollectiveExtremum):
    """The smallest x over a named axis, elementwise."""

    op = "min"


class Pvary(Collective):
    """x itself, which all devices along some axes of a mesh have, as a value that may vary."""

    def type(self, x: ShapedArray, *, axis_name: Any) -> ShapedArray:
        return x.varying_along(x.varying.union(axis_names(axis_name)))

    def evaluate(self, x: Any, *, axis_name: Any) -> Any:
        return x

    def transpose(self, ct: Any, x: Any, *, axis_name: Any) -> tuple[Any]:
        return (psum_p.bind(ct, axis_name=axis_name),)

    def batch_collective(self, operands: Sequence[Any], axes: Sequence[int | None], *,
                         axis: MappedAxis, axis_name: Any) -> Any:
        return operands[0], axes[0]


class AllGather(Collective):
    """x of every element of a named axis, stacked along a new axis `dimension`."""

    def type(self, x: ShapedArray, *, axis_name: Any, axis_size: Size,
             dimension: int) -> ShapedArray:
        return x.with_shape((*x.shape[:dimension], axis_size, *x.shape[dimension:]))

    def evaluate(self, x: Any, *, axis_name: Any, axis_size: Size, dimension: int) -> Any:
        out = np.empty((int(axis_size), *x.shape), x.dtype)
        self.group(axis_name).all_gather(x, out)
        return np.moveaxis(out, 0, dimension)

    def transpose(self, ct: Any, x: Any, **params: Any) -> tuple[Any]:
        return (psum_scatter_p.bind(ct, **params),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, dimension: int = 0,
              **params: Any) -> Any:
        x = move_axis(operands[0], axes[0] or 0, 0)
        return self.bind(x, dimension=dimension + 1, **params), 0

    def batch_collective(self, operands: Sequence[Any], axes: Sequence[int | None], *,
                         axis: MappedAxis, axis_name: Any, axis_size: Size,
                         dimension: int) -> Any:
        (x,), (at,) = operands, axes
        if at is None:
            x, at = broadcast_batch(x, axis.size), 0
        return move_axis(x, at, dimension), None


class PsumScatter(Collective):
    """The sum over a named axis, of which every element gets its part along `dimension`."""

    def type(self, x: ShapedArray, *, axis_name: Any, axis_size: Size,
             dimension: int) -> ShapedArray:
        return x.with_shape(x.shape[:dimension] + x.shape[dimension + 1:])

    def evaluate(self, x: Any, *, axis_name: Any, axis_size: Size, dimension: int) -> Any:
        parts = np.ascontiguousarray(np.moveaxis(x, dimension, 0))
        out = np.empty(parts.shape[1:], x.dtype)
        self.group(axis_name).reduce_scatter(parts, out, "sum")
        return out

    def transpose(self, ct: Any, x: Any, **params: Any) -> tuple[Any]:
        return (all_gather_p.bind(ct, **params),)

    batch = AllGather.batch

    def batch_collective(self, operands: Sequence[Any], axes: Sequence[int | None], *,
                         axis: MappedAxis, axis_name: Any, axis_size: Size,
                         dimension: int) -> Any:
        (x,), (at,) = operands, axes
        if at is None:
            return mul(x, _count(axis.size, x)), dimension
        return reduce_sum(x, (at,)), dimension


class AllToAll(Collective):
    """Part i of x along `split` to element i of a named axis; what comes stacked along `concat`."""

    def type(self, x: ShapedArray, *, axis_name: Any, axis_size: Size, split: int,
             concat: int) -> ShapedArray:
        rest = x.shape[:split] + x.shape[split + 1:]
        return x.with_shape((*rest[:concat], axis_size, *rest[concat:]))

    def evaluate(self, x: Any, *, axis_name: Any, axis_size: Size, split: int,
                 concat: int) -> Any:
        parts = np.ascontiguousarray(np.moveaxis(x, split, 0))
        out = np.empty_like(parts)
        self.group(axis_name).all_to_all(parts, out)
        return np.moveaxis(out, 0, concat)

    def transpose(self, ct: Any, x: Any, *, split: int, concat: int, **params: Any) -> tuple[Any]:
        return (all_to_all_p.bind(ct, split=concat, concat=split, **params),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, split: int = 0,
              concat: int = 0, **params: Any) -> Any:
        x = move_axis(operands[0], axes[0] or 0, 0)
        return self.bind(x, split=split + 1, concat=concat + 1, **params), 0

    def batch_collective(self, operands: Sequence[Any], axes: Sequence[int | None], *,
                         axis: MappedAxis, axis_name: Any, axis_size: Size, split: int,
                         concat: int) -> Any:
        (x,), (at,) = operands, axes
        x = broadcast_batch(x, axis.size) if at is None else move_axis(x, at, 0)
        return move_axis(move_axis(x, split + 1, 0), 1, concat + 1), 0


class Ppermute(Collective):
    """x sent along a named axis: element d gets that of s for each pair (s, d), others zero."""

    def type(self, x: ShapedArray, *, axis_name: Any,
             perm: tuple[tuple[int, int], ...]) -> ShapedArray:
        return x

    def evaluate(self, x: Any, *, axis_name: Any, perm: tuple[tuple[int, int], ...]) -> Any:
        out = np.empty(x.shape, x.dtype)
        self.group(axis_name).permute(x, out, perm)
        return out

    def transpose(self, ct: Any, x: Any, *, axis_name: Any,
                  perm: tuple[tuple[int, int], ...]) -> tuple[Any]:
        back = tuple((d, s) for s, d in perm)
        return (ppermute_p.bind(ct, axis_name=axis_name, perm=back),)

    def batch_collective(self, operands: Sequence[Any], axes: Sequence[int | None], *,
                         axis: MappedAxis, axis_name: Any,
                         perm: tuple[tuple[int, int], ...]) -> Any:
        (x,), (at,) = operands, axes
        x = broadcast_batch(x, axis.size) if at is None else move_axis(x, at, 0)
        source = {d: s for s, d in perm}
        nothing = zeros(ShapedArray((1, *x.shape[1:]), x.dtype))
        parts = [slice_in_dim(x, source[d], source[d] + 1) if d in source else nothing
                 for d in range(int(axis.size))]
        return concatenate(parts, 0), 0


class AxisIndex(Collective):
    """The position along a named axis, int32."""

    def type(self, *, axis_name: Any) -> ShapedArray:
        return ShapedArray((), np.dtype(np.int32), False, over_mesh(axis_name))

    def evaluate(self, *, axis_name: Any) -> Any:
        member = current_member(axis_names(axis_name), self.name)
        return np.int32(member.mesh.coordinates(member.rank)[cast("str", axis_name)])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(**params), None

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        return self.bind(**params), None

    def batch_collective(self, operands: Sequence[Any], axes: Sequence[int | None], *,
                         axis: MappedAxis, axis_name: Any) -> Any:
        return iota(np.int32, axis.size), 0


def _count(size: Size, x: Any) -> Any:
    return np.asarray(size, x.dtype)


psum_p, pmax_p, pmin_p, pvary_p = Psum(), Pmax(), Pmin(), Pvary()
all_gather_p, psum_scatter_p, all_to_all_p = AllGather(), PsumScatter(), AllToAll()
ppermute_p, axis_index_p = Ppermute(), AxisIndex()


def _pvary(x: Any, axes: frozenset[Any]) -> Any:
    """x, varying along more axes, in the order of their names: programs are the same each time."""
    return pvary_p.bind(x, axis_name=tuple(sorted(axes, key=str)))


set_pvary(_pvary)


def join_first(x: Any, dimension: int) -> Any:
    """x with axis `dimension` merged into the next one."""
    shape = (*x.shape[:dimension], x.shape[dimension] * x.shape[dimension + 1],
             *x.shape[dimension + 2:])
    return reshape(x, shape)
