"""Sums of several products of matrices in one accumulator: the text and arguments of the terms.

A program walks over the terms, and over the sum of each. Programs that share the sum of a tile
divide the steps of all terms among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from functrans.core.record import Record
from functrans.lowering.triton.templates.kernel import Argument
from functrans.lowering.triton.templates.tiles import SPAN

__all__ = ["SUM_OF_TERMS", "TermArguments"]

SUM_OF_TERMS = SPAN + '''
acc = tl.full((BLOCK_M, BLOCK_N), 0, dtype=SUMS)
BEGIN_TERMS
if SPLITS > 1:
    first_term = FIRST_TERM
    last_term = LAST_TERM
else:
    first_term = 0
    last_term = TERMS
for term in range(first_term, last_term):
    CHOOSE_TERM
    DESCRIBE_TERM
    FIND_OPERANDS
    for step in range(tl.maximum(first - begin, 0), tl.minimum(last - begin, tl.cdiv(k, BLOCK_K))):
        LOAD
        MULTIPLY
'''


class TermArguments(Record):
    """The arguments of the terms of a sum, in the same order for each: pointers first.

    Numbers that are equal in all terms are one argument; others have the number of their term.
    """

    terms: Sequence[Sequence[Argument]]

    @property
    def pointers(self) -> list[Argument]:
        """Those of the operands."""
        return [replace(a, name=_numbered(a, k)) for k, term in enumerate(self.terms)
                for a in term if a.value is None]

    @property
    def numbers(self) -> list[Argument]:
        """Sizes and strides."""
        found: list[Argument] = []
        for same in zip(*self.terms, strict=True):
            if same[0].value is not None:
                found += [replace(a, name=_numbered(a, k)) for k, a in enumerate(same)] \
                    if _varies(same) else same[:1]
        return found

    @property
    def chosen(self) -> list[str]:
        """The lines that give the arguments of a term, and its first step, the names of one."""
        lines = ["begin = 0"]
        lines += [f"begin = tl.where(term == {k}, begin_{k}, begin)"
                  for k in range(1, len(self.terms))]
        for same in zip(*self.terms, strict=True):
            name = same[0].name
            if _varies(same):
                lines.append(f"{name} = {name}_0")
                lines += [f"{name} = tl.where(term == {k}, {name}_{k}, {name})"
                          for k in range(1, len(same))]
        return lines

    @property
    def begins(self) -> list[str]:
        """The lines that number the first step of each term but the first."""
        steps = self._steps
        return [f"begin_{k + 1} = " + (f"begin_{k} + " if k else "") + steps[k]
                for k in range(len(steps) - 1)]

    @property
    def steps(self) -> str:
        """How many steps all terms have."""
        return " + ".join(self._steps)

    @property
    def _steps(self) -> list[str]:
        (sizes,) = [same for same in zip(*self.terms, strict=True) if same[0].name == "k"]
        return [f"tl.cdiv({_numbered(a, k) if _varies(sizes) else a.name}, BLOCK_K)"
                for k, a in enumerate(sizes)]

    def begun(self, test: str) -> str:
        """The number of terms after the first one of whose first step something is true."""
        return " + ".join([f"tl.cast({test} begin_{k}, tl.int32)"
                           for k in range(1, len(self.terms))])


def _varies(same: Sequence[Argument]) -> bool:
    return same[0].value is None or any(a.value != same[0].value for a in same)


def _numbered(a: Argument, k: int) -> str:
    return f"{a.name}_{k}"
