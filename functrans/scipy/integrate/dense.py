"""Solutions of differential equations between their steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.numpy.common import is_traced
from functrans.scipy.arguments import inexact
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike


class DenseOutput(ABC):
    """A solution within one step, from `t_old` to `t`: called at a time, or a vector of times.

    >>> solver = ft.scipy.integrate.RK45(lambda t, y: -y, 0.0, jnp.ones(1), 1.0)
    >>> _ = solver.step()
    >>> within = solver.dense_output()
    >>> bool(abs(within(within.t_old)[0] - 1) < 1e-6), within(jnp.zeros(3)).shape
    (True, (1, 3))
    """

    def __init__(self, t_old: Any, t: Any) -> None:
        self.t_old, self.t = t_old, t
        self.t_min, self.t_max = jnp.minimum(t_old, t), jnp.maximum(t_old, t)

    def __call__(self, t: ArrayLike) -> Array:
        (at,) = inexact(t)
        if at.ndim > 1:
            raise ArgumentError(f"functrans.scipy.integrate.DenseOutput: t has shape {at.shape}.",
                                where=user_source(), why="it is a number or a vector.")
        at = at.astype(self.t_min.dtype)
        return vmap(self._value, out_axes=1)(at) if at.ndim else self._value(at)

    @abstractmethod
    def _value(self, t: Array) -> Array:
        """The solution at one time."""


class StepFunction(DenseOutput):
    """A solution within one step that a function gives."""

    def __init__(self, t_old: Any, t: Any, value: Callable[[Array], Array]) -> None:
        super().__init__(t_old, t)
        self._of = value

    def _value(self, t: Array) -> Array:
        return self._of(t)


class OdeSolution:
    """A solution of many steps: `interpolants` between the times `ts`, called as one of these.

    Before the first time and after the last one it goes on as it does in the nearest step.

    >>> found = ft.scipy.integrate.solve_ivp(lambda t, y: -y, (0.0, 2.0), jnp.ones(1), rtol=1e-6,
    ...                                      dense_output=True)
    >>> print(found.sol(jnp.array([0.0, 1.0])).round(3))
    [[1.    0.368]]
    """

    def __init__(self, ts: Any, interpolants: Sequence[DenseOutput], alt_segment: bool = False
                 ) -> None:
        known = np.asarray([_number(t) for t in ts])
        steps = np.diff(known)
        if len(known) != len(interpolants) + 1 or not (
                (steps > 0).all() or (steps < 0).all()):
            raise ArgumentError(f"functrans.scipy.integrate.OdeSolution: {len(known)} times, "
                                f"{len(interpolants)} interpolants.", where=user_source(),
                                why="times go one way, and there is one more of them.")
        self.ts, self.interpolants = jnp.stack([jnp.asarray(t) for t in ts]), list(interpolants)
        self.n_segments, self.ascending = len(interpolants), bool(steps[0] > 0)
        self.t_min, self.t_max = float(known.min()), float(known.max())
        self._known = known if self.ascending else known[::-1]
        self._side: Any = "right" if alt_segment == self.ascending else "left"

    def __call__(self, t: ArrayLike) -> Array:
        (at,) = inexact(t)
        flat = at.reshape(-1)
        value = lax.stop_gradient(flat) if isinstance(flat, Tracer) else flat
        if is_traced(value):
            return self._everywhere(flat).reshape(-1, *at.shape)
        places = self._segments(np.asarray(value))
        parts = [self.interpolants[i](flat[np.flatnonzero(places == i)])
                 for i in np.unique(places)]
        order = np.argsort(np.concatenate([np.flatnonzero(places == i)
                                           for i in np.unique(places)]))
        found = jnp.concatenate(parts, axis=1)[:, order]
        return found.reshape(found.shape[0], *at.shape)

    def _segments(self, t: Any) -> Any:
        place = np.clip(np.searchsorted(self._known, t, side=self._side) - 1, 0,
                        self.n_segments - 1)
        return place if self.ascending else self.n_segments - 1 - place

    def _everywhere(self, t: Array) -> Array:
        """At traced times: all steps, of which one is chosen."""
        ts = lax.stop_gradient(self.ts)
        ts = ts if self.ascending else ts[::-1]
        place = jnp.clip(jnp.searchsorted(ts, t, side=self._side) - 1, 0, self.n_segments - 1)
        place = place if self.ascending else self.n_segments - 1 - place
        found = jnp.zeros_like(self.interpolants[0](t))
        for i, within in enumerate(self.interpolants):
            found = jnp.where(place == i, within(t), found)
        return found


def _number(t: Any) -> float:
    number: Any = lax.stop_gradient(t) if isinstance(t, Tracer) else t
    return float(number)
