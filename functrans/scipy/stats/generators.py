"""What the generators of scipy.stats.sampling share: distributions on the host, keys and draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from functrans import numpy as jnp
from functrans import random
from functrans.callbacks import pure_callback
from functrans.core import dtypes
from functrans.core.errors import ArgumentError, FunctransError, explain_missing_names, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact, known_size
from functrans.scipy.stats.methods import key_of
from functrans.scipy.stats.qmc.sequences import Halton
from functrans.transforms.staged import ShapeDtypeStruct
from functrans.typing import Array, ArrayLike

__all__ = ["CalledBack", "Inverting", "UError", "UNURANError", "UniversalGenerator"]


class UNURANError(FunctransError, RuntimeError):
    """A distribution does not meet what a method of scipy.stats.sampling asks of it."""


class UError(NamedTuple):
    """How far from u the probabilities of the quantiles of u are."""

    max_error: Array
    mean_absolute_error: Array


class CalledBack:
    """A function of a distribution, of arrays or of Python's floats, by its identity."""

    def __init__(self, fun: Callable[[Any], Any]) -> None:
        self.fun = fun

    def __hash__(self) -> int:
        return id(getattr(self.fun, "__self__", self.fun))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CalledBack) and self.fun == other.fun

    def __call__(self, x: Any) -> np.ndarray[Any, Any]:
        """The values at an array of numbers; one by one where the function takes no arrays."""
        x = np.asarray(x, np.float64)
        with np.errstate(all="ignore"):
            try:
                y = np.asarray(self.fun(x), np.float64)
                if y.shape == x.shape:
                    return y
            except Exception:  # of a function of one float; its own error comes from the next line
                pass
            return np.reshape([float(self.fun(float(v))) for v in x.flat], x.shape)

    def traced(self, x: Array) -> Array:
        """The values in a program: part of it, or called back where they are of floats alone."""
        try:
            y: Array = jnp.asarray(self.fun(x))
            if y.shape == x.shape:
                return y
        except Exception:  # as above
            pass
        like = ShapeDtypeStruct(x.shape, np.float64)
        out: Array = pure_callback(self, like, x, vmap_method="expand_dims")
        return out


def method_of(name: str, dist: Any, *methods: str) -> CalledBack:
    """The first of the methods that a distribution has."""
    for method in methods:
        if callable(getattr(dist, method, None)):
            return CalledBack(getattr(dist, method))
    raise ArgumentError(f"scipy.stats.sampling.{name}: {shown(dist)} has no method "
                        f"{' or '.join(methods)}.", where=user_source(),
                        why="the set-up evaluates it.", fix=f"class D: def {methods[0]}(self, x)")


def domain_of(name: str, dist: Any, domain: Any) -> tuple[float, float]:
    """The ends of the support: as given, of `dist.support()`, or infinite."""
    if domain is None:
        domain = dist.support() if callable(getattr(dist, "support", None)) else (
            -math.inf, math.inf)
    try:
        ends = tuple(float(x) for x in domain)
    except (TypeError, ValueError):
        ends = ()
    if len(ends) != 2 or any(map(math.isnan, ends)):
        raise ArgumentError(f"scipy.stats.sampling.{name}: domain is {shown(domain)}.",
                            where=user_source(), why="it is two numbers.", fix="domain=(0.0, 1.0)")
    if ends[0] >= ends[1]:
        raise UNURANError(f"scipy.stats.sampling.{name}: domain is {ends}.", where=user_source(),
                          why="its first end is below the second.")
    return ends


def shape_of(size: Any) -> tuple[int, ...]:
    """A shape from None, an int or a sequence of ints."""
    sizes = () if size is None else size if isinstance(size, (tuple, list)) else (size,)
    return tuple(known_size("stats.sampling", "size", n, 0) for n in sizes)


class UniversalGenerator:
    """Draws of a distribution from tables that were made on the host: a tree of those tables.

    `random_state` is a key or the int of one. Draws without one continue from the generator's.
    """

    def __init__(self, fun: CalledBack | None, tables: dict[str, Any], random_state: Any) -> None:
        self._fun = fun
        self._tables: dict[str, Any] = {k: jnp.asarray(v) for k, v in tables.items()}
        self.set_random_state(random_state)

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self._tables, self._key, self._drawn), self._fun

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Self:
        made = object.__new__(cls)
        made._fun = aux
        made._tables, made._key, made._drawn = children
        return made

    def set_random_state(self, random_state: Any = None) -> None:
        """Draws are by this key, or that of this int, from now on."""
        self._key, self._drawn = key_of("sampling", random_state), 0

    def _next_key(self, random_state: Any) -> Array:
        if random_state is not None:
            return key_of("sampling", random_state)
        self._drawn += 1
        return random.fold_in(self._key, self._drawn)

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        raise NotImplementedError  # of the subclasses

    def rvs(self, size: Any = None, random_state: Any = None) -> Array:
        """Random numbers, of shape `size`; by the generator's own key without `random_state`."""
        drawn = self._draw(self._next_key(random_state), shape_of(size))
        kind = dtypes.default_float() if dtypes.kind(drawn.dtype) == "f" else dtypes.default_int()
        return drawn.astype(kind)


class Inverting(UniversalGenerator):
    """A generator by its quantiles."""

    def _quantile(self, u: Array) -> Array:
        raise NotImplementedError  # of the subclasses

    def ppf(self, u: ArrayLike) -> Array:
        """The quantiles of u; NaN outside of [0, 1]."""
        (p,) = inexact(u)
        return self._quantile(p.astype(np.float64)).astype(p.dtype)

    def _draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        return self._quantile(random.uniform(key, shape, np.float64))

    def qrvs(self, size: Any = None, d: int | None = None, qmc_engine: Any = None) -> Array:
        """Quantiles of quasi-random points, of shape `size` and with `d` > 1 of that last axis."""
        if qmc_engine is None:
            qmc_engine = Halton(d or 1, rng=self._next_key(None))
        elif d is not None and d != qmc_engine.d:
            raise ArgumentError(f"scipy.stats.sampling: d is {d}, and the engine has "
                                f"{qmc_engine.d}.", where=user_source(), fix="d=None")
        shape = shape_of(size) + ((qmc_engine.d,) if qmc_engine.d > 1 else ())
        return self.ppf(qmc_engine.random(math.prod(shape_of(size))).reshape(shape))

    def u_error(self, sample_size: int = 100000) -> UError:
        """The largest and the mean error of the probabilities of quantiles of random numbers."""
        n = known_size("stats.sampling", "sample_size", sample_size, 1000)
        if self._fun is None:
            raise ArgumentError("scipy.stats.sampling: the distribution has no cdf.",
                                where=user_source(), why="errors are measured by it.",
                                fix="class D: def cdf(self, x)")
        u = random.uniform(self._next_key(None), (n,), np.float64)
        error = jnp.abs(self._fun.traced(self._quantile(u)) - u)
        return UError(jnp.max(error), jnp.mean(error))


explain_missing_names(globals())
