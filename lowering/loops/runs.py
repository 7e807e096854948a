"""How many neighbours of a tile a GPU's compiler sees to be neighbours in memory.

Triton loads as many elements at once as it proves to be next to each other. It knows of a tile that
begins at a multiple of its width how far remainders go on, and how long quotients stay: as far as
the powers of two that divide the divisor and the width.
"""

from __future__ import annotations

import math

from functrans.core.dims import Size
from functrans.core.record import Record
from functrans.lowering.loops.expr import reachable_expressions
from functrans.lowering.loops.index import Atom, Computed, Index, LoopVar, Remainder

__all__ = ["is_constant_run", "visible_run"]

FOREVER = 0
"""The length of runs without end, as `math.gcd` takes it."""


class _Runs(Record):
    """What is known of a number in runs of places, which begin at multiples of their length.

    `step`: by how much it grows from place to place in a run. What divides `multiple` and `length`
    divides it where a run begins: runs of a sum begin within those of its parts, too.
    """

    step: int
    length: int
    multiple: int


UNKNOWN = _Runs(0, 1, 1)


def visible_run(index: Index, v: LoopVar, width: int) -> int:
    """How many neighbours of `width` values of v, from a multiple of `width`, read neighbours.

    Every run of so many values of v from a multiple of it has places that follow each other. 1
    where no more is known. `width` is a power of two.
    """
    runs = _runs_of(index, v, width)
    return math.gcd(runs.length, width) if runs.step == 1 else 1


def is_constant_run(index: Index, v: LoopVar, width: int) -> bool:
    """Whether `width` values of v, from a multiple of `width`, read one place."""
    runs = _runs_of(index, v, width)
    return runs.step == 0 and math.gcd(runs.length, width) == width


def _runs_of(index: Index, v: LoopVar, width: int) -> _Runs:
    parts = [_times(c, _of_atom(atom, v, width)) for atom, c in index.terms.items()]
    length = math.gcd(*[part.length for part in parts])
    multiple = math.gcd(index.const if isinstance(index.const, int) else 1,
                        *[part.multiple for part in parts])
    return _Runs(sum(part.step for part in parts), length, multiple)


def _of_computed(atom: Computed, v: LoopVar, width: int) -> _Runs:
    """A number is the same where all that it is computed from is."""
    length = FOREVER
    for e in reachable_expressions([atom.value]):
        if e.op in ("index", "load") and e.depends_on(v):
            runs = _runs_of(e.aux if e.op == "index" else e.aux[1], v, width)
            if runs.step != 0:
                return UNKNOWN
            length = math.gcd(length, runs.length)
    return _Runs(0, length, 1)


def _times(c: Size, runs: _Runs) -> _Runs:
    if isinstance(c, int):
        return _Runs(runs.step * c, runs.length, runs.multiple * c)
    return _Runs(0, FOREVER, 1) if runs.length == FOREVER else UNKNOWN


def _of_atom(atom: Atom, v: LoopVar, width: int) -> _Runs:
    if isinstance(atom, LoopVar):
        return _Runs(1, width, width) if atom is v else _Runs(0, FOREVER, 1)
    if isinstance(atom, Computed):
        return _of_computed(atom, v, width)
    inner, divisor = _runs_of(atom.index, v, width), atom.divisor
    if inner.step == 0:
        return _Runs(0, inner.length, 1)
    if inner.step != 1 or not isinstance(divisor, int):
        return UNKNOWN
    # from a multiple of the length on, so many neighbours have one quotient
    length = math.gcd(inner.length, inner.multiple, divisor)
    if isinstance(atom, Remainder):
        return _Runs(1, length, 1)  # a multiple of the length, which Triton forgets
    return _Runs(0, length, 1)
