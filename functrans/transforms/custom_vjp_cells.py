"""custom_vjp functions of cells: pure rules, of what is in the cells and for what will be.

The function and its forward rule have the values of the cells as further arguments and results.
The backward rule has tokens: zeros that the call takes and gives on, whose cotangents are what is
in the cells during the backward part (`TokenCell`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from functrans.core.avals import get_aval
from functrans.core.cells import FrameKind, RefCell, framed
from functrans.core.errors import CustomRuleError
from functrans.core.source import user_source
from functrans.primitives.barrier import stop_gradient_p
from functrans.primitives.convert import convert_element_type

__all__ = ["CellRules"]


class Rules(Protocol):
    """A function and its rules on lists of leaves."""

    flat: Any

    def forward(self, *leaves: Any, perturbed: tuple[bool, ...]) -> tuple[list[Any], int]: ...

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any], *,
                 perturbed: tuple[bool, ...]) -> list[Any]: ...


class CellRules:
    """The rules of a call that is given cells: leaves are arguments, values of cells, tokens."""

    def __init__(self, rules: Rules, cells: Sequence[RefCell], name: str) -> None:
        self._rules, self._cells, self._name = rules, cells, name

    def leaves(self, leaves: Sequence[Any]) -> list[Any]:
        """All leaves of the call, for those that are no cells."""
        return [*leaves, *[c.value for c in self._cells], *[c.token.value for c in self._cells]]

    def results(self, outs: Sequence[Any]) -> Any:
        """The results of the function; what the call left in the cells is there afterwards."""
        found, values, tokens = self._split(outs)
        for cell, value, token in zip(self._cells, values, tokens, strict=True):
            cell.value = stop_gradient_p.bind(value)  # of which the rule says nothing
            cell.token.value = token
        return found

    def flat(self, *leaves: Any) -> list[Any]:
        args, values, tokens = self._split(leaves)
        with framed(FrameKind.RULE, self, self._name, self._cells, values) as last:
            return [*self._rules.flat(*args), *last(), *tokens]

    def forward(self, *leaves: Any, perturbed: tuple[bool, ...]) -> tuple[list[Any], int]:
        args, values, tokens = self._split(leaves)
        if any(self._split(perturbed)[1]):
            raise CustomRuleError(
                f"{self._name}: what is in a reference is differentiated.", where=user_source(),
                why="a rule gives cotangents of arrays, not of references.",
                fix="give the value as an argument, too, or write lax.stop_gradient(x)")
        with framed(FrameKind.RULE, self, self._name, self._cells, values) as last:
            results, n = self._rules.forward(*args, perturbed=self._split(perturbed)[0])
            return [*results[:n], *last(), *tokens, *results[n:]], n + 2 * len(values)

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any], *,
                 perturbed: tuple[bool, ...]) -> list[Any]:
        of_outs, _, states = self._split(cts)
        cells = [c for c, s in zip(self._cells, states, strict=True) if s is not None]
        given = [s for s in states if s is not None]
        inside = [convert_element_type(s, c.type.dtype) for c, s in zip(cells, given, strict=True)]
        with framed(FrameKind.RULE, self, self._name, cells, inside) as last:
            found = self._rules.backward(residuals, of_outs, perturbed=self._split(perturbed)[0])
            after = iter([convert_element_type(x, get_aval(s).dtype)
                          for x, s in zip(last(), given, strict=True)])
        return [*found, *[None] * len(states),
                *[None if s is None else next(after) for s in states]]

    def _split(self, items: Sequence[Any]) -> tuple[Any, Any, Any]:
        n = len(self._cells)
        return items[:len(items) - 2 * n], items[len(items) - 2 * n:len(items) - n], \
            items[len(items) - n:]
