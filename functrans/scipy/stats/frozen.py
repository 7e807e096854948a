"""Distributions whose parameters are given: what calling a family returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from functrans.core.tree_registry import register_pytree_node_class
from functrans.scipy.stats.drawing import by_key
from functrans.typing import Array, ArrayLike

__all__ = ["Frozen"]


@register_pytree_node_class
class Frozen:
    """A distribution of given parameters: a tree, of which these are the leaves.

    >>> import functrans as ft
    >>> x = ft.scipy.stats.norm(1.0, 2.0)
    >>> float(x.cdf(1.0)), float(x.mean())
    (0.5, 1.0)
    """

    def __init__(self, dist: Any, args: Sequence[Any], kwds: Mapping[str, Any]) -> None:
        self.dist, self.args, self.kwds = dist, tuple(args), dict(kwds)

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.args, self.kwds), self.dist

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Frozen:
        return cls(aux, *children)

    def __repr__(self) -> str:
        given = [*map(str, self.args), *(f"{k}={v}" for k, v in self.kwds.items())]
        return f"{self.dist.name}({', '.join(given)})"

    def _at(self, method: str, *variables: Any) -> Any:
        return getattr(self.dist, method)(*variables, *self.args, **self.kwds)

    def pdf(self, x: ArrayLike) -> Array:
        """The density at x."""
        result: Array = self._at("pdf", x)
        return result

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density at x."""
        result: Array = self._at("logpdf", x)
        return result

    def pmf(self, k: ArrayLike) -> Array:
        """The probability of k."""
        result: Array = self._at("pmf", k)
        return result

    def logpmf(self, k: ArrayLike) -> Array:
        """The logarithm of the probability of k."""
        result: Array = self._at("logpmf", k)
        return result

    def cdf(self, x: ArrayLike) -> Array:
        """The probability of values up to x."""
        result: Array = self._at("cdf", x)
        return result

    def logcdf(self, x: ArrayLike) -> Array:
        """The logarithm of cdf."""
        result: Array = self._at("logcdf", x)
        return result

    def sf(self, x: ArrayLike) -> Array:
        """The probability of values above x."""
        result: Array = self._at("sf", x)
        return result

    def logsf(self, x: ArrayLike) -> Array:
        """The logarithm of sf."""
        result: Array = self._at("logsf", x)
        return result

    def ppf(self, q: ArrayLike) -> Array:
        """The quantile, the inverse of cdf."""
        result: Array = self._at("ppf", q)
        return result

    def isf(self, q: ArrayLike) -> Array:
        """The inverse of sf."""
        result: Array = self._at("isf", q)
        return result

    @by_key
    def rvs(self, key: Array, shape: Any = None) -> Array:
        """Random numbers from a key, of `shape` or of that of the parameters."""
        result: Array = self.dist.rvs(key, *self.args, shape=shape, **self.kwds)
        return result

    def mean(self) -> Array:
        """The mean."""
        result: Array = self._at("mean")
        return result

    def var(self) -> Array:
        """The variance."""
        result: Array = self._at("var")
        return result

    def std(self) -> Array:
        """The standard deviation."""
        result: Array = self._at("std")
        return result

    def median(self) -> Array:
        """The median."""
        result: Array = self._at("median")
        return result

    def entropy(self) -> Array:
        """The entropy."""
        result: Array = self._at("entropy")
        return result

    def moment(self, order: int) -> Array:
        """The mean of x**order."""
        result: Array = self._at("moment", order)
        return result

    def stats(self, moments: str = "mv") -> Any:
        """Of "m", "v", "s", "k" the mean, variance, skewness and excess kurtosis."""
        return self.dist.stats(*self.args, moments=moments, **self.kwds)

    def interval(self, confidence: ArrayLike) -> tuple[Array, Array]:
        """The ends of the interval around the median of this probability."""
        result: tuple[Array, Array] = self._at("interval", confidence)
        return result

    def support(self) -> tuple[Array, Array]:
        """The ends between which values are."""
        result: tuple[Array, Array] = self._at("support")
        return result

    def expect(self, func: Any = None, lb: ArrayLike | None = None, ub: ArrayLike | None = None,
               conditional: bool = False) -> Array:
        """The mean of func(x), between lb and ub, on condition of that if `conditional`."""
        shapes = {name: self.kwds[name] for name in self.dist.shapes if name in self.kwds}
        count = len(self.dist.shapes)
        args = [*self.args[:count], *shapes.values()]
        place = dict(zip(("loc", "scale"), self.args[count:], strict=False))
        place |= {k: v for k, v in self.kwds.items() if k not in shapes}
        result: Array = self.dist.expect(func, tuple(args), **place, lb=lb, ub=ub,
                                         conditional=conditional)
        return result
