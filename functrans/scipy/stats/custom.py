"""Families of distributions that users state: by a density, a distribution function or a table."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact
from functrans.scipy.stats.base import Continuous, Discrete, Distribution
from functrans.scipy.stats.discrete import Summed
from functrans.scipy.stats.frozen import Frozen
from functrans.scipy.stats.integrated import Integrated
from functrans.transforms import forward
from functrans.typing import Array, ArrayLike

__all__ = ["rv_continuous", "rv_discrete", "rv_histogram"]

_STATED = ("_pdf", "_logpdf", "_pmf", "_logpmf", "_cdf", "_logcdf", "_sf", "_logsf", "_ppf",
           "_isf")
_GRID = np.linspace(-1.0, 1.0, 193)
_SINH = np.sinh(16.0 * _GRID) / 100.0  # places from 1e-3 to 4e4 of both signs
_POWERS = 10.0 ** (7.0 * _GRID)


class _Stated:
    """What adapters of both kinds take from the methods of the user's class."""

    user: Any
    shapes: tuple[str, ...]

    def stated(self, *names: str) -> Callable[..., Any] | None:
        """The first of these methods that the user's class has."""
        for name in names:
            if hasattr(self.user, name):
                found: Callable[..., Any] = getattr(self.user, name)
                return found
        return None

    def possible(self, *shapes: Any, **none: Any) -> Any:
        check = self.stated("_argcheck")
        if check:
            return jnp.asarray(check(*shapes))
        known = jnp.asarray(True)
        for s in shapes:
            known = known & (s > 0)
        return known

    def ends(self, *shapes: Any, **none: Any) -> tuple[Any, Any]:
        support = self.stated("_get_support")
        if support:
            low, high = support(*shapes)
            return low, high
        return self.user.a, self.user.b

    def _given(self, index: int, shapes: Sequence[Any]) -> Any:
        found = self.stated("_stats")
        value = None if found is None else found(*shapes)[index]
        return None if value is None else jnp.asarray(value)

    def expected(self, *shapes: Any, **none: Any) -> Any:
        value = self._given(0, shapes)
        return super().expected(*shapes) if value is None else value  # type: ignore[misc]

    def variance(self, *shapes: Any, **none: Any) -> Any:
        value = self._given(1, shapes)
        return super().variance(*shapes) if value is None else value  # type: ignore[misc]

    def information(self, *shapes: Any, **none: Any) -> Any:
        found = self.stated("_entropy")
        return found(*shapes) if found else super().information(*shapes)  # type: ignore[misc]

    def draw(self, key: Array, like: Array, *shapes: Any, **none: Any) -> Array:
        found = self.stated("_rvs")
        if found:
            out: Array = jnp.asarray(found(*shapes, size=like.shape, random_state=key))
            return out.astype(like.dtype)
        drawn: Array = super().draw(key, like, *shapes)  # type: ignore[misc]
        return drawn


class _UsersDensity(_Stated, Integrated):
    def __init__(self, user: Any, shapes: tuple[str, ...]) -> None:
        self.user, self.shapes = user, shapes
        super().__init__(user.name)

    def log_density(self, z: Array, *shapes: Any, **none: Any) -> Array:
        if found := self.stated("_logpdf"):
            result: Array = found(z, *shapes)
            return result
        if found := self.stated("_pdf"):
            height = jnp.asarray(found(z, *shapes))
            some = height > 0
            return jnp.where(some, lax.log(jnp.where(some, height, 1.0)), -math.inf)
        slope = forward.jvp(lambda z: self.below(z, *shapes), (z,), (jnp.ones_like(z),))[1]
        some = slope > 0
        return jnp.where(some, lax.log(jnp.where(some, slope, 1.0)), -math.inf)

    def middle(self, *shapes: Any, **none: Any) -> Any:
        """The highest of many places."""
        low, high = (jnp.asarray(e, np.float64) for e in self.ends(*shapes))
        low, high = jnp.broadcast_arrays(low, high, *shapes)[:2]
        low, high = low[..., None], high[..., None]
        from_low, to_high = jnp.abs(low) < math.inf, jnp.abs(high) < math.inf
        first, last = jnp.where(from_low, low, 0.0), jnp.where(to_high, high, 0.0)
        inner = first + (last - first) * (0.5 + 0.4995 * _GRID)
        grid = jnp.where(from_low & to_high, inner, jnp.where(
            from_low, first + _POWERS, jnp.where(to_high, last - _POWERS, _SINH)))
        spread = [jnp.broadcast_to(s[..., None], grid.shape) for s in shapes]
        # by the mass between places, which is what the bulk has much of
        heights = self.log_density(grid, *spread) + jnp.where(
            from_low & to_high, 0.0, lax.log(jnp.where(from_low, grid - first, jnp.where(
                to_high, last - grid, jnp.abs(grid) + 0.01))))
        heights = jnp.where(heights < math.inf, heights, -math.inf)
        best = jnp.argmax(heights, -1, keepdims=True)
        return lax.stop_gradient(jnp.take_along_axis(grid, best, -1)[..., 0])

    def below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        if found := self.stated("_cdf"):
            return jnp.asarray(found(z, *shapes))
        if found := self.stated("_logcdf"):
            return lax.exp(found(z, *shapes))
        if found := self.stated("_sf"):
            result: Array = 1.0 - found(z, *shapes)
            return result
        return super().below(z, *shapes)

    def above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        if found := self.stated("_sf"):
            return jnp.asarray(found(z, *shapes))
        if found := self.stated("_logsf"):
            return lax.exp(found(z, *shapes))
        if self.stated("_cdf", "_logcdf"):
            return 1.0 - self.below(z, *shapes)
        return super().above(z, *shapes)

    def log_below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        if found := self.stated("_logcdf"):
            result: Array = found(z, *shapes)
            return result
        if self.stated("_cdf", "_sf"):
            return Continuous.log_below(self, z, *shapes)
        return super().log_below(z, *shapes)

    def log_above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        if found := self.stated("_logsf"):
            result: Array = found(z, *shapes)
            return result
        if self.stated("_cdf", "_sf", "_logcdf"):
            return Continuous.log_above(self, z, *shapes)
        return super().log_above(z, *shapes)

    def quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        found = self.stated("_ppf")
        return jnp.asarray(found(q, *shapes)) if found else super().quantile(q, *shapes)

    def upper_quantile(self, q: Array, *shapes: Any, **none: Any) -> Array:
        if found := self.stated("_isf"):
            return jnp.asarray(found(q, *shapes))
        if self.stated("_ppf"):
            return self.quantile(1.0 - q, *shapes)
        return Continuous.upper_quantile(self, q, *shapes)


class _UsersCounts(_Stated, Summed):
    def __init__(self, user: Any, shapes: tuple[str, ...]) -> None:
        self.user, self.shapes = user, shapes
        super().__init__(user.name)

    def log_probability(self, k: Array, *shapes: Any, **none: Any) -> Array:
        if found := self.stated("_logpmf"):
            result: Array = found(k, *shapes)
            return result
        if found := self.stated("_pmf"):
            mass = jnp.asarray(found(k, *shapes))
        else:
            low = self.ends(*shapes)[0]
            before = jnp.where(k > low, self.below(jnp.maximum(k - 1.0, low), *shapes), 0.0)
            mass = self.below(k, *shapes) - before
        some = mass > 0
        return jnp.where(some, lax.log(jnp.where(some, mass, 1.0)), -math.inf)

    def below(self, k: Array, *shapes: Any, **none: Any) -> Array:
        found = self.stated("_cdf")
        return jnp.asarray(found(k, *shapes)) if found else super().below(k, *shapes)

    def above(self, k: Array, *shapes: Any, **none: Any) -> Array:
        if found := self.stated("_sf"):
            return jnp.asarray(found(k, *shapes))
        return 1.0 - self.below(k, *shapes)

    def draw(self, key: Array, like: Array, *shapes: Any, **none: Any) -> Array:
        if self.stated("_rvs"):
            return super().draw(key, like, *shapes)
        if self.stated("_ppf", "_cdf"):
            return Discrete.draw(self, key, like, *shapes)
        return Summed.draw(self, key, like, *shapes)

    def _ppf(self, q: Array, *rest: Array) -> Array:
        found = self.stated("_ppf")
        return found(q, *rest[:-1]) + rest[-1] if found else super()._ppf(q, *rest)


class _Custom:
    """What `rv_continuous` and `rv_discrete` share: shapes by name, and an adapter's methods."""

    _adapter: Callable[..., Distribution]
    _needed: tuple[str, ...]
    a: Any
    b: Any

    def __init__(self, a: Any, b: Any, name: str | None, badvalue: Any, shapes: str | None) -> None:
        if badvalue is not None and not np.isnan(badvalue):
            raise ArgumentError(f"scipy.stats.{type(self).__name__}: badvalue is {badvalue}.",
                                where=user_source(), why="impossible arguments give NaN.")
        self.a, self.b, self.name = a, b, name or type(self).__name__
        if not any(hasattr(self, n) for n in self._needed):
            raise ArgumentError(f"scipy.stats: the class {type(self).__name__} states no "
                                "distribution.", where=user_source(),
                                why=f"a subclass has one of {', '.join(self._needed)}.",
                                fix=f"def {self._needed[0]}(self, x): ...")
        self._shapes = tuple(shapes.replace(",", " ").split()) if shapes else self._named()
        self._made: Distribution | None = None

    def _named(self) -> tuple[str, ...]:
        for method in _STATED:
            if found := getattr(self, method, None):
                return tuple(inspect.signature(found).parameters)[1:]
        return ()

    @property
    def numargs(self) -> int:
        """How many shapes it has."""
        return len(self._shapes)

    @property
    def shapes(self) -> str | None:
        """The names of the shapes."""
        return ", ".join(self._shapes) or None

    def _family(self) -> Distribution:
        if self._made is None:
            self._made = self._adapter(self, self._shapes)
        return self._made

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        return self._family().freeze(*args, **kwds)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in _METHODS:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
        return getattr(self._family(), name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_METHODS})


_METHODS = frozenset((
    "logpdf", "pdf", "logpmf", "pmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf", "mean", "var",
    "std", "median", "entropy", "support", "interval", "moment", "stats", "expect", "rvs", "freeze",
    "fit", "fit_loc_scale", "nnlf"))


class rv_continuous(_Custom):
    """The class of densities that a subclass states by `_pdf`, `_logpdf`, `_cdf` or others.

    The methods take arrays, of the standard variable and of shapes, and return arrays: functions
    of this package or of NumPy. `a` and `b` are the ends of the support, or `_get_support(*shapes)`
    returns them; shapes are above 0 where `_argcheck(*shapes)` does not say otherwise. `_ppf`,
    `_sf`, `_stats`, `_entropy` and `_rvs(*shapes, size, random_state)`, of which the last is a key,
    are used where there are some. All of SciPy's methods follow, with `rvs(key, ...)`, under
    transforms. `momtype`, `xtol`, `longname` and `seed` are accepted.

    >>> import functrans as ft
    >>> class Ramp(ft.scipy.stats.rv_continuous):
    ...     def _pdf(self, x):
    ...         return 2.0 * x
    >>> ramp = Ramp(a=0.0, b=1.0, name="ramp")
    >>> round(float(ramp.cdf(0.5)), 4), round(float(ft.grad(ramp.ppf)(0.25)), 4)
    (0.25, 1.0)
    """

    _adapter = _UsersDensity
    _needed = ("_pdf", "_logpdf", "_cdf", "_logcdf", "_sf")

    def __init__(self, momtype: int = 1, a: Any = None, b: Any = None, xtol: float = 1e-14,
                 badvalue: Any = None, name: str | None = None, longname: str | None = None,
                 shapes: str | None = None, seed: Any = None) -> None:
        super().__init__(-math.inf if a is None else a, math.inf if b is None else b, name,
                         badvalue, shapes)


class rv_discrete(_Custom):
    """The class of whole numbers whose subclass states `_pmf`, `_logpmf` or `_cdf`.

    `values=(xk, pk)` makes one of these numbers xk, which need not be whole, and probabilities pk.
    Otherwise as `rv_continuous`; `a`, from where on numbers are, is finite unless there is a
    `_cdf`. `moment_tol` and `inc` are accepted.

    >>> import functrans as ft
    >>> die = ft.scipy.stats.rv_discrete(values=([1, 2, 3], [0.2, 0.3, 0.5]))
    >>> round(float(die.cdf(2)), 4), round(float(die.mean()), 4)
    (0.5, 2.3)
    """

    _adapter = _UsersCounts
    _needed = ("_pmf", "_logpmf", "_cdf")

    def __new__(cls, *args: Any, values: Any = None, **kwds: Any) -> Any:
        if values is not None:
            return _Table(kwds.get("name") or "rv_sample", *values)
        return super().__new__(cls)

    def __init__(self, a: Any = 0, b: Any = math.inf, name: str | None = None, badvalue: Any = None,
                 moment_tol: float = 1e-8, values: Any = None, inc: int = 1,
                 longname: str | None = None, shapes: str | None = None, seed: Any = None) -> None:
        super().__init__(float(a), float(b), name, badvalue, shapes)


class _Table(Discrete):
    """Numbers xk, in order, and their probabilities pk."""

    def __init__(self, name: str, xk: ArrayLike, pk: ArrayLike) -> None:
        places, shares = (jnp.ravel(v) for v in inexact(xk, pk))
        if places.shape != shares.shape or not places.size:
            raise ArgumentError(f"scipy.stats.rv_discrete: values of shapes {places.shape} and "
                                f"{shares.shape}.", where=user_source(),
                                why="each number has a probability.")
        order = jnp.argsort(places)
        self.xk, self.pk = places[order], shares[order]
        super().__init__(name)

    def ends(self, *shapes: Any, **none: Any) -> tuple[Any, Any]:
        return self.xk[0], self.xk[-1]

    def _picked(self, x: Array, rest: Sequence[Array], pick: Callable[..., Any]) -> Array:
        off = (x - rest[-1])[..., None]
        total = jnp.sum(jnp.where(pick(self.xk.astype(x.dtype), off), self.pk.astype(x.dtype),
                                  0.0), -1)
        return jnp.where(x == x, total, math.nan)

    def _logpmf(self, k: Array, *rest: Array) -> Array:
        return lax.log(self._pmf(k, *rest))

    def _pmf(self, k: Array, *rest: Array) -> Array:
        return self._picked(k, rest, lambda a, b: a == b)

    def _cdf(self, k: Array, *rest: Array) -> Array:
        return self._picked(k, rest, lambda a, b: a <= b)

    def _sf(self, k: Array, *rest: Array) -> Array:
        return self._picked(k, rest, lambda a, b: a > b)

    def _ppf(self, q: Array, *rest: Array) -> Array:
        sums = jnp.cumsum(self.pk)
        index = jnp.sum((sums * (1.0 + 1e-15) < q[..., None]).astype(int), -1)
        value = self.xk[jnp.minimum(index, self.xk.size - 1)].astype(q.dtype)
        value = jnp.where(q == 0, self.xk[0] - 1.0, value).astype(q.dtype)
        return jnp.where((q >= 0) & (q <= 1), value + rest[-1], math.nan)

    def _isf(self, q: Array, *rest: Array) -> Array:
        return self._ppf(1.0 - q, *rest)

    def _mean_of(self, fun: Callable[..., Any], xs: Sequence[Array], low: Any = None,
                 high: Any = None) -> Array:
        x = xs[-1][..., None] + self.xk
        values = fun(x)
        if low is not None:
            values = jnp.where((x >= low) & (x <= high), values, 0.0)
        return jnp.sum(values * self.pk, -1)

    def _mean(self, *rest: Array) -> Array:
        return self._mean_of(lambda x: x, rest)

    def _var(self, *rest: Array) -> Array:
        return self._central(2, rest)

    def _entropy(self, *rest: Array) -> Array:
        some = self.pk > 0
        logs = lax.log(jnp.where(some, self.pk, 1.0))
        return jnp.zeros_like(rest[-1]) - jnp.sum(self.pk * logs)

    def _draw_placed(self, key: Array, *xs: Array) -> Array:
        index = random.choice(key, self.xk.size, xs[-1].shape, p=self.pk)
        return self.xk[index].astype(xs[-1].dtype) + xs[-1]


class rv_histogram(Continuous):
    """The distribution of a histogram (counts, edges): a constant density between two edges.

    `density` says whether the counts are densities; without it they are where widths are alike,
    which is the same. Differentiable in both where these are arrays under a transform.

    >>> import functrans as ft
    >>> counts, edges = ft.numpy.array([1.0, 3.0]), ft.numpy.array([0.0, 1.0, 2.0])
    >>> h = ft.scipy.stats.rv_histogram((counts, edges))
    >>> float(h.cdf(1.0)), float(h.mean())
    (0.25, 1.25)
    """

    def __init__(self, histogram: Any, *args: Any, density: bool | None = None, **kwargs: Any
                 ) -> None:
        counts, edges = inexact(*histogram)
        if counts.ndim != 1 or edges.shape != (counts.shape[0] + 1,):
            raise ArgumentError(f"scipy.stats.rv_histogram: counts of shape {counts.shape} and "
                                f"edges of shape {edges.shape}.", where=user_source(),
                                why="there is one edge more than counts.",
                                fix="np.histogram(data)")
        widths = jnp.diff(edges)
        mass = counts * widths if density else counts
        self._mass, self._edges = mass / jnp.sum(mass), edges
        self._sums = jnp.concatenate([jnp.zeros_like(mass[:1]), jnp.cumsum(self._mass)])
        super().__init__(kwargs.get("name") or "histogram")

    def ends(self, *shapes: Any, **none: Any) -> tuple[Array, Array]:
        return self._edges[0], self._edges[-1]

    def log_density(self, z: Array) -> Array:
        index = jnp.searchsorted(self._edges, lax.stop_gradient(z), side="right") - 1
        heights = self._mass / jnp.diff(self._edges)
        height = heights[jnp.clip(index, 0, heights.size - 1)].astype(z.dtype)
        return lax.log(height)

    def below(self, z: Array) -> Array:
        return jnp.interp(z, self._edges.astype(z.dtype), self._sums.astype(z.dtype))

    def above(self, z: Array) -> Array:
        rest = jnp.concatenate([jnp.cumsum(self._mass[::-1])[::-1], jnp.zeros_like(self._mass[:1])])
        return jnp.interp(z, self._edges.astype(z.dtype), rest.astype(z.dtype))

    def quantile(self, q: Array) -> Array:
        return jnp.interp(q, self._sums.astype(q.dtype), self._edges.astype(q.dtype))

    def _raw(self, order: int) -> Array:
        powers = self._edges ** (order + 1)
        return jnp.sum(self._mass / jnp.diff(self._edges) * jnp.diff(powers)) / (order + 1)

    def expected(self) -> Array:
        return self._raw(1)

    def variance(self) -> Array:
        return self._raw(2) - self._raw(1) ** 2

    def information(self) -> Array:
        some = self._mass > 0
        heights = jnp.where(some, self._mass / jnp.diff(self._edges), 1.0)
        return -jnp.sum(self._mass * lax.log(heights))
