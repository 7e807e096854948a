"""Indices and scalar expressions: what one element of a value is.

An index is a sum of atoms with coefficients. An atom is a loop variable, a quotient or a remainder
that did not simplify, or a value that the program computes (the row that a gather reads). Sizes are
ints, or `Dim`s where they are symbolic: the arithmetic is the same, and sympy is met only there.
An expression is a graph that shares equal parts; its leaves are numbers, indices and loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.bounds import provable
from functrans.core.dims import Dim, Size

if TYPE_CHECKING:
    from functrans.lowering.loops.tensor import Define, Tensor

__all__ = ["Atom", "Computed", "Expr", "ExprBuilder", "Index", "IterationSpaceMismatch", "LoopVar",
           "Quotient", "Range", "Remainder", "at_least_zero", "computed_in", "flatten", "operation",
           "reachable_expressions", "strides_of", "unflatten"]


# --- indices

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

    __slots__ = ("_hash", "const", "terms")

    def __init__(self, terms: dict[Atom, Size], const: Size = 0) -> None:
        self.terms = terms
        self.const = const
        self._hash: int | None = None

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
        return _rejoined(terms, self.const + other.const)

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
        return low, high

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


def _rejoined(terms: dict[Atom, Size], const: Size) -> Index:
    """`(x // d) * d + x % d` is x again: what a reshape there and back leaves."""
    for atom, c in terms.items():
        if type(atom) is not Remainder:
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
    return Index(terms, const)


def _depends(atom: Atom, var: LoopVar) -> bool:
    if atom is var:
        return True
    if isinstance(atom, (Quotient, Remainder)):
        return atom.index.depends_on(var)
    return isinstance(atom, Computed) and atom.value.depends_on(var)


def strides_of(shape: Sequence[Size]) -> tuple[Size, ...]:
    """Element strides of a C-ordered array."""
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def flatten(index: Iterable[Index], shape: Sequence[Size]) -> Index:
    """The place of an element in a C-ordered array."""
    total = ZERO
    for i, stride in zip(index, strides_of(shape), strict=True):
        if i is not ZERO:
            term = i * stride
            total = term if total is ZERO else total + term
    return total


def unflatten(place: Index, shape: Sequence[Size]) -> tuple[Index, ...]:
    """The index of the element at a place of a C-ordered array."""
    index = [ZERO] * len(shape)
    wide = [k for k, n in enumerate(shape) if not _is(n, 1)]
    for k in reversed(wide[1:]):
        place, index[k] = divmod(place, shape[k])
    if wide:
        index[wide[0]] = place
    return tuple(index)


# --- expressions

NONE: frozenset[LoopVar] = frozenset()


class Expr:
    """`op` applied to expressions; equal ones of one builder are the same object.

    Leaves: `const` (the value), `index` (an Index as a number), `load` (a stored tensor and the
    place in it), `local` (a tensor that the kernel computes at the same place).
    """

    __slots__ = ("args", "aux", "dtype", "op", "variables")

    def __init__(self, op: str, args: tuple[Expr, ...], dtype: str, aux: Any,
                 variables: frozenset[LoopVar]) -> None:
        self.op = op
        self.args = args
        self.dtype = dtype
        self.aux = aux
        self.variables = variables

    def depends_on(self, var: LoopVar) -> bool:
        return var in self.variables

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.args))
        aux = "" if self.aux is None else f"[{self.aux}]"
        return f"{self.op}{aux}({inner})" if inner else f"{self.op}{aux}"


Range = tuple[Index, Size, Size]
"""`low <= index < high`, one of the tests of `ExprBuilder.when`."""


class IterationSpaceMismatch(Exception):
    """A kernel asked for one of its own values at another place than the one it computes."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(tensor)
        self.tensor = tensor


class ExprBuilder:
    """The handler under which the definitions of tensors run: makes expressions, each once.

    `is_stored` says which tensors are read from memory; `local` has the tensors of the kernel that
    is being built, each with the place at which the kernel computes it: None for one that is known
    after the loops only. All others are defined where they are used.
    """

    def __init__(self, is_stored: Callable[[Tensor], bool],
                 local: Mapping[Tensor, Index | None] | None = None,
                 facts: Mapping[Range, bool] | None = None) -> None:
        self._is_stored = is_stored
        self._local = {} if local is None else local
        self._facts = facts or {}
        self._known: dict[Any, Expr] = {}
        self._read: dict[Any, Expr] = {}
        # tests that the bounds of the loop variables do not decide: where loops may be split
        self.undecided: list[Range] = []

    @property
    def count(self) -> int:
        """How many expressions there are."""
        return len(self._known)

    def _make(self, op: str, args: tuple[Expr, ...], dtype: str, aux: Any,
              variables: frozenset[LoopVar]) -> Expr:
        key = (op, args, dtype, aux)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Expr(op, args, dtype, aux, variables)
        return found

    def op(self, name: str, *args: Expr, dtype: str | None = None, aux: Any = None) -> Expr:
        """An elementwise operation; its result has the dtype of the first operand unless said."""
        if len(args) == 1:
            variables = args[0].variables
        else:
            variables = frozenset().union(*[a.variables for a in args])
        return self._make(name, args, dtype or args[0].dtype, aux, variables)

    def const(self, value: Any, dtype: str) -> Expr:
        # bytes tell -0.0 from 0.0, and NaN equals itself
        value = np.asarray(value)
        key = ("const", value.tobytes(), value.dtype.str, dtype)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Expr("const", (), dtype, value[()], NONE)
        return found

    def index(self, index: Index, dtype: str) -> Expr:
        """The value of an index, wrapped around where the dtype is too small."""
        if index.is_const and isinstance(index.const, int):
            return self.const(_wrapped(index.const, dtype), dtype)
        return self._make("index", (), dtype, index, _variables(index))

    def computed(self, value: Expr, high: Size) -> Index:
        """An integer expression, known to lie within `0 <= value < high`, as part of an index."""
        if value.op == "const":
            return Index.of(int(value.aux))
        if value.op == "index":
            index: Index = value.aux
            return index
        return Index.of(Computed(value, high))

    def clamped(self, index: Index, high: Size) -> Index:
        """`index` moved into `0 <= i < high`."""
        if index.within(0, high) or self._facts.get((index, 0, high)):
            return index
        value = self.op("max", self.index(index, "i64"), self.const(np.int64(0), "i64"))
        top = self.index(Index.of(high - 1), "i64")
        return self.computed(self.op("min", value, top), high)

    def read(self, tensor: Tensor, index: tuple[Index, ...]) -> Expr:
        """An element of a tensor: loaded, taken from the kernel, or defined right here."""
        key = (tensor, index)
        found = self._read.get(key)
        if found is not None:
            return found
        if tensor in self._local:
            place = self._local[tensor]
            if place is None or flatten(index, tensor.shape) != place:
                raise IterationSpaceMismatch(tensor)
            found = self._make("local", (), tensor.compute, tensor, _variables(place))
        elif self._is_stored(tensor):
            at = flatten(index, tensor.shape)
            found = self._make("load", (), tensor.compute, (tensor, at), _variables(at))
        else:
            found = tensor.define(self, index)
        self._read[key] = found
        return found

    def elements(self, tensors: Iterable[Tensor], index: tuple[Index, ...]) -> list[Expr]:
        """The elements of operands at an index; a scalar stands for any shape.

        It is read again for every element, but that stands outside of the loops.
        """
        return [self.read(t, index if t.shape else ()) for t in tensors]

    def when(self, tests: list[Range], then: Callable[[], Expr],
             otherwise: Callable[[], Expr]) -> Expr:
        """`then` where all tests hold, else `otherwise`; either may be left out when it is known.

        What `then` reads must be in bounds even where the tests fail: its indices are `clamped`.
        """
        open_tests = []
        for test in tests:
            index, low, high = test
            fact = self._facts.get(test)
            if fact is False or index.outside(low, high):
                return otherwise()
            if fact is None and not index.within(low, high):
                open_tests.append(test)
        if not open_tests:
            return then()
        self.undecided.extend(open_tests)
        condition: Expr | None = None
        for index, low, high in open_tests:
            value = self.index(index, "i64")
            inside = self.op("and",
                             self.op("ge", value, self.index(Index.of(low), "i64"), dtype="bool"),
                             self.op("lt", value, self.index(Index.of(high), "i64"), dtype="bool"))
            condition = inside if condition is None else self.op("and", condition, inside)
        assert condition is not None
        return self.op("select", condition, a := then(), otherwise(), dtype=a.dtype)


def operation(name: str, operands: Sequence[Tensor], dtype: str | None = None) -> Define:
    """The definition of an elementwise operation: on the elements of operands at its own index."""
    return lambda s, index: s.op(name, *s.elements(operands, index), dtype=dtype)


def reachable_expressions(roots: Iterable[Expr]) -> list[Expr]:
    """All expressions under some roots, operands first; computed parts of indices included."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    for root in roots:
        stack: list[Expr | None] = [root]
        while stack:
            e = stack.pop()
            if e is None:  # behind its operands
                order.append(stack.pop())  # type: ignore[arg-type]
            elif e not in seen:
                seen.add(e)
                stack += (e, None, *e.args, *computed_in(e))
    return order


def computed_in(e: Expr) -> list[Expr]:
    """The expressions inside the index of a load or of a number."""
    if e.op == "load":
        return list(_computed(e.aux[1]))
    return list(_computed(e.aux)) if e.op == "index" else []


def _computed(index: Index) -> Iterable[Expr]:
    for atom in index.terms:
        if isinstance(atom, (Quotient, Remainder)):
            yield from _computed(atom.index)
        elif not isinstance(atom, LoopVar):
            yield atom.value


def _variables(index: Index) -> frozenset[LoopVar]:
    if set(map(type, index.terms)) <= {LoopVar}:
        return frozenset(index.terms)  # type: ignore[arg-type]
    found: set[LoopVar] = set(index.variables())
    stack = list(index.terms)
    while stack:
        atom = stack.pop()
        if isinstance(atom, Computed):
            found |= atom.value.variables
        elif not isinstance(atom, LoopVar):
            stack.extend(atom.index.terms)
    return frozenset(found)


def _wrapped(value: int, dtype: str) -> Any:
    if dtype[0] == "f":
        return float(value)
    bits = int(dtype[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype[0] == "i" and value >> (bits - 1) else value
