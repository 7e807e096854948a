"""What each line of a kernel in Triton is for: the values that it computes or moves.

Writers note which variables hold which values, and pointers are known. What lies between, as
addresses and masks do, belongs to what is made of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from functrans.core.record import Record
from functrans.lowering.report import CodeValue

__all__ = ["body_of", "values_by_line"]

MOST_SHARED: Final = 4
"""Values of a line: one that more are made of, as the number of a program, is for all of them."""

Values = dict[CodeValue, None]


class _Statement(Record, frozen=False, eq=False):
    """A simple statement, or the head of one with a body: its lines, and what it is about."""

    node: ast.stmt
    first: int
    last: int
    targets: frozenset[str]
    names: frozenset[str]
    inner: list[_Statement] = field(default_factory=list)
    values: Values = field(default_factory=dict)


def values_by_line(source: str, kernel: str,
                   known: Mapping[tuple[str, str], Sequence[CodeValue]]
                   ) -> list[tuple[CodeValue, ...]]:
    """For each line of a source the values that it computes or moves.

    `known` are those of variables, by the function (the empty text is the `kernel`) and the name.
    """
    functions = {n.name: n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)}
    analysis = _Analysis(functions, {
        (function or kernel, name): dict.fromkeys(values)
        for (function, name), values in known.items()})
    analysis.function(kernel)
    found: list[Values] = [{} for _ in source.split("\n")]
    for statement in analysis.statements:
        for k in range(statement.first, statement.last + 1):
            found[k].update(statement.values)
    return [tuple(values) for values in found]


def body_of(source: str, kernel: str) -> range:
    """The lines of a function of a source."""
    node = next(n for n in ast.parse(source).body
                if isinstance(n, ast.FunctionDef) and n.name == kernel)
    return range(node.body[0].lineno - 1, node.end_lineno or node.lineno)


class _Analysis:
    def __init__(self, functions: Mapping[str, ast.FunctionDef],
                 known: dict[tuple[str, str], Values]) -> None:
        self.functions, self.known = functions, known
        self.statements: list[_Statement] = []
        self._done: dict[str, Values] = {}

    def function(self, name: str) -> Values:
        """Work through a function and those that it calls; the values of all its lines."""
        if name in self._done:
            return self._done[name]
        self._done[name] = {}
        statements = list(_statements(self.functions[name].body))
        self.statements += statements
        known = {of: values for (f, of), values in self.known.items() if f == name}
        pointers = dict(known)
        for s in statements:
            self._direct(s, known, pointers)
        _inherit(statements)
        for s in statements:
            self._done[name].update(s.values)
        return self._done[name]

    def _direct(self, s: _Statement, known: Mapping[str, Values],
                pointers: dict[str, Values]) -> None:
        """The values of a statement by itself: of its variables, or of the memory it accesses."""
        node = s.node
        for target in s.targets:
            s.values.update(known.get(target, {}))
        if s.inner:
            return
        value = node.value if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)) else None
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        accesses = [c for c in calls if _accessed(c)]
        if not s.values:
            for call in accesses:
                place = call.args[0] if _is_module(call.func) else call.func
                for name in _names(place):
                    s.values.update(pointers.get(name, {}))
        for call in calls:
            if isinstance(call.func, ast.Name) and call.func.id in self.functions:
                s.values.update(self._called(call, call.func.id, pointers))
        if value is not None and not accesses:  # an address
            for target in s.targets - known.keys():
                of = {v: None for name in _names(value) for v in pointers.get(name, {})}
                if of:
                    pointers[target] = {**pointers.get(target, {}), **of}

    def _called(self, call: ast.Call, name: str, pointers: Mapping[str, Values]) -> Values:
        """What a function computes for a call, whose arguments are its pointers."""
        parameters = [a.arg for a in self.functions[name].args.args]
        for parameter, argument in zip(parameters, call.args, strict=False):
            of = {v: None for n in _names(argument) for v in pointers.get(n, {})}
            if of and (name, parameter) not in self.known:
                self.known[name, parameter] = of
        return self.function(name)


def _statements(body: Iterable[ast.stmt]) -> Iterator[_Statement]:
    """Statements in order, the head of a loop or a branch before what is in it."""
    for node in body:
        inner = [*getattr(node, "body", ()), *getattr(node, "orelse", ())]
        heads = [getattr(node, "test", None), getattr(node, "iter", None)] if inner else [node]
        last = inner[0].lineno - 1 if inner else node.end_lineno or node.lineno
        parts = [h for h in heads if h is not None]
        targets = _targets([node.target] if isinstance(node, ast.For) else parts)
        found = _Statement(node, node.lineno - 1, max(last, node.lineno) - 1, targets,
                           frozenset(n for p in parts for n in _names(p)))
        nested = list(_statements(inner))
        found.inner = nested
        yield found
        yield from nested


def _targets(nodes: Iterable[ast.AST]) -> frozenset[str]:
    return frozenset(n.id for node in nodes for n in ast.walk(node)
                     if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _names(node: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(node)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]


def _accessed(call: ast.Call) -> bool:
    """Whether a call reads or writes memory: `tl.load(...)`, `fm.store_scalar(...)`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return bool(call.args) and name.startswith(("load", "store", "atomic"))


def _is_module(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) \
        and function.value.id in ("tl", "fm")


def _inherit(statements: Sequence[_Statement]) -> None:
    """Give what has no values those of what is made of it, and a loop those of its body."""
    readers: dict[str, list[_Statement]] = {}
    for s in statements:
        for name in s.names:
            readers.setdefault(name, []).append(s)
    waiting = [s for s in reversed(statements) if not s.values]
    for _ in range(2):  # what a loop carries is read before it is made
        for s in waiting:
            of = s.inner if s.inner else [r for name in s.targets for r in readers.get(name, ())
                                          if r is not s]
            values = {v: None for r in of for v in r.values}
            if len(values) <= MOST_SHARED:
                s.values.update(values)
