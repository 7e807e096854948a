"""Laws of elementwise operations: decomposition, constant folding, algebra."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Literal
from functrans.core.primitive import Primitive
from functrans.lowering.passes.rewrite import COMMUTATIVE, Results, Rewriter, RewriteTable
from functrans.primitives.arithmetic import (
    abs_p,
    add_p,
    complex_p,
    conj_p,
    div_p,
    imag_p,
    integer_pow_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    pow_p,
    real_p,
    sub_p,
)
from functrans.primitives.barrier import (
    checkpoint_name_p,
    optimization_barrier_p,
    stop_gradient_p,
)
from functrans.primitives.base import constant_p, full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p
from functrans.primitives.callback import pure_callback_p
from functrans.primitives.compare import (
    and_p,
    clamp_p,
    eq_p,
    gt_p,
    lt_p,
    ne_p,
    not_p,
    or_p,
    select_n_p,
    xor_p,
)
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.masked import masked_div_p, masked_mul_p
from functrans.primitives.reduce import reduce_or_p
from functrans.primitives.shape import copy_p, iota_p, pad_p
from functrans.primitives.transcendental import rsqrt_p, sqrt_p

# --- Operations that say something to transforms only, or that are two simpler ones
#
# The loop language has every elementwise operation, so this table stays small.

DECOMPOSE = RewriteTable("decompose")


@DECOMPOSE.rule(copy_p, checkpoint_name_p, stop_gradient_p, law="an identity is its operand")
def identity(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    return x


@DECOMPOSE.rule(add_any_p, of=(Literal, broadcast_in_dim_p),
                law="0 + x = x (the sign of a zero cotangent is not kept)")
def cotangent_with_zero(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    for a, b in ((x, y), (y, x)):
        value = r.constant(a)
        if value is not None and value == 0:
            return b
    return None


@DECOMPOSE.rule(add_any_p, law="a sum of cotangents is a sum")
def sum_of_cotangents(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if any(_is_padded(r, a) for a in (x, y)):
        return None  # its elements may be sums with zeros, of which the rule above knows
    return r(add_p, x, y)


def _is_padded(r: Rewriter, x: Atom) -> bool:
    return any(r.made(x, p) is not None for p in (pad_p, add_any_p))


@DECOMPOSE.rule(clamp_p, law="clamp(lo, x, hi) = min(max(x, lo), hi)")
def limits(r: Rewriter, eqn: Equation, low: Atom, x: Atom, high: Atom) -> Results:
    return r.shaped(r(min_p, r(max_p, x, low), high), x.aval)


@DECOMPOSE.rule(masked_mul_p, law="a masked product is a product, and 0 where its first factor is")
def masked_product(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return _masked(r, eqn, x, r(mul_p, x, y))


@DECOMPOSE.rule(masked_div_p, law="a masked quotient is a quotient, and 0 where its dividend is")
def masked_quotient(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return _masked(r, eqn, x, r(div_p, x, y))


def _masked(r: Rewriter, eqn: Equation, x: Atom, result: Atom) -> Results:
    aval = eqn.outvars[0].aval
    nothing = r(full_p, shape=aval.shape, dtype=aval.dtype, value=0)
    zero = r.intern(Literal(x.aval.dtype.type(0), ShapedArray((), x.aval.dtype)))
    is_zero = r(eq_p, x, zero)
    return r(select_n_p, is_zero, result, nothing)


@DECOMPOSE.rule(reduce_sum_p, law="a sum of booleans is true where any of them is")
def sum_of_booleans(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    if dtypes.kind(x.aval.dtype) != "b":
        return None
    return r(reduce_or_p, x, axes=eqn.params["axes"])


@DECOMPOSE.rule(optimization_barrier_p, law="a literal needs no barrier")
def barrier_of_literals(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    rest = tuple(x for x in operands if type(x) is not Literal)
    if len(rest) == len(operands) and operands:
        return None
    outs = iter(r.emit(eqn.replace(
        invars=rest, outvars=tuple(v for x, v in zip(operands, eqn.outvars, strict=True)
                                   if type(x) is not Literal)))) if rest else iter(())
    return tuple([x if type(x) is Literal else next(outs) for x in operands])


# --- Constant folding: a scalar operation on literals is the literal of its value
#
# Values come from the reference evaluation. Arrays are never made: what repeats or counts, such as
# `broadcast_in_dim` of a literal and `iota`, stays an operation, which costs nothing where it is
# read, and `full` becomes the first of these.

CONSTANT_FOLDING = RewriteTable("fold")


@CONSTANT_FOLDING.rule(full_p, law="full(c) = broadcast(c)")
def repeated_literal(r: Rewriter, eqn: Equation) -> Results:
    dtype, value = eqn.params["dtype"], eqn.params["value"]
    if dtypes.kind(dtype) == "0":
        return None
    scalar = np.full((), value, dtype)[()]
    literal = r.intern(Literal(scalar, ShapedArray((), dtype)))
    return r.shaped(literal, eqn.outvars[0].aval)


@CONSTANT_FOLDING.rule(constant_p, law="a constant of one element is a literal")
def scalar_constant(r: Rewriter, eqn: Equation) -> Results:
    value = np.asarray(eqn.params["value"].value)
    if value.shape or dtypes.kind(value.dtype) == "0":
        return None
    return r.intern(Literal(value[()], eqn.outvars[0].aval))


@CONSTANT_FOLDING.rule(iota_p, law="counting one element gives 0")
def count_of_one(r: Rewriter, eqn: Equation) -> Results:
    if eqn.params["shape"][eqn.params["dimension"]] != 1:
        return None
    return r.full(0, eqn.outvars[0].aval)


@CONSTANT_FOLDING.rule(Primitive, of=Literal, law="f(literals) = literal")
def value_of_literals(r: Rewriter, eqn: Equation, *operands: Any) -> Results:
    if not operands:
        return None
    for a in operands:
        if type(a) is not Literal:
            return None
    primitive = eqn.primitive
    if any(v.aval.shape or dtypes.kind(v.aval.dtype) == "0" for v in eqn.outvars) \
            or primitive.higher_order or primitive.collective or primitive is pure_callback_p:
        return None
    values = primitive.run(*[np.asarray(a.value) for a in operands], **eqn.params)
    values = values if primitive.multiple_results else [values]
    return tuple([r.intern(Literal(np.asarray(value, v.aval.dtype)[()], v.aval))
                  for value, v in zip(values, eqn.outvars, strict=True)])


# --- Laws of scalar operations
#
# Every law holds exactly, of NaN, infinities and the sign of zero too, but for those that say
# otherwise: powers become products, which round once per product, and scalings by powers of two
# that follow each other are one, which differs only where the value in between would have left the
# range of normal numbers. For that reason there is no `x + 0.0 = x` (-0.0 + 0.0 is 0.0; `x + -0.0`
# is x), no `x * 0.0 = 0.0` (NaN, infinity, -0.0), no `x - x = 0.0`, no `x ** 0.5 = sqrt(x)` (-inf,
# -0.0), no `-(x - y) = y - x` (0.0) and no `log(exp(x)) = x` of floating numbers. Integers wrap, so
# they obey all laws of rings.

ALGEBRA = RewriteTable("algebra")
rule = ALGEBRA.rule

MAX_HALVES = 5  # x ** 2.5 takes a root and products, each of which rounds once
MAX_POWER = 8  # x ** 8 by squaring is within 4 ULP; the power function is within 1


def kind(x: Atom) -> str:
    return dtypes.kind(x.aval.dtype)


def is_integer(x: Atom) -> bool:
    return kind(x) in "iu"


def is_literal(x: Atom, value: Any) -> bool:
    """Whether x is the literal of that value; 0.0 and -0.0 are different values."""
    return (type(x) is Literal and x.value == value
            and (value != 0 or kind(x) != "f" or np.signbit(x.value) == np.signbit(value)))


def is_power_of_two(x: Atom) -> bool:
    """Whether x is a literal of a real floating power of two whose inverse is a normal number."""
    if type(x) is not Literal or kind(x) != "f":
        return False
    mantissa, exponent = math.frexp(abs(float(x.value)))
    return mantissa == 0.5 and abs(exponent) < _normal_exponent(x.aval.dtype)


def _normal_exponent(dtype: np.dtype[Any]) -> int:
    return {2: 8 if dtype == dtypes.float16 else 100, 4: 120, 8: 1000}.get(dtype.itemsize, 0)


# ------------------------------------------------------------------------------- order, signs


@rule(*COMMUTATIVE, of=Literal, law="c + x = x + c")
def literal_second(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if type(x) is Literal and type(y) is not Literal:
        return r(eqn.primitive, y, x)
    return None


@rule(neg_p, of=neg_p, law="-(-x) = x")
def double_negation(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, neg_p)
    return inner.invars[0] if inner else None


@rule(neg_p, of=(mul_p, div_p), law="-(x * c) = x * -c")
def negated_scaling(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, mul_p, div_p)
    if inner is None or not r.once(x) or type(inner.invars[1]) is not Literal \
            or kind(x) not in ("if" if inner.primitive is mul_p else "f"):
        return None
    return r(inner.primitive, inner.invars[0], r(neg_p, inner.invars[1]))


@rule(neg_p, of=sub_p, law="-(x - y) = y - x (integers)")
def negated_difference(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, sub_p)
    return r(sub_p, *inner.invars[::-1]) if inner and is_integer(x) else None


@rule(abs_p, of=(neg_p, abs_p), law="|-x| = |x|, ||x|| = |x|")
def absolute_of_sign(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, neg_p, abs_p)
    if inner is None or kind(x) not in "if":
        return None
    return x if inner.primitive is abs_p else r(abs_p, inner.invars[0])


# ------------------------------------------------------------------------------- sums


@rule(add_p, of=Literal, law="x + -0.0 = x, x + 0 = x (integers)")
def sum_with_zero(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    zero = -0.0 if kind(x) == "f" else 0
    return x if is_literal(y, zero) and kind(x) != "c" else None


@rule(add_p, of=neg_p, law="x + (-y) = x - y")
def sum_with_negative(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if inner := r.made(y, neg_p):
        return r(sub_p, x, inner.invars[0])
    if inner := r.made(x, neg_p):
        return r(sub_p, y, inner.invars[0])
    return None


@rule(add_p, mul_p, of=Literal, law="(x + c) + d = x + (c + d) (integers)")
def two_literals(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    inner = r.made(x, eqn.primitive)
    if inner and is_integer(x) and type(y) is Literal and type(inner.invars[1]) is Literal:
        return r(eqn.primitive, inner.invars[0], r(eqn.primitive, inner.invars[1], y))
    return None


@rule(sub_p, of=Literal, law="x - 0 = x")
def difference_with_zero(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return x if is_literal(y, 0.0) and kind(x) != "c" else None


@rule(sub_p, of=neg_p, law="x - (-y) = x + y")
def difference_with_negative(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    inner = r.made(y, neg_p)
    return r(add_p, x, inner.invars[0]) if inner else None


@rule(sub_p, xor_p, law="x - x = 0, x ^ x = 0 (integers)")
def difference_with_itself(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return r.full(0, eqn.outvars[0].aval) if x is y and kind(x) in "iub" else None


# ------------------------------------------------------------------------------- products


@rule(mul_p, of=Literal, law="x * 1 = x, x * -1 = -x")
def product_with_one(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if is_literal(y, 1) and kind(x) != "c":
        return x
    return r(neg_p, x) if kind(x) in "if" and is_literal(y, -1) else None


@rule(mul_p, and_p, of=Literal, law="x * 0 = 0, x & 0 = 0 (integers)")
def product_with_zero(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return r.full(0, eqn.outvars[0].aval) if kind(x) in "iub" and is_literal(y, 0) else None


@rule(mul_p, of=Literal, law="(x * a) * b = x * (a * b) where a or b is a power of two")
def two_scalings(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    inner = r.made(x, mul_p)
    if inner is None or kind(x) != "f" or type(y) is not Literal:
        return None
    other = inner.invars[1]
    if type(other) is not Literal or not (is_power_of_two(other) or is_power_of_two(y)):
        return None
    product = abs(float(other.value) * float(y.value))
    exponent = _normal_exponent(x.aval.dtype)
    if product and not 2.0 ** -exponent < product < 2.0 ** exponent:
        return None
    return r(mul_p, inner.invars[0], r(mul_p, other, y))


@rule(mul_p, div_p, of=neg_p, law="(-x) * (-y) = x * y, (-x) * c = x * -c, (-x) * y = -(x * y)")
def product_of_negatives(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if kind(x) not in ("if" if eqn.primitive is mul_p else "f"):
        return None
    left, right = r.made(x, neg_p), r.made(y, neg_p)
    a = left.invars[0] if left else x
    b = right.invars[0] if right else y
    if left and type(b) is Literal:
        return r(eqn.primitive, a, r(neg_p, b))
    if right and type(a) is Literal:
        return r(eqn.primitive, r(neg_p, a), b)
    product = r(eqn.primitive, a, b)
    return product if left and right else r(neg_p, product)


@rule(div_p, of=Literal, law="x / 1 = x, x / c = x * (1 / c) where c is a power of two")
def quotient_by_literal(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if is_literal(y, 1) and kind(x) != "c":
        return x
    if is_power_of_two(y):
        return r(mul_p, x, r.scalar(1 / float(y.value), y.aval.dtype))  # type: ignore[union-attr]
    return None


@rule(div_p, of=sqrt_p, law="1 / sqrt(x) = rsqrt(x)")
def inverse_root(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    inner = r.made(y, sqrt_p)
    if inner and is_literal(x, 1) and r.once(y) and kind(x) == "f":
        return r(rsqrt_p, inner.invars[0])
    return None


# ------------------------------------------------------------------------------- powers


@rule(integer_pow_p, law="x ** n = x * x * ..., x ** -n = (1 / x) ** n")
def small_power(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    n = eqn.params["y"]
    if abs(n) > MAX_POWER or (n < 0 and kind(x) not in "fc"):
        return None
    if x.aval.dtype.itemsize < 4 and kind(x) == "f" and not -1 <= n <= 2:
        return None  # each product would be rounded to 8 or 11 bits
    if n == 0:
        return r.full(1, eqn.outvars[0].aval)
    if n < 0:
        # not 1 / x ** n, whose divisor may overflow where the result is small but not zero
        x = r(div_p, r.scalar(1, x.aval.dtype), x)
    return _power(r, x, abs(n))


def _power(r: Rewriter, x: Atom, n: int) -> Atom:
    if n == 1:
        return x
    half = _power(r, x, n // 2)
    square = r(mul_p, half, half)
    return r(mul_p, square, x) if n % 2 else square


@rule(pow_p, of=Literal, law="x ** 2.0 = x * x, and other small integers; 1 ** y = 1")
def power_of_literal(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if is_literal(x, 1) and kind(x) == "f":
        return r.full(1, eqn.outvars[0].aval)
    if type(y) is Literal and kind(x) == "f" and float(y.value).is_integer() \
            and abs(y.value) <= MAX_POWER:
        return r(integer_pow_p, x, y=int(y.value))
    return None


@rule(pow_p, of=Literal, law="x ** 1.5 = x * sqrt(x), and other halves of small odd integers")
def power_of_half(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    """Roots are of -0 and -inf what powers are not."""
    if type(y) is not Literal or kind(x) != "f" or dtypes.is_half(x.aval.dtype):
        return None
    count = 2 * float(y.value)
    if count % 2 != 1 or abs(count) > MAX_HALVES or count == 1:  # 0.5 stays
        return None
    if not _is_never_negative(r, x):
        infinite = r(eq_p, x, r.full(-np.inf, x.aval))
        x = r(select_n_p, infinite, r(add_p, x, r.full(0, x.aval)), r.full(np.inf, x.aval))
    found = r(sqrt_p, x)
    if count < 0:
        found = r(div_p, r.full(1, x.aval), found)
    for _ in range(int(abs(count)) // 2):
        found = r(div_p if count < 0 else mul_p, found, x)
    return found


def _is_never_negative(r: Rewriter, x: Atom, depth: int = 6) -> bool:
    """Whether a number has no sign: a square, a sum of squares; or is NaN."""
    if isinstance(x, Literal):
        return not np.signbit(x.value)
    if depth == 0:
        return False
    if (made := r.made(x, mul_p)) is not None:
        return made.invars[0] is made.invars[1]
    if (made := r.made(x, add_p)) is not None:
        return all(_is_never_negative(r, a, depth - 1) for a in made.invars)
    for p in (broadcast_in_dim_p, reduce_sum_p):
        if (made := r.made(x, p)) is not None:
            return _is_never_negative(r, made.invars[0], depth - 1)
    return r.made(x, abs_p) is not None


# ------------------------------------------------------------------------------- order, logic


@rule(max_p, min_p, and_p, or_p, law="max(x, x) = x")
def idempotent(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return x if x is y else None


@rule(max_p, of=Literal, law="max(x, -inf) = x")
def maximum_with_least(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return x if kind(x) == "f" and is_literal(y, -np.inf) else None


@rule(min_p, of=Literal, law="min(x, inf) = x")
def minimum_with_greatest(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return x if kind(x) == "f" and is_literal(y, np.inf) else None


@rule(max_p, min_p, of=Literal, law="max(max(x, c), d) = max(x, max(c, d))")
def two_limits(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    inner = r.made(x, eqn.primitive)
    if inner and type(y) is Literal and type(inner.invars[1]) is Literal:
        return r(eqn.primitive, inner.invars[0], r(eqn.primitive, inner.invars[1], y))
    return None


@rule(not_p, of=(not_p, eq_p, ne_p), law="not (not x) = x, not (x == y) = (x != y)")
def negated_relation(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, not_p, eq_p, ne_p)
    if inner is None or (inner.primitive is not not_p and not r.once(x)):
        return None
    if inner.primitive is not_p:
        return inner.invars[0]
    return r(ne_p if inner.primitive is eq_p else eq_p, *inner.invars)


@rule(and_p, or_p, of=Literal, law="x & true = x, x | false = x, x | true = true (booleans)")
def logic_with_literal(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if type(y) is not Literal or kind(x) != "b":
        return None
    if bool(y.value) == (eqn.primitive is and_p):
        return x
    return r.full(eqn.primitive is or_p, eqn.outvars[0].aval)


@rule(or_p, xor_p, of=Literal, law="x | 0 = x, x ^ 0 = x (integers)")
def bits_with_zero(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return x if is_literal(y, 0) else None


@rule(lt_p, gt_p, law="x < x is false")
def less_than_itself(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    return r.full(False, eqn.outvars[0].aval) if x is y else None


@rule(eq_p, ne_p, law="x == x (integers)")
def equal_to_itself(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if x is y and kind(x) in "iub":
        return r.full(eqn.primitive is eq_p, eqn.outvars[0].aval)
    return None


@rule(select_n_p, law="where(true, x, y) = x, where(p, x, x) = x")
def chosen_case(r: Rewriter, eqn: Equation, which: Atom, *cases: Atom) -> Results:
    value = r.constant(which)
    if value is not None:
        return cases[min(max(int(value), 0), len(cases) - 1)]
    return cases[0] if all(c is cases[0] for c in cases) else None


@rule(select_n_p, of=not_p, law="where(not p, x, y) = where(p, y, x)")
def negated_choice(r: Rewriter, eqn: Equation, which: Atom, *cases: Atom) -> Results:
    inner = r.made(which, not_p)
    if inner and len(cases) == 2 and kind(which) == "b":
        return r(select_n_p, inner.invars[0], cases[1], cases[0])
    return None


@rule(select_n_p, of=select_n_p, law="where(p, where(p, x, y), z) = where(p, x, z)")
def choice_within_choice(r: Rewriter, eqn: Equation, which: Atom, *cases: Atom) -> Results:
    news = list(cases)
    for i, case in enumerate(cases):
        inner = r.made(case, select_n_p)
        if inner and inner.invars[0] is which and len(inner.invars) == len(eqn.invars):
            news[i] = inner.invars[i + 1]
    return r(select_n_p, which, *news) if news != list(cases) else None


# ------------------------------------------------------------------------------- types


@rule(convert_element_type_p, law="a conversion to the dtype at hand")
def same_type(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    return x if x.aval.dtype == eqn.params["new_dtype"] else None


@rule(convert_element_type_p, of=convert_element_type_p,
      law="a lossless conversion before another is left out")
def two_conversions(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, convert_element_type_p)
    if inner is None or not is_lossless(inner.invars[0].aval.dtype, x.aval.dtype):
        return None
    return r(convert_element_type_p, inner.invars[0], **eqn.params)


def is_lossless(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether every number of dtype `source` is one of dtype `target`."""
    if source == dtypes.bfloat16:
        return target in (dtypes.float32, dtypes.float64)
    if "V" in (source.kind, target.kind) or target == dtypes.bfloat16:
        return source == target  # other narrow types: their kind as NumPy sees it says nothing
    return np.can_cast(source, target, "safe")


@rule(real_p, imag_p, of=complex_p, law="real(complex(x, y)) = x, imag(complex(x, y)) = y")
def part_of_complex(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, complex_p)
    if inner is None:
        return None
    return r.shaped(inner.invars[eqn.primitive is imag_p], eqn.outvars[0].aval)


@rule(complex_p, of=real_p, law="complex(real(z), imag(z)) = z")
def complex_of_parts(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    re, im = r.made(x, real_p), r.made(y, imag_p)
    return re.invars[0] if re and im and re.invars[0] is im.invars[0] else None


@rule(conj_p, of=conj_p, law="conj(conj(z)) = z")
def double_conjugate(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, conj_p)
    return inner.invars[0] if inner else None
