"""Functions with rules of their own that are given cells: pure ones, of what is in the cells.

The function, its jvp rule or its forward rule have the values of the cells as further arguments and
results. A jvp rule has a cell for the tangent of each cell, with zeros where there is none; what it
leaves in both is a result with its tangent. A backward rule has tokens: zeros that the call takes
and gives on, whose cotangents are what is in the cells during the backward part (`TokenCell`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from functrans.core.avals import get_aval
from functrans.core.cells import FrameKind, RefCell, framed
from functrans.core.errors import CustomRuleError
from functrans.core.source import user_source
from functrans.primitives.convert import convert_element_type
from functrans.transforms.cells import CellArguments, token_of, write_all, write_results
from functrans.transforms.custom_call import differentiable_flags, plus
from functrans.transforms.reverse import float0_zeros
from functrans.transforms.tangents import SymbolicZero, instantiate_aval

__all__ = ["JVPRuleOfCells", "VJPRulesOfCells"]


class _OfCells:
    """What both have: the cells, and which of them a run was seen to write into."""

    def __init__(self, cells: Sequence[RefCell], name: str) -> None:
        self._cells, self._name = cells, name
        self._written: set[int] = set()

    def _left(self, last: Sequence[Any], before: Sequence[Any]) -> Sequence[Any]:
        self._written.update(i for i, (x, y) in enumerate(zip(last, before, strict=True))
                             if x is not y)
        return last


class JVPRule(Protocol):
    """A rule on lists of leaves, with cells for the tangents of cells."""

    def run(self, primals: Sequence[Any], tangents: Sequence[Any],
            cells: Sequence[RefCell]) -> tuple[list[Any], list[Any]]: ...


class JVPRuleOfCells(_OfCells):
    """A call that is given cells: leaves are the other arguments, and what is in the cells."""

    def __init__(self, flat: Callable[..., Sequence[Any]], rule: JVPRule, given: CellArguments,
                 name: str, symbolic_zeros: bool) -> None:
        super().__init__(given.cells, name)
        self._flat, self._rule, self._count = flat, rule, len(given.others)
        self._symbolic_zeros = symbolic_zeros

    def leaves(self, leaves: Sequence[Any]) -> list[Any]:
        """All leaves of the call, for those that are no cells."""
        return [*leaves, *[c.value for c in self._cells]]

    def results(self, outs: Sequence[Any]) -> Sequence[Any]:
        """The results of the function; what the call left in the cells is there afterwards."""
        count = len(outs) - len(self._cells)
        write_results(self._cells, outs[count:], self._written)
        return outs[:count]

    def flat(self, *leaves: Any) -> list[Any]:
        values = leaves[self._count:]
        with framed(FrameKind.RULE, self, self._name, self._cells, values) as last:
            outs = self._flat(*leaves[:self._count])
            return [*outs, *self._left(last(), values)]

    def rule(self, *given: Any) -> list[Any]:
        number = self._count + len(self._cells)
        primals, values = given[:number], given[self._count:number]
        flags = differentiable_flags([get_aval(p) for p in primals])
        count = sum(flags[:self._count])
        tangents, of_cells = given[number:number + count], iter(given[number + count:])
        before = [next(of_cells) if f else float0_zeros(v)
                  for f, v in zip(flags[self._count:], values, strict=True)]
        if not self._symbolic_zeros:
            tangents = tuple(map(_instantiated, tangents))
        with framed(FrameKind.RULE, self, self._name, self._cells, values) as last:
            filled = [_instantiated(t) for t in before]
            pushed = [type(c)(t) for c, t in zip(self._cells, filled, strict=True)]
            outs, out_tangents = self._rule.run(primals[:self._count], tangents, pushed)
            after = [t if isinstance(t, SymbolicZero) and c.value is zero else self._tangent(c, v)
                     for t, zero, c, v, f in zip(before, filled, pushed, values,
                                                 flags[self._count:], strict=True) if f]
            return [*outs, *self._left(last(), values), *out_tangents, *after]

    def _tangent(self, cell: RefCell, like: Any) -> Any:
        tangent, aval = cell.value, get_aval(like)
        if tangent is None:
            raise CustomRuleError(
                f"{self._name}: the jvp rule freezes the tangent of a reference.",
                where=user_source(), why="it is a result of the rule.",
                fix="read it: tangent[...]")
        return convert_element_type(tangent, aval.dtype)


def _instantiated(tangent: Any) -> Any:
    return instantiate_aval(None, tangent.aval) if isinstance(tangent, SymbolicZero) else tangent


class VJPRules(Protocol):
    """A function and its rules on lists of leaves."""

    flat: Any

    def forward(self, *leaves: Any, perturbed: tuple[bool, ...]) -> tuple[list[Any], int]: ...

    def backward_of_cells(self, residuals: Sequence[Any], cts: Sequence[Any], *,
                          perturbed: tuple[bool, ...]) -> tuple[list[Any], list[Any]]: ...


class VJPRulesOfCells(_OfCells):
    """The rules of a call that is given cells: leaves are arguments, values of cells, tokens.

    What is in a cell keeps its derivative through the call, whatever the call writes: `tangents_of`
    gives a value the derivative of another one. A cotangent that the rule returns for a cell is one
    of what was in it before.
    """

    def __init__(self, rules: VJPRules, cells: Sequence[RefCell], name: str,
                 tangents_of: Callable[[Any, Any], Any]) -> None:
        super().__init__(cells, name)
        self._rules, self._tangents_of = rules, tangents_of
        self._unwritten: set[int] = set()
        self._ended = False

    def leaves(self, leaves: Sequence[Any]) -> list[Any]:
        """All leaves of the call, for those that are no cells."""
        return [*leaves, *[c.value for c in self._cells], *[token_of(c).value for c in self._cells]]

    def results(self, outs: Sequence[Any]) -> Any:
        """The results of the function; what the call left in the cells is there afterwards."""
        found, values, tokens = self._split(outs)
        places = [i for i in range(len(values)) if i not in self._unwritten]
        cells = [self._cells[i] for i in places]
        write_results(cells, [self._tangents_of(values[i], c.value)
                              for c, i in zip(cells, places, strict=True)],
                      [n for n, i in enumerate(places) if i in self._written])
        write_all([token_of(c) for c in self._cells], tokens)
        self._ended = True
        return found

    def flat(self, *leaves: Any) -> list[Any]:
        args, values, tokens = self._split(leaves)
        with framed(FrameKind.RULE, self, self._name, self._cells, values) as last:
            return [*self._rules.flat(*args), *self._left(last(), values), *tokens]

    def forward(self, *leaves: Any, perturbed: tuple[bool, ...]) -> tuple[list[Any], int]:
        args, values, tokens = self._split(leaves)
        of_args = self._split(perturbed)[0]
        with framed(FrameKind.RULE, self, self._name, self._cells, values) as last:
            results, n = self._rules.forward(*args, perturbed=of_args)
            after = self._left(last(), values)
        if not self._ended:  # what such a cell has stays there with its tangent
            self._unwritten = {i for i in range(len(values)) if i not in self._written}
        return [*results[:n], *after, *tokens, *results[n:]], n + 2 * len(values)

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any], *,
                 perturbed: tuple[bool, ...]) -> list[Any]:
        of_outs, after_call, states = self._split(cts)
        cells = [c for c, s in zip(self._cells, states, strict=True) if s is not None]
        given = [s for s in states if s is not None]
        inside = [convert_element_type(s, c.type.dtype) for c, s in zip(cells, given, strict=True)]
        with framed(FrameKind.RULE, self, self._name, cells, inside) as last:
            found, of_cells = self._rules.backward_of_cells(
                residuals, of_outs, perturbed=self._split(perturbed)[0])
            after = iter([convert_element_type(x, get_aval(s).dtype)
                          for x, s in zip(last(), given, strict=True)])
        of_values = [plus(a, b) for a, b in zip(after_call, of_cells, strict=True)]
        return [*found, *of_values, *[None if s is None else next(after) for s in states]]

    def _split(self, items: Sequence[Any]) -> tuple[Any, Any, Any]:
        n = len(self._cells)
        return items[:len(items) - 2 * n], items[len(items) - 2 * n:len(items) - n], \
            items[len(items) - n:]
