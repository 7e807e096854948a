"""Integrals over boxes by quasi-random points, and points on the sphere."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import permutations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from functrans import numpy as jnp
from functrans import random
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact, known_size, refused
from functrans.transforms.flat import check_callable
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike


class QMCQuadResult(NamedTuple):
    """An integral by quasi-random points, and the standard error of its estimates.

    >>> found = ft.scipy.integrate.qmc_quad(lambda x: x[0] * x[1], [0.0, 0.0], [1.0, 1.0])
    >>> round(float(found.integral), 2)
    0.25
    """

    integral: Array
    standard_error: Array


def qmc_quad(func: Callable[[Array], Any], a: ArrayLike, b: ArrayLike, *, n_estimates: int = 8,
             n_points: int = 1024, qrng: Any = None, log: bool = False) -> QMCQuadResult:
    """The integral of `func` over a box, and its standard error, by quasi-random points.

    func takes points (dims, n_points) and returns (n_points,). The integral is the mean of
    `n_estimates`, each over a sequence of its own. `qrng` is a key of random numbers, a seed, or an
    object whose `random(n)` gives points (n, dims) of the unit box. Those of a key are the
    multiples of the powers of 1 / phi, phi the root of x**(dims + 1) = x + 1, mod 1, shifted at
    random. Differentiated in the limits and what func closes over. `log` is refused.
    Source: Roberts, The unreasonable effectiveness of quasirandom sequences (2018).

    >>> import functrans as ft
    >>> f = lambda x: ft.numpy.exp(-(x ** 2).sum(axis=0))
    >>> found = ft.scipy.integrate.qmc_quad(f, [0.0, 0.0], [1.0, 1.0])
    >>> round(float(found.integral), 2)
    0.56
    """
    check_callable(func, "scipy.integrate.qmc_quad")
    if log:
        raise refused("integrate.qmc_quad", "log=True", "values are added as they are.",
                      "lambda x: functrans.numpy.exp(func(x))")
    low, high = (jnp.atleast_1d(v) for v in inexact(a, b))
    if low.ndim != 1:
        raise ShapeError(f"functrans.scipy.integrate.qmc_quad: a has shape {low.shape}.",
                         where=user_source(), why="there is a limit for each dimension.")
    low, high = jnp.broadcast_arrays(low, high)
    for v in (low, high):
        if not is_traced(v) and not bool(jnp.all(jnp.isfinite(v))):
            raise ArgumentError("functrans.scipy.integrate.qmc_quad: a limit is not finite.",
                                where=user_source(), fix="substitute x = t / (1 - t**2)")
    rounds = known_size("integrate.qmc_quad", "n_estimates", n_estimates)
    size = known_size("integrate.qmc_quad", "n_points", n_points)
    d = low.size
    if hasattr(qrng, "random") and not hasattr(qrng, "dtype"):
        unit = jnp.stack([jnp.asarray(qrng.random(size)).astype(low.dtype)
                          for _ in range(rounds)])
        if unit.shape != (rounds, size, d):
            raise ShapeError(f"functrans.scipy.integrate.qmc_quad: qrng.random({size}) has shape "
                             f"{unit.shape[1:]}.", where=user_source(), why=f"it is ({size}, {d}).")
    else:
        key = random.key(0 if qrng is None else int(qrng)) \
            if qrng is None or isinstance(qrng, (int, np.integer)) else qrng
        root = 2.0
        for _ in range(60):
            root = (1 + root) ** (1 / (d + 1))
        steps = np.arange(1, size + 1)[:, None] * root ** -np.arange(1.0, d + 1)
        shifts = random.uniform(key, (rounds, 1, d), low.dtype)
        unit = (jnp.asarray(steps % 1).astype(low.dtype) + shifts) % 1
    volume = jnp.prod(high - low)

    def estimate(points: Array) -> Array:
        values = jnp.asarray(func((low + (high - low) * points).T))
        if values.shape != (size,):
            raise ShapeError(f"functrans.scipy.integrate.qmc_quad: func returns shape "
                             f"{values.shape}.", where=user_source(),
                             why=f"it has a value for each of {size} points.")
        found: Array = jnp.mean(values) * volume
        return found

    estimates = vmap(estimate)(unit)
    spread = jnp.std(estimates, ddof=1) if rounds > 1 else jnp.full((), math.nan, low.dtype)
    return QMCQuadResult(jnp.mean(estimates), spread / math.sqrt(rounds))


@cache
def _orbits() -> np.ndarray[Any, Any]:
    """Of each rule the degree, sorted coordinates of a point of each orbit, and its weight."""
    found: np.ndarray[Any, Any] = np.load(Path(__file__).parent / "data" / "lebedev.npy")
    return found


def lebedev_rule(n: int) -> tuple[Array, Array]:
    """Points (3, m) on the unit sphere and weights, exact for polynomials of degree n.

    The weights add up to 4 pi. There are rules of degrees 3 to 31 that are odd, and of every sixth
    from 35 to 131. Raises ArgumentError for another degree.
    Source: Lebedev and Laikov, Doklady Mathematics 59 (1999).

    >>> import functrans as ft
    >>> points, weights = ft.scipy.integrate.lebedev_rule(5)
    >>> points.shape, round(float((weights * points[2] ** 2).sum() / ft.numpy.pi), 4)
    ((3, 14), 1.3333)
    """
    degree = known_size("integrate.lebedev_rule", "n", n)
    table = _orbits()
    rows = table[table[:, 0] == degree]
    if not len(rows):
        known = ", ".join(str(int(v)) for v in np.unique(table[:, 0]))
        raise ArgumentError(f"functrans.scipy.integrate.lebedev_rule: there is no rule of degree "
                            f"{degree}.", where=user_source(), fix=f"one of {known}")
    points, weights = [], []
    for _, *place, weight in rows:
        orbit = sorted({tuple(s * place[k] + 0.0 for s, k in zip(signs, order))
                        for order in permutations(range(3))
                        for signs in product((1, -1), repeat=3)})
        points += orbit
        weights += [weight] * len(orbit)
    dtype = default_float()
    return jnp.asarray(np.array(points).T, dtype), jnp.asarray(np.array(weights), dtype)
