"""How a gamma sample moves with its parameter: the derivative of the quantile function.

With P(a, x) the regularized lower incomplete gamma function, dx/da = -(dP/da) / (dP/dx). P is the
power series or, for x > max(1, a), one minus the continued fraction (DLMF 8.7.1 and 8.9.2); both
are differentiated term by term in a.
"""

from __future__ import annotations

from typing import Any

from functrans import lax
from functrans import numpy as ftnp
from functrans.core import dtypes
from functrans.typing import Array


def gamma_derivative(a: Array, x: Array) -> Array:
    """dx/da of a sample x of the gamma distribution of parameter a, both of one shape and dtype.

    >>> import functrans as ft
    >>> one = ft.numpy.ones(1)
    >>> [round(float(d), 4) for d in gamma_derivative(one, one * 1.5)]
    [1.4309]
    """
    valid = (x > 0) & (a > 0)
    far = (x > 1.0) & (x > a) & valid
    near = valid & ~far
    one = ftnp.ones_like(x)
    series = _by_series(ftnp.where(near, a, one), ftnp.where(near, x, one), near)
    half = one * 0.5
    fraction = _by_fraction(ftnp.where(far, a, half), ftnp.where(far, x, one * 2.0), far)
    out = ftnp.where(far, fraction, ftnp.where(near, series, ftnp.zeros_like(x)))
    return ftnp.where(valid | (x == 0), out, ftnp.full_like(x, float("nan")))


def _by_series(a: Array, x: Array, active: Array) -> Array:
    """With P = x^a e^-x / Gamma(a + 1) S and S = sum of x^n / ((a + 1) ... (a + n))."""
    eps = float(dtypes.finfo(x.dtype).eps)

    def step(state: Any) -> Any:
        active, n, term, d_term, total, d_total = state
        r = a + n
        new_d_term = d_term * (x / r) - term * x / (r * r)
        new_term = term * (x / r)
        new = (new_term, new_d_term, total + new_term, d_total + new_d_term)
        old = (term, d_term, total, d_total)
        term, d_term, total, d_total = (ftnp.where(active, p, q) for p, q in zip(new, old))
        active = active & (lax.abs(d_term) > lax.abs(d_total) * eps)
        return active, n + 1.0, term, d_term, total, d_total

    zero, one = ftnp.zeros_like(x), ftnp.ones_like(x)
    start = (active, one, one, zero, one, zero)
    *_, total, d_total = lax.while_loop(lambda state: ftnp.any(state[0]), step, start)
    return -(d_total + total * (lax.log(x) - lax.digamma(a + 1.0))) * x / a


def _by_fraction(a: Array, x: Array, active: Array) -> Array:
    """With 1 - P = x^a e^-x / Gamma(a) F and F a continued fraction p_n / q_n."""
    eps = float(dtypes.finfo(x.dtype).eps)

    def step(state: Any) -> Any:
        active, n, (p1, p0, q1, q0), (dp1, dp0, dq1, dq0), f, d_f = state
        # p_n = (x + 1 - a + 2 n) p_{n-1} - n (n - a) p_{n-2}, and q_n likewise
        diagonal, corner = x + 1.0 - a + 2.0 * n, n * (n - a)
        p2, q2 = diagonal * p1 - corner * p0, diagonal * q1 - corner * q0
        dp2 = diagonal * dp1 - p1 - corner * dp0 + n * p0
        dq2 = diagonal * dq1 - q1 - corner * dq0 + n * q0
        new_f = p2 / q2
        new_d_f = (dp2 - new_f * dq2) / q2
        change = lax.abs(new_d_f - d_f)
        f, d_f = ftnp.where(active, new_f, f), ftnp.where(active, new_d_f, d_f)
        active = active & (change > lax.abs(d_f) * eps) & (n < 2000.0)
        scale = 1.0 / ftnp.maximum(lax.abs(q2), ftnp.ones_like(q2))  # against overflow
        values = [v * scale for v in (p2, p1, q2, q1)]
        derivatives = [v * scale for v in (dp2, dp1, dq2, dq1)]
        return active, n + 1.0, values, derivatives, f, d_f

    zero, one = ftnp.zeros_like(x), ftnp.ones_like(x)
    # p_{-1}, q_{-1} = 0, 1 and p_0, q_0 = 1, x + 1 - a
    diagonal = x + 1.0 - a
    values, derivatives = [one, zero, diagonal, one], [zero, zero, -one, zero]
    f = one / diagonal
    start = (active, one, values, derivatives, f, f * f)
    *_, f, d_f = lax.while_loop(lambda state: ftnp.any(state[0]), step, start)
    return (d_f + f * (lax.log(x) - lax.digamma(a))) * x
