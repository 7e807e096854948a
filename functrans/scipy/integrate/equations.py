"""odeint and solve_ivp: ordinary differential equations from a value at the first time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import converted
from functrans.scipy.arguments import inexact, of_rank, one_of, refused
from functrans.scipy.integrate.adjoint import odeint as solve_with_adjoint
from functrans.scipy.integrate.radau import solve_radau
from functrans.scipy.integrate.steps import StepTolerance, solve
from functrans.scipy.integrate.tableaus import DOP853, RK23, RK45, Tableau
from functrans.transforms.flat import check_callable
from functrans.typing import Array, ArrayLike

_METHODS: Final[Mapping[str, Tableau]] = MappingProxyType(
    {"RK45": RK45, "RK23": RK23, "DOP853": DOP853})


class OdeResult(NamedTuple):
    """A solution: y has shape (n, times). `success` is False, and y NaN, from a time on that was
    not reached within `max_steps` steps for each time, or where steps became too small.

    >>> solve = ft.scipy.integrate.solve_ivp
    >>> found = solve(lambda t, y: -y, (0.0, 1.0), jnp.ones(1), t_eval=jnp.array([1.0]))
    >>> found.y.round(2), bool(found.success)
    (Array([[0.37]], dtype=float32), True)
    """

    t: Array
    y: Array
    success: Array
    status: Array
    nfev: Array


def solve_ivp(fun: Callable[..., Any], t_span: Any, y0: ArrayLike, method: str = "RK45",
              t_eval: ArrayLike | None = None, dense_output: bool = False, events: None = None,
              vectorized: bool = False, args: tuple[Any, ...] | None = None, *,
              rtol: ArrayLike = 1e-3, atol: ArrayLike = 1e-6, max_step: ArrayLike = np.inf,
              first_step: ArrayLike | None = None, max_steps: int = 100_000,
              jac: Callable[..., Any] | None = None) -> OdeResult:
    """The solution of y' = `fun(t, y, *args)` with y = y0, a vector, at the first time of t_span.

    `method` is "RK45", "RK23", "DOP853" or, for stiff equations, "Radau" (whose Jacobian is that of
    fun, or `jac`). The result has the times `t_eval`, and without them those of t_span: how many
    steps are taken depends on values. All of it is differentiated, through the steps that were
    taken, in both modes. Raises ArgumentError for `events` and `dense_output`.

    >>> import functrans as ft
    >>> found = ft.scipy.integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), ft.numpy.ones(1),
    ...                                      rtol=1e-5)
    >>> round(float(found.y[0, -1]), 3)
    0.368
    """
    one_of("integrate.solve_ivp", "method", method, (*_METHODS, "Radau"))
    check_callable(fun, "scipy.integrate.solve_ivp")
    if events is not None or dense_output:
        raise refused("integrate.solve_ivp", "events and dense_output", "the sizes of results are "
                      "known before values are.", "t_eval=ft.numpy.linspace(...)")
    y, *span = inexact(y0, t_span[0], t_span[1])
    of_rank("integrate.solve_ivp", "y0", y, 1)
    t0, t1 = (v.real for v in span)
    more = () if args is None else tuple(args)

    def slope(t: Array, y: Array) -> Array:
        found = jnp.asarray(fun(t, y, *more))
        if found.size != y.size:
            raise ShapeError(f"functrans.scipy.integrate.solve_ivp: fun returns shape "
                             f"{found.shape}, y has {y.shape}.", where=user_source())
        return found.reshape(y.shape).astype(y.dtype)

    if t_eval is None:
        at, times = jnp.stack([t0, t1]), jnp.stack([t0, t1])
    else:
        at = of_rank("integrate.solve_ivp", "t_eval", inexact(t_eval)[0], 1).astype(t0.dtype)
        times = jnp.concatenate([t0[None], at, t1[None]])
    longest = converted("scipy.integrate", max_step, t0.dtype)
    tolerance = StepTolerance(jnp.maximum(converted("scipy.integrate", rtol, t0.dtype),
                                      100 * float(finfo(t0.dtype).eps)),
                          converted("scipy.integrate", atol, t0.dtype))
    if method == "Radau":
        slopes = None if jac is None else lambda t, y: jac(t, y, *more)
        values, ended, evaluations = solve_radau(slope, slopes, y, times, tolerance, longest,
                                                 first_step, max_steps)
    else:
        values, walk, ended = solve(slope, _METHODS[method], y, times, tolerance, longest,
                                    first_step, max_steps)
        evaluations = walk.evaluations
    values = values if t_eval is None else values[1:-1]
    return OdeResult(at, values.T, ended, jnp.where(ended, 0, -1), evaluations)


def odeint(func: Callable[..., Any], y0: ArrayLike, t: ArrayLike, args: tuple[Any, ...] = (),
           Dfun: None = None, col_deriv: int = 0, full_output: int = 0, ml: None = None,
           mu: None = None, rtol: float | None = None, atol: float | None = None,
           tcrit: None = None, h0: float = 0.0, hmax: float = 0.0, hmin: float = 0.0,
           ixpr: int = 0, mxstep: int = 0, mxhnil: int = 0, mxordn: int = 12, mxords: int = 5,
           printmessg: int = 0, tfirst: bool = False) -> Array:
    """The solution of y' = `func(y, t, *args)`, y = y0 at t[0], at the times t.

    With `tfirst` it is `func(t, y, *args)`. The derivative is that of the adjoint equation, of
    `functrans.experimental.ode.odeint`, in reverse mode alone. Options of LSODA other than `rtol`,
    `atol`, `hmax` and `mxstep` are refused.

    >>> import functrans as ft
    >>> y = ft.scipy.integrate.odeint(lambda y, t: -y, 1.0, ft.numpy.array([0.0, 1.0]))
    >>> round(float(y[1, 0]), 4)
    0.3679
    """
    others = (Dfun, ml, mu, tcrit)
    if any(v is not None for v in others) or any((col_deriv, full_output, h0, hmin, ixpr, mxhnil,
                                                  printmessg)) or (mxordn, mxords) != (12, 5):
        raise ArgumentError("functrans.scipy.integrate.odeint takes rtol, atol, hmax, mxstep and "
                            "tfirst of SciPy's options.", where=user_source(),
                            fix="functrans.scipy.integrate.solve_ivp")
    check_callable(func, "scipy.integrate.odeint")
    (y,) = inexact(y0)
    y = jnp.atleast_1d(y)
    of_rank("integrate.odeint", "y0", y, 1)
    more = args if isinstance(args, tuple) else (args,)

    def slope(y: Array, t: Array, *rest: Any) -> Array:
        found = func(t, y, *rest) if tfirst else func(y, t, *rest)
        return jnp.asarray(found).reshape(y.shape)

    found: Array = solve_with_adjoint(
        slope, y, t, *more, rtol=1.49012e-8 if rtol is None else rtol,
        atol=1.49012e-8 if atol is None else atol, mxstep=mxstep or np.inf, hmax=hmax or np.inf)
    return found
