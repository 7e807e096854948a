"""Banded matrices in SciPy's storage: element (i, j) of the matrix is ab[u + i - j, j]."""

from __future__ import annotations

from typing import Any, cast

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.lax.banded import solve_band
from functrans.numpy.common import promote_dtypes_inexact
from functrans.primitives import matrix
from functrans.primitives.broadcast import move_axis
from functrans.typing import Array, ArrayLike


def _rows_of(ab: Any, upper: int) -> Any:
    """Rows of the band (..., n, w), column k of which is diagonal k - lower; zero outside."""
    width, n = ab.shape[-2:]
    lower = width - 1 - upper
    place = jnp.arange(n)
    rows = []
    for k in range(width):  # the element (i, i - lower + k)
        offset = k - lower
        line = ab[..., upper - offset, :]
        column = place + offset
        inside = (column >= 0) & (column < n)
        rows.append(jnp.where(inside, line[..., jnp.clip(column, 0, max(n - 1, 0))], 0)
                    if n else line)
    return jnp.stack(rows, -1)


def _solved(rows: Any, lower: int, upper: int, b: Any) -> Array:
    vector = b.ndim == 1
    b = lax.expand_dims(b, (1,)) if vector else b
    lead = jnp.broadcast_shapes(rows.shape[:-2], b.shape[:-2])
    x = solve_band(jnp.broadcast_to(rows, (*lead, *rows.shape[-2:])), lower, upper,
                   jnp.broadcast_to(b, (*lead, *b.shape[-2:])))
    return lax.squeeze(x, (x.ndim - 1,)) if vector else x


def _check(name: str, ab: Any, b: Any) -> None:
    if ab.ndim < 2 or not b.ndim or b.shape[0 if b.ndim == 1 else -2] != ab.shape[-1]:
        raise ShapeError(f"functrans.scipy.linalg.{name}: a band of shape {ab.shape} does not fit "
                         f"right-hand sides of shape {b.shape}.", where=user_source(),
                         why="a band of n columns needs n rows.")


def solve_banded(l_and_u: tuple[int, int], ab: ArrayLike, b: ArrayLike, overwrite_ab: bool = False,
                 overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """x with a x = b for a with l diagonals below the main one and u above it, in ab.

    ab is (..., l + u + 1, n) with the diagonals as rows, b is (n,) or (..., n, k). In n steps with
    partial pivoting; differentiated as a solution. Raises ShapeError when shapes do not fit.

    >>> import functrans as ft
    >>> ab = ft.numpy.array([[0.0, 1.0], [2.0, 2.0], [1.0, 0.0]])
    >>> ft.scipy.linalg.solve_banded((1, 1), ab, ft.numpy.array([3.0, 3.0])).tolist()
    [1.0, 1.0]
    """
    lower, upper = (int(w) for w in l_and_u)
    ab, b = promote_dtypes_inexact("linalg.solve_banded", ab, b)
    _check("solve_banded", ab, b)
    if lower < 0 or upper < 0 or ab.shape[-2] != lower + upper + 1:
        raise ShapeError(f"functrans.scipy.linalg.solve_banded: {l_and_u} does not fit a band of "
                         f"shape {ab.shape}.", where=user_source(),
                         why="it has a row for each of l + u + 1 diagonals.")
    return _solved(_rows_of(ab, upper), lower, upper, b)


def _hermitian_band(ab: Any, lower: bool) -> Any:
    """The whole band of a Hermitian matrix of which one half is given."""
    width, n = ab.shape[-2:]
    others = []
    for k in range(1, width):
        line = matrix.conjugate(ab[..., k if lower else width - 1 - k, :])
        pad = [(0, 0)] * (line.ndim - 1)
        others.append(jnp.pad(line, [*pad, (k, 0)])[..., :n] if lower
                      else jnp.pad(line, [*pad, (0, k)])[..., k:])
    if not others:
        return ab
    extra = jnp.stack(others[::-1] if lower else others, -2)
    return jnp.concatenate([extra, ab] if lower else [ab, extra], -2)


def solveh_banded(ab: ArrayLike, b: ArrayLike, overwrite_ab: bool = False,
                  overwrite_b: bool = False, lower: bool = False, check_finite: bool = True
                  ) -> Array:
    """x with a x = b for Hermitian positive definite a, whose upper (lower) diagonals are in ab.

    ab is (..., u + 1, n), b is (n,) or (..., n, k). Raises ShapeError when shapes do not fit.

    >>> import functrans as ft
    >>> ab = ft.numpy.array([[0.0, 1.0], [2.0, 2.0]])
    >>> ft.scipy.linalg.solveh_banded(ab, ft.numpy.array([3.0, 3.0])).tolist()
    [1.0, 1.0]
    """
    ab, b = promote_dtypes_inexact("linalg.solveh_banded", ab, b)
    _check("solveh_banded", ab, b)
    width = ab.shape[-2] - 1
    return _solved(_rows_of(_hermitian_band(ab, lower), width), width, width, b)


def cholesky_banded(ab: ArrayLike, overwrite_ab: bool = False, lower: bool = False,
                    check_finite: bool = True) -> Array:
    """The Cholesky factor of a Hermitian positive definite band, in the same storage.

    With `lower` the L of L L* in lower form, else the U of U* U in upper form. NaN where the matrix
    is not positive definite.

    >>> import functrans as ft
    >>> ab = ft.numpy.array([[4.0, 5.0], [2.0, 0.0]])
    >>> ft.scipy.linalg.cholesky_banded(ab, lower=True).tolist()
    [[2.0, 2.0], [1.0, 0.0]]
    """
    (ab,) = promote_dtypes_inexact("linalg.cholesky_banded", ab)
    if ab.ndim < 2:
        raise ShapeError(f"functrans.scipy.linalg.cholesky_banded: ab has shape {ab.shape}.",
                         where=user_source(), why="it has a row for each diagonal.")
    width, n = ab.shape[-2:]
    if not lower:  # row k of the upper form is the conjugate of diagonal w - 1 - k, moved
        flipped: Array = _flipped(cholesky_banded(_flipped(ab, True), lower=True), False)
        return flipped
    if 0 in ab.shape:
        return ab
    axis = ab.ndim - 1
    columns = move_axis(ab, axis, 0)  # (n, ..., w): column j from its diagonal on

    def step(window: Any, column: Any) -> Any:
        # window[..., q, :]: what the columns before say of this one and the w - 1 after it
        first = column - window[..., 0, :]
        root = lax.sqrt(matrix.real_part(first[..., :1]))
        real = lax.convert_element_type(root, first.dtype)
        done = jnp.concatenate([real, first[..., 1:] / real], -1)
        # column j + q gets done[q:] conj(done[q])
        added = []
        for q in range(1, width):
            rest = done[..., q:] * matrix.conjugate(done[..., q:q + 1])
            added.append(jnp.pad(rest, [(0, 0)] * (rest.ndim - 1) + [(0, q)]))
        zero = jnp.zeros_like(first)
        moved = jnp.concatenate([window[..., 1:, :], zero[..., None, :]], -2)
        update = jnp.stack([*added, zero], -2)
        return moved + update, done

    start = jnp.zeros((*columns.shape[1:-1], width, width), ab.dtype)
    _, found = lax.scan(step, start, columns)
    out = move_axis(found, 0, axis)
    row, column = jnp.arange(width)[:, None], jnp.arange(n)[None, :]
    result: Array = jnp.where(row + column < n, out, 0)
    return result


def _flipped(ab: Any, to_lower: bool) -> Any:
    """The lower form of the conjugate transpose of an upper one, or the reverse."""
    width, n = ab.shape[-2:]
    rows = []
    for k in range(width):
        line = matrix.conjugate(ab[..., width - 1 - k, :])
        pad = [(0, 0)] * (line.ndim - 1)
        shift = k if to_lower else width - 1 - k
        rows.append(jnp.pad(line, [*pad, (0, shift)])[..., shift:] if to_lower
                    else jnp.pad(line, [*pad, (shift, 0)])[..., :n])
    return jnp.stack(rows, -2)


def cho_solve_banded(cb_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False,
                     check_finite: bool = True) -> Array:
    """x with a x = b for the a whose cholesky_banded is given, with whether it is the lower one.

    >>> import functrans as ft
    >>> factor = ft.scipy.linalg.cholesky_banded(ft.numpy.array([[4.0, 4.0]]))
    >>> ft.scipy.linalg.cho_solve_banded((factor, False), ft.numpy.ones(2)).tolist()
    [0.25, 0.25]
    """
    band, lower = cb_and_lower
    band, b = promote_dtypes_inexact("linalg.cho_solve_banded", band, b)
    _check("cho_solve_banded", band, b)
    width = band.shape[-2] - 1
    low, up = (band, _flipped(band, False)) if lower else (_flipped(band, True), band)
    half = _solved(_rows_of(low, 0), width, 0, b)
    return _solved(_rows_of(up, width), 0, width, half)


def eig_banded(a_band: ArrayLike, lower: bool = False, eigvals_only: bool = False,
               overwrite_a_band: bool = False, select: str = "a",
               select_range: tuple[float, float] | None = None, max_ev: int = 0,
               check_finite: bool = True) -> Array | tuple[Array, Array]:
    """Eigenvalues w, increasing, and vectors v of a Hermitian band, or w alone.

    As of the whole matrix; `select="i"` keeps those of numbers select_range[0] to select_range[1].
    Raises ArgumentError for another `select`, as the size of what "v" selects is not known before.

    >>> import functrans as ft
    >>> ab = ft.numpy.array([[0.0, 1.0], [2.0, 2.0]])
    >>> ft.scipy.linalg.eig_banded(ab, eigvals_only=True).round(4).tolist()
    [1.0, 3.0]
    """
    (ab,) = promote_dtypes_inexact("linalg.eig_banded", a_band)
    width = ab.shape[-2]
    whole = dense_of(_rows_of(_hermitian_band(ab, lower), width - 1), width - 1)
    found: Array | tuple[Array, Array] = selected_eigh("eig_banded", whole, eigvals_only, select,
                                                       select_range)
    return found


def eigvals_banded(a_band: ArrayLike, lower: bool = False, overwrite_a_band: bool = False,
                   select: str = "a", select_range: tuple[float, float] | None = None,
                   check_finite: bool = True) -> Array:
    """The eigenvalues of a Hermitian band, increasing; see `eig_banded`.

    >>> import functrans as ft
    >>> ft.scipy.linalg.eigvals_banded(ft.numpy.array([[1.0, 2.0]])).tolist()
    [1.0, 2.0]
    """
    return cast("Array", eig_banded(a_band, lower, True, select=select,
                                    select_range=select_range))


def dense_of(rows: Any, lower: int) -> Any:
    """The whole matrix of a band."""
    *lead, n, width = rows.shape
    out = jnp.zeros((*lead, n, n), rows.dtype)
    place = jnp.arange(n)
    for k in range(width):
        at = place[None, :] == place[:, None] + (k - lower)
        out = jnp.where(at, rows[..., k:k + 1], out)
    return out


def selected_eigh(name: str, a: Any, eigvals_only: bool, select: str,
                  select_range: tuple[float, float] | None) -> Any:
    """Some of the eigenvalues of Hermitian matrices, with vectors or without."""
    n = a.shape[-1]
    subset = None
    if select in ("i", 1):
        if select_range is None:
            raise ArgumentError(f"functrans.scipy.linalg.{name}: select='i' needs select_range.",
                                where=user_source(), fix=f"select_range=(0, {n - 1})")
        subset = (int(select_range[0]), int(select_range[1]) + 1)
    elif select not in ("a", 0):
        raise ArgumentError(f"functrans.scipy.linalg.{name}: select={select!r}.",
                            where=user_source(), why="how many eigenvalues are in a range is not "
                            "known before they are computed.", fix="select='a' or 'i'")
    if eigvals_only:
        w = jnp.linalg.eigvalsh(a)
        return w if subset is None else w[..., slice(*subset)]
    w, v = jnp.linalg.eigh(a)
    return (w, v) if subset is None else (w[..., slice(*subset)], v[..., slice(*subset)])
