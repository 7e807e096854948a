"""Calls of Python functions on concrete values from inside programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans._runtime import set_trace
from functrans.core.avals import ShapedArray
from functrans.core.errors import CallbackError, NotDifferentiableError
from functrans.core.primitive import Primitive, Sample
from functrans.core.record import Record
from functrans.core.source import Source, user_source
from functrans.primitives.base import sample_array
from functrans.primitives.broadcast import align_batch, move_axis
from functrans.primitives.shape import expand_dims

__all__ = ["HostFunction", "check_result", "debug_callback_p", "io_callback_p", "pure_callback_p"]


class Callback(Primitive, abstract=True):
    """Calls `callback(*arrays)`, which returns arrays of the types `out_avals`."""

    multiple_results = True
    widens_halves = False
    finite_differences = False

    def type(self, *avals: ShapedArray, callback: Any, out_avals: tuple[ShapedArray, ...],
             **params: Any) -> list[ShapedArray]:
        return list(out_avals)

    def evaluate(self, *arrays: Any, callback: Any, out_avals: tuple[ShapedArray, ...],
                 **params: Any) -> list[Any]:
        previous = set_trace(None)
        try:
            with np.errstate(all="warn"):
                results = callback(*[np.asarray(a) for a in arrays])
        finally:
            set_trace(previous)
        return [check_result(r, a, callback) for r, a in zip(results, out_avals, strict=True)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        raise NotDifferentiableError(
            f"{self.name} has no derivative.", where=user_source(),
            why="what a Python callback computes cannot be traced.",
            fix="wrap it in a custom_jvp or custom_vjp function, or stop_gradient its arguments")


class HostFunction(Record, eq=False):
    """A flat function of NumPy arrays, its name, and where the program calls it."""

    fun: Callable[..., Sequence[Any]]
    name: str
    where: Source | None = None

    def __call__(self, *arrays: Any) -> Sequence[Any]:
        return self.fun(*arrays)


def check_result(result: Any, aval: ShapedArray, callback: HostFunction) -> Any:
    """What a callback returned as an array of the type it declared; integers become floats."""
    array = np.asarray(result)
    if array.shape != aval.shape or not np.can_cast(array.dtype, aval.dtype, "same_kind"):
        got = f"{array.dtype} of shape {array.shape}"
        raise CallbackError(
            f"the callback {callback.name} returned {got}; it was declared to return "
            f"{aval.dtype} of shape {aval.shape}.", where=callback.where,
            why="the program around it was made for the declared type.",
            fix=f"ShapeDtypeStruct({array.shape}, {array.dtype.name!r}), or "
                f"return x.astype({aval.dtype.name!r})")
    return array.astype(aval.dtype)


class PureCallback(Callback):
    """A Python function without side effects: it may be called any number of times, or not."""

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, callback: Any,
              out_avals: tuple[ShapedArray, ...], vmap_method: str | None) -> Any:
        size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
        outs = tuple(a.with_shape((size, *a.shape)) for a in out_avals)
        if vmap_method is None:
            raise CallbackError(
                "pure_callback under vmap needs to know how to call the function.",
                where=user_source(),
                fix='pure_callback(..., vmap_method="sequential"), or "expand_dims" or '
                    '"broadcast_all" for a function that takes a leading axis')
        if vmap_method == "sequential":
            moved = [x if a is None else move_axis(x, a, 0)
                     for x, a in zip(operands, axes, strict=True)]
            callback = one_by_one(callback, [a is not None for a in axes], out_avals, int(size))
        elif vmap_method == "broadcast_all":
            moved = align_batch(operands, axes)
        else:
            moved = [expand_dims(x, (0,)) if a is None else move_axis(x, a, 0)
                     for x, a in zip(operands, axes, strict=True)]
        results = self.bind(*moved, callback=callback, out_avals=outs, vmap_method=vmap_method)
        return results, [0] * len(results)

    def samples(self) -> Iterator[Sample]:
        aval = ShapedArray((3,), np.dtype(np.float32))
        yield Sample((sample_array(3),), {
            "callback": HostFunction(_double, "double"), "out_avals": (aval,),
            "vmap_method": "sequential"})


def _double(x: Any) -> list[Any]:
    return [x * 2]


def one_by_one(callback: HostFunction, mapped: Sequence[bool], out_avals: Sequence[ShapedArray],
               size: int) -> HostFunction:
    """The callback called for each element along axis 0 of the mapped arguments."""
    def call(*arrays: Any) -> list[Any]:
        rows = [callback(*[a[i] if m else a for a, m in zip(arrays, mapped, strict=True)])
                for i in range(size)]
        return [np.stack([check_result(r[k], a, callback) for r in rows]) if rows else
                np.zeros((0, *a.shape), a.dtype) for k, a in enumerate(out_avals)]
    return replace(callback, fun=call)


class IoCallback(Callback):
    """A Python function with side effects, called once for each time the program gets there."""

    has_effect = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        outs = self.bind(*primals, **params)
        return outs, [None] * len(outs)

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, callback: Any,
              out_avals: tuple[ShapedArray, ...], ordered: bool) -> Any:
        if ordered:
            raise NotDifferentiableError("an ordered io_callback cannot be mapped.",
                                         where=user_source(),
                                         why="vmap does not say in which order elements come.",
                                         fix="ordered=False")
        size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
        moved = [x if a is None else move_axis(x, a, 0)
                 for x, a in zip(operands, axes, strict=True)]
        outs = tuple(a.with_shape((size, *a.shape)) for a in out_avals)
        call = one_by_one(callback, [a is not None for a in axes], out_avals, int(size))
        results = self.bind(*moved, callback=call, out_avals=outs, ordered=ordered)
        return results, [0] * len(results)

    def samples(self) -> Iterator[Sample]:
        return iter(())  # effects: tested with callbacks that record their calls


class DebugCallback(Callback):
    """A Python function that looks at values and returns nothing; transforms keep it in place."""

    has_effect = True

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        self.bind(*primals, **params)
        return [], []

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, callback: Any,
              out_avals: tuple[ShapedArray, ...], ordered: bool) -> Any:
        size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
        moved = [x if a is None else move_axis(x, a, 0)
                 for x, a in zip(operands, axes, strict=True)]
        call = one_by_one(callback, [a is not None for a in axes], (), int(size))
        self.bind(*moved, callback=call, out_avals=(), ordered=ordered)
        return [], []

    def samples(self) -> Iterator[Sample]:
        return iter(())  # effects: tested with callbacks that record their calls


pure_callback_p, io_callback_p, debug_callback_p = PureCallback(), IoCallback(), DebugCallback()
