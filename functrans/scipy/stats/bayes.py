"""What a sample tells of the mean, the variance and the standard deviation of a variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from functrans import numpy as jnp
from functrans.core.errors import ShapeError, publish
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_node_class
from functrans.scipy.arguments import real
from functrans.scipy.stats.drawing import by_key
from functrans.scipy.stats.half_line import invgamma
from functrans.scipy.stats.more_half_line import gengamma
from functrans.scipy.stats.real_line import norm, t
from functrans.scipy.stats.results import tail_of
from functrans.typing import Array, ArrayLike

__all__ = ["bayes_mvs", "mvsdist"]

_MANY = 1000  # elements from which all three are taken as normal


class BayesEstimate(NamedTuple):
    """The mean of a parameter's distribution, and the ends of an interval that has it."""

    statistic: Array
    minmax: tuple[Array, Array]


@register_pytree_node_class
class ParameterDistribution:
    """A distribution with its parameters: its family's methods, without them.

    `rvs(key, shape=(3,))` draws by a key.
    """

    def __init__(self, family: Any, *shapes: Any, loc: Any, scale: Any) -> None:
        self.family, self.args = family, (*shapes, loc, scale)

    def __repr__(self) -> str:
        return f"<{self.family.name} with {', '.join(map(str, self.args))}>"

    def tree_flatten(self) -> tuple[Any, Any]:
        """The parameters, and the family."""
        return self.args, self.family

    @classmethod
    def tree_unflatten(cls, family: Any, args: Any) -> ParameterDistribution:
        """The distribution of these parameters."""
        made = object.__new__(cls)
        made.family, made.args = family, tuple(args)
        return made

    def _of(self, method: str) -> Callable[..., Array]:
        of: Callable[..., Array] = getattr(self.family, method)
        return of

    def pdf(self, x: ArrayLike) -> Array:
        """The density at x."""
        return self._of("pdf")(x, *self.args)

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density at x."""
        return self._of("logpdf")(x, *self.args)

    def cdf(self, x: ArrayLike) -> Array:
        """The probability up to x."""
        return self._of("cdf")(x, *self.args)

    def sf(self, x: ArrayLike) -> Array:
        """The probability beyond x."""
        return self._of("sf")(x, *self.args)

    def ppf(self, q: ArrayLike) -> Array:
        """The quantile of level q."""
        return self._of("ppf")(q, *self.args)

    def isf(self, q: ArrayLike) -> Array:
        """What q of the probability is beyond."""
        return self._of("isf")(q, *self.args)

    def mean(self) -> Array:
        """The mean."""
        return self._of("mean")(*self.args)

    def var(self) -> Array:
        """The variance."""
        return self._of("var")(*self.args)

    def std(self) -> Array:
        """The standard deviation."""
        return self._of("std")(*self.args)

    def median(self) -> Array:
        """The median."""
        return self.ppf(0.5)

    def interval(self, confidence: float) -> tuple[Array, Array]:
        """The quantiles that leave as much on both sides."""
        level = tail_of(confidence, "two-sided")
        return self.ppf(1 - level), self.ppf(level)

    @by_key
    def rvs(self, key: Array, shape: Any = ()) -> Array:
        """Draws by a key."""
        return self._of("rvs")(key, *self.args, shape=shape)


def mvsdist(data: ArrayLike
            ) -> tuple[ParameterDistribution, ParameterDistribution, ParameterDistribution]:
    """The distributions of the mean, the variance and the standard deviation, given a sample.

    The prior is that of ignorance. Of more than 1,000 elements they are normal. Raises ShapeError
    for fewer than two.
    Source: Oliphant, A Bayesian Perspective on Estimating Mean, Variance, and Standard-Deviation
    from Data (2006).

    >>> import functrans as ft
    >>> mean, variance, spread = ft.scipy.stats.mvsdist([6.0, 9.0, 12.0, 7.0, 8.0, 8.0, 13.0])
    >>> float(mean.mean()), [round(float(v), 3) for v in mean.interval(0.9)]
    (9.0, [7.104, 10.896])
    """
    (x,) = real("stats.mvsdist", data)
    n = x.size
    if n < 2:
        raise ShapeError(f"scipy.stats.mvsdist: the sample has {n} elements.", where=user_source(),
                         why="a variance needs two.")
    middle, spread = jnp.mean(x), jnp.var(x)
    if n > _MANY:
        return (ParameterDistribution(norm, loc=middle, scale=jnp.sqrt(spread / n)),
                ParameterDistribution(norm, loc=spread, scale=spread * (2 / n) ** 0.5),
                ParameterDistribution(norm, loc=jnp.sqrt(spread), scale=jnp.sqrt(
                    spread / (2 * n))))
    zero, half, total = jnp.zeros_like(middle), jnp.full_like(middle, (n - 1) / 2), n * spread / 2
    return (ParameterDistribution(t, 2 * half, loc=middle, scale=jnp.sqrt(spread / (n - 1))),
            ParameterDistribution(invgamma, half, loc=zero, scale=total),
            ParameterDistribution(gengamma, half, jnp.full_like(half, -2), loc=zero,
                                  scale=jnp.sqrt(total)))


def bayes_mvs(data: ArrayLike, alpha: float = 0.9
              ) -> tuple[BayesEstimate, BayesEstimate, BayesEstimate]:
    """The mean, the variance and the standard deviation, each with an interval that has it.

    `alpha` is the probability of the intervals. See `mvsdist`.

    >>> import functrans as ft
    >>> mean, variance, spread = ft.scipy.stats.bayes_mvs([6.0, 9.0, 12.0, 7.0, 8.0, 8.0, 13.0])
    >>> float(variance.statistic), [round(float(v), 3) for v in variance.minmax]
    (10.0, [3.177, 24.459])
    """
    mean, variance, spread = (BayesEstimate(d.mean(), d.interval(alpha)) for d in mvsdist(data))
    return mean, variance, spread


publish(globals(), __all__)
