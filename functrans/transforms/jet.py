"""Taylor mode: the derivatives of all orders along a curve, in one pass.

A value on the curve is x(t); what is known of it are its derivatives at t = 0, x, x', x'', ...
Linear operations act on each, bilinear ones by Leibniz's rule, and of all others the derivative
rule is enough: y = f(x) has y' = jvp(f)(x, x'), where x and x' have one derivative less. So the
rule is run on shorter curves, until values are left. Curves that are parts of one another are known
as such, and what was computed of a part is not computed again.
Source: Griewank and Walther, Evaluating Derivatives (2008), chapter 13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import Any

from functrans._runtime import get_trace
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.custom import CustomCall
from functrans.core.evaluate import eval_jaxpr
from functrans.core.primitive import HigherOrder, Primitive
from functrans.core.source import Source
from functrans.core.trace import Params, Trace, Tracer, is_array, process_in, run_in
from functrans.core.tree import known_leaf
from functrans.primitives.arithmetic import (
    add_p,
    complex_p,
    conj_p,
    div_p,
    imag_p,
    mul,
    mul_p,
    neg_p,
    real_p,
    sub_p,
)
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.cumulative import cumsum_p
from functrans.primitives.differentiable import add_any, add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.fft import fft_p
from functrans.primitives.shape import concatenate_p, pad_p, reshape_p, rev_p, slice_p
from functrans.transforms.jvp import JVPTrace
from functrans.transforms.tangents import instantiate, is_differentiable

__all__ = ["jet_flat"]

# linear in all operands together
LINEAR = frozenset({
    add_any_p, add_p, broadcast_in_dim_p, complex_p, concatenate_p, conj_p, convert_element_type_p,
    cumsum_p, fft_p, imag_p, neg_p, pad_p, real_p, reduce_sum_p, reshape_p, rev_p, slice_p, sub_p,
    transpose_p})
# linear in each of two operands
BILINEAR = frozenset({conv_general_dilated_p, dot_general_p, mul_p})


class Curve:
    """Derivatives x, x', x'', ... of a value, and its parts, each made once."""

    __slots__ = ("parts", "terms")

    def __init__(self, terms: Sequence[Any]) -> None:
        self.terms = tuple(terms)
        self.parts: dict[tuple[int, int], JetTracer] = {}


@known_leaf
class JetTracer(Tracer):
    """A value with its derivatives along the curve: those from `start` to before `stop`.

    >>> from functrans.experimental.jet import JetTracer, jet
    >>> seen = []
    >>> _ = jet(lambda x: seen.append(x) or x, (1.0,), ((1.0,),))
    >>> isinstance(seen[0], JetTracer), seen[0].aval
    (True, ShapedArray(f32[], weak_type=True))
    """

    __slots__ = ("curve", "start", "stop")
    _trace: JetTrace

    def __init__(self, trace: JetTrace, curve: Curve, start: int, stop: int) -> None:
        self._trace = trace
        self.curve, self.start, self.stop = curve, start, stop

    @property
    def terms(self) -> tuple[Any, ...]:
        return self.curve.terms[self.start:self.stop]

    def part(self, first: int, count: int) -> JetTracer:
        """`count` derivatives, from the one of order `first` on."""
        bounds = (self.start + first, self.start + first + count)
        if bounds not in self.curve.parts:
            self.curve.parts[bounds] = JetTracer(self._trace, self.curve, *bounds)
        return self.curve.parts[bounds]

    @property
    def aval(self) -> ShapedArray:
        return get_aval(self.curve.terms[self.start])

    @property
    def concrete(self) -> Any:
        value = self.curve.terms[self.start]
        return value.concrete if isinstance(value, Tracer) else value

    @property
    def inside(self) -> tuple[Any, ...]:
        return self.terms

    @property
    def origin(self) -> Source | None:
        value = self.curve.terms[self.start]
        return value.origin if isinstance(value, Tracer) else None


class JetTrace(Trace):
    """Pushes the derivatives along a curve through every operation.

    >>> from functrans.experimental.jet import JetTrace, jet
    >>> seen = []
    >>> _ = jet(lambda x: seen.append(x) or x, (1.0,), ((1.0,),))
    >>> isinstance(seen[0]._trace, JetTrace)
    True
    """

    __slots__ = ("_known",)
    kind = "jet"

    def __init__(self, parent: Trace | None) -> None:
        super().__init__(parent)
        # results by operation and operands, which are kept: their ids are theirs alone
        self._known: dict[Any, tuple[Any, Any]] = {}

    def is_mine(self, x: Any) -> bool:
        return type(x) is JetTracer and x._trace is self

    def join(self, terms: Sequence[Any]) -> JetTracer:
        """The value with these derivatives."""
        return JetTracer(self, Curve(terms), 0, len(terms))

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        if not any(map(self.is_mine, args)):
            return process_in(self.parent, primitive, args, params)
        if isinstance(primitive, HigherOrder) and primitive.called is not None:
            jaxpr, operands = primitive.called(args, **params)
            results = self.run(eval_jaxpr, jaxpr, (), *operands)
            return results if primitive.multiple_results else results[0]
        # within a rule that runs on shorter curves, others are shorter, too
        count = min(a.stop - a.start for a in args if self.is_mine(a))
        args = tuple([a.part(0, count) if self.is_mine(a) else a for a in args])
        if count == 1:
            outs = process_in(self.parent, primitive, self._orders(args, 0), params)
            return list(map(self._value, outs)) if primitive.multiple_results else self._value(outs)
        key = (primitive, *[(id(a.curve), a.start) if self.is_mine(a) else id(a) for a in args],
               count, *sorted(params.items()))
        if key not in self._known:
            self._known[key] = args, self._push(primitive, args, params, count)
        return self._known[key][1]

    def _push(self, primitive: Primitive, args: tuple[Any, ...], params: Params,
              count: int) -> Any:
        if primitive in LINEAR:
            return self.join([process_in(self.parent, primitive, self._orders(args, n), params)
                              for n in range(count)])
        active = [i for i, a in enumerate(args) if self.is_mine(a)]
        if primitive in BILINEAR or (primitive is div_p and active == [0]):
            def of(orders: Sequence[int]) -> Any:
                chosen = list(args)
                for i, n in zip(active, orders, strict=True):
                    chosen[i] = args[i].terms[n]
                return process_in(self.parent, primitive, tuple(chosen), params)
            if len(active) == 1:
                return self.join([of([n]) for n in range(count)])
            return self.join([run_in(self.parent, _leibniz, of, n) for n in range(count)])
        if primitive is div_p:
            return self.join(run_in(self.parent, _quotient, args, self.is_mine, count))
        return self._by_derivative(
            args, count, lambda rules, moved: rules.process(primitive, tuple(moved), params))

    def _orders(self, args: Sequence[Any], n: int) -> tuple[Any, ...]:
        """The derivatives of order n of operands; constants have none but themselves."""
        return tuple([a.terms[n] if self.is_mine(a) else _zero(a) if n else a for a in args])

    def _value(self, x: Any) -> Any:
        """A value on a curve of which no derivative is known."""
        return self.join([x]) if is_differentiable(get_aval(x)) else x

    def _by_derivative(self, args: Sequence[Any], count: int,
                       apply: Callable[[JVPTrace, Sequence[Any]], Any]) -> Any:
        """The results of an operation whose derivative rule `apply` runs."""
        rules = JVPTrace(self)
        moved = [rules.join(a.part(0, count - 1), a.part(1, count - 1)) if self.is_mine(a) else a
                 for a in args]
        results = apply(rules, moved)
        values, tangents, _ = rules.split(results if isinstance(results, list) else [results])
        rules.alive = False
        outs = [self._extended(v, t, count) for v, t in zip(values, tangents, strict=True)]
        return outs if isinstance(results, list) else outs[0]

    def _extended(self, value: Any, tangent: Any, count: int) -> Any:
        first = value.terms[0] if self.is_mine(value) else value
        if not is_differentiable(get_aval(first)):
            return first
        rest = [] if tangent is None else \
            list(tangent.terms) if self.is_mine(tangent) else [tangent]
        rest += [instantiate(None, first) for _ in range(count - 1 - len(rest))]
        return self.join([first, *rest])

    def process_custom(self, call: CustomCall, args: Sequence[Any]) -> list[Any]:
        if call.closes_over(self.is_mine):
            return list(self.run(call.fun, *args))
        active = [a for a in args if self.is_mine(a)]
        if not active:
            return call.apply(self.parent, args)
        count = min(a.stop - a.start for a in active)
        if count == 1:
            return list(map(self._value, call.apply(self.parent, self._orders(args, 0))))
        outs: list[Any] = self._by_derivative(
            args, count, lambda rules, moved: list(call.differentiate(
                rules, *rules.split(moved)[:2])))
        return outs


def _zero(constant: Any) -> Any:
    """The derivative of a constant operand; of a Python number one of its kind."""
    if not is_array(constant):
        return type(constant)(0)
    return instantiate(None, constant) if is_differentiable(get_aval(constant)) else constant


def _leibniz(of: Callable[[Sequence[int]], Any], n: int) -> Any:
    """The derivative of order n of a product, by the products of orders that sum to n."""
    total = None
    for i in range(n + 1):
        term = of([i, n - i])
        if (times := comb(n, i)) > 1:
            term = mul(term, times)
        total = term if total is None else add_any(total, term)
    return total


def _quotient(args: Sequence[Any], is_mine: Callable[[Any], bool], count: int) -> list[Any]:
    """Derivatives of z = x / y, one after the other: those of z * y are those of x."""
    x, y = args
    outs: list[Any] = []
    for n in range(count):
        numerator = x.terms[n] if is_mine(x) else x if n == 0 else None
        for i in range(n):
            term = mul(mul(outs[i], y.terms[n - i]), -comb(n, i))
            numerator = term if numerator is None else numerator + term
        outs.append(div_p.bind(numerator, y.terms[0]))
    return outs


def jet_flat(fun: Callable[..., Sequence[Any]], primals: Sequence[Any],
             series: Sequence[Sequence[Any] | None]) -> tuple[list[Any], list[Any]]:
    """Outputs of a flat function, and their derivatives; None for inputs and outputs without."""
    trace = JetTrace(get_trace())
    try:
        args = [p if s is None else trace.join([p, *s])
                for p, s in zip(primals, series, strict=True)]
        outs = trace.run(fun, *args)
        values = [o.terms[0] if trace.is_mine(o) else o for o in outs]
        terms = [list(o.terms[1:]) if trace.is_mine(o) else None for o in outs]
    finally:
        trace.alive = False
    return values, terms
