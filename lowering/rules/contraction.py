"""Contractions: products of matrices through the library, and as reductions where they are none."""

from __future__ import annotations

from typing import Any

from functrans.core.dims import Size
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.call import Call, Conv, Gemm
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import ZERO, Index, LoopVar
from functrans.lowering.loops.tensor import FLOAT8, Map, Reduce, Stored, Tensor, dtype_name
from functrans.lowering.rules.reduce import empty_reduction
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.dot import dot_general_p

__all__ = ["RULES", "strided_view"]

Dims = list[tuple[Size, ...]]
"""Merged dimensions: a size, then its stride in each array that has it."""


def strided_view(x: Tensor) -> tuple[Tensor, tuple[Size, ...], Size] | None:
    """x as a view of what it only moves: that tensor, the stride of each dimension, the offset."""
    s = ExprBuilder(lambda t: not (isinstance(t, Map) and t.weight == 0 and len(t.operands) == 1))
    variables = [LoopVar(f"d{k}", n) for k, n in enumerate(x.shape)]
    e = x.at(s, tuple([Index.of(v) if not _is_one(v.high) else ZERO for v in variables]))
    if e.op != "load":
        return None
    base, place = e.aux
    if base.dtype != x.dtype or any(not isinstance(a, LoopVar) for a in place.terms):
        return None
    return base, tuple([place.coefficient(v) for v in variables]), place.const


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
        return s.op("mul", x.at(s, tuple(left)), y.at(s, tuple(right)))

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
    base, strides, offset = view if view is not None else (x, _contiguous(x.shape), 0)
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
        copy = base.copies[key] = Map(shape, x.dtype, [x], lambda s, i: x.at(
            s, tuple([i[k] for k in inverse])), weight=0, source=x.source)
    steps: list[Size] = [0] * len(order)
    for k, step in zip(places, _contiguous(shape)):
        steps[k] = step
    return _StridedOperand(copy, tuple([x.shape[d] for d in order]), tuple(steps), 0)


def _gemm(eqn: Equation, x: _StridedOperand, y: _StridedOperand, nb: int, nx: int,
          ny: int) -> Call | None:
    aval = eqn.outvars[0].aval
    out = _contiguous(aval.shape)
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


def _contiguous(shape: tuple[Size, ...]) -> tuple[Size, ...]:
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


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
        views.append(view if view is not None else (t, _contiguous(t.shape), 0))
    (x_base, x_strides, x_offset), (w_base, w_strides, w_offset) = views
    out_strides = _contiguous(aval.shape)
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


RULES: dict[Primitive, Any] = {dot_general_p: _dot_general, conv_general_dilated_p: _conv}
