"""The interpreter behind `vmap`: every value may carry one mapped axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from functrans._runtime import get_trace, set_trace
from functrans.core import config
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.axes import MappedAxis, axis_names
from functrans.core.cells import run_scoped
from functrans.core.compiling import compiling
from functrans.core.custom import CustomCall
from functrans.core.dims import Size
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Jaxpr, jaxprs_in
from functrans.core.primitive import HigherOrder, Primitive
from functrans.core.source import Source
from functrans.core.trace import Params, Trace, Tracer, process_in
from functrans.core.tree import known_leaf
from functrans.primitives.broadcast import broadcast_batch, move_axis
from functrans.transforms.closed import stage_closed

__all__ = ["BatchTrace", "BatchTracer", "batch_flat", "batch_jaxpr", "front"]


@known_leaf
class BatchTracer(Tracer):
    """A value with a mapped axis, seen without it."""

    __slots__ = ("_aval", "axis", "value")
    _trace: BatchTrace

    def __init__(self, trace: BatchTrace, value: Any, axis: int) -> None:
        self._trace = trace
        self.value = value
        self.axis = axis
        self._aval: ShapedArray | None = None

    @property
    def aval(self) -> ShapedArray:
        if self._aval is None:
            whole = get_aval(self.value)
            shape = whole.shape[:self.axis] + whole.shape[self.axis + 1:]
            self._aval = whole.with_shape(shape)
        return self._aval

    @property
    def inside(self) -> tuple[Any, ...]:
        return (self.value,)

    @property
    def origin(self) -> Source | None:
        return self.value.origin if isinstance(self.value, Tracer) else None


class BatchTrace(Trace):
    """Runs each primitive's batching rule on the values with their mapped axes."""

    __slots__ = ("axis", "tag")
    kind = "vmap"
    passes_others_on = True

    def __init__(self, parent: Trace | None, axis: MappedAxis, tag: object = None) -> None:
        super().__init__(parent)
        self.axis = axis
        self.tag = self if tag is None else tag

    def over(self, parent: Trace | None) -> BatchTrace:
        """The same mapping over another parent: for rules that are run elsewhere, as in staging."""
        return BatchTrace(parent, self.axis, self.tag)

    def split(self, args: Sequence[Any]) -> tuple[list[Any], list[int | None], bool]:
        """Whole values, their mapped axes (None where there is none), and whether there is any."""
        values = list(args)
        axes: list[int | None] = [None] * len(values)
        batched = False
        for i, a in enumerate(values):
            if type(a) is BatchTracer and a._trace.tag is self.tag:
                values[i] = a.value
                axes[i] = a.axis
                batched = True
        return values, axes, batched

    def join(self, value: Any, axis: int | None) -> Any:
        return value if axis is None else BatchTracer(self, value, axis)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        values, axes, batched = self.split(args)
        extra: dict[str, Any]
        if primitive.collective and self.axis.name is not None \
                and self.axis.name in axis_names(params["axis_name"]):
            rule, extra = primitive.batch_collective, {"axis": self.axis}
        elif not (batched or primitive.always_mapped or self.is_named_in(primitive, params)):
            return process_in(self.parent, primitive, args, params)
        elif isinstance(primitive, HigherOrder):
            rule, extra = partial(primitive.batch_over, self.axis, batch_jaxpr), {}
        else:
            rule, extra = primitive.batch, {}
        previous = set_trace(self.parent)
        try:
            outs, out_axes = rule(values, axes, **extra, **params)
        finally:
            set_trace(previous)
        if primitive.multiple_results:
            return [o if a is None else BatchTracer(self, o, a)
                    for o, a in zip(outs, out_axes, strict=True)]
        return outs if out_axes is None else BatchTracer(self, outs, out_axes)

    def is_named_in(self, primitive: Primitive, params: Params) -> bool:
        """Whether a body refers to the axis, which matters even where no operand is mapped."""
        return (self.axis.name is not None and primitive.higher_order
                and any(self.axis.name in jaxpr.axis_names for jaxpr in jaxprs_in(params)))

    def process_custom(self, call: CustomCall, args: Sequence[Any]) -> list[Any]:
        values, axes, batched = self.split(args)
        if not batched and not call.closes_over(
                lambda x: type(x) is BatchTracer and x._trace.tag is self.tag):
            return call.apply(self.parent, values)
        return call.batch(self, values, axes)


def batch_flat(fun: Callable[..., Sequence[Any]], axis: MappedAxis, values: Sequence[Any],
               axes: Sequence[int | None]) -> tuple[list[Any], list[int | None]]:
    """Outputs of a flat function mapped over `axes` of `values`, and where they are mapped."""
    trace = BatchTrace(get_trace(), axis)
    try:
        args = [trace.join(v, a) for v, a in zip(values, axes, strict=True)]
        with axis.bound():
            outs, out_axes, _ = trace.split(run_scoped(trace, fun, args))
    finally:
        trace.alive = False
    return outs, out_axes


_Batched = tuple[Jaxpr, tuple[bool, ...]]
_cache: WeakKeyDictionary[Jaxpr, dict[Any, _Batched]] = WeakKeyDictionary()


def batch_jaxpr(jaxpr: Jaxpr, axis: MappedAxis, batched: Sequence[bool],
                force: Sequence[bool] | bool = False) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The jaxpr mapped over axis 0 of the inputs that are `batched`.

    Outputs are mapped at axis 0 too, where they depend on a mapped input or `force` asks for it;
    the second result says which are.
    """
    wanted = (force,) * len(jaxpr.outvars) if isinstance(force, bool) else tuple(force)
    key = (axis, tuple(batched), wanted, compiling(), bool(config.current().checks))
    known = _cache.setdefault(jaxpr, {})
    if key not in known:
        known[key] = _batch_jaxpr(jaxpr, *key[:3])
    return known[key]


def _batch_jaxpr(jaxpr: Jaxpr, axis: MappedAxis, batched: tuple[bool, ...],
                 force: tuple[bool, ...]) -> tuple[Jaxpr, tuple[bool, ...]]:
    out_batched: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        outs, axes = batch_flat(lambda *xs: eval_jaxpr(jaxpr, (), *xs), axis, args,
                                [0 if b else None for b in batched])
        results = []
        for out, at, f in zip(outs, axes, force, strict=True):
            out_batched.append(at is not None or f)
            if at is not None:
                out = move_axis(out, at, 0)
            elif f:
                out = broadcast_batch(out, axis.size)
            results.append(out)
        return results

    avals = [with_axis(a, axis.size) if b else a
             for a, b in zip(jaxpr.in_avals, batched, strict=True)]
    return stage_closed(fun, avals, name=jaxpr.name), tuple(out_batched)


def with_axis(aval: ShapedArray, size: Size) -> ShapedArray:
    """The type with a leading axis of `size`."""
    return aval.with_shape((size, *aval.shape))


def front(operands: Sequence[Any], axes: Sequence[int | None]) -> list[Any]:
    """Operands with their mapped axis, where there is one, in front."""
    return [x if a is None else move_axis(x, a, 0) for x, a in zip(operands, axes, strict=True)]
