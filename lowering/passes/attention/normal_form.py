"""Expressions in a normal form that tells equal ones, case by case of their conditions.

A value is a sum of monomials with rational coefficients: products of powers of atoms and of an
exponential of such a sum. Atoms are what is not taken apart: elements in memory, indices, functions
other than the field operations, the exponential and the logarithm. Two expressions with one normal
form are equal as functions of their atoms, whatever numbers these are, so that nothing depends on
points at which they are compared.

Conditions are decided one way, then the other: `by_cases` runs a function once for each assignment
of those that it asks for. Assignments that cannot be (a < b and b < a) are asked for as well, which
can only tell equal expressions apart.

Rounding to another float is no operation here; NaN and infinities are not among the numbers that
atoms stand for, apart from infinite constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import LoopVar

__all__ = ["ONE", "Case", "Monomial", "NoNormalForm", "Polynomial", "Predicate", "Undecided",
           "atom", "by_cases", "inverse", "is_float", "plus", "times"]

MOST_CASES = 256


class NoNormalForm(Exception):
    """An expression divides by zero or multiplies infinities, or has too many cases."""


class Monomial(NamedTuple):
    """A product of powers of atoms, and of the exponential of a sum."""

    powers: frozenset[tuple[Hashable, int]] = frozenset()
    exponent: frozenset[tuple[Monomial, Fraction]] = frozenset()


ONE = Monomial()
Polynomial = Mapping[Monomial, Fraction] | float
"""A sum of monomials, or an infinity."""


class Predicate(NamedTuple):
    """A condition that is decided either way."""

    op: str
    args: tuple[Expr, ...]

    def depends_on(self, var: LoopVar) -> bool:
        return any(a.depends_on(var) for a in self.args)


class Undecided(Exception):
    """A condition that the case at hand does not decide."""

    def __init__(self, predicate: Predicate) -> None:
        self.predicate = predicate


# --------------------------------------------------------------------------- algebra


def atom(x: Hashable, power: int = 1) -> Polynomial:
    """A power of an atom."""
    return {Monomial(frozenset(((x, power),))): Fraction(1)}


def constant(value: float | Fraction) -> Polynomial:
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise NoNormalForm("NaN")
        return value
    return {ONE: Fraction(value)} if value else {}


def plus(x: Polynomial, y: Polynomial) -> Polynomial:
    if isinstance(x, float) or isinstance(y, float):
        if isinstance(x, float) and isinstance(y, float) and x != y:
            raise NoNormalForm("infinity less infinity")
        return x if isinstance(x, float) else y
    total = dict(x)
    for m, c in y.items():
        if rest := total.get(m, 0) + c:
            total[m] = rest
        else:
            del total[m]
    return total


def times(x: Polynomial, y: Polynomial) -> Polynomial:
    if isinstance(x, float) or isinstance(y, float):
        if isinstance(y, float):
            x, y = y, x
        assert isinstance(x, float)
        sign = y if isinstance(y, float) else y.get(ONE, Fraction(0)) if len(y) == 1 else 0
        if not sign:
            raise NoNormalForm("infinity by a number of any sign")
        return x if sign > 0 else -x
    total: dict[Monomial, Fraction] = {}
    for m, c in x.items():
        for n, d in y.items():
            product = Monomial(_merged(m.powers, n.powers), _merged(m.exponent, n.exponent))
            if rest := total.get(product, 0) + c * d:
                total[product] = rest
            else:
                total.pop(product, None)
    return total


def _merged(x: frozenset[tuple[Any, Any]], y: frozenset[tuple[Any, Any]]) -> \
        frozenset[tuple[Any, Any]]:
    if not x or not y:
        return x or y
    total = dict(x)
    for key, n in y:
        total[key] = total.get(key, 0) + n
    return frozenset((key, n) for key, n in total.items() if n)


def inverse(x: Polynomial) -> Polynomial:
    if isinstance(x, float):
        return {}
    if not x:
        raise NoNormalForm("a division by zero")
    if len(x) > 1:
        return atom(("sum", frozenset(x.items())), -1)
    ((m, c),) = x.items()
    return {Monomial(frozenset((a, -n) for a, n in m.powers),
                     frozenset((a, -n) for a, n in m.exponent)): 1 / c}


def exponential(x: Polynomial) -> Polynomial:
    if isinstance(x, float):
        if x > 0:
            raise NoNormalForm("an infinite exponential")
        return {}
    powers: dict[Hashable, int] = {}
    exponent = dict(x)
    for m, c in x.items():
        if len(m.powers) == 1 and not m.exponent and c.denominator == 1:
            ((a, n),) = m.powers
            if n == 1 and isinstance(a, tuple) and a[0] == "log":
                powers[a[1]] = int(c)
                del exponent[m]
    return {Monomial(frozenset(powers.items()), frozenset(exponent.items())): Fraction(1)}


def is_float(e: Expr) -> bool:
    return e.dtype[0] == "f" or e.dtype == "bf16"


# --------------------------------------------------------------------------- expressions

LESS = {"lt": ("lt", False, True), "gt": ("lt", True, True), "le": ("le", False, True),
        "ge": ("le", True, True), "eq": ("eq", False, True), "ne": ("eq", False, False)}
"""Of each comparison: the one that it is, whether its operands change places, and its sense."""


class Case:
    """Values of expressions where conditions are decided in one way.

    `positive`: atoms that are known to be greater than 0. `known` gives the form of an expression
    that is no operation's, and None of those that are atoms.
    """

    def __init__(self, decided: Mapping[Predicate, bool], positive: Iterable[Expr] = (),
                 known: Callable[[Case, Expr], Polynomial | None] | None = None) -> None:
        self.decided = decided
        self.positive = frozenset(positive)
        self._known = known
        self._forms: dict[Expr, Polynomial] = {}

    def form(self, e: Expr) -> Polynomial:
        found = self._forms.get(e)
        if found is None:
            found = self._forms[e] = self._form(e)
        return found

    def _form(self, e: Expr) -> Polynomial:
        if e.op == "const":
            return constant(e.aux.item() if hasattr(e.aux, "item") else e.aux)
        if e.op == "load":
            known = None if self._known is None else self._known(self, e)
            return atom(e) if known is None else known
        if not is_float(e):
            return atom(e)
        if e.op == "select":
            return self.form(e.args[1] if self.holds(e.args[0]) else e.args[2])
        if e.op in ("convert", "round_to"):
            (x,) = e.args
            if x.dtype == "bool":
                return constant(Fraction(self.holds(x)))
            return self.form(x) if is_float(x) or x.op == "const" else atom(x)
        if e.op in ("add", "sub", "mul", "div", "neg", "exp", "exp2", "log"):
            return self._operation(e.op, [self.form(a) for a in e.args], e)
        return atom(e)

    def _operation(self, op: str, args: list[Polynomial], e: Expr) -> Polynomial:
        if op == "add":
            return plus(*args)
        if op == "sub":
            return plus(args[0], times(args[1], {ONE: Fraction(-1)}))
        if op == "neg":
            return times(args[0], {ONE: Fraction(-1)})
        if op == "mul":
            return times(*args)
        if op == "div":
            return times(args[0], inverse(args[1]))
        if op == "exp":
            return exponential(args[0])
        if op == "exp2":
            return exponential(times(args[0], {ONE: Fraction(math.log(2))}))
        return self._logarithm(args[0], e)

    def _logarithm(self, x: Polynomial, e: Expr) -> Polynomial:
        """A sum of logarithms, of a product of what is positive."""
        if isinstance(x, float) or len(x) != 1:
            return atom(e)
        ((m, c),) = x.items()
        if c != 1 or any(a not in self.positive for a, _ in m.powers):
            return atom(e)
        total: Polynomial = dict(m.exponent)
        for a, n in m.powers:
            total = plus(total, times(atom(("log", a)), {ONE: Fraction(n)}))
        return total

    def holds(self, e: Expr) -> bool:
        """Whether a condition holds in this case. Raises Undecided."""
        op, args = e.op, e.args
        if op == "const":
            return bool(e.aux)
        if op == "not":
            return not self.holds(args[0])
        if op == "and":
            return self.holds(args[0]) and self.holds(args[1])
        if op == "or":
            return self.holds(args[0]) or self.holds(args[1])
        if op == "select":
            return self.holds(args[1] if self.holds(args[0]) else args[2])
        if op == "xor" or (op in LESS and args[0].dtype == "bool" and op in ("eq", "ne")):
            return (self.holds(args[0]) == self.holds(args[1])) == (op == "eq")
        if op == "convert" and args[0].dtype == "bool":
            return self.holds(args[0])
        if op not in LESS:
            return self._decision(Predicate(op, args if args else (e,)))
        name, swapped, sense = LESS[op]
        x, y = args[::-1] if swapped else args
        if not is_float(x) and name == "le":  # integers are in order: x <= y unless y < x
            name, x, y, sense = "lt", y, x, not sense
        known = self._comparison(name, x, y)
        return (self._decision(Predicate(name, (x, y))) if known is None else known) == sense

    def _comparison(self, name: str, x: Expr, y: Expr) -> bool | None:
        if not is_float(x):
            return name == "eq" if x is y else None
        a, b = _number(self.form(x)), _number(self.form(y))
        if a is not None and b is not None:
            return {"lt": a < b, "le": a <= b, "eq": a == b}[name]
        if name == "eq" and 0 in (a, b):
            other = self.form(x if b == 0 else y)
            if not isinstance(other, float) and len(other) == 1 and all(
                    m.powers and not m.exponent and all(p in self.positive for p, _ in m.powers)
                    for m in other):
                return False
        return None

    def _decision(self, predicate: Predicate) -> bool:
        found = self.decided.get(predicate)
        if found is None:
            raise Undecided(predicate)
        return found


def _number(x: Polynomial) -> float | Fraction | None:
    if isinstance(x, float):
        return x
    return Fraction(0) if not x else x[ONE] if len(x) == 1 and ONE in x else None


T = TypeVar("T")


def by_cases(run: Callable[[Mapping[Predicate, bool]], T],
             decided: Mapping[Predicate, bool] | None = None,
             along: LoopVar | None = None) -> list[T]:
    """What a function gives in each case of the conditions that it asks for.

    With `along`, of the conditions that depend on it: others are for the caller to decide.
    """
    results: list[T] = []
    waiting = [dict(decided or {})]
    while waiting:
        if len(waiting) + len(results) > MOST_CASES:
            raise NoNormalForm("too many cases")
        case = waiting.pop()
        try:
            results.append(run(case))
        except Undecided as u:
            if along is not None and not u.predicate.depends_on(along):
                raise
            waiting += [{**case, u.predicate: False}, {**case, u.predicate: True}]
    return results
