"""The method Radau IIA of order 5 for stiff equations.

The three stages are one system of 3 n equations, by Newton's method with the Jacobian at the
beginning of a step. A step is rejected where that does not converge.
Source: Hairer and Wanner, Solving Ordinary Differential Equations II (1996), IV.8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.numpy.common import converted
from functrans.primitives.matrix import is_complex
from functrans.scipy.integrate.steps import (
    GROW,
    SAFETY,
    SHRINK,
    Derivative,
    StepTolerance,
    first_step,
)
from functrans.scipy.products import matmul
from functrans.transforms.derivatives import jacfwd
from functrans.typing import Array

_S6 = math.sqrt(6)
_C = np.array([(4 - _S6) / 10, (4 + _S6) / 10, 1.0])
_A = np.array([[(88 - 7 * _S6) / 360, (296 - 169 * _S6) / 1800, (-2 + 3 * _S6) / 225],
               [(296 + 169 * _S6) / 1800, (88 + 7 * _S6) / 360, (-2 - 3 * _S6) / 225],
               [(16 - _S6) / 36, (16 + _S6) / 36, 1 / 9]])
_E = np.array([-13 - 7 * _S6, -13 + 7 * _S6, -1]) / 3
_REAL = 3 + 3 ** (2 / 3) - 3 ** (1 / 3)  # the real eigenvalue of the inverse of _A
_NEWTON = 10


class RadauState(NamedTuple):
    t: Array
    y: Array
    h: Array
    before: Array
    y_before: Array
    stages: Array
    steps: Array
    evaluations: Array
    rejected: Array


def radau_method(fun: Derivative, jac: Callable[[Array, Array], Any] | None, y: Array, end: Any,
                 sign: Any, tolerance: StepTolerance, longest: Any
                 ) -> Callable[[RadauState], RadauState]:
    """What tries one step, towards `end`."""
    n = y.size
    eps = float(finfo(sign.dtype).eps)
    a, c = jnp.asarray(_A).astype(y.dtype), _C

    def jacobian(t: Array, y: Array) -> Array:
        found: Any = jacfwd(lambda v: fun(t, v), holomorphic=is_complex(y))(y) \
            if jac is None else jac(t, y)
        return jnp.asarray(found).astype(y.dtype)

    def residual(z: Array, t: Array, y: Array, h: Array) -> Array:
        """Of the stages less y, which are h A f(stages)."""
        slopes = jnp.stack([fun(t + float(c[i]) * h, y + z[i]) for i in range(3)])
        return z - h * matmul(a, slopes)

    def stages_of(t: Array, y: Array, h: Array, jac_at: Array, guess: Array) -> Any:
        system = jnp.eye(3 * n, dtype=y.dtype) - h * jnp.kron(a, jac_at)
        inverse = jnp.linalg.inv(system)
        newton = jnp.maximum(10 * eps / tolerance.rtol,
                             jnp.minimum(0.03, jnp.sqrt(tolerance.rtol)))

        def unfinished(state: Any) -> Any:
            _, size, last, count = state
            return (size > 0.1 * newton) & (count < _NEWTON) & (size < 2 * last)

        def improve(state: Any) -> Any:
            z, size, _, count = state
            move = -matmul(inverse, residual(z, t, y, h).reshape(-1)).reshape(3, n)
            return z + move, tolerance.norm(move, y), size, count + 1

        big = jnp.full((), 1e30, t.dtype)
        z, size, _, count = lax.while_loop(unfinished, improve, (guess, big, big, jnp.array(0)))
        return z, size <= newton, count

    def improve(s: RadauState) -> RadauState:
        left = sign * (end - s.t)
        last = s.h >= left
        h = sign * jnp.where(last, left, s.h)
        f, jac_at = fun(s.t, s.y), jacobian(s.t, s.y)
        z, converged, count = stages_of(
            lax.stop_gradient(s.t), lax.stop_gradient(s.y), lax.stop_gradient(h),
            lax.stop_gradient(jac_at), jnp.zeros((3, n), s.y.dtype))
        z = lax.stop_gradient(z)
        # one more step of Newton's method, with the exact Jacobian, has the derivatives of a root
        z = _differentiable(z, s.t, s.y, h)
        y = s.y + z[2]
        e = jnp.asarray(_E).astype(s.y.dtype)
        system = _REAL / h * jnp.eye(n, dtype=s.y.dtype) - jac_at
        error = jnp.linalg.solve(system, f + matmul(e, z) / h)
        norm = tolerance.norm(error, s.y, y)
        # where the first estimate is too large, one with the filtered error
        other = jnp.linalg.solve(system, fun(s.t, s.y + error) + matmul(e, z) / h)
        norm = lax.stop_gradient(jnp.where(norm > 1, tolerance.norm(other, s.y, y), norm))
        accepted = converged & (norm <= 1)
        safety = SAFETY * (2 * _NEWTON + 1) / (2 * _NEWTON + count)
        factor = jnp.clip(safety * jnp.where(norm > 0, norm, 1) ** -0.25, SHRINK, GROW)
        factor = jnp.where(norm > 0, factor, GROW)
        factor = jnp.where(converged & ~jnp.isnan(norm), factor, 0.5)
        factor = jnp.where(accepted & s.rejected, jnp.minimum(factor, 1), factor)
        size = jnp.minimum(jnp.abs(h) * factor, longest)
        size = lax.stop_gradient(jnp.where(accepted & last, jnp.maximum(s.h, size), size))
        t = jnp.where(last, end, s.t + h)

        def take(new: Any, old: Any) -> Any:
            return jnp.where(accepted, new, old)

        return RadauState(take(t, s.t), take(y, s.y), size.astype(s.h.dtype), take(s.t, s.before),
                      take(s.y, s.y_before), take(z, s.stages), s.steps + 1,
                      s.evaluations + 3 * count + 5, ~accepted)

    def _differentiable(z: Array, t: Array, y: Array, h: Array) -> Array:
        def of(v: Array) -> Array:
            return residual(v.reshape(3, n), t, y, h).reshape(-1)

        exact = jacfwd(of, holomorphic=is_complex(z))(z.reshape(-1))
        return z - jnp.linalg.solve(lax.stop_gradient(exact), of(z.reshape(-1))).reshape(3, n)

    return improve


def radau_start(t: Array, y: Array, h: Any) -> RadauState:
    """Before the first step."""
    return RadauState(t, y, h, t, y, jnp.zeros((3, y.size), y.dtype), jnp.array(0), jnp.array(2),
                      jnp.array(False))


def radau_value(s: RadauState, target: Array) -> Array:
    """The polynomial through the beginning of the last step and its three stages."""
    width = s.t - s.before
    x = jnp.where(width == 0, 1, (target - s.before) / jnp.where(width == 0, 1, width))
    places = [0.0, *map(float, _C)]
    value = s.y_before
    for i in range(3):
        basis = jnp.ones_like(x)
        for k, place in enumerate(places):
            if k != i + 1:
                basis = basis * (x - place) / (places[i + 1] - place)
        value = value + basis * s.stages[i]
    return jnp.where(target == s.t, s.y, value)


def solve_radau(fun: Derivative, jac: Callable[[Array, Array], Any] | None, y: Array, times: Array,
                tolerance: StepTolerance, longest: Any, first: Any, limit: int
                ) -> tuple[Array, Array, Array]:
    """The solution at times that go one way; whether the end was reached, and evaluations."""
    t, end = times[0], times[-1]
    sign = jnp.where(end >= t, 1, -1).astype(t.dtype)
    eps = float(finfo(t.dtype).eps)
    improve = radau_method(fun, jac, y, end, sign, tolerance, longest)

    def advance(s: RadauState, target: Array) -> tuple[RadauState, Array]:
        least = 10 * eps
        s = lax.while_loop(
            lambda s: (sign * (target - s.t) > 0) & (s.steps < limit) & (
                s.h > least * jnp.abs(s.t)) & jnp.isfinite(s.h),
            improve, s._replace(steps=jnp.array(0)))
        return s, jnp.where(sign * (target - s.t) <= 0, radau_value(s, target), math.nan)

    f = fun(t, y)
    h = first_step(fun, t, y, f, sign, 3, tolerance, jnp.minimum(longest, jnp.abs(end - t))) \
        if first is None else jnp.abs(converted("scipy.integrate", first, t.dtype))
    begin = radau_start(t, y, h)
    state, values = lax.scan(advance, begin, times[1:])
    return (jnp.concatenate([y[None], values]), sign * (end - state.t) <= 0, state.evaluations)
