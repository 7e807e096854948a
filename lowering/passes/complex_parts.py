"""Programs without complex arithmetic: each complex value is a pair of real ones.

Complex arrays remain where a program meets others: as inputs, outputs, constants, and operands and
results of operations without a rule here. `real` and `imag` take them apart, `complex` puts them
together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.primitive import Primitive
from functrans.core.prune import prune_jaxpr
from functrans.lowering.passes import complex_math as m
from functrans.lowering.passes.complex_math import Pair
from functrans.lowering.passes.complex_ordering import EXTREMA, scattered_product, sorted_pairs
from functrans.lowering.passes.inline import inlined
from functrans.primitives import arithmetic as a
from functrans.primitives import compare as c
from functrans.primitives.barrier import optimization_barrier
from functrans.primitives.base import full, full_p, zeros
from functrans.primitives.broadcast import (
    broadcast_in_dim_p,
    reduce_sum_p,
    transpose,
    transpose_p,
)
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import convert_element_type
from functrans.primitives.cumulative import cumsum_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.scatter import scatter_p
from functrans.primitives.shape import (
    concatenate,
    concatenate_p,
    pad_p,
    reshape,
    reshape_p,
    rev,
    rev_p,
    slice_in_dim,
    slice_p,
)
from functrans.primitives.window import reduce_window_sum_p, window_put_p, window_take_p

__all__ = ["split_complex"]


def split_complex(jaxpr: Jaxpr) -> Jaxpr:
    """The program in real numbers; itself where nothing in it is complex."""
    return _Splitter(jaxpr).split() if _has_complex(jaxpr) else jaxpr


def _is_complex(x: Atom) -> bool:
    return dtypes.kind(x.aval.dtype) == "c"


def _has_complex(jaxpr: Jaxpr) -> bool:
    return any(map(_is_complex, jaxpr.invars)) or any(map(_touches_complex, jaxpr.eqns))


def _touches_complex(eqn: Equation) -> bool:
    return any(map(_is_complex, (*eqn.invars, *eqn.outvars))) or any(map(_has_complex,
                                                                         subjaxprs(eqn)))


def _real_aval(aval: ShapedArray) -> ShapedArray:
    return ShapedArray(aval.shape, dtypes.real_dtype(aval.dtype))


# --------------------------------------------------------------------------- the program


class _Splitter:
    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self.eqns: list[Equation] = []
        self.names: dict[Var, Atom] = {}  # of real values
        self.whole: dict[Var, Var] = {}  # complex values that are in memory
        self.parts: dict[Var, tuple[Atom, Atom]] = {}

    def split(self, flat: bool = False) -> Jaxpr:
        """`flat`: inputs and outputs are pairs too, as in the bodies of loops."""
        invars: list[Var] = []
        for v in self.jaxpr.invars:
            if _is_complex(v) and flat:
                pair = Var(_real_aval(v.aval)), Var(_real_aval(v.aval))
                self.parts[v] = pair
                invars += pair
                continue
            if _is_complex(v):
                self.whole[v] = v
            else:
                self.names[v] = v
            invars.append(v)
        for eqn in self.jaxpr.eqns:
            self.equation(eqn)
        outvars: list[Atom] = []
        for x in self.jaxpr.outvars:
            outvars += self.atoms(x) if flat else [self.value(x)]
        return prune_jaxpr(Jaxpr((), tuple(invars), tuple(self.eqns), tuple(outvars),
                                 name=self.jaxpr.name))

    def equation(self, eqn: Equation) -> None:
        name = eqn.primitive.name
        if not _touches_complex(eqn):
            self.keep(eqn, {})
        elif name in BODIES:
            self.control_flow(eqn)
        elif name in RULES:
            self.rule(eqn, RULES[name])
        else:
            self.keep(eqn, {v: Var(v.aval) for v in eqn.outvars if _is_complex(v)})

    def keep(self, eqn: Equation, complex_outs: dict[Var, Var]) -> None:
        outs = tuple([complex_outs.get(v) or Var(v.aval) for v in eqn.outvars])
        self.eqns.append(eqn.replace(invars=tuple(map(self.value, eqn.invars)), outvars=outs))
        for v, out in zip(eqn.outvars, outs, strict=True):
            if v in complex_outs:
                self.whole[v] = out
            else:
                self.names[v] = out

    def value(self, x: Atom) -> Atom:
        """A value as it is in the given program."""
        if isinstance(x, Literal):
            return x
        if not _is_complex(x):
            return self.names[x]
        if x not in self.whole:
            self.whole[x] = self.emit(a.complex_p, *self.parts[x])
        return self.whole[x]

    def pair(self, x: Atom) -> tuple[Atom, Atom]:
        if isinstance(x, Literal):
            aval = _real_aval(x.aval)
            return Literal(aval.dtype.type(x.value.real), aval), \
                Literal(aval.dtype.type(x.value.imag), aval)
        if x not in self.parts:
            whole = self.whole[x]
            self.parts[x] = self.emit(a.real_p, whole), self.emit(a.imag_p, whole)
        return self.parts[x]

    def atoms(self, x: Atom) -> list[Atom]:
        return list(self.pair(x)) if _is_complex(x) else [self.value(x)]

    def emit(self, primitive: Primitive, *operands: Atom) -> Var:
        out = Var(primitive.type(*[x.aval for x in operands]))
        self.eqns.append(Equation(primitive, operands, (out,), {}, self.source))
        return out

    @property
    def source(self) -> Any:
        return self.eqns[-1].source if self.eqns else None

    def define(self, eqn: Equation, outs: Sequence[Atom]) -> None:
        """Enter the parts of the results of an equation."""
        rest = list(outs)
        for v in eqn.outvars:
            if _is_complex(v):
                self.parts[v] = rest.pop(0), rest.pop(0)
            else:
                self.names[v] = rest.pop(0)

    def rule(self, eqn: Equation, rule: Callable[..., Any]) -> None:
        """The equations of a rule's function on the parts of the operands."""
        def function(*flat: Any) -> list[Any]:
            values = iter(flat)
            args = [Pair(next(values), next(values)) if _is_complex(x) else next(values)
                    for x in eqn.invars]
            out = rule(*args, **eqn.params)
            outs = out if eqn.primitive.multiple_results else [out]
            return [x for o in outs for x in (o if isinstance(o, Pair) else (o,))]

        flat = [x for operand in eqn.invars for x in self.atoms(operand)]
        outs = inlined(function, flat, self.eqns, eqn.primitive.name, eqn.source)
        self.define(eqn, [self.shaped(x, v.aval.shape)
                          for x, v in zip(outs, self.targets(eqn), strict=True)])

    def targets(self, eqn: Equation) -> list[Var]:
        return [v for v in eqn.outvars for _ in range(2 if _is_complex(v) else 1)]

    def shaped(self, x: Atom, shape: Any) -> Atom:
        """A scalar repeated: parts have the shape of their whole."""
        if x.aval.shape == shape:
            return x
        out = Var(ShapedArray(shape, x.aval.dtype))
        self.eqns.append(Equation(broadcast_in_dim_p, (x,), (out,),
                                  {"shape": shape, "broadcast_dimensions": ()}, self.source))
        return out

    def control_flow(self, eqn: Equation) -> None:
        params = BODIES[eqn.primitive.name](eqn)
        ins = tuple([x for v in eqn.invars for x in self.atoms(v)])
        outs = tuple([Var(_real_aval(v.aval)) if _is_complex(v) else Var(v.aval)
                      for v in self.targets(eqn)])
        self.eqns.append(eqn.replace(invars=ins, outvars=outs, params=params))
        self.define(eqn, outs)


# --------------------------------------------------------------------------- loops and branches


def _flat(jaxpr: Jaxpr) -> Jaxpr:
    return _Splitter(jaxpr).split(flat=True)


def _count(atoms: Sequence[Atom]) -> int:
    return len(atoms) + sum(map(_is_complex, atoms))


def _scan(eqn: Equation) -> dict[str, Any]:
    p = eqn.params
    consts, carry = p["num_consts"], p["num_carry"]
    return {**p, "jaxpr": _flat(p["jaxpr"]), "num_consts": _count(eqn.invars[:consts]),
            "num_carry": _count(eqn.invars[consts:consts + carry])}


def _while(eqn: Equation) -> dict[str, Any]:
    p = eqn.params
    test, body = p["cond_nconsts"], p["body_nconsts"]
    return {**p, "cond_jaxpr": _flat(p["cond_jaxpr"]), "body_jaxpr": _flat(p["body_jaxpr"]),
            "cond_nconsts": _count(eqn.invars[:test]),
            "body_nconsts": _count(eqn.invars[test:test + body])}


def _cond(eqn: Equation) -> dict[str, Any]:
    return {**eqn.params, "branches": tuple(map(_flat, eqn.params["branches"]))}


BODIES: dict[str, Callable[[Equation], dict[str, Any]]] = {
    "scan": _scan, "while": _while, "cond": _cond}


# --------------------------------------------------------------------------- rules


def _apart(operation: Callable[..., Any], *operands: Any) -> Pair:
    """An operation on the real parts and on the imaginary ones; other operands are for both."""
    return Pair(operation(*[x.re if isinstance(x, Pair) else x for x in operands]),
                operation(*[x.im if isinstance(x, Pair) else x for x in operands]))


def _linear(primitive: Primitive) -> Callable[..., Pair]:
    return lambda *operands, **params: _apart(partial(primitive.bind, **params), *operands)


def _gather(primitive: Primitive) -> Callable[..., Pair]:
    def rule(operand: Pair, indices: Any, *, fill_value: Any = None, **params: Any) -> Pair:
        re, im = (None, 0.0) if fill_value is None else (
            float(np.real(fill_value)), float(np.imag(fill_value)))
        return Pair(primitive.bind(operand.re, indices, fill_value=re, **params),
                    primitive.bind(operand.im, indices, fill_value=im, **params))
    return rule


def _bilinear(primitive: Primitive) -> Callable[..., Any]:
    """Products of matrices and convolutions, as four real ones."""
    def rule(x: Any, y: Any, *, preferred_element_type: Any = None, **params: Any) -> Any:
        wanted = None if preferred_element_type is None else \
            dtypes.real_dtype(preferred_element_type)
        of = partial(primitive.bind, preferred_element_type=wanted, **params)
        return Pair(a.sub(of(x.re, y.re), of(x.im, y.im)), a.add(of(x.re, y.im), of(x.im, y.re)))
    return rule


def _convert(x: Any, *, new_dtype: Any, weak_type: bool = False) -> Any:
    kind = dtypes.kind(new_dtype)
    if kind == "c":
        real = dtypes.real_dtype(new_dtype)
        if isinstance(x, Pair):
            return _apart(lambda part: convert_element_type(part, real), x)
        return Pair(convert_element_type(x, real), zeros(ShapedArray(get_aval(x).shape, real)))
    if kind == "b":
        return c.bitwise_or(c.ne(x.re, 0.0), c.ne(x.im, 0.0))
    return convert_element_type(x.re, new_dtype)


def _barrier(*operands: Any, **params: Any) -> list[Any]:
    flat = [x for o in operands for x in (o if isinstance(o, Pair) else (o,))]
    outs = iter(optimization_barrier(flat))
    return [Pair(next(outs), next(outs)) if isinstance(o, Pair) else next(outs) for o in operands]


FACTORS = 8  # of which a kernel of a product multiplies each


def _reduce_prod(x: Pair, *, axes: tuple[int, ...]) -> Pair:
    """Some factors at a time; each level is computed once, by a kernel of its own."""
    shape = get_aval(x.re).shape
    kept = [d for d in range(len(shape)) if d not in axes]
    lead = tuple([shape[d] for d in kept])
    count = int(np.prod([shape[d] for d in axes]))
    out = _apart(lambda part: reshape(transpose(part, (*kept, *axes)), (*lead, count)), x)
    at = len(lead)
    dtype = get_aval(x.re).dtype
    if count == 0:
        return Pair(full(lead, 1, dtype), full(lead, 0, dtype))
    while count > 1:
        step = -(-count // FACTORS)
        missing = step * FACTORS - count
        ones = (full((*lead, missing), 1, dtype), full((*lead, missing), 0, dtype))
        if missing:
            out = Pair(*[concatenate([part, one], at) for part, one in zip(out, ones)])
        pieces = [_apart(partial(slice_in_dim, start_index=k * step, limit_index=(k + 1) * step,
                                 axis=at), out) for k in range(FACTORS)]
        out = pieces[0]
        for piece in pieces[1:]:
            out = m.product(out, piece)
        count = step
        if count > 1:
            out = Pair(*optimization_barrier(list(out)))
    return _apart(lambda part: reshape(part, lead), out)


def _cumprod(x: Pair, *, axis: int, reverse: bool) -> Pair:
    """By doubling: every element takes in the one so many before it."""
    out = _apart(lambda part: rev(part, (axis,)), x) if reverse else x
    shape, dtype = get_aval(x.re).shape, get_aval(x.re).dtype
    step = 1
    while step < shape[axis]:
        lead = (*shape[:axis], step, *shape[axis + 1:])
        before = [concatenate([full(lead, one, dtype),
                               slice_in_dim(part, 0, shape[axis] - step, axis=axis)], axis)
                  for one, part in zip((1, 0), out)]
        out = Pair(*optimization_barrier(list(m.product(Pair(*before), out))))
        step *= 2
    return _apart(lambda part: rev(part, (axis,)), out) if reverse else out


def _select(which: Any, *cases: Pair) -> Pair:
    return _apart(lambda *parts: c.select_n(which, *parts), *cases)


def _full(*, shape: Any, value: Any, dtype: Any) -> Pair:
    real = dtypes.real_dtype(dtype)
    number = complex(value)
    return Pair(full(shape, number.real, real), full(shape, number.imag, real))


LINEAR: tuple[Primitive, ...] = (
    a.neg_p, a.add_p, a.sub_p, add_any_p, reshape_p, slice_p, pad_p, concatenate_p, rev_p,
    transpose_p, broadcast_in_dim_p, reduce_sum_p, cumsum_p, dynamic_slice_p,
    dynamic_update_slice_p, scatter_p, scatter_add_p, reduce_window_sum_p, window_take_p,
    window_put_p)
"""What acts on both parts alike."""

ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "real": lambda z: z.re, "imag": lambda z: z.im, "complex": Pair,
    "conj": lambda z: Pair(z.re, a.neg(z.im)),
    "mul": m.product, "div": m.divided, "abs": m.absolute, "sign": m.signum,
    "eq": m.equal, "ne": lambda x, y: c.bitwise_not(m.equal(x, y)), "is_finite": m.finite,
    "exp": m.exp, "exp2": m.exp2, "expm1": m.expm1, "log": m.log, "log1p": m.log1p,
    "sqrt": m.sqrt, "rsqrt": m.rsqrt, "sin": m.sin, "cos": m.cos, "tan": m.tan, "asin": m.asin,
    "acos": m.acos, "atan": m.atan, "sinh": m.sinh, "cosh": m.cosh, "tanh": m.tanh,
    "asinh": m.asinh, "acosh": m.acosh, "atanh": m.atanh, "logistic": m.logistic, "pow": m.power,
    "integer_pow": lambda z, *, y: m.integer_power(z, y)}

RULES: dict[str, Callable[..., Any]] = {
    **{p.name: _linear(p) for p in LINEAR}, **ELEMENTWISE, **EXTREMA,
    gather_p.name: _gather(gather_p), dot_general_p.name: _bilinear(dot_general_p),
    conv_general_dilated_p.name: _bilinear(conv_general_dilated_p),
    "convert_element_type": _convert, "optimization_barrier": _barrier,
    "reduce_prod": _reduce_prod, "cumprod": _cumprod, "select_n": _select, full_p.name: _full,
    "sort": sorted_pairs, "scatter_mul": scattered_product}
"""Functions of pairs, by the names of primitives; others go on with complex arrays."""
