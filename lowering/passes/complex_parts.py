"""Programs without complex arithmetic: each complex value is a pair of real ones.

Complex arrays remain where a program meets others: as inputs, outputs, constants, and operands and
results of operations without a rule here. `real` and `imag` take them apart, `complex` puts them
together.

The parts of a complex32 are float16. What is more than a sum of them is computed in float32, so
that no step of a formula overflows, and rounded at its end: not between two operations of which the
first has no reader but the second, which are in one kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.dims import static_shape
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.primitive import Primitive
from functrans.core.prune import prune_jaxpr
from functrans.core.table import Table, merged
from functrans.lowering.passes import complex_math as m
from functrans.lowering.passes.complex_math import Pair
from functrans.lowering.passes.complex_ordering import EXTREMA, scattered_product, sorted_pairs
from functrans.lowering.passes.noughts import Noughts
from functrans.lowering.passes.rewrite import inlined
from functrans.primitives import arithmetic as a
from functrans.primitives import compare as c
from functrans.primitives.arithmetic import (
    abs_p,
    complex_p,
    conj_p,
    div_p,
    imag_p,
    integer_pow_p,
    log_p,
    mul_p,
    pow_p,
    real_p,
    sign_p,
)
from functrans.primitives.barrier import optimization_barrier, optimization_barrier_p
from functrans.primitives.base import full, full_p, zeros
from functrans.primitives.broadcast import (
    broadcast_in_dim_p,
    reduce_sum_p,
    transpose,
    transpose_p,
)
from functrans.primitives.compare import eq_p, is_finite_p, ne_p, select_n_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import convert_element_type, convert_element_type_p
from functrans.primitives.cumulative import cumprod_p, cumsum_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.reduce import reduce_prod_p
from functrans.primitives.scatter import scatter_mul_p, scatter_p
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
from functrans.primitives.sort import sort_p
from functrans.primitives.transcendental import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan_p,
    atanh_p,
    cos_p,
    cosh_p,
    exp2_p,
    exp_p,
    expm1_p,
    log1p_p,
    logistic_p,
    rsqrt_p,
    sin_p,
    sinh_p,
    sqrt_p,
    tan_p,
    tanh_p,
)
from functrans.primitives.window import reduce_window_sum_p, window_put_p, window_take_p

__all__ = ["split_complex"]


def split_complex(jaxpr: Jaxpr) -> Jaxpr:
    """The program in real numbers; itself where nothing in it is complex."""
    return _Splitter(jaxpr).split() if _has_complex(jaxpr) else jaxpr


def _is_complex(x: Atom) -> bool:
    return dtypes.kind(x.aval.dtype) == "c"


def _has_complex(jaxpr: Jaxpr) -> bool:
    return any(dtypes.kind(dtype) == "c" for dtype in jaxpr.dtypes) or any(
        _has_complex(body) for eqn in jaxpr.calls for body in subjaxprs(eqn))


def _touches_complex(eqn: Equation) -> bool:
    return any(map(_is_complex, (*eqn.invars, *eqn.outvars))) or any(map(_has_complex,
                                                                         subjaxprs(eqn)))


def _read_once(jaxpr: Jaxpr) -> frozenset[Var]:
    """Values of complex32 whose one reader computes with them, in the kernel that makes them."""
    readers: dict[Var, list[Primitive]] = {}
    for eqn in jaxpr.eqns:
        for x in {x for x in eqn.invars if isinstance(x, Var)}:
            readers.setdefault(x, []).append(eqn.primitive)
    return frozenset(
        x for x, found in readers.items() if x.aval.dtype == dtypes.complex32
        and len(found) == 1 and found[0] in FUSED).difference(
            x for x in jaxpr.outvars if isinstance(x, Var))


def _real_aval(aval: ShapedArray) -> ShapedArray:
    return ShapedArray(aval.shape, dtypes.real_dtype(aval.dtype))


# --------------------------------------------------------------------------- the program


class _Splitter:
    def __init__(self, jaxpr: Jaxpr, noughts: Collection[Var] = ()) -> None:
        """`noughts`: inputs whose real part is known to be 0 or NaN."""
        self.jaxpr = jaxpr
        self.imaginary = noughts
        self.noughts = Noughts()
        self.moduli: dict[Var, Atom] = {}  # of which complex value each is
        self.eqns: list[Equation] = []
        self.names: dict[Var, Atom] = {}  # of real values
        self.whole: dict[Var, Var] = {}  # complex values that are in memory
        self.parts: dict[Var, tuple[Atom, Atom]] = {}
        self.unrounded: dict[Atom, tuple[Atom, Atom]] = {}  # of a complex32, in float32
        self.read_once = _read_once(jaxpr)

    def split(self, flat: bool = False) -> Jaxpr:
        """`flat`: inputs and outputs are pairs too, as in the bodies of loops."""
        invars: list[Var] = []
        for v in self.jaxpr.invars:
            if _is_complex(v) and flat:
                pair = Var(_real_aval(v.aval)), Var(_real_aval(v.aval))
                self.parts[v] = pair
                if v in self.imaginary:
                    self.noughts.add(pair[0])
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
        primitive = eqn.primitive
        if primitive is abs_p and eqn.invars[0].aval.dtype in (np.complex64, np.complex128):
            self.moduli[eqn.outvars[0]] = eqn.invars[0]
        if (n := self.power_of_modulus(eqn)) is not None:
            self.rule(eqn.replace(invars=(self.moduli[eqn.invars[0]],),  # type: ignore[index]
                                  params={"exponent": n}), m.power_of_modulus)
        elif not _touches_complex(eqn):
            self.keep(eqn, {})
        elif primitive in BODIES:
            self.control_flow(eqn)
        elif primitive is exp_p and self.is_imaginary(eqn.invars[0]):
            self.rule(eqn, m.turned)
        elif primitive in RULES:
            self.rule(eqn, RULES[primitive])
        else:
            self.keep(eqn, {v: Var(v.aval) for v in eqn.outvars if _is_complex(v)})

    def is_imaginary(self, x: Atom) -> bool:
        """Whether the real part is known to be 0 or NaN."""
        return _is_complex(x) and (x in self.parts or isinstance(x, Literal)) \
            and self.noughts.has(self.pair(x)[0], self.eqns)

    def power_of_modulus(self, eqn: Equation) -> int | None:
        """n where the equation is |z|^n, for an even n: that needs no root."""
        x = eqn.invars[0] if eqn.invars else None
        if x not in self.moduli:
            return None
        n: int = 2 if eqn.primitive is mul_p and eqn.invars[1] is x else \
            eqn.params["y"] if eqn.primitive is integer_pow_p else 0
        return n if n > 0 and n % 2 == 0 else None

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
                known = self.unrounded if rest[0].aval.dtype != _real_aval(v.aval).dtype \
                    else self.parts
                known[v] = rest.pop(0), rest.pop(0)
            else:
                self.names[v] = rest.pop(0)

    def rule(self, eqn: Equation, rule: Callable[..., Any]) -> None:
        """The equations of a rule's function on the parts of the operands."""
        def function(*flat: Any) -> list[Any]:
            values = iter(flat)
            args = [Pair(next(values), next(values)) if _is_complex(x) else next(values)
                    for x in eqn.invars]
            out = rule(*(map(_wide, args) if widens else args), **eqn.params)
            outs = out if eqn.primitive.multiple_results else [out]
            if widens:
                outs = [o if v in self.read_once else _rounded(o, v.aval.dtype)
                        for o, v in zip(outs, eqn.outvars, strict=True)]
            return [x for o in outs for x in (o if isinstance(o, Pair) else (o,))]

        widens = eqn.primitive in COMPUTED or not self.unrounded.keys().isdisjoint(eqn.invars)
        flat = [x for operand in eqn.invars
                for x in self.unrounded.get(operand) or self.atoms(operand)]
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
        imaginary = {k for k, x in enumerate(eqn.invars) if self.is_imaginary(x)}
        params = BODIES[eqn.primitive](eqn, imaginary)
        ins = tuple([x for v in eqn.invars for x in self.atoms(v)])
        outs = tuple([Var(_real_aval(v.aval)) if _is_complex(v) else Var(v.aval)
                      for v in self.targets(eqn)])
        self.eqns.append(eqn.replace(invars=ins, outvars=outs, params=params))
        self.define(eqn, outs)


# --------------------------------------------------------------------------- loops and branches


def _flat(jaxpr: Jaxpr, imaginary: Iterable[int] = ()) -> Jaxpr:
    """A body, of which some inputs are known to be imaginary."""
    return _Splitter(jaxpr, {jaxpr.invars[k] for k in imaginary}).split(flat=True)


def _count(atoms: Sequence[Atom]) -> int:
    return len(atoms) + sum(map(_is_complex, atoms))


def _scan(eqn: Equation, imaginary: Collection[int]) -> dict[str, Any]:
    p = eqn.params
    consts, carry = p["num_consts"], p["num_carry"]
    known = [k for k in imaginary if not consts <= k < consts + carry]
    return {**p, "jaxpr": _flat(p["jaxpr"], known), "num_consts": _count(eqn.invars[:consts]),
            "num_carry": _count(eqn.invars[consts:consts + carry])}


def _while(eqn: Equation, imaginary: Collection[int]) -> dict[str, Any]:
    p = eqn.params
    test, body = p["cond_nconsts"], p["body_nconsts"]
    return {**p, "cond_jaxpr": _flat(p["cond_jaxpr"]),
            "body_jaxpr": _flat(p["body_jaxpr"], {k - test for k in imaginary
                                                  if test <= k < test + body}),
            "cond_nconsts": _count(eqn.invars[:test]),
            "body_nconsts": _count(eqn.invars[test:test + body])}


def _cond(eqn: Equation, imaginary: Collection[int]) -> dict[str, Any]:
    known = [k - 1 for k in imaginary]
    return {**eqn.params, "branches": tuple([_flat(b, known) for b in eqn.params["branches"]])}


BODIES: Table[Callable[[Equation, Collection[int]], dict[str, Any]]] = Table(
    {scan_p: _scan, while_p: _while, cond_p: _cond}, otherwise="it has no bodies")


# --------------------------------------------------------------------------- rules


def _apart(operation: Callable[..., Any], *operands: Any) -> Pair:
    """An operation on the real parts and on the imaginary ones; other operands are for both."""
    return Pair(operation(*[x.re if isinstance(x, Pair) else x for x in operands]),
                operation(*[x.im if isinstance(x, Pair) else x for x in operands]))


def _wide(x: Any) -> Any:
    """float32 for a pair of float16."""
    if not isinstance(x, Pair) or get_aval(x.re).dtype != dtypes.float16:
        return x
    return _apart(lambda part: convert_element_type(part, dtypes.float32), x)


def _rounded(x: Any, dtype: np.dtype[Any]) -> Any:
    """A result of `_wide` operands in the dtype that the program has."""
    real = dtypes.real_dtype(dtype)
    if real != dtypes.float16:
        return x
    return _apart(lambda part: convert_element_type(part, real), x) if isinstance(x, Pair) \
        else convert_element_type(x, real)


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
            dtypes.real_dtype(dtypes.computed_dtype(preferred_element_type))
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
    count = math.prod(static_shape([shape[d] for d in axes]))
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
    """A scan in a logarithmic number of steps: x[i] *= x[i - step], and the step doubles."""
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


def _joined(x: Any, y: Any) -> Pair:
    """Parts in the dtype of those of the result: there are narrower ones."""
    part = dtypes.real_dtype(complex_p.result_dtype(x.dtype))
    return Pair(x, y) if x.dtype == part else Pair(convert_element_type(x, part),
                                                   convert_element_type(y, part))


LINEAR: tuple[Primitive, ...] = (
    a.neg_p, a.add_p, a.sub_p, add_any_p, reshape_p, slice_p, pad_p, concatenate_p, rev_p,
    transpose_p, broadcast_in_dim_p, reduce_sum_p, cumsum_p, dynamic_slice_p,
    dynamic_update_slice_p, scatter_p, scatter_add_p, reduce_window_sum_p, window_take_p,
    window_put_p)
"""What acts on both parts alike."""

ELEMENTWISE: dict[Primitive, Callable[..., Any]] = {
    real_p: lambda z: z.re, imag_p: lambda z: z.im, complex_p: _joined,
    conj_p: lambda z: Pair(z.re, a.neg(z.im)),
    mul_p: m.product, div_p: m.divided, abs_p: m.absolute, sign_p: m.signum,
    eq_p: m.equal, ne_p: lambda x, y: c.bitwise_not(m.equal(x, y)), is_finite_p: m.finite,
    exp_p: m.exp, exp2_p: m.exp2, expm1_p: m.expm1, log_p: m.log, log1p_p: m.log1p,
    sqrt_p: m.sqrt, rsqrt_p: m.rsqrt, sin_p: m.sin, cos_p: m.cos, tan_p: m.tan, asin_p: m.asin,
    acos_p: m.acos, atan_p: m.atan, sinh_p: m.sinh, cosh_p: m.cosh, tanh_p: m.tanh,
    asinh_p: m.asinh, acosh_p: m.acosh, atanh_p: m.atanh, logistic_p: m.logistic, pow_p: m.power,
    integer_pow_p: lambda z, *, y: m.integer_power(z, y)}

OF_BOTH_PARTS: dict[Primitive, Callable[..., Any]] = {p: _linear(p) for p in LINEAR}

RULES: Table[Callable[..., Any]] = Table(merged(OF_BOTH_PARTS, ELEMENTWISE, EXTREMA, {
    gather_p: _gather(gather_p), dot_general_p: _bilinear(dot_general_p),
    conv_general_dilated_p: _bilinear(conv_general_dilated_p),
    convert_element_type_p: _convert, optimization_barrier_p: _barrier,
    reduce_prod_p: _reduce_prod, cumprod_p: _cumprod, select_n_p: _select, full_p: _full,
    sort_p: sorted_pairs, scatter_mul_p: scattered_product,
}), otherwise="it goes on with complex arrays")
"""Functions of pairs."""

FUNCTIONS = ELEMENTWISE.keys() - {real_p, imag_p, complex_p, conj_p, eq_p, ne_p, is_finite_p}

COMPUTED: frozenset[Primitive] = frozenset((
    *FUNCTIONS, *EXTREMA, dot_general_p, conv_general_dilated_p, reduce_prod_p, cumprod_p,
    scatter_mul_p))
"""What multiplies parts or takes functions of them: in float32 where they are float16."""

FUSED: frozenset[Primitive] = frozenset((
    *FUNCTIONS, conj_p, a.neg_p, a.add_p, a.sub_p, add_any_p, reduce_sum_p))
"""What is in one kernel with the operand of which it is the one reader."""
