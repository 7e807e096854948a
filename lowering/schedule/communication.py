"""When collectives of a program of GPUs begin, and what waits for them: beside computation.

A collective takes the links between devices, and a step the multiprocessors: both work at one time
where the program allows. So a reduction begins as soon as its operand is there, what it is needed
for comes later, and small reductions are given together: gradients of a layer are reduced while
those of the layer before are computed. What makes values larger, as gathering parameters does,
begins so early that it is there when it is needed, and not earlier: one layer ahead.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["LINK", "CollectiveTimes", "CommunicatedStep", "Overlap", "beside_computation",
           "overlapped_order"]

SMALL: Final = 1 << 20
"""Bytes below which a reduction is given with others: it takes as long as one of no bytes."""
BUCKET: Final = 1 << 23
"""Bytes of several that are enough for one launch."""
AHEAD: Final = 1.5
"""Times what a gathering takes that it begins before it is needed: estimates are not exact."""


@dataclass(frozen=True)
class CollectiveTimes:
    """What collectives take, in seconds: between two GPUs by NVLink, from their published rates.

    An all-reduce of 256 MB takes 984 us between two H200, one of 1 MB some 20.
    """

    latency: float = 15e-6
    byte: float = 1 / 270e9

    def seconds(self, nbytes: int) -> float:
        return self.latency + nbytes * self.byte


LINK: Final = CollectiveTimes()


@dataclass(frozen=True)
class CommunicatedStep:
    """What a step touches, what of it it writes, and how long it takes, by estimate.

    `nbytes` are those of the operand of a collective, None of other steps; one that `gathers` has a
    larger result, and several that are `reductions` may be given together.
    """

    touched: Collection[object]
    written: Collection[object]
    seconds: float = 0.0
    nbytes: int | None = None
    gathers: bool = False
    reduces: bool = False

    @property
    def is_collective(self) -> bool:
        return self.nbytes is not None


def _dependencies(steps: Sequence[CommunicatedStep]) -> list[set[int]]:
    """The steps that each one has to come after."""
    last_write: dict[object, int] = {}
    reads: dict[object, list[int]] = {}
    found: list[set[int]] = []
    for k, step in enumerate(steps):
        before: set[int] = set()
        written = set(step.written)
        for t in step.touched:
            if t in last_write:
                before.add(last_write[t])
        for t in written:
            if t in last_write:
                before.add(last_write[t])
            before.update(reads.get(t, ()))
        before.discard(k)
        found.append(before)
        for t in step.touched:
            reads.setdefault(t, []).append(k)
        for t in written:
            last_write[t] = k
            reads[t] = []
    return found


def overlapped_order(steps: Sequence[CommunicatedStep]) -> list[int]:
    """The steps by number, in an order that keeps dependencies and lets collectives run beside.

    Steps that wait for no collective keep their order.
    """
    if not any(step.is_collective for step in steps):
        return list(range(len(steps)))
    before = _dependencies(steps)
    return _late_consumers(steps, before, _early_collectives(steps, before))


def _early_collectives(steps: Sequence[CommunicatedStep],
                       before: Sequence[set[int]]) -> list[int]:
    """Collectives as soon as their operands are there, or as early as they have to begin."""
    needed: dict[int, int] = {}  # the first step that comes after each
    for k, earlier in enumerate(before):
        for j in earlier:
            needed.setdefault(j, k)
    after: dict[int, list[int]] = {}  # behind which step each collective begins
    ahead: list[int] = []
    for k, step in enumerate(steps):
        if not step.is_collective:
            continue
        earliest = max(before[k], default=-1)
        if step.gathers:
            place, left = needed.get(k, len(steps)), AHEAD * step.seconds
            while place > earliest + 1 and left > 0:
                place -= 1
                left -= 0 if steps[place].is_collective else steps[place].seconds
            earliest = max(earliest, min(place, k) - 1)
        if earliest < 0:
            ahead.append(k)
        else:
            after.setdefault(earliest, []).append(k)
    found: list[int] = []

    def emit(k: int) -> None:
        found.append(k)
        for later in after.get(k, ()):
            emit(later)

    for k in ahead:
        emit(k)
    for k, step in enumerate(steps):
        if not step.is_collective:
            emit(k)
    return found


def _late_consumers(steps: Sequence[CommunicatedStep], before: Sequence[set[int]],
                    order: Sequence[int]) -> list[int]:
    """What needs a collective comes when that is over by estimate, or nothing else is left."""
    found: list[int] = []
    done: set[int] = set()
    over: dict[int, float] = {}  # when each collective is
    waiting: list[int] = []
    now = links = 0.0  # computed until, and communicated until

    def is_ready(k: int) -> bool:
        return all(j in done and over.get(j, 0.0) <= now for j in before[k])

    def emit(k: int) -> None:
        nonlocal now, links
        found.append(k)
        done.add(k)
        if steps[k].is_collective:
            links = over[k] = max(links, now) + steps[k].seconds
        else:
            now = max([now, *[over[j] for j in before[k] if j in over]]) + steps[k].seconds

    def can_begin(k: int) -> bool:
        """A collective waits for others on the links, not for the computation."""
        return all(j in done and (j not in over or steps[k].is_collective or over[j] <= now)
                   for j in before[k])

    for k in order:
        if can_begin(k):
            emit(k)
        else:
            waiting.append(k)
        for j in [*waiting]:
            if is_ready(j) or (steps[j].is_collective and can_begin(j)):
                waiting.remove(j)
                emit(j)
    for j in waiting:
        emit(j)
    return found


@dataclass(frozen=True)
class Overlap:
    """What is given together, and which steps wait.

    `groups` are the numbers of collectives; the first one of a group is where it begins. Before
    step k all runs wait for group `waits[k]`, and so for those before it.
    """

    groups: list[list[int]]
    waits: dict[int, int]


def beside_computation(steps: Sequence[CommunicatedStep]) -> Overlap:
    """How the collectives among steps in their final order run beside the others.

    Reductions whose operands are small wait for each other, until they are enough or one is needed:
    they are where the last one of them is.
    """
    groups: list[list[int]] = []
    waits: dict[int, int] = {}
    group_of: dict[int, int] = {}
    before = _dependencies(steps)
    pending: list[int] = []

    def flush() -> None:
        if pending:
            group_of.update(dict.fromkeys(pending, len(groups)))
            groups.append([*pending])
            pending.clear()

    waited = -1
    for k, step in enumerate(steps):
        if any(j in pending for j in before[k]):
            flush()
        if step.is_collective:
            if not step.reduces:
                flush()
            pending.append(k)
            together = sum(steps[j].nbytes or 0 for j in pending)
            if not step.reduces or step.nbytes is None or step.nbytes >= SMALL \
                    or together >= BUCKET:
                flush()
            continue
        last = max((group_of[j] for j in before[k] if j in group_of), default=-1)
        if last > waited:
            waits[k] = waited = last
    flush()
    return Overlap(groups, waits)
