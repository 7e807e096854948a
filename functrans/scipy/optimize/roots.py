"""root: roots of functions of vectors, and fixed points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import one_of
from functrans.scipy.optimize.implicit import (
    Function,
    at_least_eps,
    option,
    solution,
    start_of,
    with_args,
)
from functrans.scipy.optimize.least_squares import levenberg_marquardt
from functrans.scipy.optimize.nonlinear import MODELS, Tolerances, nonlinear_root
from functrans.scipy.optimize.results import RootResults
from functrans.scipy.optimize.spectral import spectral_root
from functrans.scipy.products import lstsq, matmul, pinv, vdot
from functrans.transforms.derivatives import jacfwd
from functrans.typing import Array, ArrayLike


def root(fun: Function, x0: ArrayLike, args: tuple[Any, ...] = (), method: str = "hybr",
         jac: Function | None = None, tol: float | None = None, callback: None = None,
         options: Mapping[str, Any] | None = None) -> RootResults:
    """x with `fun(x, *args) = 0`, near x0; fun returns an array of the shape of x.

    `method` is "hybr" or "lm" (both by Levenberg and Marquardt's method with the Jacobian of fun,
    or `jac`), or "broyden1", which needs no Jacobian after the first. Options of these are `xtol`
    (1.49e-8) and `maxfev`. Others are "broyden2", "anderson", "linearmixing", "diagbroyden",
    "excitingmixing" and "krylov", with SciPy's options (`fatol`, `ftol`, `xatol`, `xtol`,
    `maxiter`, `nit`, `line_search`, `jac_options`; see the functions of these names), and
    "df-sane" (`fatol`, `ftol`, `maxfev`, `M`). x is differentiated by the implicit function
    theorem, in what fun closes over and in `args`. Where `success` is False there is no root near.
    Raises ShapeError for another shape.

    >>> import functrans as ft
    >>> found = ft.scipy.optimize.root(lambda x, a: x ** 3 - a, ft.numpy.ones(1), (8.0,))
    >>> found.x.round(4).tolist()
    [2.0]
    """
    one_of("optimize.root", "method", method, ("hybr", "lm", "df-sane", *MODELS))
    one_of("optimize.root", "callback", callback, (None,))
    of_args = with_args("root", fun, args)
    if method in MODELS and method != "broyden1":
        return _by_model(method, of_args, x0, tol, dict(options or {}))
    if method == "df-sane":
        return spectral_root(of_args, x0, tol, dict(options or {}))
    start = start_of("root", "x0", x0)
    shape = start.shape
    x = start.reshape(-1)

    def value(z: Array) -> Array:
        f = jnp.asarray(of_args(z.reshape(shape)))
        if f.size != x.size:
            raise ShapeError(f"functrans.scipy.optimize.root: the function returns shape "
                             f"{f.shape}, and x has {shape}.", where=user_source(),
                             why="there are as many equations as unknowns.",
                             fix="functrans.scipy.optimize.least_squares")
        return f.reshape(-1).astype(x.dtype)

    def jacobian(z: Array) -> Array:
        if jac is not None:
            more = args if isinstance(args, tuple) else (args,)
            return jnp.asarray(jac(z.reshape(shape), *more)).reshape(x.size, x.size).astype(x.dtype)
        found: Array = jacfwd(value)(z)
        return found

    known = option("root", dict(options or {}), {"xtol": 1.49012e-8 if tol is None else tol,
                                                 "maxfev": 200 * (x.size + 1)})

    def search(z: Array) -> tuple[Array, Any]:
        if method == "broyden1":
            at, f, count, nit = _broyden(value, jacobian, z, known["xtol"], known["maxfev"])
        else:
            free = math.inf
            end = levenberg_marquardt(value, jacobian, z, -free, free, (None, known["xtol"], 0.0),
                                      known["maxfev"])
            at, f, count, nit = end.x, end.f, end.nfev, end.njev
        # a root: a step of Newton's method goes no farther than the tolerance
        step = jnp.linalg.norm(lstsq(jacobian(at), f))
        xtol = at_least_eps(known["xtol"], x.dtype, 16.0)
        close = step <= xtol * jnp.maximum(jnp.linalg.norm(at), 1)
        return at, ((close | (jnp.max(jnp.abs(f)) == 0)) & jnp.isfinite(step), count, nit)

    at, (success, nfev, nit) = solution(value, x, search)
    return RootResults(at.reshape(shape), success, jnp.where(success, 1, 5),
                       value(at).reshape(shape), nfev, nit)


def _by_model(method: str, fun: Function, x0: ArrayLike, tol: float | None,
              options: dict[str, Any]) -> RootResults:
    known = option("root", options, {
        "nit": None, "maxiter": None, "ftol": None, "fatol": tol, "xtol": None, "xatol": None,
        "tol_norm": None, "line_search": "armijo", "jac_options": None})
    limits = Tolerances(known["fatol"], known["ftol"], known["xatol"], known["xtol"],
                        known["tol_norm"], known["nit"], known["maxiter"])
    x, end, value = nonlinear_root("root", method, fun, x0, dict(known["jac_options"] or {}),
                                   limits, known["line_search"], None)
    return RootResults(x, end.converged, jnp.where(end.converged, 1, 2), value, end.calls, end.nit)


def _broyden(fun: Function, jacobian: Function, x: Array, xtol: Any, limit: int) -> Any:
    """Broyden, Math. Comp. 19 (1965): the inverse of the Jacobian is updated by rank one."""
    tolerance = at_least_eps(xtol, x.dtype)

    def unfinished(state: Any) -> Any:
        _, f, _, step, count, _ = state
        return (count < limit) & (step > tolerance) & (jnp.max(jnp.abs(f)) > 0)

    def improve(state: Any) -> Any:
        x, f, inverse, _, count, nit = state
        p = -matmul(inverse, f)
        norm = jnp.linalg.norm(f)

        def too_far(inner: Any) -> Any:
            t, _, value, tries = inner
            return ~(jnp.linalg.norm(value) <= (1 - 1e-4 * t) * norm) & (tries < 12)

        def shorter(inner: Any) -> Any:
            t, _, _, tries = inner
            t = t / 2
            return t, x + t * p, fun(x + t * p), tries + 1

        one = jnp.ones((), x.dtype)
        t, point, after, tries = lax.while_loop(too_far, shorter, (one, x + p, fun(x + p), 0))
        s, y = t * p, after - f
        hy = matmul(inverse, y)
        divisor = vdot(s, hy)
        usable = jnp.abs(divisor) > float(finfo(x.dtype).eps) * vdot(s, s)
        updated = inverse + jnp.outer(s - hy, matmul(s, inverse)) / jnp.where(usable, divisor, 1)
        # where the direction was bad, the Jacobian is computed anew
        fresh = (tries >= 12) | ~usable
        inverse = lax.cond(fresh, lambda z: pinv(jacobian(z)), lambda _: updated, point)
        step = jnp.linalg.norm(s) / jnp.maximum(jnp.linalg.norm(point), 1)
        return point, after, inverse, step, count + 1 + tries, nit + 1

    start = (x, fun(x), pinv(jacobian(x)), jnp.full((), math.inf, x.dtype), 1, 0)
    x, f, _, _, count, nit = lax.while_loop(unfinished, improve, start)
    return x, f, count, nit


def fixed_point(func: Function, x0: ArrayLike, args: tuple[Any, ...] = (), xtol: float = 1e-8,
                maxiter: int = 500, method: str = "del2") -> Array:
    """x with `func(x, *args) = x`, near x0; NaN where it is not found within `maxiter` steps.

    `method` is "del2", Steffensen's acceleration of each element, or "iteration". x is
    differentiated by the implicit function theorem.

    >>> import functrans as ft
    >>> round(float(ft.scipy.optimize.fixed_point(ft.numpy.cos, 1.0)), 4)
    0.7391
    """
    one_of("optimize.fixed_point", "method", method, ("del2", "iteration"))
    of_args = with_args("fixed_point", func, args)
    start = start_of("fixed_point", "x0", x0)
    tolerance = at_least_eps(xtol, start.dtype)

    def apply(x: Array) -> Array:
        y = jnp.asarray(of_args(x)).astype(start.dtype)
        if y.shape != start.shape:
            raise ShapeError(f"functrans.scipy.optimize.fixed_point: func returns shape {y.shape}, "
                             f"and x has {start.shape}.", where=user_source())
        return y

    def search(x: Array) -> tuple[Array, Any]:
        def unfinished(state: Any) -> Any:
            _, change, count = state
            return (jnp.max(change) > tolerance) & (count < maxiter)

        def improve(state: Any) -> Any:
            x, _, count = state
            y = apply(x)
            if method == "del2":
                z = apply(y)
                bend = z - 2 * y + x
                y = jnp.where(bend == 0, z, x - (y - x) ** 2 / jnp.where(bend == 0, 1, bend))
            change = jnp.abs(y - x) / jnp.where(x == 0, 1, jnp.abs(x))
            return y, change, count + 1

        found, change, _ = lax.while_loop(unfinished, improve,
                                          (x, jnp.full_like(x, math.inf), 0))
        return found, jnp.max(change) <= tolerance

    found, close = solution(lambda x: x - apply(x), start, search)
    return jnp.where(close, found, math.nan)
