"""Anderson and Darling's tests, and tests of families whose parameters are estimated."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.core.tree_registry import register_dataclass
from functrans.scipy.arguments import inexact, one_of, real
from functrans.scipy.optimize.minimizing import minimize
from functrans.scipy.optimize.roots import root
from functrans.scipy.stats.base import DistributionFamily
from functrans.scipy.stats.bounded import beta
from functrans.scipy.stats.methods import MonteCarloMethod, PermutationMethod, Rng, key_of
from functrans.scipy.stats.real_line import gumbel_l, gumbel_r, logistic, norm
from functrans.scipy.stats.resampling import monte_carlo_test, permutation_test, resampling_of
from functrans.scipy.stats.results import SignificanceResult, Unpacked
from functrans.scipy.stats.tailed import expon, weibull_min
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["anderson", "anderson_ksamp", "goodness_of_fit"]


Parameters = Mapping[str, ArrayLike] | None


class FittedParameters(NamedTuple):
    """The parameters of a distribution that a sample was fitted with: shapes, place and scale."""

    params: tuple[Array, ...]


@register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class AndersonResult(Unpacked):
    """A statistic, the values that it has at levels of significance, and the fit.

    Unpacks to the first three.
    """

    unpacked: ClassVar[int] = 3

    statistic: Array
    critical_values: Array
    significance_level: Array
    fit_result: FittedParameters


class KSampleResult(NamedTuple):
    """A statistic, the values that it has at levels of significance, and its p-value."""

    statistic: Array
    critical_values: Array
    pvalue: Array


class GoodnessOfFitResult(NamedTuple):
    """The fit, the statistic, its p-value, and the statistics of all draws."""

    fit_result: FittedParameters
    statistic: Array
    pvalue: Array
    null_distribution: Array


# Fits ----------------------------------------------------------------------------------------


def _of_gumbel(x: Array) -> tuple[Array, Array]:
    """The place and the scale of largest likelihood of `gumbel_r`."""
    mean = jnp.mean(x)
    off = x - jnp.min(x)

    def equation(scale: Array) -> Array:
        weights = jnp.exp(-off / scale[0])
        return mean - jnp.sum(x * weights) / jnp.sum(weights) - scale

    (scale,) = root(equation, jnp.std(x, ddof=1)[None] * (math.sqrt(6) / math.pi)).x
    return jnp.min(x) - scale * jnp.log(jnp.mean(jnp.exp(-off / scale))), scale


def _mirrored(place: Array, scale: Array) -> tuple[Array, Array]:
    return -place, scale


def _of_logistic(x: Array) -> tuple[Array, Array]:
    mean, spread = jnp.mean(x), jnp.std(x, ddof=1)
    z = (x - mean) / spread

    def equations(at: Array) -> Array:
        t = (z - at[0]) / at[1]
        odd = jnp.tanh(t / 2)
        return jnp.stack([jnp.mean(odd), jnp.mean(t * odd) - 1])

    place, scale = root(equations, jnp.array([0.0, 0.5], z.dtype)).x
    return mean + place * spread, scale * spread


def _of_weibull(x: Array) -> tuple[Array, Array, Array]:
    """The shape, the place and the scale of largest likelihood of `weibull_min`.

    NaN where the likelihood has no maximum of a shape above 1 before the least element.
    """
    least, spread = jnp.min(x), jnp.std(x)
    z = (x - least) / spread

    def shape_and_gap(at: Array) -> tuple[Array, Array]:
        return jnp.exp(at[0]), jnp.exp(at[1])

    def negative(at: Array) -> Array:
        m, gap = shape_and_gap(at)
        logs = jnp.log(z + gap)
        log_scale = jnp.log(jnp.mean(jnp.exp(m * logs))) / m
        return -(at[0] + (m - 1) * jnp.mean(logs) - m * log_scale) + 1

    at = minimize(negative, jnp.array([1.0, 0.0], z.dtype), method="BFGS",
                  tol=1e-9).x
    m, gap = shape_and_gap(at)
    bad = (m < 1) | (gap < 1e-6) | (m > 1e4)
    scale = jnp.mean((z + gap) ** m) ** (1 / m)
    fit = m, least - gap * spread, scale * spread
    return tuple(jnp.where(bad, math.nan, v) for v in fit)  # type: ignore[return-value]


_FITS: dict[str, Callable[[Array], tuple[Array, ...]]] = {
    "norm": lambda x: (jnp.mean(x), jnp.std(x, ddof=1)),
    "expon": lambda x: (jnp.zeros_like(x[0]), jnp.mean(x)),
    "logistic": _of_logistic,
    "gumbel_r": _of_gumbel,
    "gumbel_l": lambda x: _mirrored(*_of_gumbel(-x)),
    "weibull_min": _of_weibull,
}
_FAMILIES: dict[str, Any] = {"norm": norm, "expon": expon, "logistic": logistic,
                             "gumbel_r": gumbel_r, "gumbel_l": gumbel_l,
                             "weibull_min": weibull_min}

# Critical values of Stephens (1974, 1977, 1979), and of Lockhart and Stephens (1994) for shapes
_LEVELS = (15, 10, 5, 2.5, 1)
_CRITICAL: dict[str, tuple[Sequence[float], Sequence[float], Callable[[int], float]]] = {
    "norm": (_LEVELS, (0.561, 0.631, 0.752, 0.873, 1.035), lambda n: 1 + 0.75 / n + 2.25 / n**2),
    "expon": (_LEVELS, (0.916, 1.062, 1.321, 1.591, 1.959), lambda n: 1 + 0.6 / n),
    "gumbel_l": ((25, 10, 5, 2.5, 1), (0.474, 0.637, 0.757, 0.877, 1.038),
                 lambda n: 1 + 0.2 / math.sqrt(n)),
    "gumbel_r": ((25, 10, 5, 2.5, 1), (0.474, 0.637, 0.757, 0.877, 1.038),
                 lambda n: 1 + 0.2 / math.sqrt(n)),
    "logistic": ((25, 10, 5, 2.5, 1, 0.5), (0.426, 0.563, 0.66, 0.769, 0.906, 1.01),
                 lambda n: 1 + 0.25 / n),
}
_WEIBULL_LEVELS = (0.5, 0.75, 0.85, 0.9, 0.95, 0.975, 0.99, 0.995)
_WEIBULL = np.array([  # a row for each inverse of the shape, from 0 to 0.5
    [0.292, 0.395, 0.467, 0.522, 0.617, 0.711, 0.836, 0.931],
    [0.295, 0.399, 0.471, 0.527, 0.623, 0.719, 0.845, 0.941],
    [0.298, 0.403, 0.476, 0.534, 0.631, 0.728, 0.856, 0.954],
    [0.301, 0.408, 0.483, 0.541, 0.64, 0.738, 0.869, 0.969],
    [0.305, 0.414, 0.49, 0.549, 0.65, 0.751, 0.885, 0.986],
    [0.309, 0.421, 0.498, 0.559, 0.662, 0.765, 0.902, 1.007],
    [0.314, 0.429, 0.508, 0.57, 0.676, 0.782, 0.923, 1.03],
    [0.32, 0.438, 0.519, 0.583, 0.692, 0.802, 0.947, 1.057],
    [0.327, 0.448, 0.532, 0.598, 0.711, 0.824, 0.974, 1.089],
    [0.334, 0.469, 0.547, 0.615, 0.732, 0.85, 1.006, 1.125],
    [0.342, 0.472, 0.563, 0.636, 0.757, 0.879, 1.043, 1.167]])


def anderson_statistic(family: Any, params: Sequence[ArrayLike], x: Array) -> Array:
    """Anderson and Darling's statistic of a sample along the last axis."""
    n = x.shape[-1]
    ordered = jnp.sort(x, -1)
    weights = jnp.asarray((2 * np.arange(1, n + 1) - 1) / n).astype(x.dtype)
    both = family.logcdf(ordered, *params) + jnp.flip(family.logsf(ordered, *params), -1)
    return -n - jnp.sum(weights * both, -1)


def anderson(x: ArrayLike, dist: str = "norm", *,
             method: str | MonteCarloMethod | None = None
             ) -> AndersonResult | SignificanceResult:
    """Whether a vector is of a family of distributions: Anderson and Darling.

    `dist` is "norm", "expon", "logistic", "gumbel_l" ("gumbel", "extreme1"), "gumbel_r" or
    "weibull_min"; its parameters are fitted. The result has the values of the statistic at levels
    of significance in percent (of "weibull_min" probabilities of smaller ones); with `method`
    "interpolate" or a `MonteCarloMethod` a p-value.
    Source: Stephens, EDF Statistics for Goodness of Fit and Some Comparisons (1974).

    >>> import functrans as ft
    >>> found = ft.scipy.stats.anderson([1.0, 2.0, 3.0, 5.0, 9.0, 4.0])
    >>> round(float(found.statistic), 4), round(float(found.critical_values[2]), 3)
    (0.2879, 0.633)
    """
    name = {"extreme1": "gumbel_l", "gumbel": "gumbel_l"}.get(str(dist).lower(), str(dist).lower())
    one_of("stats.anderson", "dist", name, tuple(_FAMILIES))
    (values,) = real("stats.anderson", x)
    if values.ndim != 1 or values.shape[0] < 2:
        raise ShapeError(f"scipy.stats.anderson: the sample has shape {values.shape}.",
                         where=user_source(), why="it is a vector of two elements or more.")
    n = values.shape[0]
    params = _FITS[name](values)
    statistic = anderson_statistic(_FAMILIES[name], params, values)
    if name == "weibull_min":
        levels: Sequence[float] = _WEIBULL_LEVELS
        place = jnp.clip(1 / params[0], 0, 0.5) * 20
        row = jnp.clip(jnp.floor(place), 0, 9)
        table = jnp.asarray(_WEIBULL).astype(values.dtype)
        at = jnp.where(jnp.isnan(row), 0, row).astype(int)
        critical = table[at] + (place - row) * (table[at + 1] - table[at])
        critical = jnp.round(critical + 0.0005, 3)
    else:
        levels, known, factor = _CRITICAL[name]
        critical = jnp.asarray(np.round(np.array(known) / factor(n), 3)).astype(values.dtype)
    if method is None:
        return AndersonResult(statistic, critical, jnp.asarray(levels, values.dtype),
                              FittedParameters(params))
    if isinstance(method, MonteCarloMethod):
        def of(sample: Array) -> Array:
            return anderson_statistic(_FAMILIES[name], _FITS[name](sample), sample)

        def draw(key: Array, shape: Any) -> Array:
            found: Array = _FAMILIES[name].rvs(key, *params, shape=shape)
            return found

        p = monte_carlo_test(key_of("anderson", method.rng), values, draw, of,
                             n_resamples=method.n_resamples, batch=method.batch,
                             alternative="greater").pvalue
        return SignificanceResult(statistic, p)
    one_of("stats.anderson", "method", method, ("interpolate",))
    part = np.array(levels)
    part = 1 - part if name == "weibull_min" else part / 100
    return SignificanceResult(statistic, jnp.interp(
        statistic, critical, jnp.asarray(part).astype(values.dtype)))


# Several samples -----------------------------------------------------------------------------

_SIGNIFICANCE = (0.25, 0.1, 0.05, 0.025, 0.01, 0.005, 0.001)


def _between_samples(parts: Sequence[Array], variant: str) -> Array:
    """The statistic of samples along their last axes, before it is made standard."""
    together = jnp.sort(jnp.concatenate(parts, -1), -1)
    size = together.shape[-1]
    z = together[..., :, None]
    if variant == "continuous":
        up_to = jnp.arange(1, size + 1, dtype=together.dtype)
        below = up_to
    else:
        below, up_to = (jnp.sum(v, -1).astype(together.dtype) for v in (
            together[..., None, :] < z, together[..., None, :] <= z))
    tied = up_to - below
    total: Any = 0.0
    for p in parts:
        n = p.shape[-1]
        less, most = (jnp.sum(v, -1).astype(together.dtype) for v in (
            p[..., None, :] < z, p[..., None, :] <= z))
        if variant == "midrank":
            at, own = below + tied / 2, (less + most) / 2
            bottom = at * (size - at) - size * tied / 4
        else:
            at, own = up_to, most
            bottom = at * (size - at)
        # the last is left out, of which nothing is above
        inside = bottom > 0
        terms = (size * own - at * n) ** 2 / jnp.where(inside, bottom, 1)
        total = total + jnp.sum(jnp.where(inside, terms, 0), -1) / (size * n)
    return jnp.asarray(total * (size - 1) / size if variant == "midrank" else total)


def _spread_of_samples(sizes: Sequence[int]) -> float:
    k, size = len(sizes), sum(sizes)
    inverse = sum(1 / n for n in sizes)
    partial = np.cumsum(1 / np.arange(size - 1, 1, -1))
    h = float(partial[-1]) + 1
    g = float(np.sum(partial / np.arange(2, size)))
    a = (4 * g - 6) * (k - 1) + (10 - 6 * g) * inverse
    b = (2 * g - 4) * k**2 + 8 * h * k + (2 * g - 14 * h - 4) * inverse - 8 * h + 4 * g - 6
    c = (6 * h + 2 * g - 2) * k**2 + (4 * h - 4 * g + 6) * k + (2 * h - 6) * inverse + 4 * h
    d = (2 * h + 6) * k**2 - 4 * h * k
    return math.sqrt((a * size**3 + b * size**2 + c * size + d) / (
        (size - 1.0) * (size - 2.0) * (size - 3.0)))


def anderson_ksamp(samples: Sequence[ArrayLike], midrank: bool = True, *,
                   variant: str | None = None, method: PermutationMethod | None = None
                   ) -> KSampleResult | SignificanceResult:
    """Whether vectors have one distribution: Anderson and Darling's test of k samples.

    `variant` is "midrank" (the default) or "right" (that without `midrank`), which count equal
    elements, or "continuous"; the result of one that is given has no critical values. p-values are
    interpolated, between 0.001 and 0.25; `method`, a `PermutationMethod`, has no such ends.
    Source: Scholz and Stephens, K-Sample Anderson-Darling Tests (1987).

    >>> import functrans as ft
    >>> found = ft.scipy.stats.anderson_ksamp([[1.0, 2.0, 3.0, 5.0], [4.0, 6.0, 7.0, 9.0]])
    >>> round(float(found.statistic), 4), round(float(found.pvalue), 4)
    (2.4343, 0.0326)
    """
    how = variant or ("midrank" if midrank else "right")
    one_of("stats.anderson_ksamp", "variant", how, ("midrank", "right", "continuous"))
    parts = inexact(*samples)
    if len(parts) < 2 or any(p.ndim != 1 or not p.size for p in parts):
        raise ShapeError("scipy.stats.anderson_ksamp: the samples have shapes "
                         f"{[p.shape for p in parts]}.", where=user_source(),
                         why="they are two vectors or more.", fix="anderson_ksamp([a, b])")
    sizes = [p.shape[0] for p in parts]
    if sum(sizes) < 4:
        raise ShapeError(f"scipy.stats.anderson_ksamp: there are {sum(sizes)} elements.",
                         where=user_source(), why="four or more are needed.")
    m = len(parts) - 1
    raw = _between_samples(parts, how)
    statistic = (raw - m) / _spread_of_samples(sizes)
    b0 = np.array([0.675, 1.281, 1.645, 1.96, 2.326, 2.573, 3.085])
    b1 = np.array([-0.245, 0.25, 0.678, 1.149, 1.822, 2.364, 3.615])
    b2 = np.array([-0.105, -0.305, -0.362, -0.391, -0.396, -0.345, -0.154])
    critical = b0 + b1 / math.sqrt(m) + b2 / m
    if method is None:
        fit = np.polyfit(critical, np.log(_SIGNIFICANCE), 2)
        p = jnp.exp(fit[0] * statistic**2 + fit[1] * statistic + fit[2])
        p = jnp.where(statistic < critical[0], _SIGNIFICANCE[0], jnp.where(
            statistic > critical[-1], _SIGNIFICANCE[-1], p))
    else:
        key, settings = resampling_of("anderson_ksamp", method)
        p = permutation_test(key, parts, lambda *v, axis: _between_samples(v, how),
                             vectorized=True, alternative="greater", axis=-1, **settings).pvalue
    if variant is not None:
        return SignificanceResult(statistic, p)
    return KSampleResult(statistic, jnp.asarray(critical).astype(raw.dtype), p)


# Families with parameters --------------------------------------------------------------------


def _fit(family: Any, names: Sequence[str], x: Array, fixed: Mapping[str, Any],
         guessed: Mapping[str, Any]) -> tuple[Array, ...]:
    """The parameters of largest likelihood of those that are not fixed, for one vector."""
    free = [n for n in names if n not in fixed]
    mean, spread = jnp.mean(x), jnp.std(x)
    if family is norm and not fixed:
        return mean, jnp.std(x, ddof=1)
    start = {**dict.fromkeys(names, 1.0), "loc": jnp.min(x) - 0.1 * spread if family in (
        expon, weibull_min) else mean, "scale": spread, **guessed}
    bounded = [n for n in free if n == "scale" or n in getattr(family, "positive", ())]

    def whole(at: Array) -> list[Any]:
        given = {n: jnp.exp(at[i]) if n in bounded else at[i] for i, n in enumerate(free)}
        return [jnp.asarray(fixed[n]).astype(x.dtype) if n in fixed else given[n] for n in names]

    if not free:
        return tuple(whole(jnp.zeros(0, x.dtype)))
    first = jnp.stack([(jnp.log if n in bounded else jnp.asarray)(
        jnp.asarray(start[n]).astype(x.dtype)) for n in free])
    at = minimize(lambda v: -jnp.mean(family.logpdf(x, *whole(v))), first, method="BFGS").x
    return tuple(whole(at))


def _statistics() -> dict[str, Callable[..., Array]]:
    def levels(family: Any, params: Any, x: Array) -> tuple[Array, int]:
        return family.cdf(jnp.sort(x, -1), *params), x.shape[-1]

    def ks(family: Any, params: Any, x: Array) -> Array:
        u, n = levels(family, params, x)
        steps = jnp.arange(n, dtype=u.dtype)
        return jnp.maximum(jnp.max((steps + 1) / n - u, -1), jnp.max(u - steps / n, -1))

    def cvm(family: Any, params: Any, x: Array) -> Array:
        u, n = levels(family, params, x)
        return 1 / (12 * n) + jnp.sum(((2 * jnp.arange(1, n + 1, dtype=u.dtype) - 1) / (
            2 * n) - u) ** 2, -1)

    def filliben(family: Any, params: Any, x: Array) -> Array:
        n = x.shape[-1]
        k = jnp.arange(1, n + 1, dtype=x.dtype)
        # the medians of ordered uniform variables, which are beta variables
        middle = beta.ppf(jnp.full_like(k, 0.5), k, n + 1 - k)
        a, b = jnp.sort(x, -1), family.ppf(middle, *params)
        a, b = a - jnp.mean(a), b - jnp.mean(b)
        return jnp.sum(a * b) / jnp.sqrt(jnp.sum(a * a) * jnp.sum(b * b))

    return {"ad": anderson_statistic, "ks": ks, "cvm": cvm, "filliben": filliben}


def goodness_of_fit(dist: DistributionFamily, data: ArrayLike, *, known_params: Parameters = None,
                    fit_params: Parameters = None,
                    guessed_params: Parameters = None,
                    statistic: str | Callable[..., ArrayLike] = "ad", n_mc_samples: int = 9999,
                    rng: Rng = None, random_state: Rng = None) -> GoodnessOfFitResult:
    """Whether a vector is of a family of distributions, whose parameters are estimated.

    `known_params` are those of the hypothesis, others are fitted to the sample, and to each of
    `n_mc_samples` draws of the fit, from `guessed_params`; `fit_params` are those that are known in
    these fits alone. `statistic` is "ad", "ks", "cvm" or "filliben", or a function of the family,
    its parameters and the vector, of which large values speak against the family.
    Source: Stute, Manteiga and Quindimil, Bootstrap Based Goodness-of-Fit Tests (1993).

    >>> import functrans as ft
    >>> from functrans.scipy import stats
    >>> x = ft.numpy.array([1.0, 2.0, 3.0, 5.0, 9.0, 4.0])
    >>> found = stats.goodness_of_fit(stats.norm, x, n_mc_samples=199, rng=0)
    >>> round(float(found.statistic), 3), bool(found.pvalue > 0.2)
    (0.288, True)
    """
    known_statistics = _statistics()
    if not callable(statistic):
        one_of("stats.goodness_of_fit", "statistic", statistic, tuple(known_statistics))
    if not hasattr(dist, "logpdf"):
        raise ArgumentError(f"scipy.stats.goodness_of_fit: dist is {shown(dist)}.",
                            where=user_source(), why="it is a family of continuous distributions.",
                            fix="ft.scipy.stats.norm")
    (x,) = real("stats.goodness_of_fit", data)
    if x.ndim != 1 or x.shape[0] < 2:
        raise ShapeError(f"scipy.stats.goodness_of_fit: the sample has shape {x.shape}.",
                         where=user_source(), why="it is a vector of two elements or more.")
    family: Any = dist
    names = [*family.shapes, "loc", "scale"]
    known, fixed = dict(known_params or {}), dict(fit_params or {})
    if extra := sorted({*known, *fixed, *(guessed_params or {})} - set(names)):
        raise ArgumentError(f"scipy.stats.goodness_of_fit: {extra[0]!r} is no parameter of "
                            f"{dist!r}.", where=user_source(), why=f"they are {names}.")
    guessed = dict(guessed_params or {})
    params = _fit(family, names, x, {**fixed, **known}, guessed)

    def of(sample: Array) -> Array:
        again = _fit(family, names, sample, {**fixed, **known}, guessed)
        if callable(statistic):
            return jnp.asarray(statistic(dist, again, sample))
        return known_statistics[statistic](family, again, sample)

    key = key_of("goodness_of_fit", random_state if rng is None else rng)
    observed = of(x)
    draws = family.rvs(key, *params, shape=(int(n_mc_samples), x.shape[0])).astype(x.dtype)
    null = vmap(of, chunk_size=min(int(n_mc_samples), 4096))(draws)
    hits = null <= observed if statistic == "filliben" else null >= observed
    p = (jnp.sum(hits) + 1) / (null.shape[0] + 1)
    return GoodnessOfFitResult(FittedParameters(params), observed, p.astype(x.dtype), null)


publish(globals(), __all__)
