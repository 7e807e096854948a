"""Riemann's zeta function of all real numbers, less 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.scipy.special.common import over_nodes, partials, pushed, wide
from functrans.scipy.special.cylinder import sin_pi
from functrans.scipy.special.gammas import gammaln, zeta
from functrans.typing import Array

__all__ = ["zetac"]

_COUNT: Final = 12
_BASES: Final = np.log(np.arange(2.0, _COUNT))
_BERNOULLI: Final = [1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160,
                     -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000]
"""B_2k / (2 k)!"""


def _inside(x: Array) -> Array:
    """zeta(x) - 1 for -1 < x < 1 by Euler's and Maclaurin's sum from 12 on."""
    total = over_nodes(lambda log, x: lax.exp(-x * log), _BASES, np.ones(len(_BASES)), x)
    tail = lax.exp(-x * math.log(_COUNT))
    total = total + tail * (0.5 + _COUNT / (x - 1.0))
    rising = x
    for k, c in enumerate(_BERNOULLI):
        total = total + c * rising * tail / _COUNT ** (2 * k + 1)
        rising = rising * (x + (2 * k + 1)) * (x + (2 * k + 2))
    return total


def _zetac_value(x: Array) -> Array:
    above, below = x > 1, x < -0.5
    high = zeta(jnp.where(above & (x < 1e3), x, 2.0), 2.0)
    middle = _inside(jnp.where(above | below | (x == 1), 0.0, x))
    # DLMF 25.4.1
    far = jnp.where(below & (x > -1e3), x, -0.5)
    log = far * math.log(2 * math.pi) - math.log(math.pi) + gammaln(1.0 - far)
    half = lax.exp(0.5 * log)
    low = half * sin_pi(0.5 * far) * zeta(1.0 - far) * half - 1.0
    value = jnp.where(above, jnp.where(x < 1e3, high, 0.0), jnp.where(below, low, middle))
    return jnp.where(x == 1, math.inf, jnp.where((x == x) & (x > -1e3), value, math.nan))


_zetac: Callable[..., Array] = partials(pushed(_zetac_value, 0))(_zetac_value)


@wide
def zetac(x: Array) -> Array:
    """Riemann's zeta function of a real number less 1.

    >>> import functrans as ft
    >>> round(float(ft.scipy.special.zetac(2.0)), 4)
    0.6449
    """
    return _zetac(x)
