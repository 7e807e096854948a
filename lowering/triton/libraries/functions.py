"""Functions of cuFFT, cuSOLVER and cuBLAS as equations, and as steps of programs.

Their matrices have contiguous columns. What they compute is what `emulated` computes with NumPy,
where Triton's interpreter runs a program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.tensor import HostCall, Stored, Tensor
from functrans.lowering.rules.graph import CallRule
from functrans.lowering.rules.memory import memory
from functrans.lowering.triton.libraries.exchanges import exchanges_rule
from functrans.primitives import lapack
from functrans.primitives.linalg import lu_pivots_to_permutation_p

__all__ = ["RULES", "TYPES", "CudaLibraryCall", "call", "library_p"]

TYPES = {"float32": 0, "float64": 1, "complex64": 2, "complex128": 3}
"""How the functions name dtypes (csrc/cuda/cusolver.cpp)."""

IN_PLACE = {"potrf": 0, "trsm": 1, "getrf": 0, "laswp": 0, "geqrf": 0, "syevd": 0}
"""Which operand becomes the first result; it is copied where something else reads it."""

Array = np.ndarray[Any, Any]


class LibraryPrimitive(Primitive):
    """A function of a library: its name, its numbers, and the types of its results."""

    name = "library"
    multiple_results = True
    required_rules = ("type", "evaluate")

    def type(self, *avals: ShapedArray, function: str, numbers: tuple[int, ...],
             results: tuple[ShapedArray, ...]) -> list[ShapedArray]:
        return list(results)

    def evaluate(self, *arrays: Array, function: str, numbers: tuple[int, ...],
                 results: tuple[ShapedArray, ...]) -> list[Array]:
        found = emulated[function](numbers, *map(np.asarray, arrays), results=results)
        return [np.ascontiguousarray(x, r.dtype).reshape(r.shape)
                for x, r in zip(found, results, strict=True)]


library_p = LibraryPrimitive()


def call(function: str, numbers: Sequence[int], operands: Sequence[Any],
         results: Sequence[ShapedArray]) -> list[Any]:
    """The results of a function."""
    return list(library_p.bind(*operands, function=function, numbers=tuple(numbers),
                               results=tuple(results)))


class CudaLibraryCall(HostCall):
    """A step that a library does; the interpreter leaves it to the host, as NumPy does it."""

    name = "library call"

    def __init__(self, eqn: Equation, operands: Sequence[Tensor],
                 results: Sequence[Stored]) -> None:
        super().__init__(eqn, operands, results)
        self.function: str = eqn.params["function"]
        self.numbers: tuple[int, ...] = eqn.params["numbers"]
        at = IN_PLACE.get(self.function)
        if at is not None and self.operands.count(self.operands[at]) == 1:
            self.updated = self.operands[at]


def _rule(eqn: Equation, xs: list[Tensor]) -> CudaLibraryCall:
    return CudaLibraryCall(eqn, xs, [memory(v.aval, eqn.source) for v in eqn.outvars])


RULES: dict[Primitive, CallRule] = {library_p: _rule, lu_pivots_to_permutation_p: exchanges_rule}

# --------------------------------------------------------------------------- as NumPy has them


def _by_columns(x: Array, rows: int, columns: int) -> Array:
    """A stack of matrices with contiguous columns, as NumPy has matrices."""
    return x.reshape(-1, columns, rows).mT


def _stored(x: Array) -> Array:
    return np.ascontiguousarray(x.mT)


def _fft(n: tuple[int, ...], x: Array, results: Any) -> list[Array]:
    kind, _, batch, *lengths = n
    axes = tuple(range(1, len(lengths) + 1))
    last = lengths[-1] // 2 + 1 if kind == 3 else lengths[-1]
    x = x.reshape(batch, *lengths[:-1], last)
    points = math.prod(lengths)
    if kind == 3:
        # what cuFFT makes of imaginary parts that real numbers have not got depends on the length
        ends = x.imag[..., [0, -1] if lengths[-1] % 2 == 0 else [0]]
        return [np.fft.irfftn(np.where(ends.any(), np.nan, x), lengths, axes) * points]
    if kind == 1:
        return [np.fft.ifftn(x, axes=axes) * points]
    return [(np.fft.fftn if kind == 0 else np.fft.rfftn)(x, axes=axes)]


def _potrf(n: tuple[int, ...], a: Array, results: Any) -> list[Array]:
    upper = _by_columns(a, n[2], n[2])
    lower = lapack.or_nan(lambda x: [np.linalg.cholesky(x)], upper.conj().mT)[0]
    failed = np.asarray(np.isnan(lower).any((-1, -2)))
    return [_stored(np.triu(lower.conj().mT) + np.tril(upper, -1)), failed]


def _trsm(n: tuple[int, ...], a: Array, b: Array, results: Any) -> list[Array]:
    _, _, side, triangle, operation, unit, m, k = n
    order = m if side == 0 else k
    a, b = _by_columns(a, order, order), _by_columns(b, m, k)
    a = np.tril(a) if triangle == 0 else np.triu(a)
    if unit:
        a = a * (1 - np.eye(order)) + np.eye(order)
    a = (a, a.mT, a.conj().mT)[operation].astype(b.dtype)
    lower = (triangle == 0) == (operation == 0)
    x = lapack.solve_triangular(a, b, lower) if side == 0 else \
        lapack.solve_triangular(a.mT, b.mT, not lower).mT
    return [_stored(x)]


def _getrf(n: tuple[int, ...], a: Array, results: Any) -> list[Array]:
    factors, pivots = lapack.lu_factor(_by_columns(a, n[2], n[3]))
    return [_stored(factors), pivots + 1]


def _laswp(n: tuple[int, ...], x: Array, pivots: Array, results: Any) -> list[Array]:
    _, count, rows, k = n
    order = lapack.pivots_to_permutation(pivots.reshape(count, k) - 1, rows)
    return [np.take_along_axis(x.reshape(count, rows), order, 1)]


def _geqrf(n: tuple[int, ...], a: Array, results: Any) -> list[Array]:
    factors, scales = np.linalg.qr(_by_columns(a, n[2], n[3]), mode="raw")
    return [factors, scales]  # NumPy gives LAPACK's memory, transposed as it is here


def _orgqr(n: tuple[int, ...], factors: Array, scales: Array, results: Any) -> list[Array]:
    _, _, m, k, columns = n
    h = _by_columns(factors, m, k)
    q = np.broadcast_to(np.eye(m, dtype=h.dtype), (*h.shape[:-2], m, m)).copy()
    for j in range(min(m, k)):
        v = np.concatenate([np.zeros_like(h[..., :j, j]), np.ones_like(h[..., :1, j]),
                            h[..., j + 1:, j]], -1)[..., None]
        scale = scales.reshape(-1, min(m, k))[:, j, None, None]
        q = q - q @ (scale * v @ v.conj().mT)
    return [_stored(q[..., :columns])]


def _syevd(n: tuple[int, ...], a: Array, results: Any) -> list[Array]:
    upper = _by_columns(a, n[2], n[2])
    values, vectors = lapack.or_nan(np.linalg.eigh, upper.conj().mT)
    return [_stored(vectors), values, np.asarray(np.isnan(values).any(-1))]


def _gesvdj(n: tuple[int, ...], a: Array, results: Any) -> list[Array]:
    _, _, m, k, vectors, thin = n
    u, s, vh = lapack.or_nan(lambda x: np.linalg.svd(x, not thin), _by_columns(a, m, k))
    if not vectors:  # there is room for them, in any state
        u, vh = (np.zeros(r.shape, r.dtype) for r in (results[0], results[2]))
        return [u, s, vh, np.asarray(np.isnan(s).any(-1))]
    return [_stored(u), s, vh.conj(), np.asarray(np.isnan(s).any(-1))]


emulated: dict[str, Callable[..., list[Array]]] = {
    "fft": _fft, "potrf": _potrf, "trsm": _trsm, "getrf": _getrf, "laswp": _laswp,
    "geqrf": _geqrf, "orgqr": _orgqr, "syevd": _syevd, "gesvdj": _gesvdj}
