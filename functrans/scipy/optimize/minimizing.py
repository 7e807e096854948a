"""minimize: minima of functions of vectors, differentiated as such."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import converted
from functrans.scipy.arguments import one_of
from functrans.scipy.optimize.constraints import Sides, sides_of
from functrans.scipy.optimize.descent import (
    MAXITER_REACHED,
    NO_LOWER_POINT,
    Minimum,
    bfgs,
    conjugate_gradients,
    lbfgs,
    lbfgs_in_bounds,
    newton_cg,
    newton_in_bounds,
)
from functrans.scipy.optimize.implicit import (
    Function,
    option,
    scalar_value,
    solution,
    start_of,
    with_args,
)
from functrans.scipy.optimize.linear_models import by_models
from functrans.scipy.optimize.powell import powell
from functrans.scipy.optimize.results import OptimizeResults
from functrans.scipy.optimize.sequential import conditions, sqp
from functrans.scipy.optimize.simplex import nelder_mead
from functrans.scipy.optimize.trust_region import METHODS as TRUST
from functrans.scipy.optimize.trust_region import trust_region
from functrans.transforms.derivatives import grad, value_and_grad
from functrans.typing import Array, ArrayLike

_METHODS = ("bfgs", "l-bfgs-b", "l-bfgs-experimental-do-not-rely-on-this", "cg", "newton-cg",
            *TRUST, "tnc", "slsqp", "trust-constr", "nelder-mead", "powell", "cobyla", "cobyqa")
_BOUNDED = ("l-bfgs-b", "tnc", "slsqp", "trust-constr", "nelder-mead", "powell",
            "cobyla", "cobyqa")
_MODELLED = ("cobyla", "cobyqa")  # values alone
_CONSTRAINED = ("slsqp", "trust-constr", *_MODELLED)
_STEP_TOLERANCE = 1e-4  # of methods without derivatives


def minimize(fun: Function, x0: ArrayLike, args: tuple[Any, ...] = (), *,
             method: str | None = None, tol: float | None = None,
             options: Mapping[str, Any] | None = None, bounds: Any = None, constraints: Any = (),
             jac: Any = None, hess: Any = None, hessp: Any = None, callback: None = None
             ) -> OptimizeResults:
    """The minimum of `fun(x, *args)` near x0, an array of any shape; gradients are automatic.

    `method` is "BFGS" (the default), "L-BFGS-B" (that with bounds), "CG", "Newton-CG",
    "trust-ncg", "trust-krylov", "trust-exact", "dogleg", "TNC", "SLSQP" (that with constraints) or
    "trust-constr" (the same), and without derivatives "Nelder-Mead", "Powell", "COBYLA" or
    "COBYQA" (which take constraints, too). `bounds` are a pair of arrays, a pair for each
    variable, or `Bounds`, of these four, "L-BFGS-B", "TNC" and "SLSQP". `constraints` are `{"type":
    "eq" or "ineq", "fun": f}` (f(x) is 0, or not negative), `LinearConstraint`,
    `NonlinearConstraint`, or a list of such.

    Options are `maxiter`, `gtol` (the norm of the gradient, 1e-5), `norm`, `line_search_maxiter`,
    `maxcor` and `ftol` of "L-BFGS-B", `ftol` of "TNC" and "SLSQP", `initial_trust_radius`,
    `max_trust_radius` and `eta` of trust regions, `xatol`, `fatol` and `adaptive` of
    "Nelder-Mead" (and `initial_simplex`), `xtol`, `ftol` and `direc` of "Powell" (whose directions
    are in `hess_inv`), `rhobeg` and `tol` (the first and the last radius
    of trust) of "COBYLA", `initial_tr_radius` and `final_tr_radius` of "COBYQA"; `tol` stands for
    the tolerances. `jac=True` says that fun returns the gradient too, which is left; functions for
    `jac`, `hess` and `hessp` are not called.

    The loop is a `while_loop`: under `vmap` each lane ends by itself. x and fun are differentiated
    by the implicit function theorem, in what `fun` and constraints close over, in `args` and in
    the bounds; the search is not. Raises ArgumentError for unknown methods and options.

    >>> import functrans as ft
    >>> f = lambda x, a: ((x - a) ** 2).sum()
    >>> a = ft.numpy.array([1.0, 2.0])
    >>> ft.scipy.optimize.minimize(f, ft.numpy.zeros(2), (a,), method="BFGS").x.round(3).tolist()
    [1.0, 2.0]
    >>> line = {"type": "eq", "fun": lambda x: x.sum() - 2}
    >>> found = ft.scipy.optimize.minimize(f, ft.numpy.zeros(2), (a,), constraints=line)
    >>> found.x.round(3).tolist()
    [0.5, 1.5]
    """
    is_constrained = bool(constraints) or hasattr(constraints, "_fields")
    if method is None:
        method = "SLSQP" if is_constrained else "BFGS" if bounds is None else "L-BFGS-B"
    how = str(method).lower()
    one_of("optimize.minimize", "method", how, _METHODS)
    one_of("optimize.minimize", "callback", callback, (None,))
    if not isinstance(args, tuple):
        raise ArgumentError(f"functrans.scipy.optimize.minimize: args is a {type(args).__name__}.",
                            where=user_source(), fix="args=(a,)")
    if bounds is not None and how not in _BOUNDED:
        raise ArgumentError(f"functrans.scipy.optimize.minimize: method={method!r} takes no "
                            "bounds.", where=user_source(), fix="method='L-BFGS-B'")
    if is_constrained and how not in _CONSTRAINED:
        raise ArgumentError(f"functrans.scipy.optimize.minimize: method={method!r} takes no "
                            "constraints.", where=user_source(), fix="method='SLSQP'")
    of_args = with_args("minimize", fun, args)
    start = start_of("minimize", "x0", x0)
    shape = start.shape
    x = start.reshape(-1)
    if not x.size:
        raise ShapeError(f"functrans.scipy.optimize.minimize: x0 has shape {shape}.",
                         where=user_source(), why="there is nothing to minimize over.")

    def value(x: Array) -> Array:
        def of_shape(z: Array) -> Any:
            found = of_args(z.reshape(shape))
            return found[0] if jac is True else found

        return scalar_value("minimize", of_shape, x)

    given = dict(options or {})
    limits = None if bounds is None else limits_of(bounds, x)
    if how in _CONSTRAINED:
        return _constrained(how, value, x, shape, given, tol, limits, constraints)

    def search(x: Array) -> tuple[Array, Any]:
        found, inverse = _searched(how, value, x, given, tol, limits)
        return found.x, (found.converged, found.status, found.nfev, found.nit, inverse)

    if limits is None:
        residual = grad(value)
    else:
        lower, upper = limits

        def residual(x: Array) -> Array:
            return x - jnp.clip(x - grad(value)(x), lower, upper)

    at, (converged, status, nfev, nit, inverse) = solution(residual, x, search)
    lowest, slope = value_and_grad(value)(at)
    return OptimizeResults(at.reshape(shape), converged, status, lowest, slope.reshape(shape),
                           inverse, nfev, nfev, nit)


def _modelled(how: str, value: Any, sides: Sides, ends: tuple[Array, Array], x: Array,
              known: dict[str, Any], tol: float | None) -> tuple[Array, Any]:
    """The minimum and its multipliers, by models that interpolate values."""
    curved = how == "cobyqa"
    given = [v for v in (known["final_tr_radius"], known["tol"], tol) if v is not None]
    last = float(given[0]) if given else 1e-6 if curved else 1e-4
    first = float(known["initial_tr_radius"] if curved else known["rhobeg"])
    most = min(known["maxiter"] if known["maxiter"] is not None else math.inf, known["maxfev"])
    end = by_models(value, sides, ends, x, max(first, last), last, most, curved)
    return jnp.concatenate([end.x, end.equal, end.above]), (
        end.converged, jnp.where(end.converged, 0, MAXITER_REACHED), end.nfev, end.nit)


def _constrained(how: str, value: Any, x: Array, shape: tuple[int, ...], given: dict[str, Any],
                 tol: float | None, limits: tuple[Array, Array] | None, constraints: Any
                 ) -> OptimizeResults:
    """A minimum that is differentiated together with its multipliers."""
    modelled = how in _MODELLED
    known = option("minimize", given, {
        "maxiter": 500 * x.size, "maxfev": math.inf, "rhobeg": 1.0, "initial_tr_radius": 1.0,
        "final_tr_radius": None, "tol": None, "catol": 0.0} if modelled else {
        "maxiter": 200, "ftol": 1e-9 if tol is None else tol})
    sides = sides_of(constraints, x, shape)
    free = limits is None
    ends = (jnp.full_like(x, -math.inf), jnp.full_like(x, math.inf)) if free else limits
    assert ends is not None
    fun = value_and_grad(value)
    n, me, ma = x.size, sides.equal(x).size, sides.above(x).size

    def search(z: Array) -> tuple[Array, Any]:
        if modelled:
            return _modelled(how, value, sides, ends, z[:n], known, tol)
        end = sqp(fun, sides, ends, z[:n], known["ftol"], known["maxiter"])
        status = jnp.where(end.converged, 0, jnp.where(end.failed, NO_LOWER_POINT,
                                                       MAXITER_REACHED))
        return jnp.concatenate([end.x, end.equal, end.above]), (
            end.converged, status, end.nfev, end.nit)

    start = jnp.concatenate([x, jnp.zeros(me + ma, x.dtype)])
    z, (converged, status, nfev, nit) = solution(
        lambda z: conditions(fun, sides, ends, z, n, me), start, search)
    at = z[:n]
    lowest, slope = fun(at)
    return OptimizeResults(at.reshape(shape), converged, status, lowest, slope.reshape(shape),
                           None, nfev, nfev, nit)


def _searched(how: str, value: Any, x: Array, given: dict[str, Any], tol: float | None,
              limits: tuple[Array, Array] | None) -> tuple[Minimum, Array | None]:
    fun = value_and_grad(value)
    inverse = None
    short = _STEP_TOLERANCE if tol is None else tol
    if how == "nelder-mead":
        known = option("minimize", given, {"maxiter": 200 * x.size, "xatol": short,
                                           "fatol": short, "adaptive": False,
                                           "initial_simplex": None})
        first = _table("initial_simplex", known["initial_simplex"], (x.size + 1, x.size))
        end, small = nelder_mead(value, x, known["xatol"], known["fatol"], known["maxiter"],
                                 known["adaptive"], limits, first)
        return Minimum(end.points[0], end.values[0], x, end.nit, end.nfev, small, small & False,
                       ()), None
    if how == "powell":
        known = option("minimize", given, {"maxiter": 1000 * x.size, "xtol": short,
                                           "ftol": short, "direc": None})
        path, small = powell(value, x if limits is None else jnp.clip(x, *limits), known["xtol"],
                             known["ftol"], known["maxiter"], limits,
                             _table("direc", known["direc"], (x.size, x.size)))
        return Minimum(path.x, path.value, x, path.nit, path.nfev, small, small & False,
                       ()), path.directions
    common: dict[str, Any] = {"gtol": 1e-5 if tol is None else tol, "norm": np.inf,
                              "maxiter": 200 * x.size, "line_search_maxiter": 20}
    if how == "tnc":
        known = option("minimize", given, {**common, "ftol": 2.2e-9 if tol is None else tol})
        lower, upper = (jnp.full_like(x, -math.inf), jnp.full_like(x, math.inf)) \
            if limits is None else limits
        return newton_in_bounds(fun, x, known["gtol"], known["maxiter"], known["ftol"], lower,
                                upper), None
    if how in TRUST:
        known = option("minimize", given, {**common, "initial_trust_radius": 1.0,
                                           "max_trust_radius": 1000.0, "eta": 0.15})
        return trust_region(how, fun, x, _small(known), known["maxiter"],
                            known["initial_trust_radius"], known["max_trust_radius"],
                            known["eta"]), None
    if how.startswith("l-bfgs"):
        common |= {"maxcor": 10, "ftol": 2.2e-9 if tol is None else tol}
        common["maxiter"] = 15000
        known = option("minimize", given, {**common, "maxls": 20, "maxfun": math.inf,
                                           "maxgrad": math.inf})
        small = _small(known)
        if limits is not None:
            return lbfgs_in_bounds(fun, x, known["gtol"], known["maxiter"], known["maxcor"],
                                   known["ftol"], *limits), None
        searches = min(known["maxls"], known["line_search_maxiter"])
        return lbfgs(fun, x, small, known["maxiter"], known["maxcor"], known["ftol"],
                     searches), None
    known = option("minimize", given, common)
    small, most = _small(known), 200 * x.size if known["maxiter"] is None else known["maxiter"]
    if how == "bfgs":
        found = bfgs(fun, x, small, most, known["line_search_maxiter"])
        inverse = found.memory
    elif how == "cg":
        found = conjugate_gradients(fun, x, small, most)
    else:
        found = newton_cg(fun, x, small, most)
    return found, inverse


def _table(name: str, given: Any, shape: tuple[int, int]) -> Array | None:
    if given is None:
        return None
    table: Array = jnp.asarray(given)
    if table.shape != shape:
        raise ShapeError(f"functrans.scipy.optimize.minimize: {name} has shape {table.shape}.",
                         where=user_source(), why=f"it is {shape}.")
    return table


def _small(known: dict[str, Any]) -> Any:
    order = known["norm"]
    return lambda g: jnp.linalg.norm(g, ord=order) <= known["gtol"]


def limits_of(bounds: Any, x: Array) -> tuple[Array, Array]:
    """Lower and upper bounds as vectors; None is no bound."""
    if hasattr(bounds, "lb"):
        bounds = (bounds.lb, bounds.ub)
    pairs = isinstance(bounds, (list, tuple)) and len(bounds) == x.size and all(
        isinstance(b, (list, tuple)) and len(b) == 2 for b in bounds)
    if pairs and not (x.size == 2 and all(
            v is not None and jnp.ndim(v) for b in bounds for v in b)):
        sides = [[b[i] for b in bounds] for i in (0, 1)]
    elif len(bounds) == 2:
        sides = [list(np.atleast_1d(b)) if isinstance(b, (list, tuple)) else b for b in bounds]
    else:
        raise ShapeError(f"functrans.scipy.optimize: there are {len(bounds)} bounds.",
                         where=user_source(), why=f"there are {x.size} variables.",
                         fix="bounds=(lower, upper), or a pair for each variable")
    found = []
    for side, none in zip(sides, (-math.inf, math.inf)):
        given = side if isinstance(side, list) else [side]
        values = [converted("scipy.optimize", none if v is None else v, x.dtype) for v in given]
        limit = jnp.stack(values) if isinstance(side, list) else values[0]
        found.append(jnp.broadcast_to(limit.reshape(-1) if limit.ndim else limit, x.shape))
    return found[0], found[1]
