"""Random numbers by rejection, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import lax, random
from functrans import numpy as jnp
from functrans.scipy.special.common import partials, pushed
from functrans.scipy.stats.families import DistributionLike
from functrans.typing import Array

__all__ = ["accepted", "moving_with"]

_MOST = 10_000


def accepted(key: Array, like: Array, propose: Callable[[Array], tuple[Array, Array]]) -> Array:
    """Numbers of the shape of `like`: of each the first that is taken.

    `propose` makes from a key numbers and whether they are taken. All are tried together; what was
    taken stays, so that an element depends on the key and itself alone.
    """
    def going(state: Any) -> Any:
        k, done, _ = state
        return (k < _MOST) & ~jnp.all(done)

    def step(state: Any) -> Any:
        k, done, value = state
        new, fine = propose(random.fold_in(key, k))
        return k + 1, done | fine, jnp.where(done, value, new)

    start = (jnp.zeros((), np.int32), jnp.zeros(like.shape, bool), jnp.zeros_like(like))
    out: Array = lax.while_loop(going, step, start)[2]
    return out


def moving_with(family: DistributionLike, draw: Callable[..., Array], shapes: Sequence[Array]
                ) -> Array:
    """draw(*shapes), with the derivatives of a quantile of the family in the shapes."""
    def slope(i: int) -> Callable[..., Array]:
        moved = pushed(family.below, i + 1)
        return lambda out, *rest: -moved(None, out, *rest) * lax.exp(
            -family.log_density(out, *rest))

    rules = [slope(i) for i in range(len(shapes))]
    out: Array = partials(*rules)(draw)(*shapes)
    return out
