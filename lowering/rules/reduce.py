"""Reductions: folds over some axes, products of matrices, convolutions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.dims import Shape, Size, is_static
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import ZERO, Index, LoopVar, strides_of
from functrans.lowering.loops.tensor import (
    FLOAT8,
    Call,
    Conv,
    Define,
    Gemm,
    Map,
    Reduce,
    Stored,
    Tensor,
    compute_dtype,
    dtype_name,
    item_size,
)
from functrans.lowering.rules.elementwise import Rule, convert, rounded
from functrans.lowering.rules.movement import padded
from functrans.lowering.rules.small_products import strided_view, terms_of_small
from functrans.primitives.broadcast import reduce_sum_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.reduce import (
    argmax_p,
    argmin_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
)

__all__ = ["CONTRACTIONS", "REDUCTIONS", "SUMMED_CONTRACTIONS", "UNROLL", "compared_dtype",
           "empty_reduction", "first_extreme", "identity_element", "in_order", "product_of",
           "summed_conv", "summed_dot_general"]


UNROLL = 32
"""Reductions over at most so many elements are written out where they are not along rows."""

WRITTEN_OUT = 4
"""Elements of reductions that are written out also along rows, which fill no vector."""

_SPACE = tuple([Index.of(LoopVar(f"i{k}", 2)) for k in range(32)])
LIMITS = {"max": ("-inf", "min"), "min": ("inf", "max")}


def identity_element(op: str, dtype: str) -> Any:
    """What `op` leaves any value of `dtype` unchanged with."""
    if op in ("add", "or", "xor"):
        return 0
    if op == "mul":
        return 1
    if op == "and" and dtype[0] == "i":
        return -1
    # all bits of an unsigned number are its largest value
    infinity, name = LIMITS["min" if op == "and" else op.removeprefix("arg")]
    if dtype == "bool":
        return int(name == "max")
    if dtype[0] == "f":
        return float(infinity)
    return getattr(np.iinfo({"i": "int", "u": "uint"}[dtype[0]] + dtype[1:]), name)


def _reduction(op: str) -> Rule:
    def rule(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
        x, aval = xs[0], eqn.outvars[0].aval
        axes = eqn.params["axes"]
        dtype = dtype_name(aval.dtype)
        assert dtype is not None
        name = op
        if x.dtype == "bool":
            name = {"add": "or", "mul": "and", "max": "or", "min": "and"}.get(op, op)
        order = [d for d in range(len(x.shape)) if d not in axes] + sorted(axes)
        inverse = sorted(range(len(order)), key=order.__getitem__)
        sizes = tuple(x.shape[d] for d in sorted(axes))
        if not axes:
            return [x]

        def element(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
            return s.read(x, tuple([i[k] for k in inverse]))

        return [reduce_elements(eqn, name, aval.shape, sizes, dtype, xs, element)]

    return rule


def empty_reduction(eqn: Equation, op: str, shape: Any, sizes: Any, dtype: str) -> Tensor | None:
    """What a reduction without elements gives everywhere; None of one that has some."""
    if not any(isinstance(n, int) and n == 0 for n in sizes):
        return None
    compute = compute_dtype(dtype)
    start = np.asarray(identity_element(op, compute))
    return Map(shape, dtype, (), lambda s, i: s.const(start, compute), weight=0, source=eqn.source)


def reduce_elements(eqn: Equation, op: str, shape: Any, sizes: Any, dtype: str, xs: list[Tensor],
                    element: Any, written_out: int = WRITTEN_OUT) -> Tensor:
    """A reduction, written out where it is over at most so many elements."""
    nothing = empty_reduction(eqn, op, shape, sizes, dtype)
    if nothing is not None:
        return nothing
    if op == "add" and dtype in ("i32", "i64") and not is_static(sizes):
        one = element(ExprBuilder(lambda t: isinstance(t, Stored)),
                      _SPACE[:len(shape) + len(sizes)])
        if one.op == "const" and one.aux == 1:  # how a size becomes a value
            return Map(shape, dtype, (), lambda s, i: s.index(Index.of(math.prod(sizes)), dtype),
                       weight=0, source=eqn.source)
    if all(isinstance(n, int) for n in sizes) and math.prod(sizes) <= written_out:
        def define(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
            terms = [element(s, (*i, *map(Index.of, r)))
                     for r in itertools.product(*map(range, sizes))]
            while len(terms) > 1:  # pairwise
                terms = [s.op(op, *terms[k:k + 2]) if k + 1 < len(terms) else terms[k]
                         for k in range(0, len(terms), 2)]
            compute = out.compute
            return terms[0] if terms else s.const(np.asarray(identity_element(op, compute)),
                                                  compute)

        terms = math.prod(sizes)
        out = Map(shape, dtype, xs, define, weight=terms * len(xs), repeats=True, terms=terms,
                  source=eqn.source)
        return out
    return Reduce(op, shape, sizes, dtype, xs, element, source=eqn.source)


def compared_dtype(dtype: str) -> str | None:
    """The dtype in which the place of an extreme is looked for: signed numbers, 32 bits or more."""
    if dtype in ("u32", "u64"):
        return "i64"
    if dtype in ("bool", "i8", "i16", "u8", "u16"):
        return "i32"
    return dtype if dtype in ("f32", "f64", "bf16", "f16", "i32", "i64") else None


def in_order(s: ExprBuilder, e: Expr, dtype: str) -> Expr:
    """An element of `dtype` as a number of `compared_dtype`, in the same order."""
    target = compared_dtype(dtype)
    assert target is not None
    if dtype == "u64":  # by its half: what is below 2^63 is negative
        e = s.op("xor", e, s.const(np.uint64(2**63), "u64"))
    return rounded(s, e, dtype) if target == dtype else convert(s, e, target)


def first_extreme(s: ExprBuilder, op: str, values: Sequence[Expr], dtype: str) -> Expr:
    """The number of the first of the largest ("argmax") or smallest values; NaN is extreme."""
    best, *rest = values
    at = s.const(np.asarray(0), dtype)
    for k, value in enumerate(rest, 1):
        better = s.op("gt" if op == "argmax" else "lt", value, best, dtype="bool")
        if best.dtype[0] == "f":
            is_nan = s.op("ne", value, value, dtype="bool")
            was_number = s.op("eq", best, best, dtype="bool")
            better = s.op("or", better, s.op("and", is_nan, was_number))
        best = s.op("select", better, value, best, dtype=best.dtype)
        at = s.op("select", better, s.const(np.asarray(k), dtype), at, dtype=dtype)
    return at


def _arg_extremum(op: str) -> Rule:
    def rule(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
        x, aval = xs[0], eqn.outvars[0].aval
        (axis,) = eqn.params["axes"]
        dtype = dtype_name(aval.dtype)
        compared = compared_dtype(x.dtype)
        if dtype not in ("i32", "i64", "u32", "u64") or compared is None:
            return None

        def element(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
            return in_order(s, s.read(x, (*i[:axis], i[-1], *i[axis:-1])), x.dtype)

        size = x.shape[axis]
        if isinstance(size, int) and 0 < size <= WRITTEN_OUT:
            return [Map(aval.shape, dtype, xs, lambda s, i: first_extreme(
                s, op, [element(s, (*i, Index.of(k))) for k in range(size)], dtype),
                        weight=4 * size, repeats=True, terms=size, source=eqn.source)]
        return [Reduce(op, aval.shape, (x.shape[axis],), dtype, xs, element, value_dtype=compared,
                       source=eqn.source)]

    return rule


REDUCTIONS: dict[Primitive, Rule] = {
    reduce_sum_p: _reduction("add"),
    reduce_prod_p: _reduction("mul"),
    reduce_max_p: _reduction("max"),
    reduce_min_p: _reduction("min"),
    reduce_and_p: _reduction("and"),
    reduce_or_p: _reduction("or"),
    reduce_xor_p: _reduction("xor"),
    argmax_p: _arg_extremum("argmax"),
    argmin_p: _arg_extremum("argmin"),
}


# --- Contractions: products of matrices through the library, and as reductions where they are none

Dims = list[tuple[Size, ...]]
"""Merged dimensions: a size, then its stride in each array that has it."""


def _dot_general(eqn: Equation, xs: list[Tensor]) -> Call | Tensor | None:
    x, y = xs
    aval = eqn.outvars[0].aval
    out_dtype = dtype_name(aval.dtype)
    assert out_dtype is not None
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    if x.dtype == "bool" or out_dtype == "bool":
        return None
    nothing = empty_reduction(eqn, "add", aval.shape, [x.shape[d] for d in cx], out_dtype)
    if nothing is not None:
        return nothing
    fx = [d for d in range(len(x.shape)) if d not in cx and d not in bx]
    fy = [d for d in range(len(y.shape)) if d not in cy and d not in by]
    if all(_is_one(x.shape[d]) for d in fx) and all(_is_one(y.shape[d]) for d in fy) \
            and x.compute == out_dtype and cx:
        return _as_reduction(eqn, x, y, out_dtype)
    terms = terms_of_small(eqn, x, y)
    if terms is not None:
        return summed_dot_general(eqn, xs, terms)
    if (_is_widened(y) and all(_is_one(x.shape[d]) for d in fx)) or \
            (_is_widened(x) and all(_is_one(y.shape[d]) for d in fy)):
        return summed_dot_general(eqn, xs)
    if (x.dtype, out_dtype) not in GEMM_TYPES:
        return None
    kinds_x, kinds_y = (tuple([0] * len(bx) + [1] * len(free) + [2] * len(cx))
                        for free in (fx, fy))
    for copied in ((False, False), (True, False), (False, True), (True, True)):
        call = _gemm(eqn, _laid_out(x, (*bx, *fx, *cx), kinds_x, copied[0]),
                     _laid_out(y, (*by, *fy, *cy), kinds_y, copied[1]),
                     len(bx), len(fx), len(fy))
        if call is not None:
            return call
    return None


# dtypes of the operands and the result that the library multiplies
GEMM_TYPES = {(t, t) for t in ("f32", "f64", "bf16", "f16", "i8", "i16", "i32", "i64", "u8", "u16",
                               "u32", "u64")} | {
    ("bf16", "f32"), ("f16", "f32"), ("i8", "i32"), ("i16", "i32"), ("u8", "i32")} | {
    (t, out) for t in FLOAT8 for out in ("f32", "bf16", "f16")}


def _is_widened(x: Tensor) -> bool:
    """Whether a matrix is a narrower one of memory, converted: weights in 8 bits, bfloat16.

    A vector times it is sums that read the narrow one. The library wants it converted in memory:
    of 4,096 x 4,096 int8 that took 16 ms, the sums 2.1.
    """
    found: set[Tensor] = set()
    seen: set[Tensor] = set()
    rest = [x]
    while rest and len(seen) < _MOST_CONVERTING:
        t = rest.pop()
        if t in seen or not t.shape:
            continue
        seen.add(t)
        if t.shape != x.shape or not isinstance(t, (Map, Stored)):
            return False
        if isinstance(t, Stored):
            found.add(t)
        rest += t.operands
    return not rest and len(found) == 1 and x not in found and all(
        item_size(t.dtype) < item_size(x.dtype) for t in found)


_MOST_CONVERTING = 48
"""Operations of one conversion: float8 is arithmetic on bits."""


def _as_reduction(eqn: Equation, x: Tensor, y: Tensor, dtype: str) -> Tensor:
    """Products summed to one number for each index of the batch: no matrices."""
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    sizes = tuple([x.shape[d] for d in cx])
    nb = len(bx)

    def element(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
        inner = i[len(eqn.outvars[0].aval.shape):]
        left, right = [ZERO] * len(x.shape), [ZERO] * len(y.shape)
        for d, e, k in zip(cx, cy, inner):
            left[d], right[e] = k, k
        for d, e, k in zip(bx, by, i[:nb]):
            left[d], right[e] = k, k
        return s.op("mul", s.read(x, tuple(left)), s.read(y, tuple(right)))

    return Reduce("add", eqn.outvars[0].aval.shape, sizes, dtype, [x, y], element,
                  source=eqn.source)


class _StridedOperand:
    """An operand with its dimensions in the order batch, free, contracted."""

    def __init__(self, base: Tensor, shape: tuple[Size, ...], strides: tuple[Size, ...],
                 offset: Size) -> None:
        self.base, self.shape, self.strides, self.offset = base, shape, strides, offset


def _laid_out(x: Tensor, order: tuple[int, ...], kinds: tuple[int, ...],
              copied: bool) -> _StridedOperand:
    """x with its dimensions in an order, as it is or `copied`.

    `kinds` numbers the dimensions in that order: batch, free, contracted.
    """
    shape = tuple([x.shape[d] for d in order])
    view = strided_view(x)
    base, strides, offset = view if view is not None else (x, strides_of(x.shape), 0)
    strides = tuple([strides[d] for d in order])
    return _copied(x, base, order, kinds, strides, offset) if copied else \
        _StridedOperand(base, shape, strides, offset)


def _copied(x: Tensor, base: Tensor, order: tuple[int, ...], kinds: tuple[int, ...],
            strides: tuple[Size, ...], offset: Size) -> _StridedOperand:
    """x copied: what lies side by side stays so, and products that want the same share it."""
    inner = next((kind for kind, n, step in zip(kinds, (x.shape[d] for d in order), strides)
                  if not _is_one(n) and _is_one(step)), 2)
    places = sorted(range(len(order)), key=lambda k: (kinds[k] != 0, kinds[k] == inner, k))
    shape = tuple([x.shape[order[k]] for k in places])
    key = (shape, tuple([strides[k] for k in places]), offset)
    copy = base.copies.get(key)
    if copy is None:
        inverse = sorted(range(len(order)), key=lambda k: order[places[k]])
        copy = base.copies[key] = Map(shape, x.dtype, [x], lambda s, i: s.read(
            x, tuple([i[k] for k in inverse])), weight=0, source=x.source)
    steps: list[Size] = [0] * len(order)
    for k, step in zip(places, strides_of(shape)):
        steps[k] = step
    return _StridedOperand(copy, tuple([x.shape[d] for d in order]), tuple(steps), 0)


def _gemm(eqn: Equation, x: _StridedOperand, y: _StridedOperand, nb: int, nx: int,
          ny: int) -> Call | None:
    aval = eqn.outvars[0].aval
    out = strides_of(aval.shape)
    batch = _merged([(n, sx, sy, so) for n, sx, sy, so in zip(
        x.shape[:nb], x.strides[:nb], y.strides[:nb], out[:nb])])
    m = _merged([(n, sx, so) for n, sx, so in zip(
        x.shape[nb:nb + nx], x.strides[nb:nb + nx], out[nb:nb + nx])])
    n = _merged([(n, sy, so) for n, sy, so in zip(
        y.shape[nb:nb + ny], y.strides[nb:nb + ny], out[nb + nx:])])
    k = _merged([(n, sx, sy) for n, sx, sy in zip(
        x.shape[nb + nx:], x.strides[nb + nx:], y.strides[nb + ny:])])
    if len(batch) > 2 or len(m) > 1 or len(n) > 1 or len(k) > 1:
        return None
    batch = [(1, 0, 0, 0)] * (2 - len(batch)) + batch
    (m_size, a_row, c_row), = m or [(1, 0, 0)]
    (n_size, b_col, c_col), = n or [(1, 0, 1)]
    (k_size, a_col, b_row), = k or [(1, 0, 0)]
    fields = {"batch0": batch[0][0], "batch1": batch[1][0], "m": m_size, "n": n_size, "k": k_size,
              "a_batch0": batch[0][1], "a_batch1": batch[1][1], "a_row": a_row, "a_col": a_col,
              "b_batch0": batch[0][2], "b_batch1": batch[1][2], "b_row": b_row, "b_col": b_col,
              "c_batch0": batch[0][3], "c_batch1": batch[1][3], "c_row": c_row, "c_col": c_col}
    dtype = dtype_name(aval.dtype)
    assert dtype is not None
    result = Stored(aval.shape, dtype, (), eqn.source)
    return Gemm(x.base, y.base, x.offset, y.offset, fields, result, eqn.source,
                eqn.params.get("precision"))


def _merged(dims: Dims) -> Dims:
    """Neighbouring dimensions that every array walks as one, as one."""
    runs: Dims = []
    for size, *strides in dims:
        if _is_one(size):
            continue
        if runs and all(a == b * size for a, b in zip(runs[-1][1:], strides)):
            runs[-1] = (runs[-1][0] * size, *strides)
        else:
            runs.append((size, *strides))
    return runs


def _is_one(n: Size) -> bool:
    return isinstance(n, int) and n == 1


def _conv(eqn: Equation, xs: list[Tensor]) -> Call | Tensor | None:
    p, aval = eqn.params, eqn.outvars[0].aval
    x, w = xs
    out_dtype = dtype_name(aval.dtype)
    xd, wd, od = p["dimension_numbers"]
    rank = len(xd) - 2
    if out_dtype is None or (x.dtype, out_dtype) not in GEMM_TYPES or not 1 <= rank <= 3:
        return None
    nothing = empty_reduction(eqn, "add", aval.shape, [w.shape[d] for d in wd[1:]], out_dtype)
    if nothing is not None:
        return nothing
    views = []
    for t in (x, w):
        view = strided_view(t)
        views.append(view if view is not None else (t, strides_of(t.shape), 0))
    (x_base, x_strides, x_offset), (w_base, w_strides, w_offset) = views
    out_strides = strides_of(aval.shape)
    groups = p.get("group_axes")

    def group(strides: tuple[Size, ...], k: int) -> Size:
        return 0 if groups is None else strides[groups[k]]

    fields: dict[str, Size | list[Size]] = {
        "rank": rank, "groups": 1 if groups is None else x.shape[groups[0]],
        "batch": x.shape[xd[0]], "in_features": x.shape[xd[1]], "out_features": w.shape[wd[0]],
        "in_size": [x.shape[d] for d in xd[2:]], "window": [w.shape[d] for d in wd[2:]],
        "out_size": [aval.shape[d] for d in od[2:]], "stride": list(p["window_strides"]),
        "pad_low": [low for low, _ in p["padding"]], "in_dilation": list(p["lhs_dilation"]),
        "window_dilation": list(p["rhs_dilation"]),
        "x_group": group(x_strides, 0), "x_batch": x_strides[xd[0]], "x_feature": x_strides[xd[1]],
        "x_space": [x_strides[d] for d in xd[2:]],
        "w_group": group(w_strides, 1), "w_out": w_strides[wd[0]], "w_in": w_strides[wd[1]],
        "w_space": [w_strides[d] for d in wd[2:]],
        "out_group": group(out_strides, 2), "out_batch": out_strides[od[0]],
        "out_feature": out_strides[od[1]], "out_space": [out_strides[d] for d in od[2:]]}
    result = Stored(aval.shape, out_dtype, (), eqn.source)
    return Conv(x_base, w_base, (x_offset, w_offset), fields, result, eqn.source,
                p.get("precision"))


CONTRACTIONS: dict[Primitive, Any] = {dot_general_p: _dot_general, conv_general_dilated_p: _conv}


# --- Contractions as sums of products: of dtypes that neither libraries nor tensor cores take

Place = tuple[Index, ...]


def summed_dot_general(eqn: Equation, xs: list[Tensor], written_out: int = 0) -> Tensor:
    """A contraction as sums of products, written out where they have at most so many terms."""
    x, y = xs
    aval = eqn.outvars[0].aval
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    fx = [d for d in range(len(x.shape)) if d not in (*cx, *bx)]
    fy = [d for d in range(len(y.shape)) if d not in (*cy, *by)]
    of_x = {d: k for k, d in enumerate((*bx, *fx))}
    of_y = {d: k for k, d in enumerate((*by, *[None] * len(fx), *fy)) if d is not None}
    rank = len(aval.shape)
    of_x |= {d: rank + k for k, d in enumerate(cx)}
    of_y |= {d: rank + k for k, d in enumerate(cy)}

    def element(s: ExprBuilder, i: Place) -> Expr:
        return product_of(s, s.read(x, tuple([i[of_x[d]] for d in range(len(x.shape))])),
                        s.read(y, tuple([i[of_y[d]] for d in range(len(y.shape))])), eqn)

    return _sum(eqn, tuple([x.shape[d] for d in cx]), xs, element, written_out)


def summed_conv(eqn: Equation, xs: list[Tensor], written_out: int = 0) -> Tensor:
    """A convolution as sums of products, written out where they have at most so many terms."""
    x, w = xs
    p = eqn.params
    xd, wd, od = p["dimension_numbers"]
    groups = p.get("group_axes")
    rank = len(eqn.outvars[0].aval.shape)
    config = [(0, 0, 0)] * len(x.shape)
    for d, (low, high), holes in zip(xd[2:], p["padding"], p["lhs_dilation"]):
        config[d] = (low, high, holes - 1)

    def element(s: ExprBuilder, i: Place) -> Expr:
        at_x, at_w = [ZERO] * len(x.shape), [ZERO] * len(w.shape)
        feature, *window = i[rank:]
        at_x[xd[0]], at_x[xd[1]] = i[od[0]], feature
        at_w[wd[0]], at_w[wd[1]] = i[od[1]], feature
        for k, (stride, spread) in enumerate(zip(p["window_strides"], p["rhs_dilation"])):
            at_x[xd[2 + k]] = i[od[2 + k]] * stride + window[k] * spread
            at_w[wd[2 + k]] = window[k]
        if groups is not None:
            at_x[groups[0]] = at_w[groups[1]] = i[groups[2]]
        zero = identity_element("add", x.compute)
        return product_of(s, padded(s, x, lambda: s.const(zero, x.compute), tuple(at_x), config),
                        s.read(w, tuple(at_w)), eqn)

    return _sum(eqn, (w.shape[wd[1]], *[w.shape[d] for d in wd[2:]]), xs, element, written_out)


def product_of(s: ExprBuilder, a: Expr, b: Expr, eqn: Equation) -> Expr:
    dtype = dtype_name(eqn.outvars[0].aval.dtype) or ""
    if any(dtype_name(x.aval.dtype) != dtype for x in eqn.invars):
        a, b = convert(s, a, dtype), convert(s, b, dtype)
    return s.op("and" if dtype == "bool" else "mul", a, b)


def _sum(eqn: Equation, sizes: Shape, xs: list[Tensor], element: Define,
         written_out: int = 0) -> Tensor:
    aval = eqn.outvars[0].aval
    dtype = dtype_name(aval.dtype) or ""
    op = "or" if dtype == "bool" else "add"
    return reduce_elements(eqn, op, aval.shape, sizes, dtype, xs, element, written_out)


SUMMED_CONTRACTIONS: dict[Primitive, Any] = {
    dot_general_p: summed_dot_general, conv_general_dilated_p: summed_conv}
