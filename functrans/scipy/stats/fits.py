"""Fits of families to data within bounds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, one_of, refused
from functrans.scipy.optimize.global_minima import differential_evolution
from functrans.scipy.optimize.simplex import nelder_mead
from functrans.scipy.stats.families import DistributionLike
from functrans.scipy.stats.fitting import CensoredData, names_of, penalized
from functrans.typing import Array, ArrayLike

__all__ = ["FitResult", "fit"]

_ENDED = {True: "Optimization terminated successfully.", False: "The optimizer did not end."}
_WHOLE = frozenset(("n", "N", "M", "r", "low", "high"))
"""The shapes of families of whole numbers that are whole themselves."""


@dataclasses.dataclass
class FitResult:
    """The parameters that fit best, by name, and whether the search ended."""

    params: Any
    success: bool
    message: str
    _dist: Any = dataclasses.field(repr=False, default=None)
    _data: Any = dataclasses.field(repr=False, default=None)

    def nllf(self, params: Sequence[Any] | None = None, data: Any = None) -> Array:
        """Less the logarithm of the likelihood, of these parameters or others."""
        given = self._data if data is None else jnp.asarray(data)
        result: Array = self._dist.nnlf(self.params if params is None else params, given)
        return result

    def plot(self, *args: Any, **kwargs: Any) -> Any:
        raise refused("stats.fit(...).plot", "a fit", "there is no drawing of plots here.",
                      "matplotlib with dist.pdf(x, *params)")


def _limits(name: str, names: Sequence[str], bounds: Any) -> list[tuple[float, float]]:
    if isinstance(bounds, Mapping):
        unknown = set(bounds) - set(names)
        if unknown:
            raise ArgumentError(f"scipy.stats.fit: {name} has no parameter {sorted(unknown)[0]}.",
                                where=user_source(), why="they are " + ", ".join(names) + ".")
        given = dict(bounds)
    else:
        given = dict(zip(names, bounds or (), strict=False))
    defaults = {"loc": (0.0, 0.0), "scale": (1.0, 1.0)}
    out = []
    for n in names:
        pair = given.get(n, defaults.get(n))
        if pair is None:
            raise ArgumentError(f"scipy.stats.fit: there are no bounds of {n}.",
                                where=user_source(), why="the search is within finite bounds.",
                                fix=f"bounds={{'{n}': (0.1, 10.0)}}")
        low, high = (float(v) for v in np.broadcast_to(pair, (2,)))
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ArgumentError(f"scipy.stats.fit: the bounds of {n} are {low} and {high}.",
                                where=user_source(), why="they are finite, in order.")
        out.append((low, high))
    return out


def fit(dist: DistributionLike, data: ArrayLike | CensoredData,
        bounds: Mapping[str, tuple[float, float]] | Sequence[tuple[float, float]] | None = None, *,
        guess: Mapping[str, float] | Sequence[float] | None = None, method: str = "mle",
        optimizer: Callable[..., Any] = differential_evolution) -> FitResult:
    """The parameters of a family within bounds that fit data best, by the likelihood.

    `bounds` and `guess` are mappings from names of parameters, or sequences in the order of shapes,
    loc and scale; without bounds loc is 0 and scale 1. `method` is "mle", or "mse" for the largest
    product of spacings of the distribution function. Of families of whole numbers shapes such as
    n are whole. `optimizer(fun, bounds=, integrality=)` finds the minimum, from which a simplex
    goes on. Data may be `CensoredData` for "mle". Raises ArgumentError for bounds that are missing
    or not finite.

    >>> import functrans as ft
    >>> data = ft.numpy.array([3, 4, 2, 5, 3, 4, 3, 3])
    >>> found = ft.scipy.stats.fit(ft.scipy.stats.poisson, data, {"mu": (0.0, 10.0)})
    >>> round(float(found.params.mu), 3)
    3.375
    """
    one_of("stats.fit", "method", method, ("mle", "mse"))
    names = names_of(dist)
    limits = _limits(dist.name, names, bounds)
    if not isinstance(data, CensoredData):
        data = jnp.ravel(jnp.asarray(inexact(data)[0])).astype(np.float64)
    elif method == "mse":
        raise ArgumentError("scipy.stats.fit: censored data have no spacings.",
                            where=user_source(), fix='method="mle"')
    free = [i for i, (low, high) in enumerate(limits) if low < high]
    whole = [not dist.has_scale and (names[i] in _WHOLE or names[i] == "loc") for i in free]

    def full(x: Array) -> list[Array]:
        theta = [jnp.asarray(low, np.float64) for low, _ in limits]
        for place, i in enumerate(free):
            theta[i] = jnp.round(x[place]) if whole[place] else x[place]
        return theta

    def price(x: Array) -> Array:
        theta = full(x)
        if method == "mle" or isinstance(data, CensoredData):
            return penalized(dist, theta, data)
        ranked = jnp.sort(data)
        levels = jnp.concatenate([jnp.zeros(1), dist.cdf(ranked, *theta), jnp.ones(1)])
        gaps = jnp.diff(levels)
        density = (dist.logpdf if dist.has_scale else dist.logpmf)(ranked, *theta)
        # of equal elements the density stands for the gap
        gaps = jnp.where(gaps > 0, jnp.log(jnp.where(gaps > 0, gaps, 1.0)), jnp.concatenate(
            [density, density[-1:]]))
        fine = jnp.abs(gaps) < math.inf
        return jnp.sum(jnp.where(fine, -jnp.where(fine, gaps, 0.0), 7e4))

    if free:
        box = [(np.float64(low), np.float64(high)) for low, high in (limits[i] for i in free)]
        options: dict[str, Any] = {"bounds": box}
        if any(whole):
            options["integrality"] = whole
            if optimizer is differential_evolution:  # no simplex goes on from there
                options["tol"] = 1e-9
        if guess is not None:
            known = dict(guess) if isinstance(guess, Mapping) else dict(
                zip(names, guess, strict=False))
            options["x0"] = jnp.asarray([known.get(names[i], sum(limits[i]) / 2) for i in free],
                                        np.float64)
        found = optimizer(price, **options)
        x, success, message = found.x, bool(found.success), _ENDED[bool(found.success)]
        if not any(whole):
            low, high = (jnp.asarray(v, np.float64) for v in zip(*box, strict=True))
            simplex, _ = nelder_mead(price, jnp.asarray(x, np.float64), 1e-9, 1e-10,
                                     400 * len(free), False, (low, high))
            x = simplex.points[0]
    else:
        x, success, message = jnp.zeros(0), True, "All parameters are fixed."
    params = NamedTuple("FitParams", [(n, Any) for n in names])  # type: ignore[misc]
    return FitResult(params(*full(x)), success, message, dist, data)


publish(globals(), ("fit",))
