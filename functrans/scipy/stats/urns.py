"""More distributions of whole numbers: of urns, of unlike trials, and with power tails."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core.errors import ShapeError
from functrans.core.source import user_source
from functrans.scipy import special
from functrans.scipy.special.common import loop
from functrans.scipy.stats.accepting import accepted
from functrans.scipy.stats.base import Discrete, DistributionFamily
from functrans.scipy.stats.discrete import Summed, log_choose
from functrans.scipy.stats.frozen import Frozen
from functrans.scipy.stats.integrals import log_peak_integral, log_side
from functrans.transforms import forward
from functrans.typing import Array, ArrayLike

__all__ = ["betanbinom", "nchypergeom_fisher", "nchypergeom_wallenius", "nhypergeom",
           "poisson_binom", "zipfian"]


def _whole(n: Array) -> Any:
    return (n >= 0) & (n == lax.floor(n))


class BetaNBinom(Discrete):
    """The beta-negative-binomial distribution: failures before n successes of a beta probability.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.betanbinom.pmf(0, 1, 1.0, 1.0)), 4)
    0.5
    """

    shapes = ("n", "a", "b")
    _near = np.arange(1.0, 257.0)

    def possible(self, n: Array, a: Array, b: Array) -> Array:
        result: Array = _whole(n) & (a > 0) & (b > 0)
        return result

    def log_probability(self, k: Array, n: Array, a: Array, b: Array) -> Array:
        some = n > 0
        m = jnp.where(some, n, 1.0)
        ways = -lax.log(m + k) - special.betaln(m, k + 1.0)
        value = ways + special.betaln(a + m, b + k) - special.betaln(a, b)
        return jnp.where(some, value, jnp.where(k == 0, 0.0, -math.inf))

    def _tail(self, k: Array, *shapes: Array) -> Array:
        """256 terms after k, and the others by the formula of Euler and Maclaurin."""
        spread = [s[..., None] for s in shapes]
        total = jnp.sum(lax.exp(self.log_probability(k[..., None] + self._near, *spread)), -1)
        start = k + (self._near[-1] + 0.5)

        def height(x: Array) -> Array:
            return lax.exp(self.log_probability(x, *shapes))

        slope = forward.jvp(height, (start,), (jnp.ones_like(start),))[1]
        rest = lax.exp(log_side(self.log_probability, start, math.inf, shapes, True))
        return total + rest + slope / 24.0

    def _sides(self, k: Array, *shapes: Array) -> tuple[Array, Array]:
        dtype = k.dtype
        k, *rest = (x.astype(np.float64) for x in (k, *shapes))
        tail = self._tail(k, *rest)
        near = k < 3000.0

        def step(i: Any, at: Array, total: Array) -> tuple[Array, Array]:
            return at - 1.0, total + lax.exp(self.log_probability(at, *rest))

        low = loop(step, (jnp.where(near, k, -1.0), jnp.zeros_like(k)),
                   lambda at, total: at >= 0, 3001)[1]
        below = jnp.where(near, low, 1.0 - tail)
        above = jnp.where(near & (low < 0.7), 1.0 - low, tail)
        return below.astype(dtype), above.astype(dtype)

    def below(self, k: Array, n: Array, a: Array, b: Array) -> Array:
        return self._sides(k, n, a, b)[0]

    def above(self, k: Array, n: Array, a: Array, b: Array) -> Array:
        return self._sides(k, n, a, b)[1]

    def expected(self, n: Array, a: Array, b: Array) -> Array:
        some = a > 1
        return jnp.where(some, n * b / jnp.where(some, a - 1.0, 1.0), math.inf)

    def variance(self, n: Array, a: Array, b: Array) -> Array:
        some = a > 2
        c = jnp.where(some, a, 3.0)
        value = n * b * (n + c - 1.0) * (c + b - 1.0) / ((c - 2.0) * (c - 1.0) ** 2)
        return jnp.where(some, value, math.inf)

    def draw(self, key: Array, like: Array, n: Array, a: Array, b: Array) -> Array:
        one, two, three, four = random.split(key, 4)
        odds = random.gamma(one, b, like.shape, like.dtype) / random.gamma(
            two, a, like.shape, like.dtype)
        some = n > 0
        rate = odds * random.gamma(three, jnp.where(some, n, 1.0), like.shape, like.dtype)
        return random.poisson(four, jnp.where(some, rate, 0.0), like.shape).astype(like.dtype)


class NHyperGeom(Summed):
    """The negative hypergeometric distribution: of n marked among M, those before r others.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.nhypergeom.pmf(1, 4, 2, 1)), 4)
    0.3333
    """

    shapes = ("M", "n", "r")

    def possible(self, M: Array, n: Array, r: Array) -> Array:
        result: Array = _whole(M) & _whole(n) & _whole(r) & (n <= M) & (r <= M - n)
        return result

    def ends(self, M: Array, n: Array, r: Array) -> tuple[float, Array]:
        return 0.0, n

    def log_probability(self, k: Array, M: Array, n: Array, r: Array) -> Array:
        some = r > 0
        c = jnp.where(some, r, 1.0)
        size = jnp.where(some, M, jnp.maximum(M, n + 1.0))
        value = log_choose(k + c - 1.0, k) + log_choose(size - c - k, n - k) - log_choose(size, n)
        return jnp.where(some, value, jnp.where(k == 0, 0.0, -math.inf))

    def expected(self, M: Array, n: Array, r: Array) -> Array:
        return r * n / (M - n + 1.0)

    def variance(self, M: Array, n: Array, r: Array) -> Array:
        rest = M - n + 1.0
        return r * (M + 1.0) * n / (rest * (rest + 1.0)) * (1.0 - r / rest)


class _Odds(Summed):
    """Of N drawn of M those of n that are marked, which are taken at other odds."""

    shapes = ("M", "n", "N", "odds")

    def possible(self, M: Array, n: Array, N: Array, odds: Array) -> Array:
        result: Array = _whole(M) & _whole(n) & _whole(N) & (n <= M) & (N <= M) & (odds > 0)
        return result

    def ends(self, M: Array, n: Array, N: Array, odds: Array) -> tuple[Array, Array]:
        return jnp.maximum(N - (M - n), 0.0), jnp.minimum(n, N)


class NCHypergeomFisher(_Odds):
    """Fisher's noncentral hypergeometric distribution: of independent draws, given their number.

    Source: Fog, Communications in Statistics: Simulation 37 (2008).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.nchypergeom_fisher.pmf(1, 4, 2, 2, 1.0)), 4)
    0.6667
    """

    @staticmethod
    def _log_weight(k: Array, M: Array, n: Array, N: Array, odds: Array) -> Array:
        return log_choose(n, k) + log_choose(M - n, N - k) + k * lax.log(odds)

    def _log_whole(self, *shapes: Array) -> Array:
        low, high = self.ends(*shapes)

        def step(i: Any, at: Array, total: Array) -> tuple[Array, Array]:
            return at + 1.0, jnp.logaddexp(total, self._log_weight(
                jnp.minimum(at, high), *shapes))

        return loop(step, (low + 1.0, self._log_weight(low, *shapes)),
                    lambda at, total: at <= high, 10_000_000)[1]

    def log_probability(self, k: Array, *shapes: Any, **none: Any) -> Array:
        return self._log_weight(k, *shapes) - self._log_whole(*shapes)

    def _terms(self, *shapes: Array) -> Callable[[Array], Array]:
        whole = self._log_whole(*shapes)
        return lambda k: self._log_weight(k, *shapes) - whole


class NCHypergeomWallenius(_Odds):
    """Wallenius' noncentral hypergeometric distribution: of draws one after the other.

    Probabilities are integrals of one peak. Source: Fog, Communications in Statistics: Simulation
    37 (2008).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.nchypergeom_wallenius.pmf(1, 4, 2, 2, 1.0)), 4)
    0.6667
    """

    def log_probability(self, k: Array, M: Array, n: Array, N: Array, odds: Array) -> Array:
        dtype = k.dtype
        k, M, n, N, odds = (x.astype(np.float64) for x in (k, M, n, N, odds))
        rest = odds * (n - k) + (M - n) - (N - k)
        some = (rest > 0) & (N > 0)  # otherwise all are taken, or none
        rate = jnp.where(some, rest, 1.0)
        x, y, w, d = (v[..., None] for v in jnp.broadcast_arrays(k, N - k, odds, rate))

        def curve(u: Array) -> Array:
            v = lax.exp(u)
            return (lax.log(d) - d * v + u + special.xlogy(x, -lax.expm1(-w * v))
                    + special.xlogy(y, -lax.expm1(-v)))

        end = jnp.full_like(k + rate, 60.0)
        value = log_peak_integral(curve, -end, 0.2 * end, zooms=5)
        value = value + log_choose(n, k) + log_choose(M - n, N - k)
        return jnp.where(some, value, 0.0).astype(dtype)

    def draw(self, key: Array, like: Array, M: Array, n: Array, N: Array, odds: Array) -> Array:
        def step(state: Any) -> Any:
            i, k = state
            u = random.uniform(random.fold_in(key, i), like.shape, like.dtype)
            marked, others = odds * (n - k), M - n - (i - k)
            taken = (u * (marked + others) < marked) & (i < N)
            return i + 1, k + taken.astype(like.dtype)

        start = (jnp.zeros((), np.int32), jnp.zeros_like(like))
        out: Array = lax.while_loop(lambda state: state[0] < jnp.max(N), step, start)[1]
        return out


_BERNOULLI: Final = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160,
                     -691 / 1307674368000)


def _powers(low: Array, high: Array, a: Array) -> Array:
    """The sum of k^-a over whole k from low to high: 16, and Euler and Maclaurin's formula."""
    total = jnp.zeros_like(low)
    for i in range(16):
        k = low + float(i)
        total = total + jnp.where(k <= high, lax.exp(-a * lax.log(k)), 0.0)
    start = low + 16.0
    more = high > start
    end = jnp.where(more, high, start + 1.0)
    length = lax.log(end / start)
    first, last = lax.exp(-a * lax.log(start)), lax.exp(-a * lax.log(end))
    rest = start * first * length * special.exprel((1.0 - a) * length) + 0.5 * (first + last)
    rise = a
    for j, b in enumerate(_BERNOULLI):
        power = 2 * j + 1
        rest = rest + b * rise * (first / start**power - last / end**power)
        rise = rise * (a + power) * (a + power + 1.0)
    return total + jnp.where(more, rest, jnp.where(high == start, first, 0.0))


class Zipfian(Discrete):
    """Zipf's distribution on 1, ..., n, of probabilities k^-a up to a factor.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.zipfian.pmf(1, 1.0, 2)), 4)
    0.6667
    """

    shapes = ("a", "n")

    def possible(self, a: Array, n: Array) -> Array:
        return (a >= 0) & (n >= 1) & (n == lax.floor(n))

    def ends(self, a: Array, n: Array) -> tuple[float, Array]:
        return 1.0, n

    @staticmethod
    def _sum(low: Array, high: Array, a: Array) -> Array:
        return _powers(*(x.astype(np.float64) for x in jnp.broadcast_arrays(low, high, a)))

    def log_probability(self, k: Array, a: Array, n: Array) -> Array:
        whole = self._sum(jnp.ones_like(n), n, a)
        return (-a * lax.log(k) - lax.log(whole)).astype(k.dtype)

    def below(self, k: Array, a: Array, n: Array) -> Array:
        one = jnp.ones_like(k)
        return (self._sum(one, k, a) / self._sum(one, n, a)).astype(k.dtype)

    def above(self, k: Array, a: Array, n: Array) -> Array:
        one = jnp.ones_like(k)
        return (self._sum(k + 1.0, n, a) / self._sum(one, n, a)).astype(k.dtype)

    def _raw(self, m: int, a: Array, n: Array) -> Array:
        one = jnp.ones_like(n)
        return (self._sum(one, n, a - m) / self._sum(one, n, a)).astype(a.dtype)

    def expected(self, a: Array, n: Array) -> Array:
        return self._raw(1, a, n)

    def variance(self, a: Array, n: Array) -> Array:
        return self._raw(2, a, n) - self._raw(1, a, n) ** 2

    def draw(self, key: Array, like: Array, a: Array, n: Array) -> Array:
        """By rejection and inversion. Source: Hörmann and Derflinger, ACM TOMACS 6 (1996)."""
        def area(x: Array) -> Array:
            log = lax.log(x)
            return log * special.exprel((1.0 - a) * log)

        def place(v: Array) -> Array:
            w = (1.0 - a) * v
            near = jnp.abs(w) < 1e-6
            log = jnp.where(near, v * (1.0 - 0.5 * w), lax.log1p(jnp.maximum(
                w, -1.0 + 1e-7)) / jnp.where(near, 1.0, 1.0 - a))
            return lax.exp(log)

        first, last = area(jnp.full_like(like, 1.5)) - 1.0, area(n + 0.5)

        def propose(key: Array) -> tuple[Array, Array]:
            u = first + random.uniform(key, like.shape, like.dtype) * (last - first)
            k = jnp.clip(jnp.round(place(u)), 1.0, n)
            return k, u >= area(k + 0.5) - lax.exp(-a * lax.log(k))

        return accepted(key, like, propose)


class _Trials(Discrete):
    """How many of unlike trials succeed, of as many probabilities as there are shapes."""

    def __init__(self, name: str, count: int) -> None:
        self.shapes = tuple(f"p{i}" for i in range(count))  # type: ignore[misc]
        super().__init__(name)

    def possible(self, *shapes: Any, **none: Any) -> Any:
        p = jnp.stack(shapes)
        return jnp.all((p >= 0) & (p <= 1), 0)

    def ends(self, *shapes: Any, **none: Any) -> tuple[float, float]:
        return 0.0, float(len(self.shapes))

    @staticmethod
    def _table(shapes: Sequence[Array]) -> Array:
        """The probabilities [..., count + 1], one trial after the other."""
        p = jnp.stack(shapes)
        start = jnp.zeros((*p.shape[1:], p.shape[0] + 1), p.dtype).at[..., 0].set(1.0)

        def step(table: Array, one: Array) -> tuple[Array, None]:
            before = jnp.concatenate([jnp.zeros_like(table[..., :1]), table[..., :-1]], -1)
            return table * (1.0 - one[..., None]) + before * one[..., None], None

        out: Array = lax.scan(step, start, p)[0]
        return out

    def _picked(self, k: Array, shapes: Sequence[Array], pick: Callable[..., Array]) -> Array:
        table = self._table(shapes)
        return jnp.sum(jnp.where(pick(jnp.arange(table.shape[-1]), k[..., None]), table, 0.0), -1)

    def log_probability(self, k: Array, *shapes: Any, **none: Any) -> Array:
        return lax.log(self._picked(k, shapes, lambda i, k: i == k))

    def below(self, k: Array, *shapes: Any, **none: Any) -> Array:
        return self._picked(k, shapes, lambda i, k: i <= k)

    def above(self, k: Array, *shapes: Any, **none: Any) -> Array:
        return self._picked(k, shapes, lambda i, k: i > k)

    def expected(self, *shapes: Any, **none: Any) -> Array:
        return jnp.sum(jnp.stack(shapes), 0)

    def variance(self, *shapes: Any, **none: Any) -> Array:
        p = jnp.stack(shapes)
        return jnp.sum(p * (1.0 - p), 0)

    def draw(self, key: Array, like: Array, *shapes: Any, **none: Any) -> Array:
        p = jnp.stack(shapes)
        return jnp.sum(random.bernoulli(key, p, p.shape).astype(like.dtype), 0)


def _of_trials(method: str) -> Callable[..., Any]:
    """A method of the family of as many trials as p has along its last axis."""
    def call(self: PoissonBinom, *args: Any, **kwargs: Any) -> Any:
        place = 1 if method in ("rvs", "expect", *Discrete.functions, "interval", "moment") else 0
        if "p" in kwargs:
            p = kwargs.pop("p")
            before, after = args[:place], args[place:]
        else:
            before, p, after = args[:place], args[place], args[place + 1:]
        probabilities = jnp.asarray(p)
        if not probabilities.ndim:
            raise ShapeError(f"scipy.stats.poisson_binom.{method}: p has no axis.",
                             where=user_source(), why="its last axis is that of the trials.",
                             fix="[p]")
        parts = [probabilities[..., i] for i in range(probabilities.shape[-1])]
        family = _Trials(self.__name__.rpartition(".")[2], len(parts))
        if method == "expect":
            whole: Any = family
            return whole.expect(*before, tuple(parts), *after, **kwargs)
        return getattr(family, method)(*before, *parts, *after, **kwargs)

    call.__name__ = call.__qualname__ = method
    call.__doc__ = (f"`{method}` of a variable, as other distributions of whole numbers have it; "
                    "p [..., trials].")
    return call


class PoissonBinom(DistributionFamily):
    """The Poisson binomial distribution: successes in trials of probabilities p [..., trials].

    The methods are those of other families of whole numbers.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.poisson_binom.pmf(1, [0.5, 0.5, 0.0])), 4)
    0.5
    """

    has_scale = False
    pmf, logpmf, cdf, logcdf = map(_of_trials, ("pmf", "logpmf", "cdf", "logcdf"))
    sf, logsf, ppf, isf = map(_of_trials, ("sf", "logsf", "ppf", "isf"))
    mean, var, std, median = map(_of_trials, ("mean", "var", "std", "median"))
    entropy, stats, moment, interval = map(_of_trials, ("entropy", "stats", "moment", "interval"))
    support, rvs, freeze, expect = map(_of_trials, ("support", "rvs", "freeze", "expect"))

    def __call__(self, *args: ArrayLike, **kwargs: ArrayLike) -> Frozen:
        frozen: Frozen = self.freeze(*args, **kwargs)
        return frozen


betanbinom, nhypergeom = BetaNBinom("betanbinom"), NHyperGeom("nhypergeom")
nchypergeom_fisher = NCHypergeomFisher("nchypergeom_fisher")
nchypergeom_wallenius = NCHypergeomWallenius("nchypergeom_wallenius")
zipfian, poisson_binom = Zipfian("zipfian"), PoissonBinom("poisson_binom")
