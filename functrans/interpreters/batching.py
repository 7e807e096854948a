"""Batching rules of operations that users define, under the names of `jax.interpreters.batching`.

A rule `primitive_batchers[p]` is `rule(operands, axes, **params) -> (result, axis)`: an axis is
where an operand, or the result, is mapped, and None where it is not. One in
`fancy_primitive_batchers` is given the mapped axis first, with its `size` and `name`; one in
`axis_primitive_batchers` the size, the name and None, as in older versions of JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.avals import rank
from functrans.core.axes import MappedAxis
from functrans.core.errors import ArgumentError, publish
from functrans.core.primitive import HigherOrder, Primitive
from functrans.core.source import user_source
from functrans.extend.user_primitive import UserPrimitive
from functrans.interpreters.tables import RuleTable
from functrans.primitives.broadcast import align_batch, broadcast_batch, move_axis
from functrans.transforms.batching import BatchTrace, BatchTracer

__all__ = ["BatchTrace", "BatchTracer", "axis_primitive_batchers", "bdim_at_front", "broadcast",
           "defbroadcasting", "defreducer", "defvectorized", "fancy_primitive_batchers", "moveaxis",
           "not_mapped", "primitive_batchers"]

Rule = Callable[..., Any]

not_mapped = None


def _batch_of_ours(primitive: Primitive) -> Rule | None:
    if isinstance(primitive, HigherOrder):
        return None
    return lambda operands, axes, **params: primitive.batch(list(operands), list(axes), **params)


primitive_batchers = RuleTable("batching.primitive_batchers", "batch", _batch_of_ours)
fancy_primitive_batchers = RuleTable("batching.fancy_primitive_batchers", "batch with axis",
                                     lambda primitive: None)


class _AxisTable(RuleTable):
    """The table of rules of an older form, which are given the size and the name of the axis."""

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        def of_axis(mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None],
                    **params: Any) -> Any:
            return rule(mapped.size, mapped.name, None, operands, axes, **params)

        super().__setitem__(primitive, of_axis)


axis_primitive_batchers = _AxisTable("batching.axis_primitive_batchers", "batch with axis",
                                     lambda primitive: None)


def moveaxis(x: Any, src: int, dst: int) -> Any:
    """x with one axis moved."""
    return move_axis(x, src % x.ndim, dst % x.ndim)


def broadcast(x: Any, sz: Any, axis: int, mesh_axis: None = None) -> Any:
    """x repeated along a new axis of a size."""
    return move_axis(broadcast_batch(x, sz), 0, axis % (rank(x) + 1))


def bdim_at_front(x: Any, bdim: int | None, size: Any, mesh_axis: None = None) -> Any:
    """x with its mapped axis in front, repeated where it has none."""
    return broadcast_batch(x, size) if bdim is None else move_axis(x, bdim, 0)


def defvectorized(prim: UserPrimitive) -> None:
    """An operation on each element of operands that are mapped along one and the same axis."""
    def rule(operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        if len({*axes}) != 1:
            raise ArgumentError(f"vmap of {prim.name} over the axes {tuple(axes)}.",
                                where=user_source(),
                                why="defvectorized is for operands with the same axes.",
                                fix=f"batching.defbroadcasting({prim.name}_p)")
        return _bound(prim, operands, axes[0], params)

    primitive_batchers[prim] = rule


def defbroadcasting(prim: UserPrimitive) -> None:
    """An operation on each element of operands that broadcast, mapped along any axes."""
    def rule(operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        most = max(rank(x) - (a is not None) for x, a in zip(operands, axes, strict=True))
        whole = align_batch(operands, axes)
        return _bound(prim, [x.reshape((x.shape[0], *(1,) * (most + 1 - x.ndim), *x.shape[1:]))
                             for x in whole], 0, params)

    primitive_batchers[prim] = rule


def defreducer(prim: UserPrimitive) -> None:
    """An operation that takes the axes `axes`, a parameter, of its one operand away."""
    def rule(operands: Sequence[Any], mapped: Sequence[int | None], *, axes: Sequence[int],
             **params: Any) -> Any:
        (x,), (at,) = operands, mapped
        if at is None:
            return _bound(prim, [x], None, {**params, "axes": axes})
        reduced = tuple([a + (a >= at) for a in axes])
        rest = [d for d in range(rank(x)) if d not in reduced]
        return _bound(prim, [x], rest.index(at), {**params, "axes": reduced})

    primitive_batchers[prim] = rule


def _bound(prim: UserPrimitive, operands: Sequence[Any], axis: int | None, params: Any) -> Any:
    outs = prim.bind(*operands, **params)
    return outs, [axis] * len(outs) if prim.multiple_results else axis


publish(globals(), __all__)
