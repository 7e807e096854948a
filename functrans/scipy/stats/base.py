"""What the distributions of one variable share: places and scales, supports, and defaults.

A distribution states functions of a standard variable z = (x - loc) / scale and of its shape
parameters inside of its support: `log_density` and `below` at least. What is outside, impossible
parameters, and the functions that follow from others are here.
"""

from __future__ import annotations

import functools
import inspect
import math
import types
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import public
from functrans.numpy.common import broadcast_all, operand, promote_dtypes_inexact
from functrans.scipy.stats.drawing import by_key
from functrans.scipy.stats.fitting import fitted, fitted_place, negative_likelihood
from functrans.scipy.stats.frozen import Frozen
from functrans.scipy.stats.moments import continuous_mean, whole_mean
from functrans.scipy.stats.quantiles import numeric_quantile, whole_quantile
from functrans.scipy.stats.slopes import by_density
from functrans.typing import Array, ArrayLike

__all__ = ["Continuous", "Discrete", "DistributionFamily", "promoted"]

_NAN: Final = math.nan
_INF: Final = math.inf


def promoted(name: str, *args: ArrayLike) -> list[Array]:
    """The arguments in one floating dtype and one shape."""
    name = f"scipy.stats.{name}"
    return broadcast_all(name, *(operand(name, x) for x in promote_dtypes_inexact(name, *args)))


def _between(low: Any, high: Any, like: Array) -> Array:
    """A point inside of (low, high), whose ends may be infinite."""
    low, high = jnp.full_like(like, low) + 0 * like, jnp.full_like(like, high) + 0 * like
    from_low, to_high = jnp.abs(low) < _INF, jnp.abs(high) < _INF
    a, b = jnp.where(from_low, low, 0.0), jnp.where(to_high, high, 0.0)
    one_sided = jnp.where(from_low, a + 1.0, jnp.where(to_high, b - 1.0, 0.0))
    return jnp.where(from_low & to_high, 0.5 * (a + b), one_sided)


class DistributionFamily(types.ModuleType):
    """A family of distributions, which may be imported as a module, as those of JAX are."""

    def __init__(self, name: str) -> None:
        super().__init__(f"functrans.scipy.stats.{name}", type(self).__doc__)

    def __repr__(self) -> str:
        return f"<distribution {self.__name__}>"


class Distribution(DistributionFamily):
    """A family of distributions of numbers.

    Every one has `.support`, `.interval`, `.moment`, `.stats`, `.expect`, `.rvs`, `.freeze`,
    `.nnlf`, `.fit` and `.fit_loc_scale`. Of a family's own are `.ends`, `.possible`, `.draw`,
    `.division`, `.standard` and `.of_means`.

    >>> import functrans as ft
    >>> gamma = ft.scipy.stats.gamma
    >>> float(gamma.moment(1, 2.0)), float(gamma.expect(lambda x: x * x, (2.0,)))
    (2.0, 6.0)
    """

    shapes: ClassVar[tuple[str, ...]] = ()
    positive: ClassVar[tuple[str, ...]] = ()
    """The shapes that are above 0."""
    functions: ClassVar[dict[str, str]]
    """The methods of a variable, and the name of that."""
    has_scale: ClassVar[bool]

    # made for each family, which has those whose parts it states
    cdf: Callable[..., Array]
    logcdf: Callable[..., Array]
    sf: Callable[..., Array]
    logsf: Callable[..., Array]
    ppf: Callable[..., Array]
    isf: Callable[..., Array]
    mean: Callable[..., Array]
    var: Callable[..., Array]
    std: Callable[..., Array]
    median: Callable[..., Array]
    entropy: Callable[..., Array]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name
        for method, variable in self.functions.items():
            setattr(self, method, self._public(method, [variable]))
        for method in ("mean", "var", "std", "median", "entropy"):
            setattr(self, method, self._public(method, []))

    def _parameters(self) -> list[inspect.Parameter]:
        both = inspect.Parameter.POSITIONAL_OR_KEYWORD
        ends = [("loc", 0), ("scale", 1)] if self.has_scale else [("loc", 0)]
        return [*(inspect.Parameter(s, both, annotation="ArrayLike") for s in self.shapes),
                *(inspect.Parameter(n, both, default=d, annotation="ArrayLike")
                  for n, d in ends)]

    def _public(self, method: str, variables: Sequence[str]) -> Callable[..., Array]:
        """A method as users call it: arguments by name or place, promoted and broadcast."""
        both = inspect.Parameter.POSITIONAL_OR_KEYWORD
        signature = inspect.Signature(
            [*(inspect.Parameter(v, both, annotation="ArrayLike") for v in variables),
             *self._parameters()], return_annotation="Array")
        full = f"{self.name}.{method}"
        run = getattr(self, f"_{method}")

        def call(*args: Any, **kwargs: Any) -> Array:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            out: Array = run(*promoted(full, *bound.arguments.values()))
            return out

        call.__name__ = call.__qualname__ = method
        call.__doc__ = f"{_SENTENCES[method]} of the distribution {self.name}."
        call.__module__ = __name__
        call.__signature__ = signature  # type: ignore[attr-defined]
        return public(call)

    def possible(self, *shapes: Any, **none: Any) -> Any:
        """Where the shapes are those of a distribution."""
        known = True
        for name, x in zip(self.shapes, shapes, strict=True):
            known = known & (x > 0) if name in self.positive else known & (x == x)
        return known

    def _bound(self, method: str, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Array]:
        """Shapes, loc and scale as arrays of one shape and dtype."""
        bound = inspect.Signature(self._parameters()).bind(*args, **kwargs)
        bound.apply_defaults()
        return promoted(f"{self.name}.{method}", *bound.arguments.values())

    def __call__(self, *args: ArrayLike, **kwargs: ArrayLike) -> Frozen:
        return self.freeze(*args, **kwargs)

    def freeze(self, *args: ArrayLike, **kwargs: ArrayLike) -> Frozen:
        """The distribution of these parameters: its methods take the variable alone."""
        inspect.Signature(self._parameters()).bind(*args, **kwargs)
        return Frozen(self, args, kwargs)

    def support(self, *args: Any, **kwargs: Any) -> tuple[Array, Array]:
        """The ends between which values are."""
        xs = self._bound("support", args, kwargs)
        shapes, loc, scale = self._parted(xs)
        low, high = (loc + scale * (jnp.zeros_like(loc) + end) for end in self.ends(*shapes))
        known = self.possible(*shapes) & (scale > 0)
        return jnp.where(known, low, _NAN), jnp.where(known, high, _NAN)

    def interval(self, confidence: ArrayLike, *args: Any, **kwargs: Any) -> tuple[Array, Array]:
        """The ends of the interval around the median of this probability."""
        half = 0.5 * jnp.asarray(confidence)
        return self.ppf(0.5 - half, *args, **kwargs), self.ppf(0.5 + half, *args, **kwargs)

    def moment(self, order: int, *args: Any, **kwargs: Any) -> Array:
        """The mean of x**order."""
        xs = self._bound("moment", args, kwargs)
        return self._mean_of(lambda x: x ** int(order), xs)

    def stats(self, *args: Any, moments: str = "mv", **kwargs: Any) -> Any:
        """Of "m", "v", "s" and "k" in `moments` the mean, variance, skewness, excess kurtosis.

        A tuple of them in this order, or one alone.
        """
        xs = self._bound("stats", args, kwargs)
        found = {"m": self._mean, "v": self._var, "s": self._skew, "k": self._kurt}
        out = tuple(found[m](*xs) for m in found if m in moments)
        return out[0] if len(out) == 1 else out

    def _central(self, order: int, xs: Sequence[Array]) -> Array:
        mean = self._mean(*xs)
        fine = jnp.abs(mean) < _INF
        safe = jnp.where(fine, mean, 0.0)[..., None]
        return jnp.where(fine, self._mean_of(lambda x: (x - safe) ** order, xs), _NAN)

    def _skew(self, *xs: Array) -> Array:
        return self._central(3, xs) / self._var(*xs) ** 1.5

    def _kurt(self, *xs: Array) -> Array:
        return self._central(4, xs) / self._var(*xs) ** 2 - 3.0

    def expect(self, func: Callable[..., Any] | None = None, args: Sequence[Any] = (),
               loc: ArrayLike = 0, scale: ArrayLike = 1, lb: ArrayLike | None = None,
               ub: ArrayLike | None = None, conditional: bool = False) -> Array:
        """The mean of func(x), of x without one, for x between lb and ub.

        `func` takes and gives arrays. With `conditional` it is the mean on that condition.
        """
        given = {"loc": loc, "scale": scale} if self.has_scale else {"loc": loc}
        xs = self._bound("expect", args, given)
        fun = func or (lambda x: x)
        if lb is None and ub is None:
            return self._mean_of(fun, xs)
        low = jnp.asarray(-_INF if lb is None else lb).astype(xs[0].dtype)
        high = jnp.asarray(_INF if ub is None else ub).astype(xs[0].dtype)
        value = self._mean_of(fun, xs, low, high)
        if conditional:
            before = low if self.has_scale else lax.ceil(low) - 1.0
            value = value / (self.cdf(high, *xs) - self.cdf(before, *xs))
        return value

    def nnlf(self, theta: Sequence[Any], x: ArrayLike) -> Array:
        """Less the sum of the logarithms of densities at x, for (*shapes, loc, scale)."""
        return negative_likelihood(self, theta, jnp.asarray(x))

    def fit(self, data: Any, *args: Any, **kwds: Any) -> tuple[Array, ...]:
        """Estimates (*shapes, loc, scale) of the parameters by the likelihood or by moments.

        fit(data, *starts, loc=, scale=, floc=, fscale=, f0=, fshape_name=, method="MLE" or "MM"):
        what starts with f is fixed, the others are where the search begins.
        """
        return fitted(self, data, args, kwds)

    def fit_loc_scale(self, data: ArrayLike, *args: Any) -> tuple[Array, Array]:
        """Estimates of loc and scale by mean and variance, for the shapes given."""
        return fitted_place(self, jnp.asarray(data), args)

    def _parted(self, xs: Sequence[Array]) -> tuple[Sequence[Array], Array, Array]:
        if self.has_scale:
            return xs[:-2], xs[-2], xs[-1]
        return xs[:-1], xs[-1], jnp.ones_like(xs[-1])

    # of Continuous and of Discrete
    ends: Callable[..., tuple[Any, Any]]
    _mean: Callable[..., Array]
    _var: Callable[..., Array]

    def _mean_of(self, fun: Callable[..., Any], xs: Sequence[Array], low: Any = None,
                 high: Any = None) -> Array:
        raise TypeError("a family of distributions is Continuous or Discrete.")

    @by_key
    def rvs(self, key: Array, *args: Any, shape: Any = None, **kwargs: Any) -> Array:
        """Random numbers from a key, of `shape`, or of the shape of the parameters together.

        rvs(key, *shapes, loc=0, scale=1, shape=None): differentiable in the parameters where
        numbers are continuous, and integers of the default dtype where they are whole.
        """
        xs = self._bound("rvs", args, kwargs)
        if shape is not None:
            shape = (shape,) if isinstance(shape, int) else tuple(shape)
            xs = [jnp.broadcast_to(x, shape) for x in xs]
        return self._draw_placed(key, *xs)

    def _draw_placed(self, key: Array, *xs: Array) -> Array:
        raise TypeError("a family of distributions is Continuous or Discrete.")


_SENTENCES: Final = {
    "logpdf": "The logarithm of the density", "pdf": "The density",
    "logpmf": "The logarithm of the probability of k", "pmf": "The probability of k",
    "cdf": "The probability of values up to the given one",
    "logcdf": "The logarithm of cdf", "sf": "The probability of values above the given one",
    "logsf": "The logarithm of sf", "ppf": "The quantile, the inverse of cdf,",
    "isf": "The inverse of sf", "mean": "The mean", "var": "The variance",
    "std": "The standard deviation", "median": "The median", "entropy": "The entropy",
}


def _log_of(small: Array, other: Array) -> Array:
    """log(small), by its complement where that has more digits."""
    near_one = small > 0.5
    return jnp.where(near_one, lax.log1p(-jnp.where(near_one, other, 0.5)),
                     lax.log(jnp.where(near_one, 0.5, small)))


_TAILS: Final = {
    "cdf": ("below", 0.0, 1.0, 1.0), "sf": ("above", 1.0, 0.0, -1.0),
    "logcdf": ("log_below", -_INF, 0.0, 1.0), "logsf": ("log_above", 0.0, -_INF, -1.0)}
"""The part of a family, its values at both ends, and the sign of its slope."""


class Continuous(Distribution):
    """A family of densities; `low` and `high` are the ends of the support of z."""

    functions: ClassVar[dict[str, str]] = {
        "logpdf": "x", "pdf": "x", "cdf": "x", "logcdf": "x", "sf": "x", "logsf": "x",
        "ppf": "q", "isf": "q"}
    has_scale = True
    logpdf: Callable[..., Array]
    pdf: Callable[..., Array]
    low: ClassVar[float] = -_INF
    high: ClassVar[float] = _INF

    def __init__(self, name: str) -> None:
        for method, (part, first, last, sign) in _TAILS.items():
            fun = getattr(self, part)
            value = functools.partial(self._placed, fun, first, last)
            rate = getattr(self, f"log_rate_{part.split('_')[-1]}", None)
            setattr(self, f"_{method}", by_density(self, fun, value, sign, "log" in method, rate))
        super().__init__(name)

    # of a family ---------------------------------------------------------------------------

    def ends(self, *shapes: Any, **none: Any) -> tuple[Any, Any]:
        return self.low, self.high

    def log_density(self, z: Array, *shapes: Any, **none: Any) -> Array:
        raise TypeError(f"{self.name} has no density.")

    def below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return 1.0 - self.above(z, *shapes)

    def above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return 1.0 - self.below(z, *shapes)

    def log_below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return _log_of(self.below(z, *shapes), self.above(z, *shapes))

    def log_above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return _log_of(self.above(z, *shapes), self.below(z, *shapes))

    def log_tail(self, z: Array, lower: Any, *shapes: Any, **none: Any) -> Array:
        # log_below where `lower` holds, log_above elsewhere: at one place, for searches
        return jnp.where(lower, self.log_below(z, *shapes), self.log_above(z, *shapes))

    def quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        return numeric_quantile(self, q, shapes, upper=False)

    def upper_quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        if type(self).quantile is Continuous.quantile:
            return numeric_quantile(self, q, shapes, upper=True)
        return self.quantile(1.0 - q, *shapes)  # a formula on a bounded support

    def draw(self, key: Array, like: Array, *shapes: Any, **none: Any) -> Array:
        """Standard random numbers of the shape and dtype of `like`."""
        tiny = float(dtypes.finfo(like.dtype).tiny)
        u = random.uniform(key, like.shape, like.dtype, minval=tiny)
        return self.quantile(u, *shapes)

    # what users call -----------------------------------------------------------------------

    def _at(self, x: Array, rest: Sequence[Array]) -> tuple[Any, ...]:
        """z, the shapes, the scale, whether all is possible, and the ends of the support."""
        *shapes, loc, scale = rest
        known = (scale > 0) & self.possible(*shapes)
        z = (x - loc) / jnp.where(scale > 0, scale, _NAN)
        low, high = self.ends(*shapes)
        return z, shapes, scale, known & (z == z), low, high

    def _logpdf(self, x: Array, *rest: Array) -> Array:
        z, shapes, scale, known, low, high = self._at(x, rest)
        inside = (z >= low) & (z <= high) & (jnp.abs(z) < _INF)
        safe = jnp.where(inside, z, _between(low, high, z))
        value = self.log_density(safe, *shapes) - lax.log(scale)
        return jnp.where(known, jnp.where(inside, value, -_INF), _NAN)

    def _pdf(self, x: Array, *rest: Array) -> Array:
        return lax.exp(self._logpdf(x, *rest))

    def standard(self, x: Array, rest: Sequence[Array]
                 ) -> tuple[Array, Sequence[Array], Array, Any, Any]:
        """z or a point of the support, the shapes, the scale, and what of both is."""
        z, shapes, scale, known, low, high = self._at(x, rest)
        inside = (z > low) & (z < high)
        return jnp.where(inside, z, _between(low, high, z)), shapes, scale, known, inside

    def _placed(self, fun: Callable[..., Array], first: float, last: float, x: Array,
                *rest: Array) -> Array:
        z, shapes, _, known, _, high = self._at(x, rest)
        safe, _, _, _, inside = self.standard(x, rest)
        value = jnp.where(inside, fun(safe, *shapes), jnp.where(z >= high, last, first))
        return jnp.where(known, value, _NAN)

    def _inverse(self, fun: Callable[..., Array], q: Array, rest: Sequence[Array],
                 upper: bool) -> Array:
        *shapes, loc, scale = rest
        known = (scale > 0) & self.possible(*shapes) & (q >= 0) & (q <= 1)
        low, high = self.ends(*shapes)
        inside = (q > 0) & (q < 1)
        z = fun(jnp.where(inside, q, 0.5), *shapes)
        first, last = (high, low) if upper else (low, high)
        z = jnp.where(inside, z, last)  # beside z, so that a number at an end has its dtype
        z = jnp.where(q <= 0, first, z)
        return jnp.where(known, loc + scale * z, _NAN)

    def _ppf(self, q: Array, *rest: Array) -> Array:
        return self._inverse(self.quantile, q, rest, False)

    def _isf(self, q: Array, *rest: Array) -> Array:
        return self._inverse(self.upper_quantile, q, rest, True)

    def _moment(self, value: Any, rest: Sequence[Array]) -> Array:
        *shapes, _, scale = rest
        known = (scale > 0) & self.possible(*shapes)
        return jnp.where(known, value, _NAN)

    def _mean(self, *rest: Array) -> Array:
        *shapes, loc, scale = rest
        return self._moment(loc + scale * self._filled("expected", shapes, loc), rest)

    def _var(self, *rest: Array) -> Array:
        *shapes, loc, scale = rest
        return self._moment(scale * scale * self._filled("variance", shapes, loc), rest)

    def _std(self, *rest: Array) -> Array:
        return lax.sqrt(self._var(*rest))

    def _entropy(self, *rest: Array) -> Array:
        *shapes, loc, scale = rest
        return self._moment(lax.log(scale) + self._filled("information", shapes, loc), rest)

    def _median(self, *rest: Array) -> Array:
        return self._ppf(jnp.full_like(rest[0], 0.5), *rest)

    def division(self, *shapes: Any, **none: Any) -> Any:
        """A place in the bulk, the median, or all between which the density is smooth."""
        like = self._like(shapes)
        return self.quantile(jnp.full_like(like, 0.5), *shapes)

    def of_means(self) -> Continuous:
        """The family over whose density means are integrals."""
        return self

    def _mean_of(self, fun: Callable[..., Any], xs: Sequence[Array], low: Any = None,
                 high: Any = None) -> Array:
        shapes, loc, scale = self._parted(xs)
        if low is not None:
            low, high = (low - loc) / scale, (high - loc) / scale
        place, unit = loc[..., None], scale[..., None]
        value = continuous_mean(self.of_means(), lambda z: fun(place + unit * z), shapes, loc, low,
                                high).astype(loc.dtype)
        return self._moment(value, xs)

    def expected(self, *shapes: Any, **none: Any) -> Any:
        like = self._like(shapes)
        return continuous_mean(self.of_means(), lambda z: z, shapes, like).astype(like.dtype)

    def variance(self, *shapes: Any, **none: Any) -> Any:
        mean = jnp.asarray(self.expected(*shapes))
        like = self._like(shapes)
        fine = jnp.abs(mean) < _INF
        centre = jnp.where(fine, mean, 0.0)[..., None]
        value = continuous_mean(self.of_means(), lambda z: (z - centre) ** 2, shapes, like)
        return jnp.where(mean == mean, value.astype(like.dtype), _NAN)

    def information(self, *shapes: Any, **none: Any) -> Any:
        like = self._like(shapes)
        spread = [s[..., None].astype(np.float64) for s in shapes]
        family = self.of_means()
        return continuous_mean(family, lambda z: -family.log_density(
            z, *(jnp.broadcast_to(s, z.shape) for s in spread)), shapes,
                               like).astype(like.dtype)

    @staticmethod
    def _like(shapes: Sequence[Any]) -> Array:
        return shapes[0] if shapes else jnp.zeros((), np.float64)

    def _filled(self, name: str, shapes: Sequence[Array], like: Array) -> Array:
        if not shapes and getattr(type(self), name) is getattr(Continuous, name):
            return jnp.full_like(like, getattr(self, name)())
        value = getattr(self, name)(*shapes)
        return value if isinstance(value, type(like)) else jnp.full_like(like, value)

    def _draw_placed(self, key: Array, *xs: Array) -> Array:
        *shapes, loc, scale = xs
        z = self.draw(key, loc, *shapes)
        return self._moment(loc + scale * z, xs)


class Discrete(Distribution):
    """A family of probabilities of whole numbers."""

    functions: ClassVar[dict[str, str]] = {
        "logpmf": "k", "pmf": "k", "cdf": "k", "logcdf": "k", "sf": "k", "logsf": "k",
        "ppf": "q", "isf": "q"}
    has_scale = False
    logpmf: Callable[..., Array]
    pmf: Callable[..., Array]

    # of a family ---------------------------------------------------------------------------

    def ends(self, *shapes: Any, **none: Any) -> tuple[Any, Any]:
        return 0.0, _INF

    def log_probability(self, k: Array, *shapes: Any, **none: Any) -> Array:
        raise TypeError(f"{self.name} has no probabilities.")

    def below(self, k: Array, *shapes: Any, **none: Any) -> Array:
        """The probability of values up to a whole k in the support."""
        return 1.0 - self.above(k, *shapes)

    def above(self, k: Array, *shapes: Any, **none: Any) -> Array:
        return 1.0 - self.below(k, *shapes)

    def draw(self, key: Array, like: Array, *shapes: Any, **none: Any) -> Array:
        u = random.uniform(key, like.shape, like.dtype)
        return self._ppf(u, *shapes, jnp.zeros_like(like))

    # what users call -----------------------------------------------------------------------

    def _at(self, k: Array, rest: Sequence[Array]) -> tuple[Any, ...]:
        *shapes, loc = rest
        n = k - loc
        low, high = self.ends(*shapes)
        return n, shapes, self.possible(*shapes) & (n == n), low, high

    def _logpmf(self, k: Array, *rest: Array) -> Array:
        n, shapes, known, low, high = self._at(k, rest)
        inside = (n >= low) & (n <= high) & (n == lax.floor(n)) & (jnp.abs(n) < _INF)
        value = self.log_probability(jnp.where(inside, n, self._first(low, high, n)), *shapes)
        return jnp.where(known, jnp.where(inside, value, -_INF), _NAN)

    @staticmethod
    def _first(low: Any, high: Any, like: Array) -> Array:
        """A whole number of the support, which has an end."""
        start = jnp.full_like(like, low) if isinstance(low, float) else low
        return jnp.where(start > -_INF, start, 0.0)

    def _pmf(self, k: Array, *rest: Array) -> Array:
        return lax.exp(self._logpmf(k, *rest))

    def _summed(self, fun: Callable[..., Array], first: float, last: float, k: Array,
                rest: Sequence[Array]) -> Array:
        n, shapes, known, low, high = self._at(k, rest)
        n = lax.floor(n)
        inside = (n >= low) & (n < high)
        value = fun(jnp.where(inside, n, self._first(low, high, n)), *shapes)
        value = jnp.where(inside, value, jnp.where(n >= high, last, first))
        return jnp.where(known, value, _NAN)

    def _cdf(self, k: Array, *rest: Array) -> Array:
        return self._summed(self.below, 0.0, 1.0, k, rest)

    def _sf(self, k: Array, *rest: Array) -> Array:
        return self._summed(self.above, 1.0, 0.0, k, rest)

    def _logcdf(self, k: Array, *rest: Array) -> Array:
        return _log_of(self._cdf(k, *rest), self._sf(k, *rest))

    def _logsf(self, k: Array, *rest: Array) -> Array:
        return _log_of(self._sf(k, *rest), self._cdf(k, *rest))

    def _ppf(self, q: Array, *rest: Array) -> Array:
        return self._search(q, rest, upper=False)

    def _isf(self, q: Array, *rest: Array) -> Array:
        return self._search(q, rest, upper=True)

    def _search(self, q: Array, rest: Sequence[Array], upper: bool) -> Array:
        """The least k with cdf(k) >= q (or sf(k) <= q); one less than the support for the end."""
        *shapes, loc = (lax.stop_gradient(x) for x in rest)
        known = self.possible(*shapes) & (q >= 0) & (q <= 1)
        low, high = self.ends(*shapes)
        end, far = (q == 1, q == 0) if upper else (q == 0, q == 1)
        inside = known & ~end & ~far
        zero = jnp.zeros_like(loc)
        slack = 8.0 * float(dtypes.finfo(q.dtype).eps)

        def reached(k: Array) -> Array:
            value = self._sf(k, *shapes, zero) if upper else self._cdf(k, *shapes, zero)
            return value <= q * (1.0 + slack) if upper else value >= q * (1.0 - slack)

        low, high = jnp.full_like(q, 0.0) + low, jnp.full_like(q, 0.0) + high
        k = whole_quantile(reached, low, high, inside)
        k = jnp.where(inside, k, jnp.where(end, low - 1.0, high))
        return jnp.where(known, k + rest[-1], _NAN)

    def _mean(self, *rest: Array) -> Array:
        *shapes, loc = rest
        return jnp.where(self.possible(*shapes), loc + self.expected(*shapes), _NAN)

    def _var(self, *rest: Array) -> Array:
        *shapes, loc = rest
        return jnp.where(self.possible(*shapes), 0.0 * loc + self.variance(*shapes), _NAN)

    def _std(self, *rest: Array) -> Array:
        return lax.sqrt(self._var(*rest))

    def _median(self, *rest: Array) -> Array:
        return self._ppf(jnp.full_like(rest[0], 0.5), *rest)

    def _entropy(self, *rest: Array) -> Array:
        *shapes, loc = rest
        return jnp.where(self.possible(*shapes), 0.0 * loc + self.information(*shapes), _NAN)

    def _mean_of(self, fun: Callable[..., Any], xs: Sequence[Array], low: Any = None,
                 high: Any = None) -> Array:
        *shapes, loc = xs
        place = loc[..., None]

        def value(k: Array) -> Array:
            x = place + k
            out = fun(x)
            return out if low is None else jnp.where((x >= low) & (x <= high), out, 0.0)

        return self._whole_mean(value, shapes, loc).astype(loc.dtype)

    def _whole_mean(self, fun: Callable[..., Any], shapes: Sequence[Array], like: Array) -> Array:
        median = self._ppf(jnp.full_like(like, 0.5), *shapes, jnp.zeros_like(like))
        return whole_mean(self, fun, shapes, median)

    def expected(self, *shapes: Any, **none: Any) -> Any:
        return self._whole_mean(lambda k: k, shapes, shapes[0]).astype(shapes[0].dtype)

    def variance(self, *shapes: Any, **none: Any) -> Any:
        mean = self.expected(*shapes)
        fine = jnp.abs(mean) < _INF
        centre = jnp.where(fine, mean, 0.0)[..., None]
        value = self._whole_mean(lambda k: (k - centre) ** 2, shapes, shapes[0])
        return jnp.where(mean == mean, value.astype(mean.dtype), _NAN)

    def information(self, *shapes: Any, **none: Any) -> Any:
        spread = [s[..., None].astype(np.float64) for s in shapes]
        return self._whole_mean(lambda k: -self.log_probability(
            k, *(jnp.broadcast_to(s, k.shape) for s in spread)), shapes,
                                shapes[0]).astype(shapes[0].dtype)

    def _draw_placed(self, key: Array, *xs: Array) -> Array:
        *shapes, loc = xs
        whole = self.draw(key, loc, *shapes) + loc
        return lax.stop_gradient(whole).astype(dtypes.default_int())


