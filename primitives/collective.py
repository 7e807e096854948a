"""Operations over a named axis; the vmap that owns the name interprets them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.axes import MappedAxis, axis_names
from functrans.core.dims import Size
from functrans.core.errors import AxisNameError
from functrans.core.primitive import Primitive, Sample
from functrans.primitives.arithmetic import mul
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import broadcast_batch, move_axis, reduce_sum
from functrans.primitives.shape import concatenate, iota, reshape, slice_in_dim

__all__ = ["all_gather_p", "axis_index_p", "ppermute_p", "psum_p", "psum_scatter_p"]


class Collective(Primitive, abstract=True):
    """Linear in its one operand; over other mapped axes it works element by element."""

    collective = True
    widens_halves = False

    def evaluate(self, *args: Any, axis_name: Any, **params: Any) -> Any:
        raise AxisNameError(f"{self.name} over {axis_name!r} was evaluated outside a vmap of that "
                            "name.", fix=f"vmap(fun, axis_name={axis_name!r})")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        return self.bind(x, **params), self.bind(t, **params)

    def samples(self) -> Iterator[Sample]:
        """None: they have a value only inside a vmap, where the tests of vmap call them."""
        return iter(())


class Psum(Collective):
    """The sum of x over a named axis."""

    def type(self, x: ShapedArray, *, axis_name: Any) -> ShapedArray:
        return x

    def transpose(self, ct: Any, x: Any, *, axis_name: Any) -> tuple[Any]:
        return (psum_p.bind(ct, axis_name=axis_name),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        return self.bind(operands[0], **params), axes[0]

    def batch_collective(self, operands: Sequence[Any], axes: Sequence[int | None], *,
                         axis: MappedAxis, axis_name: Any) -> Any:
        (x,), (at,) = operands, axes
        out = mul(x, _count(axis.size, x)) if at is None else reduce_sum(x, (at,))
        rest = tuple(n for n in axis_names(axis_name) if n != axis.name)
        return (psum_p.bind(out, axis_name=rest) if rest else out), None


class AllGather(Collective):
    """x of every element of a named axis, stacked along a new axis `dimension`."""

    def type(self, x: ShapedArray, *, axis_name: Any, axis_size: Size,
             dimension: int) -> ShapedArray:
        return x.with_shape((*x.shape[:dimension], axis_size, *x.shape[dimension:]))

    def transpose(self, ct: Any, x: Any, **params: Any) -> tuple[Any]:
        return (psum_scatter_p.bind(ct, **params),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, dimension: int,
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


class Ppermute(Collective):
    """x sent along a named axis: element d gets that of s for each pair (s, d), others zero."""

    def type(self, x: ShapedArray, *, axis_name: Any,
             perm: tuple[tuple[int, int], ...]) -> ShapedArray:
        return x

    def transpose(self, ct: Any, x: Any, *, axis_name: Any,
                  perm: tuple[tuple[int, int], ...]) -> tuple[Any]:
        back = tuple((d, s) for s, d in perm)
        return (ppermute_p.bind(ct, axis_name=axis_name, perm=back),)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        return self.bind(operands[0], **params), axes[0]

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
        return ShapedArray((), np.dtype(np.int32))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(**params), None

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        return self.bind(**params), None

    def batch_collective(self, operands: Sequence[Any], axes: Sequence[int | None], *,
                         axis: MappedAxis, axis_name: Any) -> Any:
        return iota(np.int32, axis.size), 0


def _count(size: Size, x: Any) -> Any:
    return np.asarray(size, x.dtype)


psum_p, all_gather_p, psum_scatter_p = Psum(), AllGather(), PsumScatter()
ppermute_p, axis_index_p = Ppermute(), AxisIndex()


def join_first(x: Any, dimension: int) -> Any:
    """x with axis `dimension` merged into the next one."""
    shape = (*x.shape[:dimension], x.shape[dimension] * x.shape[dimension + 1],
             *x.shape[dimension + 2:])
    return reshape(x, shape)
