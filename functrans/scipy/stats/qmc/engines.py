"""What sequences of points in the unit cube share, and Latin hypercubes."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size, known_values, one_of, refused
from functrans.scipy.stats.methods import key_of
from functrans.scipy.stats.qmc.discrepancies import exchanged
from functrans.typing import Array, ArrayLike

__all__ = ["LatinHypercube", "QMCEngine"]


def cube(x: Array) -> Array:
    """Points of the unit cube in the default dtype, below 1 in that too."""
    dtype = dtypes.default_float()
    if x.dtype == dtype:
        return x
    below = jnp.asarray(1 - np.finfo(dtype).epsneg, dtype)
    return jnp.minimum(x.astype(dtype), below)


class QMCEngine(abc.ABC):
    """A sequence of points in the unit cube of d dimensions; subclasses have `_random(n)`.

    `rng` is a key or the int of one, 0 by default: the same gives the same points. `optimization`
    "random-cd" exchanges coordinates of points for a smaller discrepancy. `num_generated` is how
    many points were drawn. A method of an engine that is made inside of `jit`, with a key that is
    traced, is part of the program: n is known.

    >>> import functrans as ft
    >>> from functrans.scipy.stats import qmc
    >>> class Uniform(qmc.QMCEngine):
    ...     def _random(self, n):
    ...         return ft.random.uniform(self._next_key(), (n, self.d))
    >>> engine = Uniform(2, rng=0)
    >>> first = engine.random(3)
    >>> first.shape, bool((engine.reset().random(3) == first).all())
    ((3, 2), True)
    """

    def __init__(self, d: int, *, optimization: str | None = None, rng: Any = None,
                 seed: Any = None) -> None:
        self.d = known_size("stats.qmc", "d", d, 0)
        if optimization == "lloyd":
            raise refused("stats.qmc", 'optimization="lloyd"', "it moves points over the cells of "
                          "Voronoi diagrams, which are made on the host.",
                          'optimization="random-cd"')
        one_of("stats.qmc", "optimization", optimization, (None, "random-cd"))
        self.optimization = optimization
        self.key = key_of("qmc", seed if rng is None else rng)
        self.num_generated = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d={self.d}, num_generated={self.num_generated})"

    @abc.abstractmethod
    def _random(self, n: int) -> Array:
        """The next n points, (n, d)."""

    def _next_key(self) -> Array:
        """A key of its own for the points from `num_generated` on."""
        return random.fold_in(self.key, self.num_generated)

    def random(self, n: int = 1, *, workers: int = 1) -> Array:
        """The next n points, of shape (n, d), in [0, 1); `workers` changes nothing."""
        count = known_size("stats.qmc", "n", n, 0)
        points = self._random(count)
        if self.optimization is not None and count > 1:
            points = exchanged(random.fold_in(self._next_key(), 1), points)
        self.num_generated += count
        return points

    def integers(self, l_bounds: ArrayLike, *, u_bounds: ArrayLike | None = None, n: int = 1,
                 endpoint: bool = False, workers: int = 1) -> Array:
        """The next n points as whole numbers from `l_bounds` up to `u_bounds`, (n, d).

        Without `u_bounds` they are from 0 up to `l_bounds`, which `endpoint` includes.
        """
        bounds = (0, l_bounds) if u_bounds is None else (l_bounds, u_bounds)
        low, high = (known_values("stats.qmc", "a bound", b, "it says which numbers there are.",
                                  "l_bounds=0, u_bounds=10") for b in bounds)
        if any(np.any(v != np.floor(v)) for v in (low, high)):
            raise ArgumentError("scipy.stats.qmc: bounds are broken numbers.", where=user_source(),
                                why="the points are whole.")
        top = high + 1 if endpoint else high
        if np.any(top <= low):
            raise ArgumentError("scipy.stats.qmc: a lower bound is not below the upper one.",
                                where=user_source())
        points = self.random(n)
        scaled = jnp.floor(jnp.asarray(low).astype(points.dtype) + points * jnp.asarray(
            top - low).astype(points.dtype))
        return jnp.minimum(scaled, jnp.asarray(top - 1)).astype(dtypes.default_int())

    def reset(self) -> Self:
        """The engine at its first point again."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> Self:
        """The engine n points later."""
        self.random(n)
        return self


class LatinHypercube(QMCEngine):
    """Points of which each coordinate is in every n-th of [0, 1) once.

    Without `scramble` they are in the middles. `strength` 2 has each pair of coordinates in every
    cell of p times p once, for n = p**2 points of a prime p, d <= p + 1.
    Source: McKay, Beckman and Conover (1979); Tang, Orthogonal Array-Based Latin Hypercubes (1993).

    >>> from functrans.scipy.stats import qmc
    >>> x = qmc.LatinHypercube(2, rng=0).random(4)
    >>> sorted((x[:, 0] * 4).astype(int).tolist())
    [0, 1, 2, 3]
    """

    def __init__(self, d: int, *, scramble: bool = True, strength: int = 1,
                 optimization: str | None = None, rng: Any = None, seed: Any = None) -> None:
        super().__init__(d, optimization=optimization, rng=rng, seed=seed)
        one_of("stats.qmc.LatinHypercube", "strength", strength, (1, 2))
        self.scramble, self.strength = scramble, strength

    def _random(self, n: int) -> Array:
        make: Callable[[Array, int], Array] = self._one if self.strength == 1 else self._two
        return make(self._next_key(), n)

    def _one(self, key: Array, n: int) -> Array:
        order, inside = random.split(key)
        dtype = dtypes.default_float()
        places = jnp.argsort(random.uniform(order, (n, self.d)), 0)
        off = random.uniform(inside, (n, self.d), dtype) if self.scramble else 0.5
        return cube((places + off) / jnp.asarray(max(n, 1), jnp.float64))

    def _two(self, key: Array, n: int) -> Array:
        p = math.isqrt(n)
        if p * p != n or p < 2 or any(p % i == 0 for i in range(2, math.isqrt(p) + 1)):
            raise ArgumentError(f"scipy.stats.qmc.LatinHypercube: n is {n}, strength 2.",
                                where=user_source(), why="it is the square of a prime.",
                                fix=f"random({_next_prime(p) ** 2})")
        if self.d > p + 1:
            raise ArgumentError(f"scipy.stats.qmc.LatinHypercube: d is {self.d}, n {n}.",
                                where=user_source(), why="d is at most sqrt(n) + 1.")
        first, second = (v.reshape(-1) for v in np.meshgrid(np.arange(p), np.arange(p)))
        array = np.stack([first, second, *((first + i * second) % p for i in range(1, p))], 1)
        array = array[:, :self.d]
        symbols, inside, rows = random.split(key, 3)
        shuffled = jnp.argsort(random.uniform(symbols, (p, self.d)), 0)
        levels = jnp.take_along_axis(shuffled, jnp.asarray(array), 0)
        # in each level of a coordinate its p points are a Latin hypercube again
        mixed = random.uniform(rows, (n, self.d))
        order = jnp.argsort(levels + mixed, 0)
        within = jnp.argsort(order, 0) % p
        off = random.uniform(inside, (n, self.d)) if self.scramble else 0.5
        return cube((levels * p + within + off) / jnp.asarray(n, jnp.float64))


def _next_prime(n: int) -> int:
    n = max(n, 2)
    while any(n % i == 0 for i in range(2, math.isqrt(n) + 1)):
        n += 1
    return n


def bits_of(x: Array, count: int) -> Array:
    """The bits of whole numbers along a new last axis, the least first."""
    return (x[..., None] >> jnp.arange(count, dtype=x.dtype)) & lax.full((), 1, x.dtype)


publish(globals(), __all__)
