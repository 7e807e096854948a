"""Primitives that every backend computes as a program of others.

Some are primitives for their derivatives: an adjugate's is one product, and what transposes the
reading of windows is the adding to them. Others are of dtypes or sizes that no library takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from functrans.core import config, dtypes
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.lowering.passes.rewrite import with_bodies, with_functions
from functrans.primitives.arithmetic import add, complex_p, div, imag_p, mul, real, rem, sub
from functrans.primitives.base import full
from functrans.primitives.broadcast import broadcast_in_dim
from functrans.primitives.compare import bitwise_and, eq, ge, ne, where
from functrans.primitives.convert import convert_element_type, convert_element_type_p
from functrans.primitives.coordinate_products import coo_dot_p, product_of_coordinates
from functrans.primitives.dot import dot_general_p
from functrans.primitives.index import scatter_add
from functrans.primitives.index_layout import GatherScatterMode, ScatterDimensionNumbers
from functrans.primitives.linalg import lu_p, qr_p
from functrans.primitives.matrix import MatrixPrimitive, conjugate, eye, matmul, swap_last
from functrans.primitives.reduce import reduce_prod
from functrans.primitives.rounding import odd_float32
from functrans.primitives.row_coordinates import coordinates_of_lanes, row_coordinates_p
from functrans.primitives.schur import hessenberg_p, reflected_qr_p, schur_p, tridiagonal_p
from functrans.primitives.shape import broadcasted_iota, concatenate
from functrans.primitives.solve import adjugate_p, det, det_p, slogdet_p
from functrans.primitives.sparse import (
    csr_dot_p,
    csr_sample_p,
    product_of_rows,
    sample_of_rows,
)
from functrans.primitives.sparse_sums import (
    has_library_sums,
    sum_places_p,
    sums_of_places,
)
from functrans.primitives.spectral import svd_p
from functrans.primitives.sylvester import (
    TwoSided,
    sylvester_p,
    triangular_root_p,
    triangular_sylvester_p,
)
from functrans.primitives.window import window_put_p

__all__ = ["MOST_COVERING", "composed", "windows_over", "without_compressed_rows"]

MOST_TO_A_COLUMN: Final = 64
"""Elements of a column of compressed rows, in the mean, up to which each is added atomically."""
MOST_COVERING: Final = 32
"""Windows over an element up to which it asks each of them; beyond, each window adds to its own."""
COMPOSED: Final = frozenset((
    dot_general_p, convert_element_type_p, window_put_p, coo_dot_p, csr_dot_p, csr_sample_p,
    row_coordinates_p, sum_places_p))
"""Besides those of matrices: primitives that are programs of others, for some operands."""


def composed(jaxpr: Jaxpr) -> Jaxpr:
    """The program, and the bodies in it, with programs in place of such primitives."""
    jaxpr = with_bodies(jaxpr, composed)
    if not any(p in COMPOSED or isinstance(p, MatrixPrimitive) for p in jaxpr.primitives):
        return jaxpr
    return with_functions(jaxpr, _function_of)


def _function_of(eqn: Equation) -> Callable[..., Sequence[Any]] | None:
    if isinstance(eqn.primitive, MatrixPrimitive):
        return _of_matrices(eqn)
    if eqn.primitive is dot_general_p and eqn.outvars[0].aval.dtype == np.bool_:
        return partial(_product_of_booleans, **eqn.params)
    if eqn.primitive is convert_element_type_p and _rounds_twice(eqn):
        return partial(_rounded_once, **eqn.params)
    if eqn.primitive is window_put_p and (
            windows_over(eqn) > MOST_COVERING or 0 in eqn.invars[0].aval.shape):
        return partial(_window_put, **eqn.params)
    if eqn.primitive in (coo_dot_p, csr_dot_p, csr_sample_p) and not _is_known_to_libraries(eqn):
        return _in_float32(eqn) if dtypes.is_half(eqn.outvars[0].aval.dtype) \
            and _has_known_indices(eqn) else _function_of_rows(eqn)
    if eqn.primitive is sum_places_p and not has_library_sums(
            eqn.invars[0].aval.dtype, eqn.invars[1].aval.dtype, eqn.params["sizes"]):
        return partial(sums_of_places, **eqn.params)
    if eqn.primitive is row_coordinates_p and \
            eqn.invars[0].aval.dtype not in (np.int32, np.int64):
        return coordinates_of_lanes
    return None


def _rounds_twice(eqn: Equation) -> bool:
    """Whether a backend would go by float32, in which narrow numbers are in registers."""
    source, target = eqn.invars[0].aval.dtype, eqn.params["new_dtype"]
    return source in (np.float64, np.complex128) and dtypes.kind(target) in "fc" \
        and (dtypes.is_narrow(target) or target == dtypes.complex32)


def _rounded_once(x: Any, *, new_dtype: np.dtype[Any], weak_type: bool = False) -> list[Any]:
    is_complex = x.dtype == np.complex128
    if is_complex and new_dtype == dtypes.complex32:
        x = complex_p.bind(odd_float32(real(x)), odd_float32(imag_p.bind(x)))
    else:
        x = odd_float32(real(x) if is_complex else x)
    return [convert_element_type(x, new_dtype, weak_type)]


def without_compressed_rows(jaxpr: Jaxpr) -> Jaxpr:
    """The program, and the bodies in it, for GPUs: with products of rows as they stand alone."""
    return with_functions(with_bodies(jaxpr, without_compressed_rows), _function_on_gpus)


def _function_on_gpus(eqn: Equation) -> Callable[..., Sequence[Any]] | None:
    if eqn.primitive is sum_places_p:
        return partial(sums_of_places, **eqn.params)
    if eqn.primitive is row_coordinates_p:
        return coordinates_of_lanes
    if eqn.primitive is not csr_dot_p or not _is_known_to_libraries(eqn) or not all(
            isinstance(n, int) and n for x in eqn.invars for n in x.aval.shape) \
            or eqn.invars[2].aval.shape[0] < 2 \
            or (eqn.params["transpose"] and not _adds_by_atomics(eqn)):
        return _function_of_rows(eqn)
    return None


def _adds_by_atomics(eqn: Equation) -> bool:
    """Whether sums of a transposed product may be in any order, and few wait for one another."""
    columns = eqn.params["columns"]
    return isinstance(columns, int) and not config.current().deterministic \
        and eqn.invars[0].aval.shape[0] <= min(MOST_TO_A_COLUMN * columns, 1 << 30)


def _function_of_rows(eqn: Equation) -> Callable[..., Sequence[Any]] | None:
    if eqn.primitive is coo_dot_p:
        return partial(product_of_coordinates, **eqn.params)
    if eqn.primitive is csr_dot_p:
        return partial(product_of_rows, **eqn.params)
    return sample_of_rows if eqn.primitive is csr_sample_p else None


def _in_float32(eqn: Equation) -> Callable[..., Sequence[Any]]:
    """A function of compressed rows of halves, which is added up in float32."""
    def wide(*operands: Any) -> list[Any]:
        half = eqn.outvars[0].aval.dtype
        found = eqn.primitive.bind(*[
            convert_element_type(x, np.float32) if v.aval.dtype == half else x
            for x, v in zip(operands, eqn.invars, strict=True)], **eqn.params)
        return [convert_element_type(found, half)]

    return wide


def _is_known_to_libraries(eqn: Equation) -> bool:
    """Whether the functions on compressed rows have the dtypes (csrc/lib_sparse.cpp)."""
    return eqn.outvars[0].aval.dtype in (np.float32, np.float64) and _has_known_indices(eqn)


def _has_known_indices(eqn: Equation) -> bool:
    return eqn.invars[eqn.primitive is not csr_sample_p].aval.dtype in (np.int32, np.int64)


def _of_matrices(eqn: Equation) -> Callable[..., Sequence[Any]] | None:
    a = eqn.invars[0].aval
    if 0 in a.shape[-2:]:
        return partial(_of_nothing, eqn) if eqn.primitive in NOT_EMPTY else None
    if eqn.primitive is adjugate_p:
        return _adjugate
    if isinstance(eqn.primitive, TwoSided) and 0 in eqn.outvars[0].aval.shape[-2:]:
        return partial(_of_nothing, eqn)
    if eqn.primitive is sylvester_p:
        return _sylvester_of(eqn)
    return partial(_widened, eqn) if dtypes.is_half(a.dtype) else None


def _widened(eqn: Equation, *operands: Any) -> list[Any]:
    """A function of matrices of halves, computed in float32."""
    wide = [convert_element_type(x, np.float32) for x in operands]
    found: Any = eqn.primitive.bind(*wide, **eqn.params)
    outs = found if eqn.primitive.multiple_results else [found]
    return [convert_element_type(out, v.aval.dtype)
            for out, v in zip(outs, eqn.outvars, strict=True)]


NOT_EMPTY: Final = (det_p, slogdet_p, lu_p, qr_p, svd_p, schur_p, hessenberg_p, reflected_qr_p,
                    tridiagonal_p, sylvester_p, triangular_root_p, triangular_sylvester_p)


def _of_nothing(eqn: Equation, *_: Any) -> list[Any]:
    """What matrices without rows or without columns have: a determinant of 1, a whole basis."""
    avals = [v.aval for v in eqn.outvars]
    if eqn.primitive in (det_p, slogdet_p):
        return [full(aval.shape, 1 - k, aval.dtype) for k, aval in enumerate(avals)]
    return [_identity_of(aval) for aval in avals]


def _identity_of(aval: ShapedArray) -> Any:
    if 0 in aval.shape:
        return full(aval.shape, 0, aval.dtype)
    if dtypes.kind(aval.dtype) == "i":  # of rows
        return broadcasted_iota(aval.dtype, aval.shape, aval.ndim - 1)
    return eye(aval.shape, aval.dtype)


def _sylvester_of(eqn: Equation) -> Callable[..., Sequence[Any]]:
    """By complex Schur forms, one where both operators are the same."""
    (a, b, _), out = eqn.invars, eqn.outvars[0].aval
    wide = dtypes.complex_dtype(np.dtype(np.float32) if dtypes.is_half(out.dtype) else out.dtype)

    def solve(*operands: Any) -> list[Any]:
        x, y, right = (convert_element_type(v, wide) for v in operands)
        t, u = schur_p.bind(x, vectors=True)
        s, v = (t, u) if a is b else schur_p.bind(y, vectors=True)
        inner = matmul(swap_last(conjugate(u)), matmul(right, v))
        found = triangular_sylvester_p.bind(t, s, inner, transposed=False, strict=False)
        found = matmul(u, matmul(found, swap_last(conjugate(v))))
        return [convert_element_type(
            found if dtypes.kind(out.dtype) == "c" else real(found), out.dtype)]

    return solve


def _product_of_booleans(x: Any, y: Any, **params: Any) -> list[Any]:
    """Whether any product is true, by counting them: a count in float32 is never 0 by rounding."""
    counts = dot_general_p.bind(convert_element_type(x, np.float32),
                                convert_element_type(y, np.float32),
                                **{**params, "preferred_element_type": None})
    return [ne(counts, full(counts.shape, 0, np.float32))]


def _adjugate(a: Any) -> list[Any]:
    """det(U) det(V) V* adj(S) U* of the singular values U S V, with no division by them."""
    s, u, vh = svd_p.bind(a, full_matrices=True, compute_uv=True)
    shape = (*s.shape, s.shape[-1])
    row, column = (broadcasted_iota(np.int32, shape, len(shape) - k) for k in (1, 2))
    each = broadcast_in_dim(s, shape, (*range(s.ndim - 1), s.ndim))
    others = reduce_prod(where(eq(row, column), full(shape, 1, s.dtype), each), (s.ndim,))
    scale = mul(broadcast_in_dim(mul(det(u), det(vh)), s.shape, range(s.ndim - 1)),
                convert_element_type(others, a.dtype))
    scale = broadcast_in_dim(scale, a.shape, (*range(s.ndim - 1), s.ndim))
    return [matmul(mul(swap_last(conjugate(vh)), scale), swap_last(conjugate(u)))]


def windows_over(eqn: Equation) -> int:
    """How many windows may cover an element."""
    sizes, strides = eqn.params["window_dimensions"], eqn.params["window_strides"]
    return math.prod([-(-size // stride) for size, stride in zip(sizes, strides, strict=True)])


def _window_put(x: Any, numbers: Any, *, shape: Any, window_dimensions: Sequence[int],
                window_strides: Sequence[int], padding: Sequence[tuple[int, int]],
                base_dilation: Sequence[int], window_dilation: Sequence[int]) -> list[Any]:
    """Each element added where its number says, and nowhere where that is padding or a hole."""
    def number(value: int) -> Any:
        return full(x.shape, value, np.int32)

    places, left = [], numbers
    for axis in reversed(range(x.ndim)):
        within = rem(left, number(window_dimensions[axis]))
        left = div(left, number(window_dimensions[axis]))
        at = add(mul(broadcasted_iota(np.int32, x.shape, axis), number(window_strides[axis])),
                 sub(mul(within, number(window_dilation[axis])), number(padding[axis][0])))
        step = number(base_dilation[axis])
        is_there = bitwise_and(ge(at, number(0)), eq(rem(at, step), number(0)))
        at = where(is_there, div(at, step), number(-1))
        places.append(broadcast_in_dim(at, (*x.shape, 1), range(x.ndim)))
    every = tuple(range(x.ndim))
    return [scatter_add(full(shape, 0, x.dtype), concatenate(places[::-1], x.ndim), x,
                        ScatterDimensionNumbers((), every, every),
                        mode=GatherScatterMode.FILL_OR_DROP)]
