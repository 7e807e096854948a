"""Quantiles of the families of functrans from tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans import random
from functrans.core.errors import ArgumentError, explain_missing_names, shown
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_node_class
from functrans.scipy.arguments import inexact, known_size, known_values
from functrans.scipy.stats.frozen import Frozen
from functrans.scipy.stats.generators import CalledBack, Inverting, UError, domain_of
from functrans.scipy.stats.inversions import NumericalInversePolynomial
from functrans.scipy.stats.methods import key_of
from functrans.typing import Array, ArrayLike

__all__ = ["FastGeneratorInversion"]


class _InFloat64:
    """The standard distribution of a family with given shapes, of NumPy's numbers."""

    def __init__(self, family: Any, shapes: Any) -> None:
        self.family, self.shapes = family, shapes

    def pdf(self, x: Any) -> Any:
        return self.family.pdf(x, *self.shapes)

    def cdf(self, x: Any) -> Any:
        return self.family.cdf(x, *self.shapes)


@register_pytree_node_class
class FastGeneratorInversion(Inverting):
    """Quantiles and draws of a continuous distribution from a table of polynomials.

    `dist` is a distribution of given parameters, as `stats.gamma(2.5)`; `loc` and `scale` may be
    set later. Any family whose density is bounded has it; `ignore_shape_range` changes nothing.
    Source: Derflinger, Hoermann and Leydold, 2010.

    >>> import functrans as ft
    >>> from functrans.scipy.stats import sampling
    >>> made = sampling.FastGeneratorInversion(ft.scipy.stats.gamma(2.5), random_state=0)
    >>> round(float(made.ppf(0.5)), 4), round(float(ft.scipy.stats.gamma(2.5).ppf(0.5)), 4)
    (2.1757, 2.1757)
    """

    def __init__(self, dist: Any, *, domain: Any = None, ignore_shape_range: bool = False,
                 random_state: Any = None) -> None:
        if not isinstance(dist, Frozen) or not hasattr(dist.dist, "pdf"):
            raise ArgumentError(f"scipy.stats.sampling.FastGeneratorInversion: dist is "
                                f"{shown(dist)}.", where=user_source(), why="it is a continuous "
                                "family of given parameters.", fix="stats.gamma(2.5)")
        names = (*dist.dist.shapes, "loc", "scale")
        given = {"loc": 0.0, "scale": 1.0, **dict(zip(names, dist.args, strict=False)), **dist.kwds}
        known = {k: known_values("stats.sampling.FastGeneratorInversion", k, v, "tables are made "
                                 "of its value.", "make the generator outside of jit")
                 for k, v in given.items()}
        if any(v.ndim for v in known.values()):
            raise ArgumentError("scipy.stats.sampling.FastGeneratorInversion: a parameter is an "
                                "array.", where=user_source(), why="a table is of one "
                                "distribution.")
        shapes = [np.float64(known[k]) for k in dist.dist.shapes]
        ends = domain_of("FastGeneratorInversion", dist.dist(*shapes), domain)
        standard = _InFloat64(dist.dist, shapes)
        table = NumericalInversePolynomial(standard, domain=ends, center=float(
            np.clip(dist.dist.ppf(np.float64(0.5), *shapes), *ends)))
        super().__init__(CalledBack(standard.cdf), {
            "shapes": np.array(shapes), "loc": np.float64(known["loc"]),
            "scale": np.float64(known["scale"]), "ends": np.array(ends)}, random_state)
        self._tables = {**self._tables, "table": table}

    @property
    def loc(self) -> Array:
        """What is added to the standard distribution's numbers."""
        out: Array = self._tables["loc"]
        return out

    @loc.setter
    def loc(self, value: ArrayLike) -> None:
        self._tables["loc"] = jnp.asarray(value, np.float64)

    @property
    def scale(self) -> Array:
        """What the standard distribution's numbers are multiplied by."""
        out: Array = self._tables["scale"]
        return out

    @scale.setter
    def scale(self, value: ArrayLike) -> None:
        self._tables["scale"] = jnp.asarray(value, np.float64)

    @property
    def random_state(self) -> Array:
        """The key of draws, which may be set to a key or an int."""
        return self._key

    @random_state.setter
    def random_state(self, value: Any) -> None:
        self.set_random_state(value)

    def support(self) -> tuple[Array, Array]:
        """The ends of the distribution's numbers."""
        ends = self.loc + self.scale * self._tables["ends"]
        return ends[0], ends[1]

    def _quantile(self, u: Array) -> Array:
        out: Array = self.loc + self.scale * self._tables["table"].ppf(u)
        return out

    def ppf(self, q: ArrayLike) -> Array:
        """The quantiles of q; NaN outside of [0, 1]."""
        (p,) = inexact(q)
        return self._quantile(p.astype(np.float64)).astype(p.dtype)

    def _beside(self, u: Array) -> tuple[Array, Any, list[Array], Array, Array]:
        """Standard quantiles of the table, and the family with its shapes and range."""
        family: Any = self._fun.fun.__self__.family if self._fun else None  # type: ignore[attr-defined]
        shapes, ends = [*self._tables["shapes"]], self._tables["ends"]
        return (self._tables["table"].ppf(u), family, shapes, family.cdf(ends[0], *shapes),
                family.cdf(ends[1], *shapes))

    def u_error(self, sample_size: int = 100000) -> UError:
        """The largest and the mean error of the probabilities of quantiles of random numbers."""
        u = random.uniform(self._next_key(None), (known_size(
            "stats.sampling.FastGeneratorInversion", "sample_size", sample_size),), np.float64)
        x, family, shapes, low, high = self._beside(u)
        error = jnp.abs((family.cdf(x, *shapes) - low) / (high - low) - u)
        return UError(jnp.max(error), jnp.mean(error))

    def evaluate_error(self, size: int = 100000, random_state: Any = None,
                       x_error: bool = False) -> tuple[Array, Array]:
        """The largest error of probabilities of quantiles, and of quantiles or NaN for it.

        Errors of quantiles are the smaller of the absolute and the relative one.
        """
        n = known_size("stats.sampling.FastGeneratorInversion", "size", size)
        key = self._next_key(None) if random_state is None else key_of("sampling", random_state)
        u = random.uniform(key, (n,), np.float64)
        x, family, shapes, low, high = self._beside(u)
        u_error = jnp.max(jnp.abs((family.cdf(x, *shapes) - low) / (high - low) - u))
        if not x_error:
            return u_error, jnp.asarray(math.nan)
        exact = family.ppf(low + u * (high - low), *shapes)
        apart = self.scale * jnp.abs(x - exact)
        true = jnp.abs(self.loc + self.scale * exact)
        return u_error, jnp.max(jnp.minimum(apart, apart / jnp.where(true == 0, 1.0, true)))


explain_missing_names(globals())
