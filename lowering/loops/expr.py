"""Scalar expressions: what one element of a value is.

An expression is a graph that shares equal parts; its leaves are numbers, indices and loads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from functrans.core.dims import Size
from functrans.lowering.loops.folding import simplified
from functrans.lowering.loops.index import (
    Computed,
    Index,
    LoopVar,
    Quotient,
    Remainder,
    at_least_zero,
    flatten,
    unflatten,
)

if TYPE_CHECKING:
    from functrans.lowering.loops.tensor import Define, Tensor

__all__ = ["Expr", "ExprBuilder", "IterationSpaceMismatch", "Places", "Range",
           "TooManyExpressions", "computed_in", "operation", "reachable_expressions", "unclamped",
           "values_of_names"]


NONE: frozenset[LoopVar] = frozenset()
INDEXED: Final = frozenset({"load", "index"})
"""Operations with an index, of which parts may be computed."""


class Expr:
    """`op` applied to expressions; equal ones of one builder are the same object.

    Leaves: `const` (the value), `index` (an Index as a number), `load` (a stored tensor and the
    place in it), `local` (a tensor that the kernel computes at the same place).
    """

    __slots__ = ("_inside", "args", "aux", "dtype", "op", "variables")

    def __init__(self, op: str, args: tuple[Expr, ...], dtype: str, aux: Any,
                 variables: frozenset[LoopVar]) -> None:
        self.op = op
        self.args = args
        self.dtype = dtype
        self.aux = aux
        self.variables = variables
        self._inside: tuple[Expr, ...] | None = None

    @property
    def inside(self) -> tuple[Expr, ...]:
        """Its operands, and the computed parts of its index."""
        if self._inside is None:
            self._inside = (*self.args, *computed_in(self))
        return self._inside

    def depends_on(self, var: LoopVar) -> bool:
        return var in self.variables

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.args))
        aux = "" if self.aux is None else f"[{self.aux}]"
        return f"{self.op}{aux}({inner})" if inner else f"{self.op}{aux}"


Range = tuple[Index, Size, Size]
"""`low <= index < high`, one of the tests of `ExprBuilder.when`."""


Places = tuple[dict[Any, Index], dict[Any, tuple[Index, ...]]]
"""What `flatten` and `unflatten` gave."""


class IterationSpaceMismatch(Exception):
    """A kernel asked for one of its own values at another place than the one it computes."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(tensor)
        self.tensor = tensor


class TooManyExpressions(Exception):
    """A builder made more expressions than it may."""


class ExprBuilder:
    """The handler under which the definitions of tensors run: makes expressions, each once.

    `is_stored` says which tensors are read from memory; `local` has the tensors of the kernel that
    is being built, each with the place at which the kernel computes it: None for one that is known
    after the loops only. All others are defined where they are used. Builders over the same loops
    may share the `places` that they work out.
    """

    def __init__(self, is_stored: Callable[[Tensor], bool],
                 local: Mapping[Tensor, Index | None] | None = None,
                 facts: Mapping[Range, bool] | None = None, places: Places | None = None) -> None:
        self._is_stored = is_stored
        self._local = {} if local is None else local
        self._facts = facts or {}
        self._intervals = _intervals(facts) if facts else {}
        self._known: dict[Any, Expr] = {}
        self._most: float = math.inf
        self._reads: dict[tuple[Tensor, tuple[Index, ...]], Expr] = {}
        self._read_at: dict[tuple[Index, ...], dict[Tensor, Expr]] = {}
        # by the id of an index, which definitions hand on as it is: hashing one takes as long as
        # all else of a read
        self._by_id: dict[int, tuple[tuple[Index, ...], dict[Tensor, Expr], dict[Any, Index]]] = {}
        self._reachable: dict[Expr, dict[Expr, None]] = {}
        self._places, self._indices = ({}, {}) if places is None else places
        # tests that the bounds of the loop variables do not decide: where loops may be split
        self.undecided: list[Range] = []

    @property
    def count(self) -> int:
        """How many expressions there are."""
        return len(self._known)

    @contextmanager
    def at_most(self, count: int) -> Iterator[None]:
        """Raise TooManyExpressions within, as soon as there are more: definitions may explode."""
        self._most = count
        try:
            yield
        finally:
            self._most = math.inf

    def _make(self, op: str, args: tuple[Expr, ...], dtype: str, aux: Any,
              variables: frozenset[LoopVar]) -> Expr:
        key = (op, args, dtype, aux)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Expr(op, args, dtype, aux, variables)
            if len(self._known) > self._most:
                raise TooManyExpressions
        return found

    def op(self, name: str, *args: Expr, dtype: str | None = None, aux: Any = None) -> Expr:
        """An elementwise operation; its result has the dtype of the first operand unless said."""
        dtype = dtype or args[0].dtype
        found = self._known.get((name, args, dtype, aux))
        if found is not None:
            return found
        if args[0].op == "const" or args[-1].op == "const":
            simple = simplified(self, name, args, dtype)
            if simple is not None:
                return simple
        if name in ("mul", "fma") and args[0] is args[1] and args[0].op == "sub":
            turned = self._known.get(("sub", args[0].args[::-1], args[0].dtype, None))
            found = self._known.get((name, (turned, turned, *args[2:]), args[0].dtype, None))
            if found is not None:  # (y - x) * (y - x) is (x - y) * (x - y)
                return found
        variables = args[0].variables
        for a in args:
            if not a.variables <= variables:
                variables |= a.variables
        return self._make(name, args, dtype, aux, variables)

    def const(self, value: Any, dtype: str) -> Expr:
        # bytes tell -0.0 from 0.0, and NaN equals itself
        value = np.asarray(value)
        key = ("const", value.tobytes(), value.dtype.str, dtype)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Expr("const", (), dtype, value[()], NONE)
            if len(self._known) > self._most:
                raise TooManyExpressions
        return found

    def index(self, index: Index, dtype: str) -> Expr:
        """The value of an index, wrapped around where the dtype is too small."""
        if index.is_const and isinstance(index.const, int):
            return self.const(_wrapped(index.const, dtype), dtype)
        found = self._known.get(("index", (), dtype, index))
        if found is not None:
            return found
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
        """`index` moved into `0 <= i < high`, where only what is read within counts.

        `Index` as its `aux` tells it from the clamping that a program asks for.
        """
        if index.within(0, high) or (self._facts and self._decided((index, 0, high))):
            return index
        value = self.op("max", self.index(index, "i64"), self.const(np.int64(0), "i64"))
        top = self.index(Index.of(high - 1), "i64")
        return self.computed(self.op("min", value, top, aux=Index), high)

    def _decided(self, test: Range) -> bool | None:
        """The outcome of a test under the facts; None where they do not tell."""
        fact = self._facts.get(test)
        index, low, high = test
        if fact is None and isinstance(index.const, int):
            least, end = self._intervals.get(frozenset(index.terms.items()), NEVER)
            if least is not None:
                first, last = least + index.const, end + index.const - 1
                if at_least_zero(first - low) and at_least_zero(high - 1 - last):
                    return True
                if at_least_zero(low - 1 - last) or at_least_zero(first - high):
                    return False
        return fact

    def flatten(self, index: tuple[Index, ...], shape: tuple[Size, ...]) -> Index:
        """As the function; definitions ask for the same again."""
        _, _, known = self._by_id.get(id(index)) or self._noted(index)
        found = known.get(shape)
        if found is None:
            key = (index, shape)
            found = self._places.get(key)
            if found is None:
                found = self._places[key] = flatten(index, shape)
            known[shape] = found
        return found

    def unflatten(self, place: Index, shape: tuple[Size, ...]) -> tuple[Index, ...]:
        """As the function; definitions ask for the same again."""
        key = (place, shape)
        found = self._indices.get(key)
        if found is None:
            found = self._indices[key] = unflatten(place, shape)
        return found

    def read(self, tensor: Tensor, index: tuple[Index, ...]) -> Expr:
        """An element of a tensor: loaded, taken from the kernel, or defined right here."""
        _, known, _ = self._by_id.get(id(index)) or self._noted(index)
        found = known.get(tensor)
        if found is None:
            # defined from here: with two calls more for each operand long chains nest too deep
            found = self._element(tensor, index) or (
                tensor.define(self, index) if tensor.depth < DEEP else self._deep(tensor, index))
            known[tensor] = self._reads[tensor, index] = found
        return found

    def _deep(self, tensor: Tensor, index: tuple[Index, ...]) -> Expr:
        """The definition at the end of a chain: operands of pointwise operations are read first.

        Definitions read them by calls, of which Python nests 1,000.
        """
        waiting = [tensor]
        done: set[Tensor] = set()
        while waiting:
            t = waiting[-1]
            inside: list[Tensor] = []
            if t not in done and t.pointwise and (t is tensor or self._is_inlined(t, index)):
                inside = [x for x in t.operands
                          if x not in done and x not in self._known_at(x, index)]
            if inside:
                waiting += reversed(inside)
                continue
            waiting.pop()
            if t is not tensor and t not in done:
                done.add(t)
                self.read(t, index if t.shape else ())
        return tensor.define(self, index)

    def _is_inlined(self, tensor: Tensor, index: tuple[Index, ...]) -> bool:
        """Whether an element of a tensor is computed where it is read."""
        return tensor not in self._local and not self._is_stored(tensor)

    def _known_at(self, tensor: Tensor, index: tuple[Index, ...]) -> Mapping[Tensor, Expr]:
        """The elements that were read where a pointwise operation reads a tensor."""
        at = index if tensor.shape else ()
        return (self._by_id.get(id(at)) or self._noted(at))[1]

    def _element(self, tensor: Tensor, index: tuple[Index, ...]) -> Expr | None:
        """An element that is read for the first time; None where its definition tells."""
        if tensor in self._local:
            place = self._local[tensor]
            if place is None or self.flatten(index, tensor.shape) != place:
                raise IterationSpaceMismatch(tensor)
            return self._make("local", (), tensor.compute, tensor, _variables(place))
        if self._is_stored(tensor):
            at = self.flatten(index, tensor.shape)
            return self.of_known(tensor, at) or \
                self._make("load", (), tensor.compute, (tensor, at), _variables(at))
        return None

    def _noted(self, index: tuple[Index, ...]
               ) -> tuple[tuple[Index, ...], dict[Tensor, Expr], dict[Any, Index]]:
        """The elements that were read at an index, and its places by shape; it lives as long."""
        found = self._by_id[id(index)] = index, self._read_at.setdefault(index, {}), {}
        return found

    def is_stored(self, tensor: Tensor) -> bool:
        """Whether a tensor is read from memory here, unless the kernel computes it."""
        return self._is_stored(tensor)

    def reachable(self, roots: Iterable[Expr]) -> list[Expr]:
        """As `reachable_expressions`, of roots whose expressions are asked for again and again."""
        found: dict[Expr, None] = {}
        for root in roots:
            order = self._reachable.get(root)
            if order is None:
                order = self._reachable[root] = dict.fromkeys(reachable_expressions([root]))
            found = found | order if found else order
        return list(found)

    def reads(self) -> Mapping[tuple[Tensor, tuple[Index, ...]], Expr]:
        """The elements that were read so far, by tensor and index."""
        return self._reads

    def of_known(self, tensor: Tensor, place: Index) -> Expr | None:
        """An element of a constant, at a place that is known, too."""
        if tensor.known is None or not place.is_const:
            return None
        return self.const(tensor.known.flat[int(place.const)], tensor.compute)

    def elements(self, tensors: Iterable[Tensor], index: tuple[Index, ...]) -> list[Expr]:
        """The elements of operands at an index; a scalar stands for any shape.

        It is read again for every element, but that stands outside of the loops.
        """
        found = []
        for t in tensors:
            found.append(self.read(t, index if t.shape else ()))
        return found

    def when(self, tests: list[Range], then: Callable[[], Expr],
             otherwise: Callable[[], Expr]) -> Expr:
        """`then` where all tests hold, else `otherwise`; either may be left out when it is known.

        What `then` reads must be in bounds even where the tests fail: its indices are `clamped`.
        """
        open_tests = []
        for test in tests:
            index, low, high = test
            fact = self._decided(test) if self._facts else None
            if fact is False or index.outside(low, high):
                return otherwise()
            if fact is None and not index.within(low, high):
                open_tests.append(test)
        if not open_tests:
            return then()
        self.undecided.extend(open_tests)
        condition: Expr | None = None
        for test in open_tests:
            inside = self._test(*test)
            condition = inside if condition is None else self.op("and", condition, inside)
        assert condition is not None
        return self.op("select", condition, a := then(), otherwise(), dtype=a.dtype)


    def _test(self, index: Index, low: Size, high: Size) -> Expr:
        """Whether `low <= index < high`, by the comparisons that bounds do not decide.

        Numbers that 32 bits hold are compared in these: a vector has twice as many of them. The
        constant of the index is moved to the other side, so that tests of the parts of a
        concatenation share one vector of places.
        """
        first, last = index.bounds()
        if isinstance(index.const, int):
            low, high, first, last = (n - index.const for n in (low, high, first, last))
            index = index - index.const
        numbers = [n for n in (low, high, first, last) if isinstance(n, int)]
        known = len(numbers) == 4
        dtype = "i32" if known and max(map(abs, numbers)) < 2**31 else "i64"
        value = self.index(index, dtype)
        if known and high - low == 1:
            return self.op("eq", value, self.index(Index.of(low), dtype), dtype="bool")
        tests = [self.op(name, value, self.index(Index.of(bound), dtype), dtype="bool")
                 for name, bound, is_open in (("ge", low, not at_least_zero(first - low)),
                                              ("lt", high, not at_least_zero(high - 1 - last)))
                 if is_open]
        return tests[0] if len(tests) == 1 else self.op("and", *tests)


NEVER: Final = (None, 0)
DEEP: Final = 64
"""Values that follow from one another, from which on they are read one by one."""


def _intervals(facts: Mapping[Range, bool]) -> dict[Any, tuple[Any, int]]:
    """Where indices are under some facts, by their terms: from a least value up to an end.

    A row that is none of the last two is one of those before them.
    """
    found: dict[Any, tuple[Any, int]] = {}
    for _ in facts:  # one may follow from another
        for (index, low, high), outcome in facts.items():
            least, greatest = index.bounds()
            numbers = (index.const, low, high, least, greatest)
            if not all(isinstance(n, int) for n in numbers):
                continue
            key, shift = frozenset(index.terms.items()), index.const
            first, end = found.get(key, (least - shift, greatest + 1 - shift))
            a, b = low - shift, high - shift
            if outcome:
                first, end = max(first, a), min(end, b)
            else:
                first = b if a <= first < b else first
                end = a if a < end <= b else end
            found[key] = first, end
    return found


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
                inside = e.inside if e.op in INDEXED else e.args
                if inside:
                    stack += (e, None, *inside)
                else:
                    order.append(e)
    return order


def values_of_names(names: Mapping[str, Expr], made: Iterable[tuple[Tensor, Expr]]
                    ) -> dict[str, tuple[Tensor, ...]]:
    """The values that variables are elements of, of the expressions that they hold.

    `made` are elements of values; some values have the same, as one and its transpose.
    """
    of: dict[Expr, dict[Tensor, None]] = {}
    for t, e in made:
        of.setdefault(e, {})[t] = None
    found = {}
    for name, e in names.items():
        values = of.get(e, {})
        if e.op == "load":
            values = {e.aux[0]: None, **values}
        if values:
            found[name] = tuple(values)
    return found


def unclamped(atom: Computed) -> Index | None:
    """The index that `ExprBuilder.clamped` moved into bounds, if it is one."""
    e: Expr = atom.value
    if e.op != "min" or e.aux is not Index or e.args[0].args[0].op != "index":
        return None
    found: Index = e.args[0].args[0].aux
    return found


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
