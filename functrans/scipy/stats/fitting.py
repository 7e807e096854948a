"""Estimates of the parameters of families from samples, some of which may be censored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_node_class
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.optimize.simplex import nelder_mead
from functrans.scipy.stats.families import DistributionLike
from functrans.typing import Array, ArrayLike

__all__ = ["CensoredData", "FitError", "fitted", "fitted_place", "negative_likelihood"]

_BAD: Final = 100.0 * math.log(np.finfo(np.float64).max)  # of a value that cannot be


class FitError(RuntimeError):
    """A fit was asked for that cannot be: all parameters are fixed, or data cannot have them.

    >>> import functrans as ft
    >>> try:
    ...     ft.scipy.stats.norm.fit(ft.numpy.arange(3.0), floc=0.0, fscale=1.0)
    ... except ft.scipy.stats.FitError as error:
    ...     print(error)
    scipy.stats.norm.fit: all parameters are fixed.
    """


@register_pytree_node_class
class CensoredData:
    """A sample of which some values are known to be in an interval only.

    `uncensored` are values, `left` upper bounds of values and `right` lower bounds, and rows of
    `interval` (m, 2) are both bounds. Raises ArgumentError for other shapes.

    >>> import functrans as ft
    >>> data = ft.scipy.stats.CensoredData([1.0, 2.0], right=[3.0, 3.0])
    >>> len(data), data.num_censored()
    (4, 2)
    >>> late = data.right_censored([1.0, 2.0], [False, True])
    >>> early = data.left_censored([1.0, 2.0], [False, True])
    >>> between = data.interval_censored([1.0, 2.0], [3.0, 2.0])
    >>> [float(v) for v in between.points()], len(late), len(early)
    ([2.0, 2.0], 2, 2)
    """

    def __init__(self, uncensored: ArrayLike | None = None, *, left: ArrayLike | None = None,
                 right: ArrayLike | None = None, interval: ArrayLike | None = None) -> None:
        given = {"uncensored": uncensored, "left": left, "right": right}
        for name, value in given.items():
            part = jnp.zeros(0) if value is None else jnp.asarray(inexact(value)[0])
            if part.ndim != 1:
                raise ArgumentError(f"scipy.stats.CensoredData: {name} has shape {part.shape}.",
                                    where=user_source(), why="samples have one dimension.")
            setattr(self, name, part)
        pairs = jnp.zeros((0, 2)) if interval is None else jnp.asarray(inexact(interval)[0])
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ArgumentError(f"scipy.stats.CensoredData: interval has shape {pairs.shape}.",
                                where=user_source(), why="its rows are pairs of bounds.")
        self.interval = pairs

    uncensored: Array
    left: Array
    right: Array

    def tree_flatten(self) -> tuple[Any, None]:
        return (self.uncensored, self.left, self.right, self.interval), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> CensoredData:
        new = object.__new__(cls)
        new.uncensored, new.left, new.right, new.interval = children
        return new

    @classmethod
    def left_censored(cls, x: ArrayLike, censored: ArrayLike) -> CensoredData:
        """The data x, of which those marked are upper bounds."""
        return cls._marked("left", x, censored)

    @classmethod
    def right_censored(cls, x: ArrayLike, censored: ArrayLike) -> CensoredData:
        """The data x, of which those marked are lower bounds."""
        return cls._marked("right", x, censored)

    @classmethod
    def interval_censored(cls, low: ArrayLike, high: ArrayLike) -> CensoredData:
        """Values between low and high; where these are equal it is known."""
        low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
        known, under = low == high, np.isneginf(low)
        over = np.isposinf(high)
        rest = ~(known | under | over)
        return cls(low[known], left=high[under], right=low[over],
                   interval=np.stack([low[rest], high[rest]], 1))

    @classmethod
    def _marked(cls, side: str, x: ArrayLike, censored: ArrayLike) -> CensoredData:
        values, mask = np.asarray(x), np.asarray(censored, bool)
        return cls(values[~mask], **{side: values[mask]})

    def num_censored(self) -> int:
        """How many values are not known."""
        return int(self.left.size + self.right.size + self.interval.shape[0])

    def __len__(self) -> int:
        return int(self.uncensored.size) + self.num_censored()

    def points(self) -> Array:
        """A value for each element: bounds, and the middles of intervals."""
        return jnp.concatenate([self.uncensored, self.left, self.right,
                                jnp.mean(self.interval, 1)])


def _log_terms(family: Any, data: Any, theta: Sequence[Any]) -> Array:
    density = family.logpdf if family.has_scale else family.logpmf
    if not isinstance(data, CensoredData):
        result: Array = density(data, *theta)
        return result
    low, high = data.interval[:, 0], data.interval[:, 1]
    mass = family.cdf(high, *theta) - family.cdf(low, *theta)
    return jnp.concatenate([
        density(data.uncensored, *theta), family.logcdf(data.left, *theta),
        family.logsf(data.right, *theta), lax.log(jnp.maximum(mass, 0.0))])


def negative_likelihood(family: DistributionLike, theta: Sequence[ArrayLike],
                        data: ArrayLike | CensoredData) -> Array:
    """Less the logarithm of the likelihood; infinite where an element is impossible."""
    return -jnp.sum(_log_terms(family, data, theta))


def penalized(family: Any, theta: Sequence[Any], data: Any) -> Array:
    """Less the logarithm of the likelihood, with a finite price of impossible elements."""
    logs = _log_terms(family, data, theta)
    fine = jnp.abs(logs) < math.inf
    return jnp.sum(jnp.where(fine, -jnp.where(fine, logs, 0.0), _BAD))


def names_of(family: Any) -> list[str]:
    """The names of all parameters of a family."""
    return [*family.shapes, "loc", *(["scale"] if family.has_scale else [])]


def _points(data: Any) -> Array:
    return data.points() if isinstance(data, CensoredData) else data


def fitted_place(family: DistributionLike, data: Array, shapes: Sequence[ArrayLike]
                 ) -> tuple[Array, Array]:
    """loc and scale by the mean and the variance of the data."""
    mean, variance = (jnp.asarray(v) for v in family.stats(*shapes))
    scale = jnp.sqrt(jnp.var(data) / variance)
    scale = jnp.where(jnp.isfinite(scale) & (scale > 0), scale, 1.0)
    loc = jnp.mean(data) - scale * mean
    return jnp.where(jnp.isfinite(loc), loc, 0.0), scale


def _place_within(family: Any, data: Array, shapes: Sequence[Any]) -> tuple[Array, Array]:
    """loc and scale near those of mean and variance, with all data inside of the support."""
    loc, scale = fitted_place(family, data, shapes)
    low, high = (jnp.zeros_like(loc) + end for end in family.ends(*map(jnp.asarray, shapes)))
    least, most = jnp.min(data), jnp.max(data)
    margin = 0.1 * (most - least)
    fits = (loc + scale * low < least) & (loc + scale * high > most)
    both, left = jnp.isfinite(low) & jnp.isfinite(high), jnp.isfinite(low)
    width = (most - least + 2 * margin) / jnp.where(both, high - low, 1.0)
    new_scale = jnp.where(both, width, jnp.std(data))
    new_loc = jnp.where(left, least - margin - new_scale * jnp.where(left, low, 0.0),
                        most + margin - new_scale * jnp.where(jnp.isfinite(high), high, 0.0))
    return jnp.where(fits, loc, new_loc), jnp.where(fits, scale, new_scale)


def _fixed_values(family: Any, kwds: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters that are fixed and the starts of others, by name."""
    names = names_of(family)
    meaning = {"floc": "loc", "fscale": "scale"}
    meaning |= {f"f{i}": name for i, name in enumerate(family.shapes)}
    meaning |= {f"{f}{name}": name for name in family.shapes for f in ("f", "fix_")}
    fixed = {meaning[k]: v for k, v in kwds.items() if k in meaning and v is not None}
    starts = {k: v for k, v in kwds.items() if k in names}
    unknown = [k for k in kwds if k not in meaning and k not in names]
    if unknown:
        raise ArgumentError(f"scipy.stats.{family.name}.fit has no argument {unknown[0]}.",
                            where=user_source(), why="parameters are " + ", ".join(names) + ".",
                            fix=f"f{names[0]}=..., or method=")
    return fixed, starts


def _formula(family: Any, data: Array, fixed: Mapping[str, Any]) -> tuple[Array, ...] | None:
    """The most likely loc and scale of families that have formulas for them."""
    loc, scale = fixed.get("loc"), fixed.get("scale")
    low, high = jnp.min(data), jnp.max(data)
    if family.name == "norm":
        place = jnp.mean(data) if loc is None else jnp.asarray(loc)
        width = jnp.sqrt(jnp.mean((data - place) ** 2))
    elif family.name == "expon":
        place = low if loc is None else jnp.asarray(loc)
        width = jnp.mean(data) - place
    elif family.name == "laplace":
        place = jnp.median(data) if loc is None else jnp.asarray(loc)
        width = jnp.mean(jnp.abs(data - place))
    elif family.name == "uniform" and loc is None and scale is None:
        place, width = low, high - low
    else:
        return None
    return place, width if scale is None else jnp.asarray(scale)


def fitted(family: DistributionLike, data: ArrayLike | CensoredData, args: Sequence[ArrayLike],
           kwds: Mapping[str, object]) -> tuple[Array, ...]:
    """Estimates of (*shapes, loc, scale); see `Continuous.fit`."""
    options = dict(kwds)
    method = str(options.pop("method", "MLE")).upper()
    one_of("stats.fit", "method", method, ("MLE", "MM"))
    fixed, starts = _fixed_values(family, options)
    names = names_of(family)
    free = [name for name in names if name not in fixed]
    if not free:
        raise FitError(f"scipy.stats.{family.name}.fit: all parameters are fixed.")
    if not isinstance(data, CensoredData):
        data = jnp.ravel(jnp.asarray(inexact(data)[0]))
    elif method == "MM":
        raise FitError("censored data have no moments: method is MLE.")
    if not isinstance(data, CensoredData) and method == "MLE" and (
            found := _formula(family, data, fixed)):
        return found
    starts |= dict(zip(family.shapes, args, strict=False))
    points = _points(data).astype(np.float64)
    shapes = [fixed.get(n, starts.get(n)) for n in family.shapes]
    if any(s is None for s in shapes):
        shapes = [g if s is None else s for s, g in zip(shapes, first_shapes(family), strict=True)]
    shapes = [jnp.asarray(s, np.float64) for s in shapes if s is not None]
    place = dict(zip(("loc", "scale"), _place_within(family, points, shapes), strict=True))
    values = dict(zip(family.shapes, shapes, strict=True)) | {
        n: fixed.get(n, starts.get(n, place[n])) for n in names[len(shapes):]}

    def full(x: Array) -> list[Any]:
        moving = iter(range(len(free)))
        return [fixed[n] if n in fixed else x[next(moving)] for n in names]

    orders = np.arange(1, len(free) + 1)

    def price(x: Array) -> Array:
        theta = [jnp.asarray(t, np.float64) for t in full(x)]
        if method == "MLE":
            return penalized(family, theta, data)
        wanted = jnp.stack([jnp.mean(points**k) for k in orders])
        got = jnp.stack([family.moment(int(k), *theta) for k in orders])
        off = (got - wanted) / jnp.maximum(jnp.abs(wanted), 1e-8)
        return jnp.where(jnp.all(jnp.isfinite(off)), jnp.sum(off * off), _BAD)

    x = jnp.stack([jnp.asarray(values[n], np.float64) for n in free])
    for _ in range(2):  # a second simplex leaves where the first one was flat
        simplex, _ = nelder_mead(price, x, 1e-9, 1e-10, 400 * len(free), False)
        x = simplex.points[0]
    return tuple(jnp.asarray(t) for t in full(x))


_TRIED: Final = (1.0, 0.5, 2.0, 0.1, 5.0, 1.5, -0.5, 0.9, 3.0, 20.0)


def first_shapes(family: Any) -> list[float]:
    """Shapes of a family that are possible: all alike, or each larger than the one before."""
    count = len(family.shapes)
    for value in _TRIED:
        for step in (0.0, 1.0, -0.5):
            shapes = [value + step * i for i in range(count)]
            if bool(jnp.all(jnp.asarray(family.possible(*map(jnp.asarray, shapes))))):
                return shapes
    raise FitError(f"scipy.stats.{family.name}.fit needs starts of {', '.join(family.shapes)}.")
