"""Mixtures and orders of random variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.scipy import special
from functrans.scipy.stats.variables import (
    Variable,
    as_floating,
    known_variable,
    variable_tree,
)
from functrans.typing import Array, ArrayLike

__all__ = ["MixtureVariable", "order_statistic"]


@variable_tree("inner", "r", "n")
class Ordered(Variable):
    """The r-th least of n independent variables."""

    def __init__(self, inner: Variable, r: Array, n: Array) -> None:
        self.inner, self.r, self.n = inner, r, n

    def logpdf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        a, b = self.r, self.n - self.r + 1.0
        low, high = self.inner.logcdf(x), self.inner.logccdf(x)
        return (self.inner.logpdf(x) + jnp.where(a > 1, (a - 1.0) * low, 0.0) + jnp.where(
            b > 1, (b - 1.0) * high, 0.0) - special.betaln(a, b))

    def logcdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        if y is not None:
            return lax.log(self.cdf(x, y))
        return lax.log(special.betainc(self.r, self.n - self.r + 1.0, self.inner.cdf(x)))

    def logccdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        if y is not None:
            return lax.log(self.ccdf(x, y))
        return lax.log(special.betainc(self.n - self.r + 1.0, self.r, self.inner.ccdf(x)))

    def icdf(self, p: ArrayLike, /, *, method: None = None) -> Array:
        return self.inner.icdf(special.betaincinv(self.r, self.n - self.r + 1.0, as_floating(p)))

    def iccdf(self, p: ArrayLike, /, *, method: None = None) -> Array:
        return self.inner.iccdf(special.betaincinv(self.n - self.r + 1.0, self.r, as_floating(p)))

    def support(self) -> tuple[Array, Array]:
        return self.inner.support()


@variable_tree("components", "weights")
class MixtureVariable(Variable):
    """A variable that is one of several, at random: `Mixture(components, weights=)`.

    >>> import functrans as ft
    >>> from functrans.scipy import stats
    >>> x = stats.Mixture([stats.Normal(mu=-1.0), stats.Normal(mu=1.0)], weights=[0.5, 0.5])
    >>> round(float(x.cdf(0.0)), 4), round(float(x.variance()), 4)
    (0.5, 2.0)
    """

    def __init__(self, components: Sequence[Variable], *, weights: ArrayLike | None = None
                 ) -> None:
        self.components = tuple(components)
        if not self.components or not all(isinstance(c, Variable) for c in self.components):
            raise ArgumentError("scipy.stats.Mixture: components are no random variables.",
                                where=user_source(), why="each is one, such as Normal(mu=0.0).",
                                fix="Mixture([Normal(), Normal(mu=1.0)])")
        count = len(self.components)
        self.weights = jnp.full(count, 1.0 / count) if weights is None else as_floating(weights)
        if self.weights.shape != (count,):
            raise ArgumentError(f"scipy.stats.Mixture: weights of shape {self.weights.shape} for "
                                f"{count} components.", where=user_source(),
                                why="each component has a weight.")
        self.discrete = any(c.discrete for c in self.components)

    def _mixed(self, method: str, x: ArrayLike) -> Array:
        logs = jnp.stack([getattr(c, method)(x) for c in self.components], -1)
        return special.logsumexp(logs, -1, b=self.weights)

    def logpdf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        return self._mixed("logpdf", x)

    def logpmf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        return self._mixed("logpmf", x)

    def logcdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        return self._mixed("logcdf", x) if y is None else lax.log(self.cdf(x, y))

    def logccdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        return self._mixed("logccdf", x) if y is None else lax.log(self.ccdf(x, y))

    def _bracket(self, p: Array, upper: bool) -> tuple[Array, Array]:
        ends = jnp.stack([c.iccdf(p) if upper else c.icdf(p) for c in self.components])
        return jnp.min(ends, 0), jnp.max(ends, 0)

    def support(self) -> tuple[Array, Array]:
        ends = [c.support() for c in self.components]
        return (jnp.min(jnp.stack([e[0] for e in ends]), 0),
                jnp.max(jnp.stack([e[1] for e in ends]), 0))

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        keys = random.split(key, len(self.components) + 1)
        index = random.choice(keys[0], len(self.components), shape, p=self.weights)
        drawn = jnp.stack([c._draw(k, shape) for c, k in zip(
            self.components, keys[1:], strict=True)])
        return jnp.take_along_axis(drawn, index[None], 0)[0]

    def _places(self) -> list[Array]:
        medians = jnp.sort(jnp.stack([c.median() for c in self.components]), 0)
        return [medians[i] for i in range(len(self.components))]

    def _mean_of(self, fun: Callable[[Array], Array]) -> Array:
        if self.discrete:
            return jnp.sum(self.weights * jnp.stack(
                [c._mean_of(fun) for c in self.components], -1), -1)
        return super()._mean_of(fun)

    def mean(self, *, method: None = None) -> Array:
        return jnp.sum(self.weights * jnp.stack([c.mean() for c in self.components], -1), -1)

    def entropy(self, *, method: None = None) -> Array:
        return self._mean_of(lambda x: -self._mixed("logpdf", x))


def order_statistic(X: Variable, /, *, r: ArrayLike, n: ArrayLike) -> Variable:
    """The r-th least of n independent variables X, r from 1 to n.

    >>> from functrans.scipy import stats
    >>> round(float(stats.order_statistic(stats.Uniform(a=0.0, b=1.0), r=1, n=3).mean()), 4)
    0.25
    """
    return Ordered(known_variable("order_statistic", X), as_floating(r), as_floating(n))


publish(globals(), ("order_statistic",))
