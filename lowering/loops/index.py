"""Indices: sums of atoms with coefficients, and their arithmetic.

An atom is a loop variable, a quotient or a remainder that did not simplify, or a value that the
program computes (the row that a gather reads). Sizes are ints, or `Dim`s where they are symbolic:
the arithmetic is the same, and sympy is met only there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from functrans.core.bounds import provable
from functrans.core.dims import Dim, Size

__all__ = ["ZERO", "Atom", "Computed", "Index", "LoopVar", "Quotient", "Remainder",
           "at_least_zero", "flatten", "strides_of", "unflatten"]


class LoopVar:
    """A variable that runs over `low <= v < high`; its identity is its name."""

    __slots__ = ("high", "low", "name")

    def __init__(self, name: str, high: Size, low: Size = 0) -> None:
        self.name = name
        self.low = low
        self.high = high

    def __repr__(self) -> str:
        return self.name


class Computed:
    """An integer that the program computes, known to lie within `0 <= value < high`."""

    __slots__ = ("high", "value")

    def __init__(self, value: Any, high: Size) -> None:
        self.value = value
        self.high = high

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Computed) and self.value is other.value

    def __hash__(self) -> int:
        return hash(id(self.value))

    def __repr__(self) -> str:
        return f"[{self.value}]"


class Quotient:
    """`index // divisor` for an index that is not negative."""

    __slots__ = ("_hash", "divisor", "index")

    def __init__(self, index: Index, divisor: Size) -> None:
        self.index = index
        self.divisor = divisor
        self._hash = hash((0, index, divisor))

    def __eq__(self, other: object) -> bool:
        return (type(other) is Quotient and self._hash == other._hash
                and self.divisor == other.divisor and self.index == other.index)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"({self.index} // {self.divisor})"


class Remainder:
    """`index % divisor` for an index that is not negative."""

    __slots__ = ("_hash", "divisor", "index")

    def __init__(self, index: Index, divisor: Size) -> None:
        self.index = index
        self.divisor = divisor
        self._hash = hash((1, index, divisor))

    def __eq__(self, other: object) -> bool:
        return (type(other) is Remainder and self._hash == other._hash
                and self.divisor == other.divisor and self.index == other.index)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"({self.index} % {self.divisor})"


Atom = LoopVar | Computed | Quotient | Remainder


class Index:
    """`const + sum(coefficient * atom)`; immutable, compared by value."""

    __slots__ = ("_bounds", "_hash", "_is_divided", "const", "terms")

    def __init__(self, terms: dict[Atom, Size], const: Size = 0) -> None:
        self.terms = terms
        self.const = const
        self._hash: int | None = None
        self._bounds: tuple[Size, Size] | None = None
        self._is_divided: bool | None = None

    @staticmethod
    def of(x: Index | Atom | Size) -> Index:
        if isinstance(x, Index):
            return x
        if isinstance(x, (int, Dim)):
            return Index({}, x)
        return Index({x: 1})

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((frozenset(self.terms.items()), self.const))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Index) and self.const == other.const
                                 and self.terms == other.terms)

    def __repr__(self) -> str:
        parts = [str(a) if c == 1 else f"{c}*{a}" for a, c in self.terms.items()]
        if self.const != 0 or not parts:
            parts.append(str(self.const))
        return " + ".join(parts)

    @property
    def is_const(self) -> bool:
        return not self.terms

    @property
    def is_divided(self) -> bool:
        """Whether quotients or remainders are among its terms."""
        if self._is_divided is None:
            kinds = [*map(type, self.terms)]
            self._is_divided = Remainder in kinds or Quotient in kinds
        return self._is_divided

    def __add__(self, other: Index | Size) -> Index:
        if not isinstance(other, Index):
            return self if _is(other, 0) else Index(self.terms, self.const + other)
        if not other.terms:
            return self + other.const
        if not self.terms:
            return other + self.const
        terms = dict(self.terms)
        for atom, c in other.terms.items():
            total = terms.get(atom, 0) + c
            if _is(total, 0):
                del terms[atom]
            else:
                terms[atom] = total
        const = self.const + other.const
        # neither has anything to join by itself
        if other.is_divided and self.is_divided:
            return _rejoined(terms, const, other.terms)
        found = Index(terms, const)
        found._is_divided = other.is_divided or self.is_divided
        return found

    __radd__ = __add__

    def __mul__(self, factor: Size) -> Index:
        if _is(factor, 1):
            return self
        if _is(factor, 0):
            return ZERO
        return Index({a: c * factor for a, c in self.terms.items()}, self.const * factor)

    __rmul__ = __mul__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index | Size) -> Index:
        return self + (other * -1 if isinstance(other, Index) else -other)

    def __rsub__(self, other: Size) -> Index:
        return self * -1 + other

    def bounds(self) -> tuple[Size, Size]:
        """The least and the greatest value."""
        if self._bounds is not None:
            return self._bounds
        low = high = self.const
        for atom, c in self.terms.items():
            if type(atom) is LoopVar:
                a, b = atom.low, atom.high - 1
            else:
                a, b = _bounds(atom)
            if at_least_zero(c):
                low, high = low + c * a, high + c * b
            else:
                low, high = low + c * b, high + c * a
        self._bounds = low, high
        return self._bounds

    def within(self, low: Size, high: Size) -> bool:
        """True when it is known that `low <= self < high` always."""
        least, greatest = self.bounds()
        return at_least_zero(least - low) and at_least_zero(high - 1 - greatest)

    def outside(self, low: Size, high: Size) -> bool:
        """True when it is known that `self < low` or `self >= high` always."""
        least, greatest = self.bounds()
        return at_least_zero(low - 1 - greatest) or at_least_zero(least - high)

    def __floordiv__(self, divisor: Size) -> Index:
        return divmod(self, divisor)[0]

    def __mod__(self, divisor: Size) -> Index:
        return divmod(self, divisor)[1]

    def __divmod__(self, divisor: Size) -> tuple[Index, Index]:
        """Quotient and remainder, for the price of one of them."""
        if _is(divisor, 1):
            return self, ZERO
        whole, rest = self._split(divisor)
        if rest.within(0, divisor):
            return whole, rest
        remainder = Index({Remainder(rest, divisor): 1})
        if len(rest.terms) == 1 and _is(rest.const, 0):
            (atom, c), = rest.terms.items()
            if _is(c, 1) and type(atom) is Quotient:  # (x // a) // b
                return whole + atom.index // (atom.divisor * divisor), remainder
        return whole + Index({Quotient(rest, divisor): 1}), remainder

    def _split(self, divisor: Size) -> tuple[Index, Index]:
        """(whole, rest) with self == whole * divisor + rest, as much in `whole` as divides.

        C rounds towards zero, floors are meant: the rest is not negative where self is not.
        """
        whole: dict[Atom, Size] = {}
        rest: dict[Atom, Size] = {}
        for atom, c in self.terms.items():
            q = _exact_quotient(c, divisor)
            if q is None:
                rest[atom] = c
            else:
                whole[atom] = q
        if isinstance(self.const, int) and isinstance(divisor, int):
            q, r = divmod(self.const, divisor)
            low = Index(rest, r).bounds()[0]
            if isinstance(low, int) and low < 0:
                steps = -(low // divisor)
                return Index(whole, q - steps), Index(rest, r + steps * divisor)
            found = Index(whole, q), Index(rest, r)
        else:
            exact = _exact_quotient(self.const, divisor)
            found = ((Index(whole), Index(rest, self.const)) if exact is None else
                     (Index(whole, exact), Index(rest)))
        return found if at_least_zero(found[1].bounds()[0]) else (ZERO, self)

    def coefficient(self, atom: Atom) -> Size:
        return self.terms.get(atom, 0)

    def depends_on(self, var: LoopVar) -> bool:
        return any(_depends(a, var) for a in self.terms)

    @property
    def has_computed(self) -> bool:
        """Whether a computed value is in it, those inside quotients and remainders included."""
        return any(isinstance(a, Computed) or (isinstance(a, (Quotient, Remainder))
                                               and a.index.has_computed) for a in self.terms)

    def variables(self) -> frozenset[LoopVar]:
        """The loop variables in it, quotients and remainders included, computed values not."""
        found: set[LoopVar] = set()
        for atom in self.terms:
            if type(atom) is LoopVar:
                found.add(atom)
            elif isinstance(atom, (Quotient, Remainder)):
                found |= atom.index.variables()
        return frozenset(found)


ZERO = Index({})


def _is(x: Any, value: int) -> bool:
    return isinstance(x, int) and x == value


def at_least_zero(x: Size) -> bool:
    """True when `x >= 0` is known."""
    if isinstance(x, int):
        return x >= 0
    return x.expr.is_nonnegative is True or (
        bool(x.bounds) and provable(">=", x, 0, dict(x.bounds)) is True)


def _bounds(atom: Atom) -> tuple[Size, Size]:
    if isinstance(atom, LoopVar):
        return atom.low, atom.high - 1
    if isinstance(atom, Computed):
        return 0, atom.high - 1
    low, high = atom.index.bounds()
    if isinstance(atom, Remainder):
        return 0, atom.divisor - 1
    return low // atom.divisor, high // atom.divisor


def _exact_quotient(c: Size, divisor: Size) -> Size | None:
    if isinstance(c, int):
        if isinstance(divisor, int):
            return c // divisor if c % divisor == 0 else None
        return 0 if c == 0 else None
    if c == divisor:
        return 1
    quotient = (c.expr / (divisor.expr if isinstance(divisor, Dim) else divisor)).cancel()
    if quotient.is_Integer:
        return int(quotient)
    denominator = quotient.as_numer_denom()[1]
    return Dim(str(quotient), quotient) if denominator == 1 else None


def _rejoined(terms: dict[Atom, Size], const: Size, added: Iterable[Atom]) -> Index:
    """`(x // d) * d + x % d` is x again: what a reshape there and back leaves.

    One of the two is among those that were `added`.
    """
    remainders = terms if Quotient in map(type, added) else added
    for atom in remainders:
        if type(atom) is not Remainder or (c := terms.get(atom)) is None:
            continue
        other = Quotient(atom.index, atom.divisor)
        if terms.get(other) == c * atom.divisor:
            rest = {a: k for a, k in terms.items() if a != atom and a != other}
            return Index(rest, const) + atom.index * c
        if len(atom.index.terms) == 1 and _is(atom.index.const, 0):  # (x // a) % b: whole x // a
            (inner, k), = atom.index.terms.items()
            if type(inner) is Quotient and _is(k, 1):
                upper = Quotient(inner.index, inner.divisor * atom.divisor)
                if terms.get(upper) == c * atom.divisor:
                    rest = {a: k for a, k in terms.items() if a != atom and a != upper}
                    return Index(rest, const) + Index({inner: c})
    return _with_one_remainder(terms, const, added)


def _with_one_remainder(terms: dict[Atom, Size], const: Size, added: Iterable[Atom]) -> Index:
    """`(x // a) % b * a + x % a` is `x % (a * b)`: two dimensions that stay side by side."""
    remainders = {atom: c for atom, c in terms.items()
                  if type(atom) is Remainder and isinstance(atom.divisor, int)}
    new = set(added) if len(remainders) > 1 else ()
    for low, c in remainders.items():
        for high, k in remainders.items():
            if not (low in new or high in new) or k != c * low.divisor or low is high:
                continue
            whole = low.index // low.divisor
            if whole % high.divisor == Index({high: 1}):
                rest = {a: n for a, n in terms.items() if a is not low and a is not high}
                return Index(rest, const) + low.index % (low.divisor * high.divisor) * c
    return Index(terms, const)


def _depends(atom: Atom, var: LoopVar) -> bool:
    if atom is var:
        return True
    if isinstance(atom, (Quotient, Remainder)):
        return atom.index.depends_on(var)
    return isinstance(atom, Computed) and atom.value.depends_on(var)


def strides_of(shape: Sequence[Size]) -> tuple[Size, ...]:
    """Element strides of a C-ordered array."""
    if all(type(n) is int for n in shape):  # dimensions of one name may have other bounds
        return _known_strides(tuple(shape))
    return _strides(shape)


def _strides(shape: Sequence[Size]) -> tuple[Size, ...]:
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


_known_strides = lru_cache(maxsize=4096)(_strides)


def flatten(index: Iterable[Index], shape: Sequence[Size]) -> Index:
    """The place of an element in a C-ordered array: the sum of `i * stride`, in one pass."""
    terms: dict[Atom, Size] = {}
    const: Size = 0
    is_divided = False
    for i, stride in zip(index, strides_of(shape), strict=True):
        if i is ZERO or _is(stride, 0):
            continue
        may_join = is_divided and terms and i.is_divided
        for atom, c in i.terms.items():
            more = c if _is(stride, 1) else c * stride
            known = terms.get(atom)
            if known is None:
                terms[atom] = more
            elif _is(total := known + more, 0):
                del terms[atom]
            else:
                terms[atom] = total
        const += i.const if _is(stride, 1) else i.const * stride
        is_divided = is_divided or i.is_divided
        if may_join:
            joined = _rejoined(terms, const, i.terms)
            terms, const, is_divided = dict(joined.terms), joined.const, joined.is_divided
    return Index(terms, const)


def unflatten(place: Index, shape: Sequence[Size]) -> tuple[Index, ...]:
    """The index of the element at a place of a C-ordered array."""
    index = [ZERO] * len(shape)
    wide = [k for k, n in enumerate(shape) if not _is(n, 1)]
    for k in reversed(wide[1:]):
        place, index[k] = divmod(place, shape[k])
    if wide:
        index[wide[0]] = place
    return tuple(index)
