"""Whether samples have one scale, by ranks, and a transform for it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.source import user_source
from functrans.scipy import special
from functrans.scipy.arguments import inexact
from functrans.scipy.stats.comparisons import centred, known_sizes
from functrans.scipy.stats.methods import PermutationMethod
from functrans.scipy.stats.missing import Lines
from functrans.scipy.stats.ranks import exact_pvalue
from functrans.scipy.stats.resampling import PermutationTestResult, permutation_test, resampling_of
from functrans.scipy.stats.results import SignificanceResult, check_side, chi2_tail, normal_pvalue
from functrans.scipy.stats.samples import over_axis
from functrans.scipy.stats.statistics import rankdata
from functrans.typing import Array, ArrayLike

__all__ = ["ansari", "bws_test", "fligner", "mood", "obrientransform"]

_FEW = 55  # elements up to which the distribution of Ansari's statistic is counted
_OPPOSITE = {"less": "greater", "greater": "less", "two-sided": "two-sided"}


def tie_sizes(x: Array) -> Array:
    """How many elements of the last axis are equal to each."""
    first, last = (rankdata(x, method, axis=-1) for method in ("min", "max"))
    return (last - first + 1).astype(x.dtype)


@lru_cache(maxsize=64)
def _counts_of_scores(n: int, m: int) -> Any:
    """In how many ways n of n + m elements have each sum of min(rank, n + m + 1 - rank)."""
    size = n + m
    scores = [min(i, size + 1 - i) for i in range(1, size + 1)]
    counts = np.zeros((n + 1, sum(sorted(scores)[-n:]) + 1))
    counts[0, 0] = 1
    for score in scores:
        counts[1:, score:] += counts[:-1, :counts.shape[1] - score].copy()
    return counts[n]


@over_axis("x", "y")
def ansari(x: ArrayLike, y: ArrayLike, alternative: str = "two-sided", *, axis: int | None = 0,
           nan_policy: str = "propagate", keepdims: bool = False) -> SignificanceResult:
    """Whether two samples have one scale, by ranks that count from both ends.

    "greater" is a larger scale of x. The p-value is exact for less than 55 elements of each without
    ties, lane by lane.
    Source: Ansari and Bradley, Rank-Sum Tests for Dispersions (1960).

    >>> import functrans as ft
    >>> ab, p = ft.scipy.stats.ansari([1.0, 5.0, 9.0, 12.0], [4.0, 6.0, 7.0, 8.0])
    >>> float(ab), round(float(p), 4)
    (7.0, 0.1429)
    """
    check_side("ansari", alternative)
    a, b = inexact(x, y)
    n, m = a.shape[-1], b.shape[-1]
    size = n + m
    together = jnp.concatenate([a, b], -1)
    ranks = rankdata(together, axis=-1).astype(a.dtype)
    scores = jnp.minimum(ranks, size + 1 - ranks)
    total = jnp.sum(scores[..., :n], -1)
    square = jnp.sum(scores**2, -1)
    if size % 2:
        mean = n * (size + 1.0) ** 2 / (4 * size)
        variance = n * m * (16 * size * square - (size + 1) ** 4) / (16.0 * size**2 * (size - 1))
    else:
        mean = n * (size + 2.0) / 4
        variance = n * m * (16 * square - size * (size + 2) ** 2) / (16.0 * size * (size - 1))
    p = normal_pvalue((mean - total) / jnp.sqrt(variance), alternative)
    if max(n, m) < _FEW:
        exact = exact_pvalue(total, _counts_of_scores(n, m), _OPPOSITE[alternative])
        p = jnp.where(jnp.all(tie_sizes(together) == 1, -1), exact, p)
    return SignificanceResult(total, p)


@over_axis("x", "y")
def mood(x: ArrayLike, y: ArrayLike, axis: int | None = 0, alternative: str = "two-sided", *,
         nan_policy: str = "propagate", keepdims: bool = False) -> SignificanceResult:
    """Whether two samples have one scale, by the squared distances of ranks from their middle.

    Of equal elements the scores are averaged. Three elements are needed together.
    Source: Mood (1954); Mielke, Note on Some Squared Rank Tests with Existing Ties (1967).

    >>> import functrans as ft
    >>> z, p = ft.scipy.stats.mood([1.0, 5.0, 9.0, 12.0], [4.0, 6.0, 7.0, 8.0])
    >>> round(float(z), 4), round(float(p), 4)
    (1.7321, 0.0833)
    """
    check_side("mood", alternative)
    a, b = inexact(x, y)
    n, m = a.shape[-1], b.shape[-1]
    size = n + m
    if size < 3:
        raise ShapeError(f"scipy.stats.mood: there are {size} elements.", where=user_source(),
                         why="three are needed in both samples together.")
    together = jnp.concatenate([a, b], -1)
    off = rankdata(together, axis=-1).astype(a.dtype) - (size + 1) / 2
    scores = off * off + (tie_sizes(together) ** 2 - 1) / 12
    mean = jnp.mean(scores, -1, keepdims=True)
    variance = n * m / (size * (size - 1)) * jnp.sum((scores - mean) ** 2, -1)
    z = (jnp.sum(scores[..., :n], -1) - n * mean[..., 0]) / jnp.sqrt(variance)
    return SignificanceResult(z, normal_pvalue(z, alternative))


@over_axis("*samples", masks=known_sizes)
def fligner(*samples: ArrayLike, center: str = "median", proportiontocut: float = 0.05,
            axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
            ) -> SignificanceResult:
    """Whether samples have one variance, by the ranks of their distances from the middle.

    `center` is as in `levene`. Source: Fligner and Killeen (1976); Conover, Johnson and Johnson
    (1981).

    >>> import functrans as ft
    >>> x, p = ft.scipy.stats.fligner([1.0, 2.0, 3.0, 5.0], [3.0, 4.0, 9.0, 15.0])
    >>> round(float(x), 4), round(float(p), 4)
    (4.0236, 0.0449)
    """
    lines = Lines(nan_policy == "omit")
    parts = centred("fligner", samples, axis, center, proportiontocut, lines)
    sizes = [lines.size(p) for p, _ in parts]
    ends = np.cumsum([p.shape[-1] for p, _ in parts])[:-1].tolist()
    together = jnp.concatenate([jnp.abs(p - middle) for p, middle in parts], -1)
    ranks = rankdata(together, axis=-1, nan_policy=nan_policy).astype(together.dtype)
    top: Any = jnp.asarray(sum(sizes) + 1.0).astype(together.dtype)
    scores = special.ndtri(ranks / (2 * top[..., None]) + 0.5)
    each = jnp.split(scores, ends, -1)
    mean = lines.mean(scores)
    total: Any = sum(n * (lines.mean(s) - mean) ** 2 for n, s in zip(sizes, each))
    statistic = total / lines.var(scores, 1)
    return SignificanceResult(statistic, chi2_tail(statistic, len(parts) - 1))


def obrientransform(*samples: ArrayLike) -> Array | list[Array]:
    """Samples whose means are the variances of those given, for `f_oneway` to compare.

    Vectors of one length are the rows of an array, others stay a list. Each has 3 elements or more.
    Source: Maxwell and Delaney, Designing Experiments and Analyzing Data (1990).

    >>> import functrans as ft
    >>> t = ft.scipy.stats.obrientransform([1.0, 2.0, 4.0], [3.0, 5.0, 4.0])
    >>> t.shape, round(float(t[0].mean()), 4), round(float(ft.numpy.var(ft.numpy.array(
    ...     [1.0, 2.0, 4.0]), ddof=1)), 4)
    ((2, 3), 2.3333, 2.3333)
    """
    found = []
    for x in inexact(*samples):
        if x.ndim != 1 or x.shape[0] < 3:
            raise ShapeError(f"scipy.stats.obrientransform: a sample has shape {x.shape}.",
                             where=user_source(), why="samples are vectors of 3 elements or more.")
        n = x.shape[0]
        square = (x - jnp.mean(x)) ** 2
        found.append(((n - 1.5) * n * square - 0.5 * jnp.sum(square)) / ((n - 1) * (n - 2)))
    if not found:
        raise ArgumentError("scipy.stats.obrientransform: there is no sample.",
                            where=user_source(), fix="obrientransform(a, b)")
    return jnp.stack(found) if len({f.shape for f in found}) == 1 else found


def bws_test(x: ArrayLike, y: ArrayLike, *, alternative: str = "two-sided",
             method: PermutationMethod | None = None) -> PermutationTestResult:
    """Whether two samples have one distribution, by ranks weighted towards both ends.

    x and y are vectors. The p-value is that of permutations, all where they are few; `method` is a
    `PermutationMethod`.
    Source: Baumgartner, Weiss and Schindler, Biometrics 54 (1998).

    >>> import functrans as ft
    >>> found = ft.scipy.stats.bws_test([1.0, 2.0, 4.0, 3.0], [6.0, 5.0, 7.0, 9.0])
    >>> round(float(found.statistic), 4), round(float(found.pvalue), 4)
    (3.7109, 0.0286)
    """
    check_side("bws_test", alternative)
    a, b = inexact(x, y)
    if a.ndim != 1 or b.ndim != 1 or not a.size or not b.size:
        raise ShapeError(f"scipy.stats.bws_test: the samples have shapes {a.shape} and {b.shape}.",
                         where=user_source(), why="they are vectors.")
    n, m = a.shape[0], b.shape[0]
    ranks = rankdata(jnp.concatenate([a, b])).astype(a.dtype)

    def part(own: Array, size: int, other: int) -> Array:
        place = jnp.arange(1, size + 1, dtype=own.dtype)
        off = jnp.sort(own, -1) - (n + m) / size * place
        near = place / (size + 1)
        weights = near * (1 - near) * other * (n + m) / size
        return jnp.mean(off * (off if alternative == "two-sided" else jnp.abs(off)) / weights, -1)

    def statistic(u: Array, v: Array, axis: int) -> Array:
        one, two = part(u, n, m), part(v, m, n)
        return ((one + two) if alternative == "two-sided" else (one - two)) / 2

    key, settings = resampling_of("bws_test", method)
    return permutation_test(key, (ranks[:n], ranks[n:]), statistic, vectorized=True, alternative=(
        "less" if alternative == "less" else "greater"), axis=-1, **settings)


publish(globals(), __all__)
