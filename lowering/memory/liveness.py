"""Liveness: which steps of a program access each buffer, and so how long it is needed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from functrans.lowering.loops.tensor import Call, ScatterTensor, Tensor
from functrans.lowering.schedule.group import Step

__all__ = ["Update", "updates_of", "uses_of"]


class Update(NamedTuple):
    """A value and what it becomes; `reads_base`: the step also reads it at other places."""

    base: Tensor
    result: Tensor
    reads_base: bool


def updates_of(steps: Iterable[Step], operands: Iterable[Collection[Any]]) -> list[Update | None]:
    """The update that each step makes, if it makes one; `operands` are what its code accesses."""
    return [_update_of(step, touched) for step, touched in zip(steps, operands, strict=True)]


def _update_of(step: Step, operands: Collection[Any]) -> Update | None:
    if isinstance(step, Call):
        return None if step.updated is None else Update(step.updated, step.results[0], False)
    t = step.members[0].tensor
    return Update(t.base, t, t.base in operands) if isinstance(t, ScatterTensor) else None


def uses_of(operands: Sequence[Collection[Any]],
          updates: Sequence[Update | None]) -> dict[Any, list[int]]:
    """The steps that read or write each value, in order; an update begins with its base."""
    found: dict[Any, list[int]] = {}
    for k, (touched, update) in enumerate(zip(operands, updates, strict=True)):
        for t in dict.fromkeys((*touched, *(update[:2] if update is not None else ()))):
            found.setdefault(t, []).append(k)
    return found
