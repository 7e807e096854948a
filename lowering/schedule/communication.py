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
from dataclasses import replace
from itertools import pairwise
from typing import Final

from functrans.core.record import Record

__all__ = ["ALONE", "BESIDE", "CollectiveTimes", "CommunicatedStep", "Overlap",
           "beside_computation", "overlapped_order", "with_gathered_sums"]

LEAST: Final = 8 << 20
MOST: Final = 48 << 20
"""Bytes of reductions that are given together, at least and at most."""
BUCKETS: Final = 12
"""How many there are of them, between these bounds. A device that begins waits for the others:
of 49 sums of a step of a transformer on two H100 each took 126 us longer than its bytes."""
SMALL: Final = 1 << 19
"""Bytes of gatherings that are given with the next one: their latency is most of what they take."""
AHEAD: Final = 1.5
"""Times what a gathering takes that it begins before it is needed: estimates are not exact."""


class CollectiveTimes(Record):
    """What collectives take, in seconds, by the bytes that each device sends; `each` is of every
    further one that is given together with the first."""

    latency: float
    byte: float
    each: float

    def seconds(self, nbytes: int, count: int = 1) -> float:
        return self.latency + nbytes * self.byte + (count - 1) * self.each


ALONE: Final = CollectiveTimes(20e-6, 1 / 280e9, 3e-6)
"""Between two H100 by NVLink: sums of 1 MB take 33 us, of 16 MB 82, of 256 MB 903."""
BESIDE: Final = CollectiveTimes(10e-6, 1 / 40e9, 15e-6)
"""The same with the few programs that leave the other multiprocessors to kernels. In steps of a
transformer gatherings of 25 MB from each device take 0.61 ms, of 17 MB 0.48, of 4.2 MB 0.10 to
0.12, of 1 MB 0.04 and of 2 kB 0.006; scattered sums of 17 MB 0.37, sums of 50 MB 0.86, and 24 small
ones together 0.44 (alone 0.08)."""
OF_GIVEN: Final = 4
"""Steps that at most come before a gathering of what a program was given, such as its parameters.
"""


class CommunicatedStep(Record):
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


def with_gathered_sums(steps: Sequence[CommunicatedStep]) -> list[CommunicatedStep]:
    """The steps, where gatherings of what the program computed begin as sums do.

    To wait with those would only keep the links idle: gradients are gathered to be added up.
    """
    if not any(step.gathers for step in steps):
        return list(steps)
    before = _dependencies(steps)

    def is_of_given(k: int) -> bool:
        seen: set[int] = set()
        waiting = [k]
        while waiting:
            new = before[waiting.pop()] - seen
            seen |= new
            waiting += new
            if len(seen) > OF_GIVEN:
                return False
        return True

    return [replace(step, gathers=False, reduces=True)
            if step.gathers and not is_of_given(k) else step for k, step in enumerate(steps)]


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
    """Before which step each gathering begins so that it is there when it is needed.

    Where the links are too slow for that it begins with the one before it, not earlier: what makes
    its operand would be in the way of what can be computed.
    """
    needed: dict[int, int] = {}
    begins = [0.0]
    for k, step in enumerate(steps):
        begins.append(begins[-1] + (0.0 if step.is_collective else step.seconds))
        for j in before[k]:
            needed.setdefault(j, k)
    found: dict[int, int] = {}
    free = begins[-1]  # the links, from then on
    gatherings = sorted([k for k, step in enumerate(steps) if step.gathers],
                        key=lambda k: needed.get(k, len(steps)))
    for k in reversed(gatherings):
        free = min(free, begins[needed.get(k, len(steps))]) - AHEAD * steps[k].seconds
        found[k] = max(0, bisect_right(begins, free) - 1)
    starts, ends, busy = dict[int, float](), dict[int, float](), 0.0
    for k in gatherings:
        starts[k], busy = busy, busy + steps[k].seconds
        ends[k] = busy
    reached, now = [], 0.0  # when each step is, if what it needs were gathered from the beginning
    for k, step in enumerate(steps):
        if not step.is_collective:
            now = max([now, *[ends[j] for j in before[k] if j in ends]])
        reached.append(now)
        now += 0.0 if step.is_collective else step.seconds
    for one, k in pairwise(gatherings):
        with_one = bisect_right(reached, starts[one]) - 1
        found[k] = max(found[k], min(with_one, needed.get(k, len(steps))))
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
    last = max((n for n, k in enumerate(found) if steps[k].is_collective), default=-1) + 1
    return found[:last] + _by_arrival(found[last:], before, over)


def _by_arrival(tail: Sequence[int], before: Sequence[set[int]],
                over: Mapping[int, float]) -> list[int]:
    """Steps that begin no collective, those first that wait for the earlier ones.

    Who waits for one waits for those before it: updates of parameters whose gradients are there
    come before those of the last ones.
    """
    arrives: dict[int, float] = {}
    for k in tail:
        arrives[k] = max([0.0, *[over.get(j, 0.0) for j in before[k]],
                          *[arrives[j] for j in before[k] if j in arrives]])
    return sorted(tail, key=lambda k: arrives[k])  # and in their order: dependencies arrive first


class Overlap(Record):
    """What is given together, and which steps wait.

    `groups` are the numbers of collectives; the first one of a group is where it begins. Before
    step k all runs wait for group `waits[k]`, and so for those before it.
    """

    groups: list[list[int]]
    waits: dict[int, int]
    beside: frozenset[int] = frozenset()
    """Groups that take few multiprocessors, since what is computed meanwhile takes longer."""
    under_way: frozenset[int] = frozenset()
    """Steps that may have a group beside them."""


def beside_computation(steps: Sequence[CommunicatedStep]) -> Overlap:
    """How the collectives among steps in their final order run beside the others.

    Reductions wait for each other, until they are enough, as many as there are to come, or one is
    needed: they are where the last one of them is. So the last ones, which have no computation
    beside them, are few. Small ones that are not reductions wait for what comes next to them.
    """
    before = _dependencies(steps)
    groups = _groups(steps, before)
    group_of = {k: number for number, group in enumerate(groups) for k in group}
    waits: dict[int, int] = {}
    waited = -1
    for k, step in enumerate(steps):
        last = max((group_of[j] for j in before[k] if j in group_of), default=-1)
        if last > waited and not step.is_collective:
            waits[k] = waited = last
    return Overlap(groups, waits, *_hidden(steps, groups, waits))


def _groups(steps: Sequence[CommunicatedStep], before: Sequence[set[int]]) -> list[list[int]]:
    """The collectives that are given together, in the order in which the groups begin."""
    groups: list[list[int]] = []
    pending: list[int] = []
    left = sum([step.nbytes or 0 for step in steps if step.reduces])
    enough = min(max(LEAST, left // BUCKETS), MOST)

    def flush() -> None:
        if pending:
            groups.append([*pending])
            pending.clear()

    for k, step in enumerate(steps):
        are_gathered = bool(pending) and not steps[pending[-1]].reduces
        if not before[k].isdisjoint(pending) or (are_gathered and not step.is_collective):
            flush()  # what is gathered next to each other begins together, and now
        if not step.is_collective:
            continue
        if pending and are_gathered == step.reduces:
            flush()
        pending.append(k)
        if step.reduces:
            left -= step.nbytes or 0
        held = sum([steps[j].nbytes or 0 for j in pending])
        if held >= (min(enough, max(LEAST, left)) if step.reduces else SMALL):
            flush()
    flush()
    return groups


def _hidden(steps: Sequence[CommunicatedStep], groups: Sequence[Sequence[int]],
            waits: Mapping[int, int]) -> tuple[frozenset[int], frozenset[int]]:
    """Which groups leave most multiprocessors to kernels, and the steps that leave them some.

    Groups do that are over before they are needed all the same. Where all are reductions, the steps
    behind the first leave room: estimates do not tell which of them a collective meets, and where a
    product has all multiprocessors it waits until that is over. With gatherings, only steps that
    have a group beside them do: a transformer with its parameters in halves on two H100 took
    20.3 ms so, and 21.2 where gatherings took few multiprocessors and all steps left room.
    """
    begins = [0.0]
    for step in steps:
        begins.append(begins[-1] + (0.0 if step.is_collective else step.seconds))
    needed: dict[int, float] = dict.fromkeys(range(len(groups)), begins[-1])
    for k, last in sorted(waits.items(), reverse=True):
        needed |= dict.fromkeys(range(last + 1), begins[k])
    links = 0.0
    beside: set[int] = set()
    busy: list[tuple[float, float]] = []
    for number, group in enumerate(groups):
        sent = sum(steps[k].sent for k in group)
        start = max(links, begins[group[-1]])
        few = BESIDE.seconds(sent, len(group))
        if start + (1.0 if steps[group[-1]].gathers else AHEAD) * few <= needed[number]:
            beside.add(number)
            busy.append((start, start + few))
            links = start + few
        else:
            links = start + ALONE.seconds(sent, len(group))
    if not any(step.gathers for step in steps):
        busy = [(begins[groups[0][-1]], float("inf"))] if groups else []
    return frozenset(beside), frozenset(
        k for k, step in enumerate(steps) if not step.is_collective
        and any(start < begins[k + 1] and begins[k] < end for start, end in busy))
