"""Symbolic sizes as plain values: names with their bounds, and expressions over them.

An expression is an operation on ints and earlier expressions, so that no text is parsed. How large
they may become is bounded, since the algebra of large ones takes time without bound.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, Final

from functrans.core.bounds import Bound
from functrans.core.dims import Dim, Size, bounds_of
from functrans.core.errors import ExportError
from functrans.export.plain import damaged

__all__ = ["SizeReader", "SizeWriter"]

MOST_TERMS: Final = 64
"""Operations of one size, those of its parts included."""
MOST_TERMS_OF_ALL: Final = 20_000  # a few seconds of algebra
MOST_SIZES: Final = 5_000
MOST_POWER: Final = 16


class SizeWriter:
    """Collects the names and expressions of a program."""

    def __init__(self, decided: frozenset[str]) -> None:
        self.decided = decided
        self.names: list[list[Any]] = []
        self.table: list[list[Any]] = []
        self._name_numbers: dict[str, int] = {}
        self._numbers: dict[Any, int] = {}

    def size(self, size: Size) -> Any:
        """A size as an int, or the number of its expression in a list."""
        if not isinstance(size, Dim):
            return int(size)
        if size not in self._numbers:
            if size.is_name:
                number = self._entry(["name", self._name(size.name, bounds_of(size))])
            else:
                number = self._expression(size.expr, bounds_of(size))
            self._numbers[size] = number
        return [self._numbers[size]]

    def _name(self, name: str, bounds: dict[str, Bound]) -> int:
        number = self._name_numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append([name, None, None, 1, name in self.decided])
        if name in bounds:
            self.names[number][1:4] = list(bounds[name])
        return number

    def _entry(self, entry: list[Any]) -> int:
        key = tuple((k, tuple(x) if isinstance(x, list) else x) for k, x in enumerate(entry))
        number = self._numbers.setdefault(key, len(self.table))
        if number == len(self.table):
            self.table.append(entry)
        return number

    def _expression(self, e: Any, bounds: dict[str, Bound]) -> int:
        def of(x: Any) -> Any:
            return int(x) if x.is_Integer else [self._expression(x, bounds)]

        kind = type(e).__name__  # sympy stays unimported in programs without expressions
        if e.is_Symbol:
            return self._entry(["name", self._name(str(e), bounds)])
        if e.is_Add or e.is_Mul or kind in ("Max", "Min", "Mod"):
            op = "add" if e.is_Add else "mul" if e.is_Mul else kind.lower()
            if all(a.is_integer for a in e.args):
                return self._entry([op, *map(of, e.args)])
        if e.is_Pow and e.exp.is_Integer and 0 < e.exp <= MOST_POWER:
            return self._entry(["pow", of(e.base), int(e.exp)])
        if kind == "floor":
            return self._entry(["floordiv", *map(of, e.args[0].together().as_numer_denom())])
        raise ExportError(f"the size {e} cannot be exported.", where=None,
                          why="sizes are sums, products, quotients and extrema of named ones.")


class SizeReader:
    """The sizes of a file, checked; raises ExportError where they are none."""

    def __init__(self, names: Any, table: Any) -> None:
        self.bounds: dict[str, Bound] = {}
        self._dims: list[Dim] = []
        self._terms: list[int] = []
        self._table: list[Size] = []
        if not isinstance(names, list) or not isinstance(table, list):
            raise damaged("the sizes are no tables")
        if len(table) > MOST_SIZES or len(names) > MOST_SIZES:
            raise damaged(f"there are more than {MOST_SIZES} symbolic sizes")
        for entry in names:
            self._dims.append(self._named(entry))
        for entry in table:
            self._table.append(self._computed(entry))

    def size(self, plain: Any) -> Size:
        """The size that a plain value stands for."""
        if type(plain) is int and -2**63 <= plain < 2**63:
            return plain
        if isinstance(plain, list) and len(plain) == 1:
            return self._table[_number(plain[0], len(self._table), "size")]
        raise damaged("a size is neither a number nor an expression")

    def _named(self, entry: Any) -> Dim:
        if not isinstance(entry, list) or len(entry) != 5:
            raise damaged("a named size is no list of five")
        name, low, high, multiple, decided = entry
        if not isinstance(name, str) or not (name.isidentifier() and name.isascii()
                                             and len(name) <= 64):
            raise damaged("the name of a size is no identifier")
        whole = [n for n in (low, high, multiple) if n is not None]
        if multiple is None or any(type(n) is not int or not 0 <= n < 2**63 for n in whole) \
                or multiple < 1 or type(decided) is not bool:
            raise damaged(f"the bounds of the size {name} are no sizes")
        if name in self.bounds or any(d.name == name for d in self._dims):
            raise damaged(f"the size {name} is there twice")
        if decided:  # a name that no program of this process has
            return Dim.fresh("n")
        self.bounds[name] = bound = Bound(low, high, multiple)
        return Dim(name, bounds=() if bound == Bound() else ((name, bound),))

    def _computed(self, entry: Any) -> Size:
        if not isinstance(entry, list) or len(entry) < 2 or not isinstance(entry[0], str):
            raise damaged("a size is no operation")
        op, *args = entry
        if op == "name" and len(args) == 1:
            self._terms.append(1)
            return self._dims[_number(args[0], len(self._dims), "named size")]
        terms = 1 + sum(self._terms[_number(a[0], len(self._terms), "size")]
                        for a in args if isinstance(a, list) and len(a) == 1)
        if op == "pow":
            if len(args) != 2 or type(args[1]) is not int or not 0 < args[1] <= MOST_POWER:
                raise damaged("a power of a size is too high")
            terms *= args[1]
        if terms > MOST_TERMS or len(args) > MOST_TERMS:
            raise damaged(f"a size has more than {MOST_TERMS} operations")
        if sum(self._terms) + terms > MOST_TERMS_OF_ALL:
            raise damaged(f"its sizes have more than {MOST_TERMS_OF_ALL} operations")
        self._terms.append(terms)
        value = _apply(op, [self.size(a) for a in args])
        if isinstance(value, int) and not -2**63 <= value < 2**63:
            raise damaged("a size has more than 64 bits")
        return value


_PAIRS: Final[dict[str, Callable[[Any, Any], Size]]] = {
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow}
_RUNS: Final[dict[str, Callable[[Any, Any], Size]]] = {"add": operator.add, "mul": operator.mul}


def _number(plain: Any, count: int, what: str) -> int:
    if type(plain) is not int or not 0 <= plain < count:
        raise damaged(f"there is no {what} {plain!r}")
    return plain


def _apply(op: str, args: list[Size]) -> Size:
    if op in _PAIRS:
        if len(args) != 2 or (op != "pow" and args[1] == 0):
            raise damaged(f"{op} of sizes takes two of them, the second not 0")
        return _PAIRS[op](*args)
    if op in _RUNS:
        return reduce(_RUNS[op], args)
    if op not in ("max", "min"):
        raise damaged(f"there is no operation {op!r} on sizes")
    import sympy  # noqa: PLC0415  lazy: few programs have such sizes

    expr = (sympy.Max if op == "max" else sympy.Min)(
        *[a.expr if isinstance(a, Dim) else sympy.Integer(a) for a in args])
    if expr.is_Integer:
        return int(expr)
    return Dim(str(expr), expr, tuple(sorted(bounds_of(*args).items())))
