"""Derivatives of solutions by the implicit function theorem, and what solvers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo, kind
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import converted
from functrans.scipy.arguments import inexact
from functrans.scipy.sparse.krylov import gmres
from functrans.transforms.flat import check_callable
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

Function = Callable[..., Any]
_DENSE = 1000  # unknowns up to which a system is solved by its matrix


def solution(residual: Function, start: Array, solve: Callable[[Array], tuple[Array, Any]]
             ) -> tuple[Array, Any]:
    """The root of a residual that `solve(start)` finds, and what else it returns.

    The root has the derivatives of a root; what else there is has none.
    """
    found: tuple[Array, Any] = lax.custom_root(
        residual, start, lambda _, x: solve(x), solve_linear, has_aux=True)
    return found


def solve_linear(function: Callable[[Array], Array], y: Array) -> Array:
    """x with function(x) = y for a linear function of a vector or a scalar."""
    if not y.ndim:
        return y / function(jnp.ones_like(y))
    size = y.size
    if size > _DENSE:
        x, _ = gmres(function, y, tol=float(finfo(y.dtype).eps) * 10, restart=50)
        return x
    rows = vmap(function)(jnp.eye(size, dtype=y.dtype).reshape(size, *y.shape))
    matrix = rows.reshape(size, size).T
    return jnp.linalg.solve(matrix, y.reshape(size)).reshape(y.shape)


def with_args(name: str, fun: Function, args: Any) -> Function:
    """fun with its further arguments, which are a tuple; SciPy takes a single one as it is."""
    check_callable(fun, f"scipy.optimize.{name}")
    more = args if isinstance(args, tuple) else (args,)
    return lambda *x: fun(*x, *more)


def start_of(name: str, argument: str, x0: ArrayLike) -> Array:
    """The start of a search, in a floating dtype."""
    (x,) = inexact(x0)
    if kind(x.dtype) != "f":
        raise ArgumentError(f"functrans.scipy.optimize.{name}: {argument} is {x.dtype}.",
                            where=user_source(), why="it is real.")
    return lax.convert_element_type(x, x.dtype, False)


def scalar_value(name: str, fun: Function, x: Array) -> Array:
    """fun(x), which is one number, in the dtype of x."""
    value = jnp.asarray(fun(x))
    if value.size != 1 or kind(value.dtype) == "c":
        raise ShapeError(f"functrans.scipy.optimize.{name}: the function returns "
                         f"{value.dtype}{list(value.shape)}.", where=user_source(),
                         why="it returns one real number.", fix="return (...).sum()")
    return value.reshape(()).astype(x.dtype)


def at_least_eps(tolerance: Any, dtype: Any, times: float = 4.0) -> Any:
    """A relative tolerance that numbers of a dtype can meet."""
    least = times * float(finfo(dtype).eps)
    return jnp.maximum(converted("scipy.optimize", tolerance, dtype), least)


def option(name: str, options: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Options with their defaults; raises ArgumentError for those that a method does not have."""
    unknown = set(options) - set(known) - {"disp"}
    if unknown:
        raise ArgumentError(f"functrans.scipy.optimize.{name}: there is no option "
                            f"{sorted(unknown)[0]!r}.", where=user_source(),
                            fix=", ".join(sorted(known)))
    return {**known, **options}
