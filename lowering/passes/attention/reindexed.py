"""Expressions at other places, and elements of tensors whose indices are taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from functrans.lowering.loops.expr import Expr, ExprBuilder, reachable_expressions
from functrans.lowering.loops.index import (
    ZERO,
    Computed,
    Index,
    LoopVar,
    Quotient,
    Remainder,
    unflatten,
)
from functrans.lowering.loops.tensor import Map, Tensor

__all__ = ["AxisRange", "NotSoftmax", "moved", "split_view"]


class NotSoftmax(Exception):
    """An expression is something else."""


class AxisRange(NamedTuple):
    """What of a tensor lies between two places along an axis."""

    axis: int
    start: int
    size: int


def moved(e: Expr, places: Mapping[LoopVar, Index], s: ExprBuilder) -> Expr:
    """An expression at other places."""
    made: dict[Expr, Expr] = {}
    for x in reachable_expressions([e]):
        if x.op == "load":
            place = _moved(x.aux[1], places, made, s)
            made[x] = s.read(x.aux[0], unflatten(place, x.aux[0].shape))
        elif x.op == "index":
            made[x] = s.index(_moved(x.aux, places, made, s), x.dtype)
        elif x.op == "const":
            made[x] = s.const(x.aux, x.dtype)
        else:
            made[x] = s.op(x.op, *[made[a] for a in x.args], dtype=x.dtype, aux=x.aux)
    return made[e]


def _moved(index: Index, places: Mapping[LoopVar, Index], made: Mapping[Expr, Expr],
           s: ExprBuilder) -> Index:
    total = Index.of(index.const)
    for atom, c in index.terms.items():
        if isinstance(atom, LoopVar):
            total = total + places[atom] * c
        elif isinstance(atom, Computed):
            total = total + s.computed(made[atom.value], atom.high) * c
        else:
            inner = _moved(atom.index, places, made, s)
            total = total + (inner // atom.divisor if isinstance(atom, Quotient)
                             else inner % atom.divisor) * c
    return total


def split_view(t: Tensor, s: ExprBuilder, part: AxisRange | None = None
               ) -> tuple[Expr, dict[LoopVar, int]]:
    """An element of a tensor, and the steps of its variables in it: dimensions that are read in
    pieces are variables of their own."""
    pieces = [[n] for n in t.shape]
    if part is not None:
        pieces[part.axis] = [part.size]
    for _ in range(4):
        variables: dict[LoopVar, int] = {}
        index, step = [ZERO] * len(pieces), 1
        for d in reversed(range(len(pieces))):
            inner = 1
            for n in reversed(pieces[d]):
                if not isinstance(n, int):
                    raise NotSoftmax("a size that is not known")
                if n != 1:
                    v = LoopVar(f"d{d}_{inner}", n)
                    variables[v] = step * inner
                    index[d] = index[d] + Index.of(v) * inner
                inner *= n
            step *= t.shape[d]
            if part is not None and part.axis == d:
                index[d] = index[d] + part.start
        e = t.define(s, tuple(index)) if isinstance(t, Map) else s.read(t, tuple(index))
        cut = _cut(e, pieces)
        if cut is None:
            return e, variables
        pieces = cut
    raise NotSoftmax("its indices are too complicated")


def _cut(e: Expr, pieces: list[list[Any]]) -> list[list[Any]] | None:
    for x in reachable_expressions([e]):
        if x.op != "load":
            continue
        for atom in x.aux[1].terms:
            if not isinstance(atom, (Quotient, Remainder)) or atom.index.const != 0:
                continue
            for v, c in atom.index.terms.items():
                if not isinstance(v, LoopVar) or c != 1 or len(atom.index.terms) != 1 \
                        or not isinstance(atom.divisor, int) or v.high % atom.divisor:
                    continue
                d, inner = map(int, v.name[1:].split("_"))
                made = [list(p) for p in pieces]
                at = 1
                for k in reversed(range(len(made[d]))):
                    if at == inner:
                        made[d][k:k + 1] = [v.high // atom.divisor, atom.divisor]
                        break
                    at *= made[d][k]
                return made
    return None
