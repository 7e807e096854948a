"""What numbers an expression can be, by what its operands can be.

Indices are computed: the place of the least of twelve times, an element of a table, a counter
modulo a size. Where their ranges are known, what keeps them in bounds says nothing. Floats have
few bounds, a cosine those of the unit circle, and may be NaN besides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import Computed, Index, LoopVar

__all__ = ["KnownRanges"]

Bounds = tuple[float, float]
"""The least and the greatest value, of a float unless it is NaN."""
INFINITE: Final = (-math.inf, math.inf)
NEAR_ONE: Final = 1.001  # so far from 1 no rounding leads
COMPARISONS: Final = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
MOST_KNOWN: Final = 4096
"""Elements of a constant that are looked through."""


class KnownRanges(ExprBuilder):
    """A builder that knows the bounds of its numbers, and what they decide."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._bounds: dict[Expr, Bounds] = {}

    def op(self, name: str, *args: Expr, dtype: str | None = None, aux: Any = None) -> Expr:
        """As of other builders; what bounds decide is a constant, or an operand."""
        if len(args) == 2 and args[0].dtype != "bool":
            if name in COMPARISONS:
                known = self._compared(name, *args)
                if known is not None:
                    return self.const(np.bool_(known), "bool")
            elif name in ("max", "min") and args[0].dtype[0] in "iu":
                for one, other in (args, args[::-1]):
                    if self._compared("ge" if name == "max" else "le", one, other):
                        return one
        return super().op(name, *args, dtype=dtype, aux=aux)

    def index(self, index: Index, dtype: str) -> Expr:
        """As of other builders; what is one computed number is that number."""
        if len(index.terms) == 1 and index.const == 0:
            (atom, factor), = index.terms.items()
            if isinstance(atom, Computed) and factor == 1 and atom.value.dtype == dtype:
                found: Expr = atom.value
                return found
        return super().index(index, dtype)

    def _make(self, op: str, args: tuple[Expr, ...], dtype: str, aux: Any,
              variables: frozenset[LoopVar]) -> Expr:
        found = super()._make(op, args, dtype, aux, variables)
        if dtype != "bool" and found not in self._bounds:
            bounds = self._bounds_of(found)
            least, most = _all_of(dtype)
            self._bounds[found] = bounds if bounds is not None and least <= bounds[0] \
                and bounds[1] <= most else (least, most)
        return found

    def bounds(self, e: Expr) -> Bounds:
        """The least and the greatest value of a number, of a float unless it is NaN."""
        if e.op == "const":
            value = int(e.aux) if e.dtype[0] in "iu" else float(e.aux)
            return INFINITE if math.isnan(value) else (value, value)
        return self._bounds.get(e) or _all_of(e.dtype)

    def _bounds_of(self, e: Expr) -> Bounds | None:
        if e.dtype[0] == "f" and e.op in OF_FLOATS:
            return OF_FLOATS[e.op]
        if e.op == "select":
            a, b = map(self.bounds, e.args[1:])
            return min(a[0], b[0]), max(a[1], b[1])
        if e.op in ("neg", "abs") and e.args[0].dtype != "bool":
            return OF_OPERANDS[e.op](self.bounds(e.args[0]))
        return self._bounds_of_integer(e) if e.dtype[0] in "iu" else None

    def _bounds_of_integer(self, e: Expr) -> Bounds | None:
        if e.op == "index":
            return _integers(*e.aux.bounds())
        if e.op == "load":
            return _of_elements(e.aux[0].known)
        if e.op == "convert" and e.args[0].dtype == "bool":
            return 0, 1
        if e.op in OF_OPERANDS and all(a.dtype[0] in "iu" for a in e.args):
            return OF_OPERANDS[e.op](*map(self.bounds, e.args))
        return None

    def _compared(self, name: str, a: Expr, b: Expr) -> bool | None:
        """What a comparison is whatever its operands are, if that is known."""
        found = name in ("eq", "le", "ge") if a is b else _decided(
            name, self.bounds(a), self.bounds(b))
        # of NaN no comparison holds but `ne`
        return found if a.dtype[0] in "iu" or found is (name == "ne") else None


def _decided(name: str, a: Bounds, b: Bounds) -> bool | None:
    if name in ("eq", "ne"):
        return name == "ne" if a[1] < b[0] or b[1] < a[0] else None
    if name in ("gt", "le"):
        a, b = b, a
    if name in ("lt", "gt"):
        return True if a[1] < b[0] else False if a[0] >= b[1] else None
    return True if a[0] >= b[1] else False if a[1] < b[0] else None


@cache
def _all_of(dtype: str) -> Bounds:
    if dtype[0] not in "iu":
        return INFINITE
    bits = int(dtype[1:])
    return (0, 2**bits - 1) if dtype[0] == "u" else (-2 ** (bits - 1), 2 ** (bits - 1) - 1)


def _integers(low: Any, high: Any) -> Bounds | None:
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def _of_elements(array: np.ndarray[Any, Any] | None) -> Bounds | None:
    if array is None or not 0 < array.size <= MOST_KNOWN:
        return None
    return int(array.min()), int(array.max())


def _product(a: Bounds, b: Bounds) -> Bounds:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _remainder(a: Bounds, b: Bounds) -> Bounds | None:
    """With the sign of the dividend."""
    if b[0] <= 0:
        return None
    most = b[1] - 1
    return (0 if a[0] >= 0 else max(a[0], -most)), (0 if a[1] <= 0 else min(a[1], most))


def _both(a: Bounds, b: Bounds) -> Bounds | None:
    """Of a bitwise and: no more than an operand that is not negative."""
    known = [x[1] for x in (a, b) if x[0] >= 0]
    return (0, min(known)) if known else None


OF_OPERANDS: Final[Mapping[str, Callable[..., Bounds | None]]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _product,
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "neg": lambda a: (-a[1], -a[0]),
    "abs": lambda a: (0 if a[0] <= 0 <= a[1] else min(map(abs, a)), max(map(abs, a))),
    "rem": _remainder,
    "and": _both,
    "convert": lambda a: a,
}
OF_FLOATS: Final[Mapping[str, Bounds]] = {
    **dict.fromkeys(("sin", "cos", "tanh", "erf"), (-NEAR_ONE, NEAR_ONE)),
    "logistic": (0, NEAR_ONE), "exp": (0, math.inf), "exp2": (0, math.inf), "sqrt": (0, math.inf),
    "cosh": (1 / NEAR_ONE, math.inf), "erfc": (0, 2 * NEAR_ONE)}
