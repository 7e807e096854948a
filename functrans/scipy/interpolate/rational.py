"""Rational functions: through values in barycentric form, and from power series."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError, shown
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.numpy.common import axis_index
from functrans.scipy.arguments import inexact, known_size, known_values, value_of
from functrans.scipy.interpolate.polynomials import BarycentricInterpolator
from functrans.scipy.products import matmul
from functrans.typing import Array, ArrayLike

R = TypeVar("R", bound="_Rational")


class _Rational:
    """The quotient of sum w f / (z - z_k) and sum w / (z - z_k), as a tree."""

    support_points: Array
    support_values: Array
    weights: Array
    axis: int

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """Places, values and weights are children."""
        return tuple((GetAttrKey(n), getattr(self, n)) for n in (
            "support_points", "support_values", "weights")), self.axis

    @classmethod
    def tree_unflatten(cls: type[R], aux: Any, children: Iterable[Any]) -> R:
        """An interpolator, without its construction."""
        made = object.__new__(cls)
        made.support_points, made.support_values, made.weights = children
        made.axis = aux
        return made

    def __call__(self, z: ArrayLike) -> Array:
        """The values at places."""
        at, _ = inexact(z, self.support_points)
        flat = at.reshape(-1)
        finite = jnp.isfinite(flat)
        flat = jnp.where(finite, flat, 0)
        apart = flat[:, None] - self.support_points
        # the factor of the nearest place is taken out of both sums: they are finite at a place
        near = jnp.argmin(jnp.abs(apart), axis=1)
        is_near = near[:, None] == jnp.arange(self.support_points.shape[0])
        least = jnp.sum(jnp.where(is_near, apart, 0), axis=1, keepdims=True)
        parts = self.weights * jnp.where(is_near, 1, least / jnp.where(is_near, 1, apart))
        lines = self.support_values.reshape(self.support_values.shape[0], -1)
        kind = jnp.promote_types(parts.dtype, lines.dtype)
        value = matmul(parts.astype(kind), lines.astype(kind)) / jnp.sum(parts, 1)[:, None]
        far = matmul(self.weights.astype(kind)[None], lines.astype(kind)) / jnp.sum(self.weights)
        beyond = jnp.where(jnp.isnan(at.reshape(-1))[:, None], math.nan, far)
        value = jnp.where(finite[:, None], value, beyond)
        value = value.reshape(*at.shape, *self.support_values.shape[1:])
        return jnp.moveaxis(value, 0, self.axis) if at.ndim else value

    def _pencil(self, row: Array) -> Array:
        """The finite eigenvalues of the arrow of a row and the places: zeros of its sum.

        Source: Klein, Applications of Linear Barycentric Rational Interpolation (2012).
        """
        places, tops = (known_values("interpolate.AAA", n, v, "how many there are depends on it.",
                                     "call it before jit") for n, v in (
            ("x", self.support_points), ("y", row)))
        # sum r_k / (z - z_k) times the product of all z - z_k: a companion on the places
        m = len(places)
        if m < 2:
            return jnp.zeros(0, dtypes.default_complex())
        kind = np.result_type(places, tops, 1.0)
        arrow = np.zeros((m + 1, m + 1), kind)
        arrow[0, 1:], arrow[1:, 0] = tops, 1
        arrow[range(1, m + 1), range(1, m + 1)] = places
        # with B = diag(0, 1, ..., 1) two eigenvalues are infinite: shifted and inverted they are 0
        shift = places.mean() + 1j * (np.ptp(places.real) + np.ptp(places.imag) + 1.0)
        moved = arrow - shift * np.diag([0.0] + [1.0] * m)
        inverted = np.linalg.eigvals(np.linalg.solve(moved, np.diag([0.0] + [1.0] * m)))
        order = np.argsort(-np.abs(inverted))[:m - 1]
        return jnp.asarray(shift + 1 / inverted[order])

    def poles(self) -> Array:
        """The poles, outside of `jit`."""
        return self._polished(self._pencil(self.weights), self.weights)

    def roots(self) -> Array:
        """The zeros, outside of `jit`, of values along one axis."""
        self._one_axis("roots")
        row = self.weights * self.support_values
        return self._polished(self._pencil(row), row)

    def residues(self) -> Array:
        """The residues at the poles, in their order."""
        self._one_axis("residues")
        inverse = 1 / (self.poles()[:, None] - self.support_points)
        top = jnp.sum(inverse * self.support_values * self.weights, axis=1)
        return -top / jnp.sum(inverse**2 * self.weights, axis=1)

    def _polished(self, found: Array, row: Array) -> Array:
        """Zeros after a step of Newton's, whose derivative is theirs."""
        inverse = 1 / (found[:, None] - self.support_points)
        value = jnp.sum(inverse * row, axis=1)
        slope = lax.stop_gradient(-jnp.sum(inverse**2 * row, axis=1))
        step = value / jnp.where(slope == 0, 1, slope)
        small = lax.stop_gradient(jnp.abs(step) <= 1e-3 * (1 + jnp.abs(found)))
        return found - jnp.where(small, step, 0)

    def _one_axis(self, name: str) -> None:
        if self.support_values.ndim != 1:
            raise ShapeError(f"functrans.scipy.interpolate.{type(self).__name__}.{name}: values "
                             f"have shape {self.support_values.shape}.", where=user_source(),
                             why="they have one axis.")


@register_pytree_with_keys_class
class FloaterHormannInterpolator(_Rational):
    """The rational function through values at points that blends polynomials of degree d.

    It has no real poles, and an error of the order h**(d + 1). Points are distinct, real or
    complex, in any order. It is a tree, differentiated in points, values and places, and has
    `poles()`, `residues()` and `roots()`. Source: Floater and Hormann, Numer. Math. 107 (2007).

    >>> import functrans as ft
    >>> x = ft.numpy.linspace(0.0, 3.0, 12)
    >>> f = ft.scipy.interpolate.FloaterHormannInterpolator(x, ft.numpy.sin(x))
    >>> round(float(f(1.0)), 3)
    0.841
    >>> f.poles().size == f.residues().size, f.roots().size > 0
    (True, True)
    """

    def __init__(self, points: ArrayLike, values: ArrayLike, *, d: int = 3, axis: int = 0) -> None:
        name = "interpolate.FloaterHormannInterpolator"
        f, _ = inexact(values, points)
        (z,) = inexact(points)
        place = axis_index(axis, f.ndim, "FloaterHormannInterpolator")
        f = jnp.moveaxis(f, place, 0)
        if z.ndim != 1 or f.shape[0] != z.shape[0]:
            raise ShapeError(f"functrans.scipy.{name}: points has shape {z.shape}, values "
                             f"{jnp.shape(values)}.", where=user_source(),
                             why="there is a value for each point.")
        n = z.shape[0]
        degree = known_size(name, "d", d, 0)
        if degree >= n:
            raise ArgumentError(f"functrans.scipy.{name}: d is {degree}.", where=user_source(),
                                why=f"it is less than the number of points, {n}.")
        if value_of(z) is not None and dtypes.kind(z.dtype) != "c":
            order = np.argsort(np.asarray(value_of(z)), kind="stable")
            z, f = z[order], f[order]
        weights = []
        for k in range(n):
            total: Any = 0
            for i in range(max(k - degree, 0), min(k + 1, n - degree)):
                others = np.array([j for j in range(i, i + degree + 1) if j != k], int)
                total = total + 1 / jnp.prod(jnp.abs(z[k] - z[others]))
            weights.append(total * (-1.0) ** (k - degree))
        self.support_points, self.support_values, self.axis = z, f, place
        self.weights = jnp.stack([jnp.asarray(w) for w in weights]).astype(z.dtype)


@register_pytree_with_keys_class
class AAA(_Rational):
    """The rational function near to values y at places x, real or complex, with as few terms.

    Terms are added where the error is largest, up to `max_terms`, until it is `rtol` (eps**0.75)
    times the largest value; `errors` are those on the way. `clean_up` removes poles whose residue
    is less than `clean_up_tol` times the values. It is made of known values outside of `jit`, and
    is a tree that is called within, with `poles()`, `residues()` and `roots()`.
    Source: Nakatsukasa, Sète and Trefethen, SIAM J. Sci. Comput. 40 (2018).

    >>> import functrans as ft
    >>> x = np.linspace(-1.0, 1.0, 100)
    >>> f = ft.scipy.interpolate.AAA(x, np.exp(x))
    >>> f.support_points.size < 12, round(float(f(0.5)), 4)
    (True, 1.6487)
    >>> f.poles().size == f.residues().size, f.roots().size > 0, f.clean_up()
    (True, True, 0)
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, *, rtol: float | None = None,
                 max_terms: int = 100, clean_up: bool = True, clean_up_tol: float = 1e-13) -> None:
        most = known_size("interpolate.AAA", "max_terms", max_terms)
        fix = "AAA(x, y)  # before jit"
        z, f = (known_values("interpolate.AAA", n, v, "the terms are chosen by it.", fix)
                for n, v in (("x", x), ("y", y)))
        if z.ndim != 1 or f.shape != z.shape or not z.size or not np.isfinite(z).all():
            raise ShapeError(f"functrans.scipy.interpolate.AAA: x has shape {z.shape}, y "
                             f"{f.shape}.", where=user_source(),
                             why="both are vectors of one length, and x is finite.")
        kept = np.isfinite(f)
        z, first = np.unique(z[kept], return_index=True)
        f = f[kept][first]
        kind = np.result_type(z, f, 1.0)
        z, f = z.astype(np.result_type(z, 1.0)), f.astype(np.result_type(f, 1.0))
        tolerance = float(np.finfo(kind).eps ** 0.75 if rtol is None else rtol)
        chosen, weights, self.errors = _greedy(z, f, kind, tolerance, most)
        self.axis = 0
        self._set(z[chosen], f[chosen], weights)
        self._data = z, f
        if clean_up:
            self.clean_up(clean_up_tol)

    def _set(self, z: Any, f: Any, weights: Any) -> None:
        some = weights != 0
        self.support_points, self.support_values, self.weights = (
            jnp.asarray(v[some]) for v in (z, f, weights))

    def clean_up(self, cleanup_tol: float = 1e-13) -> int:
        """Remove poles of a residue that is nothing beside the values; how many there were."""
        z, f = self._data
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.exp(np.mean(np.log(np.abs(f))))
            poles, residues = np.asarray(self.poles()), np.asarray(self.residues())
            if not poles.size:
                return 0
            near = np.abs(poles[:, None] - z).min(1)
            faint = np.flatnonzero(np.abs(residues) / near < cleanup_tol * mean)
        if not faint.size:
            return 0
        warnings.warn(f"AAA: {faint.size} poles have no residue, and are removed", RuntimeWarning,
                      stacklevel=2)
        places = np.asarray(self.support_points)
        lost = np.argmin(np.abs(places[:, None] - poles[faint]), axis=0)
        places = np.delete(places, lost)
        values = np.delete(np.asarray(self.support_values), lost)
        other = ~np.isin(z, places)
        cauchy = 1 / (z[other][:, None] - places)
        loewner = f[other][:, None] * cauchy - cauchy * values
        self._set(places, values, np.linalg.svd(loewner)[2][len(places) - 1].conj())
        return int(faint.size)


def _greedy(z: Any, f: Any, kind: Any, rtol: float, most: int) -> tuple[Any, Any, Any]:
    """The indices of the places that are met, the weights, and the errors on the way."""
    eps = float(np.finfo(kind).eps)
    scale = np.abs(f).max(initial=0.0)
    chosen: list[int] = []
    rest = np.ones(len(z), bool)
    fitted = np.full(len(z), f.mean(), kind)
    errors: list[float] = []
    weights = np.ones(1, kind)
    ill = False
    while len(chosen) < min(most, len(z)):
        error = np.where(rest, np.abs(f - fitted), -1)
        best = int(np.argmax(error))
        chosen.append(best)
        rest[best] = False
        m = len(chosen)
        cauchy = 1 / (z[rest][:, None] - z[chosen])
        loewner = (f[rest][:, None] - f[chosen]) * cauchy
        if rest.sum() >= m:
            _, sizes, vt = np.linalg.svd(loewner, full_matrices=False)
            with np.errstate(divide="ignore", invalid="ignore"):
                ill = ill or bool(sizes[0] / sizes[-1] > 1 / (3 * eps))
            norms = np.ones(m)
            if ill:  # columns of one norm
                norms = np.linalg.norm(loewner, axis=0)
                norms = np.where(norms == 0, 1, norms)
                _, sizes, vt = np.linalg.svd(loewner / norms, full_matrices=False)
            same = sizes == sizes.min()
            weights = (vt.conj()[same].sum(0) / np.sqrt(same.sum())).astype(kind) / norms
        else:
            _, sizes, vt = np.linalg.svd(loewner)
            rank = int((sizes > max(loewner.shape) * eps * sizes.max(initial=0.0)).sum())
            kernel = vt[rank:].conj()
            weights = (kernel.sum(0) / np.sqrt(len(kernel))).astype(kind)
        fitted = f.astype(kind)
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient = cauchy @ (weights * f[chosen]) / (cauchy @ weights)
        fitted[rest] = np.where(np.isfinite(quotient), quotient, f[rest])
        errors.append(float(np.abs(f - fitted).max(initial=0.0)))
        if errors[-1] <= rtol * scale:
            return chosen, weights, np.array(errors)
    warnings.warn(f"AAA: {len(chosen)} terms leave an error of {errors[-1]:.1e}", RuntimeWarning,
                  stacklevel=4)
    return chosen, weights, np.array(errors)


def pade(an: ArrayLike, m: int, n: int | None = None) -> tuple[Array, Array]:
    """The polynomials p of degree n and q of degree m whose quotient has the power series `an`.

    Coefficients are highest power first, for `jnp.polyval`; q ends in 1. n is as large as can be by
    default. Raises ArgumentError for more than len(an) - 1 in all.
    Source: Baker and Graves-Morris, Padé Approximants (1996), ch. 1.

    >>> import functrans as ft
    >>> p, q = ft.scipy.interpolate.pade([1.0, 1.0, 0.5], 1)
    >>> p.tolist(), q.tolist()
    ([0.5, 1.0], [-0.5, 1.0])
    """
    (a,) = inexact(an)
    below = known_size("interpolate.pade", "m", m, 0)
    above = a.shape[0] - 1 - below if n is None else known_size("interpolate.pade", "n", n, 0)
    if a.ndim != 1 or above < 0 or above + below > a.shape[0] - 1:
        raise ArgumentError(f"functrans.scipy.interpolate.pade: an has shape {a.shape}, m is "
                            f"{below}, n {shown(n)}.", where=user_source(),
                            why="m + n is less than the number of coefficients.")
    total = above + below
    # q times the series has no powers from n + 1 to n + m
    index = np.arange(above + 1, total + 1)[:, None] - np.arange(1, below + 1)
    rows = jnp.where(index >= 0, a[np.maximum(index, 0)], 0)
    q = jnp.concatenate([jnp.ones(1, a.dtype), jnp.linalg.solve(rows, -a[above + 1:total + 1])]) \
        if below else jnp.ones(1, a.dtype)
    p = jnp.convolve(q, a[:above + 1], precision="highest")[:above + 1]
    return p[::-1], q[::-1]


def approximate_taylor_polynomial(f: Callable[..., Any], x: ArrayLike, degree: int,
                                  scale: ArrayLike, order: int | None = None) -> Array:
    """The coefficients, highest power first, of the polynomial of a degree near to f around x.

    It is the start of the one of degree `order` (the same) through f at places within `scale` of x;
    of functions of jnp, `jet` has the exact one. f takes a vector.

    >>> import functrans as ft
    >>> ft.scipy.interpolate.approximate_taylor_polynomial(lambda x: x ** 2, 1.0, 2, 0.5
    ...                                                    ).round(3).tolist()
    [1.0, 2.0, 1.0]
    """
    least = known_size("interpolate.approximate_taylor_polynomial", "degree", degree, 0)
    n = (least if order is None else known_size(
        "interpolate.approximate_taylor_polynomial", "order", order, least)) + 1
    centre, width = inexact(x, scale)
    # SciPy's places: the last one of Chebyshev's is left out
    places = width * jnp.asarray(np.cos(np.linspace(0, np.pi, n, endpoint=False))).astype(
        width.dtype) + centre
    line = BarycentricInterpolator(places, jnp.asarray(f(places)))
    rows = [line.derivative(centre, k) / math.factorial(k) for k in range(least + 1)]
    return jnp.stack(rows[::-1])
