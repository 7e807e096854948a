"""Forward mode: `jvp` pushes a tangent along with every primal value.

A tangent of None is a symbolic zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from functrans._runtime import get_trace, set_trace
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.cells import run_scoped
from functrans.core.custom import CustomCall
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import HigherOrder, Primitive
from functrans.core.source import Source
from functrans.core.trace import Params, Trace, Tracer, process_in
from functrans.core.tree import known_leaf, tree_map
from functrans.transforms.closed import stage_closed
from functrans.transforms.tangents import instantiate, tangent_aval

__all__ = ["JVPTrace", "JVPTracer", "PrimalTrace", "jvp_flat", "jvp_jaxpr", "strip_tangents"]


@known_leaf
class JVPTracer(Tracer):
    """A primal value with its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self.primal = primal
        self.tangent = tangent

    @property
    def aval(self) -> ShapedArray:
        return get_aval(self.primal)

    @property
    def concrete(self) -> Any:
        return self.primal.concrete if isinstance(self.primal, Tracer) else self.primal

    @property
    def inside(self) -> tuple[Any, ...]:
        return (self.primal, self.tangent)

    @property
    def origin(self) -> Source | None:
        return self.primal.origin if isinstance(self.primal, Tracer) else None


class JVPTrace(Trace):
    """Runs each primitive's derivative rule, with `rules` as the current trace."""

    __slots__ = ("rules",)
    kind = "jvp or grad"
    passes_others_on = True

    def __init__(self, parent: Trace | None) -> None:
        super().__init__(parent)
        self.rules = parent

    def split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any], bool]:
        """Primals, tangents (None for zero), and whether there is any tangent."""
        primals = list(args)
        tangents: list[Any] = [None] * len(primals)
        active = False
        for i, a in enumerate(primals):
            if type(a) is JVPTracer and a._trace is self:
                primals[i] = a.primal
                tangents[i] = a.tangent
                active = True
        return primals, tangents, active

    def join(self, primal: Any, tangent: Any) -> Any:
        return primal if tangent is None else JVPTracer(self, primal, tangent)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        primals, tangents, active = self.split(args)
        if not active:
            return process_in(self.rules, primitive, args, params)
        previous = set_trace(self.rules)
        try:
            if isinstance(primitive, HigherOrder):
                outs, out_tangents = self.higher_order(primitive, primals, tangents, params)
            else:
                outs, out_tangents = primitive.jvp(primals, tangents, **params)
        finally:
            set_trace(previous)
        if primitive.multiple_results:
            return [p if t is None else JVPTracer(self, p, t)
                    for p, t in zip(outs, out_tangents, strict=True)]
        return outs if out_tangents is None else JVPTracer(self, outs, out_tangents)

    def higher_order(self, primitive: HigherOrder, primals: list[Any], tangents: list[Any],
                     params: Params) -> Any:
        return primitive.jvp(primals, tangents, jvp_jaxpr=jvp_jaxpr, **params)

    def process_custom(self, call: CustomCall, args: Sequence[Any]) -> list[Any]:
        primals, tangents, active = self.split(args)
        if not active:
            if call.closes_over(lambda x: type(x) is JVPTracer and x._trace is self):
                return list(self.run(call.fun, *primals))
            return call.apply(self.rules, primals)
        return call.differentiate(self, primals, tangents)


class PrimalTrace(Trace):
    """Runs operations on the primals of another trace's tracers, also once that trace is over.

    A backward rule runs after the function whose derivative it is; what it closes over there is a
    constant of its operations.
    """

    __slots__ = ("of",)
    kind = "a backward rule"

    def __init__(self, parent: Trace | None, of: JVPTrace) -> None:
        super().__init__(parent)
        self.of = of

    def is_mine(self, x: Any) -> bool:
        return type(x) is JVPTracer and x._trace is self.of

    def primals(self, args: Sequence[Any]) -> list[Any]:
        return [a.primal if self.is_mine(a) else a for a in args]

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        return process_in(self.parent, primitive, tuple(self.primals(args)), params)

    def process_custom(self, call: CustomCall, args: Sequence[Any]) -> list[Any]:
        if call.closes_over(self.is_mine):
            return super().process_custom(call, args)
        return call.apply(self.parent, self.primals(args))

    def run(self, fun: Callable[..., Any], *args: Any) -> Any:
        was, self.of.alive = self.of.alive, True  # bodies that are staged take its tracers, too
        try:
            return self.primals(super().run(fun, *args))
        finally:
            self.of.alive = was


def jvp_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Any],
             tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Outputs and output tangents of a flat function; None stands for a zero tangent."""
    trace = JVPTrace(get_trace())
    try:
        args = [trace.join(p, t) for p, t in zip(primals, tangents, strict=True)]
        outs, out_tangents, _ = trace.split(run_scoped(trace, fun, args))
    finally:
        trace.alive = False
    return outs, out_tangents


def strip_tangents(aux: Any) -> Any:
    """Auxiliary outputs as they leave the transform: without the tangents that end with it."""
    return tree_map(lambda x: x.primal if type(x) is JVPTracer and not x._trace.alive else x, aux)


_cache: WeakKeyDictionary[Jaxpr, dict[Any, tuple[Jaxpr, tuple[bool, ...]]]] = WeakKeyDictionary()


def jvp_jaxpr(jaxpr: Jaxpr, nonzero: Sequence[bool],
              force: Sequence[bool] | None = None) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The jaxpr that maps primals and nonzero tangents to outputs and their nonzero tangents.

    `force[i]` makes output i's tangent an array even where it is zero. Also returned: which output
    tangents there are.
    """
    key = (tuple(nonzero), None if force is None else tuple(force))
    known = _cache.setdefault(jaxpr, {})
    if key not in known:
        known[key] = _jvp_jaxpr(jaxpr, *key)
    return known[key]


def _jvp_jaxpr(jaxpr: Jaxpr, nonzero: tuple[bool, ...],
               force: tuple[bool, ...] | None) -> tuple[Jaxpr, tuple[bool, ...]]:
    n = len(jaxpr.invars)
    out_nonzero: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        given = iter(args[n:])
        tangents = [next(given) if nz else None for nz in nonzero]
        outs, out_tangents = jvp_flat(lambda *xs: eval_jaxpr(jaxpr, (), *xs), args[:n], tangents)
        if force is not None:
            out_tangents = [instantiate(t, o) if f and t is None else t
                            for t, o, f in zip(out_tangents, outs, force, strict=True)]
        out_nonzero.extend(t is not None for t in out_tangents)
        return outs + [t for t in out_tangents if t is not None]

    tangent_avals = [tangent_aval(a) for a, nz in zip(jaxpr.in_avals, nonzero, strict=True) if nz]
    staged = stage_closed(fun, [*jaxpr.in_avals, *tangent_avals], name=f"jvp_{jaxpr.name}")
    return staged, tuple(out_nonzero)
