"""Reverse mode: linearize (primal values and a linear map), then transpose the map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from functrans._runtime import get_trace, set_trace
from functrans.core.avals import get_aval
from functrans.core.cells import RefCell, TokenCell, run_scoped
from functrans.core.errors import LeakedTracerError
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import ClosedJaxpr, Jaxpr
from functrans.core.primitive import HigherOrder, Primitive
from functrans.core.prune import prune_jaxpr
from functrans.core.record import Record
from functrans.core.staging import StageTracer, stage
from functrans.core.trace import Params, Trace, process_in
from functrans.primitives.base import zeros
from functrans.primitives.convert import convert_element_type
from functrans.transforms.cells import end_tangents
from functrans.transforms.closed import stage_closed
from functrans.transforms.jvp import JVPTrace, JVPTracer
from functrans.transforms.linear import LinearTrace, LinearTracer
from functrans.transforms.tangents import instantiate, instantiate_aval, tangent_aval

__all__ = ["LinearMap", "Linearized", "apply_rule", "end_states", "linearize_flat",
           "linearize_jaxpr"]


class LinearizeTrace(JVPTrace):
    """Forward mode whose tangents are recorded instead of computed."""

    __slots__ = ("linear", "tokens")
    kind = "grad, vjp or linearize"
    has_tokens = True

    def __init__(self, parent: Trace | None, linear: LinearTrace | None = None) -> None:
        super().__init__(parent)
        self.linear = LinearTrace(parent) if linear is None else linear
        self.rules = self.linear
        self.tokens: dict[TokenCell, tuple[LinearTracer, Any]] | None = None

    def keeps(self, trace: Trace) -> bool:
        return trace is self or trace is self.linear  # rules have tangents of that

    def token(self, cell: TokenCell) -> Any:
        """A zero whose tangent is a further input of the derivative."""
        if self.tokens is None:
            self.tokens = {}
        if cell not in self.tokens:
            aval = cell.aval
            tangent = self.linear.new(aval)
            self.tokens[cell] = tangent, self.join(np.zeros(aval.shape, aval.dtype), tangent)
        return self.tokens[cell][1]

    def set_token(self, cell: TokenCell, value: Any) -> None:
        self.token(cell)
        assert self.tokens is not None
        self.tokens[cell] = self.tokens[cell][0], value

    def states(self) -> States:
        """The cells that backward rules write into."""
        if self.tokens is None:
            return NO_STATES
        inputs, values = zip(*self.tokens.values(), strict=True)
        outs = [i if o is None else o
                for i, o in zip(inputs, self.split(values)[1], strict=True)]
        return States(tuple([t.of for t in self.tokens]), list(inputs), outs)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        if isinstance(primitive, HigherOrder):
            if any(map(self.linear.is_mine, self.split(args)[0])):
                return self.split_body(primitive, args, params)
            return super().process(primitive, args, params)
        # as in the class above, without the calls in between: 2 us of 8 an operation
        primals = list(args)
        tangents: list[Any] = [None] * len(primals)
        active = False
        for i, a in enumerate(args):
            if type(a) is JVPTracer and a._trace is self:
                primals[i], tangents[i], active = a.primal, a.tangent, True
        if not active:
            return process_in(self.rules, primitive, args, params)
        previous = set_trace(self.linear)
        try:
            outs, results = primitive.jvp(primals, tangents, **params)
        finally:
            set_trace(previous)
        if primitive.multiple_results:
            return list(map(self.join, outs, results))
        return outs if results is None else JVPTracer(self, outs, results)

    def split_body(self, primitive: HigherOrder, args: tuple[Any, ...],
                   params: Params) -> Any:
        """A body that a derivative rule runs on primals and tangents alike, as a loop's `jvp` does.

        What depends on tangents is linear in them: it is the body's own derivative there. The
        rest must not get onto the tape.
        """
        if primitive.has_rules:  # a linear function: its own derivative, whatever its rule says
            jaxpr, operands = primitive.called(args, **params)
            return self.run(eval_jaxpr, jaxpr, (), *operands)
        primals, closure, active = self.split(args)
        values = [instantiate_aval(None, a.aval) if self.linear.is_mine(a) else a for a in primals]
        tangents = [a if self.linear.is_mine(a) else None for a in primals]
        previous = set_trace(self.rules)
        try:
            outs, results = self.of_list(primitive, values, tangents, params)
            if active:  # what the rule closes over has tangents, which change its values only
                closure = [None if self.linear.is_mine(p) else t
                           for p, t in zip(primals, closure, strict=True)]
                outs = list(map(self.join, *self.of_list(primitive, values, closure, params)))
        finally:
            set_trace(previous)
        found = [o if t is None else t for o, t in zip(outs, results, strict=True)]
        return found if primitive.multiple_results else found[0]

    def of_list(self, primitive: HigherOrder, primals: list[Any], tangents: list[Any],
                params: Params) -> tuple[Sequence[Any], Sequence[Any]]:
        """Results and their tangents, as lists where there is one of each, too."""
        outs, results = self.higher_order(primitive, primals, tangents, params)
        return (outs, results) if primitive.multiple_results else ([outs], [results])

    def higher_order(self, primitive: HigherOrder, primals: list[Any], tangents: list[Any],
                     params: Params) -> Any:
        return primitive.linearize(primals, tangents, linearize_jaxpr=linearize_jaxpr, **params)


class States(Record):
    """Cells that backward rules write into: what is in them are cotangents of tokens.

    `inputs` are the tokens before the first call, `outs` those after the last one.
    """

    cells: tuple[RefCell, ...]
    inputs: list[LinearTracer]
    outs: list[Any]

    def begin(self) -> list[Any]:
        """What is in the cells, as cotangents; None for those that are frozen."""
        values = map(_left_in, self.cells)
        return [None if v is None else convert_element_type(v, t.aval.dtype)
                for v, t in zip(values, self.inputs, strict=True)]

    def ended(self, outs: Sequence[Any], tokens: Sequence[Any]) -> list[Any]:
        """The tangents of results, after which the cells that were made meanwhile are no more."""
        left = [(t, _left_in(c)) for c, t in zip(self.cells, tokens, strict=True)
                if c.home is not None and not c.home.alive]
        return end_tangents(outs, *zip(*[(t, x) for t, x in left if x is not None], strict=True)) \
            if any(x is not None for _, x in left) else list(outs)


NO_STATES: Final = States((), [], [])


def _left_in(cell: RefCell) -> Any:
    """What is in a cell, without the tangents of a derivative that has ended."""
    value = cell.value
    while isinstance(value, JVPTracer) and not value._trace.alive:
        value = value.primal
    return value


def end_states(cells: Sequence[RefCell], cotangents: Sequence[Any]) -> None:
    """What is in cells after the backward part, but for those that are frozen."""
    for cell, ct in zip(cells, cotangents, strict=True):
        if ct is None or cell.shown is None:
            continue
        try:
            cell.value = convert_element_type(ct, cell.type.dtype)
        except LeakedTracerError:
            if cell.home is None or cell.home.alive:
                raise
            # each lane of a mapped backward part ends with its own: nobody is to read it


class LinearMap(Record):
    """The derivative of a function at a point: from input tangents to output tangents.

    `inputs[i]` is None where input i was not differentiated, `outs[i]` None where output i does
    not depend on the others.
    """

    trace: LinearTrace
    inputs: list[LinearTracer | None]
    outs: list[Any]
    states: States = NO_STATES

    def forwards(self, tangents: Sequence[Any]) -> list[Any]:
        """Output tangents (None for zero) of the tangents of the differentiated inputs."""
        inputs, tokens = [x for x in self.inputs if x is not None], self.states.inputs
        if not tokens:
            return self.trace.forwards(inputs, tangents, self.outs)
        of_tokens = [zeros(t.aval) for t in tokens]
        outs = self.trace.forwards([*inputs, *tokens], [*tangents, *of_tokens],
                                   [*self.outs, *self.states.outs])
        return self.states.ended(outs[:len(self.outs)], outs[len(self.outs):])

    def backwards(self, cotangents: Sequence[Any]) -> list[Any]:
        """Cotangents of the differentiated inputs; None for zero."""
        inputs = [x for x in self.inputs if x is not None]
        states = self.states
        if not states.cells:
            return self.trace.backwards(inputs, self.outs, cotangents)
        found = self.trace.backwards([*inputs, *states.inputs], [*self.outs, *states.outs],
                                     [*cotangents, *states.begin()])
        end_states(states.cells, found[len(inputs):])
        return found[:len(inputs)]

    def stage(self, name: str) -> ClosedJaxpr:
        """The map as a jaxpr from tangents to the outputs that are not None; consts: residuals."""
        avals = [x.aval for x in self.inputs if x is not None]
        return stage(lambda *ts: [t for t in self.forwards(ts) if t is not None], avals, name=name)


def linearize_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Any],
                   active: Sequence[bool]) -> tuple[list[Any], LinearMap]:
    """Outputs of a flat function and its derivative in the `active` inputs."""
    trace = LinearizeTrace(get_trace())
    try:
        inputs = [trace.linear.new(get_aval(p).strong()) if a else None
                  for p, a in zip(primals, active, strict=True)]
        args = [trace.join(p, t) for p, t in zip(primals, inputs, strict=True)]
        outs, tangents, _ = trace.split(run_scoped(trace, fun, args))
    finally:
        trace.alive = False
        trace.linear.alive = False
    return outs, LinearMap(trace.linear, inputs, tangents, trace.states())


class Linearized(Record):
    """A jaxpr split into its primal and its linear part.

    `primal`: inputs -> outputs and then the saved residuals. `linear`: residuals and the tangents
    of the active inputs -> the tangents of the outputs with `nonzero`. Residual i is input
    `forwarded[i]` of the primal where that is not None, else the next saved one.
    """

    primal: Jaxpr
    linear: Jaxpr
    nonzero: tuple[bool, ...]
    forwarded: tuple[int | None, ...]

    @property
    def num_saved(self) -> int:
        return sum(f is None for f in self.forwarded)

    def residuals(self, inputs: Sequence[Any], saved: Sequence[Any]) -> list[Any]:
        """All residuals, from the primal's inputs and what it saved."""
        rest = iter(saved)
        return [next(rest) if f is None else inputs[f] for f in self.forwarded]


def apply_rule(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """Run a derivative rule on primals and linear tangents, in a current linear trace."""
    trace = get_trace()
    if not any(eqn.primitive.higher_order for eqn in jaxpr.eqns) \
            or not isinstance(trace, LinearTrace):
        return eval_jaxpr(jaxpr, (), *args)
    return LinearizeTrace(trace.parent, trace).run(eval_jaxpr, jaxpr, (), *args)


_cache: WeakKeyDictionary[Jaxpr, dict[Any, Linearized]] = WeakKeyDictionary()


def linearize_jaxpr(jaxpr: Jaxpr, active: Sequence[bool],
                    force: Sequence[bool] | None = None) -> Linearized:
    """Split `jaxpr`, differentiated in the `active` inputs, into a primal and a linear jaxpr.

    `force[i]` gives output i a tangent even where it is zero.
    """
    key = (tuple(active), None if force is None else tuple(force))
    known = _cache.setdefault(jaxpr, {})
    if key not in known:
        known[key] = _linearize_jaxpr(jaxpr, *key)
    return known[key]


def _linearize_jaxpr(jaxpr: Jaxpr, active: tuple[bool, ...],
                     force: tuple[bool, ...] | None) -> Linearized:
    linear: list[Jaxpr] = []
    nonzero: list[bool] = []
    forwarded: list[int | None] = []

    def fun(*args: Any) -> list[Any]:
        outs, derivative = linearize_flat(lambda *xs: eval_jaxpr(jaxpr, (), *xs), args, active)
        if force is not None:
            tangents = [instantiate(t, o) if f else t
                        for t, o, f in zip(derivative.outs, outs, force, strict=True)]
            derivative = LinearMap(derivative.trace, derivative.inputs, tangents)
        nonzero.extend(t is not None for t in derivative.outs)
        closed = _without_unused(derivative.stage(f"linear_{jaxpr.name}"))
        linear.append(closed.jaxpr.hoist_consts())
        positions = {id(a._var): i for i, a in enumerate(args)}
        forwarded.extend(positions.get(id(c._var)) if isinstance(c, StageTracer) else None
                         for c in closed.consts)
        return outs + [c for c, f in zip(closed.consts, forwarded, strict=True) if f is None]

    primal = stage_closed(fun, jaxpr.in_avals, name=jaxpr.name)
    return Linearized(primal, linear[0], tuple(nonzero), tuple(forwarded))


def _without_unused(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Without residuals that only derivatives of unused results need: they would be saved."""
    jaxpr = prune_jaxpr(closed.jaxpr)
    used = {a for eqn in jaxpr.eqns for a in eqn.invars} | set(jaxpr.outvars)
    kept = [(v, c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True) if v in used]
    constvars = tuple([v for v, _ in kept])
    return ClosedJaxpr(Jaxpr(constvars, jaxpr.invars, jaxpr.eqns, jaxpr.outvars, name=jaxpr.name),
                       tuple([c for _, c in kept]))


def tangent_avals(jaxpr: Jaxpr, active: Sequence[bool]) -> list[Any]:
    """The types of the tangents of the active inputs."""
    return [tangent_aval(a) for a, is_active in zip(jaxpr.in_avals, active, strict=True)
            if is_active]
