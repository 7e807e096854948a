"""Results by name, as SciPy returns them, and what it says of its solvers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import one_of


class OptimizeWarning(UserWarning):
    """What SciPy warns of with; a category for `warnings.filterwarnings`.

    >>> issubclass(ft.scipy.optimize.OptimizeWarning, UserWarning)
    True
    """


_COMMON = {"maxiter": "iterations, at most", "gtol": "the norm of the gradient at the end",
           "norm": "which norm that is"}
_MINIMIZE = {
    "bfgs": _COMMON | {"line_search_maxiter": "evaluations of a line search, at most"},
    "cg": _COMMON, "newton-cg": _COMMON,
    "l-bfgs-b": _COMMON | {"maxcor": "corrections that are kept", "ftol": "the last relative fall",
                           "maxls": "evaluations of a line search, at most"},
    "tnc": _COMMON | {"ftol": "the last relative fall"},
    **{how: _COMMON | {"initial_trust_radius": "the first radius",
                       "max_trust_radius": "the largest radius",
                       "eta": "the share of the predicted fall that a step needs"}
       for how in ("trust-ncg", "trust-krylov", "trust-exact", "dogleg")},
    **{how: {"maxiter": "iterations, at most", "ftol": "the accuracy of the value"}
       for how in ("slsqp", "trust-constr")},
    "nelder-mead": {"maxiter": "iterations, at most", "xatol": "the size of the last simplex",
                    "fatol": "the spread of its values", "adaptive": "for many variables"},
    "powell": {"maxiter": "iterations, at most", "xtol": "the last relative step",
               "ftol": "the last relative fall"},
    "cobyla": {"maxiter": "evaluations, at most", "rhobeg": "the first radius",
               "tol": "the last radius"},
    "cobyqa": {"maxiter": "iterations, at most", "maxfev": "evaluations, at most",
               "initial_tr_radius": "the first radius", "final_tr_radius": "the last radius"}}
_NONLINEAR = {"nit": "iterations to take, without a test", "maxiter": "iterations, at most",
              "fatol": "the largest part of the function at the end",
              "ftol": "that relative to the first", "xatol": "the largest part of the last step",
              "xtol": "that relative to x", "line_search": "None or 'armijo'",
              "jac_options": "of the Jacobian: arguments of the function of this name"}
_BRACKETED = {"xtol": "the absolute accuracy", "rtol": "the relative accuracy",
              "maxiter": "iterations, at most"}
_OPTIONS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = MappingProxyType({
    "minimize": _MINIMIZE,
    "minimize_scalar": {
        **{how: {"maxiter": "iterations, at most", "xtol": "the relative accuracy"}
           for how in ("brent", "golden")},
        "bounded": {"maxiter": "iterations, at most", "xatol": "the absolute accuracy"}},
    "root": {
        **{how: {"xtol": "the last relative step", "maxfev": "evaluations, at most"}
           for how in ("hybr", "lm", "broyden1")},
        **dict.fromkeys(("broyden2", "anderson", "linearmixing", "diagbroyden", "excitingmixing",
                         "krylov"), _NONLINEAR),
        "df-sane": {"ftol": "the norm relative to the first", "fatol": "the norm at the end",
                    "maxfev": "evaluations, at most", "M": "values that are looked back at"}},
    "root_scalar": {
        **dict.fromkeys(("bisect", "brentq", "brenth", "ridder"), _BRACKETED),
        "toms748": _BRACKETED | {"k": "interpolations a step"},
        **dict.fromkeys(("newton", "halley", "secant"), _BRACKETED)},
    "linprog": {"highs": {}},
    "quadratic_assignment": {
        "faq": {"maximize": "whether the largest is sought", "rng": "a key",
                "partial_match": "pairs that are known", "P0": "the start",
                "shuffle_input": "whether the input is permuted", "maxiter": "steps, at most",
                "tol": "the last change"},
        "2opt": {"maximize": "whether the largest is sought", "rng": "a key",
                 "partial_match": "pairs that are known", "partial_guess": "pairs to begin with"}}})


def show_options(solver: str | None = None, method: str | None = None, disp: bool = True
                 ) -> str | None:
    """The options of a solver's methods: printed, or returned without `disp`.

    Raises ArgumentError for an unknown solver or method.

    >>> import functrans as ft
    >>> ft.scipy.optimize.show_options("minimize_scalar", "bounded")
    minimize_scalar, method='bounded'
        maxiter: iterations, at most
        xatol: the absolute accuracy
    """
    solvers = tuple(_OPTIONS) if solver is None else (str(solver).lower(),)
    lines = []
    for name in solvers:
        one_of("optimize.show_options", "solver", name, tuple(_OPTIONS))
        methods = tuple(_OPTIONS[name])
        if method is not None:
            if solver is None:
                raise ArgumentError("functrans.scipy.optimize.show_options: a method without its "
                                    "solver.", where=user_source(), fix="solver='minimize'")
            how = str(method).lower().removeprefix(f"{name}.")
            one_of("optimize.show_options", "method", how, methods)
            methods = (how,)
        for how in methods:
            lines.append(f"{name}, method={how!r}")
            lines += [f"    {k}: {v}" for k, v in _OPTIONS[name][how].items()]
    text = "\n".join(lines)
    if not disp:
        return text
    print(text)
    return None


def linprog_verbose_callback(res: Any) -> None:
    """Print x, the value and the number of iterations of a result of `linprog`.

    >>> import functrans as ft
    >>> ft.scipy.optimize.linprog_verbose_callback(ft.scipy.optimize.OptimizeResult(
    ...     x=ft.numpy.ones(2), fun=3.0, nit=4))
    iteration 4: f = 3, x = [1.0, 1.0]
    """
    print(f"iteration {int(res['nit'] if isinstance(res, dict) else res.nit)}: "
          f"f = {float(res['fun'] if isinstance(res, dict) else res.fun):.6g}, "
          f"x = {(res['x'] if isinstance(res, dict) else res.x).tolist()}")
