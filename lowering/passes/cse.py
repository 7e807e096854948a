"""Common subexpressions: the keys under which equal equations are found.

Two equations are one where primitive, parameters and operands agree; the order of the operands of
a commutative operation does not count. Literals agree in dtype and bits, so -0.0 is not 0.0.
Random bits are a function of their key and are merged too. What acts on the world is never merged,
nor is `optimization_barrier`, which separates a recomputation from the first computation: what
reads its results differs from what reads its operands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.jaxpr import Equation, Literal
from functrans.core.prune import has_effects
from functrans.primitives.arithmetic import add_p, max_p, min_p, mul_p
from functrans.primitives.barrier import optimization_barrier_p
from functrans.primitives.compare import and_p, eq_p, ne_p, or_p, xor_p
from functrans.primitives.differentiable import add_any_p

__all__ = ["COMMUTATIVE", "key_of", "literal_key"]

COMMUTATIVE = frozenset((add_p, add_any_p, mul_p, max_p, min_p, and_p, or_p, xor_p, eq_p, ne_p))


def literal_key(literal: Literal) -> Any:
    """Equal for literals of one dtype and the same bits."""
    value = np.asarray(literal.value)
    return value.dtype, value.tobytes()


def key_of(eqn: Equation) -> Any:
    """Equal for equations that compute the same; None for those that must not be merged.

    Literals among the operands are interned, so operands are compared by identity.
    """
    primitive, operands, params = eqn.primitive, eqn.invars, eqn.params
    if primitive is optimization_barrier_p or (primitive.higher_order and has_effects(eqn)):
        return None
    if len(operands) == 2 and primitive in COMMUTATIVE:
        a, b = operands
        return primitive, ((a, b) if id(a) < id(b) else (b, a))
    if not params:
        return primitive, operands
    try:
        key = primitive, operands, frozenset(params.items())
        hash(key)
    except TypeError:  # a parameter that cannot be compared
        return None
    if float in map(type, params.values()):  # 0.0 == -0.0
        return *key, str(params)
    return key


