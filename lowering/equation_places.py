"""Where the equations of a program are, for values of kernels that come from copies of them.

What a kernel computes was on its way through passes: some equations are those of the program, some
were written anew for one lane, or for a phase. These are found again by their results, or by what
they do and the line that asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.core.notation import bodies
from functrans.lowering.loops.tensor import Call, Tensor
from functrans.lowering.report import CodeValue, line_of
from functrans.lowering.schedule.show import tensor_text
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.shape import reshape_p, slice_p

__all__ = ["EquationPath", "EquationPlaces", "with_all_equations"]

MOVEMENTS: Final = frozenset({broadcast_in_dim_p, reshape_p, slice_p, transpose_p})

EquationPath = tuple[int, ...]
"""The number of an equation; of one in a body, then those of the body and of the equation there."""


class EquationPlaces:
    """The equations of a program by their paths, and the inputs by their numbers."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self._paths: dict[Equation, EquationPath] = {}
        self._makers: dict[Var, EquationPath] = {}
        self._alike: dict[Any, list[EquationPath]] = {}
        self._taken: dict[Any, int] = {}
        self._results: dict[Tensor, int] = {}
        self._inputs: dict[Var, tuple[EquationPath, int]] = {}
        for path, eqn in equations_in(jaxpr):
            self._paths.setdefault(eqn, path)
            self._makers.update(dict.fromkeys(eqn.outvars, path))
            self._alike.setdefault(_likeness(eqn), []).append(path)
            for n, (_, body) in enumerate(bodies(eqn)):
                self._inputs.update((v, ((*path, n), k)) for k, v in enumerate(body.invars))

    def input_of_body(self, t: Tensor, v: Var) -> CodeValue | None:
        """A value that is an input of a body, `v`; None of one that the program does not have."""
        path, number = self._inputs.get(v, ((), 0))
        return CodeValue(tensor_text(t), path[0], None, path[1:], number) if path else None

    def learn(self, origins: Mapping[Tensor | Call, Equation]) -> None:
        """Learn which results of calls values are."""
        for x in origins:
            if isinstance(x, Call):
                self._results.update((t, k) for k, t in enumerate(x.results))

    def path(self, eqn: Equation | None) -> EquationPath | None:
        """Where an equation is, or the one that it is a copy of; None where there is none."""
        if eqn is None:
            return None
        found = self._paths.get(eqn)
        if found is None:
            made = [self._makers[v] for v in eqn.outvars if v in self._makers]
            found = made[0] if made else self._like(eqn)
            if found is not None:
                self._paths[eqn] = found
        return found

    def _like(self, eqn: Equation) -> EquationPath | None:
        """One that does the same for the same line: in order, where there are several."""
        key = _likeness(eqn)
        found = self._alike.get(key)
        if found is None or eqn.primitive in MOVEMENTS:  # of which passes make new ones
            return None
        count = self._taken[key] = self._taken.get(key, -1) + 1
        return found[min(count, len(found) - 1)]

    def value(self, t: Tensor, origins: Mapping[Tensor | Call, Equation],
              arguments: Mapping[Tensor, int] | None = None) -> CodeValue:
        """A value of a kernel, whose equation is among `origins`."""
        path = self.path(origins.get(t))
        number = None if arguments is None else arguments.get(t)
        return CodeValue(tensor_text(t), None if path is None else path[0], line_of(t.source),
                         () if path is None else path[1:], number, self._results.get(t, 0))


def equations_in(jaxpr: Jaxpr,
                 before: EquationPath = ()) -> Iterator[tuple[EquationPath, Equation]]:
    """All equations of a program, also of its bodies, with their paths."""
    for k, eqn in enumerate(jaxpr.eqns):
        yield (*before, k), eqn
        for n, (_, body) in enumerate(bodies(eqn)):
            yield from equations_in(body, (*before, k, n))


def _likeness(eqn: Equation) -> Any:
    literals = tuple([str(a.value) for a in eqn.invars if isinstance(a, Literal)])
    return eqn.primitive.name, eqn.source, literals


def with_all_equations(by_line: Sequence[Iterable[CodeValue]], numbers: Sequence[int],
                       jaxpr: Jaxpr, body: range) -> list[tuple[CodeValue, ...]]:
    """Values by line, with equations that no line says to compute at the lines of their readers.

    So are movements, which are in the indices of these. Others are at the lines of what they read,
    and those of a kernel without values by line at all lines of its `body`. The same holds of the
    equations of bodies, at the lines of the equation that has them.
    """
    found = [list(values) for values in by_line]
    _spread(found, jaxpr, (), numbers, body)
    return [tuple(dict.fromkeys(values)) for values in found]


def _spread(found: list[list[CodeValue]], jaxpr: Jaxpr, before: EquationPath,
            numbers: Sequence[int], otherwise: Iterable[int]) -> None:
    lines: dict[int, list[int]] = {}
    depth = len(before)
    for k, values in enumerate(found):
        for v in values:
            path = () if v.equation is None else (v.equation, *v.inside)
            if len(path) > depth and path[:depth] == before:
                lines.setdefault(path[depth], []).append(k)
    wanted = set(numbers)
    readers: dict[Var, set[int]] = {}
    makers: dict[Var, int] = {}
    for n in reversed(numbers):
        eqn = jaxpr.eqns[n]
        if n not in lines:
            of = sorted({k for v in eqn.outvars for r in readers.get(v, ()) for k in lines[r]})
            if of:
                lines[n] = _add(found, jaxpr, (*before, n), of)
        if n in lines:
            for a in eqn.invars:
                if isinstance(a, Var):
                    readers.setdefault(a, set()).add(n)
    for n in numbers:
        eqn = jaxpr.eqns[n]
        if n not in lines:
            of = sorted({k for a in eqn.invars if isinstance(a, Var) and makers.get(a) in wanted
                         for k in lines.get(makers[a], ())})
            lines[n] = _add(found, jaxpr, (*before, n), of or list(otherwise))
        makers.update(dict.fromkeys(eqn.outvars, n))
        for number, (_, inner) in enumerate(bodies(eqn)):
            _spread(found, inner, (*before, n, number), range(len(inner.eqns)), lines[n])


def _add(found: list[list[CodeValue]], jaxpr: Jaxpr, path: EquationPath,
         lines: list[int]) -> list[int]:
    eqn = jaxpr.eqns[path[-1]]
    value = CodeValue(str(eqn.outvars[0].aval) if eqn.outvars else "", path[0],
                      line_of(eqn.source), path[1:])
    for k in lines:
        found[k].append(value)
    return lines
