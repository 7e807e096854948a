"""What an expression gives in a row whose scores are all -inf: found by evaluating it there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from functrans.lowering.loops.expr import Expr, ExprBuilder, reachable_expressions
from functrans.lowering.loops.index import Index, LoopVar, unflatten
from functrans.lowering.loops.tensor import Reduce
from functrans.lowering.passes.attention.normal_form import Case, Predicate, by_cases
from functrans.lowering.passes.attention.reindexed import NotSoftmax

__all__ = ["gives_zero"]

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum,
    "min": np.minimum, "neg": np.negative, "abs": np.abs, "exp": np.exp, "exp2": np.exp2,
    "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "is_finite": np.isfinite,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "tanh": np.tanh, "and": np.logical_and, "or": np.logical_or,
    "xor": np.logical_xor, "not": np.logical_not}


def gives_zero(e: Expr, hidden: list[Expr], are_masks: bool, numbers: list[Expr], product: Expr,
               along: LoopVar, s: ExprBuilder) -> bool:
    """Whether an expression is 0 in rows whose scores are all -inf, where it might be NaN.

    Any of `hidden` can hide all keys: masks that do not hold, or parts of scores that are -inf.
    `numbers` are conditions without which scores are finite numbers. Raises NotSoftmax where it is
    something else, or now 0, now NaN.
    """
    found: set[bool] = set()

    def value(term: Expr, decided: Mapping[Predicate, bool]) -> float | None:
        """None where the case is another."""
        case = Case(decided)
        if (are_masks and case.holds(term)) or not all(case.holds(x) for x in numbers):
            return None
        row = _EmptyRow(case, {} if are_masks else {term: -math.inf}, product, along, s)
        with np.errstate(all="ignore"):
            return float(row.value(e))

    for term in hidden:
        for x in by_cases(partial(value, term)):
            if x is None:
                continue
            if x != 0 and not math.isnan(x):
                raise NotSoftmax("rows that see nothing have weights")
            found.add(x == 0)
    if len(found) > 1:
        raise NotSoftmax("rows that see nothing are 0, or NaN")
    return found == {True}


class _EmptyRow:
    """Numbers of a row all of whose elements are alike."""

    def __init__(self, case: Case, known: Mapping[Expr, float], product: Expr, along: LoopVar,
                 s: ExprBuilder) -> None:
        self.case, self.product, self.along, self.s = case, product, along, s
        self.values: dict[Expr, Any] = dict(known)
        self.known = frozenset(known)
        self.rng = np.random.default_rng(0)
        self.reads: dict[Expr, bool] = {}

    def value(self, e: Expr) -> Any:
        if e not in self.values:
            self.values[e] = self._value(e)
        return self.values[e]

    def _value(self, e: Expr) -> Any:
        if e.op == "const":
            return e.aux
        if e.op == "load":
            return self._loaded(e)
        if e.op == "index":
            return self.rng.normal()
        if e.op == "select":
            return self.value(e.args[1] if self._holds(e.args[0]) else e.args[2])
        if e.dtype == "bool":
            return self._holds(e)
        if e.op in ("convert", "round_to"):
            return float(self.value(e.args[0]))
        return self._operation(e)

    def _holds(self, e: Expr) -> bool:
        """A condition: computed where it depends on the scores, else decided."""
        if not self._depends(e):
            return self.case.holds(e)
        if e.op == "select":
            return self._holds(e.args[1] if self._holds(e.args[0]) else e.args[2])
        if e.op == "convert":
            return bool(self.value(e.args[0]))
        return bool(self._operation(e))

    def _operation(self, e: Expr) -> Any:
        if e.op not in OPERATIONS:
            raise NotSoftmax(f"{e.op} is part of it")
        return OPERATIONS[e.op](*[self.value(a) for a in e.args])

    def _loaded(self, e: Expr) -> Any:
        element = self._element(e)
        if element is None:
            return self.rng.normal()
        value = self.value(element)
        return value * int(self.along.high) if e.aux[0].op == "add" else value

    def _element(self, e: Expr) -> Expr | None:
        """What a sum or a maximum over the row combines."""
        t, place = e.aux
        if not isinstance(t, Reduce) or t.op not in ("add", "max") \
                or t.sizes != (self.along.high,) or e.depends_on(self.along):
            return None
        index = (*unflatten(place, t.shape), Index.of(self.along))
        return t.element(self.s, index)

    def _depends(self, e: Expr) -> bool:
        """Whether an expression is computed from scores."""
        found = self.reads.get(e)
        if found is None:
            found = self.reads[e] = any(
                x is self.product or x in self.known or (
                    x.op == "load" and (inner := self._element(x)) is not None
                    and self._depends(inner))
                for x in reachable_expressions([e]))
        return found
