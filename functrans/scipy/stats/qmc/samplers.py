"""Points of other laws than the uniform one, from sequences of low discrepancy; points apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans import random
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy import special
from functrans.scipy.arguments import inexact, known_size, known_values, one_of
from functrans.scipy.stats.qmc.engines import QMCEngine
from functrans.scipy.stats.qmc.sequences import Sobol
from functrans.typing import Array, ArrayLike

__all__ = ["MultinomialQMC", "MultivariateNormalQMC", "PoissonDisk"]


def _engine(name: str, engine: QMCEngine | None, d: int, rng: Any) -> QMCEngine:
    if engine is None:
        return Sobol(d, scramble=True, bits=30, rng=rng)
    if not isinstance(engine, QMCEngine) or engine.d != d:
        raise ArgumentError(f"scipy.stats.qmc.{name}: engine is {shown(engine)}.",
                            where=user_source(), why=f"it is an engine of {d} dimensions.",
                            fix=f"engine=qmc.Sobol({d})")
    return engine


class MultinomialQMC:
    """Counts of trials by their outcome, of probabilities `pvals`, from a sequence of numbers.

    >>> from functrans.scipy.stats import qmc
    >>> qmc.MultinomialQMC([0.25, 0.75], 8, rng=0).random(2).tolist()
    [[2, 6], [2, 6]]
    """

    def __init__(self, pvals: ArrayLike, n_trials: int, *, engine: QMCEngine | None = None,
                 rng: Any = None, seed: Any = None) -> None:
        (self.pvals,) = inexact(pvals)
        if self.pvals.ndim != 1 or not self.pvals.size:
            raise ShapeError(f"scipy.stats.qmc.MultinomialQMC: pvals has shape {self.pvals.shape}.",
                             where=user_source(), why="it is a vector.")
        if not is_traced(self.pvals):
            known = np.asarray(self.pvals)
            if (known < 0).any() or abs(known.sum() - 1) > 1e-5:
                raise ArgumentError(f"scipy.stats.qmc.MultinomialQMC: pvals is {shown(known)}.",
                                    where=user_source(), why="probabilities add up to 1.")
        self.n_trials = known_size("stats.qmc.MultinomialQMC", "n_trials", n_trials)
        self.engine = _engine("MultinomialQMC", engine, 1, seed if rng is None else rng)

    def random(self, n: int = 1) -> Array:
        """Counts of n samples, (n, outcomes)."""
        count = known_size("stats.qmc.MultinomialQMC", "n", n, 0)
        draws = self.engine.random(count * self.n_trials).reshape(count, self.n_trials)
        sums = jnp.cumsum(self.pvals).astype(draws.dtype)
        # the last has what is left, whatever the sum; a number on an end is below it, but at 0
        above = (draws[..., None] > sums[:-1]) | (sums[:-1] <= 0)
        at = jnp.sum(above, -1)
        return jnp.sum(at[..., None] == jnp.arange(self.pvals.shape[0]), -2,
                       dtype=dtypes.default_int())

    def reset(self) -> MultinomialQMC:
        """The engine at its first point again."""
        self.engine.reset()
        return self


class MultivariateNormalQMC:
    """Points of a normal distribution, from a sequence of low discrepancy.

    `cov` is the covariance, the unit matrix by default, or `cov_root` a matrix R with R.T @ R equal
    to it. With `inv_transform` coordinates are quantiles, otherwise pairs of them by Box and
    Muller. They have derivatives in the mean and the covariance.

    >>> from functrans.scipy.stats import qmc
    >>> qmc.MultivariateNormalQMC([0.0, 5.0], [[1.0, 0.5], [0.5, 1.0]], rng=0).random(4).shape
    (4, 2)
    """

    def __init__(self, mean: ArrayLike, cov: ArrayLike | None = None, *,
                 cov_root: ArrayLike | None = None, inv_transform: bool = True,
                 engine: QMCEngine | None = None, rng: Any = None, seed: Any = None) -> None:
        given = [m for m in (cov_root, cov) if m is not None][:1]
        middle, *matrix = inexact(mean, *given)
        self.mean = jnp.atleast_1d(middle)
        self.d = d = self.mean.shape[0]
        if self.mean.ndim != 1 or (matrix and matrix[0].shape not in ((d, d), *([()] * (d == 1)))):
            raise ShapeError(f"scipy.stats.qmc.MultivariateNormalQMC: the mean has shape "
                             f"{middle.shape}, the matrix {matrix[0].shape if matrix else ()}.",
                             where=user_source(), why="a mean of d numbers has a (d, d) matrix.")
        self.root: Array | None = matrix[0].reshape(d, d) if matrix else None
        if cov_root is None and self.root is not None:
            known = None if is_traced(self.root) else np.asarray(self.root)
            if known is not None and not np.allclose(known, known.T):
                raise ArgumentError("scipy.stats.qmc.MultivariateNormalQMC: the covariance is not "
                                    "symmetric.", where=user_source())
            if known is not None and np.linalg.eigvalsh(known).min() < -1e-8:
                raise ArgumentError("scipy.stats.qmc.MultivariateNormalQMC: the covariance has a "
                                    "negative eigenvalue.", where=user_source())
            if known is not None and np.linalg.eigvalsh(known).min() < 1e-12:
                # Cholesky's factor needs a positive matrix
                values, vectors = np.linalg.eigh(known)
                self.root = jnp.asarray((vectors * np.sqrt(np.maximum(values, 0))).T).astype(
                    self.root.dtype)
            else:
                self.root = jnp.swapaxes(jnp.linalg.cholesky(self.root), -1, -2)
        self.inv_transform = bool(inv_transform)
        size = d if inv_transform else 2 * math.ceil(d / 2)
        self.engine = _engine("MultivariateNormalQMC", engine, size, seed if rng is None else rng)

    def _standard(self, n: int) -> Array:
        points = self.engine.random(n)
        if self.inv_transform:
            # away from the ends, whose quantiles are infinite
            margin = 1e-10 if points.dtype == np.float64 else 2.0**-22
            return special.ndtri(0.5 + (1 - margin) * (points - 0.5))
        length = jnp.sqrt(-2 * jnp.log(jnp.maximum(points[:, 0::2], jnp.finfo(points.dtype).tiny)))
        angle = 2 * math.pi * points[:, 1::2]
        both = jnp.stack([length * jnp.cos(angle), length * jnp.sin(angle)], -1)
        return both.reshape(n, -1)[:, :self.d]

    def random(self, n: int = 1) -> Array:
        """The next n points, (n, d)."""
        standard = self._standard(known_size("stats.qmc.MultivariateNormalQMC", "n", n, 0))
        standard = standard.astype(self.mean.dtype)
        return self.mean + (standard if self.root is None else standard @ self.root)

    def reset(self) -> MultivariateNormalQMC:
        """The engine at its first point again."""
        self.engine.reset()
        return self


class PoissonDisk(QMCEngine):
    """Points that are at least `radius` apart, as dense as the search finds them.

    Around each point `ncandidates` are tried, in the shell up to twice the radius ("volume") or at
    it ("surface"). `random(n)` returns fewer points where there is no place for n. The search is on
    the host, by a known key. Bounds are those of a box, the unit cube by default.
    Source: Bridson, Fast Poisson Disk Sampling in Arbitrary Dimensions (2007).

    >>> from functrans.scipy.stats import qmc
    >>> x = qmc.PoissonDisk(2, radius=0.2, rng=0).random(10)
    >>> x.shape, bool(qmc.geometric_discrepancy(x) >= 0.2)
    ((10, 2), True)
    """

    def __init__(self, d: int, *, radius: float = 0.05, hypersphere: str = "volume",
                 ncandidates: int = 30, optimization: str | None = None, rng: Any = None,
                 l_bounds: ArrayLike | None = None, u_bounds: ArrayLike | None = None,
                 seed: Any = None) -> None:
        super().__init__(d, optimization=optimization, rng=rng, seed=seed)
        one_of("stats.qmc.PoissonDisk", "hypersphere", hypersphere, ("volume", "surface"))
        self.radius, self.hypersphere = float(radius), hypersphere
        self.ncandidates = known_size("stats.qmc.PoissonDisk", "ncandidates", ncandidates)
        if not self.radius > 0:
            raise ArgumentError(f"scipy.stats.qmc.PoissonDisk: radius is {radius}.",
                                where=user_source(), why="it is above 0.")
        self.low, self.high = (np.broadcast_to(np.asarray(end if bound is None else bound, float),
                                               (self.d,))
                               for end, bound in ((0.0, l_bounds), (1.0, u_bounds)))
        if (self.low >= self.high).any():
            raise ArgumentError("scipy.stats.qmc.PoissonDisk: a lower bound is not below the upper "
                                "one.", where=user_source())
        data = known_values("stats.qmc.PoissonDisk", "the key", random.key_data(self.key),
                            "how many points are tried depends on it.",
                            "call it outside of jit")
        self._seed = [int(v) for v in data.reshape(-1)]
        self.reset()

    def reset(self) -> PoissonDisk:
        """The engine without points again."""
        super().reset()
        self._draws = np.random.default_rng(self._seed)
        self._found: list[np.ndarray] = []
        self._open: list[int] = []
        self._grid: dict[tuple[int, ...], int] = {}
        return self

    def _cell(self, point: np.ndarray) -> tuple[int, ...]:
        # a cell of this side has one point at most
        side = self.radius / math.sqrt(self.d)
        return tuple(np.floor((point - self.low) / side).astype(int).tolist())

    def _is_free(self, point: np.ndarray) -> bool:
        cell, reach = self._cell(point), math.ceil(math.sqrt(self.d))
        if (2 * reach + 1) ** self.d <= len(self._found):
            around = (tuple(c + o - reach for c, o in zip(cell, offset))
                      for offset in np.ndindex(*(2 * reach + 1,) * self.d))
            near = [self._grid[at] for at in around if at in self._grid]
        else:
            near = list(range(len(self._found)))
        return not near or float(np.min(np.linalg.norm(
            np.stack([self._found[i] for i in near]) - point, axis=1))) >= self.radius

    def _add(self, point: np.ndarray) -> None:
        self._grid[self._cell(point)] = len(self._found)
        self._open.append(len(self._found))
        self._found.append(point)

    def _random(self, n: int) -> Array:
        start = len(self._found)
        if n and not self._found:
            self._add(self.low + self._draws.random(self.d) * (self.high - self.low))
        while self._open and len(self._found) - start < n:
            pick = int(self._draws.integers(len(self._open)))
            centre = self._found[self._open[pick]]
            directions = self._draws.standard_normal((self.ncandidates, self.d))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
            lengths = np.full((self.ncandidates, 1), self.radius * (1 + 1e-9))
            if self.hypersphere == "volume":
                part = self._draws.random((self.ncandidates, 1))
                lengths = self.radius * (1 + part * (2**self.d - 1)) ** (1 / self.d)
            for point in centre + lengths * directions:
                if ((point < self.low) | (point > self.high)).any():
                    continue
                if len(self._found) - start < n and self._is_free(point):
                    self._add(point)
            if len(self._found) - start < n:
                self._open.pop(pick)
        found = np.array(self._found[start:]).reshape(-1, self.d)
        return jnp.asarray(found.astype(dtypes.default_float()))

    def fill_space(self) -> Array:
        """All points that there is place for."""
        return self.random(1 << 60)

    def random(self, n: int = 1, *, workers: int = 1) -> Array:
        """The next n points, or as many as there is place for, (points, d)."""
        points = self._random(known_size("stats.qmc.PoissonDisk", "n", n, 0))
        self.num_generated += points.shape[0]
        return points


publish(globals(), __all__)
