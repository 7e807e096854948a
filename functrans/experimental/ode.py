"""Ordinary differential equations, under the names of jax.experimental.ode.

The parts of a step by Dormand and Prince's method are for those who write their own loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans import numpy as jnp
from functrans.core.errors import publish
from functrans.flatten_util import ravel_pytree
from functrans.scipy.integrate.adjoint import odeint
from functrans.scipy.integrate.steps import StepTolerance, first_step, rms, step
from functrans.scipy.integrate.tableaus import RK45
from functrans.typing import Array, ArrayLike

__all__ = ["abs2", "fit_4th_order_polynomial", "initial_step_size", "interp_fit_dopri",
           "mean_error_ratio", "odeint", "optimal_step_size", "ravel_first_arg",
           "runge_kutta_step"]


def abs2(x: ArrayLike) -> Array:
    """The square of the absolute value, of complex numbers too.

    >>> float(abs2(3.0 + 4.0j))
    25.0
    """
    v = jnp.asarray(x)
    return jnp.real(v) ** 2 + jnp.imag(v) ** 2 if jnp.iscomplexobj(v) else v * v


def ravel_first_arg(f: Callable[..., Any], unravel: Callable[[Array], Any],
                    debug_info: Any = None) -> Callable[..., Array]:
    """f of a raveled first argument, with its raveled result.

    >>> from functrans.flatten_util import ravel_pytree
    >>> flat, unravel = ravel_pytree({"a": jnp.ones(2)})
    >>> ravel_first_arg(lambda y, t: {"a": y["a"] * t}, unravel)(flat, 3.0).tolist()
    [3.0, 3.0]
    """
    def raveled(flat: Array, *args: Any) -> Array:
        found: Array = ravel_pytree(f(unravel(flat), *args))[0]
        return found

    return raveled


def fit_4th_order_polynomial(y0: Array, y1: Array, y_mid: Array, dy0: Array, dy1: Array,
                             dt: ArrayLike) -> tuple[Array, ...]:
    """The coefficients, of the fourth power first, of the polynomial of a step from 0 to 1.

    It has the values y0, y_mid and y1 at 0, 1/2 and 1, and the slopes dt dy0 and dt dy1 at the
    ends.

    >>> [float(c) for c in fit_4th_order_polynomial(*map(jnp.float32, (0, 1, 0.25, 0, 2)), 1.0)]
    [0.0, 0.0, 1.0, 0.0, 0.0]
    """
    rise, half, step = y1 - y0, y_mid - y0, jnp.asarray(dt)
    first, last = step * dy0, step * dy1
    return (-8 * rise + 16 * half + 2 * (last - first), 14 * rise - 32 * half + 5 * first
            - 3 * last, -5 * rise + 16 * half - 4 * first + last, first, y0)


def interp_fit_dopri(y0: Array, y1: Array, k: Array, dt: ArrayLike) -> Array:
    """The polynomial of a step with the stages k, with Shampine's value in its middle.

    >>> y1, f1, _, k = runge_kutta_step(lambda y, t: y, jnp.ones(1), jnp.ones(1), 0.0, 0.1)
    >>> interp_fit_dopri(jnp.ones(1), y1, k, 0.1).shape
    (5, 1)
    """
    assert RK45.p is not None
    weights = RK45.p @ [1 / 2, 1 / 4, 1 / 8, 1 / 16]
    y_mid = y0 + dt * jnp.tensordot(jnp.asarray(weights).astype(k.dtype), k, 1,
                                    precision="highest")
    return jnp.stack(fit_4th_order_polynomial(y0, y1, y_mid, k[0], k[-1], dt))


def initial_step_size(fun: Callable[[Array, Array], Array], t0: ArrayLike, y0: Array, order: int,
                      rtol: ArrayLike, atol: ArrayLike, f0: Array) -> Array:
    """A size for the first step of y' = fun(y, t): Hairer, Norsett and Wanner (1993), II.4.

    >>> f = lambda y, t: -y
    >>> 0 < float(initial_step_size(f, 0.0, jnp.ones(2), 4, 1e-6, 1e-6, -jnp.ones(2))) < 1
    True
    """
    t = jnp.asarray(t0, y0.real.dtype)
    one = jnp.ones((), t.dtype)
    return first_step(lambda s, y: fun(y, s), t, y0, f0, one, order, StepTolerance(rtol, atol),
                      jnp.inf)


def runge_kutta_step(func: Callable[[Array, Array], Array], y0: Array, f0: Array, t0: ArrayLike,
                     dt: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """One step of y' = func(y, t): y and its derivative after it, the error, and the stages.

    >>> y1, f1, error, k = runge_kutta_step(lambda y, t: y, jnp.ones(1), jnp.ones(1), 0.0, 0.1)
    >>> y1.round(4).tolist(), k.shape
    ([1.1052000522613525], (7, 1))
    """
    t, h = (jnp.asarray(v, y0.real.dtype) for v in (t0, dt))
    y1, f1, k, _ = step(lambda s, y: jnp.asarray(func(y, s)), RK45, t, y0, f0, h,
                        StepTolerance(1.0, 1.0))
    weights = jnp.asarray(RK45.e[0]).astype(k.dtype)
    return y1, f1, h * jnp.tensordot(weights, k, 1, precision="highest"), k


def mean_error_ratio(error_estimate: Array, rtol: ArrayLike, atol: ArrayLike, y0: Array,
                     y1: Array) -> Array:
    """The root of the mean square of errors, relative to atol + rtol max(|y0|, |y1|).

    >>> float(mean_error_ratio(jnp.ones(2), 1.0, 0.0, jnp.ones(2), jnp.ones(2)))
    1.0
    """
    allowed = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return rms(error_estimate / allowed)


def optimal_step_size(last_step: ArrayLike, mean_error_ratio: ArrayLike, safety: float = 0.9,
                      ifactor: float = 10.0, dfactor: float = 0.2, order: float = 5.0) -> Array:
    """The size of the next step, at most `ifactor` times the last; not less, if that was accepted.

    >>> float(optimal_step_size(1.0, 0.0))
    10.0
    """
    ratio = jnp.asarray(mean_error_ratio)
    least = jnp.where(ratio < 1, 1.0, dfactor)
    safe = jnp.where(ratio == 0, 1, ratio)
    factor = jnp.clip(safety * safe ** (-1 / order), least, ifactor)
    return jnp.asarray(last_step) * jnp.where(ratio == 0, ifactor, factor)


publish(globals(), __all__)
