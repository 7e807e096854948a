"""Constant folding up to NaN: what is one number, unless an operand is infinite or NaN.

Such is x - x, and what is computed of it and of constants: the distance of a body from itself,
where all pairs are taken. They are that difference plus a number, however long the way to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.primitives.fused import fma_p

__all__ = ["FlatNumbers"]

FLAT: Final[Mapping[str, Callable[..., Any]]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "fma": fma_p.evaluate, "abs": np.abs, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x)}
"""Operations whose results are rounded as here, and NaN where an operand is."""
KINDS: Final[Mapping[str, Callable[[Any], Any]]] = {"f32": np.float32, "f64": np.float64}


class FlatNumbers(ExprBuilder):
    """A builder that knows such expressions."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._flat: dict[Expr, tuple[Any, frozenset[Expr]]] = {}
        """Of an expression the number, and the differences that are 0 or NaN."""
        self._sums: dict[frozenset[Expr], Expr] = {}

    def op(self, name: str, *args: Expr, dtype: str | None = None, aux: Any = None) -> Expr:
        """As of other builders; an operation on one number is another one."""
        if name in FLAT:
            flat = self._flat_op(name, args)
            if flat is not None:
                return flat
        return super().op(name, *args, dtype=dtype, aux=aux)

    def _flat_op(self, name: str, args: tuple[Expr, ...]) -> Expr | None:
        dtype = args[0].dtype
        kind = KINDS.get(dtype)
        if kind is None:
            return None
        if name == "sub" and args[0] is args[1] and args[0] not in self._flat:
            found = super().op(name, *args)
            self._flat[found] = kind(0), frozenset((found,))
            return found
        if not any(a in self._flat for a in args) or not all(
                a in self._flat or a.op == "const" for a in args):
            return None
        numbers = [self._flat[a][0] if a in self._flat else kind(a.aux) for a in args]
        with np.errstate(all="ignore"):
            number = kind(FLAT[name](*numbers))
        if np.isnan(number) or (number == 0 and np.signbit(number)):
            return None
        sources = [self._flat[a][1] for a in args if a in self._flat]
        found = nothing = self._sum(sources)
        if number != 0:
            found = super().op("add", nothing, self.const(number, dtype))
        self._flat[found] = number, frozenset().union(*sources)
        return found

    def _sum(self, sources: Sequence[frozenset[Expr]]) -> Expr:
        """The sum of differences, each once."""
        first, *others = sources
        if others and first != others[0]:
            both = first | others[0]
            if both not in self._sums:
                self._sums[both] = super().op("add", self._sum([first]), self._sum(others))
            return self._sums[both]
        return self._sums.get(first) or next(iter(first))
