"""Generators by rejection: a density under a hat, and ratios of uniform numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans import random
from functrans.core.errors import ArgumentError, explain_missing_names, shown
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_node_class
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.stats.accepting import accepted
from functrans.scipy.stats.generators import (
    CalledBack,
    UniversalGenerator,
    UNURANError,
    domain_of,
    method_of,
)
from functrans.typing import Array, ArrayLike

__all__ = ["RatioUniforms", "SimpleRatioUniforms", "TransformedDensityRejection"]

Numbers = np.ndarray[Any, Any]


def _areas(start: Numbers, slope: Numbers, width: Numbers, c: float) -> tuple[Numbers, Numbers]:
    """Areas under falling pieces of a hat over `width`, and what its inverse needs.

    `start` is the height there, -slope <= 0 the slope of the transformed hat.
    """
    with np.errstate(all="ignore"):
        if c == 0:
            fall = -np.expm1(-slope * width)
            return start * np.where(slope > 0, fall / np.where(slope > 0, slope, 1), width), fall
        rate = slope * np.sqrt(start)
        span = np.where(np.isinf(width), 1 / rate, width / (1 + rate * width))
        return start * span, span


@register_pytree_node_class
class TransformedDensityRejection(UniversalGenerator):
    """Draws by rejection under the tangents of a density that a transformation makes concave.

    `c` 0 is for the logarithm, -0.5 for -1 / sqrt. Points are added until the area of the squeeze
    is `max_squeeze_hat_ratio` of that of the hat, unless `use_dars` is False. Raises UNURANError
    for a density that is not T-concave, and a bad domain. Source: Gilks and Wild, 1992; Hoermann,
    1995, "A rejection technique for sampling from T-concave distributions".

    >>> import numpy as np
    >>> from functrans.scipy.stats import sampling
    >>> class Normal:
    ...     def pdf(self, x):
    ...         return np.exp(-0.5 * x * x)
    ...     def dpdf(self, x):
    ...         return -x * np.exp(-0.5 * x * x)
    >>> made = sampling.TransformedDensityRejection(Normal(), random_state=0)
    >>> made.rvs(5).shape, made.squeeze_hat_ratio > 0.99
    ((5,), True)
    """

    def __init__(self, dist: Any, *, mode: float | None = None, center: float | None = None,
                 domain: Any = None, c: float = -0.5, construction_points: ArrayLike = 30,
                 use_dars: bool = True, max_squeeze_hat_ratio: float = 0.99,
                 random_state: Any = None) -> None:
        name = "TransformedDensityRejection"
        one_of(f"stats.sampling.{name}", "c", c + 0.0 if isinstance(c, int) else c, (-0.5, 0.0))
        pdf, dpdf = method_of(name, dist, "pdf"), method_of(name, dist, "dpdf")
        low, high = domain_of(name, dist, domain)
        given = np.asarray(construction_points, np.float64)
        middle = float(np.clip(mode if mode is not None else center or 0.0, low, high))
        if given.ndim == 0:
            n = known_size(f"stats.sampling.{name}", "construction_points", construction_points)
            first, last = np.arctan(low - middle), np.arctan(high - middle)
            given = middle + np.tan(first + (last - first) * np.arange(1, n + 1) / (n + 1))
            if mode is not None:
                given = np.append(given, middle)
        points = np.unique(given[(given >= low) & (given <= high)])
        for _ in range(50):
            tables, hat, squeeze, worse = self._hat(pdf, dpdf, points, low, high, float(c))
            if not use_dars or squeeze >= max_squeeze_hat_ratio * hat or len(points) > 5000:
                break
            points = np.union1d(points, worse)
        super().__init__(pdf, {**tables, "areas": np.array([hat, squeeze])}, random_state)

    @staticmethod
    def _hat(pdf: CalledBack, dpdf: CalledBack, points: Numbers, low: float, high: float,
             c: float) -> tuple[dict[str, Numbers], float, float, Numbers]:
        f = pdf(points)
        if np.any(f < 0) or not np.any(f > 0):
            raise UNURANError("scipy.stats.sampling: the density is negative or 0 where it was "
                              "evaluated.", where=user_source(), fix="center= near most of it")
        with np.errstate(all="ignore"):
            y = np.log(f) if c == 0 else -1 / np.sqrt(f)
            d = dpdf(points) * (1 / f if c == 0 else 0.5 * f**-1.5)
        fine = np.isfinite(y) & np.isfinite(d) & (f > 1e-250)
        p, y, d = points[fine], y[fine], d[fine]
        if len(p) == 0 or (math.isinf(low) and not d[0] > 0) or (
                math.isinf(high) and not d[-1] < 0):
            raise UNURANError("scipy.stats.sampling: the hat has no finite area.",
                              where=user_source(), why="tangents fall towards an infinite end.",
                              fix="construction_points on both sides of the mode")
        step, rise = np.diff(p), np.diff(y)
        slack = 1e-8 * (np.abs(d[:-1]) + np.abs(d[1:]) + np.abs(rise / step)) + (
            4e-14 * np.abs(y[1:]) / step)
        if np.any(rise / step > d[:-1] + slack) or np.any(rise / step < d[1:] - slack):
            raise UNURANError("scipy.stats.sampling: the density is not T-concave.",
                              where=user_source(), why="its transformation is not concave, or dpdf "
                              "is not its derivative.", fix="NumericalInversePolynomial")
        bend = d[:-1] - d[1:]
        with np.errstate(all="ignore"):
            z = p[:-1] + np.where(bend > 0, (rise - d[1:] * step) / bend, 0.5 * step)
        z = np.concatenate([[low], np.clip(z, p[:-1], p[1:]), [high]])
        # both sides of each point are pieces that fall to the right or to the left
        up = d > 0
        anchor = np.where(up, z[1:], z[:-1])
        top = y + d * (anchor - p)
        height = np.exp(top) if c == 0 else 1 / top**2
        if not np.all(np.isfinite(height)) or (c != 0 and np.any(top >= 0)):
            raise UNURANError("scipy.stats.sampling: the hat is not bounded.",
                              where=user_source(), fix="more construction_points")
        area, span = _areas(height, np.abs(d), np.diff(z), c)
        rates = np.abs(d) if c == 0 else np.abs(d) * np.sqrt(height)
        secant = rise / step
        squeezes, _ = _areas(np.maximum(f[fine][:-1], f[fine][1:]), np.abs(secant), step, c)
        # halves of the hat on each side of a point, less the squeeze between two points
        left, _ = _areas(np.where(up, pdf(p), height), np.abs(d), p - z[:-1], c)
        gap = (area - left)[:-1] + left[1:] - squeezes
        hat, squeeze = float(np.sum(area)), float(np.sum(squeezes))
        spots = [z[1:-1][gap > 0.5 * np.mean(gap)]]
        ends = (low if math.isfinite(low) else p[0] - 1 / d[0] * (1 if c == 0 else -y[0]),
                high if math.isfinite(high) else p[-1] - 1 / d[-1] * (1 if c == 0 else -y[-1]))
        for end, at, part in ((ends[0], p[0], left[0]), (ends[1], p[-1], (area - left)[-1])):
            if part > 0.002 * hat:
                spots.append(np.array([0.5 * (end + at)]))
        tables = {"anchor": anchor, "side": np.where(up, -1.0, 1.0), "height": height,
                  "rate": rates, "span": span, "edges": z, "log": np.array(c == 0),
                  "p": np.concatenate([[0.0], np.cumsum(area) / hat])}
        return tables, hat, squeeze, np.concatenate(spots)

    def _under(self, u: Array) -> tuple[Array, Array]:
        """The quantiles of the hat, and its heights there."""
        t = self._tables
        i = jnp.clip(jnp.searchsorted(t["p"], u, side="right") - 1, 0, t["anchor"].shape[0] - 1)
        v = jnp.clip((u - t["p"][i]) / (t["p"][i + 1] - t["p"][i]), 0.0, 1.0)
        v = jnp.where(t["side"][i] < 0, 1.0 - v, v)
        rate, span, width = t["rate"][i], t["span"][i], t["edges"][i + 1] - t["edges"][i]
        sloped = t["log"] & (rate * width > 1e-12)
        exact = -jnp.log1p(-v * span) / jnp.where(sloped, rate, 1.0)
        ratio = v * span / jnp.where(t["log"], 1.0, 1.0 - rate * v * span)
        flat = v * jnp.where(jnp.isinf(width), 1.0, width)
        far = jnp.where(t["log"], jnp.where(sloped, exact, flat), ratio)
        x = jnp.clip(t["anchor"][i] + t["side"][i] * far, t["edges"][i], t["edges"][i + 1])
        falls = jnp.where(t["log"], jnp.exp(-rate * far), 1.0 / (1.0 + rate * far) ** 2)
        return x, t["height"][i] * falls

    def ppf_hat(self, u: ArrayLike) -> Array:
        """The quantiles of the hat; NaN outside of [0, 1]."""
        (p,) = inexact(u)
        x, _ = self._under(p.astype(np.float64))
        return jnp.where((p >= 0) & (p <= 1), x, math.nan).astype(p.dtype)

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        def propose(key: Array) -> tuple[Array, Array]:
            u, v = random.uniform(key, (2, *shape), np.float64)
            x, hat = self._under(u)
            return x, v * hat <= _known(self._fun).traced(x)

        return accepted(key, jnp.zeros(shape, np.float64), propose)

    @property
    def hat_area(self) -> float:
        """The area under the hat."""
        return float(self._tables["areas"][0])

    @property
    def squeeze_area(self) -> float:
        """The area under the squeeze."""
        return float(self._tables["areas"][1])

    @property
    def squeeze_hat_ratio(self) -> float:
        """The area under the squeeze as a part of that under the hat."""
        return self.squeeze_area / self.hat_area


def _known(fun: CalledBack | None) -> CalledBack:
    assert fun is not None  # generators by rejection are made with a density
    return fun


def _ratios(fun: CalledBack, key: Array, shape: tuple[int, ...], t: dict[str, Any]) -> Array:
    """Ratios of uniform numbers below the root of a density; NaN where none was accepted."""
    def propose(key: Array) -> tuple[Array, Array]:
        u, v = random.uniform(key, (2, *shape), np.float64)
        u = (1.0 - u) * t["umax"]
        x = (t["vmin"] + v * (t["vmax"] - t["vmin"])) / u + t["c"]
        inside = (x >= t["low"]) & (x <= t["high"])
        safe = jnp.where(inside, x, t["c"])
        fine = inside & (u * u <= fun.traced(safe))
        return jnp.where(fine, x, math.nan), fine

    return accepted(key, jnp.full(shape, math.nan, np.float64), propose)


@register_pytree_node_class
class SimpleRatioUniforms(UniversalGenerator):
    """Draws by ratios of uniform numbers in a rectangle that the mode and the area give.

    Raises UNURANError where the density leaves the rectangle, as one that is not T-concave may,
    and for a bad domain. Source: Leydold, 2001, "A simple universal generator for continuous and
    discrete univariate T-concave distributions".

    >>> import numpy as np
    >>> from functrans.scipy.stats import sampling
    >>> class Normal:
    ...     def pdf(self, x):
    ...         return np.exp(-0.5 * x * x)
    >>> made = sampling.SimpleRatioUniforms(Normal(), mode=0.0, pdf_area=2.5067, random_state=0)
    >>> made.rvs(5).shape
    (5,)
    """

    def __init__(self, dist: Any, *, mode: float | None = None, pdf_area: float = 1,
                 domain: Any = None, cdf_at_mode: float | None = None,
                 random_state: Any = None) -> None:
        name = "SimpleRatioUniforms"
        pdf = method_of(name, dist, "pdf")
        low, high = domain_of(name, dist, domain)
        if not pdf_area > 0:
            raise ArgumentError(f"scipy.stats.sampling.{name}: pdf_area is {shown(pdf_area)}.",
                                where=user_source(), why="it is above 0.")
        if cdf_at_mode is not None and not 0 <= cdf_at_mode <= 1:
            raise ArgumentError(f"scipy.stats.sampling.{name}: cdf_at_mode is "
                                f"{shown(cdf_at_mode)}.", where=user_source(),
                                why="it is a probability.")
        x = np.clip(np.concatenate([-(2.0 ** np.arange(60, -30, -0.25)), [0.0],
                                    2.0 ** np.arange(-30, 60, 0.25)]), low, high)
        given = mode
        if mode is None:
            grid = np.unique(x)
            for _ in range(40):
                k = int(np.argmax(pdf(grid)))
                grid = np.linspace(grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)], 41)
            mode = float(grid[np.argmax(pdf(grid))])
        top = float(pdf(np.array(mode)))
        if not (math.isfinite(top) and top > 0 and low <= mode <= high):
            raise UNURANError(f"scipy.stats.sampling.{name}: the density is {top} at the mode "
                              f"{mode}.", where=user_source(), fix="mode=")
        umax = math.sqrt(top) * (1 if given is not None else 1 + 1e-9)
        width = pdf_area / umax
        vmin, vmax = (-width, width) if cdf_at_mode is None else (
            -cdf_at_mode * width, (1 - cdf_at_mode) * width)
        near = np.unique(np.clip(mode + x[np.isfinite(x)], low, high))
        with np.errstate(all="ignore"):
            f = pdf(near)
            v = (near - mode) * np.sqrt(np.maximum(f, 0))
        if np.any(f < 0) or np.any(f > umax**2 * (1 + 1e-9)) or np.any(
                v > vmax + 1e-6 * width) or np.any(v < vmin - 1e-6 * width):
            raise UNURANError(f"scipy.stats.sampling.{name}: the density leaves its rectangle.",
                              where=user_source(), why="it is not T-concave, or mode, pdf_area or "
                              "cdf_at_mode is wrong.", fix="pdf_area= of the density as it is")
        super().__init__(pdf, {"umax": umax, "vmin": vmin, "vmax": vmax, "c": mode, "low": low,
                               "high": high}, random_state)
        self._tables = {k: v.astype(np.float64) for k, v in self._tables.items()}

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        return _ratios(_known(self._fun), key, shape, self._tables)


@register_pytree_node_class
class RatioUniforms(UniversalGenerator):
    """Draws by ratios of uniform numbers in a given rectangle, the method of Kinderman and Monahan.

    `pdf` is proportional to a density. Raises RuntimeError where nothing is accepted, of which
    `jit` makes NaN. Source: Kinderman and Monahan, 1977.

    >>> import functrans.numpy as jnp
    >>> from functrans.scipy.stats import sampling
    >>> made = sampling.RatioUniforms(lambda x: jnp.exp(-x) * (x >= 0), umax=1, vmin=0, vmax=0.7358,
    ...                               random_state=0)
    >>> made.rvs(5).shape
    (5,)
    """

    def __init__(self, pdf: Callable[[Any], Any], *, umax: float, vmin: float, vmax: float,
                 c: float = 0, random_state: Any = None) -> None:
        if vmin >= vmax or umax <= 0:
            raise ArgumentError(f"scipy.stats.sampling.RatioUniforms: umax={shown(umax)}, "
                                f"vmin={shown(vmin)}, vmax={shown(vmax)}.", where=user_source(),
                                why="umax is positive, and vmin below vmax.")
        super().__init__(CalledBack(pdf), {
            k: np.float64(v) for k, v in {"umax": umax, "vmin": vmin, "vmax": vmax, "c": c,
                                          "low": -math.inf, "high": math.inf}.items()},
            random_state)

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        return _ratios(_known(self._fun), key, shape, self._tables)

    def rvs(self, size: Any = 1, random_state: Any = None) -> Array:
        """Random numbers, of shape `size`; by the generator's own key without `random_state`."""
        x = super().rvs(size, random_state)
        if not is_traced(x) and bool(jnp.any(jnp.isnan(x))):
            raise UNURANError("scipy.stats.sampling.RatioUniforms: nothing was accepted in 10000 "
                              "attempts.", where=user_source(), fix="umax, vmin and vmax of pdf")
        return x


explain_missing_names(globals())
