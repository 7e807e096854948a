"""The rule that most operations share: axes of operands and results that go together.

A *factor* is an iteration axis of an operation: a matrix product has three, those of its rows, its
columns and its sum. A rule says for each axis of each operand and result which factor it is, and
for each factor what dividing it costs: nothing, a reduction of the results, or that it cannot be
divided. One choice of axes of the mesh for factors then serves all families.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import combinations
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation
from functrans.core.mesh import DimAxes, Mesh
from functrans.core.record import Record
from functrans.lowering.spmd.layout import Local, Placement, moved_bytes

__all__ = ["Factors", "by_factors"]

Axes = tuple[str, ...]
Dims = Sequence["int | None"]
MOST_DROPPED = 3
"""Reduced factors that are tried divided and whole; there is seldom more than one."""


class Factors(Record):
    """For each axis of operands and results its factor, None where it must be whole.

    `reduced` has what combines the results of parts of a factor: "sum", "max" or "min".
    """

    ins: Sequence[Dims]
    outs: Sequence[Dims]
    reduced: Mapping[int, str] = field(default_factory=dict)


Run = Callable[[Sequence[Any], Mapping[int, Axes]], Any]


def by_factors(p: Placement, eqn: Equation, operands: Sequence[Local], factors: Factors,
               run: Run | None = None) -> list[Local]:
    """The results of an operation on parts, for the axes of the mesh that cost least.

    `run(values, assigned)` applies it to parts; by default it is the operation itself.
    """
    out_avals = [v.aval for v in eqn.outvars]
    assigned = _assigned(p.mesh, operands, out_avals, factors)
    placed = [p.place(x, _dims(dims, assigned))
              for x, dims in zip(operands, factors.ins, strict=True)]
    values = [x.value for x in placed]
    outs = eqn.primitive.bind(*values, **eqn.params) if run is None else run(values, assigned)
    results = list(outs) if eqn.primitive.multiple_results else [outs]
    for factor, op in factors.reduced.items():
        if assigned.get(factor):
            results = [p.reduce(r, assigned[factor], op) for r in results]
    return [Local(r, _dims(dims, assigned), a)
            for r, dims, a in zip(results, factors.outs, out_avals, strict=True)]


def _dims(dims: Dims, assigned: Mapping[int, Axes]) -> DimAxes:
    return tuple([() if f is None else assigned.get(f, ()) for f in dims])


def _assigned(mesh: Mesh, operands: Sequence[Local], out_avals: Sequence[ShapedArray],
              factors: Factors) -> dict[int, Axes]:
    """The axes of the mesh for each factor: of all that operands propose, those that cost least."""
    reduced = [f for f in factors.reduced
               if any(f == g and x.dims[k] for x, dims in zip(operands, factors.ins, strict=True)
                      for k, g in enumerate(dims))][:MOST_DROPPED]
    best: tuple[int, dict[int, Axes]] | None = None
    for count in range(len(reduced) + 1):
        for whole in combinations(reduced, count):
            found = _greedy(mesh, operands, out_avals, factors, frozenset(whole))
            cost = _cost(mesh, operands, out_avals, factors, found)
            if best is None or cost < best[0]:
                best = cost, found
    assert best is not None
    return best[1]


def _greedy(mesh: Mesh, operands: Sequence[Local], out_avals: Sequence[ShapedArray],
            factors: Factors, whole: frozenset[int]) -> dict[int, Axes]:
    """What operands propose, the largest first, where it does not contradict what is taken."""
    proposals: list[tuple[int, int, int, int, Axes]] = []
    sizes: dict[int, set[Any]] = {}
    for n, (x, dims) in enumerate(zip(operands, factors.ins, strict=True)):
        for k, factor in enumerate(dims):
            if factor is None:
                continue
            sizes.setdefault(factor, set()).add(x.aval.shape[k])
            if x.dims[k] and factor not in whole:
                weight = x.aval.nbytes if isinstance(x.aval.nbytes, int) else 1 << 20
                proposals.append((-weight, n, k, factor, x.dims[k]))
    for a, dims in zip(out_avals, factors.outs, strict=True):
        for size, factor in zip(a.shape, dims, strict=True):
            if factor is not None:
                sizes.setdefault(factor, set()).add(size)
    assigned: dict[int, Axes] = {}
    used: set[str] = set()
    for _, _, _, factor, axes in sorted(proposals, key=lambda proposal: proposal[:3]):
        if factor in assigned or used.intersection(axes):
            continue
        parts = mesh.size_of(axes)
        if all(isinstance(s, int) and s % parts == 0 for s in sizes[factor]):
            assigned[factor] = axes
            used.update(axes)
    return assigned


def _cost(mesh: Mesh, operands: Sequence[Local], out_avals: Sequence[ShapedArray],
          factors: Factors, assigned: Mapping[int, Axes]) -> int:
    total = sum([moved_bytes(x.aval, x.dims, _dims(dims, assigned), mesh)
                 for x, dims in zip(operands, factors.ins, strict=True)])
    for factor in factors.reduced:
        axes = assigned.get(factor)
        if not axes:
            continue
        n = mesh.size_of(axes)
        for a, dims in zip(out_avals, factors.outs, strict=True):
            parts = mesh.size_of([x for d in _dims(dims, assigned) for x in d])
            nbytes = a.nbytes if isinstance(a.nbytes, int) else 1 << 20
            total += 2 * nbytes // parts * (n - 1) // n
    return total
