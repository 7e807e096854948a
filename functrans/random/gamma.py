"""The gamma distribution, differentiable in its parameter, and those made from it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as ftnp
from functrans.core import dtypes
from functrans.random.arguments import (
    float_dtype,
    parameter,
    sample_shape,
    unit_uniform,
)
from functrans.random.continuous import normal_from_key
from functrans.random.gamma_derivative import gamma_derivative
from functrans.random.generators import Pair
from functrans.random.keys import child, children, pair
from functrans.transforms.custom_jvp import custom_jvp
from functrans.typing import Array, ArrayLike, DTypeLike, ShapeLike


def gamma(key: Array, a: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike | None = None
          ) -> Array:
    """Gamma numbers of shape parameter a > 0 and scale 1; differentiable in a.

    Marsaglia and Tsang, A simple method for generating gamma variables (2000).

    >>> import functrans as ft
    >>> ft.random.gamma(ft.random.key(0), 2.0, (3,)).shape
    (3,)
    """
    return _sample("gamma", key, a, shape, float_dtype("gamma", dtype), log_space=False)


def loggamma(key: Array, a: ArrayLike, shape: ShapeLike | None = None,
             dtype: DTypeLike | None = None) -> Array:
    """The logarithms of gamma numbers, accurate for small a, where these underflow.

    >>> import functrans as ft
    >>> bool(ft.random.loggamma(ft.random.key(0), 1e-3) < 0)
    True
    """
    return _sample("loggamma", key, a, shape, float_dtype("loggamma", dtype), log_space=True)


def _sample(name: str, key: Array, a: Any, shape: ShapeLike | None, dtype: dtypes.DType, *,
            log_space: bool) -> Array:
    a = parameter(a, dtype)
    shape = sample_shape(name, shape, a)
    return gamma_from_key(pair(name, key), a, shape, log_space=log_space)


def gamma_from_key(key: Pair, a: Array, shape: tuple[Any, ...], *, log_space: bool) -> Array:
    """Gamma numbers, or their logarithms, from the words of a key; differentiable in a."""
    a = a if tuple(a.shape) == shape else ftnp.broadcast_to(a, shape)
    sample = _gamma(children(key, shape), lax.stop_gradient(a), log_space=log_space)
    return _moving(sample, a, log_space)


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def _moving(sample: Array, a: Array, log_space: bool) -> Array:
    """The sample, which moves with its parameter at a fixed value of the distribution function."""
    return sample


@_moving.defjvp
def _moving_jvp(log_space: bool, primals: Any, tangents: Any) -> Any:
    (sample, a), (_, tangent) = primals, tangents
    if not log_space:
        return sample, tangent * gamma_derivative(a, sample)
    value = lax.exp(sample)
    tiny = float(dtypes.finfo(value.dtype).tiny)
    value = ftnp.where(value == 0, ftnp.full_like(value, tiny), value)
    return sample, tangent * (gamma_derivative(a, value) / value)


def _gamma(keys: Pair, a: Array, *, log_space: bool) -> Array:
    """One gamma number per element of a and of the words of the keys, by rejection.

    All elements are tried together, and those that have been accepted keep their value.
    """
    boosted = a < 1.0
    d = ftnp.where(boosted, a + 1.0, a) - 1.0 / 3.0
    c = (1.0 / 3.0) / lax.sqrt(d)
    state_key, boost_key = child(keys, 0), child(keys, 1)

    def rejected(state: Any) -> Any:
        _, x, v, u = state
        slow = u >= 1.0 - x * x * 0.0331
        return slow & (lax.log(u) >= x * 0.5 + d * ((1.0 - v) + lax.log(v)))

    def attempt(state: Any) -> Any:
        key, *old = state
        retry = rejected(state)
        key, normal_key, uniform_key = (child(key, i) for i in range(3))
        x, v = _positive(normal_key, c, retry)
        u = unit_uniform(uniform_key, (), a.dtype)
        new = (x * x, v * v * v, u)
        kept = [ftnp.where(retry, n, o) for n, o in zip(new, old)]
        return (key, *kept)

    start = (state_key, ftnp.zeros_like(a), ftnp.ones_like(a), ftnp.full_like(a, 2.0))
    v = lax.while_loop(lambda state: ftnp.any(rejected(state)), attempt, start)[2]
    if log_space:
        log_u = lax.log1p(-unit_uniform(boost_key, (), a.dtype))
        boost = ftnp.where(boosted & (log_u != 0), log_u * (1.0 / a), ftnp.zeros_like(a))
        return lax.log(d) + lax.log(v) + boost
    u = 1.0 - unit_uniform(boost_key, (), a.dtype)
    return d * v * ftnp.where(boosted, ftnp.power(u, 1.0 / a), ftnp.ones_like(a))


def _positive(key: Pair, c: Any, wanted: Any) -> tuple[Any, Any]:
    """Normal x with v = 1 + c x > 0 for each element that is wanted."""

    def attempt(state: Any) -> Any:
        key, x, v = state
        again = v <= 0
        key, draw = child(key, 0), child(key, 1)
        new = normal_from_key(draw, (), c.dtype)
        return key, ftnp.where(again, new, x), ftnp.where(again, new * c + 1.0, v)

    start = (key, ftnp.zeros_like(c), ftnp.where(wanted, -ftnp.ones_like(c), ftnp.ones_like(c)))
    _, x, v = lax.while_loop(lambda state: ftnp.any(state[2] <= 0), attempt, start)
    return x, v


def beta(key: Array, a: ArrayLike, b: ArrayLike, shape: ShapeLike | None = None,
         dtype: DTypeLike | None = None) -> Array:
    """Beta numbers of density x^(a-1) (1-x)^(b-1), up to a factor; differentiable in a and b.

    >>> import functrans as ft
    >>> ft.random.beta(ft.random.key(0), 2.0, 3.0, (3,)).shape
    (3,)
    """
    dtype = float_dtype("beta", dtype)
    a, b = parameter(a, dtype), parameter(b, dtype)
    shape = sample_shape("beta", shape, a, b)
    words = pair("beta", key)
    logs = []
    for i, x in enumerate((a, b)):
        logs.append(gamma_from_key(child(words, i), x, shape, log_space=True))
    top = ftnp.maximum(*logs)
    first, second = (lax.exp(x - top) for x in logs)
    return first / (first + second)


def dirichlet(key: Array, alpha: ArrayLike, shape: ShapeLike | None = None,
              dtype: DTypeLike | None = None) -> Array:
    """Dirichlet vectors of shape (*shape, n) for alpha of shape (..., n): positive, of sum 1.

    >>> import functrans as ft
    >>> x = ft.random.dirichlet(ft.random.key(0), ft.numpy.ones(4))
    >>> round(float(x.sum()), 5)
    1.0
    """
    dtype = float_dtype("dirichlet", dtype)
    alpha = parameter(alpha, dtype)
    shape = sample_shape("dirichlet", shape, alpha[..., 0])
    logs = loggamma(key, alpha, (*shape, alpha.shape[-1]), dtype)
    weights = lax.exp(logs - lax.stop_gradient(ftnp.max(logs, -1, keepdims=True)))
    return weights / ftnp.sum(weights, -1, keepdims=True)


def chisquare(key: Array, df: ArrayLike, shape: ShapeLike | None = None,
              dtype: DTypeLike | None = None) -> Array:
    """Chi-square numbers with `df` degrees of freedom; differentiable in df.

    >>> import functrans as ft
    >>> ft.random.chisquare(ft.random.key(0), 3.0, (3,)).shape
    (3,)
    """
    dtype = float_dtype("chisquare", dtype)
    return lax.exp(loggamma(key, parameter(df, dtype) / 2.0, shape, dtype)) * 2.0


def t(key: Array, df: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike | None = None
      ) -> Array:
    """Numbers of Student's t distribution with `df` degrees of freedom; differentiable in df.

    >>> import functrans as ft
    >>> ft.random.t(ft.random.key(0), 3.0, (3,)).shape
    (3,)
    """
    dtype = float_dtype("t", dtype)
    half = parameter(df, dtype) / 2.0
    shape = sample_shape("t", shape, half)
    words = pair("t", key)
    draws = gamma_from_key(child(words, 1), half, shape, log_space=False)
    normal = normal_from_key(child(words, 0), shape, dtype)
    return normal * ftnp.sqrt(half / draws)


def poisson(key: Array, lam: ArrayLike, shape: ShapeLike | None = None,
            dtype: DTypeLike | None = None) -> Array:
    """Poisson numbers of mean `lam` as integers.

    Below 10 by multiplying uniform numbers (Knuth), above by transformed rejection (Hormann, The
    transformed rejection method for generating Poisson random variables, 1993).

    >>> import functrans as ft
    >>> ft.random.poisson(ft.random.key(0), 4.0, (3,)).dtype
    dtype('int32')
    """
    dtype = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype)
    lam = parameter(lam, np.dtype(np.float32))
    shape = sample_shape("poisson", shape, lam)
    lam = lax.stop_gradient(ftnp.broadcast_to(lam, shape))
    words = pair("poisson", key)
    small = (lam != lam) | (lam < 10.0)
    few = _poisson_by_products(words, ftnp.where(small, lam, ftnp.zeros_like(lam)), dtype)
    many = _poisson_by_rejection(words, ftnp.where(small, ftnp.full_like(lam, 1e5), lam), dtype)
    drawn = ftnp.where(small, few, many)
    return ftnp.where(lam == 0, ftnp.zeros_like(drawn), drawn)


def _poisson_by_products(key: Pair, lam: Any, dtype: dtypes.DType) -> Array:
    """How many uniform numbers can be multiplied before the product is below exp(-lam)."""

    def step(state: Any) -> Any:
        key, count, log_product = state
        count = ftnp.where(log_product > -lam, count + 1, count)
        u = unit_uniform(child(key, 1), tuple(lam.shape), lam.dtype)
        return child(key, 0), count, log_product + lax.log(u)

    start = (key, ftnp.zeros(lam.shape, dtype), ftnp.zeros_like(lam))
    return lax.while_loop(lambda state: ftnp.any(state[2] > -lam), step, start)[1] - 1


def _poisson_by_rejection(key: Pair, lam: Any, dtype: dtypes.DType) -> Array:
    """Poisson numbers for lam of at least 10; the names of the constants are Hormann's."""
    b = lax.sqrt(lam) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse_alpha = 1.1328 / (b - 3.4) + 1.1239
    v_r = 0.9277 - 3.6224 / (b - 2.0)
    log_lam = lax.log(lam)

    def step(state: Any) -> Any:
        key, out, accepted = state
        key, *draws = (child(key, i) for i in range(3))
        u, v = (unit_uniform(draw, tuple(lam.shape), lam.dtype) for draw in draws)
        u = u - 0.5
        u_s = 0.5 - lax.abs(u)
        k = lax.floor((a * 2.0 / u_s + b) * u + lam + 0.43)
        hat = lax.log(v * inverse_alpha / (a / (u_s * u_s) + b))
        target = k * log_lam - lam - lax.lgamma(k + 1.0)
        quick = (u_s >= 0.07) & (v <= v_r)
        outside = (k < 0) | ((u_s < 0.013) & (v > u_s))
        accept = quick | (~outside & (hat <= target))
        return key, ftnp.where(accept, k, out), accepted | accept

    start = (key, ftnp.full_like(lam, -1.0), ftnp.zeros(lam.shape, bool))
    out = lax.while_loop(lambda state: ~ftnp.all(state[2]), step, start)[1]
    return lax.convert_element_type(out, dtype)
