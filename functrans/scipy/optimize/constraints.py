"""Constraints of minima: bounds, linear and nonlinear ones, and those that are dicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ConcretizationError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.products import matmul
from functrans.transforms.flat import check_callable
from functrans.typing import Array


class Bounds(NamedTuple):
    """Bounds lb <= x <= ub of variables; infinite ones are none. All methods keep to them;
    `bounds.residual(x)` says how far they are.

    >>> import functrans as ft
    >>> bounds = ft.scipy.optimize.Bounds(0.0, 1.0)
    >>> f = lambda x: ((x - 2) ** 2).sum()
    >>> ft.scipy.optimize.minimize(f, jnp.zeros(1), method="L-BFGS-B", bounds=bounds).x.tolist()
    [1.0]
    """

    lb: Any = -math.inf
    ub: Any = math.inf
    keep_feasible: Any = False

    def residual(self, x: Any) -> tuple[Array, Array]:
        """How far x is above lb and below ub."""
        at, low, high = inexact(x, self.lb, self.ub)
        return at - low, high - at


class LinearConstraint(NamedTuple):
    """lb <= A @ x <= ub; where lb and ub are equal, an equation. `keep_feasible` is accepted;
    `line.residual(x)` says how far both sides are.

    >>> import functrans as ft
    >>> line = ft.scipy.optimize.LinearConstraint([[1.0, 1.0]], 1.0, 1.0)
    >>> f = lambda x: (x ** 2).sum()
    >>> found = ft.scipy.optimize.minimize(f, jnp.zeros(2), method="SLSQP", constraints=line)
    >>> found.x.round(3).tolist()
    [0.5, 0.5]
    """

    A: Any
    lb: Any = -math.inf
    ub: Any = math.inf
    keep_feasible: Any = False

    def residual(self, x: Any) -> tuple[Array, Array]:
        """How far A @ x is above lb and below ub."""
        matrix, at, low, high = inexact(self.A, x, self.lb, self.ub)
        value = matmul(jnp.atleast_2d(matrix), at)
        return value - low, high - value


class NonlinearConstraint(NamedTuple):
    """lb <= fun(x) <= ub; where lb and ub are equal, an equation. Derivatives are automatic.

    >>> import functrans as ft
    >>> disc = ft.scipy.optimize.NonlinearConstraint(lambda x: (x ** 2).sum(), -jnp.inf, 2.0)
    >>> f = lambda x: -x.sum()
    >>> found = ft.scipy.optimize.minimize(f, jnp.zeros(2), method="SLSQP", constraints=disc)
    >>> found.x.round(3).tolist()
    [1.0, 1.0]
    """

    fun: Callable[..., Any]
    lb: Any
    ub: Any
    jac: Any = None
    hess: Any = None
    keep_feasible: Any = False
    finite_diff_rel_step: Any = None
    finite_diff_jac_sparsity: Any = None


class Sides(NamedTuple):
    """Functions of a vector: one that is 0 where equations hold, one that is not negative."""

    equal: Callable[[Array], Array]
    above: Callable[[Array], Array]


def sides_of(constraints: Any, x: Array, shape: tuple[int, ...]) -> Sides:
    """All constraints as two functions of the raveled variables."""
    single = isinstance(constraints, (dict, LinearConstraint, NonlinearConstraint))
    equal: list[Callable[[Array], Array]] = []
    above: list[Callable[[Array], Array]] = []
    for given in ([constraints] if single else list(constraints)):
        if isinstance(given, dict):
            _of_dict(given, shape, equal, above)
        elif hasattr(given, "A") or hasattr(given, "fun"):
            _of_limits(given, x, shape, equal, above)
        else:
            raise ArgumentError(f"functrans.scipy.optimize.minimize: a constraint is a "
                                f"{type(given).__name__}.", where=user_source(),
                                fix='constraints={"type": "ineq", "fun": lambda x: 1 - x.sum()}')
    return Sides(_joined(equal, x), _joined(above, x))


def _joined(parts: list[Callable[[Array], Array]], x: Array) -> Callable[[Array], Array]:
    if not parts:
        return lambda z: jnp.zeros(0, x.dtype)
    return lambda z: jnp.concatenate([part(z).reshape(-1).astype(x.dtype) for part in parts])


def _of_dict(given: dict[str, Any], shape: tuple[int, ...], equal: list[Any], above: list[Any]
             ) -> None:
    if "type" not in given or "fun" not in given:
        raise ArgumentError("functrans.scipy.optimize.minimize: a constraint has the keys "
                            f"{sorted(given)}.", where=user_source(),
                            fix='{"type": "eq", "fun": lambda x: x.sum() - 1}')
    kind = str(given["type"]).lower()
    one_of("optimize.minimize", "the type of a constraint", kind, ("eq", "ineq"))
    check_callable(given["fun"], "scipy.optimize.minimize")
    fun, args = given["fun"], tuple(given.get("args", ()))
    (equal if kind == "eq" else above).append(
        lambda z: jnp.atleast_1d(jnp.asarray(fun(z.reshape(shape), *args))))


def _of_limits(given: Any, x: Array, shape: tuple[int, ...], equal: list[Any], above: list[Any]
               ) -> None:
    """Which side of a limit counts has to be known when the program is made."""
    if hasattr(given, "A"):
        matrix = jnp.atleast_2d(inexact(given.A)[0]).astype(x.dtype)
        if matrix.shape[1] != x.size:
            raise ShapeError(f"functrans.scipy.optimize.LinearConstraint: A has shape "
                             f"{matrix.shape}.", where=user_source(),
                             why=f"there are {x.size} variables.")
        count = matrix.shape[0]

        def value(z: Array) -> Array:
            return matmul(matrix, z)
    else:
        check_callable(given.fun, "scipy.optimize.NonlinearConstraint")

        def value(z: Array) -> Array:
            return jnp.atleast_1d(jnp.asarray(given.fun(z.reshape(shape)))).reshape(-1)

        count = value(x).size
    try:
        low, high = (np.broadcast_to(np.asarray(v, float), (count,)) for v in (given.lb, given.ub))
        same, has_low, has_high = low == high, low > -np.inf, high < np.inf
    except (ConcretizationError, TypeError):
        # limits that are traced are taken for finite and different ones
        same, has_low, has_high = (np.full(count, v) for v in (False, True, True))
    lower, upper = (jnp.broadcast_to(inexact(v)[0].astype(x.dtype), (count,))
                    for v in (given.lb, given.ub))
    for where, to, of in ((same, equal, lambda v: v - lower),
                          (has_low & ~same, above, lambda v: v - lower),
                          (has_high & ~same, above, lambda v: upper - v)):
        places = np.flatnonzero(where)
        if len(places):
            to.append(lambda z, of=of, places=places: of(value(z))[places])
