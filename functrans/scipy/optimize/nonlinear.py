"""Roots of functions of vectors by approximate Jacobians, with line searches.

The loop is SciPy's: the same steps are taken. A root is differentiated by the implicit function
theorem, whatever found it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import one_of, refused
from functrans.scipy.optimize.implicit import Function, option, solution, start_of
from functrans.scipy.optimize.mixing import (
    JacobianModel,
    broyden,
    diagonal,
    exciting,
    linear,
    of_last_steps,
)
from functrans.scipy.sparse.krylov import bicgstab, gmres
from functrans.transforms.flat import check_callable
from functrans.transforms.forward import jvp
from functrans.typing import Array, ArrayLike

KRYLOV = "krylov"
MODELS = ("broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden", "excitingmixing",
          KRYLOV)
_GAMMA, _ETA_MOST, _ETA_LEAST = 0.9, 0.9999, 0.1


class NoConvergence(Exception):
    """A method of `newton_krylov`'s kind found no root; its argument is where it ended.

    >>> try:
    ...     ft.scipy.optimize.broyden1(lambda x: x ** 2 + 1, jnp.ones(1), maxiter=3)
    ... except ft.scipy.optimize.NoConvergence as error:
    ...     print(error.args[0].shape)
    (1,)
    """


class Ended(NamedTuple):
    """Where a search ended."""

    x: Array
    converged: Array
    calls: Array
    nit: Array


class Tolerances(NamedTuple):
    """When a search ends; `iter` is a number of steps to take without asking."""

    f_tol: Any = None
    f_rtol: Any = None
    x_tol: Any = None
    x_rtol: Any = None
    norm: Any = None
    iter: int | None = None
    maxiter: int | None = None


def _largest(x: Array) -> Array:
    found: Array = jnp.max(jnp.abs(x))
    return found


def model_of(how: str, given: dict[str, Any]) -> JacobianModel | None:
    """The approximation of a method; None for that of Krylov spaces."""
    name = f"optimize.{how}"
    if how in ("broyden1", "broyden2"):
        known = option(how, given, {"alpha": None, "reduction_method": "restart",
                                    "max_rank": None})
        reduction = known["reduction_method"]
        one_of(name, "reduction_method", reduction if isinstance(reduction, str)
               else reduction[0], ("restart",))
        return broyden(how == "broyden1", known["alpha"], known["max_rank"])
    if how == "anderson":
        known = option(how, given, {"alpha": None, "w0": 0.01, "M": 5})
        return of_last_steps(known["alpha"], known["w0"], known["M"])
    if how == "excitingmixing":
        known = option(how, given, {"alpha": None, "alphamax": 1.0})
        return exciting(known["alpha"], known["alphamax"])
    known = option(how, given, {"alpha": None} if how != KRYLOV else {
        "rdiff": None, "method": "lgmres", "inner_maxiter": 20, "inner_M": None, "outer_k": 10})
    if how == KRYLOV:
        one_of("optimize.newton_krylov", "method", known["method"],
               ("lgmres", "gmres", "bicgstab"))
        return None
    return diagonal(known["alpha"]) if how == "diagbroyden" else linear(known["alpha"])


def search(fun: Function, x: Array, how: str, given: dict[str, Any], tolerances: Tolerances,
           line_search: str | None) -> Ended:
    """A root of a function of a vector."""
    model = model_of(how, given)
    eps = float(finfo(x.dtype).eps)
    f_tol = eps ** (1 / 3) if tolerances.f_tol is None else tolerances.f_tol
    norm = tolerances.norm or _largest
    nit = tolerances.iter
    most = tolerances.maxiter
    if most is None:
        most = 100 * (x.size + 1) if nit is None else nit + 1
    f = fun(x)
    first = norm(f)

    def solved(state: Any, at: Array, f: Array, eta: Array) -> Array:
        if model is not None:
            return model.solve(state, f)
        size = norm(f)

        def along(v: Array) -> Array:
            found: Array = jvp(fun, (at,), (v,))[1]
            return found

        tol = jnp.minimum(eta, eta * size)
        if given.get("method") == "bicgstab":
            return bicgstab(along, f, tol=tol, maxiter=given.get("inner_maxiter", 20),
                            M=given.get("inner_M"))[0]
        return gmres(along, f, tol=tol, restart=min(given.get("inner_maxiter", 20), x.size),
                     maxiter=1, M=given.get("inner_M"))[0]

    def ended(x: Array, f: Array, dx: Array, count: Array) -> Any:
        if nit is not None:
            return jnp.asarray(count >= nit)
        size, step = norm(f), norm(dx)
        met = size <= f_tol
        if tolerances.f_rtol is not None:
            met = met & (size <= tolerances.f_rtol * first)
        if tolerances.x_tol is not None:
            met = met & (step <= tolerances.x_tol)
        if tolerances.x_rtol is not None:
            met = met & (step <= tolerances.x_rtol * norm(x))
        return met | (size == 0)

    def unfinished(s: Any) -> Any:
        x, f, dx, _, _, _, count, stuck = s
        return ~ended(x, f, dx, count) & (count < most) & ~stuck

    def improve(s: Any) -> Any:
        x, f, _, state, eta, calls, count, _ = s
        dx = -solved(state, x, f, eta)
        stuck = ~(jnp.linalg.norm(dx) > 0)
        scale, more = _armijo(fun, x, f, dx) if line_search else (jnp.ones((), x.dtype), 1)
        point = x + scale * dx
        value = fun(point)
        if model is not None:
            state = model.update(state, point, value, scale * dx, value - f)
        ratio = _GAMMA * norm(value) ** 2 / norm(f) ** 2
        kept = _GAMMA * eta**2
        eta = jnp.minimum(_ETA_MOST, jnp.where(kept < _ETA_LEAST, ratio,
                                               jnp.maximum(ratio, kept)))
        return (point, value, dx, state, eta.astype(x.dtype), calls + more, count + 1, stuck)

    begin = (x, f, jnp.full_like(x, math.inf), () if model is None else model.start(x, f),
             jnp.full((), 1e-3, x.dtype), jnp.array(1), jnp.array(0), jnp.array(False))
    x, f, dx, _, _, calls, count, _ = lax.while_loop(unfinished, improve, begin)
    return Ended(x, ended(x, f, dx, count) & jnp.all(jnp.isfinite(x)), calls, count)


def _armijo(fun: Function, x: Array, f: Array, dx: Array) -> tuple[Array, Array]:
    """A part of a step by which the squares fall, from parabolas and cubics, and the calls."""
    start = jnp.sum(f * f)

    def height(s: Array) -> Array:
        value = fun(x + s * dx)
        found: Array = jnp.sum(value * value)
        return found

    def low(s: Array, value: Array) -> Array:
        return value <= start - 1e-4 * s * start

    one = jnp.ones((), x.dtype)
    at_one = height(one)
    divisor = at_one
    second = start / 2 / jnp.where(divisor == 0, 1, divisor)
    second = jnp.where(jnp.isfinite(second), second, 0.5)
    done = low(one, at_one)

    def unfinished(s: Any) -> Any:
        _, _, b, _, done, _, count = s
        return ~done & (b > 1e-2) & (count < 60)

    def improve(s: Any) -> Any:
        a, fa, b, fb, _, _, count = s
        rest_a, rest_b = fa - start + start * a, fb - start + start * b
        factor = a**2 * b**2 * (b - a)
        factor = jnp.where(factor == 0, 1, factor)
        cubic = (a**2 * rest_b - b**2 * rest_a) / factor
        square = (b**3 * rest_a - a**3 * rest_b) / factor
        root = jnp.sqrt(jnp.abs(square**2 + 3 * cubic * start))
        c = (-square + root) / jnp.where(cubic == 0, 1, 3 * cubic)
        c = jnp.where((cubic == 0) | ~jnp.isfinite(c), b / 2, c)
        fc = height(c)
        good = low(c, fc)
        next_c = jnp.where(~good & ((b - c > b / 2) | (1 - c / b < 0.96)), b / 2, c)
        return b, fb, next_c, fc, good, c, count + 1

    fb = height(second)
    at_second = low(second, fb)
    begin = (one, at_one, second, fb, done | at_second, jnp.where(done, one, second), jnp.array(0))
    *_, found, s, count = lax.while_loop(unfinished, improve, begin)
    return lax.stop_gradient(jnp.where(found, s, one)), 3 + count


def _checked(name: str, F: Function, xin: ArrayLike, callback: Any, line_search: Any) -> Any:
    check_callable(F, f"scipy.optimize.{name}")
    if callback is not None:
        raise refused(f"optimize.{name}", "callback", "the search is a compiled loop.",
                      "functrans.debug.callback within F")
    one_of(f"optimize.{name}", "line_search", line_search, (None, "armijo", "wolfe"))
    start = start_of(name, "xin", xin)
    shape = start.shape

    def value(z: Array) -> Array:
        f = jnp.asarray(F(z.reshape(shape)))
        if f.size != start.size:
            raise ShapeError(f"functrans.scipy.optimize.{name}: F returns shape {f.shape}, and x "
                             f"has {shape}.", where=user_source(),
                             why="there are as many equations as unknowns.")
        return f.reshape(-1).astype(start.dtype)

    return value, start.reshape(-1), shape


def nonlinear_root(name: str, how: str, F: Function, xin: ArrayLike, given: dict[str, Any],
                   tolerances: Tolerances, line_search: Any, callback: Any
                   ) -> tuple[Array, Ended, Array]:
    """The root in the shape of xin, how the search ended, and the function there."""
    value, x, shape = _checked(name, F, xin, callback, line_search)

    def find(z: Array) -> tuple[Array, Any]:
        end = search(value, z, how, given, tolerances, line_search)
        return end.x, end[1:]

    at, more = solution(value, x, find)
    return at.reshape(shape), Ended(at, *more), value(at).reshape(shape)


def _solved(name: str, how: str, F: Function, xin: ArrayLike, given: dict[str, Any],
            tolerances: Tolerances, line_search: Any, callback: Any, more: dict[str, Any]) -> Array:
    option(name, more, {})
    x, end, _ = nonlinear_root(name, how, F, xin, given, tolerances, line_search, callback)
    if tolerances.iter is not None:
        return x
    if not is_traced(end.converged) and not bool(end.converged):
        raise NoConvergence(x)
    found: Array = jnp.where(end.converged, x, math.nan)
    return found


def broyden1(F: Function, xin: ArrayLike, iter: int | None = None, alpha: float | None = None,
             reduction_method: str = "restart", max_rank: float | None = None,
             verbose: bool = False, maxiter: int | None = None, f_tol: float | None = None,
             f_rtol: float | None = None, x_tol: float | None = None, x_rtol: float | None = None,
             tol_norm: Function | None = None, line_search: str | None = "armijo",
             callback: None = None, **kw: Any) -> Array:
    """A root of F near xin by Broyden's first method, with an inverse Jacobian of its own.

    F takes and returns an array of the shape of xin. The search ends when the largest part of F is
    at most `f_tol` (the cube root of epsilon), that of the last step at most `x_tol`, and those
    relative to the first F and to x at most `f_rtol` and `x_rtol`; or after `iter` steps.
    `alpha` says that the first guess of the
    Jacobian is -1 / alpha. After `max_rank` updates it begins anew;
    the other reductions of SciPy are refused. Both line searches are Armijo's. The root has
    the derivatives of a root in what F closes over. Raises NoConvergence after `maxiter` steps
    where values are known, and is NaN where they are traced.

    >>> import functrans as ft
    >>> f = lambda x: x + x ** 3 - 2
    >>> print(ft.scipy.optimize.broyden1(f, [0.6, 1.3]).round(2))
    [1. 1.]
    """
    given = {"alpha": alpha, "reduction_method": reduction_method, "max_rank": max_rank}
    limits = Tolerances(f_tol, f_rtol, x_tol, x_rtol, tol_norm, iter, maxiter)
    return _solved("broyden1", "broyden1", F, xin, given, limits, line_search, callback, kw)


def broyden2(F: Function, xin: ArrayLike, iter: int | None = None, alpha: float | None = None,
             reduction_method: str = "restart", max_rank: float | None = None,
             verbose: bool = False, maxiter: int | None = None, f_tol: float | None = None,
             f_rtol: float | None = None, x_tol: float | None = None, x_rtol: float | None = None,
             tol_norm: Function | None = None, line_search: str | None = "armijo",
             callback: None = None, **kw: Any) -> Array:
    """A root of F near xin by Broyden's second method; see `broyden1`.

    >>> import functrans as ft
    >>> f = lambda x: x + x ** 3 - 2
    >>> print(ft.scipy.optimize.broyden2(f, [0.6, 1.3]).round(2))
    [1. 1.]
    """
    given = {"alpha": alpha, "reduction_method": reduction_method, "max_rank": max_rank}
    limits = Tolerances(f_tol, f_rtol, x_tol, x_rtol, tol_norm, iter, maxiter)
    return _solved("broyden2", "broyden2", F, xin, given, limits, line_search, callback, kw)


def anderson(F: Function, xin: ArrayLike, iter: int | None = None, alpha: float | None = None,
             w0: float = 0.01, M: int = 5, verbose: bool = False, maxiter: int | None = None,
             f_tol: float | None = None, f_rtol: float | None = None, x_tol: float | None = None,
             x_rtol: float | None = None, tol_norm: Function | None = None,
             line_search: str | None = "armijo", callback: None = None, **kw: Any) -> Array:
    """A root of F near xin by Anderson's mixing of the last M steps; see `broyden1`.

    `w0` keeps the weights of steps small.

    >>> import functrans as ft
    >>> f = lambda x: x + x ** 3 - 2
    >>> print(ft.scipy.optimize.anderson(f, [0.6, 1.3]).round(2))
    [1. 1.]
    """
    given = {"alpha": alpha, "w0": w0, "M": M}
    limits = Tolerances(f_tol, f_rtol, x_tol, x_rtol, tol_norm, iter, maxiter)
    return _solved("anderson", "anderson", F, xin, given, limits, line_search, callback, kw)


def linearmixing(F: Function, xin: ArrayLike, iter: int | None = None, alpha: float | None = None,
                 verbose: bool = False, maxiter: int | None = None, f_tol: float | None = None,
                 f_rtol: float | None = None, x_tol: float | None = None,
                 x_rtol: float | None = None, tol_norm: Function | None = None,
                 line_search: str | None = "armijo", callback: None = None, **kw: Any) -> Array:
    """A root of F near xin by steps of alpha F, which are seldom good ones; see `broyden1`.

    >>> import functrans as ft
    >>> f = lambda x: x + x ** 3 - 2
    >>> print(ft.scipy.optimize.linearmixing(f, [0.6, 1.3], alpha=-0.2).round(2))
    [1. 1.]
    """
    given = {"alpha": alpha}
    limits = Tolerances(f_tol, f_rtol, x_tol, x_rtol, tol_norm, iter, maxiter)
    return _solved("linearmixing", "linearmixing", F, xin, given, limits, line_search, callback, kw)


def diagbroyden(F: Function, xin: ArrayLike, iter: int | None = None, alpha: float | None = None,
                verbose: bool = False, maxiter: int | None = None, f_tol: float | None = None,
                f_rtol: float | None = None, x_tol: float | None = None,
                x_rtol: float | None = None, tol_norm: Function | None = None,
                line_search: str | None = "armijo", callback: None = None, **kw: Any) -> Array:
    """A root of F near xin with a diagonal Jacobian that is updated; see `broyden1`.

    >>> import functrans as ft
    >>> f = lambda x: x + x ** 3 - 2
    >>> print(ft.scipy.optimize.diagbroyden(f, [0.6, 1.3]).round(2))
    [1. 1.]
    """
    given = {"alpha": alpha}
    limits = Tolerances(f_tol, f_rtol, x_tol, x_rtol, tol_norm, iter, maxiter)
    return _solved("diagbroyden", "diagbroyden", F, xin, given, limits, line_search, callback, kw)


def excitingmixing(F: Function, xin: ArrayLike, iter: int | None = None, alpha: float | None = None,
                   alphamax: float = 1.0, verbose: bool = False, maxiter: int | None = None,
                   f_tol: float | None = None, f_rtol: float | None = None,
                   x_tol: float | None = None, x_rtol: float | None = None,
                   tol_norm: Function | None = None, line_search: str | None = "armijo",
                   callback: None = None, **kw: Any) -> Array:
    """A root of F near xin by a step size for each unknown, `alphamax` at most; see `broyden1`.

    It grows by `alpha` while its equation keeps its sign.

    >>> import functrans as ft
    >>> f = lambda x: 2 - x - x ** 3
    >>> print(ft.scipy.optimize.excitingmixing(f, [0.6, 1.3], alpha=0.1).round(2))
    [1. 1.]
    """
    given = {"alpha": alpha, "alphamax": alphamax}
    limits = Tolerances(f_tol, f_rtol, x_tol, x_rtol, tol_norm, iter, maxiter)
    return _solved("excitingmixing", "excitingmixing", F, xin, given, limits, line_search, callback,
                   kw)


def newton_krylov(F: Function, xin: ArrayLike, iter: int | None = None, rdiff: float | None = None,
                  method: str = "lgmres", inner_maxiter: int = 20, inner_M: Any = None,
                  outer_k: int = 10, verbose: bool = False, maxiter: int | None = None,
                  f_tol: float | None = None, f_rtol: float | None = None,
                  x_tol: float | None = None, x_rtol: float | None = None,
                  tol_norm: Function | None = None, line_search: str | None = "armijo",
                  callback: None = None, **kw: Any) -> Array:
    """A root of F near xin by Newton's method, whose steps are found in Krylov spaces.

    Products with the Jacobian are those of `ft.jvp`, exactly: `rdiff`, the step of differences, is
    not needed. `method` is "gmres" ("lgmres" stands for it, and `outer_k` is of that alone) or
    "bicgstab", of `inner_maxiter` products, with the preconditioner `inner_M`. See `broyden1`.
    Source: Knoll and Keyes, J. Comput. Phys. 193 (2004).

    >>> import functrans as ft
    >>> f = lambda x: 2 - x - x ** 3
    >>> print(ft.scipy.optimize.newton_krylov(f, [0.6, 1.3]).round(2))
    [1. 1.]
    """
    given = {"method": method, "inner_maxiter": inner_maxiter, "inner_M": inner_M}
    limits = Tolerances(f_tol, f_rtol, x_tol, x_rtol, tol_norm, iter, maxiter)
    return _solved("newton_krylov", "krylov", F, xin, given, limits, line_search, callback, kw)
