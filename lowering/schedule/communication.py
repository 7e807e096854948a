"""When collectives of a program of GPUs begin, and what waits for them: beside computation.

A collective takes the links between devices, and a step the multiprocessors: both work at one time
where the program allows. So a reduction begins as soon as its operand is there, what it is needed
for comes later, and small reductions are given together: gradients of a layer are reduced while
those of the layer before are computed. What makes values larger, as gathering parameters does,
begins so early that it is there when it is needed, and not earlier: one layer ahead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["ALONE", "BESIDE", "CollectiveTimes", "CommunicatedStep", "Overlap",
           "beside_computation", "overlapped_order"]

LEAST: Final = 8 << 20
MOST: Final = 48 << 20
"""Bytes of reductions that are given together, at least and at most."""
BUCKETS: Final = 12
"""How many there are of them, between these bounds. A device that begins waits for the others:
of 49 sums of a step of a transformer on two H100 each took 126 us longer than its bytes."""
AHEAD: Final = 1.5
"""Times what a gathering takes that it begins before it is needed: estimates are not exact."""


@dataclass(frozen=True)
class CollectiveTimes:
    """What collectives take, in seconds, by the bytes that each device sends."""

    latency: float
    byte: float

    def seconds(self, nbytes: int) -> float:
        return self.latency + nbytes * self.byte


ALONE: Final = CollectiveTimes(20e-6, 1 / 280e9)
"""Between two H100 by NVLink: sums of 1 MB take 33 us, of 16 MB 82, of 256 MB 903."""
BESIDE: Final = CollectiveTimes(20e-6, 1 / 70e9)
"""The same with the few programs that leave the other multiprocessors to kernels: an estimate."""


@dataclass(frozen=True)
class CommunicatedStep:
    """What a step touches, what of it it writes, and how long it takes, by estimate.

    `nbytes` are those of the operand of a collective, None of other steps, and `sent` those that
    each device sends; its time is that beside kernels. One that `gathers` has a larger result, and
    several that are `reductions` may be given together.
    """

    touched: Collection[object]
    written: Collection[object]
    seconds: float = 0.0
    nbytes: int | None = None
    sent: int = 0
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
    """Collectives as soon as their operands are there, or as late as they may begin.

    What only computes the operand of a gathering comes with it.
    """
    behind = {k: k for k, step in enumerate(steps) if not step.is_collective}
    brought: dict[int, int] = {}  # the step behind which what does not keep its place comes
    latest = _latest_beginnings(steps, before)
    for k, step in enumerate(steps):
        if not step.is_collective:
            continue
        if k in latest:
            for j in before[k]:
                if j in behind and j >= latest[k] and j not in brought \
                        and all(i < latest[k] for i in before[j]):
                    brought[j] = max([latest[k] - 1, *[brought.get(i, i) for i in before[j]]])
        first = max([brought.get(j, j) for j in before[k]], default=-1)
        brought[k] = max(first, latest.get(k, 0) - 1)
    return sorted(range(len(steps)), key=lambda k: (brought.get(k, k), k in brought, k))


def _latest_beginnings(steps: Sequence[CommunicatedStep],
                       before: Sequence[set[int]]) -> dict[int, int]:
    """Before which step each gathering begins so that it is there when it is needed."""
    needed: dict[int, int] = {}
    begins = [0.0]
    for k, step in enumerate(steps):
        begins.append(begins[-1] + (0.0 if step.is_collective else step.seconds))
        for j in before[k]:
            needed.setdefault(j, k)
    found: dict[int, int] = {}
    free = begins[-1]  # the links, from then on
    gatherings = [k for k, step in enumerate(steps) if step.gathers]
    for k in sorted(gatherings, key=lambda k: needed.get(k, len(steps)), reverse=True):
        free = min(free, begins[needed.get(k, len(steps))]) - AHEAD * steps[k].seconds
        found[k] = max(0, bisect_right(begins, free) - 1)
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
            links = max(links, now) + steps[k].seconds
            over[k] = now if steps[k].gathers else links  # it began early enough
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
    beside: frozenset[int] = frozenset()
    """Groups that take few multiprocessors, since what is computed meanwhile takes longer."""
    under_way: frozenset[int] = frozenset()
    """Steps that have such a group beside them, by estimate."""


def beside_computation(steps: Sequence[CommunicatedStep]) -> Overlap:
    """How the collectives among steps in their final order run beside the others.

    Reductions wait for each other, until they are enough or one is needed: they are where the last
    one of them is.
    """
    groups: list[list[int]] = []
    waits: dict[int, int] = {}
    group_of: dict[int, int] = {}
    before = _dependencies(steps)
    pending: list[int] = []
    total = sum([step.nbytes or 0 for step in steps if step.reduces])
    enough = min(max(LEAST, total // BUCKETS), MOST)

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
            if not step.reduces or sum([steps[j].nbytes or 0 for j in pending]) >= enough:
                flush()
            continue
        last = max((group_of[j] for j in before[k] if j in group_of), default=-1)
        if last > waited:
            waits[k] = waited = last
    flush()
    return Overlap(groups, waits, *_hidden(steps, groups, waits))


def _hidden(steps: Sequence[CommunicatedStep], groups: Sequence[Sequence[int]],
            waits: Mapping[int, int]) -> tuple[frozenset[int], frozenset[int]]:
    """Which groups are over before they are needed though they are slow, and the steps beside them.
    """
    begins = [0.0]
    for step in steps:
        begins.append(begins[-1] + (0.0 if step.is_collective else step.seconds))
    needed = dict.fromkeys(range(len(groups)), begins[-1])
    for k, last in sorted(waits.items(), reverse=True):
        needed |= dict.fromkeys(range(last + 1), begins[k])
    links = 0.0
    beside: set[int] = set()
    busy: list[tuple[float, float]] = []
    for number, group in enumerate(groups):
        sent = sum(steps[k].sent for k in group)
        start = max(links, begins[group[-1]])
        links = start + BESIDE.seconds(sent)
        if links <= needed[number]:
            beside.add(number)
            busy.append((start, links))
        else:
            links = start + ALONE.seconds(sent)
    return frozenset(beside), frozenset(
        k for k, step in enumerate(steps) if not step.is_collective
        and any(start < begins[k + 1] and begins[k] < end for start, end in busy))
