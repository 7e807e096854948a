"""Sequences of low discrepancy: Sobol's and Halton's."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size
from functrans.scipy.stats.qmc.engines import QMCEngine, cube
from functrans.typing import Array

__all__ = ["Halton", "Sobol"]

# how many primitive polynomials there are of each degree, of which each has a dimension
_OF_DEGREE: Final = (1, 1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630, 756, 1800, 2048, 7710,
                     7776)
_MOST: Final = sum(_OF_DEGREE)
_TABLE: Final = Path(__file__).parent / "direction_numbers.bin"


@lru_cache(maxsize=1)
def _stored() -> np.ndarray:
    """The table of Joe and Kuo (new-joe-kuo-6.21201) as bits.

    Of each dimension from the second on: the coefficients of its polynomial but the first and the
    last, and its numbers m_1 to m_degree, which are odd and below 2**i, without their last bits.
    """
    return np.unpackbits(np.frombuffer(_TABLE.read_bytes(), np.uint8))


@lru_cache(maxsize=16)
def _direction_numbers(d: int, bits: int) -> np.ndarray:
    """The direction numbers of d dimensions, (d, bits): the first has the highest bit.

    Source: Joe and Kuo, Constructing Sobol Sequences with Better Two-Dimensional Projections
    (2008); Bratley and Fox, Algorithm 659 (1988), for the recurrence.
    """
    numbers = np.zeros((d, bits), np.uint64)
    numbers[:1] = 1
    stream, place, dimension = _stored(), 0, 1
    for degree, count in enumerate(_OF_DEGREE):
        if degree == 0:
            continue
        each = degree - 1 + degree * (degree - 1) // 2
        used = max(0, min(count, d - dimension))
        rows = stream[place:place + used * each].reshape(used, each)
        place, at = place + count * each, dimension
        dimension += count
        if not used:
            continue
        coefficients = rows[:, :degree - 1].astype(bool)
        block, column = numbers[at:at + used], degree - 1
        for i in range(min(degree, bits)):
            value = np.zeros(used, np.uint64)
            for _ in range(i):
                value = (value << np.uint64(1)) | rows[:, column]
                column += 1
            block[:, i] = (value << np.uint64(1)) | np.uint64(1)
        for i in range(degree, bits):
            value = block[:, i - degree] ^ (block[:, i - degree] << np.uint64(degree))
            for k in range(1, degree):
                value ^= np.where(coefficients[:, k - 1], block[:, i - k] << np.uint64(k),
                                  np.uint64(0))
            block[:, i] = value
    return numbers << np.arange(bits - 1, -1, -1).astype(np.uint64)


class Sobol(QMCEngine):
    """Sobol's sequence in up to 21,201 dimensions, of 2**bits points, 2**30 by default.

    With `scramble` digits are mixed by a random matrix and shifted, by the key: any number of them
    is a random sample whose points are still even. Numbers of points are powers of 2; others warn.
    Points in float32 have the first 24 bits.
    Source: Sobol' (1967); Matousek, On the L2-Discrepancy for Anchored Boxes (1998).

    >>> from functrans.scipy.stats import qmc
    >>> qmc.Sobol(2, scramble=False).random(4).tolist()
    [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    """

    def __init__(self, d: int, *, scramble: bool = True, bits: int | None = None, rng: Any = None,
                 optimization: str | None = None, seed: Any = None) -> None:
        super().__init__(d, optimization=optimization, rng=rng, seed=seed)
        if self.d > _MOST:
            raise ArgumentError(f"scipy.stats.qmc.Sobol: d is {d}.", where=user_source(),
                                why=f"numbers are known for {_MOST} dimensions.")
        self.bits = 30 if bits is None else known_size("stats.qmc.Sobol", "bits", bits)
        if self.bits > 64:
            raise ArgumentError(f"scipy.stats.qmc.Sobol: bits is {bits}.", where=user_source(),
                                why="it is at most 64.")
        self.scramble = scramble
        self._type: Any = jnp.uint32 if self.bits <= 32 else jnp.uint64
        plain = _direction_numbers(self.d, self.bits)
        self._numbers = jnp.asarray(plain.astype(np.uint32 if self.bits <= 32 else np.uint64))
        self._shift = jnp.zeros((self.d,), self._type)
        if scramble:
            self._numbers, self._shift = self._scrambled(self._numbers)

    def _scrambled(self, numbers: Array) -> tuple[Array, Array]:
        matrix_key, shift_key = random.split(self.key)
        bits, kind = self.bits, self._type
        # each digit is mixed with those before it
        below = np.tril(np.ones((bits, bits), bool), -1)
        mix = random.bernoulli(matrix_key, 0.5, (self.d, bits, bits)) & jnp.asarray(below)
        mix = mix | jnp.asarray(np.eye(bits, dtype=bool))
        places = jnp.arange(bits - 1, -1, -1, dtype=kind)
        digits = ((numbers[..., None] >> places) & lax.full((), 1, kind)).astype(jnp.int32)
        mixed = jnp.matmul(digits, jnp.swapaxes(mix.astype(jnp.int32), -1, -2)) % 2
        weights = lax.full((), 1, kind) << places
        shift = random.bernoulli(shift_key, 0.5, (self.d, bits)).astype(kind)
        return jnp.sum(mixed.astype(kind) * weights, -1, dtype=kind), jnp.sum(
            shift * weights, -1, dtype=kind)

    def _random(self, n: int) -> Array:
        first = self.num_generated
        if first + n > 1 << self.bits:
            raise ArgumentError(f"scipy.stats.qmc.Sobol: points {first} to {first + n} of "
                                f"2**{self.bits}.", where=user_source(),
                                why="the sequence has no more.", fix="Sobol(d, bits=64)")
        if first == 0 and n & (n - 1):
            warnings.warn(f"Sobol: {n} points are not a power of 2, which keeps them even.",
                          stacklevel=4)
        index = np.arange(first, first + n, dtype=np.uint64)
        gray = index ^ (index >> np.uint64(1))
        found = jnp.broadcast_to(self._shift, (n, self.d))
        top = int(gray.max()).bit_length() if n else 0
        for i in range(top):
            has = jnp.asarray((gray >> np.uint64(i)) & np.uint64(1) == 1)
            found = found ^ jnp.where(has[:, None], self._numbers[:, i], 0)
        if dtypes.default_float() != np.float64 and self.bits > 24:
            found = found >> lax.full((), self.bits - 24, self._type)
            return cube(found.astype(jnp.float64) * 2.0**-24)
        return cube(found.astype(jnp.float64) * 2.0**-self.bits)

    def random_base2(self, m: int) -> Array:
        """The next 2**m points; all that were drawn are then a power of 2."""
        count = 1 << known_size("stats.qmc.Sobol", "m", m, 0)
        total = self.num_generated + count
        if total & (total - 1):
            raise ArgumentError(f"scipy.stats.qmc.Sobol: {self.num_generated} points were drawn, "
                                f"and 2**{m} are asked for.", where=user_source(),
                                why=f"{total} are not a power of 2.", fix="random(n)")
        return self.random(count)

    def fast_forward(self, n: int) -> Sobol:
        """The engine n points later, at no cost."""
        self.num_generated += known_size("stats.qmc.Sobol", "n", n, 0)
        return self


@lru_cache(maxsize=16)
def _primes(count: int) -> tuple[int, ...]:
    most = 16 if count < 6 else int(count * (math.log(count) + math.log(math.log(count)))) + 16
    is_prime = np.ones(most + 1, bool)
    is_prime[:2] = False
    for i in range(2, math.isqrt(most) + 1):
        is_prime[i * i::i] &= not is_prime[i]
    return tuple(np.nonzero(is_prime)[0][:count].tolist())


class Halton(QMCEngine):
    """Halton's sequence: the digits of numbers, mirrored, in the bases of the first d primes.

    With `scramble` the digits of each place and base are exchanged by a random permutation.
    Source: Halton (1960); Owen, A Randomized Halton Algorithm in R (2017).

    >>> from functrans.scipy.stats import qmc
    >>> qmc.Halton(2, scramble=False).random(4)[:, 0].tolist()
    [0.0, 0.5, 0.25, 0.75]
    """

    def __init__(self, d: int, *, scramble: bool = True, optimization: str | None = None,
                 rng: Any = None, seed: Any = None) -> None:
        super().__init__(d, optimization=optimization, rng=rng, seed=seed)
        self.base = list(_primes(self.d))
        self.scramble = scramble

    def _random(self, n: int) -> Array:
        columns = []
        for i, base in enumerate(self.base):
            # as many digits as are left in float64
            count = math.ceil(54 / math.log2(base)) - 1
            quotient = np.arange(self.num_generated, self.num_generated + n)
            total: Any = jnp.zeros((n,), jnp.float64)
            part = 1.0 / base
            if self.scramble:
                order = jnp.argsort(random.uniform(random.fold_in(self.key, i), (count, base)), -1)
            place = 0
            while place < count if self.scramble else 1.0 - part < 1.0:
                digit = jnp.asarray(quotient % base)
                total = total + (order[place][digit] if self.scramble else digit) * part
                part, quotient, place = part / base, quotient // base, place + 1
                if not self.scramble and not quotient.any():
                    break
            columns.append(total)
        return cube(jnp.stack(columns, 1) if columns else jnp.zeros((n, 0)))

    def fast_forward(self, n: int) -> Halton:
        """The engine n points later, at no cost."""
        self.num_generated += known_size("stats.qmc.Halton", "n", n, 0)
        return self


publish(globals(), __all__)
