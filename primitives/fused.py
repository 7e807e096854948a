"""A product and a sum that round once, as processors compute them in one instruction."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.primitives.arithmetic import mul
from functrans.primitives.elementwise import Elementwise, Operation

__all__ = ["fma", "fma_p"]

SPLITTER = 2.0**27 + 1.0


class Fma(Elementwise):
    """x * y + z, rounded once: a fused multiply-add."""

    kinds = "f"
    derivatives = (lambda t, out, x, y, z: mul(t, y), lambda t, out, x, y, z: mul(x, t),
                   lambda t, out, x, y, z: t)

    def evaluate(self, x: Any, y: Any, z: Any) -> Any:
        dtype = np.result_type(x, y, z)
        x, y, z = (np.asarray(v, np.float64) for v in (x, y, z))
        with np.errstate(all="ignore"):
            plain = x * y + z
            if dtype != np.float64:
                return plain.astype(dtype)
            product, rest = _two_product(x, y)
            total, lost = _two_sum(product, z)
            exact = total + (rest + lost)
        return np.where(np.isfinite(exact), exact, plain)


def _two_product(x: Any, y: Any) -> tuple[Any, Any]:
    """A product and what it lacks (Dekker 1971)."""
    product = x * y
    (a, b), (c, d) = _halves(x), _halves(y)
    return product, ((a * c - product) + a * d + b * c) + b * d


def _halves(x: Any) -> tuple[Any, Any]:
    scaled = SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


def _two_sum(x: Any, y: Any) -> tuple[Any, Any]:
    """A sum and what it lacks (Knuth 1969)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


fma_p = Fma()
fma: Operation = fma_p.bind
