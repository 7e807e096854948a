"""Roots: the values that are computed once, for all who read them. All others are inlined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from functrans.lowering.loops.call import Call
from functrans.lowering.loops.tensor import Map, Reduce, ScatterTensor, Stored, Tensor
from functrans.lowering.schedule.kernel import HEAVY

__all__ = ["choose_roots", "live_items"]

# Computing a value again is cheaper than storing and loading it (4 bytes each way, at 15 bytes a
# nanosecond for two cores) up to so many additions of a vector.
SHARED_WEIGHT = 8
# ... and for each element that a broadcast or a gather reads again
REPEATED_WEIGHT = 4
# Reading so many arrays again costs as much as one store and one load of the result.
SHARED_LOADS = 3
# Larger expressions run out of registers, and take long to compile.
MOST_WEIGHT, MOST_LOADS = 480, 24


def live_items(items: Sequence[Tensor | Call], outputs: Iterable[Tensor]) -> list[Tensor | Call]:
    """The items that an output or a call with an effect needs, in order."""
    needed: set[Tensor] = set(outputs)
    live: list[Tensor | Call] = []
    for item in reversed(items):
        if isinstance(item, Call):
            if item.has_effect or any(r in needed for r in item.results):
                live.append(item)
                needed.update(item.operands)
        elif item in needed:
            live.append(item)
            needed.update(item.operands)
    # rules may build on tensors that are no equation's result
    return live[::-1]


def choose_roots(items: Sequence[Tensor | Call], outputs: Iterable[Tensor]) -> set[Tensor]:
    """The tensors of `items` (live ones, in order) that are not inlined where they are read."""
    roots: set[Tensor] = {t for t in outputs if not isinstance(t, Stored)}
    readers: dict[Tensor, list[Tensor]] = {}
    for item in items:
        if isinstance(item, Call):
            roots.update(t for t in (*item.operands, *item.results) if not isinstance(t, Stored))
            continue
        if isinstance(item, ScatterTensor) and not isinstance(item.base, Stored):
            roots.add(item.base)
        for x in dict.fromkeys(item.operands):
            readers.setdefault(x, []).append(item)
    uses: dict[Tensor, int] = {}
    for item in reversed(items):
        if isinstance(item, Tensor):
            uses[item] = sum(uses.get(r, 1) if _moves(r) else 1 for r in readers.get(item, ()))
    weight: dict[Tensor, int] = {}
    loads: dict[Tensor, int] = {}
    chain: dict[Tensor, int] = {}
    for t in items:
        if isinstance(t, Call):
            continue
        if isinstance(t, (Reduce, ScatterTensor)):
            roots.add(t)
            continue
        assert isinstance(t, Map)
        inlined = [x for x in t.operands if x not in roots and not isinstance(x, Stored)]
        for x in inlined:  # a literal, say
            weight.setdefault(x, 0)
        weight[t] = t.weight + sum(weight[x] for x in inlined)
        loads[t] = len(t.operands) - len(inlined) + sum(loads.get(x, 0) for x in inlined)
        chain[t] = t.weight + max((chain.get(x, 0) for x in inlined), default=0)
        if t.weight >= HEAVY:  # where a loop over a row may be split
            heavy = [x for x in inlined if x.shape == t.shape and chain.get(x, 0) >= HEAVY
                     and not _moves(x)]
            roots.update(heavy)
            if heavy:
                weight[t] = chain[t] = t.weight
                loads[t] = len(t.operands)
        shared = uses[t] > 1 and (
            weight[t] >= SHARED_WEIGHT or (weight[t] >= 2 and loads[t] >= SHARED_LOADS))
        repeated = (weight[t] >= REPEATED_WEIGHT and bool(t.shape)
                    and any(_repeats(r, readers) for r in readers.get(t, ())))
        if shared or repeated or weight[t] > MOST_WEIGHT or loads[t] > MOST_LOADS:
            roots.add(t)
    return roots


def _moves(t: Tensor) -> bool:
    return isinstance(t, Map) and t.weight == 0


def _repeats(reader: Tensor, readers: dict[Tensor, list[Tensor]]) -> bool:
    """Whether a reader, or who reads it when it only moves, asks for an element several times."""
    if isinstance(reader, Map):
        if reader.repeats:
            return True
        if reader.weight == 0:
            return any(_repeats(r, readers) for r in readers.get(reader, ()))
    return False
