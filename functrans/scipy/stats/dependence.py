"""Measures of the dependence of pairs on each other, beside correlations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from functrans import numpy as jnp
from functrans.core.errors import ShapeError, publish
from functrans.core.source import user_source
from functrans.scipy import special
from functrans.scipy.arguments import inexact, one_of
from functrans.scipy.stats.methods import PermutationMethod
from functrans.scipy.stats.resampling import permutation_test, resampling_of
from functrans.scipy.stats.results import SignificanceResult, check_side, normal_pvalue
from functrans.scipy.stats.samples import over_axis
from functrans.scipy.stats.statistics import rankdata
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

__all__ = ["chatterjeexi", "somersd", "weightedtau"]


class SomersDResult(NamedTuple):
    """Somers' D, its p-value, and the table of the pairs."""

    statistic: Array
    pvalue: Array
    table: Array

    @property
    def correlation(self) -> Array:
        """The statistic."""
        return self.statistic


def _xi(x: Array, y: Array, y_continuous: bool) -> tuple[Array, Array, Array]:
    n = x.shape[-1]
    order = jnp.argsort(x, -1)
    ordered = jnp.take_along_axis(jnp.broadcast_to(y, jnp.broadcast_shapes(x.shape, y.shape)),
                                  jnp.broadcast_to(order, jnp.broadcast_shapes(
                                      order.shape, y.shape)), -1)
    r, l = (rankdata(v, "max", axis=-1).astype(x.dtype) for v in (ordered, -ordered))
    steps = jnp.sum(jnp.abs(jnp.diff(r, axis=-1)), -1)
    if y_continuous:
        return 1 - 3 * steps / (n * n - 1), r, l
    return 1 - n * steps / (2 * jnp.sum((n - l) * l, -1)), r, l


@over_axis("x", "y", paired=True)
def chatterjeexi(x: ArrayLike, y: ArrayLike, *, axis: int | None = 0, y_continuous: bool = False,
                 method: str | PermutationMethod = "asymptotic", nan_policy: str = "propagate",
                 keepdims: bool = False) -> SignificanceResult:
    """How much y is a function of x, by the steps of the ranks of y in the order of x.

    1 is a function, 0 independence. `y_continuous` says that y has no ties. `method` is
    "asymptotic" or a `PermutationMethod`.
    Source: Chatterjee, A New Coefficient of Correlation (2021).

    >>> import functrans as ft
    >>> x = ft.numpy.arange(10.0)
    >>> found = ft.scipy.stats.chatterjeexi(x, (x - 4) ** 2)
    >>> round(float(found.statistic), 4), round(float(found.pvalue), 4)
    (0.472, 0.0131)
    """
    a, b = inexact(x, y)
    n = a.shape[-1]
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"scipy.stats.chatterjeexi: the samples have {n} and {b.shape[-1]} "
                         "elements.", where=user_source(), why="they are pairs.")
    xi, r, l = _xi(a, b, y_continuous)
    if not isinstance(method, str):
        key, settings = resampling_of("chatterjeexi", method)
        p = permutation_test(key, (b,), lambda v, axis: _xi(a, v, y_continuous)[0],
                             permutation_type="pairings", vectorized=True, alternative="greater",
                             axis=-1, **settings).pvalue
        return SignificanceResult(xi, p)
    one_of("stats.chatterjeexi", "method", method, ("asymptotic",))
    if y_continuous:
        return SignificanceResult(xi, special.ndtr(-xi * math.sqrt(n / 0.4)))
    i = jnp.arange(1, n + 1, dtype=a.dtype)
    u = jnp.sort(r, -1)
    v = jnp.cumsum(u, -1)
    first = jnp.sum((2 * n - 2 * i + 1) * u * u, -1) / n**4
    second = jnp.sum((v + (n - i) * u) ** 2, -1) / n**5
    third = jnp.sum((2 * n - 2 * i + 1) * u, -1) / n**3
    scale = jnp.sum(l * (n - l), -1) / n**3
    spread = jnp.sqrt((first - 2 * second + third**2) / n) / scale
    return SignificanceResult(xi, special.ndtr(-xi / spread))


def somersd(x: ArrayLike, y: ArrayLike | None = None, alternative: str = "two-sided"
            ) -> SomersDResult:
    """Somers' D of y given x: pairs of one order less those of the other, of those without ties.

    x and y are vectors of one length, or x is a table (rows, columns) of how often each pair is.
    The table of vectors has a row for each element, in order: it is the same result, of known size.
    Source: Somers, A New Asymmetric Measure of Association for Ordinal Variables (1962).

    >>> import functrans as ft
    >>> found = ft.scipy.stats.somersd([[27, 25, 14, 7, 0], [7, 14, 18, 35, 12]])
    >>> round(float(found.statistic), 4)
    0.5986
    """
    check_side("somersd", alternative)
    (a,) = inexact(x)
    if a.ndim == 1 and y is not None:
        b = jnp.asarray(y)
        if b.shape != a.shape:
            raise ShapeError(f"scipy.stats.somersd: x has shape {a.shape}, y {b.shape}.",
                             where=user_source(), why="they are pairs.")
        # the rows and columns of equal elements are one: those of the others are empty
        at = [rankdata(v, "dense").astype(int) - 1 for v in (a, b)]
        table = jnp.zeros((a.shape[0], a.shape[0]), a.dtype).at[at[0], at[1]].add(1)
    elif a.ndim == 2 and y is None:
        table = a
    else:
        raise ShapeError(f"scipy.stats.somersd: x has shape {a.shape}, y is "
                         f"{'given' if y is not None else 'None'}.", where=user_source(),
                         why="x and y are vectors, or x is a table.")
    whole = jnp.sum(table)

    def before(t: Array) -> Array:
        """Sums of all rows above and columns to the left of each cell."""
        sums = jnp.pad(jnp.cumsum(jnp.cumsum(t, 0), 1), ((1, 0), (1, 0)))
        return sums[:-1, :-1]

    agree = before(table) + jnp.flip(before(jnp.flip(table)))
    differ = jnp.flip(before(jnp.flip(table, 1)), 1) + jnp.flip(before(jnp.flip(table, 0)), 0)
    off = agree - differ
    balance = jnp.sum(table * off)
    d = balance / (whole**2 - jnp.sum(jnp.sum(table, 1) ** 2))
    spread = jnp.sum(table * off * off) - balance**2 / whole
    return SomersDResult(d, normal_pvalue(balance / jnp.sqrt(4 * spread), alternative), table)


@over_axis("x", "y", paired=True)
def weightedtau(x: ArrayLike, y: ArrayLike, rank: bool | ArrayLike | None = True,
                weigher: Callable[..., ArrayLike] | None = None, additive: bool = True, *,
                axis: int | None = None, nan_policy: str = "propagate", keepdims: bool = False
                ) -> SignificanceResult:
    """Kendall's correlation with weights of ranks, so that the first elements count most.

    `weigher` gives the weight of an array of ranks from 0 on, 1 / (rank + 1) by default; of a pair
    weights are added, or multiplied. `rank` is None (the order of x, ties by y, the largest first),
    True (that and the order of y: the mean of both), False (the index) or the ranks. There is no
    p-value: it is NaN.
    Source: Vigna, A Weighted Correlation Index for Rankings with Ties (2015).

    >>> import functrans as ft
    >>> found = ft.scipy.stats.weightedtau([12, 2, 1, 12, 2], [1, 4, 7, 1, 0])
    >>> round(float(found.statistic), 4)
    -0.5669
    """
    a, b = inexact(x, y)
    n = a.shape[-1]
    if b.shape[-1] != n:
        raise ShapeError(f"scipy.stats.weightedtau: the samples have {n} and {b.shape[-1]} "
                         "elements.", where=user_source(), why="they are pairs.")
    given = None
    if rank is not None and not isinstance(rank, bool):
        given = jnp.ravel(jnp.asarray(rank))
        if given.shape != (n,):
            raise ShapeError(f"scipy.stats.weightedtau: rank has shape {given.shape}, the samples "
                             f"{n} elements.", where=user_source())
    weight = weigher or (lambda r: 1 / (r + 1.0))

    def one(u: Array, v: Array) -> Array:
        if given is not None:
            return _weighted(u, v, given)
        if rank is False:
            return _weighted(u, v, jnp.arange(n))
        found = _weighted(u, v, _first(u, v))
        return found if rank is None else (found + _weighted(v, u, _first(v, u))) / 2

    def _first(u: Array, v: Array) -> Array:
        # the largest is the first, and of equal pairs the last
        order = jnp.flip(jnp.lexsort((v, u)))
        return jnp.argsort(order)

    def _weighted(u: Array, v: Array, ranks: Array) -> Array:
        w = jnp.asarray(weight(ranks)).astype(a.dtype)
        pairs = w[:, None] + w if additive else w[:, None] * w
        pairs = jnp.where(jnp.eye(n, dtype=bool), 0, pairs)
        du, dv = (jnp.sign(s[:, None] - s) for s in (u, v))
        together, alone, other = (jnp.sum(pairs * p) for p in (du * dv, du * du, dv * dv))
        return together / jnp.sqrt(alone * other)

    of: Any = one
    for _ in a.shape[:-1]:
        of = vmap(of)
    tau = of(a, b)
    return SignificanceResult(tau, jnp.full_like(tau, math.nan))


publish(globals(), __all__)
