"""Schur and Hessenberg forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import promote_dtypes_inexact
from functrans.numpy.linalg.factorizations import matrices
from functrans.primitives import matrix
from functrans.primitives.schur import schur_p
from functrans.scipy.linalg.functions import complex_schur
from functrans.typing import Array, ArrayLike


def schur(a: ArrayLike, output: str = "real", lwork: object = None, overwrite_a: bool = False,
          sort: None = None, check_finite: bool = True) -> tuple[Array, Array]:
    """T and unitary Z with a = Z T Z*, for square matrices (..., n, n).

    With `output="complex"` T is upper triangular in a complex dtype; with "real" that of a real
    matrix is real, with blocks of 2 x 2 for complex pairs of eigenvalues. The complex form has a
    derivative where eigenvalues are distinct, the real one has none. NaN where a is not finite.
    Raises ArgumentError for another `output` and for `sort`.

    >>> import functrans as ft
    >>> t, z = ft.scipy.linalg.schur(ft.numpy.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t.tolist()
    [[1.0, 2.0], [0.0, 3.0]]
    """
    if output not in ("real", "complex", "r", "c"):
        raise ArgumentError(f"functrans.scipy.linalg.schur: output={output!r}.",
                            where=user_source(), fix="output='real' or 'complex'")
    if sort is not None:
        raise ArgumentError("functrans.scipy.linalg.schur does not sort eigenvalues.",
                            where=user_source(), fix="sort=None")
    x = matrices("schur", a, True)
    if output in ("complex", "c"):
        return complex_schur(x)
    t, z = schur_p.bind(x, vectors=True)
    return t, z


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form of a matrix from its real one, in complex dtypes.

    One rotation for each element below the diagonal that is not zero. Raises ShapeError when T and
    Z are not square matrices of one shape.

    >>> import functrans as ft
    >>> t, z = ft.scipy.linalg.rsf2csf(*ft.scipy.linalg.schur(
    ...     ft.numpy.array([[0.0, 1.0], [-1.0, 0.0]])))
    >>> sorted(ft.numpy.diag(t).imag.round(4).tolist())
    [-1.0, 1.0]
    """
    t, z = promote_dtypes_inexact("linalg.rsf2csf", T, Z)
    t, z = matrices("rsf2csf", t, True), matrices("rsf2csf", z, True)
    if t.shape != z.shape:
        raise ShapeError(f"functrans.scipy.linalg.rsf2csf: T has shape {t.shape}, Z {z.shape}.",
                         where=user_source(), why="both are of one matrix.")
    dtype = dtypes.complex_dtype(t.dtype)
    t, z = (lax.convert_element_type(x, dtype) for x in (t, z))
    n = t.shape[-1]
    if n < 2:
        return t, z
    axis = t.ndim - 2

    def rows_of(x: Any, m: Any) -> tuple[Any, Any]:
        return (lax.dynamic_index_in_dim(x, m - 1, axis, keepdims=False),
                lax.dynamic_index_in_dim(x, m, axis, keepdims=False))

    def with_rows(x: Any, m: Any, one: Any, two: Any) -> Any:
        return lax.dynamic_update_slice_in_dim(x, jnp.stack([one, two], -2), m - 1, axis)

    def step(i: Any, state: Any) -> Any:
        t, z = state  # z transposed: what its columns undergo, rows of this do
        m = n - 1 - i
        upper, lower = rows_of(t, m)
        a, b = (lax.dynamic_index_in_dim(upper, m - q, axis) for q in (1, 0))
        c, d = (lax.dynamic_index_in_dim(lower, m - q, axis) for q in (1, 0))
        none = c == 0
        mean, half = 0.5 * (a + d), 0.5 * (a - d)
        root = jnp.sqrt(half * half + b * c)
        # (mu, c) is what the rotation turns into its first axis, mu = eigenvalue - d
        mu = jnp.where(jnp.abs(mean + root - d) > jnp.abs(mean - root - d), mean + root - d,
                       mean - root - d)
        size = jnp.sqrt(matrix.real_part(mu * jnp.conj(mu) + c * jnp.conj(c)))
        safe = jnp.where(none, 1, size)
        co = jnp.where(none, 1, mu / safe)
        si = jnp.where(none, 0, c / safe)
        t = with_rows(t, m, jnp.conj(co) * upper + jnp.conj(si) * lower,
                      co * lower - si * upper)
        t = matrix.swap_last(t)
        for k, x in enumerate((t, z)):
            one, two = rows_of(x, m)
            turned = with_rows(x, m, co * one + si * two,
                               jnp.conj(co) * two - jnp.conj(si) * one)
            t, z = (turned, z) if k == 0 else (t, turned)
        return matrix.swap_last(t), z

    t, z = lax.fori_loop(0, n - 1, step, (t, matrix.swap_last(z)))
    return matrix.triu(t), matrix.swap_last(z)


def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> Array | tuple[Array, Array]:
    """The upper Hessenberg form H of square matrices, with `calc_q` also unitary Q: a = Q H Q*.

    Without derivative.

    >>> import functrans as ft
    >>> h, q = ft.scipy.linalg.hessenberg(ft.numpy.ones((3, 3)), calc_q=True)
    >>> float(h[2, 0])
    0.0
    """
    x = matrices("hessenberg", a, True)
    n = x.shape[-1]
    packed, taus = lax.linalg.hessenberg(x)
    h: Array = matrix.triu(packed, -1)
    if not calc_q:
        return h
    if n < 2:
        return h, matrix.eye(x.shape, x.dtype)
    inner = lax.linalg.householder_product(matrix.columns(matrix.rows(packed, 1, n), 0, n - 1),
                                           taus)
    pad = [(0, 0)] * (x.ndim - 2)
    q = jnp.pad(inner, [*pad, (1, 0), (1, 0)])
    corner = np.zeros((n, n), bool)
    corner[0, 0] = True
    return h, jnp.where(corner, 1, q)
