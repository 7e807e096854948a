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
from functrans.scipy.arguments import inexact, of_rank, one_of
from functrans.scipy.integrate.adjoint import odeint as solve_with_adjoint
from functrans.scipy.integrate.bdf import solve_bdf
from functrans.scipy.integrate.dense import OdeSolution
from functrans.scipy.integrate.events import stepped
from functrans.scipy.integrate.radau import solve_radau
from functrans.scipy.integrate.steppers import BDF, LSODA, OdeSolver, Radau
from functrans.scipy.integrate.steppers import DOP853 as Dop853Steps
from functrans.scipy.integrate.steppers import RK23 as Rk23Steps
from functrans.scipy.integrate.steppers import RK45 as Rk45Steps
from functrans.scipy.integrate.steps import StepTolerance, solve
from functrans.scipy.integrate.tableaus import DOP853, RK23, RK45, Tableau
from functrans.transforms.flat import check_callable
from functrans.typing import Array, ArrayLike

_METHODS: Final[Mapping[str, Tableau]] = MappingProxyType(
    {"RK45": RK45, "RK23": RK23, "DOP853": DOP853})
_SOLVERS: Final[Mapping[str, type[OdeSolver]]] = MappingProxyType(
    {"RK45": Rk45Steps, "RK23": Rk23Steps, "DOP853": Dop853Steps, "Radau": Radau, "BDF": BDF,
     "LSODA": LSODA})


class OdeResult(NamedTuple):
    """A solution: y has shape (n, times). `success` is False, and y NaN, from a time on that was
    not reached within `max_steps` steps for each time, or where steps became too small. `status` is
    1 where an event ended it, and -1 where it failed. `sol` is there with `dense_output`, the
    times and values of events with `events`.

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
    sol: OdeSolution | None = None
    t_events: list[Array] | None = None
    y_events: list[Array] | None = None


def solve_ivp(fun: Callable[..., Any], t_span: Any, y0: ArrayLike,
              method: str | type[OdeSolver] = "RK45", t_eval: ArrayLike | None = None,
              dense_output: bool = False, events: Any = None, vectorized: bool = False,
              args: tuple[Any, ...] | None = None, *, rtol: ArrayLike = 1e-3,
              atol: ArrayLike = 1e-6, max_step: ArrayLike = np.inf,
              first_step: ArrayLike | None = None, max_steps: int = 100_000,
              jac: Callable[..., Any] | None = None, min_step: float = 0.0) -> OdeResult:
    """The solution of y' = `fun(t, y, *args)` with y = y0, a vector, at the first time of t_span.

    `method` is "RK45", "RK23", "DOP853" or, for stiff equations, "Radau" or "BDF" (whose Jacobian
    is that of fun, or `jac`). The result has the times `t_eval`, and without them those of t_span:
    how many steps are taken depends on values. All of it is differentiated, through the steps that
    were taken, in both modes.

    Outside of `jit` it has more, by one step after the other. With `dense_output` the result has
    `sol`, the solution as a function of time. `events` are functions `event(t, y, *args)` whose
    zeros are found (`t_events`, `y_events`); an attribute `direction` counts those where it rises
    (1) or falls (-1), and `terminal` ends the solution at the first, or after a number of them.
    With these, and with the method "LSODA" or a class of solvers, all steps are in the result where
    there is no `t_eval`. Raises ArgumentError for these under `jit`.

    >>> import functrans as ft
    >>> found = ft.scipy.integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), ft.numpy.ones(1),
    ...                                      rtol=1e-5)
    >>> round(float(found.y[0, -1]), 3)
    0.368
    >>> def half(t, y):
    ...     return y[0] - 0.5
    >>> found = ft.scipy.integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), ft.numpy.ones(1),
    ...                                      events=half, rtol=1e-5)
    >>> found.t_events[0].round(3).tolist()
    [0.693...]
    """
    by_class = isinstance(method, type) and issubclass(method, OdeSolver)
    if not by_class:
        one_of("integrate.solve_ivp", "method", method, (*_METHODS, "Radau", "BDF", "LSODA"))
    check_callable(fun, "scipy.integrate.solve_ivp")
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
    if by_class or method == "LSODA" or dense_output or events is not None:
        kind: Any = method if by_class else _SOLVERS[str(method)]
        slopes = jac if not callable(jac) else lambda t, y: jac(t, y, *more)
        explicit = kind in (Rk23Steps, Rk45Steps, Dop853Steps)
        extra: dict[str, Any] = {} if explicit else {"jac": slopes}
        if kind is LSODA:
            extra["min_step"] = min_step
        solver = kind(slope, t0, y, t1, max_step=max_step, rtol=rtol, atol=atol,
                      first_step=first_step, **extra)
        found = stepped(solver, None if t_eval is None else at, dense_output, events, more,
                        max_steps)
        good = jnp.array(found.status >= 0)
        return OdeResult(found.t, found.y.T, good, jnp.array(found.status),
                         jnp.array(solver.nfev), found.sol, found.t_events, found.y_events)
    longest = converted("scipy.integrate", max_step, t0.dtype)
    tolerance = StepTolerance(jnp.maximum(converted("scipy.integrate", rtol, t0.dtype),
                                      100 * float(finfo(t0.dtype).eps)),
                          converted("scipy.integrate", atol, t0.dtype))
    if method in ("Radau", "BDF"):
        slopes = None if jac is None else lambda t, y: jac(t, y, *more)
        implicit = solve_radau if method == "Radau" else solve_bdf
        values, ended, evaluations = implicit(slope, slopes, y, times, tolerance, longest,
                                              first_step, max_steps)
    else:
        values, walk, ended = solve(slope, _METHODS[str(method)], y, times, tolerance, longest,
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
