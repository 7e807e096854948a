"""Names of SciPy that return the solution alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, of_rank, refused
from functrans.scipy.optimize.implicit import Function
from functrans.scipy.optimize.least_squares import least_squares
from functrans.scipy.optimize.minimizing import minimize
from functrans.scipy.optimize.results import LeastSquaresResults
from functrans.scipy.optimize.roots import root
from functrans.scipy.optimize.scalar_minima import minimize_scalar
from functrans.scipy.products import matmul
from functrans.transforms.derivatives import jacfwd
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

_STEP = 1.4901161193847656e-08  # the root of the epsilon of doubles


def _tuple(args: Any) -> tuple[Any, ...]:
    return args if isinstance(args, tuple) else (args,)


def _options(**given: Any) -> Mapping[str, Any]:
    return {k: v for k, v in given.items() if v is not None}


def _only(name: str, why: str, fix: str = "", **given: Any) -> None:
    """Refuse arguments of SciPy's that have no meaning here, unless they are as they are there."""
    for argument, (value, default) in given.items():
        if value is not default and value != default:
            raise refused(f"optimize.{name}", argument, why, fix)


def _on_the_way(name: str, retall: Any, callback: Any) -> None:
    _only(name, "the search is a compiled loop, whose steps are not kept.",
          "functrans.debug.callback within the function", retall=(bool(retall), False),
          callback=(callback, None))


def _line_search(name: str, c1: float, c2: float, most: float) -> None:
    _only(name, "constants of the line search are those of the method.", c1=(c1, 1e-4),
          c2=(c2, most))


def _told(disp: Any, found: Any) -> None:
    """What SciPy prints of a search, where values are known."""
    if disp and not is_traced(found.success):
        how = "Optimization terminated successfully." if bool(found.success) else \
            "The optimization did not converge."
        print(f"{how}\n         Current function value: {float(found.fun):f}\n"
              f"         Iterations: {int(found.nit)}\n"
              f"         Function evaluations: {int(found.nfev)}")


def _fewest(maxiter: int | None, maxfun: int | None) -> int | None:
    """A bound of iterations, each of which takes an evaluation or more."""
    given = [v for v in (maxiter, maxfun) if v is not None]
    return min(given) if given else None


def fsolve(func: Function, x0: ArrayLike, args: Any = (), fprime: Function | None = None,
           full_output: bool | int = False, col_deriv: bool | int = False,
           xtol: float = 1.49012e-8, maxfev: int = 0, band: None = None,
           epsfcn: float | None = None, factor: float = 100, diag: None = None
           ) -> Array | tuple[Array, dict[str, Array], Array, str]:
    """A root of a function of a vector; see `root`, which says whether it was found.

    With `full_output` also a dict (`nfev`, `fvec`, and of the Jacobian q r at x `fjac`, which is q
    transposed, `r`, packed by rows, and `qtf`), 1 where it was found (else 5), and a message.
    With `col_deriv` `fprime` returns the transposed Jacobian. Derivatives are exact: `band`,
    `epsfcn`, `factor` and `diag` are not needed.

    >>> import functrans as ft
    >>> ft.scipy.optimize.fsolve(lambda x: x ** 3 - 8, ft.numpy.ones(1)).round(4).tolist()
    [2.0]
    """
    slope = _turned(fprime, col_deriv)
    more = _tuple(args)
    found = root(func, x0, more, jac=slope, options=_options(xtol=xtol, maxfev=maxfev or None))
    if not full_output:
        return found.x
    x = found.x.reshape(-1)
    jacobian = jacfwd(lambda v: jnp.asarray(func(v.reshape(found.x.shape), *more)).reshape(-1))(x)
    q, r = jnp.linalg.qr(jacobian)
    info = {"nfev": found.nfev, "fjac": q.T, "r": r[np.triu_indices(x.size)],
            "qtf": matmul(q.T, found.fun.reshape(-1)), "fvec": found.fun}
    return found.x, info, found.status, _message(found.success)


def _turned(slope: Function | None, col_deriv: Any) -> Function | None:
    if slope is None or not col_deriv:
        return slope
    of_columns = slope
    return lambda *x: jnp.asarray(of_columns(*x)).T


def _message(success: Array) -> str:
    if is_traced(success):
        return "The flag says whether the solution converged."
    return "The solution converged." if bool(success) else "The iteration did not converge."


def leastsq(func: Function, x0: ArrayLike, args: Any = (), Dfun: Function | None = None,
            full_output: bool | int = False, col_deriv: bool | int = False,
            ftol: float = 1.49012e-8, xtol: float = 1.49012e-8, gtol: float = 0.0,
            maxfev: int = 0, epsfcn: float | None = None, factor: float = 100, diag: None = None
            ) -> tuple[Array, Array] | tuple[Array, Array, dict[str, Array], str, Array]:
    """x with the least sum of squares of residuals, and 1 where it was found; see `least_squares`.

    With `full_output` x, the inverse of J' J (of which the covariance is the variance of residuals
    times), a dict (`nfev`, `fvec`, `fjac`: the Jacobian J), a message, and the flag. With
    `col_deriv` `Dfun` returns J transposed. `epsfcn`, `factor` and `diag` are not needed.

    >>> import functrans as ft
    >>> x, flag = ft.scipy.optimize.leastsq(lambda x: x - 2.0, ft.numpy.zeros(1))
    >>> x.tolist(), int(flag)
    ([2.0], 1)
    """
    slope = _turned(Dfun, col_deriv)
    found = least_squares(func, x0, "2-point" if slope is None else slope, ftol=ftol, xtol=xtol,
                          gtol=gtol, method="lm", max_nfev=maxfev or None, args=_tuple(args))
    flag = jnp.where(found.success, 1, 5)
    if not full_output:
        return found.x, flag
    covariance = jnp.linalg.inv(matmul(found.jac.T, found.jac))
    return (found.x, covariance, {"nfev": found.nfev, "fvec": found.fun, "fjac": found.jac},
            _message(found.success), flag)


def fmin(func: Function, x0: ArrayLike, args: Any = (), xtol: float = 1e-4, ftol: float = 1e-4,
         maxiter: int | None = None, maxfun: int | None = None, full_output: bool | int = 0,
         disp: bool | int = 0, retall: bool | int = 0, callback: None = None,
         initial_simplex: ArrayLike | None = None) -> Array | tuple[Array, ...]:
    """A minimum by Nelder and Mead's method; see `minimize`.

    With `full_output` also its value, the numbers of iterations and evaluations, and 0 where it was
    found. `maxfun` bounds iterations, too. With `disp` this is printed. `retall` is refused.

    >>> import functrans as ft
    >>> ft.scipy.optimize.fmin(lambda x: ((x - 2) ** 2).sum(), ft.numpy.ones(1)).round(2).tolist()
    [2.0]
    """
    _on_the_way("fmin", retall, callback)
    found = minimize(func, x0, _tuple(args), method="Nelder-Mead",
                     options=_options(xatol=xtol, fatol=ftol, maxiter=_fewest(maxiter, maxfun),
                                      initial_simplex=initial_simplex))
    _told(disp, found)
    return (found.x, found.fun, found.nit, found.nfev, found.status) if full_output else found.x


def fmin_bfgs(f: Function, x0: ArrayLike, fprime: Function | None = None, args: Any = (),
              gtol: float = 1e-5, norm: float = np.inf, epsilon: Any = _STEP,
              maxiter: int | None = None, full_output: bool | int = 0, disp: bool | int = 0,
              retall: bool | int = 0, callback: None = None, xrtol: float = 0, c1: float = 1e-4,
              c2: float = 0.9, hess_inv0: None = None) -> Array | tuple[Array, ...]:
    """A minimum by BFGS; see `minimize`. Gradients are automatic: `fprime` is not called.

    With `full_output` also its value, the gradient, the inverse Hessian, the numbers of evaluations
    of f and of the gradient, and 0 where it was found. `epsilon`, the step of differences, is not
    needed; `retall`, `xrtol`, `hess_inv0` and other constants of the line search are refused.

    >>> import functrans as ft
    >>> f = lambda x: ((x - 2) ** 2).sum()
    >>> ft.scipy.optimize.fmin_bfgs(f, ft.numpy.ones(1)).round(4).tolist()
    [2.0]
    """
    _on_the_way("fmin_bfgs", retall, callback)
    _line_search("fmin_bfgs", c1, c2, 0.9)
    _only("fmin_bfgs", "it begins with the identity, and ends by the gradient.",
          xrtol=(xrtol, 0), hess_inv0=(hess_inv0, None))
    found = minimize(f, x0, _tuple(args), method="BFGS",
                     options=_options(gtol=gtol, norm=norm, maxiter=maxiter))
    _told(disp, found)
    inverse = found.hess_inv
    assert inverse is not None
    return (found.x, found.fun, found.jac, inverse, found.nfev, found.njev,
            found.status) if full_output else found.x


def fmin_cg(f: Function, x0: ArrayLike, fprime: Function | None = None, args: Any = (),
            gtol: float = 1e-5, norm: float = np.inf, epsilon: Any = _STEP,
            maxiter: int | None = None, full_output: bool | int = 0, disp: bool | int = 0,
            retall: bool | int = 0, callback: None = None, c1: float = 1e-4, c2: float = 0.4
            ) -> Array | tuple[Array, ...]:
    """A minimum by conjugate gradients; see `minimize`. `fprime` is not called.

    With `full_output` also its value, the numbers of evaluations of f and of the gradient, and 0
    where it was found. See `fmin_bfgs` for the others.

    >>> import functrans as ft
    >>> f = lambda x: ((x - 2) ** 2).sum()
    >>> ft.scipy.optimize.fmin_cg(f, ft.numpy.ones(1)).round(4).tolist()
    [2.0]
    """
    _on_the_way("fmin_cg", retall, callback)
    _line_search("fmin_cg", c1, c2, 0.4)
    found = minimize(f, x0, _tuple(args), method="CG",
                     options=_options(gtol=gtol, norm=norm, maxiter=maxiter))
    _told(disp, found)
    return (found.x, found.fun, found.nfev, found.njev, found.status) if full_output else found.x


def fmin_l_bfgs_b(func: Function, x0: ArrayLike, fprime: Function | None = None, args: Any = (),
                  approx_grad: int = 0, bounds: Any = None, m: int = 10, factr: float = 1e7,
                  pgtol: float = 1e-5, epsilon: Any = 1e-8, iprint: Any = None,
                  maxfun: int = 15000, maxiter: int = 15000, disp: Any = None,
                  callback: None = None, maxls: int = 20
                  ) -> tuple[Array, Array, dict[str, Array]]:
    """A minimum within bounds, its value, a dict of gradient and counts; see `minimize`.

    func returns its value, or without `fprime` and `approx_grad` also the gradient, which is left.

    >>> import functrans as ft
    >>> f = lambda x: ((x - 2) ** 2).sum()
    >>> x, value, _ = ft.scipy.optimize.fmin_l_bfgs_b(f, ft.numpy.ones(1), approx_grad=True)
    >>> x.round(4).tolist()
    [2.0]
    """
    _on_the_way("fmin_l_bfgs_b", 0, callback)
    found = minimize(func, x0, _tuple(args), method="L-BFGS-B", bounds=bounds,
                     jac=True if fprime is None and not approx_grad else None, options={
                         "maxcor": m, "ftol": factr * float(np.finfo(float).eps), "gtol": pgtol,
                         "maxiter": min(maxiter, maxfun), "maxls": maxls})
    _told(disp, found)
    return found.x, found.fun, {"grad": found.jac, "warnflag": found.status, "nit": found.nit,
                                "funcalls": found.nfev}


def fmin_powell(func: Function, x0: ArrayLike, args: Any = (), xtol: float = 1e-4,
                ftol: float = 1e-4, maxiter: int | None = None, maxfun: int | None = None,
                full_output: bool | int = 0, disp: bool | int = 0, retall: bool | int = 0,
                callback: None = None, direc: ArrayLike | None = None) -> Array | tuple[Array, ...]:
    """A minimum by Powell's method, along one direction after the other; see `minimize`.

    With `full_output` also its value, the directions, the numbers of iterations and evaluations,
    and 0 where it was found. `direc` are the first directions. See `fmin` for the others.

    >>> import functrans as ft
    >>> f = lambda x: ((x - 2) ** 2).sum()
    >>> ft.scipy.optimize.fmin_powell(f, ft.numpy.ones(1)).round(3).tolist()
    [2.0]
    """
    _on_the_way("fmin_powell", retall, callback)
    found = minimize(func, x0, _tuple(args), method="Powell",
                     options=_options(xtol=xtol, ftol=ftol, maxiter=_fewest(maxiter, maxfun),
                                      direc=direc))
    _told(disp, found)
    directions = found.hess_inv
    assert directions is not None
    return (found.x, found.fun, directions, found.nit, found.nfev,
            found.status) if full_output else found.x


def fmin_ncg(f: Function, x0: ArrayLike, fprime: Function | None = None,
             fhess_p: Function | None = None, fhess: Function | None = None, args: Any = (),
             avextol: float = 1e-5, epsilon: Any = _STEP, maxiter: int | None = None,
             full_output: bool | int = 0, disp: bool | int = 0, retall: bool | int = 0,
             callback: None = None, c1: float = 1e-4, c2: float = 0.9) -> Array | tuple[Array, ...]:
    """A minimum by Newton's method with conjugate gradients; see `minimize`.

    Derivatives are automatic: `fprime`, `fhess_p` and `fhess` are not called, and `epsilon`, the
    step of differences, is not needed. `avextol` is the norm of the gradient. With `full_output`
    also its value, the numbers of evaluations of f and of the gradient, that of iterations, and 0
    where it was found. See `fmin_bfgs` for the others.

    >>> import functrans as ft
    >>> f = lambda x: ((x - 2) ** 2).sum()
    >>> ft.scipy.optimize.fmin_ncg(f, ft.numpy.ones(1)).round(4).tolist()
    [2.0]
    """
    _on_the_way("fmin_ncg", retall, callback)
    _line_search("fmin_ncg", c1, c2, 0.9)
    found = minimize(f, x0, _tuple(args), method="Newton-CG",
                     options=_options(gtol=avextol, maxiter=maxiter))
    _told(disp, found)
    return (found.x, found.fun, found.nfev, found.njev, found.nit,
            found.status) if full_output else found.x


def fmin_tnc(func: Function, x0: ArrayLike, fprime: Function | None = None, args: Any = (),
             approx_grad: int = 0, bounds: Any = None, epsilon: Any = 1e-8, scale: None = None,
             offset: None = None, messages: int = 15, maxCGit: int = -1,
             maxfun: int | None = None, eta: float = -1, stepmx: float = 0, accuracy: float = 0,
             fmin: float = 0, ftol: float = -1, xtol: float = -1, pgtol: float = -1,
             rescale: float = -1, disp: Any = None, callback: None = None
             ) -> tuple[Array, Array, Array]:
    """A minimum within bounds by a truncated Newton's method, and its cost; see `minimize`.

    The last value is 1, or 3 where it was not found. func returns its value, or without `fprime`
    and `approx_grad` also the gradient, which is left. Negative tolerances are those of `minimize`;
    what scales the variables and bounds inner steps (`scale` to `rescale`) is refused.

    >>> import functrans as ft
    >>> f = lambda x: ((x - 2) ** 2).sum()
    >>> x, count, flag = ft.scipy.optimize.fmin_tnc(f, ft.numpy.ones(1), approx_grad=True)
    >>> x.round(4).tolist(), int(flag)
    ([2.0], 1)
    """
    _on_the_way("fmin_tnc", 0, callback)
    _only("fmin_tnc", "steps are scaled by the Hessian.", scale=(scale, None),
          offset=(offset, None), maxCGit=(maxCGit, -1), eta=(eta, -1), stepmx=(stepmx, 0),
          accuracy=(accuracy, 0), fmin=(fmin, 0), xtol=(xtol, -1), rescale=(rescale, -1))
    found = minimize(func, x0, _tuple(args), method="TNC", bounds=bounds,
                     jac=True if fprime is None and not approx_grad else None, options=_options(
                         maxiter=maxfun, ftol=None if ftol < 0 else ftol,
                         gtol=None if pgtol < 0 else pgtol))
    _told(disp, found)
    return found.x, found.nfev, jnp.where(found.success, 1, 3)


def fmin_slsqp(func: Function, x0: ArrayLike, eqcons: Sequence[Function] = (),
               f_eqcons: Function | None = None, ieqcons: Sequence[Function] = (),
               f_ieqcons: Function | None = None, bounds: Any = (),
               fprime: Function | None = None, fprime_eqcons: Function | None = None,
               fprime_ieqcons: Function | None = None, args: Any = (), iter: int = 100,
               acc: float = 1e-6, iprint: int = 1, disp: Any = None,
               full_output: bool | int = 0, epsilon: Any = _STEP, callback: None = None
               ) -> Array | tuple[Array, Array, Array, Array, str]:
    """A minimum under constraints by a sequence of quadratic programs; see `minimize`.

    Functions of `eqcons`, or the vector of `f_eqcons`, are 0; those of `ieqcons`, or that of
    `f_ieqcons`, are not negative. They take `args` as func does; derivatives are automatic. With
    `full_output` also its value, the number of iterations, 0 where it was found, and a message.

    >>> import functrans as ft
    >>> f = lambda x: (x ** 2).sum()
    >>> x = ft.scipy.optimize.fmin_slsqp(f, ft.numpy.zeros(2), [lambda x: x.sum() - 2])
    >>> x.round(4).tolist()
    [1.0, 1.0]
    """
    values = _tuple(args)
    constraints = [
        {"type": kind, "fun": fun, "args": values}
        for kind, whole, each in (("eq", f_eqcons, eqcons), ("ineq", f_ieqcons, ieqcons))
        for fun in (each if whole is None else [whole])]
    limits = bounds if bounds is not None and len(bounds) else None
    _on_the_way("fmin_slsqp", 0, callback)
    found = minimize(func, x0, values, method="SLSQP", bounds=limits, constraints=constraints,
                     options={"maxiter": iter, "ftol": acc})
    _told(disp, found)
    return (found.x, found.fun, found.nit, found.status,
            _message(found.success)) if full_output else found.x


def fmin_cobyla(func: Function, x0: ArrayLike, cons: Any, args: Any = (), consargs: Any = None,
                rhobeg: float = 1.0, rhoend: float = 1e-4, maxfun: int = 1000,
                disp: int | None = None, catol: float = 2e-4, *, callback: None = None) -> Array:
    """A minimum where functions `cons` are not negative, without derivatives; see `minimize`.

    >>> import functrans as ft
    >>> f = lambda x: x[0] * x[1]
    >>> disc = lambda x: 1 - (x ** 2).sum()
    >>> print(ft.scipy.optimize.fmin_cobyla(f, [0.0, 0.1], disc, rhoend=1e-6).round(2))
    [-0.71  0.71]
    """
    values = _tuple(args)
    more = values if consargs is None else _tuple(consargs)
    constraints = [{"type": "ineq", "fun": fun, "args": more}
                   for fun in (cons if isinstance(cons, Sequence) else [cons])]
    return minimize(func, x0, values, method="COBYLA", constraints=constraints, callback=callback,
                    options={"rhobeg": rhobeg, "tol": rhoend, "maxiter": maxfun}).x


def brute(func: Function, ranges: Sequence[Any], args: Any = (), Ns: int = 20,
          full_output: bool | int = 0, finish: Any = fmin, disp: bool = False, workers: Any = 1
          ) -> Array | tuple[Array, ...]:
    """The lowest point of a grid, and from there on a minimum by `finish` (None: the point).

    A range is a pair of ends, between which there are `Ns` places, or a slice with a step, whose
    end is left out. With `full_output` the value, the grid and the values on it follow. The grid is
    computed at once, by `vmap`: `workers` is not needed.

    >>> import functrans as ft
    >>> f = lambda x: (x[0] ** 2 - 1) ** 2 + 0.3 * x[0] + (x[1] - 0.5) ** 2
    >>> x = ft.scipy.optimize.brute(f, ((-2.0, 2.0), slice(-1.0, 1.5, 0.5)))
    >>> print(x.round(2))
    [-1.04  0.5 ]
    """
    values = _tuple(args)
    lines = [np.arange(r.start, r.stop, 1.0 if r.step is None else r.step) if isinstance(r, slice)
             else np.linspace(float(r[0]), float(r[1]), Ns) for r in ranges]
    mesh = np.stack(np.meshgrid(*lines, indexing="ij"))
    (grid,) = inexact(mesh.astype(default_float()))
    points = grid.reshape(len(lines), -1).T

    def value(x: Array) -> Array:
        found: Array = jnp.asarray(func(x if len(lines) > 1 else x[0], *values))
        return found

    heights: Array = vmap(value)(points)
    x: Any = points[jnp.argmin(heights)]
    lowest = jnp.min(heights)
    if len(lines) == 1:
        x, grid = x[0], grid[0]
    if finish is not None:
        of_line = len(lines) == 1
        end = finish((lambda v, *a: func(v[0], *a)) if of_line else func, jnp.atleast_1d(x),
                     args=values)
        x = end[0] if of_line else end
        lowest = jnp.asarray(func(x, *values))
    return (x, lowest, grid, heights.reshape(mesh.shape[1:])) if full_output else x


def fminbound(func: Function, x1: ArrayLike, x2: ArrayLike, args: Any = (), xtol: float = 1e-5,
              maxfun: int = 500, full_output: bool | int = 0, disp: int = 1
              ) -> Array | tuple[Array, ...]:
    """A minimum of a function of one number between two; see `minimize_scalar`.

    With `full_output` also its value, 0 where it was found, and the number of evaluations. It is
    printed with a `disp` above 2.

    >>> import functrans as ft
    >>> round(float(ft.scipy.optimize.fminbound(lambda x: (x - 1) ** 2, 0.0, 3.0)), 3)
    1.0
    """
    found = minimize_scalar(func, bounds=(x1, x2), args=_tuple(args), method="bounded",
                            options={"xatol": xtol, "maxiter": maxfun})
    _told(disp > 2, found)
    return (found.x, found.fun, jnp.where(found.success, 0, 1),
            found.nfev) if full_output else found.x


def brent(func: Function, args: Any = (), brack: Any = None, tol: float = 1.48e-8,
          full_output: bool | int = 0, maxiter: int = 500) -> Array | tuple[Array, ...]:
    """A minimum of a function of one number by Brent's method; see `minimize_scalar`.

    With `full_output` also its value, and the numbers of iterations and evaluations.

    >>> import functrans as ft
    >>> round(float(ft.scipy.optimize.brent(lambda x: (x - 1) ** 2)), 3)
    1.0
    """
    found = minimize_scalar(func, brack, args=_tuple(args), method="brent", tol=tol,
                            options={"maxiter": maxiter})
    return (found.x, found.fun, found.nit, found.nfev) if full_output else found.x


def golden(func: Function, args: Any = (), brack: Any = None, tol: float = _STEP,
           full_output: bool | int = 0, maxiter: int = 5000) -> Array | tuple[Array, ...]:
    """A minimum of a function of one number by golden sections; see `minimize_scalar`.

    With `full_output` also its value, and the number of evaluations.

    >>> import functrans as ft
    >>> round(float(ft.scipy.optimize.golden(lambda x: (x - 1) ** 2)), 3)
    1.0
    """
    found = minimize_scalar(func, brack, args=_tuple(args), method="golden", tol=tol,
                            options={"maxiter": maxiter})
    return (found.x, found.fun, found.nfev) if full_output else found.x


def lsq_linear(A: ArrayLike, b: ArrayLike, bounds: Any = (-np.inf, np.inf), method: str = "trf",
               tol: float = 1e-10, *, max_iter: int | None = None) -> LeastSquaresResults:
    """x within bounds with the least sum of squares of A x - b; see `least_squares`.

    >>> import functrans as ft
    >>> ft.scipy.optimize.lsq_linear([[1.0], [1.0]], [1.0, 3.0]).x.round(4).tolist()
    [2.0]
    """
    matrix, right = inexact(A, b)
    of_rank("optimize.lsq_linear", "A", matrix, 2)
    if right.shape != matrix.shape[:1]:
        raise ShapeError(f"functrans.scipy.optimize.lsq_linear: A has shape {matrix.shape}, b "
                         f"{right.shape}.", where=user_source(), why="b has a value for each row.")
    return least_squares(lambda x: matmul(matrix, x) - right, jnp.zeros_like(matrix[0]),
                         lambda x: matrix, bounds, {"bvls": "trf"}.get(method, method), ftol=tol,
                         xtol=tol, gtol=tol, max_nfev=max_iter)
