"""Powers that bring samples near to normal distributions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import publish
from functrans.scipy import special
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.optimize.scalar_minima import minimize_scalar
from functrans.scipy.stats.correlations import pearsonr
from functrans.scipy.stats.samples import over_axis
from functrans.scipy.stats.statistics import sample
from functrans.typing import Array, ArrayLike

__all__ = ["boxcox", "boxcox_llf", "boxcox_normmax", "yeojohnson", "yeojohnson_llf",
           "yeojohnson_normmax"]

Bracket = tuple[float, float] | None


@over_axis("data", least=2)
def boxcox_llf(lmb: ArrayLike, data: ArrayLike, *, axis: int = 0, keepdims: bool = False,
               nan_policy: str = "propagate") -> Array:
    """The logarithm of the likelihood of Box and Cox's parameter.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.boxcox_llf(0.5, ft.numpy.array([1.0, 2.0, 4.0]))), 4)
    -0.4462
    """
    x, axis = sample("boxcox_llf", data, axis)
    power = jnp.asarray(lmb).astype(x.dtype)
    logs = jnp.log(x)
    n = x.shape[axis]
    # the variance of x**power / power, of powers whose mean is about 1: they do not overflow
    middle = jnp.mean(logs, axis, keepdims=True)
    spread = jnp.var(special.boxcox(jnp.exp(logs - middle), power), axis)
    variance = jnp.log(spread) + 2 * power * jnp.squeeze(middle, axis)
    return (power - 1) * jnp.sum(logs, axis) - n / 2 * variance


def _best(likelihood: Callable[[Array], Array], x: Array, brack: Bracket) -> Array:
    ends = (-2.0, 2.0) if brack is None else brack
    points = tuple(jnp.asarray(v).astype(x.dtype) for v in ends)
    return minimize_scalar(lambda v: -likelihood(v), points, method="brent").x


def boxcox_normmax(x: ArrayLike, brack: Bracket = None, method: str = "pearsonr") -> Array:
    """Box and Cox's parameter, differentiated as a minimum.

    `method` is "mle" (the largest likelihood) or "pearsonr" (the largest correlation of the
    ordered values with the medians of those of a normal sample).

    >>> import functrans as ft
    >>> data = ft.numpy.exp(ft.numpy.linspace(-1.0, 1.0, 9))
    >>> abs(round(float(ft.scipy.stats.boxcox_normmax(data, method="mle")), 2))
    0.0
    """
    one_of("stats.boxcox_normmax", "method", method, ("pearsonr", "mle"))
    values, _ = sample("boxcox_normmax", x, None)
    if method == "mle":
        return _best(lambda v: boxcox_llf(v, values), values, brack)
    n = values.shape[0]
    middle = (np.arange(1, n + 1) - 0.3175) / (n + 0.365)
    middle[-1] = 0.5 ** (1 / n)
    middle[0] = 1 - middle[-1]
    quantiles = special.ndtri(jnp.asarray(middle).astype(values.dtype))
    ordered = jnp.sort(values)
    return _best(lambda v: pearsonr(special.boxcox(ordered, v), quantiles).statistic, values, brack)


def boxcox(x: ArrayLike, lmbda: ArrayLike | None = None
           ) -> Array | tuple[Array, Array]:
    """(x**lmbda - 1) / lmbda; without a parameter also that of the largest likelihood.

    >>> import functrans as ft
    >>> ft.scipy.stats.boxcox(ft.numpy.array([1.0, 4.0]), 0.5).tolist()
    [0.0, 2.0]
    """
    (values,) = inexact(x)
    if lmbda is not None:
        return special.boxcox(values, jnp.asarray(lmbda).astype(values.dtype))
    best = boxcox_normmax(values, method="mle")
    return special.boxcox(values, best), best


def _yeojohnson(x: Array, power: Array) -> Array:
    up = x >= 0
    rest = special.boxcox1p(jnp.where(up, x, 0), power)
    below = -special.boxcox1p(jnp.where(up, 0, -x), 2 - power)
    return jnp.where(up, rest, below)


@over_axis("data", least=2)
def yeojohnson_llf(lmb: ArrayLike, data: ArrayLike, *, axis: int = 0, nan_policy: str = "propagate",
                   keepdims: bool = False) -> Array:
    """The logarithm of the likelihood of Yeo and Johnson's parameter.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.yeojohnson_llf(1.0, ft.numpy.array([-1.0, 1.0]))), 4)
    0.0
    """
    x, axis = sample("yeojohnson_llf", data, axis)
    power = jnp.asarray(lmb).astype(x.dtype)
    n = x.shape[axis]
    spread = jnp.var(_yeojohnson(x, power), axis)
    return -n / 2 * jnp.log(spread) + (power - 1) * jnp.sum(
        jnp.sign(x) * jnp.log1p(jnp.abs(x)), axis)


def yeojohnson_normmax(x: ArrayLike, brack: Bracket = None) -> Array:
    """Yeo and Johnson's parameter of the largest likelihood, differentiated as such.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.yeojohnson_normmax(ft.numpy.linspace(-1.0, 1.0, 9))), 2)
    1.0
    """
    values, _ = sample("yeojohnson_normmax", x, None)
    return _best(lambda v: yeojohnson_llf(v, values), values, brack)


def yeojohnson(x: ArrayLike, lmbda: ArrayLike | None = None
               ) -> Array | tuple[Array, Array]:
    """Box and Cox's transform of 1 + x, also of negative x; without a parameter see `boxcox`.

    >>> import functrans as ft
    >>> ft.scipy.stats.yeojohnson(ft.numpy.array([-1.0, 3.0]), 1.0).tolist()
    [-1.0, 3.0]
    """
    (values,) = inexact(x)
    if lmbda is not None:
        return _yeojohnson(values, jnp.asarray(lmbda).astype(values.dtype))
    best = yeojohnson_normmax(values)
    return _yeojohnson(values, best), best


publish(globals(), __all__)
