"""Symbolic sizes: a `Dim` is an integer expression over named, non-negative sizes.

A plain name needs no algebra, so sympy is imported only when an expression is built.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Union

from functrans.core.errors import ConcretizationError

if TYPE_CHECKING:
    import sympy

Size = Union[int, "Dim"]
Shape = tuple[Size, ...]

_fresh = itertools.count()


class Dim:
    """A size that is known only when the program runs, such as `B` or `2*B + 1`."""

    __slots__ = ("_expr", "name")

    def __init__(self, name: str, expr: sympy.Expr | None = None) -> None:
        self.name = name
        self._expr = expr

    @staticmethod
    def fresh(prefix: str) -> Dim:
        """A size with a name that no other size has: one that a program decides as it runs."""
        return Dim(f"{prefix}{next(_fresh)}")

    @property
    def expr(self) -> sympy.Expr:
        if self._expr is None:
            # lazy: only programs with symbolic arithmetic pay for it
            import sympy  # noqa: PLC0415

            self._expr = sympy.Symbol(self.name, integer=True, nonnegative=True)
        return self._expr

    @property
    def is_name(self) -> bool:
        """True of a bare name, False of an expression over names."""
        return self._expr is None or self._expr.is_Symbol is True

    def names(self) -> frozenset[str]:
        if self.is_name:
            return frozenset((self.name,))
        return frozenset(str(symbol) for symbol in self.expr.free_symbols)

    def substitute(self, sizes: Mapping[str, int]) -> Size:
        """This size with the known names replaced; an int when all of them are known."""
        if self.is_name:
            return sizes.get(self.name, self)
        known = {s: _expr(sizes[str(s)]) for s in self.expr.free_symbols if str(s) in sizes}
        return _simplify(self.expr.subs(known))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    def __add__(self, other: Size) -> Size:
        return self if _is_int(other, 0) else _simplify(self.expr + _expr(other))

    def __sub__(self, other: Size) -> Size:
        return self if _is_int(other, 0) else _simplify(self.expr - _expr(other))

    def __rsub__(self, other: Size) -> Size:
        return _simplify(_expr(other) - self.expr)

    def __mul__(self, other: Size) -> Size:
        return self if _is_int(other, 1) else _simplify(self.expr * _expr(other))

    def __floordiv__(self, other: Size) -> Size:
        return self if _is_int(other, 1) else _simplify(self.expr // _expr(other))

    def __rfloordiv__(self, other: Size) -> Size:
        return _simplify(_expr(other) // self.expr)

    def __mod__(self, other: Size) -> Size:
        return _simplify(self.expr % _expr(other))

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Size:
        return _simplify(-self.expr)

    def __lt__(self, other: Size) -> bool:
        return self._decide(self.expr < _expr(other), "<", other)

    def __le__(self, other: Size) -> bool:
        return self._decide(self.expr <= _expr(other), "<=", other)

    def __gt__(self, other: Size) -> bool:
        return self._decide(self.expr > _expr(other), ">", other)

    def __ge__(self, other: Size) -> bool:
        return self._decide(self.expr >= _expr(other), ">=", other)

    def _decide(self, relation: object, symbol: str, other: Size) -> bool:
        import sympy  # noqa: PLC0415  lazy: see `expr`

        if relation in (sympy.true, sympy.false):
            return relation is sympy.true
        raise ConcretizationError(f"whether {self} {symbol} {other} holds is not known here.",
                                  why=f"{self} is a symbolic size.")

    def __int__(self) -> int:
        raise ConcretizationError(f"the symbolic size {self} has no value while tracing.",
                                  fix="keep it symbolic: use it in shapes and arithmetic")

    __index__ = __int__


def _is_int(x: Size, value: int) -> bool:
    return isinstance(x, int) and x == value


def _expr(x: Size) -> sympy.Expr:
    if isinstance(x, Dim):
        return x.expr
    import sympy  # noqa: PLC0415  lazy: see `expr`

    return sympy.Integer(int(x))


def _simplify(expr: sympy.Expr) -> Size:
    if expr.is_Integer:
        return int(expr)
    return Dim(str(expr), expr)


def is_static(shape: Iterable[Size]) -> bool:
    """True when every size in `shape` is an int."""
    return all(isinstance(size, int) for size in shape)


def substitute_shape(shape: Shape, sizes: Mapping[str, int]) -> Shape:
    """`shape` with the known symbolic sizes replaced."""
    return tuple(s.substitute(sizes) if isinstance(s, Dim) else s for s in shape)
