"""How far an index moves in memory where a loop variable goes one on."""

from __future__ import annotations

from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import Atom, Computed, Index, LoopVar, Remainder

__all__ = ["step_along"]


def step_along(index: Index, v: LoopVar) -> int | None:
    """How far an index moves where a variable goes one on, but at the ends of runs.

    None where that is not known, as of a gather.
    """
    total = 0
    for atom, c in index.terms.items():
        step = _step_of(atom, v)
        if step is None or (step and not isinstance(c, int)):
            return None
        total += step * c if isinstance(c, int) else 0
    return total


def _step_of(atom: Atom, v: LoopVar) -> int | None:
    if isinstance(atom, LoopVar):
        return int(atom is v)
    if isinstance(atom, Computed):
        return _expression_step(atom.value, v)
    step, divisor = step_along(atom.index, v), atom.divisor
    if step is None or not isinstance(divisor, int):
        return None if step != 0 else 0
    if abs(step) < divisor:
        return step if isinstance(atom, Remainder) else 0
    if step % divisor:
        return None
    return 0 if isinstance(atom, Remainder) else step // divisor


def _expression_step(e: Expr, v: LoopVar) -> int | None:
    """The step of a number that a kernel computes: indices that are moved into bounds."""
    if not e.depends_on(v):
        return 0
    if e.op == "index":
        return step_along(e.aux, v)
    if e.op in ("convert", "min", "max", "add", "sub"):
        steps = [_expression_step(a, v) for a in e.args]
        known = [step for step in steps if step is not None]
        if len(known) == len(steps):
            return known[0] - known[1] if e.op == "sub" else sum(known)
    return None
