"""Dense linear algebra and Fourier transforms: library functions over stacks of matrices, or lines.

Complex arrays are only handed through: compiled kernels do not compute with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.dims import Size
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.tensor import Call, CLibraryCall, Tensor
from functrans.lowering.rules.library import TYPE_CODES
from functrans.lowering.rules.memory import in_memory
from functrans.primitives.fft import FftType, fft_p
from functrans.primitives.linalg import cholesky_p, lu_p, lu_pivots_to_permutation_p, qr_p
from functrans.primitives.schur import hessenberg_p, reflected_qr_p, schur_p, tridiagonal_p
from functrans.primitives.solve import det_p, slogdet_p, solve_p, triangular_solve_p
from functrans.primitives.spectral import eig_p, eigh_p, svd_p
from functrans.primitives.sylvester import triangular_root_p, triangular_sylvester_p

__all__ = ["RULES"]

CODES = {"float32": 0, "float64": 1, "complex64": 13, "complex128": 14}
FFT_KINDS = {FftType.FFT: 0, FftType.IFFT: 1, FftType.RFFT: 2, FftType.IRFFT: 3}


def _call(name: str, eqn: Equation, xs: Sequence[Tensor], sizes: Sequence[Size],
          outputs: int | None = None) -> Call:
    """`name(dtype, *sizes, *operands, *results)`; results that nobody asked for are NULL."""
    outs = [in_memory(v.aval, eqn.source) for v in eqn.outvars]
    missing = (outputs or len(outs)) - len(outs)
    dtype = eqn.invars[0].aval.dtype
    signature = ", ".join(["i64"] * (1 + len(sizes))
                          + ["void *"] * (len(xs) + len(outs) + missing))
    return CLibraryCall(name, signature, list(xs), outs,
                        [CODES[dtype.name], *sizes, *xs, *outs, *[0] * missing], eqn.source,
                        is_complex=dtype.kind == "c")


def _stack(x: ShapedArray) -> Size:
    count: Size = 1
    for n in x.shape[:-2]:
        count = count * n
    return count


def _is_empty(x: ShapedArray) -> bool:
    return any(isinstance(n, int) and n == 0 for n in x.shape[-2:])


def _known(eqn: Equation) -> bool:
    return eqn.invars[0].aval.dtype.name in CODES


def _square(name: str, results: int | None = None) -> Any:
    def rule(eqn: Equation, xs: list[Tensor]) -> Call | None:
        a = eqn.invars[0].aval
        if not _known(eqn) or _is_empty(a):
            return None
        return _call(name, eqn, xs, [_stack(a), a.shape[-1]], results)

    return rule


def _solve(eqn: Equation, xs: list[Tensor]) -> Call | None:
    a, b = (x.aval for x in eqn.invars)
    if not _known(eqn) or _is_empty(a) or _is_empty(b):
        return None
    return _call("solve", eqn, xs, [_stack(a), a.shape[-1], b.shape[-1]])


def _triangular_solve(eqn: Equation, xs: list[Tensor]) -> Call | None:
    (a, b), p = (x.aval for x in eqn.invars), eqn.params
    if not _known(eqn) or _is_empty(a) or _is_empty(b):
        return None
    columns = b.shape[-1] if p["left_side"] else b.shape[-2]
    flags = [int(p[k]) for k in ("left_side", "lower", "transpose_a", "unit_diagonal",
                                  "conjugate_a")]
    return _call("triangular_solve", eqn, xs, [_stack(a), a.shape[-1], columns, *flags])


def _two_sided(eqn: Equation, xs: list[Tensor]) -> Call | None:
    t, s = (x.aval for x in eqn.invars[:2])
    if not _known(eqn) or _is_empty(t) or _is_empty(s):
        return None
    flags = [int(eqn.params[k]) for k in ("transposed", "strict")]
    return _call("triangular_sylvester", eqn, xs, [_stack(t), t.shape[-1], s.shape[-1], *flags])


def _rectangles(name: str) -> Any:
    def rule(eqn: Equation, xs: list[Tensor]) -> Call | None:
        a = eqn.invars[0].aval
        if not _known(eqn) or _is_empty(a):
            return None
        return _call(name, eqn, xs, [_stack(a), *a.shape[-2:]])

    return rule


def _permutation(eqn: Equation, xs: list[Tensor]) -> Call:
    pivots, out = eqn.invars[0].aval, in_memory(eqn.outvars[0].aval, eqn.source)
    batch: Size = 1
    for n in pivots.shape[:-1]:
        batch = batch * n
    return CLibraryCall("permutation", "i64, i64, i64, i64, const void *, void *", xs, [out],
                        [TYPE_CODES[xs[0].dtype], batch, pivots.shape[-1], out.shape[-1], *xs, out],
                        eqn.source)


def _qr(eqn: Equation, xs: list[Tensor]) -> Call | None:
    a = eqn.invars[0].aval
    if not _known(eqn) or _is_empty(a):
        return None
    return _call("qr", eqn, xs, [_stack(a), *a.shape[-2:], int(eqn.params["full_matrices"])])


def _svd(eqn: Equation, xs: list[Tensor]) -> Call | None:
    a = eqn.invars[0].aval
    if not _known(eqn) or _is_empty(a):
        return None
    return _call("svd", eqn, xs, [_stack(a), *a.shape[-2:], int(eqn.params["full_matrices"])], 3)


def _fft(eqn: Equation, xs: list[Tensor]) -> Call | None:
    lengths = list(eqn.params["fft_lengths"])
    shape = eqn.invars[0].aval.shape
    if not _known(eqn) or any(isinstance(n, int) and n == 0 for n in (*lengths, *shape)):
        return None
    batch: Size = 1
    for n in shape[:len(shape) - len(lengths)]:
        batch = batch * n
    out = in_memory(eqn.outvars[0].aval, eqn.source)
    code = CODES[eqn.invars[0].aval.dtype.name]
    return CLibraryCall("fft", "i64, i64, i64, const i64 *, i64, const void *, void *", xs, [out],
                        [FFT_KINDS[eqn.params["fft_type"]], code, len(lengths), lengths, batch, *xs,
                         out],
                        eqn.source)


RULES: dict[Primitive, Any] = {
    cholesky_p: _square("cholesky"),
    det_p: _square("det"),
    slogdet_p: _square("slogdet"),
    eigh_p: _square("eigh", 2),
    eig_p: _square("eig", 2),
    solve_p: _solve,
    triangular_solve_p: _triangular_solve,
    lu_p: _rectangles("lu"),
    hessenberg_p: _square("hessenberg"),
    tridiagonal_p: _square("tridiagonal"),
    reflected_qr_p: _rectangles("reflected_qr"),
    schur_p: _square("schur", 2),
    triangular_sylvester_p: _two_sided,
    triangular_root_p: _square("triangular_root"),
    lu_pivots_to_permutation_p: _permutation,
    qr_p: _qr,
    svd_p: _svd,
    fft_p: _fft,
}
