"""How much of the variance of a function comes from each argument: Sobol's indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_size, one_of
from functrans.scipy.stats.methods import Rng, key_of
from functrans.scipy.stats.qmc.sequences import Sobol
from functrans.scipy.stats.resampling import BootstrapResult, bootstrap
from functrans.scipy.stats.results import ConfidenceInterval
from functrans.typing import Array, ArrayLike

__all__ = ["sobol_indices"]

Values = tuple[Array, Array, Array]


class HasQuantiles(Protocol):
    """A distribution with its parameters."""

    def ppf(self, q: Any, /) -> Any:
        """The quantiles of levels q."""
        ...


class BootstrapSobolResult(NamedTuple):
    """Intervals of both kinds of indices."""

    first_order: BootstrapResult
    total_order: BootstrapResult


class SobolResult:
    """Indices of the first order and of all orders with an argument, (outputs, arguments).

    Those of one output are vectors.
    """

    def __init__(self, values: Values, method: Callable[[Array, Array, Array], Any]) -> None:
        self._values, self._method = values, method
        self.first_order, self.total_order = _indices(values, method)

    def __repr__(self) -> str:
        return f"SobolResult(first_order={self.first_order}, total_order={self.total_order})"

    def bootstrap(self, confidence_level: float = 0.95, n_resamples: int = 999, *, rng: Rng = None
                  ) -> BootstrapSobolResult:
        """The intervals of the indices, by resampling the points with a key or an int."""
        a, b, ab = self._values

        def statistic(index: Array) -> Array:
            at = index.astype(int)
            return jnp.stack(_indices((a[:, at], b[:, at], ab[..., at]), self._method))

        places = jnp.arange(a.shape[1], dtype=a.dtype)
        shape = jnp.shape(self.first_order)
        found = []
        # a statistic of bootstrap is a number: all are drawn with one key
        for kind in (0, 1):
            each = [bootstrap(key_of("sobol_indices", rng), (places,), lambda v, i=i, k=kind:
                              statistic(v)[k].reshape(-1)[i], n_resamples=n_resamples,
                              confidence_level=confidence_level) for i in range(
                                  int(np.prod(shape)))]
            low, high = (jnp.stack([e.confidence_interval[side] for e in each]) for side in (0, 1))
            drawn = jnp.stack([e.bootstrap_distribution for e in each])
            error = jnp.stack([e.standard_error for e in each])
            found.append(BootstrapResult(
                ConfidenceInterval(low.reshape(shape), high.reshape(shape)),
                drawn.reshape(*shape, -1), error.reshape(shape)))
        return BootstrapSobolResult(*found)


def _saltelli(f_A: Array, f_B: Array, f_AB: Array) -> tuple[Array, Array]:
    """Estimates of Saltelli et al. (2010), table 2, (arguments, outputs)."""
    variance = jnp.var(jnp.stack([f_A, f_B]), (0, -1))
    first = jnp.mean(f_B * (f_AB - f_A), -1) / variance
    total = 0.5 * jnp.mean((f_A - f_AB) ** 2, -1) / variance
    return first.T, total.T


def _indices(values: Values, method: Callable[..., Any]) -> tuple[Array, Array]:
    first, total = (jnp.squeeze(jnp.asarray(v)) for v in method(
        f_A=values[0], f_B=values[1], f_AB=values[2]))
    # a constant has no variance to share
    return tuple(jnp.where(jnp.isfinite(v), v, 0)  # type: ignore[return-value]
                 for v in (first, total))


def sobol_indices(*, func: Callable[..., Any] | Mapping[str, ArrayLike], n: int,
                  dists: Sequence[HasQuantiles] | None = None,
                  method: str | Callable[..., Any] = "saltelli_2010", rng: Rng = None,
                  random_state: Rng = None) -> SobolResult:
    """Sobol's indices of a function of random arguments, of n points, a power of 2.

    `func(x)` takes points (d, points) to (points,) or (outputs, points); `dists` are distributions
    of the arguments with their parameters, or other objects with `ppf`. Or func has the values
    "f_A", "f_B" (outputs, n) and "f_AB" (d, outputs, n). The points are by a key or an int, `rng`.
    The result has `bootstrap()`.
    Source: Saltelli et al., Variance Based Sensitivity Analysis of Model Output (2010).

    >>> from types import SimpleNamespace
    >>> import functrans as ft
    >>> unit = SimpleNamespace(ppf=lambda q: q)
    >>> found = ft.scipy.stats.sobol_indices(func=lambda x: x[0] + 2 * x[1], n=256,
    ...                                      dists=[unit, unit])
    >>> found.first_order.round(1).tolist() == ft.numpy.array([0.2, 0.8]).tolist()
    True
    """
    count = known_size("stats.sobol_indices", "n", n)
    if count & (count - 1):
        raise ArgumentError(f"scipy.stats.sobol_indices: n is {n}.", where=user_source(),
                            why="points are balanced where it is a power of 2.",
                            fix=f"n={1 << count.bit_length()}")
    if not callable(method):
        one_of("stats.sobol_indices", "method", method, ("saltelli_2010",))
    of = method if callable(method) else _saltelli
    if callable(func):
        if not dists or not all(hasattr(v, "ppf") for v in dists):
            raise ArgumentError(f"scipy.stats.sobol_indices: dists is {shown(dists)}.",
                                where=user_source(), why="it has an object with ppf for each "
                                "argument of func.")
        d = len(dists)
        key = key_of("sobol_indices", random_state if rng is None else rng)
        points = Sobol(2 * d, bits=64, rng=key).random(count).T
        # the first point is 0 without the scramble, and in float32 it may be with it
        points = jnp.maximum(points, jnp.finfo(points.dtype).epsneg)
        a, b = (jnp.stack([jnp.asarray(v.ppf(points[i + d * side])) for i, v in enumerate(dists)])
                for side in (0, 1))
        mixed = jnp.where(jnp.eye(d, dtype=bool)[:, :, None], b[None], a[None])
        f_a, f_b = (jnp.atleast_2d(jnp.asarray(func(v))) for v in (a, b))
        flat = jnp.atleast_2d(jnp.asarray(func(jnp.moveaxis(mixed, 0, 1).reshape(d, -1))))
        if f_a.shape[1] != count or flat.shape[1] != count * d:
            raise ShapeError(f"scipy.stats.sobol_indices: func returns shape {f_a.shape}.",
                             where=user_source(), why=f"of points {a.shape} it returns "
                             f"(outputs, {count}).")
        f_ab = jnp.moveaxis(flat.reshape(-1, d, count), 1, 0)
    else:
        try:
            f_a, f_b, f_ab = inexact(*(func[k] for k in ("f_A", "f_B", "f_AB")))
        except KeyError as error:
            raise ArgumentError(f"scipy.stats.sobol_indices: func has no {error}.",
                                where=user_source(), why="it has f_A, f_B and f_AB.") from None
        f_a, f_b = (jnp.atleast_2d(v) for v in (f_a, f_b))
        f_ab = f_ab.reshape(-1, *f_a.shape)
        if f_a.shape != f_b.shape or f_a.shape[1] != count:
            raise ShapeError(f"scipy.stats.sobol_indices: f_A has shape {f_a.shape}, f_B "
                             f"{f_b.shape}.", where=user_source(), why="they are (outputs, n).")
    mean = jnp.mean(jnp.stack([f_a, f_b]), (0, -1))[:, None]
    return SobolResult((f_a - mean, f_b - mean, f_ab - mean), of)


publish(globals(), __all__)
