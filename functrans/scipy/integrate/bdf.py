"""Backward differentiation formulas of orders 1 to 5, for stiff equations.

The state has the differences of the last values, which are changed with the step. Formulas are
those of numerical differentiation, with Klopfenstein's constants.
Sources: Shampine and Reichelt, SIAM J. Sci. Comput. 18 (1997); Byrne and Hindmarsh, ACM TOMS 1
(1975).
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

_MOST, _NEWTON = 5, 4
_KAPPA = np.array([0, -0.1850, -1 / 9, -0.0823, -0.0415, 0])
_GAMMA = np.concatenate([[0], np.cumsum(1 / np.arange(1, _MOST + 1))])
_ALPHA = (1 - _KAPPA) * _GAMMA
_ERROR = _KAPPA * _GAMMA + 1 / np.arange(1, _MOST + 2)


class BdfState(NamedTuple):
    """Where a solution is: differences (order + 3, n), the order, and steps since its change."""

    t: Array
    h: Array
    differences: Array
    order: Array
    equal: Array
    before: Array
    steps: Array
    evaluations: Array
    done: Array  # whether the last attempt was accepted


def bdf_start(t: Array, y: Array, f: Array, h: Any, sign: Any) -> BdfState:
    """Before the first step, which is of order 1."""
    table = jnp.zeros((_MOST + 3, y.size), y.dtype).at[0].set(y).at[1].set(f * h * sign)
    one = jnp.array(1)
    return BdfState(t, h, table, one, one * 0, t, one * 0, one * 2, jnp.array(False))


def _products(factor: Any, order: Array, dtype: Any) -> Array:
    """The matrix that makes differences of a step those of `factor` times the step."""
    i = jnp.arange(1, _MOST + 1, dtype=dtype)
    inner = (i[:, None] - 1 - factor * i[None]) / i[:, None]
    table = jnp.cumprod(jnp.concatenate([jnp.ones((1, _MOST), dtype), inner]), axis=0)
    first = jnp.zeros((_MOST + 1, 1), dtype).at[0].set(1)
    used = jnp.arange(_MOST + 1) <= order
    whole = jnp.concatenate([first, table], axis=1)
    return jnp.where(used[:, None] & used[None], whole, 0)


def _rescaled(differences: Array, order: Array, factor: Any) -> Array:
    dtype = jnp.real(differences).dtype
    change = matmul(_products(factor, order, dtype), _products(1.0, order, dtype))
    used = jnp.arange(_MOST + 1) <= order
    new = matmul(change.T.astype(differences.dtype), differences[:_MOST + 1])
    return differences.at[:_MOST + 1].set(jnp.where(used[:, None], new,
                                                    differences[:_MOST + 1]))


def bdf_method(fun: Derivative, jac: Callable[[Array, Array], Any] | None, end: Any, sign: Any,
               tolerance: StepTolerance, longest: Any) -> Callable[[BdfState], BdfState]:
    """What tries one step, towards `end`."""
    real = sign.dtype
    eps = float(finfo(real).eps)
    gamma, alpha, weight = (jnp.asarray(v).astype(real) for v in (_GAMMA, _ALPHA, _ERROR))
    newton = jnp.maximum(10 * eps / tolerance.rtol,
                         jnp.minimum(0.03, jnp.sqrt(jnp.asarray(tolerance.rtol))))

    def jacobian(t: Array, y: Array) -> Array:
        found: Any = jacfwd(lambda v: fun(t, v), holomorphic=is_complex(y))(y) \
            if jac is None else jac(t, y)
        return jnp.asarray(found).astype(y.dtype)

    def corrected(t: Array, predicted: Array, psi: Array, c: Array) -> Any:
        """d with d = c f(predicted + d) - psi, by Newton's method with one matrix."""
        still = [lax.stop_gradient(v) for v in (t, predicted, psi, c)]
        t0, p0, psi0, c0 = still
        size = tolerance.atol + tolerance.rtol * jnp.abs(p0)
        matrix = jnp.eye(p0.size, dtype=p0.dtype) - c0 * lax.stop_gradient(jacobian(t0, p0))
        inverse = jnp.linalg.inv(matrix)

        def rms_of(x: Array) -> Array:
            return jnp.sqrt(jnp.mean(jnp.abs(x / size) ** 2))

        def unfinished(s: Any) -> Any:
            *_, count, converged, failed = s
            return ~converged & ~failed & (count < _NEWTON)

        def improve(s: Any) -> Any:
            d, last, rate, count, _, _ = s
            step = matmul(inverse, c0 * fun(t0, p0 + d) - psi0 - d)
            length = rms_of(step)
            rate = jnp.where(count > 0, length / jnp.where(last > 0, last, 1), math.nan)
            left = jnp.where(count > 0, _NEWTON - count, 0)
            slow = (count > 0) & ((rate >= 1) | (rate**left / (1 - rate) * length > newton))
            failed = slow | ~jnp.isfinite(length)
            d = jnp.where(failed, d, d + step)
            near = (length == 0) | ((count > 0) & (rate / (1 - rate) * length < newton))
            return d, length, rate, count + 1, near & ~failed, failed

        none = jnp.array(False)
        begin = (jnp.zeros_like(p0), jnp.ones((), real), jnp.ones((), real), jnp.array(0), none,
                 none)
        d, _, _, count, converged, _ = lax.while_loop(unfinished, improve, begin)
        # one more step, with the exact Jacobian, has the derivatives of a root
        d = lax.stop_gradient(d)
        left = d - c * fun(t, predicted + d) + psi
        exact = jnp.eye(d.size, dtype=d.dtype) - c0 * lax.stop_gradient(jacobian(t0, p0 + d))
        return d - jnp.linalg.solve(exact, left), count, converged

    def improve(s: BdfState) -> BdfState:
        left = sign * (end - s.t)
        want = jnp.minimum(jnp.minimum(s.h, longest), left)
        last = want >= left
        factor = want / s.h
        table = jnp.where(factor == 1, s.differences,
                          _rescaled(s.differences, s.order, lax.stop_gradient(factor)))
        equal = jnp.where(factor == 1, s.equal, 0)
        h = lax.stop_gradient(want)
        t = jnp.where(last, end, s.t + sign * h)
        places = jnp.arange(_MOST + 3)
        used = (places <= s.order)[:, None]
        predicted = jnp.sum(jnp.where(used, table, 0), axis=0)
        steps = jnp.where(used[1:_MOST + 1], table[1:_MOST + 1], 0)
        psi = matmul(gamma[1:].astype(table.dtype), steps) / alpha[s.order]
        c = sign * h / alpha[s.order]
        d, count, converged = corrected(t, predicted, psi, c)
        y = predicted + d
        safety = SAFETY * (2 * _NEWTON + 1) / (2 * _NEWTON + count)
        error = lax.stop_gradient(tolerance.norm(weight[s.order] * d, y))
        accepted = converged & (error <= 1)
        fall = safety * jnp.where(error > 0, error, 1) ** (-1 / (s.order + 1))
        shrunk = jnp.where(converged & ~jnp.isnan(error), jnp.maximum(SHRINK, fall), 0.5)
        # the differences with the new value
        grown = table.at[s.order + 2].set(d - table[s.order + 1]).at[s.order + 1].set(d)
        sums = jnp.flip(jnp.cumsum(jnp.flip(jnp.where((places <= s.order + 1)[:, None], grown, 0),
                                            0), axis=0), 0)
        new = jnp.where(used, sums, grown)
        # of three orders the one that allows the longest step, after steps enough
        ripe = equal + 1 >= s.order + 1
        norms = []
        for shift in (-1, 0, 1):
            at = jnp.clip(s.order + shift, 0, _MOST)
            part = weight[at] * new[at + 1]
            norm = lax.stop_gradient(tolerance.norm(part, y)) if shift else error
            there = (s.order + shift >= 1) & (s.order + shift <= _MOST)
            power = jnp.where(norm > 0, norm, 1) ** (-1 / (s.order + shift + 1).astype(real))
            norms.append(jnp.where(there, jnp.where(norm > 0, power, math.inf), 0))
        factors = jnp.stack(norms)
        which = jnp.argmax(factors)
        order = jnp.where(accepted & ripe, s.order + which - 1, s.order)
        grow = jnp.where(ripe, jnp.minimum(GROW, safety * factors[which]), 1)
        factor = jnp.where(accepted, grow, shrunk).astype(real)
        table = jnp.where(accepted, new, table)
        table = jnp.where(factor == 1, table, _rescaled(table, order, factor))
        equal = jnp.where(accepted & ~ripe, equal + 1, 0)
        size = h * factor
        size = jnp.where(accepted & last, jnp.maximum(size, s.h), size)
        # after a step that was cut at the end, differences are those of its own size
        kept = jnp.where(accepted & last, h * factor, size)
        return BdfState(jnp.where(accepted, t, s.t), kept.astype(s.h.dtype), table, order, equal,
                        jnp.where(accepted, s.t, s.before), s.steps + 1,
                        s.evaluations + count + 2, accepted)

    return improve


def bdf_value(s: BdfState, target: Array, sign: Any) -> Array:
    """The polynomial through the last values."""
    places = jnp.arange(_MOST, dtype=s.h.dtype)
    h = s.h * sign
    parts = (target - (s.t - h * places)) / (h * (1 + places))
    weights = jnp.where(jnp.arange(_MOST) < s.order, jnp.cumprod(parts), 0)
    found: Array = s.differences[0] + matmul(weights.astype(s.differences.dtype),
                                             s.differences[1:_MOST + 1])
    return found


def solve_bdf(fun: Derivative, jac: Callable[[Array, Array], Any] | None, y: Array, times: Array,
              tolerance: StepTolerance, longest: Any, first: Any, limit: int
              ) -> tuple[Array, Array, Array]:
    """The solution at times that go one way; whether the end was reached, and evaluations."""
    t, end = times[0], times[-1]
    sign = jnp.where(end >= t, 1, -1).astype(t.dtype)
    least = 10 * float(finfo(t.dtype).eps)
    improve = bdf_method(fun, jac, end, sign, tolerance, longest)

    def advance(s: BdfState, target: Array) -> tuple[BdfState, Array]:
        s = lax.while_loop(
            lambda s: (sign * (target - s.t) > 0) & (s.steps < limit) & (
                s.h > least * jnp.abs(s.t)) & jnp.isfinite(s.h),
            improve, s._replace(steps=jnp.array(0)))
        value = jnp.where(target == s.t, s.differences[0], bdf_value(s, target, sign))
        return s, jnp.where(sign * (target - s.t) <= 0, value, math.nan)

    f = fun(t, y)
    h = first_step(fun, t, y, f, sign, 1, tolerance, jnp.minimum(longest, jnp.abs(end - t))) \
        if first is None else jnp.abs(converted("scipy.integrate", first, t.dtype))
    state, values = lax.scan(advance, bdf_start(t, y, f, h, sign), times[1:])
    return (jnp.concatenate([y[None], values]), sign * (end - state.t) <= 0, state.evaluations)
