"""Functions of square matrices, by scaling, Pade approximants, Schur forms and roots."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.numpy.common import promote_dtypes_inexact
from functrans.numpy.linalg import inv, matrix_power
from functrans.numpy.linalg import solve as _solve
from functrans.numpy.linalg.factorizations import matrices
from functrans.primitives import matrix
from functrans.primitives.schur import schur_p
from functrans.primitives.sylvester import sylvester, triangular_root, triangular_sylvester_p
from functrans.transforms.custom_jvp import custom_jvp
from functrans.transforms.forward import jvp
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

# (order of the Padé approximant, largest norm for which it is exact to the dtype): Higham, The
# scaling and squaring method for the matrix exponential revisited (2005), table 2.3
_PADE = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


def _pade(a: Array, order: int) -> Array:
    """The diagonal Padé approximant of exp at a: p(a) / p(-a)."""
    b = [math.factorial(2 * order - j) // (math.factorial(order - j) * math.factorial(j))
         * math.factorial(order) / math.factorial(2 * order) for j in range(order + 1)]
    identity = matrix.eye(a.shape, a.dtype)
    square = matrix.matmul(a, a)
    even, odd = b[order - 1] * identity, b[order] * identity
    for j in range(order - 3, -1, -2):
        even = matrix.matmul(even, square) + b[j] * identity
        odd = matrix.matmul(odd, square) + b[j + 1] * identity
    odd = matrix.matmul(a, odd)
    return _solve(even - odd, even + odd)


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices (..., n, n), by scaling, a Padé approximant and squaring.

    NaN where more than `max_squarings` would be needed. Differentiable in both modes.

    >>> import functrans as ft
    >>> ft.scipy.linalg.expm(ft.numpy.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = matrices("expm", A, True)
    if x.ndim > 2:
        stack: Array = vmap(lambda a: expm(a, max_squarings=max_squarings))(x)
        return stack
    order, limit = _PADE[8 if dtypes.real_dtype(x.dtype).itemsize == 8 else 4]
    size = lax.stop_gradient(jnp.max(jnp.sum(jnp.abs(x), 0), initial=0))
    squarings = jnp.maximum(0.0, jnp.ceil(jnp.log2(size / limit)))
    too_many = ~(squarings <= max_squarings)
    squarings = jnp.where(too_many, 0.0, squarings)
    scaled = x * lax.convert_element_type(jnp.exp2(-squarings), x.dtype)
    out = lax.fori_loop(0, squarings.astype("int32"), lambda _, r: matrix.matmul(r, r),
                        _pade(scaled, order))
    out = jnp.triu(out) if upper_triangular else out
    return jnp.where(too_many, math.nan, out)


@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: Literal[True] = True) -> tuple[Array, Array]: ...


@overload
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: Literal[False]) -> Array: ...


def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: bool = True) -> Array | tuple[Array, Array]:
    """expm(A) and its derivative in the direction E, or without `compute_expm` that alone.

    >>> a, e = jnp.zeros((2, 2)), jnp.eye(2)
    >>> ft.scipy.linalg.expm_frechet(a, e, compute_expm=False).round(4)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    a, e = promote_dtypes_inexact("linalg.expm_frechet", A, E)
    value, tangent = jvp(expm, (a,), (e,))
    return (value, tangent) if compute_expm else tangent




def complex_schur(a: Any) -> tuple[Any, Any]:
    """t upper triangular and z unitary with a = z t z*, in a complex dtype."""
    t, z = schur_p.bind(lax.convert_element_type(a, dtypes.complex_dtype(a.dtype)), vectors=True)
    return t, z


def _turned_back(z: Any, t: Any) -> Any:
    return matrix.matmul(z, matrix.matmul(t, matrix.adjoint(z)))


# Roots ---------------------------------------------------------------------------------------


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of square matrices (..., n, n), in a complex dtype.

    By the Schur form (Bjorck and Hammarling, 1983). The derivative L solves X L + L X = E, of every
    order; it is infinite or NaN where eigenvalues of the root add up to zero, as those of a
    singular matrix do. `blocksize` is for SciPy's algorithm.

    >>> import functrans as ft
    >>> ft.scipy.linalg.sqrtm(ft.numpy.diag(ft.numpy.array([4.0, 9.0]))).real.tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    a = matrices("sqrtm", A, True)
    root: Array = _sqrtm(lax.convert_element_type(a, dtypes.complex_dtype(a.dtype)))
    return root


@custom_jvp
def _sqrtm(a: Any) -> Any:
    t, z = complex_schur(a)
    return _turned_back(z, triangular_root(t))


@_sqrtm.defjvp
def _sqrtm_jvp(primals: Any, tangents: Any) -> Any:
    root = _sqrtm(*primals)
    return root, sylvester(root, root, *tangents)


_NEAR = 0.25
"""How far from the identity (in the 1-norm) roots of a matrix are when their logarithm is taken."""
_MOST_ROOTS = 100


def _roots_needed(near: Any) -> Any:
    """Which matrices are too far from the identity."""
    off = near - matrix.eye(near.shape, near.dtype)
    return jnp.max(jnp.sum(jnp.abs(off), -2), -1, initial=0) > _NEAR


def _log_near_one(near: Any, solve: Callable[[Any, Any], Any]) -> Any:
    """The Pade approximant of order 7 of log at a matrix near 1, as Gauss-Legendre quadrature.

    Source: N. Higham, Functions of Matrices (2008), equation 11.18; log(1 + x) is the integral of
    x (1 + s x)^-1 over s from 0 to 1.
    """
    nodes, weights = np.polynomial.legendre.leggauss(7)
    identity = matrix.eye(near.shape, near.dtype)
    off = near - identity
    parts = [float(w / 2) * solve(identity + float((s + 1) / 2) * off, off)
             for s, w in zip(nodes, weights, strict=True)]
    return sum(parts[1:], parts[0])


def _by_roots(a: Any, root: Callable[[Any], Any], solve: Callable[[Any, Any], Any]) -> Any:
    """log(a) = 2^k log(a^(1/2^k)), with as many roots for each matrix as it needs."""
    def unfinished(state: Any) -> Any:
        near, _, count = state
        return jnp.any(_roots_needed(near)) & (count < _MOST_ROOTS)

    def step(state: Any) -> Any:
        near, scale, count = state
        far = _roots_needed(near)
        near = jnp.where(far[..., None, None], root(near), near)
        return near, jnp.where(far, 2 * scale, scale), count + 1

    ones = jnp.ones(a.shape[:-2], dtypes.real_dtype(a.dtype))
    near, scale, _ = lax.while_loop(unfinished, step, (a, ones, np.int32(0)))
    return scale[..., None, None] * _log_near_one(near, solve)


@custom_jvp
def _logm(a: Any) -> Any:
    t, z = complex_schur(a)
    log = _by_roots(matrix.triu(t), triangular_root, _solve_upper)
    # the diagonal is known better than by roots
    identity = matrix.eye(t.shape, t.dtype)
    exact = matrix.scale_rows(jnp.log(matrix.diagonal(t)), identity)
    return _turned_back(z, matrix.triu(log, 1) + exact)


def _solve_upper(a: Any, b: Any) -> Any:
    return lax.linalg.triangular_solve(a, b, left_side=True)


@_logm.defjvp
def _logm_jvp(primals: Any, tangents: Any) -> Any:
    """Roots of the whole matrix have derivatives of every order, where the Schur form has none."""
    _, tangent = jvp(lambda a: _by_roots(a, _sqrtm, _solve), primals, tangents)
    return _logm(*primals), tangent


def logm(A: ArrayLike, disp: bool = True) -> Array | tuple[Array, Array]:
    """The principal logarithm of square matrices (..., n, n), in a complex dtype.

    By inverse scaling and squaring of the Schur form (N. Higham, Functions of Matrices, 2008,
    chapter 11). Infinite or NaN where a matrix is singular. Without `disp` also the error
    norm(expm(logm(A)) - A, 1) / norm(A, 1).

    >>> import functrans as ft
    >>> ft.scipy.linalg.logm(ft.numpy.eye(2)).real.tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    a = matrices("logm", A, True)
    a = lax.convert_element_type(a, dtypes.complex_dtype(a.dtype))
    out: Array = _logm(a)
    if disp:
        return out
    error = jnp.linalg.norm(expm(out) - a, 1, (-2, -1)) / jnp.linalg.norm(a, 1, (-2, -1))
    return out, error


def fractional_matrix_power(A: ArrayLike, t: float) -> Array:
    """A to a real power: the integral part by products, the rest by roots and the logarithm.

    In a complex dtype, unless t is an integer.

    >>> import functrans as ft
    >>> a = ft.numpy.diag(ft.numpy.array([1.0, 8.0]))
    >>> ft.scipy.linalg.fractional_matrix_power(a, 1 / 3).real.round(4).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    a = matrices("fractional_matrix_power", A, True)
    whole = math.floor(t)
    if t == whole:
        return matrix_power(a, int(whole))
    a = lax.convert_element_type(a, dtypes.complex_dtype(a.dtype))
    part = sqrtm(a) if t - whole == 0.5 else expm((t - whole) * _logm(a))
    return jnp.matmul(matrix_power(a, int(whole)), part) if whole else part


def signm(A: ArrayLike, disp: bool = True) -> Array | tuple[Array, Array]:
    """The matrix sign function of square matrices (..., n, n): 1 and -1 in place of eigenvalues.

    By Newton's iteration with scaling; NaN or no limit where eigenvalues are imaginary. The
    derivative L solves N L + L N = E - S E S with N = A S. Source: N. Higham, Functions of Matrices
    (2008), chapter 5. Without `disp` also norm(S S - S, 1) as SciPy has it, of S S = 1.

    >>> import functrans as ft
    >>> ft.scipy.linalg.signm(ft.numpy.diag(ft.numpy.array([2.0, -3.0]))).round(4).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    a = matrices("signm", A, True)
    out: Array = _signm(a)
    if disp:
        return out
    identity = matrix.eye(out.shape, out.dtype)
    return out, jnp.linalg.norm(matrix.matmul(out, out) - identity, 1, (-2, -1))


@custom_jvp
def _signm(a: Any) -> Any:
    size = (-2, -1)
    limit = 10 * a.shape[-1] * float(dtypes.finfo(a.dtype).eps)

    def unfinished(state: Any) -> Any:
        _, change, count = state
        return jnp.any(change > limit) & (count < 100)

    def step(state: Any) -> Any:
        x, change, count = state
        inverse = inv(x)
        scale = jnp.sqrt(jnp.linalg.norm(inverse, axis=size) / jnp.linalg.norm(x, axis=size))
        scale = jnp.where(change > 1e-2, scale, 1)[..., None, None]
        new = 0.5 * (scale * x + inverse / scale)
        moved = jnp.linalg.norm(new - x, axis=size) / jnp.linalg.norm(new, axis=size)
        moved = jnp.where(jnp.isnan(moved), 0, moved)
        done = (change <= limit)[..., None, None]
        return jnp.where(done, x, new), jnp.where(change <= limit, change, moved), count + 1

    start = jnp.full(a.shape[:-2], math.inf, dtypes.real_dtype(a.dtype))
    if 0 in a.shape:
        return a
    x, _, _ = lax.while_loop(unfinished, step, (a, start, np.int32(0)))
    return x


@_signm.defjvp
def _signm_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (t,) = primals, tangents
    s = _signm(a)
    n = matrix.matmul(a, s)
    return s, sylvester(n, n, t - matrix.matmul(s, matrix.matmul(t, s)))


# Any function --------------------------------------------------------------------------------


def funm(A: ArrayLike, func: Callable[[Array], Any], disp: bool = True
         ) -> Array | tuple[Array, Array]:
    """func of square matrices (..., n, n), for a function of complex numbers that works on arrays.

    By the Schur form and Parlett's recurrence, so that eigenvalues must not be close to each other;
    in a complex dtype. Without `disp` also an estimate of the relative error. The derivative needs
    distinct eigenvalues.

    >>> import functrans as ft
    >>> a = ft.numpy.diag(ft.numpy.array([1.0, 2.0]))
    >>> ft.scipy.linalg.funm(a, lambda x: x ** 2).real.tolist()
    [[1.0, 0.0], [0.0, 4.0]]
    """
    t, z = complex_schur(matrices("funm", A, True))
    eigenvalues = matrix.diagonal(t)
    values = lax.convert_element_type(jnp.asarray(func(eigenvalues)), t.dtype)
    if values.shape != eigenvalues.shape:
        raise ArgumentError(f"functrans.scipy.linalg.funm: func gives shape {values.shape} for "
                            f"eigenvalues of shape {eigenvalues.shape}.", where=user_source(),
                            why="it is a function of numbers, applied to all of them.")
    # f(t) = d + x commutes with t: t x - x t = d t - t d, of which the part above the diagonal
    # counts; transposed it is an equation below the diagonal
    moved = matrix.scale_rows(values, t) - matrix.scale_columns(t, values)
    x = triangular_sylvester_p.bind(t, -t, -matrix.swap_last(moved), transposed=True, strict=True)
    x = matrix.swap_last(x) + matrix.scale_rows(values, matrix.eye(t.shape, t.dtype))
    out: Array = _turned_back(z, x)
    if disp:
        return out
    n = t.shape[-1]
    gaps = jnp.abs(eigenvalues[..., :, None] - eigenvalues[..., None, :])
    least = jnp.min(jnp.where(jnp.eye(n, dtype=bool), math.inf, gaps), (-2, -1), initial=math.inf)
    eps = float(dtypes.finfo(t.dtype).eps)
    least = jnp.where(least == 0, eps, least)
    spread = jnp.linalg.norm(matrix.triu(t, 1), 1, (-2, -1)) if n else jnp.zeros_like(least)
    error = jnp.minimum(1.0, jnp.maximum(eps, eps / least * spread))
    return out, jnp.where(jnp.all(jnp.isfinite(out), (-2, -1)), error, math.inf)


def _split(a: Any) -> tuple[Any, Any]:
    """exp(i a) and exp(-i a)."""
    turned = 1j * lax.convert_element_type(a, dtypes.complex_dtype(a.dtype))
    return expm(turned), expm(-turned)


def _like(x: Any, a: Any) -> Any:
    return x if dtypes.kind(a.dtype) == "c" else x.real


def cosm(A: ArrayLike) -> Array:
    """The cosine of square matrices (..., n, n).

    >>> import functrans as ft
    >>> ft.scipy.linalg.cosm(ft.numpy.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    a = matrices("cosm", A, True)
    plus, minus = _split(a)
    out: Array = _like(0.5 * (plus + minus), a)
    return out


def sinm(A: ArrayLike) -> Array:
    """The sine of square matrices (..., n, n).

    >>> import functrans as ft
    >>> ft.scipy.linalg.sinm(ft.numpy.zeros((1, 1))).tolist()
    [[0.0]]
    """
    a = matrices("sinm", A, True)
    plus, minus = _split(a)
    out: Array = _like(-0.5j * (plus - minus), a)
    return out


def tanm(A: ArrayLike) -> Array:
    """The tangent of square matrices (..., n, n).

    >>> import functrans as ft
    >>> ft.scipy.linalg.tanm(ft.numpy.zeros((1, 1))).tolist()
    [[0.0]]
    """
    a = matrices("tanm", A, True)
    plus, minus = _split(a)
    out: Array = _like(-1j * _solve(plus + minus, plus - minus), a)
    return out


def coshm(A: ArrayLike) -> Array:
    """The hyperbolic cosine of square matrices (..., n, n).

    >>> import functrans as ft
    >>> ft.scipy.linalg.coshm(ft.numpy.zeros((1, 1))).tolist()
    [[1.0]]
    """
    a = matrices("coshm", A, True)
    return 0.5 * (expm(a) + expm(-a))


def sinhm(A: ArrayLike) -> Array:
    """The hyperbolic sine of square matrices (..., n, n).

    >>> import functrans as ft
    >>> ft.scipy.linalg.sinhm(ft.numpy.zeros((1, 1))).tolist()
    [[0.0]]
    """
    a = matrices("sinhm", A, True)
    return 0.5 * (expm(a) - expm(-a))


def tanhm(A: ArrayLike) -> Array:
    """The hyperbolic tangent of square matrices (..., n, n).

    >>> import functrans as ft
    >>> ft.scipy.linalg.tanhm(ft.numpy.zeros((1, 1))).tolist()
    [[0.0]]
    """
    a = matrices("tanhm", A, True)
    plus, minus = expm(a), expm(-a)
    return _solve(plus + minus, plus - minus)
