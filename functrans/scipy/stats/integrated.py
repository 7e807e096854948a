"""Families of densities whose distribution functions are integrals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import partials, pushed
from functrans.scipy.stats.base import Continuous
from functrans.scipy.stats.integrals import log_side
from functrans.typing import Array

__all__ = ["Integrated"]


class Integrated(Continuous):
    """A family that states its density and a place in its middle.

    What is below z is integrated from z to the end on its side of the middle, relative to the
    density at z, so that tails have all digits; beyond the middle it is what that leaves of 1.
    """

    def middle(self, *shapes: Any, **none: Any) -> Any:
        """A place in the bulk, which divides the two tails."""
        return 0.0

    def _log_tail(self, z: Array, *shapes: Array) -> tuple[Array, Array]:
        """Whether z is in the lower tail, and the logarithm of its own one."""
        lower = z <= self.middle(*shapes)
        low, high = self.ends(*shapes)
        same = isinstance(low, float) and isinstance(high, float) and low == -high == -math.inf
        end = math.inf if same else jnp.where(lower, low, high)
        return lower, log_side(self.log_density, z, end, shapes, ~lower)

    def _share(self, z: Array, shapes: Any, upper: bool, log: bool) -> Array:
        def value(z: Array, *rest: Array) -> Array:
            lower, tail = self._log_tail(z, *rest)
            own = ~lower if upper else lower
            least = jnp.minimum(tail, -1e-16)
            if log:
                return jnp.where(own, tail, lax.log1p(-lax.exp(least)))
            return jnp.where(own, lax.exp(tail), -lax.expm1(tail))

        def slope(out: Array, z: Array, *rest: Array) -> Array:
            logs = self.log_density(z, *rest)
            rise = lax.exp(logs - out) if log else lax.exp(logs)
            return -rise if upper else rise

        rules = [slope, *(pushed(value, i + 1) for i in range(len(shapes)))]
        double = [x.astype(np.float64) for x in (z, *shapes)]
        out: Array = partials(*rules)(value)(*double)
        return out.astype(z.dtype)

    def below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return self._share(z, shapes, False, False)

    def above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return self._share(z, shapes, True, False)

    def log_below(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return self._share(z, shapes, False, True)

    def log_above(self, z: Array, *shapes: Any, **none: Any) -> Array:
        return self._share(z, shapes, True, True)

    def log_tail(self, z: Array, lower: Any, *shapes: Any, **none: Any) -> Array:
        own, tail = self._log_tail(z, *shapes)
        rest = lax.log1p(-lax.exp(jnp.minimum(tail, -1e-16)))
        return jnp.where(own == lower, tail, rest)
