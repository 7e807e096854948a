"""Which values of a program are 0 or NaN, wherever the finite numbers are that it is given.

A product with a zero that stands in the program is one: 0 times infinity is NaN. Multiples of `1j`
have such a real part, and their exponentials need no real one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from functrans.core import dtypes
from functrans.core.jaxpr import Atom, Equation, Literal, Var
from functrans.primitives.arithmetic import add_p, div_p, mul_p, neg_p, sub_p
from functrans.primitives.base import full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.compare import select_n_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dynamic_slice import dynamic_slice_p
from functrans.primitives.shape import reshape_p, rev_p, slice_p

__all__ = ["Noughts"]

_OF_THE_FIRST = frozenset((div_p, neg_p, broadcast_in_dim_p, reduce_sum_p, transpose_p, reshape_p,
                           rev_p, slice_p, dynamic_slice_p))
_OF_ALL = frozenset((add_p, sub_p, add_any_p))


class Noughts:
    """What is known of the values of a program that is being written."""

    def __init__(self) -> None:
        self._found: set[Atom] = set()
        self._read = 0

    def add(self, x: Atom) -> None:
        """Know a value to be 0 or NaN."""
        self._found.add(x)

    def has(self, x: Atom, eqns: Sequence[Equation]) -> bool:
        """Whether that is known of a value; `eqns` are those of the program so far."""
        for eqn in eqns[self._read:]:
            if self._of(eqn):
                self._found.add(eqn.outvars[0])
        self._read = len(eqns)
        return self._is(x)

    def _is(self, x: Atom) -> bool:
        if isinstance(x, Var):
            return x in self._found
        return isinstance(x, Literal) and bool(np.all(np.equal(x.value, 0)))

    def _of(self, eqn: Equation) -> bool:
        primitive, operands = eqn.primitive, eqn.invars
        if len(eqn.outvars) != 1 or dtypes.kind(eqn.outvars[0].aval.dtype) != "f":
            return False
        if primitive is full_p:
            return bool(eqn.params["value"] == 0)
        if primitive is mul_p:
            return any(map(self._is, operands))
        if primitive is select_n_p:
            return all(map(self._is, operands[1:]))
        if primitive is convert_element_type_p:
            return operands[0].aval.dtype.kind == "f" and self._is(operands[0])
        return (primitive in _OF_THE_FIRST and self._is(operands[0])) or (
            primitive in _OF_ALL and all(map(self._is, operands)))
