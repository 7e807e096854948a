"""Distributions of whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.scipy import special
from functrans.scipy.special.common import loop
from functrans.scipy.stats.base import Discrete
from functrans.scipy.stats.rejection import whole_numbers
from functrans.typing import Array

__all__ = ["bernoulli", "betabinom", "binom", "boltzmann", "dlaplace", "geom", "hypergeom",
           "logser", "nbinom", "planck", "poisson", "randint", "zipf"]


def _probability(p: Array) -> Any:
    return (p >= 0) & (p <= 1)


def _whole(n: Array) -> Any:
    return (n >= 0) & (n == lax.floor(n))


def log_choose(n: Array, k: Array) -> Array:
    """The logarithm of the number of ways to choose k of n."""
    return -lax.log1p(n) - special.betaln(n - k + 1.0, k + 1.0)


class Bernoulli(Discrete):
    """The Bernoulli distribution: 1 with probability p, else 0.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.bernoulli.logpmf(1, 1.0))
    0.0
    """

    shapes = ("p",)

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return _probability(shapes[0])

    def ends(self, p: Array) -> tuple[float, float]:
        return 0.0, 1.0

    def log_probability(self, k: Array, p: Array) -> Array:
        return special.xlogy(k, p) + special.xlog1py(1.0 - k, -p)

    def below(self, k: Array, p: Array) -> Array:
        return 1.0 - p

    def above(self, k: Array, p: Array) -> Array:
        return p

    def expected(self, p: Array) -> Array:
        return p

    def variance(self, p: Array) -> Array:
        return p * (1.0 - p)

    def information(self, p: Array) -> Array:
        return special.entr(p) + special.entr(1.0 - p)

    def draw(self, key: Array, like: Array, p: Array) -> Array:
        return random.bernoulli(key, p, like.shape).astype(like.dtype)


class Binom(Discrete):
    """The binomial distribution: successes in n trials of probability p.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.binom.pmf(1, 2, 0.5)), 4)
    0.5
    """

    shapes = ("n", "p")

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return _whole(shapes[0]) & _probability(shapes[1])

    def ends(self, n: Array, p: Array) -> tuple[float, Array]:
        return 0.0, n

    def log_probability(self, k: Array, n: Array, p: Array) -> Array:
        return log_choose(n, k) + special.xlogy(k, p) + special.xlog1py(n - k, -p)

    def below(self, k: Array, n: Array, p: Array) -> Array:
        return special.bdtr(k, n, p)

    def above(self, k: Array, n: Array, p: Array) -> Array:
        return special.bdtrc(k, n, p)

    def expected(self, n: Array, p: Array) -> Array:
        return n * p

    def variance(self, n: Array, p: Array) -> Array:
        return n * p * (1.0 - p)

    def draw(self, key: Array, like: Array, n: Array, p: Array) -> Array:
        return random.binomial(key, n, p, like.shape, like.dtype)


class Summed(Discrete):
    """A family of finite support whose distribution function is a sum of probabilities."""

    def below(self, k: Array, *shapes: Any, **none: Any) -> Array:
        return self._sum(k, shapes, False)

    def above(self, k: Array, *shapes: Any, **none: Any) -> Array:
        return self._sum(k, shapes, True)

    def _terms(self, *shapes: Array) -> Callable[[Array], Array]:
        """The logarithm of the probability as a function of k."""
        return lambda k: self.log_probability(k, *shapes)

    def _sum(self, k: Array, shapes: tuple[Array, ...], upper: bool) -> Array:
        low, high = (jnp.zeros_like(k) + v for v in self.ends(*shapes))
        log_term = self._terms(*shapes)

        def step(i: Any, at: Array, total: Array) -> tuple[Array, Array]:
            inside = (at >= low) & (at <= high)
            term = lax.exp(log_term(jnp.where(inside, at, low)))
            return at + (1.0 if upper else -1.0), total + jnp.where(inside, term, 0.0)

        start = k + 1.0 if upper else k
        return loop(step, (start, jnp.zeros_like(k)),
                    lambda at, total: at <= high if upper else at >= low, 1_000_000)[1]

    def draw(self, key: Array, like: Array, *shapes: Any, **none: Any) -> Array:
        """By adding probabilities up to a uniform number."""
        low, high = (jnp.zeros_like(like) + v for v in self.ends(*shapes))
        log_term = self._terms(*shapes)
        u = random.uniform(key, like.shape, like.dtype)

        def step(i: Any, at: Array, total: Array) -> tuple[Array, Array]:
            return at + 1.0, total + lax.exp(log_term(jnp.minimum(at + 1.0, high)))

        return loop(step, (low, lax.exp(log_term(low))),
                    lambda at, total: (total < u) & (at < high), 1_000_000)[0]


class BetaBinom(Summed):
    """The beta-binomial distribution: binomial of a probability that is a beta variable.

    Its distribution function is a sum of probabilities.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.betabinom.pmf(1, 2, 1.0, 1.0)), 4)
    0.3333
    """

    shapes = ("n", "a", "b")

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return _whole(shapes[0]) & (shapes[1] > 0) & (shapes[2] > 0)

    def ends(self, n: Array, a: Array, b: Array) -> tuple[float, Array]:
        return 0.0, n

    def log_probability(self, k: Array, n: Array, a: Array, b: Array) -> Array:
        return log_choose(n, k) + special.betaln(k + a, n - k + b) - special.betaln(a, b)

    def expected(self, n: Array, a: Array, b: Array) -> Array:
        return n * a / (a + b)

    def variance(self, n: Array, a: Array, b: Array) -> Array:
        return n * a * b * (a + b + n) / ((a + b) ** 2 * (a + b + 1.0))

    def draw(self, key: Array, like: Array, n: Array, a: Array, b: Array) -> Array:
        one, two = random.split(key)
        share = lax.stop_gradient(random.beta(one, a, b, like.shape, like.dtype))
        return random.binomial(two, n, share, like.shape, like.dtype)


class HyperGeom(Summed):
    """The hypergeometric distribution: of N drawn of M, those of n that are marked.

    Its distribution function is a sum of probabilities.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.hypergeom.pmf(1, 4, 2, 2)), 4)
    0.6667
    """

    shapes = ("M", "n", "N")

    def possible(self, *shapes: Any, **none: Any) -> Any:
        total, marked, drawn = shapes
        return _whole(total) & _whole(marked) & _whole(drawn) & (marked <= total) & (
            drawn <= total)

    def ends(self, M: Array, n: Array, N: Array) -> tuple[Array, Array]:
        return jnp.maximum(N - (M - n), 0.0), jnp.minimum(n, N)

    def log_probability(self, k: Array, M: Array, n: Array, N: Array) -> Array:
        return log_choose(n, k) + log_choose(M - n, N - k) - log_choose(M, N)

    def expected(self, M: Array, n: Array, N: Array) -> Array:
        return N * n / M

    def variance(self, M: Array, n: Array, N: Array) -> Array:
        return N * n / M * (M - n) / M * (M - N) / (M - 1.0)

    def draw(self, key: Array, like: Array, M: Array, n: Array, N: Array) -> Array:
        total, marked, drawn = (lax.stop_gradient(x).astype(np.float64) for x in (M, n, N))
        possible = self.possible(total, marked, drawn) & (total > 1.0)
        total, marked, drawn = (jnp.where(possible, x, v) for x, v in zip(
            (total, marked, drawn), (2.0, 1.0, 1.0), strict=True))
        low, high = self.ends(total, marked, drawn)
        mode = jnp.clip(lax.floor((marked + 1.0) * (drawn + 1.0) / (total + 2.0)), low, high)

        def log_probability(k: Array) -> Array:  # but for a constant
            left = total - marked - drawn
            return -lax.lgamma(k + 1.0) - lax.lgamma(marked - k + 1.0) - lax.lgamma(
                drawn - k + 1.0) - lax.lgamma(left + k + 1.0)

        found = whole_numbers(key, like, log_probability, low, high, mode,
                              self.expected(total, marked, drawn),
                              self.variance(total, marked, drawn))
        return jnp.where(possible, found, jnp.minimum(n, N))


class Geom(Discrete):
    """The geometric distribution: trials up to the first success of probability p.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.geom.pmf(2, 0.5))
    0.25
    """

    shapes = ("p",)

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return (shapes[0] > 0) & (shapes[0] <= 1)

    def ends(self, p: Array) -> tuple[float, float]:
        return 1.0, math.inf

    def log_probability(self, k: Array, p: Array) -> Array:
        return special.xlog1py(k - 1.0, -p) + lax.log(p)

    def below(self, k: Array, p: Array) -> Array:
        return -lax.expm1(special.xlog1py(k, -p))

    def above(self, k: Array, p: Array) -> Array:
        return lax.exp(special.xlog1py(k, -p))

    def expected(self, p: Array) -> Array:
        return 1.0 / p

    def variance(self, p: Array) -> Array:
        return (1.0 - p) / (p * p)

    def draw(self, key: Array, like: Array, p: Array) -> Array:
        return random.geometric(key, p, like.shape).astype(like.dtype)


class NBinom(Discrete):
    """The negative binomial distribution: failures before n successes of probability p.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.nbinom.pmf(0, 1.0, 0.5))
    0.5
    """

    shapes = ("n", "p")

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return (shapes[0] > 0) & (shapes[1] > 0) & (shapes[1] <= 1)

    def log_probability(self, k: Array, n: Array, p: Array) -> Array:
        some = k > 0
        safe = jnp.where(some, k, 1.0)
        ways = jnp.where(some, -lax.log(safe) - special.betaln(n, safe), 0.0)
        return ways + special.xlogy(n, p) + special.xlog1py(k, -p)

    def below(self, k: Array, n: Array, p: Array) -> Array:
        return special.nbdtr(k, n, p)

    def above(self, k: Array, n: Array, p: Array) -> Array:
        return special.nbdtrc(k, n, p)

    def expected(self, n: Array, p: Array) -> Array:
        return n * (1.0 - p) / p

    def variance(self, n: Array, p: Array) -> Array:
        return n * (1.0 - p) / (p * p)

    def draw(self, key: Array, like: Array, n: Array, p: Array) -> Array:
        one, two = random.split(key)
        rate = random.gamma(one, n, like.shape, like.dtype) * (1.0 - p) / p
        return random.poisson(two, lax.stop_gradient(rate), like.shape).astype(like.dtype)


class Poisson(Discrete):
    """The Poisson distribution of mean mu.

    >>> import functrans as ft
    >>> float(ft.scipy.stats.poisson.logpmf(0, 2.0))
    -2.0
    """

    shapes = ("mu",)

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return shapes[0] >= 0

    def log_probability(self, k: Array, mu: Array) -> Array:
        return special.xlogy(k, mu) - lax.lgamma(k + 1.0) - mu

    def below(self, k: Array, mu: Array) -> Array:
        return special.pdtr(k, mu)

    def above(self, k: Array, mu: Array) -> Array:
        return special.pdtrc(k, mu)

    def expected(self, mu: Array) -> Array:
        return mu

    def variance(self, mu: Array) -> Array:
        return mu

    def information(self, mu: Array) -> Array:
        """The sum of -p log(p), or from mu = 100 on its asymptotic series."""
        large = mu > 100.0
        small = jnp.where(large, 1.0, mu)

        def step(i: Any, k: Array, total: Array) -> tuple[Array, Array]:
            return k + 1.0, total + special.entr(lax.exp(self.log_probability(k, small)))

        zero = jnp.zeros_like(mu)
        total = loop(step, (zero, zero), lambda k, total: (
            k < small + 12.0 * lax.sqrt(small) + 20.0), 300)[1]
        far = jnp.where(large, mu, 100.0)
        series = 0.5 * lax.log(2 * math.pi * math.e * far) - (1.0 / 12.0 + (
            1.0 / 24.0 + (19.0 / 360.0 + 9.0 / 80.0 / far) / far) / far) / far
        return jnp.where(large, series, total)

    def draw(self, key: Array, like: Array, mu: Array) -> Array:
        return random.poisson(key, mu, like.shape).astype(like.dtype)


class RandInt(Discrete):
    """The uniform distribution of whole numbers in [low, high).

    >>> import functrans as ft
    >>> float(ft.scipy.stats.randint.pmf(1, 0, 4))
    0.25
    """

    shapes = ("low", "high")

    def possible(self, *shapes: Any, **none: Any) -> Any:
        low, high = shapes
        return (high > low) & (low == lax.floor(low)) & (high == lax.floor(high))

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        return low, high - 1.0

    def log_probability(self, k: Array, low: Array, high: Array) -> Array:
        return -lax.log(high - low)

    def below(self, k: Array, low: Array, high: Array) -> Array:
        return (k - low + 1.0) / (high - low)

    def above(self, k: Array, low: Array, high: Array) -> Array:
        return (high - 1.0 - k) / (high - low)

    def expected(self, low: Array, high: Array) -> Array:
        return 0.5 * (low + high - 1.0)

    def variance(self, low: Array, high: Array) -> Array:
        return ((high - low) ** 2 - 1.0) / 12.0

    def information(self, low: Array, high: Array) -> Array:
        return lax.log(high - low)


class Planck(Discrete):
    """The discrete exponential distribution of rate lambda_.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.planck.pmf(0, 1.0)), 4)
    0.6321
    """

    shapes = positive = ("lambda_",)

    def log_probability(self, k: Array, lambda_: Array) -> Array:
        return lax.log(-lax.expm1(-lambda_)) - k * lambda_

    def below(self, k: Array, lambda_: Array) -> Array:
        return -lax.expm1(-lambda_ * (k + 1.0))

    def above(self, k: Array, lambda_: Array) -> Array:
        return lax.exp(-lambda_ * (k + 1.0))

    def expected(self, lambda_: Array) -> Array:
        return 1.0 / lax.expm1(lambda_)


class Boltzmann(Discrete):
    """The discrete exponential distribution of rate lambda_ on [0, N).

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.boltzmann.pmf(0, 1.0, 2)), 4)
    0.7311
    """

    shapes = positive = ("lambda_", "N")

    def ends(self, lambda_: Array, N: Array) -> tuple[float, Array]:
        return 0.0, N - 1.0

    def log_probability(self, k: Array, lambda_: Array, N: Array) -> Array:
        return lax.log(lax.expm1(-lambda_) / lax.expm1(-lambda_ * N)) - k * lambda_

    def below(self, k: Array, lambda_: Array, N: Array) -> Array:
        return lax.expm1(-lambda_ * (k + 1.0)) / lax.expm1(-lambda_ * N)


class DLaplace(Discrete):
    """The discrete Laplace distribution, of probabilities exp(-a |k|) up to a factor.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.dlaplace.pmf(0, 1.0)), 4)
    0.4621
    """

    shapes = positive = ("a",)

    def ends(self, a: Array) -> tuple[float, float]:
        return -math.inf, math.inf

    def log_probability(self, k: Array, a: Array) -> Array:
        return lax.log(lax.tanh(0.5 * a)) - a * lax.abs(k)

    def below(self, k: Array, a: Array) -> Array:
        total = 1.0 + lax.exp(-a)
        return jnp.where(k >= 0, 1.0 - lax.exp(-a * (jnp.maximum(k, 0.0) + 1.0)) / total,
                         lax.exp(a * jnp.minimum(k, 0.0)) / total)

    def above(self, k: Array, a: Array) -> Array:
        return self.below(-k - 1.0, a)

    def expected(self, a: Array) -> Array:
        return jnp.zeros_like(a)


class LogSer(Discrete):
    """The logarithmic series distribution of parameter p, on k >= 1.

    Its upper tail is a sum of probabilities, of 37 / (1 - p) at most.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.logser.pmf(1, 0.5)), 4)
    0.7213
    """

    shapes = ("p",)

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return (shapes[0] > 0) & (shapes[0] < 1)

    def ends(self, p: Array) -> tuple[float, float]:
        return 1.0, math.inf

    def log_probability(self, k: Array, p: Array) -> Array:
        return k * lax.log(p) - lax.log(k) - lax.log(-lax.log1p(-p))

    def below(self, k: Array, p: Array) -> Array:
        return 1.0 - self.above(k, p)

    def above(self, k: Array, p: Array) -> Array:
        first = lax.exp(self.log_probability(k + 1.0, p))

        def step(i: Any, at: Array, term: Array, total: Array) -> tuple[Array, Array, Array]:
            term = term * p * (at / (at + 1.0))
            return at + 1.0, term, total + term

        return loop(step, (k + 1.0, first, first),
                    lambda at, term, total: term > 1e-17 * total, 1_000_000)[2]

    def expected(self, p: Array) -> Array:
        return -p / ((1.0 - p) * lax.log1p(-p))


class Zipf(Discrete):
    """Zipf's distribution, of probabilities k^-a up to a factor, on k >= 1.

    >>> import functrans as ft
    >>> round(float(ft.scipy.stats.zipf.pmf(1, 2.0)), 4)
    0.6079
    """

    shapes = ("a",)

    def possible(self, *shapes: Any, **none: Any) -> Any:
        return shapes[0] > 1

    def ends(self, a: Array) -> tuple[float, float]:
        return 1.0, math.inf

    def log_probability(self, k: Array, a: Array) -> Array:
        return -a * lax.log(k) - lax.log(special.zeta(a))

    def above(self, k: Array, a: Array) -> Array:
        return special.zeta(a, k + 1.0) / special.zeta(a)


bernoulli, binom, betabinom = Bernoulli("bernoulli"), Binom("binom"), BetaBinom("betabinom")
hypergeom, geom, nbinom = HyperGeom("hypergeom"), Geom("geom"), NBinom("nbinom")
poisson, randint, planck = Poisson("poisson"), RandInt("randint"), Planck("planck")
boltzmann, dlaplace = Boltzmann("boltzmann"), DLaplace("dlaplace")
logser, zipf = LogSer("logser"), Zipf("zipf")
