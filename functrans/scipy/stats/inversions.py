"""Generators by numerical inversion: quantiles as polynomials between quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import explain_missing_names
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_node_class
from functrans.scipy.arguments import one_of, refused
from functrans.scipy.stats.generators import (
    CalledBack,
    Inverting,
    UNURANError,
    domain_of,
    method_of,
)
from functrans.typing import Array, ArrayLike

__all__ = ["NumericalInverseHermite", "NumericalInversePolynomial"]

Numbers = np.ndarray[Any, Any]
_X, _W = np.polynomial.legendre.leggauss(12)
_MOST = 200_000  # intervals


def _integral(f: Callable[[Numbers], Numbers], a: Numbers, b: Numbers) -> Numbers:
    """Integrals over intervals by 12 points of Gauss."""
    half = 0.5 * (b - a)
    x = 0.5 * a[..., None] + 0.5 * b[..., None] + half[..., None] * _X
    out: Numbers = half * np.sum(f(x) * _W, -1)
    return out


def _newton(u: Numbers, x: Numbers, slopes: Numbers | None = None,
            curves: Numbers | None = None) -> Numbers:
    """Divided differences of (m, n) nodes; slopes and halved curvatures where nodes coincide."""
    out, d = [x[:, 0]], x
    for k in range(1, u.shape[1]):
        gap = u[:, k:] - u[:, :-k]
        new = (d[:, 1:] - d[:, :-1]) / np.where(gap == 0, 1.0, gap)
        same = {1: slopes, 2: curves}.get(k)
        d = new if same is None else np.where(gap == 0, same[:, :gap.shape[1]], new)
        out.append(d[:, 0])
    return np.stack(out, 1)


def _at(coefficients: Any, nodes: Any, u: Any) -> Any:
    """Values of Newton's polynomials; the last axis of the table is that of its terms."""
    out = coefficients[..., -1]
    for k in range(coefficients.shape[-1] - 2, -1, -1):
        out = out * (u - nodes[..., k]) + coefficients[..., k]
    return out


class _ByTable(Inverting):
    """Quantiles from a table of polynomials over intervals."""

    def _quantile(self, u: Array) -> Array:
        t = self._tables
        last = t["x"].shape[0] - 2
        i = jnp.clip(jnp.searchsorted(t["p"], u, side="right") - 1, 0, last)
        x = t["x"][i] + _at(t["quantile"][i], t["u"][i], u - t["p"][i])
        x = jnp.clip(x, t["x"][i], t["x"][i + 1])
        x = jnp.where(u == 0, t["domain"][0], jnp.where(u == 1, t["domain"][1], x))
        return jnp.where((u >= 0) & (u <= 1), x, math.nan)

    @property
    def intervals(self) -> int:
        """How many intervals there are."""
        return int(self._tables["x"].shape[0]) - 1


def _halved(edges: Numbers, wrong: Numbers) -> Numbers:
    """The edges, and the middles of the intervals that are wrong."""
    a, b = edges[:-1][wrong], edges[1:][wrong]
    return np.union1d(edges, 0.5 * a + 0.5 * b)


def _start(ends: tuple[float, float], center: float) -> Numbers:
    """Edges around the center, each twice as far as the one before it."""
    far = 2.0 ** np.arange(-20, 160)
    edges = np.concatenate([center - far, [center], center + far, ends])
    edges = edges[np.isfinite(edges)]
    return np.unique(np.clip(edges, *ends))


@register_pytree_node_class
class NumericalInversePolynomial(_ByTable):
    """Draws by the inverse of the integral of a density, in polynomials between its points.

    Errors of probabilities are at most `u_resolution`. Raises UNURANError for a density that
    cannot be integrated, and a bad domain. Source: Derflinger, Hoermann and Leydold, 2010.

    >>> import numpy as np
    >>> from functrans.scipy.stats import sampling
    >>> class Normal:
    ...     def pdf(self, x):
    ...         return np.exp(-0.5 * x * x)
    >>> made = sampling.NumericalInversePolynomial(Normal(), random_state=0)
    >>> round(float(made.ppf(0.975)), 4), made.rvs(5).shape
    (1.96, (5,))
    """

    def __init__(self, dist: Any, *, mode: float | None = None, center: float | None = None,
                 domain: Any = None, order: int = 5, u_resolution: float = 1e-10,
                 random_state: Any = None) -> None:
        name = "NumericalInversePolynomial"
        one_of(f"stats.sampling.{name}", "order", order, range(3, 18))
        if not 1e-15 <= u_resolution <= 1e-5:
            raise refused(f"stats.sampling.{name}", f"u_resolution={u_resolution}",
                          "it is between 1e-15 and 1e-5.", "u_resolution=1e-10")
        density = method_of(name, dist, "logpdf", "pdf")
        ends = domain_of(name, dist, domain)
        guess = mode if mode is not None else 0.0 if center is None else center
        edges, f = _support(density, hasattr(dist, "logpdf"), ends, float(np.clip(guess, *ends)),
                            u_resolution)
        cdf = CalledBack(dist.cdf) if hasattr(dist, "cdf") else None
        super().__init__(cdf, {**_inverse(f, edges, order, u_resolution),
                               "domain": np.array(ends)}, random_state)

    def cdf(self, x: ArrayLike) -> Array:
        """The probabilities of values up to x, with errors as those of the quantiles."""
        t, at = self._tables, jnp.asarray(x)
        y = at.astype(np.float64)
        i = jnp.clip(jnp.searchsorted(t["x"], y, side="right") - 1, 0, t["x"].shape[0] - 2)
        z = jnp.clip(y, t["x"][0], t["x"][-1]) - t["x"][i]
        out = t["p"][i] + _at(t["probability"][i], t["z"][i], z)
        out = jnp.where(y < t["x"][0], 0.0, jnp.where(y > t["x"][-1], 1.0, jnp.clip(out, 0, 1)))
        out = jnp.where(jnp.isnan(y), math.nan, out)
        return out.astype(at.dtype) if jnp.issubdtype(at.dtype, jnp.floating) else out


def _support(density: CalledBack, is_log: bool, ends: tuple[float, float], center: float,
             tolerance: float) -> tuple[Numbers, Callable[[Numbers], Numbers]]:
    """Edges of intervals with all but a negligible part of the area, and the scaled density."""
    for _ in range(3):
        edges = _start(ends, center)
        x = np.concatenate([0.5 * edges[1:] + 0.5 * edges[:-1], [center]])
        y = density(x)
        y = np.where(np.isfinite(y), y, -math.inf)
        if y[-1] < (k := np.max(y)):
            center = float(x[np.argmax(y)])
    if (np.any(y < 0) and not is_log) or not (math.isfinite(k) if is_log else k > 0):
        raise UNURANError("scipy.stats.sampling: the density is negative or 0 where it was "
                          "evaluated.", where=user_source(), fix="center= near most of it")

    def f(x: Numbers) -> Numbers:
        y: Numbers = np.exp(density(x) - k) if is_log else density(x) / k
        return y

    edges = _start(ends, center)
    for _ in range(400):
        area = _integral(f, edges[:-1], edges[1:])
        middle = 0.5 * edges[1:] + 0.5 * edges[:-1]
        halves = _integral(f, edges[:-1], middle) + _integral(f, middle, edges[1:])
        total = np.sum(halves)
        if not np.isfinite(total):
            break
        wrong = np.abs(halves - area) > max(0.01 * tolerance, 4e-16) * total / math.sqrt(len(area))
        wrong &= (middle > edges[:-1]) & (middle < edges[1:])
        if not np.any(wrong):
            up, down = np.cumsum(halves), np.cumsum(halves[::-1])[::-1]
            keep = (up > 0.05 * tolerance * total) & (down > 0.05 * tolerance * total)
            if (math.isinf(ends[0]) and keep[0]) or (math.isinf(ends[1]) and keep[-1]):
                break
            i = np.flatnonzero(keep)
            return edges[i[0]:i[-1] + 2], f
        edges = _halved(edges, wrong)
        if len(edges) > _MOST:
            break
    raise UNURANError("scipy.stats.sampling: the density cannot be integrated to the resolution.",
                      where=user_source(), why="it is bounded and continuous, and its area finite.",
                      fix="domain= without poles and far tails")


def _inverse(f: Callable[[Numbers], Numbers], edges: Numbers, order: int, tolerance: float
             ) -> dict[str, Numbers]:
    """The table of the inverse of an integral."""
    between = np.sin(0.5 * math.pi * np.arange(order + 1) / order) ** 2
    total = np.sum(_integral(f, edges[:-1], edges[1:]))
    for _ in range(60):
        a, width = edges[:-1], np.diff(edges)
        z = width[:, None] * between
        parts = _integral(f, a[:, None] + z[:, :-1], a[:, None] + z[:, 1:]) / total
        u = np.concatenate([np.zeros((len(a), 1)), np.cumsum(parts, 1)], 1)
        flat = np.min(parts, 1) <= 1e-6 * tolerance
        nodes = np.where(flat[:, None], u[:, -1:] * between, u)
        quantile = _newton(nodes, z)
        probability = _newton(z, u)
        mid = 0.5 * (nodes[:, 1:] + nodes[:, :-1])
        x = _at(quantile[:, None], nodes[:, None], mid)
        true = u[:, :-1] + _integral(f, a[:, None] + z[:, :-1], a[:, None] + x) / total
        y = 0.5 * (z[:, 1:] + z[:, :-1])
        whole = u[:, :-1] + _integral(f, a[:, None] + z[:, :-1], a[:, None] + y) / total
        error = np.max(np.abs(true - mid), 1) + np.max(
            np.abs(_at(probability[:, None], z[:, None], y) - whole), 1)
        wrong = ~(error <= 0.5 * tolerance) & (u[:, -1] > 0.1 * tolerance)
        wrong &= width > 8e-16 * np.abs(a)
        if not np.any(wrong):
            p = np.concatenate([[0.0], np.cumsum(u[:, -1])])
            return {"x": edges, "p": p / p[-1], "u": nodes, "quantile": quantile, "z": z,
                    "probability": probability}
        edges = _halved(edges, wrong)
        if len(edges) > _MOST:
            break
    raise UNURANError("scipy.stats.sampling: there are too many intervals.", where=user_source(),
                      fix="a larger u_resolution, or a higher order")


@register_pytree_node_class
class NumericalInverseHermite(_ByTable):
    """Draws by the inverse of a cdf, in polynomials with the derivatives at their ends.

    Order 3 takes the density as well, 5 its derivative. Errors of probabilities at the middles
    are at most `u_resolution`. Raises UNURANError where intervals are too many, and for a bad
    domain. Source: Hoermann and Leydold, 2003, "Continuous random variate generation by fast
    numerical inversion".

    >>> import numpy as np
    >>> from functrans.scipy.stats import sampling
    >>> class Exponential:
    ...     def cdf(self, x):
    ...         return -np.expm1(-x)
    ...     def pdf(self, x):
    ...         return np.exp(-x)
    >>> made = sampling.NumericalInverseHermite(Exponential(), domain=(0, np.inf), random_state=0)
    >>> round(float(made.ppf(0.5)), 4)
    0.6931
    """

    def __init__(self, dist: Any, *, domain: Any = None, order: int = 3,
                 u_resolution: float = 1e-12, construction_points: ArrayLike | None = None,
                 random_state: Any = None) -> None:
        name = "NumericalInverseHermite"
        one_of(f"stats.sampling.{name}", "order", order, (1, 3, 5))
        if not 1e-15 <= u_resolution < 1:
            raise refused(f"stats.sampling.{name}", f"u_resolution={u_resolution}",
                          "it is between 1e-15 and 1.", "u_resolution=1e-12")
        cdf = method_of(name, dist, "cdf")
        pdf = method_of(name, dist, "pdf") if order > 1 else None
        dpdf = method_of(name, dist, "dpdf") if order > 3 else None
        ends = domain_of(name, dist, domain)
        edges = _start(ends, float(np.clip(0.0, *ends)))
        if construction_points is not None:
            edges = np.union1d(edges, np.clip(np.asarray(construction_points, np.float64), *ends))
        low, high = (float(y) if math.isfinite(x) else other for x, y, other in zip(
            ends, cdf(np.array(ends)), (0.0, 1.0), strict=True))
        if not low < high:
            raise UNURANError(f"scipy.stats.sampling.{name}: the domain {ends} has no "
                              "probability.", where=user_source())
        super().__init__(cdf if (low, high) == (0.0, 1.0) else CalledBack(
            lambda x: (dist.cdf(x) - low) / (high - low)), {**self._made(
                lambda x: (cdf(x) - low) / (high - low), pdf, dpdf, high - low, edges,
                u_resolution), "domain": np.array(ends)}, random_state)

    @staticmethod
    def _made(cdf: Callable[[Numbers], Numbers], pdf: CalledBack | None,
              dpdf: CalledBack | None, area: float, edges: Numbers, tolerance: float
              ) -> dict[str, Numbers]:
        cut = 0.05 * tolerance
        for _ in range(60):
            p = np.clip(cdf(edges), 0.0, 1.0)
            if not np.all(np.diff(p) >= -1e-14):
                raise UNURANError("scipy.stats.sampling: the cdf falls, or is NaN.",
                                  where=user_source())
            p = np.maximum.accumulate(p)
            first = max(int(np.searchsorted(p, cut, side="right")) - 1, 0)
            last = min(int(np.searchsorted(p, 1 - max(cut, 1e-16))), len(p) - 1)
            edges, p = edges[first:last + 1], p[first:last + 1]
            gain, width = np.diff(p), np.diff(edges)
            line = np.stack([np.zeros_like(gain), width / np.where(gain > 0, gain, 1.0)], 1)
            times = 1 if pdf is None else 2 if dpdf is None else 3
            u = np.repeat(np.stack([np.zeros_like(gain), gain], 1), times, 1)
            table = np.concatenate([line, np.zeros((len(gain), 2 * times - 2))], 1)
            u_line = np.concatenate([u[:, :1], u[:, -1:], u[:, 2:]], 1)
            if pdf is not None:
                with np.errstate(all="ignore"):
                    f = pdf(edges) / area
                    slope = 1.0 / f
                    curve = None if dpdf is None else -0.5 * dpdf(edges) / area * slope**3
                    both = [None if d is None else np.repeat(
                        np.stack([d[:-1], d[1:]], 1), times, 1) for d in (slope, curve)]
                    z = np.repeat(np.stack([np.zeros_like(width), width], 1), times, 1)
                    full = _newton(u, z, both[0], both[1])
                    v = np.linspace(0.0, 1.0, 9)[1:-1] * gain[:, None]
                    rises = np.diff(_at(full[:, None], u[:, None], v), axis=1) >= 0
                fine = np.all(np.isfinite(full), 1) & (gain > 0) & np.all(rises, 1)
                table = np.where(fine[:, None], full, table)
                u_line = np.where(fine[:, None], u, u_line)
            v = np.array([0.2, 0.5, 0.8]) * gain[:, None]
            x = edges[:-1, None] + _at(table[:, None], u_line[:, None], v)
            error = np.max(np.abs(cdf(x) - p[:-1, None] - v), 1)
            wrong = ~(error <= 0.8 * max(tolerance, 1e-15)) & (gain > 0.1 * tolerance)
            wrong &= width > 8e-16 * np.abs(edges[1:])
            if not np.any(wrong):
                return {"x": edges, "p": (p - p[0]) / (p[-1] - p[0]), "u": u_line,
                        "quantile": table, "error": np.max(error)}
            edges = _halved(edges, wrong)
            if len(edges) > 5 * _MOST:
                break
        raise UNURANError("scipy.stats.sampling: there are too many intervals.",
                          where=user_source(), fix="a larger u_resolution, or a higher order")

    @property
    def midpoint_error(self) -> float:
        """The largest error of probabilities that the set-up found."""
        return float(self._tables["error"])


explain_missing_names(globals())
