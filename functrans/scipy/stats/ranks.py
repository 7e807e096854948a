"""Tests by ranks and by distribution functions.

Ranks have no derivatives; statistics that are made of values have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.scipy import special
from functrans.scipy.arguments import one_of
from functrans.scipy.stats.comparisons import groups
from functrans.scipy.stats.missing import Lines
from functrans.scipy.stats.results import SIDES, SignificanceResult, chi2_tail, normal_pvalue
from functrans.scipy.stats.samples import over_axis
from functrans.scipy.stats.statistics import rankdata
from functrans.typing import Array, ArrayLike

__all__ = ["brunnermunzel", "friedmanchisquare", "kruskal", "ks_1samp", "ks_2samp",
           "kstest", "mannwhitneyu", "ranksums", "wilcoxon"]


def _tie_term(x: Array) -> Array:
    """sum t**3 - t over groups of t equal elements of the last axis."""
    counts = jnp.sum(x[..., :, None] == x[..., None, :], -1).astype(x.dtype)
    # NaN is not even itself
    return jnp.sum(jnp.where(counts > 0, counts * counts - 1, 0), -1)


@over_axis("*samples", masks=True)
def kruskal(*samples: ArrayLike, nan_policy: str = "propagate", axis: int | None = 0,
            keepdims: bool = False) -> SignificanceResult:
    """Whether samples have one median, by ranks: Kruskal and Wallis.

    >>> import functrans as ft
    >>> h, p = ft.scipy.stats.kruskal([1.0, 3.0, 5.0], [2.0, 4.0, 6.0])
    >>> round(float(h), 4)
    0.4286
    """
    parts = groups("kruskal", samples, axis)
    together = jnp.concatenate(parts, -1)
    lines = Lines(nan_policy == "omit")
    n = lines.size(together)
    ranks = rankdata(together, axis=-1, nan_policy=nan_policy).astype(together.dtype)
    total: Any = 0.0
    start = 0
    for p in parts:
        end = start + p.shape[-1]
        total = total + lines.sum(ranks[..., start:end]) ** 2 / lines.size(p)
        start = end
    h = 12 / (n * (n + 1)) * total - 3 * (n + 1)
    h = h / (1 - _tie_term(together) / (n**3 - n))
    return SignificanceResult(h, chi2_tail(h, len(parts) - 1))


@over_axis("*samples", paired=True)
def friedmanchisquare(*samples: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
                      keepdims: bool = False) -> SignificanceResult:
    """Whether repeated measurements have one distribution: Friedman's test of 3 or more.

    >>> import functrans as ft
    >>> a = ft.numpy.array([1.0, 2.0, 3.0])
    >>> c, p = ft.scipy.stats.friedmanchisquare(a, a + 1, a + 2)
    >>> round(float(c), 4)
    6.0
    """
    parts = groups("friedmanchisquare", samples, axis, 3)
    table = jnp.stack(parts, -1)
    n, k = table.shape[-2:]
    ranks = rankdata(table, axis=-1).astype(table.dtype)
    ties = jnp.sum(_tie_term(table), -1)
    c = 1 - ties / (k * (k * k - 1) * n)
    total = jnp.sum(jnp.sum(ranks, -2) ** 2, -1)
    chi = (12 / (k * n * (k + 1)) * total - 3 * n * (k + 1)) / c
    return SignificanceResult(chi, chi2_tail(chi, k - 1))


@over_axis("x", "y", masks=True)
def ranksums(x: ArrayLike, y: ArrayLike, alternative: str = "two-sided", *, axis: int | None = 0,
             nan_policy: str = "propagate", keepdims: bool = False) -> SignificanceResult:
    """Whether two samples have one distribution, by the normal limit of the sum of ranks.

    >>> import functrans as ft
    >>> z, p = ft.scipy.stats.ranksums([1.0, 3.0, 5.0], [2.0, 4.0, 6.0])
    >>> round(float(z), 4)
    -0.6547
    """
    one_of("stats.ranksums", "alternative", alternative, SIDES)
    a, b = groups("ranksums", (x, y), axis)
    lines = Lines(nan_policy == "omit")
    n, m = lines.size(a), lines.size(b)
    ranks = rankdata(jnp.concatenate([a, b], -1), axis=-1, nan_policy=nan_policy).astype(a.dtype)
    total = lines.sum(ranks[..., :a.shape[-1]])
    spread = jnp.sqrt(jnp.asarray(n * m * (n + m + 1) / 12, a.dtype))
    z = (total - n * (n + m + 1) / 2) / spread
    return SignificanceResult(z, normal_pvalue(z, alternative))


def _counts_of_sums(parts: list[int]) -> Any:
    """How many subsets of distinct numbers have each sum."""
    counts = np.zeros(sum(parts) + 1)
    counts[0] = 1
    for part in parts:
        counts[part:] += counts[:len(counts) - part].copy()
    return counts


def _counts_of_u(n: int, m: int) -> Any:
    """How many orders of two samples have each U: Gaussian binomial coefficients."""
    counts = np.zeros(n * m + 1)
    counts[0] = 1
    for i in range(1, min(n, m) + 1):
        top = max(n, m) + i
        for j in range(n * m, top - 1, -1):  # times 1 - q**top
            counts[j] -= counts[j - top]
        for j in range(i, n * m + 1):  # over 1 - q**i
            counts[j] += counts[j - i]
    return counts


def exact_pvalue(statistic: Array, counts: Any, alternative: str) -> Array:
    """The p-value of a whole statistic whose distribution is symmetric, by its counts."""
    below = np.cumsum(counts) / counts.sum()
    above = np.cumsum(counts[::-1])[::-1] / counts.sum()
    lower, upper = (jnp.asarray(v).astype(statistic.dtype) for v in (below, above))
    last = len(counts) - 1
    less = lower[jnp.clip(jnp.floor(statistic).astype(int), 0, last)]
    greater = upper[jnp.clip(jnp.ceil(statistic).astype(int), 0, last)]
    if alternative == "two-sided":
        return jnp.minimum(1, 2 * jnp.minimum(less, greater))
    return less if alternative == "less" else greater


@over_axis("x", "y", masks=lambda given: bool(given["method"] == "asymptotic"))
def mannwhitneyu(x: ArrayLike, y: ArrayLike, use_continuity: bool = True,
                 alternative: str = "two-sided", axis: int | None = 0, method: str = "auto", *,
                 nan_policy: str = "propagate", keepdims: bool = False) -> SignificanceResult:
    """Whether two samples have one distribution: U counts pairs with the first larger, ties half.

    `method` is "asymptotic", "exact" (for samples without ties), or "auto": exact where a sample
    has 8 elements or fewer and there are no ties, lane by lane.
    Source: Mann and Whitney, Ann. Math. Stat. 18 (1947).

    >>> import functrans as ft
    >>> u, p = ft.scipy.stats.mannwhitneyu([1.0, 3.0, 5.0], [2.0, 4.0, 6.0])
    >>> float(u), round(float(p), 4)
    (3.0, 0.7)
    """
    one_of("stats.mannwhitneyu", "alternative", alternative, SIDES)
    one_of("stats.mannwhitneyu", "method", method, ("auto", "asymptotic", "exact"))
    a, b = groups("mannwhitneyu", (x, y), axis)
    lines = Lines(nan_policy == "omit")
    n, m = lines.size(a), lines.size(b)
    together = jnp.concatenate([a, b], -1)
    ranks = rankdata(together, axis=-1, nan_policy=nan_policy).astype(a.dtype)
    u = lines.sum(ranks[..., :a.shape[-1]]) - n * (n + 1) / 2
    ties = _tie_term(together)
    larger = u if alternative == "greater" else n * m - u
    if alternative == "two-sided":
        larger = jnp.maximum(u, n * m - u)
    spread = jnp.sqrt(n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1))))
    z = (larger - n * m / 2 - (0.5 if use_continuity else 0)) / spread
    p = special.ndtr(-z) * (2 if alternative == "two-sided" else 1)
    p = jnp.clip(p, 0, 1)
    if method == "exact" or (method == "auto" and min(n, m) <= 8):
        exact = exact_pvalue(u, _counts_of_u(n, m), alternative)
        p = exact if method == "exact" else jnp.where(ties == 0, exact, p)
    return SignificanceResult(u, p)


@over_axis("x", "y", paired=True)
def wilcoxon(x: ArrayLike, y: ArrayLike | None = None, zero_method: str = "wilcox",
             correction: bool = False, alternative: str = "two-sided", method: str = "auto", *,
             axis: int | None = 0, nan_policy: str = "propagate",
             keepdims: bool = False) -> SignificanceResult:
    """Whether differences are symmetric about 0, by signed ranks.

    `zero_method` is "wilcox" (zeros are left out), "zsplit" or "pratt"; `method` is "approx",
    "exact" (without ties and zeros) or "auto": exact up to 50 differences where it is.
    Source: Wilcoxon, Biometrics Bulletin 1 (1945).

    >>> import functrans as ft
    >>> w, p = ft.scipy.stats.wilcoxon([1.0, -2.0, 3.0, 4.0, 5.0])
    >>> float(w), round(float(p), 4)
    (2.0, 0.1875)
    """
    one_of("stats.wilcoxon", "alternative", alternative, SIDES)
    one_of("stats.wilcoxon", "zero_method", zero_method, ("wilcox", "zsplit", "pratt"))
    how = {"asymptotic": "approx"}.get(method, method)
    one_of("stats.wilcoxon", "method", how, ("auto", "approx", "exact"))
    if y is None:
        (d,) = groups("wilcoxon", (x,), axis, 1)
    else:
        first, second = groups("wilcoxon", (x, y), axis)
        d = first - second
    n = d.shape[-1]
    size = jnp.abs(d)
    zero = d == 0
    zeros = jnp.sum(zero, -1).astype(d.dtype)
    ranks = rankdata(size, axis=-1).astype(d.dtype)
    if zero_method == "wilcox":
        ranks = jnp.where(zero, 0, ranks - zeros[..., None])
    elif zero_method == "pratt":
        ranks = jnp.where(zero, 0, ranks)
    plus, minus = jnp.sum(ranks * (d > 0), -1), jnp.sum(ranks * (d < 0), -1)
    if zero_method == "zsplit":
        half = jnp.sum(ranks * zero, -1) / 2
        plus, minus = plus + half, minus + half
    count = n - zeros if zero_method == "wilcox" else jnp.full_like(zeros, n)
    mean, square = count * (count + 1) / 4, count * (count + 1) * (2 * count + 1)
    tied = _tie_term(size)
    if zero_method == "pratt":
        mean = mean - zeros * (zeros + 1) / 4
        square = square - zeros * (zeros + 1) * (2 * zeros + 1)
    if zero_method != "zsplit":
        tied = tied - zeros * (zeros * zeros - 1)
    spread = jnp.sqrt((square - tied / 2) / 24)
    off = plus - mean
    if correction:
        way = jnp.sign(off) if alternative == "two-sided" else (
            1 if alternative == "greater" else -1)
        off = off - 0.5 * way
    p = normal_pvalue(off / spread, alternative)
    if how == "exact" or (how == "auto" and n <= 50):
        exact = exact_pvalue(plus, _counts_of_sums(list(range(1, n + 1))), alternative)
        plain = (_tie_term(size) == 0) & (zeros == 0)
        p = exact if how == "exact" else jnp.where(plain, exact, p)
    statistic = jnp.minimum(plus, minus) if alternative == "two-sided" else plus
    return SignificanceResult(statistic, p)


@over_axis("x", "y", masks=True)
def brunnermunzel(x: ArrayLike, y: ArrayLike, alternative: str = "two-sided",
                  distribution: str = "t", nan_policy: str = "propagate", *, axis: int | None = 0,
                  keepdims: bool = False) -> SignificanceResult:
    """Whether elements of two samples of any variances are equally often the larger.

    >>> import functrans as ft
    >>> w, p = ft.scipy.stats.brunnermunzel([1.0, 2.0, 3.0, 5.0], [2.0, 4.0, 6.0, 7.0])
    >>> round(float(w), 3)
    1.543
    """
    one_of("stats.brunnermunzel", "alternative", alternative, SIDES)
    one_of("stats.brunnermunzel", "distribution", distribution, ("t", "normal"))
    a, b = groups("brunnermunzel", (x, y), axis)
    lines = Lines(nan_policy == "omit")
    n, m, cut = lines.size(a), lines.size(b), a.shape[-1]
    ranks = rankdata(jnp.concatenate([a, b], -1), axis=-1, nan_policy=nan_policy).astype(a.dtype)
    parts = [(ranks[..., :cut], a), (ranks[..., cut:], b)]
    means = [lines.mean(r) for r, _ in parts]
    squares = [lines.var(r - rankdata(own, axis=-1, nan_policy=nan_policy).astype(a.dtype), 1)
               for r, own in parts]
    s1, s2 = n * squares[0], m * squares[1]
    w = n * m * (means[1] - means[0]) / ((n + m) * jnp.sqrt(s1 + s2))
    if distribution == "normal":
        return SignificanceResult(w, normal_pvalue(-w, alternative))
    df = (s1 + s2) ** 2 / (s1 * s1 / (n - 1) + s2 * s2 / (m - 1))
    if alternative == "two-sided":
        return SignificanceResult(w, 2 * special.stdtr(df, -jnp.abs(w)))
    return SignificanceResult(w, special.stdtr(df, -w if alternative == "less" else w))


# Kolmogorov and Smirnov ----------------------------------------------------------------------


def one_sided(d: Array, n: int) -> Array:
    """The probability that an empirical distribution is d above: Birnbaum and Tingey (1951)."""
    j = np.arange(n + 1.0)
    ways = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in j])
    at = d[..., None] + jnp.asarray(j / n).astype(d.dtype)
    rest = 1 - at
    inside = (rest >= 0) & (at > 0)
    logs = jnp.asarray(ways).astype(d.dtype) + jnp.asarray(j - 1).astype(d.dtype) * jnp.log(
        jnp.where(inside, at, 1)) + special.xlogy(jnp.asarray(n - j).astype(d.dtype),
                                                  jnp.where(inside, rest, 0))
    total = d * jnp.sum(jnp.where(inside, jnp.exp(jnp.where(inside, logs, 0)), 0), -1)
    return jnp.where(d <= 0, 1.0, jnp.where(d >= 1, 0.0, jnp.clip(total, 0, 1)))


def two_sided(d: Array, n: int, far: float | None = None, below: bool = False) -> Array:
    """The probability that the largest difference of n is d or more, or the one `below` d.

    From n d**2 = `far` on it is twice that of one side.
    Source: Marsaglia, Tsang and Wang, J. Stat. Softw. 8 (2003).
    """
    limit = _FAR if far is None else far
    most = min(math.ceil(math.sqrt(limit * n)) + 1, n + 1)

    def near(d: Array) -> Array:
        k = jnp.floor(n * d) + 1
        h = k - n * d
        m = 2 * k - 1
        size = 2 * most - 1
        i, j = np.indices((size, size))
        factorials = np.array([math.lgamma(v + 1.0) for v in range(size + 1)])
        band = np.exp(-factorials[np.clip(i - j + 1, 0, size)]) * (i - j + 1 >= 0)
        matrix = jnp.asarray(band).astype(d.dtype)
        powers = h ** jnp.arange(1, size + 1)
        index = jnp.arange(size)
        over = jnp.exp(-jnp.asarray(factorials[1:]).astype(d.dtype))
        # the last row is the first column from the bottom up
        column = matrix[:, 0] - powers * over
        row_at = jnp.clip(m - 1 - index, 0, size - 1).astype(int)
        row = matrix[row_at, 0] - powers[row_at] * over[row_at]
        last = (m - 1).astype(int)
        corner = (1 - 2 * h**m + jnp.where(h > 0.5, jnp.maximum(2 * h - 1, 0) ** m, 0)) * jnp.exp(
            -special.gammaln(m + 1))
        matrix = matrix.at[:, 0].set(column).at[last].set(row).at[last, 0].set(corner)
        inside = index < m
        matrix = jnp.where(inside[:, None] & inside, matrix, 0)
        whole, scale = jnp.eye(size, dtype=d.dtype), jnp.zeros((), d.dtype)
        square, square_scale = matrix, jnp.zeros((), d.dtype)
        exponent = n
        while exponent:
            if exponent & 1:
                whole = jnp.matmul(whole, square, precision="highest")
                scale = scale + square_scale
            square = jnp.matmul(square, square, precision="highest")
            largest = jnp.max(square)
            square, square_scale = square / largest, 2 * square_scale + jnp.log(largest)
            exponent >>= 1
        at = (k - 1).astype(int)
        log_ways = math.lgamma(n + 1) - n * math.log(n)
        return whole[at, at] * jnp.exp(scale + log_ways)

    flat = d.reshape(-1)
    is_far = n * flat * flat > limit
    outer = jnp.minimum(1, 2 * one_sided(flat, n))
    low = jnp.clip(flat, 0.5 / n, math.sqrt(limit / n))
    inner = jnp.stack([near(v) for v in low]) if flat.shape[0] == 1 else lax.map(near, low)
    inner = jnp.clip(inner, 0, 1)
    is_far = is_far | (flat >= 0.5 + 0.5 / n)
    if below:
        p = jnp.where(flat <= 0.5 / n, 0.0, jnp.where(is_far, 1 - outer, inner))
    else:
        p = jnp.where(flat <= 0.5 / n, 1.0, jnp.where(is_far, outer, 1 - inner))
    return p.reshape(d.shape)


_FAR = 2.2  # n d**2 from which both sides do not meet within 8 digits


@over_axis("x")
def ks_1samp(x: ArrayLike, cdf: Callable[..., ArrayLike], args: tuple[ArrayLike, ...] = (),
             alternative: str = "two-sided", method: str = "auto", *, axis: int | None = 0,
             nan_policy: str = "propagate", keepdims: bool = False) -> SignificanceResult:
    """Whether a sample has a distribution function: Kolmogorov and Smirnov.

    The statistic is the largest difference from the empirical one ("two-sided"), or that above
    ("greater") or below it ("less"). `method` is "exact", "asymp" (Kolmogorov's limit, of both
    sides) or "auto", which is exact.

    >>> import functrans as ft
    >>> d, p = ft.scipy.stats.ks_1samp([0.1, 0.4, 0.7], ft.scipy.stats.uniform.cdf)
    >>> round(float(d), 4), round(float(p), 4)
    (0.3, 0.8862)
    """
    one_of("stats.ks_1samp", "alternative", alternative, SIDES)
    one_of("stats.ks_1samp", "method", method, ("auto", "exact", "asymp"))
    (values,) = groups("ks_1samp", (x,), axis, 1)
    n = values.shape[-1]
    levels = jnp.asarray(cdf(jnp.sort(values, -1), *args)).astype(values.dtype)
    steps = jnp.arange(n, dtype=values.dtype)
    plus, minus = jnp.max((steps + 1) / n - levels, -1), jnp.max(levels - steps / n, -1)
    if alternative != "two-sided":
        d = plus if alternative == "greater" else minus
        return SignificanceResult(d, one_sided(d, n))
    d = jnp.maximum(plus, minus)
    if method == "asymp":
        return SignificanceResult(d, kolmogorov(d * math.sqrt(n)))
    return SignificanceResult(d, two_sided(lax.stop_gradient(d), n))


def kolmogorov(y: Array) -> Array:
    """The probability that the limit of sqrt(n) D is larger: 2 sum (-1)**(k - 1) exp(-2 k**2 y**2).

    >>> float(kolmogorov(jnp.zeros(())))
    1.0
    """
    k = np.arange(1, 101.0)
    far = jnp.maximum(y, 0.3)[..., None]
    signs = jnp.asarray((-1) ** (k - 1)).astype(y.dtype)
    total = 2 * jnp.sum(signs * jnp.exp(-2 * jnp.asarray(k * k).astype(y.dtype) * far**2), -1)
    # below 0.3 it differs from 1 by less than 1e-5, by the other series
    low = jnp.clip(y, 0.02, 0.3)[..., None]
    odd = jnp.asarray((2 * k[:9] - 1) ** 2).astype(y.dtype)
    near = 1 - math.sqrt(2 * math.pi) / low[..., 0] * jnp.sum(
        jnp.exp(-odd * math.pi**2 / (8 * low**2)), -1)
    return jnp.where(y > 0.3, jnp.clip(total, 0, 1), jnp.where(y > 0.02, near, 1.0))


@over_axis("data1", "data2")
def ks_2samp(data1: ArrayLike, data2: ArrayLike, alternative: str = "two-sided",
             method: str = "auto", *, axis: int | None = 0, nan_policy: str = "propagate",
             keepdims: bool = False) -> SignificanceResult:
    """Whether two samples have one distribution: Kolmogorov and Smirnov; see `ks_1samp`.

    "auto" is exact up to 10,000 elements, by a count of the orders in n m steps.
    Source: Hodges, Arkiv för Matematik 3 (1958).

    >>> import functrans as ft
    >>> d, p = ft.scipy.stats.ks_2samp([1.0, 2.0, 3.0], [2.5, 4.0, 5.0, 6.0])
    >>> round(float(d), 4), round(float(p), 4)
    (0.75, 0.2286)
    """
    one_of("stats.ks_2samp", "alternative", alternative, SIDES)
    one_of("stats.ks_2samp", "method", method, ("auto", "exact", "asymp"))
    a, b = groups("ks_2samp", (data1, data2), axis)
    n, m = a.shape[-1], b.shape[-1]
    both = jnp.concatenate(jnp.broadcast_arrays(a, b) if n == m else [a, b], -1)
    below_a, below_b = (jnp.sum(v[..., None, :] <= both[..., :, None], -1) for v in (a, b))
    # whole numbers: where equal differences are, they are equal
    off = below_a * m - below_b * n
    plus, minus = jnp.max(off, -1, initial=0), jnp.max(-off, -1, initial=0)
    steps = jnp.maximum(plus, minus) if alternative == "two-sided" else (
        plus if alternative == "greater" else minus)
    d = steps.astype(a.dtype) / (n * m)
    if method == "asymp" or (method == "auto" and max(n, m) > 10000):
        if alternative == "two-sided":
            return SignificanceResult(d, two_sided(lax.stop_gradient(d), round(n * m / (n + m))))
        low, high = min(n, m), max(n, m)
        z = math.sqrt(n * m / (n + m)) * d
        expected = -2 * z * z - 2 * z * (high + 2 * low) / math.sqrt(
            high * low * (high + low)) / 3
        return SignificanceResult(d, jnp.exp(expected))
    flat = steps.reshape(-1)
    each = [_orders(v, n, m, alternative == "two-sided").astype(a.dtype) for v in flat] \
        if flat.shape[0] == 1 else [lax.map(
            lambda v: _orders(v, n, m, alternative == "two-sided").astype(a.dtype), flat)]
    p = jnp.stack(each) if flat.shape[0] == 1 else each[0]
    return SignificanceResult(d, jnp.clip(p, 0, 1).reshape(d.shape))


def _orders(steps: Array, n: int, m: int, two_sided: bool) -> Array:
    """The share of the orders of n and m elements whose difference reaches `steps` / (n m)."""
    columns = jnp.arange(m + 1)

    def outside(i: Array) -> Array:
        off = i * m - columns * n
        return (jnp.abs(off) if two_sided else off) >= steps

    def row(before: Array, i: Array) -> tuple[Array, None]:
        """The chance of having stayed inside, if all orders are equally likely so far."""
        out = outside(i)

        def element(left: Array, v: Any) -> tuple[Array, Array]:
            up, j, is_out = v
            part = jnp.where(j + i > 0, up * i / jnp.maximum(i + j, 1)
                             + left * j / jnp.maximum(i + j, 1), 1.0)
            value = jnp.where(is_out, 0.0, part)
            return value, value

        return lax.scan(element, jnp.zeros((), before.dtype), (before, columns, out))[1], None

    start = jnp.zeros(m + 1, jnp.float64)
    stayed, _ = lax.scan(row, start, jnp.arange(n + 1))
    return jnp.where(steps <= 0, 1.0, 1 - stayed[m])


def kstest(rvs: ArrayLike, cdf: ArrayLike | str | Callable[..., ArrayLike],
           args: tuple[ArrayLike, ...] = (), N: int = 20, alternative: str = "two-sided",
           method: str = "auto", *, axis: int | None = 0, nan_policy: str = "propagate",
           keepdims: bool = False) -> SignificanceResult:
    """`ks_1samp` where `cdf` is a function, `ks_2samp` where it is a sample.

    >>> import functrans as ft
    >>> d, p = ft.scipy.stats.kstest([0.1, 0.4, 0.7], ft.scipy.stats.uniform.cdf)
    >>> round(float(d), 4)
    0.3
    """
    if isinstance(cdf, str):
        raise ArgumentError(f"scipy.stats.kstest: cdf is {cdf!r}.", where=user_source(),
                            why="it is a function or a sample.",
                            fix=f"ft.scipy.stats.{cdf}.cdf")
    if callable(cdf):
        return ks_1samp(rvs, cdf, args, alternative, method, axis=axis, nan_policy=nan_policy,
                        keepdims=keepdims)
    return ks_2samp(rvs, cdf, alternative, method, axis=axis, nan_policy=nan_policy,
                    keepdims=keepdims)


publish(globals(), __all__)
