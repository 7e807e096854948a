"""Primitives that library functions compute: sorting, cumulative and sparse operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from functrans.core.dims import Size
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.core.table import Table
from functrans.lowering.loops.expr import ExprBuilder
from functrans.lowering.loops.index import Index, LoopVar
from functrans.lowering.loops.tensor import Call, CLibraryCall, Map, Stored, Tensor, dtype_name
from functrans.lowering.passes.narrow_products import FORMATS, narrow_product_p
from functrans.primitives.coordinate_products import coo_dot_p
from functrans.primitives.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from functrans.primitives.row_coordinates import row_coordinates_p
from functrans.primitives.sort import sort_p, top_k_p
from functrans.primitives.sparse import csr_dot_p, csr_sample_p
from functrans.primitives.sparse_sums import sum_places_p

__all__ = ["RULES", "TYPE_CODES", "along_rows", "back_from_rows", "is_iota"]

TYPE_CODES = {"f32": 0, "f64": 1, "f16": 2, "bf16": 3, "i8": 4, "i16": 5, "i32": 6, "i64": 7,
              "u8": 8, "u16": 9, "u32": 10, "u64": 11, "bool": 12}
"""How the functions on rows (csrc/rows.h) name dtypes."""

Outcome = tuple[Call, Sequence[Tensor]] | None


def along_rows(x: Tensor, axis: int) -> Tensor:
    """x with `axis` last."""
    last = len(x.shape) - 1
    if axis == last:
        return x
    shape = (*x.shape[:axis], *x.shape[axis + 1:], x.shape[axis])
    return Map(shape, x.dtype, [x], lambda s, i: s.read(x, (*i[:axis], i[-1], *i[axis:-1])),
               weight=0, source=x.source)


def back_from_rows(x: Tensor, axis: int) -> Tensor:
    """x with its last axis moved to `axis`."""
    last = len(x.shape) - 1
    if axis == last:
        return x
    shape = (*x.shape[:axis], x.shape[-1], *x.shape[axis:-1])
    return Map(shape, x.dtype, [x], lambda s, i: s.read(x, (*i[:axis], *i[axis + 1:], i[axis])),
               weight=0, source=x.source)


def row_count(x: Tensor) -> Size:
    rows: Size = 1
    for n in x.shape[:-1]:
        rows = rows * n
    return rows


def is_iota(x: Tensor, axis: int) -> bool:
    """Whether every element of x is its place along an axis."""
    if not isinstance(x, Map) or x.operands or x.dtype != "i32":
        return False
    variables = [LoopVar(f"d{k}", n) for k, n in enumerate(x.shape)]
    e = x.define(ExprBuilder(lambda t: True), tuple(map(Index.of, variables)))
    return e.op == "index" and e.aux == Index.of(variables[axis])


def _sort(eqn: Equation, xs: list[Tensor]) -> Outcome:
    axis, keys = eqn.params["dimension"], eqn.params["num_keys"]
    rows = [along_rows(x, axis) for x in xs]
    count, n = row_count(rows[0]), rows[0].shape[-1]
    outs = [Stored(r.shape, r.dtype, (), eqn.source) for r in rows]
    if len(xs) == 2 and keys == 1 and is_iota(xs[1], axis):
        call = CLibraryCall("argsort_rows", "i64, i64, i64, const void *, void *, i32 *", rows[:1],
                            outs,
                            [count, n, TYPE_CODES[xs[0].dtype], rows[0], *outs], eqn.source)
    else:
        codes = [TYPE_CODES[x.dtype] for x in xs]
        call = CLibraryCall(
            "sort_rows", "i64, i64, i64, i64, i64, const i64 *, void *const *, void *const *",
            rows, outs, [count, n, len(xs), keys, int(eqn.params["is_stable"]), codes, rows, outs],
            eqn.source)
    return call, [back_from_rows(o, axis) for o in outs]


def _top_k(eqn: Equation, xs: list[Tensor]) -> Outcome:
    axis, k = eqn.params["axis"], eqn.params["k"]
    x = along_rows(xs[0], axis)
    shape = (*x.shape[:-1], k)
    outs = [Stored(shape, dtype_name(v.aval.dtype) or "", (), eqn.source) for v in eqn.outvars]
    if outs[1].dtype != "i32":
        return None
    call = CLibraryCall("top_k_rows", "i64, i64, i64, i64, const void *, void *, i32 *", [x], outs,
                        [row_count(x), x.shape[-1], k, TYPE_CODES[x.dtype], x, *outs], eqn.source)
    return call, [back_from_rows(o, axis) for o in outs]


CUMULATIVE: Table[int] = Table(
    {cumsum_p: 0, cumprod_p: 1, cummax_p: 2, cummin_p: 3, cumlogsumexp_p: 4},
    otherwise="it accumulates nothing")
"""How `cumulate_rows` names operations."""


def _cumulative(eqn: Equation, xs: list[Tensor]) -> Outcome:
    (x,), axis = xs, eqn.params["axis"]
    primitive = eqn.primitive
    if primitive is cumlogsumexp_p and x.compute not in ("f32", "f64"):
        return None
    wide = _converted(x, x.compute)
    out = Stored(x.shape, x.compute, (), eqn.source)
    outer, inner = _product(x.shape[:axis]), _product(x.shape[axis + 1:])
    call = CLibraryCall("cumulate_rows", "i64, i64, i64, i64, i64, i64, const void *, void *",
                        [wide], [out],
                        [CUMULATIVE[primitive], TYPE_CODES[x.compute], int(eqn.params["reverse"]),
                         outer, x.shape[axis], inner, wide, out], eqn.source)
    return call, [_converted(out, x.dtype)]


def _converted(x: Tensor, dtype: str) -> Tensor:
    """x in memory as `dtype`: halves are added up in float32."""
    if x.dtype == dtype:
        return x
    return Map(x.shape, dtype, [x], lambda s, i: s.read(x, i), weight=1, source=x.source)


def _product(sizes: Sequence[Size]) -> Size:
    total: Size = 1
    for n in sizes:
        total = total * n
    return total


def _csr_dot(eqn: Equation, xs: list[Tensor]) -> Outcome:
    data, indices, indptr, x = xs
    p, aval = eqn.params, eqn.outvars[0].aval
    out = Stored(aval.shape, data.dtype, (), eqn.source)
    sizes = [TYPE_CODES[data.dtype], int(indices.dtype == "i64"), int(p["transpose"]),
             indptr.shape[0] - 1, p["columns"], data.shape[0], x.shape[1]]
    call = CLibraryCall("csr_dot", "i64, i64, i64, i64, i64, i64, i64, const void *, const void *, "
                        "const void *, const void *, void *", xs, [out], [*sizes, *xs, out],
                        eqn.source)
    return call, [out]


def _coo_dot(eqn: Equation, xs: list[Tensor]) -> Outcome:
    data, indices, x = xs
    p, aval = eqn.params, eqn.outvars[0].aval
    out = Stored(aval.shape, data.dtype, (), eqn.source)
    sizes = [TYPE_CODES[data.dtype], int(indices.dtype == "i64"), int(p["transpose"]), *p["sizes"],
             data.shape[0], x.shape[1]]
    call = CLibraryCall("coo_dot", "i64, i64, i64, i64, i64, i64, i64, const void *, const void *, "
                        "const void *, void *", xs, [out], [*sizes, *xs, out], eqn.source)
    return call, [out]


def _csr_sample(eqn: Equation, xs: list[Tensor]) -> Outcome:
    indices, indptr, _, x = xs
    out = Stored(indices.shape, x.dtype, (), eqn.source)
    sizes = [TYPE_CODES[x.dtype], int(indices.dtype == "i64"), indptr.shape[0] - 1, x.shape[0],
             indices.shape[0], x.shape[1]]
    call = CLibraryCall("csr_sample", "i64, i64, i64, i64, i64, i64, const void *, const void *, "
                        "const void *, const void *, void *", xs, [out], [*sizes, *xs, out],
                        eqn.source)
    return call, [out]


def _sum_places(eqn: Equation, xs: list[Tensor]) -> Outcome:
    p = eqn.params
    data = xs[::3 if p["compressed"] else 2]
    outs = [Stored(v.aval.shape, dtype_name(v.aval.dtype) or "", (), eqn.source)
            for v in eqn.outvars]
    flags = [int(p[name]) for name in ("compressed", "to_rows", "numbered")]
    call = CLibraryCall(
        "sum_places", "i64, i64, i64, i64, i64, i64, i64, i64, i64, const i64 *, const i64 *, "
        "void *const *, void *const *", xs, outs,
        [TYPE_CODES[data[0].dtype], int(xs[1].dtype == "i64"), data[0].shape[0], len(data), *flags,
         len(p["sizes"]), p["room"], list(p["sizes"]), [x.shape[1] for x in data], xs, outs],
        eqn.source)
    return call, outs


def _row_coordinates(eqn: Equation, xs: list[Tensor]) -> Outcome:
    aval = eqn.outvars[0].aval
    out = Stored(aval.shape, xs[0].dtype, (), eqn.source)
    call = CLibraryCall(
        "row_coordinates", "i64, i64, i64, i64, const i64 *, void *const *, void *", xs, [out],
        [int(xs[0].dtype == "i64"), aval.shape[0], xs[1].shape[1] - 1, len(xs) // 2,
         [x.shape[1] for x in xs[::2]], xs, out], eqn.source)
    return call, [out]


def _narrow_product(eqn: Equation, xs: list[Tensor]) -> Outcome:
    x, w = xs
    out = Stored(eqn.outvars[0].aval.shape, "f32", (), eqn.source)
    call = CLibraryCall("narrow_dot", "i64, i64, i64, i64, const float *, const void *, float *",
                        xs, [out], [FORMATS[eqn.params["format"]], *x.shape, w.shape[1], *xs, out],
                        eqn.source)
    return call, [out]


RULES: dict[Primitive, Callable[..., Outcome]] = {
    coo_dot_p: _coo_dot, csr_dot_p: _csr_dot, csr_sample_p: _csr_sample,
    narrow_product_p: _narrow_product, row_coordinates_p: _row_coordinates, sort_p: _sort,
    sum_places_p: _sum_places, top_k_p: _top_k,
    **dict.fromkeys(CUMULATIVE, _cumulative)}
