"""Random variables as objects: of families, and functions, orders and mixtures of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_node_class
from functrans.nn.functions import log1mexp
from functrans.scipy.arguments import one_of, refused
from functrans.scipy.special.common import partials
from functrans.scipy.special.roots import increasing_root
from functrans.scipy.stats.base import Distribution
from functrans.scipy.stats.integrals import side_mean
from functrans.typing import Array, ArrayLike

__all__ = ["FamilyVariable", "Variable", "abs_of", "as_floating", "exp_of", "known_variable",
           "log_of", "truncate", "variable_tree"]


def as_floating(x: ArrayLike) -> Array:
    value = jnp.asarray(x)
    return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)


class Variable:
    """A random variable of real numbers, of which methods ask by its own name.

    Sums with and products by numbers are variables again, as are `exp`, `log` and `abs` of them;
    `x.plot` is refused.

    >>> from functrans.scipy import stats
    >>> x = stats.Normal()
    >>> at = (x.pdf(0.0), x.logpdf(0.0), x.cdf(0.0), x.ccdf(0.0), x.logcdf(0.0), x.logccdf(0.0))
    >>> [round(float(v), 2) for v in at]
    [0.4, -0.92, 0.5, 0.5, -0.69, -0.69]
    >>> places = (x.icdf(0.9), x.iccdf(0.9), x.ilogcdf(-0.5), x.ilogccdf(-0.5), x.pmf(0.0))
    >>> [round(float(v), 2) for v in places], float(x.logpmf(0.0))
    ([1.28, -1.28, 0.27, -0.27, 0.0], -inf)
    >>> [round(float(v), 2) for v in (x.variance(), x.standard_deviation(), x.moment(2))]
    [1.0, 1.0, 1.0]
    >>> [round(float(v), 2) for v in (x.kurtosis(), x.entropy(), x.logentropy(), x.skewness() + 1)]
    [3.0, 1.42, 0.35, 1.0]
    >>> [round(abs(float(v)), 2) for v in (x.mean(), x.median(), x.mode(), *x.support())]
    [0.0, 0.0, 0.0, inf, inf]
    >>> x.sample((2, 3), rng=0).shape
    (2, 3)
    """

    discrete = False

    # of each kind --------------------------------------------------------------------------

    def logpdf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        """The logarithm of the density at x."""
        raise TypeError(f"{type(self).__name__} has no density.")

    def logcdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        """The logarithm of the probability of values up to x, or between x and y."""
        raise TypeError(f"{type(self).__name__} has no distribution function.")

    def logccdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        """The logarithm of the probability of values above x, or not between x and y."""
        raise TypeError(f"{type(self).__name__} has no distribution function.")

    def icdf(self, p: ArrayLike, /, *, method: None = None) -> Array:
        """The quantile: where the probability of values up to it is p."""
        return self._root(as_floating(p), False)

    def iccdf(self, p: ArrayLike, /, *, method: None = None) -> Array:
        """Where the probability of values above it is p."""
        return self._root(as_floating(p), True)

    def support(self) -> tuple[Array, Array]:
        """The ends between which values are."""
        return jnp.asarray(-math.inf), jnp.asarray(math.inf)

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        tiny = float(np.finfo(np.float32).tiny)
        return self.icdf(random.uniform(key, shape, minval=tiny))

    def _bracket(self, p: Array, upper: bool) -> tuple[Array, Array]:
        """Two places with the quantile between them."""
        raise TypeError(f"{type(self).__name__} has no quantiles.")

    # what follows --------------------------------------------------------------------------

    def _root(self, p: Array, upper: bool) -> Array:
        def found(p: Array) -> Array:
            low, high = self._bracket(p, upper)
            small = p <= 0.5
            goal = lax.log(jnp.where(small, p, 1.0 - p))
            lower = small != upper

            def miss(x: Array) -> tuple[Array, Array]:
                tail = jnp.where(lower, self.logcdf(x), self.logccdf(x))
                off = tail - goal
                return jnp.where(lower, off, -off), lax.exp(self.logpdf(x) - tail)

            return increasing_root(miss, low, high, 0.5 * (low + high))

        sign = -1.0 if upper else 1.0
        inside = (p > 0) & (p < 1)
        rule = partials(lambda out, p: sign * lax.exp(-self.logpdf(out)))
        x = rule(found)(jnp.where(inside, p, 0.5).astype(np.float64)).astype(p.dtype)
        first, last = self.support()[::-1] if upper else self.support()
        x = jnp.where(p == 0, first, jnp.where(p == 1, last, x))
        return jnp.where((p >= 0) & (p <= 1), x, math.nan).astype(p.dtype)

    def pdf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        """The density at x."""
        return lax.exp(self.logpdf(x))

    def logpmf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        """The logarithm of the probability of x, -inf of a variable with a density."""
        return jnp.full_like(as_floating(x), -math.inf)

    def pmf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        """The probability of x."""
        return lax.exp(self.logpmf(x))

    def cdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        """The probability of values up to x, or between x and y."""
        if y is None:
            return lax.exp(self.logcdf(x))
        x, y = as_floating(x), as_floating(y)
        upper = x > self.median()
        return jnp.where(upper, self.ccdf(x) - self.ccdf(y), self.cdf(y) - self.cdf(x))

    def ccdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        """The probability of values above x, or not between x and y."""
        return lax.exp(self.logccdf(x)) if y is None else self.cdf(x) + self.ccdf(y)

    def ilogcdf(self, logp: ArrayLike, /, *, method: None = None) -> Array:
        """The quantile of a probability by its logarithm."""
        return self.icdf(lax.exp(as_floating(logp)))

    def ilogccdf(self, logp: ArrayLike, /, *, method: None = None) -> Array:
        """The upper quantile of a probability by its logarithm."""
        return self.iccdf(lax.exp(as_floating(logp)))

    def sample(self, shape: Any = (), *, method: None = None, rng: Array | int | None = None
               ) -> Array:
        """Random numbers of a shape; `rng` is a key, or a seed of one."""
        if rng is None:
            raise ArgumentError("sample: there is no key.", where=user_source(),
                                why="random numbers come from keys.",
                                fix="sample(shape, rng=functrans.random.key(0))")
        key = random.key(rng) if isinstance(rng, int) else rng
        return self._draw(key, (shape,) if isinstance(shape, int) else tuple(shape))

    def _mean_of(self, fun: Callable[[Array], Array]) -> Array:
        places = [lax.stop_gradient(p).astype(np.float64) for p in self._places()]
        low, high = (jnp.zeros_like(places[0]) + end for end in self.support())

        def density(x: Array) -> Array:
            return self.logpdf(x)

        total = side_mean(fun, density, places[0], low, (), False)
        for start, end in zip(places, [*places[1:], high], strict=True):
            total = total + side_mean(fun, density, start, end, (), True)
        return total

    def _places(self) -> list[Array]:
        """Places of the bulk, in order, from which integrals start."""
        return [self.median()]

    def moment(self, order: int = 1, kind: str = "raw", *, method: None = None) -> Array:
        """The mean of x**order ("raw"), of (x - mean)**order ("central"), in units of the standard
        deviation ("standardized")."""
        one_of("stats.moment", "kind", kind, ("raw", "central", "standardized"))
        if kind == "raw":
            return self._mean_of(lambda x: x**order)
        centre = self.mean()[..., None]
        value = self._mean_of(lambda x: (x - centre) ** order)
        return value / self.standard_deviation() ** order if kind == "standardized" else value

    def mean(self, *, method: None = None) -> Array:
        """The mean."""
        return self._mean_of(lambda x: x)

    def variance(self, *, method: None = None) -> Array:
        """The variance."""
        return self.moment(2, "central")

    def standard_deviation(self, *, method: None = None) -> Array:
        """The root of the variance."""
        return lax.sqrt(self.variance())

    def skewness(self, *, method: None = None) -> Array:
        """The third standardized moment."""
        return self.moment(3, "standardized")

    def kurtosis(self, *, method: None = None, convention: str = "non-excess") -> Array:
        """The fourth standardized moment, less 3 for the convention "excess"."""
        one_of("stats.kurtosis", "convention", convention, ("non-excess", "excess"))
        return self.moment(4, "standardized") - (3.0 if convention == "excess" else 0.0)

    def median(self, *, method: None = None) -> Array:
        """The median."""
        return self.icdf(jnp.asarray(0.5, np.float64))

    def mode(self, *, method: None = None) -> Array:
        """Where the density is highest, of 4,001 quantiles and by Newton's method for its slope."""
        low, high = self.icdf(jnp.asarray(1e-9)), self.icdf(jnp.asarray(1.0 - 1e-6))
        low, high = low.astype(np.float64), high.astype(np.float64)
        for _ in range(12):  # each time 64 times as fine
            grid = low[..., None] + (high - low)[..., None] * np.linspace(0.0, 1.0, 257)
            best = jnp.argmax(self.logpdf(jnp.moveaxis(grid, -1, 0)), 0)[..., None]
            step = (high - low) / 256.0
            top = jnp.take_along_axis(grid, best, -1)[..., 0]
            low, high = jnp.maximum(top - 2 * step, low), jnp.minimum(top + 2 * step, high)
        return top

    def entropy(self, *, method: None = None) -> Array:
        """The entropy."""
        return self._mean_of(lambda x: -self.logpdf(x))

    def logentropy(self, *, method: None = None) -> Array:
        """The logarithm of the entropy; NaN where that is negative."""
        return lax.log(self.entropy())

    def plot(self, *args: Any, **kwargs: Any) -> Any:
        raise refused("stats.plot", "a variable", "there is no drawing of plots here.",
                      "matplotlib's plot(x, X.pdf(x))")

    # arithmetic ----------------------------------------------------------------------------

    def __add__(self, other: ArrayLike) -> Variable:
        return PlacedVariable(self, jnp.asarray(other), jnp.asarray(1.0))

    __radd__ = __add__

    def __sub__(self, other: ArrayLike) -> Variable:
        return self + (-jnp.asarray(other))

    def __rsub__(self, other: ArrayLike) -> Variable:
        return -self + other

    def __mul__(self, other: ArrayLike) -> Variable:
        return PlacedVariable(self, jnp.asarray(0.0), jnp.asarray(other))

    __rmul__ = __mul__

    def __truediv__(self, other: ArrayLike) -> Variable:
        return self * (1.0 / jnp.asarray(other))

    def __neg__(self) -> Variable:
        return self * -1.0

    def __abs__(self) -> Variable:
        return abs_of(self)


def variable_tree(*fields: str) -> Callable[[Any], Any]:
    """Class decorator: a tree whose children are these attributes."""
    def decorate(cls: Any) -> Any:
        def unflatten(kind: Any, aux: Any, children: Any) -> Any:
            new = object.__new__(kind)
            for name, value in zip((*fields, "_fixed"), (*children, aux), strict=True):
                setattr(new, name, value)
            return new

        cls._fixed = None
        cls.tree_flatten = lambda self: (tuple(getattr(self, f) for f in fields), self._fixed)
        cls.tree_unflatten = classmethod(unflatten)
        return register_pytree_node_class(cls)

    return decorate


@variable_tree("parameters")
class FamilyVariable(Variable):
    """A variable of a family, at its shapes, loc and scale."""

    def __init__(self, family: Distribution, parameters: Sequence[Any]) -> None:
        self._fixed, self.parameters = family, tuple(as_floating(p) for p in parameters)
        self.discrete = not family.has_scale

    @property
    def _family(self) -> Any:
        return self._fixed

    def _at(self, method: str, *xs: ArrayLike) -> Array:
        out: Array = getattr(self._family, method)(*map(as_floating, xs), *self.parameters)
        return out

    def logpdf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        return self._at("logpdf" if self._family.has_scale else "logpmf", x)

    def logpmf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        return super().logpmf(x) if self._family.has_scale else self._at("logpmf", x)

    def logcdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        return self._at("logcdf", x) if y is None else lax.log(self.cdf(x, y))

    def logccdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        return self._at("logsf", x) if y is None else lax.log(self.ccdf(x, y))

    def icdf(self, p: ArrayLike, /, *, method: None = None) -> Array:
        return self._at("ppf", p)

    def iccdf(self, p: ArrayLike, /, *, method: None = None) -> Array:
        return self._at("isf", p)

    def support(self) -> tuple[Array, Array]:
        out: tuple[Array, Array] = self._family.support(*self.parameters)
        return out

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        sizes = np.broadcast_shapes(*(p.shape for p in self.parameters))
        out: Array = self._family.rvs(key, *self.parameters, shape=(*shape, *sizes))
        return out

    def _mean_of(self, fun: Callable[[Array], Array]) -> Array:
        out: Array = self._family._mean_of(fun, self._family._bound("mean", self.parameters, {}))
        return out

    def mean(self, *, method: None = None) -> Array:
        return self._at("mean")

    def variance(self, *, method: None = None) -> Array:
        return self._at("var")

    def entropy(self, *, method: None = None) -> Array:
        return self._at("entropy")


@variable_tree("inner", "loc", "scale")
class PlacedVariable(Variable):
    """loc + scale X, of a scale of either sign."""

    def __init__(self, inner: Variable, loc: Array, scale: Array) -> None:
        self.inner, self.loc, self.scale = inner, loc, scale

    def _z(self, x: ArrayLike) -> Array:
        return (as_floating(x) - self.loc) / self.scale

    def logpdf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        return self.inner.logpdf(self._z(x)) - lax.log(jnp.abs(self.scale))

    def _side(self, x: ArrayLike, upper: bool) -> Array:
        z = self._z(x)
        return jnp.where((self.scale > 0) != upper, self.inner.logcdf(z), self.inner.logccdf(z))

    def logcdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        return self._side(x, False) if y is None else lax.log(self.cdf(x, y))

    def logccdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        return self._side(x, True) if y is None else lax.log(self.ccdf(x, y))

    def icdf(self, p: ArrayLike, /, *, method: None = None) -> Array:
        return self.loc + self.scale * jnp.where(self.scale > 0, self.inner.icdf(p),
                                                 self.inner.iccdf(p))

    def iccdf(self, p: ArrayLike, /, *, method: None = None) -> Array:
        return self.loc + self.scale * jnp.where(self.scale > 0, self.inner.iccdf(p),
                                                 self.inner.icdf(p))

    def support(self) -> tuple[Array, Array]:
        ends = [self.loc + self.scale * end for end in self.inner.support()]
        return jnp.minimum(*ends), jnp.maximum(*ends)

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        return self.loc + self.scale * self.inner._draw(key, shape)

    def mean(self, *, method: None = None) -> Array:
        return self.loc + self.scale * self.inner.mean()

    def variance(self, *, method: None = None) -> Array:
        return self.scale * self.scale * self.inner.variance()


@variable_tree("inner", "low", "high")
class Truncated(Variable):
    """X on condition that it is between low and high."""

    def __init__(self, inner: Variable, low: Array, high: Array) -> None:
        self.inner, self.low, self.high = inner, low, high

    def _log_mass(self, low: Any, high: Any) -> Array:
        """log of the probability between two places, by the tail that both are in."""
        upper = self.inner.logccdf(low) < self.inner.logcdf(low)
        top = jnp.where(upper, self.inner.logccdf(low), self.inner.logcdf(high))
        less = jnp.where(upper, self.inner.logccdf(high), self.inner.logcdf(low)) - top
        some = less < 0
        return jnp.where(some, top + log1mexp(-jnp.where(some, less, -1.0)), -math.inf)

    def _inside(self, x: ArrayLike) -> tuple[Array, Array]:
        value = as_floating(x)
        return jnp.clip(value, self.low, self.high), (value >= self.low) & (value <= self.high)

    def logpdf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        at, inside = self._inside(x)
        value = self.inner.logpdf(at) - self._log_mass(self.low, self.high)
        return jnp.where(inside | jnp.isnan(at), value, -math.inf)

    def logcdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        at, _ = self._inside(x)
        if y is not None:
            return lax.log(self.cdf(x, y))
        return self._log_mass(self.low, at) - self._log_mass(self.low, self.high)

    def logccdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        at, _ = self._inside(x)
        if y is not None:
            return lax.log(self.ccdf(x, y))
        return self._log_mass(at, self.high) - self._log_mass(self.low, self.high)

    def icdf(self, p: ArrayLike, /, *, method: None = None) -> Array:
        return self._found(as_floating(p), False)

    def iccdf(self, p: ArrayLike, /, *, method: None = None) -> Array:
        return self._found(as_floating(p), True)

    def _found(self, p: Array, upper: bool) -> Array:
        mass = lax.exp(self._log_mass(self.low, self.high))
        share = 1.0 - p if upper else p
        right = self.inner.logccdf(self.low) < self.inner.logcdf(self.low)
        low = self.inner.icdf(jnp.clip(self.inner.cdf(self.low) + share * mass, 0.0, 1.0))
        rest = p if upper else 1.0 - p
        high = self.inner.iccdf(jnp.clip(self.inner.ccdf(self.high) + rest * mass, 0.0, 1.0))
        return jnp.clip(jnp.where(right, high, low), self.low, self.high)

    def support(self) -> tuple[Array, Array]:
        low, high = self.inner.support()
        return jnp.maximum(low, self.low), jnp.minimum(high, self.high)


@variable_tree("inner")
class Powered(Variable):
    """exp(X), or log(X)."""

    def __init__(self, inner: Variable, upward: bool) -> None:
        self.inner, self._fixed = inner, upward

    def _z(self, x: ArrayLike) -> Array:
        value = as_floating(x)
        if not self._fixed:
            return lax.exp(value)
        some = value > 0
        return jnp.where(some, lax.log(jnp.where(some, value, 1.0)), -math.inf)

    def logpdf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        value, z = as_floating(x), self._z(x)
        if not self._fixed:
            return self.inner.logpdf(z) + value
        some = value > 0
        density = self.inner.logpdf(jnp.where(some, z, 0.0)) - jnp.where(some, z, 0.0)
        return jnp.where(some | jnp.isnan(value), density, -math.inf)

    def logcdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        return self.inner.logcdf(self._z(x)) if y is None else lax.log(self.cdf(x, y))

    def logccdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        return self.inner.logccdf(self._z(x)) if y is None else lax.log(self.ccdf(x, y))

    def _out(self, z: Array) -> Array:
        return lax.exp(z) if self._fixed else lax.log(z)

    def icdf(self, p: ArrayLike, /, *, method: None = None) -> Array:
        return self._out(self.inner.icdf(p))

    def iccdf(self, p: ArrayLike, /, *, method: None = None) -> Array:
        return self._out(self.inner.iccdf(p))

    def support(self) -> tuple[Array, Array]:
        low, high = (self._out(as_floating(end)) for end in self.inner.support())
        return low, high

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        return self._out(self.inner._draw(key, shape))


@variable_tree("inner")
class Folded(Variable):
    """The size of X."""

    def __init__(self, inner: Variable) -> None:
        self.inner = inner

    def logpdf(self, x: ArrayLike, /, *, method: None = None) -> Array:
        value = as_floating(x)
        both = jnp.logaddexp(self.inner.logpdf(value), self.inner.logpdf(-value))
        return jnp.where(value < 0, -math.inf, both)

    def logcdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        if y is not None:
            return lax.log(self.cdf(x, y))
        size = jnp.maximum(as_floating(x), 0.0)
        return Truncated(self.inner, -size, size)._log_mass(-size, size)

    def logccdf(self, x: ArrayLike, y: ArrayLike | None = None, /, *, method: None = None) -> Array:
        if y is not None:
            return lax.log(self.ccdf(x, y))
        size = jnp.maximum(as_floating(x), 0.0)
        return jnp.minimum(jnp.logaddexp(self.inner.logcdf(-size), self.inner.logccdf(size)), 0.0)

    def _bracket(self, p: Array, upper: bool) -> tuple[Array, Array]:
        rest = 0.5 * (p if upper else 1.0 - p)
        ends = jnp.abs(self.inner.icdf(rest)), jnp.abs(self.inner.iccdf(rest))
        return jnp.zeros_like(p), jnp.maximum(*ends)

    def support(self) -> tuple[Array, Array]:
        low, high = self.inner.support()
        inside = (low <= 0) & (high >= 0)
        ends = jnp.abs(low), jnp.abs(high)
        return jnp.where(inside, 0.0, jnp.minimum(*ends)), jnp.maximum(*ends)

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        return jnp.abs(self.inner._draw(key, shape))


def known_variable(name: str, x: Variable) -> Variable:
    if isinstance(x, Variable) and not x.discrete:
        return x
    raise ArgumentError(f"scipy.stats.{name} takes a random variable with a density.",
                        where=user_source(), why="such as Normal(), or a function of one.",
                        fix=f"{name}(Normal())")


def truncate(X: Variable, lb: ArrayLike = -math.inf, ub: ArrayLike = math.inf) -> Variable:
    """X on condition that it is between lb and ub.

    >>> from functrans.scipy import stats
    >>> round(float(stats.truncate(stats.Normal(), lb=0.0).cdf(1.0)), 4)
    0.6827
    """
    return Truncated(known_variable("truncate", X), as_floating(lb), as_floating(ub))


def exp_of(X: Variable, /) -> Variable:
    """exp(X).

    >>> from functrans.scipy import stats
    >>> round(float(stats.exp(stats.Normal()).median()), 4)
    1.0
    """
    return Powered(known_variable("exp", X), True)


def log_of(X: Variable, /) -> Variable:
    """log(X) of a variable that is positive.

    >>> from functrans.scipy import stats
    >>> round(float(stats.log(stats.Uniform(a=0.0, b=1.0)).mean()), 4)
    -1.0
    """
    return Powered(known_variable("log", X), False)


def abs_of(X: Variable, /) -> Variable:
    """abs(X).

    >>> from functrans.scipy import stats
    >>> round(float(stats.abs(stats.Normal()).cdf(1.0)), 4)
    0.6827
    """
    return Folded(known_variable("abs", X))




publish(globals(), ("abs_of", "exp_of", "log_of", "truncate"))
