"""Least squares by Levenberg and Marquardt's method, with bounds and robust losses; curve_fit."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.optimize.implicit import Function, at_least_eps, solution, start_of
from functrans.scipy.optimize.minimizing import limits_of
from functrans.scipy.optimize.results import LeastSquaresResults
from functrans.scipy.products import matmul, pinv, vdot
from functrans.transforms.derivatives import jacfwd
from functrans.transforms.flat import check_callable
from functrans.typing import Array, ArrayLike

_LOSSES = ("linear", "soft_l1", "huber", "cauchy", "arctan")
Loss = Callable[[Array], Array]


class Fit(NamedTuple):
    """The state of a search: residuals and Jacobian of the weighted problem, and the damping."""

    x: Array
    f: Array
    jac: Array
    damping: Array
    growth: Array
    nfev: Array
    njev: Array
    status: Array


def least_squares(fun: Function, x0: ArrayLike, jac: str | Function = "2-point",
                  bounds: Any = (-np.inf, np.inf), method: str = "trf", ftol: float | None = 1e-8,
                  xtol: float | None = 1e-8, gtol: float | None = 1e-8,
                  x_scale: ArrayLike | str | None = None, loss: str | Loss = "linear",
                  f_scale: float = 1.0, *, max_nfev: int | None = None, args: tuple[Any, ...] = (),
                  kwargs: Mapping[str, Any] | None = None) -> LeastSquaresResults:
    """x with the least sum of squares of the residuals `fun(x, *args, **kwargs)`, a vector.

    `jac` is a function, or the Jacobian is that of `fun`, by forward mode. Within `bounds` (a pair
    of lower and upper ones) variables are held where the gradient pushes them out. `loss` is
    "linear", "soft_l1", "huber", "cauchy" or "arctan" of squared residuals, about `f_scale`.
    `method` is "lm", "trf" or "dogbox": all run Levenberg and Marquardt's method. `x_scale` scales
    the variables, or "jac" by the Jacobian.

    x is differentiated by the implicit function theorem in what `fun` closes over and in `args`;
    cost and residuals follow. Raises ShapeError where x0 or the residuals are no vectors.
    Source: Madsen, Nielsen and Tingleff, Methods for non-linear least squares problems (2004);
    for bounds Kanzow, Yamashita and Fukushima, J. Comput. Appl. Math. 172 (2004).

    >>> import functrans as ft
    >>> t = ft.numpy.arange(4.0)
    >>> found = ft.scipy.optimize.least_squares(lambda x: x[0] * t + x[1] - (2 * t + 1),
    ...                                         ft.numpy.zeros(2))
    >>> found.x.round(3).tolist()
    [2.0, 1.0]
    """
    one_of("optimize.least_squares", "method", method, ("trf", "dogbox", "lm"))
    check_callable(fun, "scipy.optimize.least_squares")
    x = jnp.atleast_1d(start_of("least_squares", "x0", x0))
    if x.ndim != 1:
        raise ShapeError(f"functrans.scipy.optimize.least_squares: x0 has shape {x.shape}.",
                         where=user_source(), why="it is a vector.", fix="x0.reshape(-1)")
    more = dict(kwargs or {})

    def residuals(z: Array) -> Array:
        f = jnp.atleast_1d(jnp.asarray(fun(z, *args, **more)))
        if f.ndim != 1:
            raise ShapeError(f"functrans.scipy.optimize.least_squares: the residuals have shape "
                             f"{f.shape}.", where=user_source(), why="they are a vector.",
                             fix="return (...).reshape(-1)")
        return f.astype(x.dtype)

    def jacobian(z: Array) -> Array:
        if callable(jac):
            return jnp.atleast_2d(jnp.asarray(jac(z, *args, **more))).astype(x.dtype)
        found: Array = jacfwd(residuals)(z)
        return found

    if not callable(jac):
        one_of("optimize.least_squares", "jac", jac, ("2-point", "3-point", "cs"))
    rho = _loss(loss, f_scale)
    lower, upper = limits_of(bounds, x)
    if x_scale is None or isinstance(x_scale, str):
        one_of("optimize.least_squares", "x_scale", x_scale, (None, "jac"))
        scale: Any = None if x_scale is None else "jac"
    else:
        scale = jnp.broadcast_to(inexact(x_scale)[0], x.shape).astype(x.dtype)
    limit = 100 * x.size if max_nfev is None else int(max_nfev)

    def search(z: Array) -> tuple[Array, Any]:
        end = levenberg_marquardt(residuals, jacobian, jnp.clip(z, lower, upper), lower, upper,
                                  (ftol, xtol, gtol), limit, scale, rho)
        return end.x, (end.nfev, end.njev, end.status)

    def gradient(z: Array) -> Array:
        f, jac_at = residuals(z), jacobian(z)
        return matmul(jac_at.T, rho(f * f)[1] * f)

    def stationary(z: Array) -> Array:
        return z - jnp.clip(z - gradient(z), lower, upper)

    at, (nfev, njev, status) = solution(stationary, x, search)
    f, jac_at = residuals(at), jacobian(at)
    value, first, _ = rho(f * f)
    slope = matmul(jac_at.T, first * f)
    held = jnp.where((at <= lower) & jnp.isfinite(lower), -1, 0) + jnp.where(
        (at >= upper) & jnp.isfinite(upper), 1, 0)
    optimality = jnp.max(jnp.abs(jnp.clip(at - slope, lower, upper) - at))
    return LeastSquaresResults(at, 0.5 * jnp.sum(value), f, jac_at, slope, optimality, held, nfev,
                               njev, status, status > 0)


def levenberg_marquardt(residuals: Function, jacobian: Function, x: Array, lower: Any, upper: Any,
                        tolerances: tuple[Any, Any, Any], limit: int, scale: Any = None,
                        rho: Any = None) -> Fit:
    """Steps of damped least squares, whose damping follows how well the linear model predicted."""
    rho = _loss("linear", 1.0) if rho is None else rho
    ftol, xtol, gtol = (-1.0 if t is None else t for t in tolerances)
    tiny = float(finfo(x.dtype).tiny)

    def cost(f: Array) -> Array:
        total: Array = 0.5 * jnp.sum(rho(f * f)[0])
        return total

    def weighted(f: Array, jac: Array) -> tuple[Array, Array]:
        """Residuals and Jacobian whose squares have the gradient of the loss: Triggs et al."""
        _, first, second = rho(f * f)
        curved = first + 2 * second * f * f
        weight = jnp.sqrt(jnp.maximum(curved, float(finfo(x.dtype).eps)))
        return f * first / weight, jac * weight[:, None]

    def held(z: Array, slope: Array) -> Any:
        return ((z <= lower) & (slope > 0)) | ((z >= upper) & (slope < 0))

    def unfinished(s: Fit) -> Any:
        return (s.status == 0) & (s.nfev < limit)

    def improve(s: Fit) -> Fit:
        f, jac = weighted(s.f, s.jac)
        slope = matmul(jac.T, f)
        free = jnp.where(held(s.x, slope), 0, 1).astype(x.dtype)
        jac = jac * free
        size = jnp.ones_like(s.x) if scale is None else \
            jnp.sqrt(jnp.sum(jac * jac, axis=0)) if isinstance(scale, str) else 1 / scale
        size = jnp.where(size > 0, size, 1)
        rows = jnp.concatenate([jac, jnp.diag(jnp.sqrt(s.damping) * size)])
        q, r = jnp.linalg.qr(rows)
        p = -lax.linalg.triangular_solve(
            r, matmul(q.T, jnp.concatenate([f, jnp.zeros_like(s.x)]))[:, None],
            left_side=True)[:, 0]
        p = jnp.where(free > 0, p, 0)
        point = jnp.clip(s.x + p, lower, upper)
        p = point - s.x
        after = residuals(point)
        before, now = cost(s.f), cost(after)
        moved = matmul(jac, p)
        predicted = -vdot(slope, p) - 0.5 * vdot(moved, moved)
        ratio = (before - now) / jnp.where(predicted > 0, predicted, 1)
        better = (now < before) & (predicted > 0)
        # what roundoff leaves of a decrease is no reason to go on
        small_f = (before - now <= at_least_eps(ftol, x.dtype) * before) & (
            predicted <= at_least_eps(ftol, x.dtype) * before)
        norm = jnp.linalg.norm(s.x)
        small_x = jnp.linalg.norm(p) <= at_least_eps(xtol, x.dtype, 1.0) * (norm + xtol)
        damping = jnp.where(better, s.damping * jnp.maximum(0.1, 1 - (2 * ratio - 1) ** 3),
                            s.damping * s.growth)
        damping = jnp.maximum(damping, tiny / float(finfo(x.dtype).eps))
        z, f_next = jnp.where(better, point, s.x), jnp.where(better, after, s.f)
        jac_next = lax.cond(better, jacobian, lambda _: s.jac, z)
        f_w, jac_w = weighted(f_next, jac_next)
        status = jnp.where(is_flat(z, matmul(jac_w.T, f_w)), 1, jnp.where(
            (ftol > 0) & small_f, 2, jnp.where((xtol > 0) & small_x, 3, 0)))
        return Fit(z, f_next, jac_next, damping, jnp.where(better, 2.0, 2 * s.growth).astype(
            x.dtype), s.nfev + 1, s.njev + better.astype(s.njev.dtype), status)

    def is_flat(z: Array, slope: Array) -> Array:
        return jnp.max(jnp.abs(jnp.clip(z - slope, lower, upper) - z)) <= gtol

    f, jac = residuals(x), jacobian(x)
    f_w, jac_w = weighted(f, jac)
    largest = jnp.max(jnp.sum(jac_w * jac_w, axis=0)) if scale is None else jnp.ones((), x.dtype)
    start = Fit(x, f, jac, 1e-3 * jnp.where(largest > 0, largest, 1), jnp.full((), 2, x.dtype),
                jnp.array(1), jnp.array(1), jnp.where(is_flat(x, matmul(jac_w.T, f_w)), 1, 0))
    return lax.while_loop(unfinished, improve, start)


def _loss(loss: str | Loss, f_scale: float) -> Callable[[Array], tuple[Array, Array, Array]]:
    """A loss of squares with its first and second derivatives, scaled."""
    if callable(loss):
        def custom(z: Array) -> tuple[Array, Array, Array]:
            value, first, second = loss(z / f_scale**2)
            return value * f_scale**2, first, second / f_scale**2
        return custom
    one_of("optimize.least_squares", "loss", loss, _LOSSES)

    def known(square: Array) -> tuple[Array, Array, Array]:
        z = square / f_scale**2
        one = jnp.ones_like(z)
        if loss == "linear":
            return square, one, jnp.zeros_like(z)
        if loss == "soft_l1":
            t = 1 + z
            found = 2 * (jnp.sqrt(t) - 1), t**-0.5, -0.5 * t**-1.5
        elif loss == "huber":
            far = z > 1
            t = jnp.where(far, z, 1)
            found = jnp.where(far, 2 * jnp.sqrt(t) - 1, z), jnp.where(far, t**-0.5, 1), \
                jnp.where(far, -0.5 * t**-1.5, 0)
        elif loss == "cauchy":
            t = 1 + z
            found = jnp.log1p(z), 1 / t, -1 / t**2
        else:
            t = 1 + z * z
            found = jnp.arctan(z), 1 / t, -2 * z / t**2
        value, first, second = found
        return value * f_scale**2, first, second / f_scale**2

    return known


def curve_fit(f: Function, xdata: ArrayLike, ydata: ArrayLike, p0: ArrayLike | None = None,
              sigma: ArrayLike | None = None, absolute_sigma: bool = False,
              check_finite: bool | None = None, bounds: Any = (-np.inf, np.inf),
              method: str | None = None, jac: Function | str | None = None, *,
              maxfev: int | None = None, ftol: float = 1e-8, xtol: float = 1e-8, gtol: float = 1e-8
              ) -> tuple[Array, Array]:
    """The parameters p with the least squares of `f(xdata, *p) - ydata`, and their covariance.

    `sigma` are standard deviations of ydata, or their covariance matrix; unless they are
    `absolute_sigma` only their ratios count. `p0` is ones by default. Derivatives are those of
    `least_squares`, in the data too. Where the search ended early, p is NaN.

    >>> import functrans as ft
    >>> x = ft.numpy.arange(5.0)
    >>> p, _ = ft.scipy.optimize.curve_fit(lambda x, a, b: a * x + b, x, 2 * x + 1)
    >>> p.round(3).tolist()
    [2.0, 1.0]
    """
    x, (y,) = jnp.asarray(xdata), inexact(ydata)
    if p0 is None:
        count = _parameters(f)
        start = jnp.ones(count, y.dtype)
    else:
        start = jnp.atleast_1d(inexact(p0)[0])
        start = start.astype(jnp.result_type(start, y))
    shape: Any = None
    root: Any = None
    if sigma is not None:
        shape, _ = inexact(sigma, y)
        if shape.ndim == 2:
            root = jnp.linalg.cholesky(shape)
        elif shape.shape not in (y.shape, ()):
            raise ShapeError(f"functrans.scipy.optimize.curve_fit: sigma has shape {shape.shape}, "
                             f"ydata {y.shape}.", where=user_source())

    def whitened(v: Array) -> Array:
        if root is not None:
            flat = v.reshape(v.shape[0], -1)
            return lax.linalg.triangular_solve(root, flat, left_side=True, lower=True).reshape(
                v.shape)
        return v if shape is None else (v.T / shape).T

    def residuals(p: Array) -> Array:
        return whitened(jnp.asarray(f(x, *p) - y).reshape(-1))

    def slopes(p: Array) -> Array:
        assert callable(jac)
        return whitened(jnp.asarray(jac(x, *p)))

    found = least_squares(residuals, start, slopes if callable(jac) else "2-point", bounds,
                          ftol=ftol, xtol=xtol, gtol=gtol, max_nfev=maxfev)
    inverse = pinv(matmul(found.jac.T, found.jac), hermitian=True)
    freedom = y.size - start.size
    if not absolute_sigma:
        inverse = inverse * (2 * found.cost / freedom if freedom > 0 else math.inf)
    return jnp.where(found.success, found.x, math.nan), inverse


def _parameters(f: Function) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = list(inspect.signature(f).parameters.values())
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in found) or len(found) < 2:
        raise ArgumentError("functrans.scipy.optimize.curve_fit cannot tell how many parameters f "
                            "has.", where=user_source(), fix="p0=ft.numpy.ones(3)")
    return len([p for p in found if p.kind in kinds]) - 1
