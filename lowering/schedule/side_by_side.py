"""Small kernels that do not depend on each other, as groups that one launch computes.

On an H200 a launch in a graph takes 1.5 to 2.5 us, however little it does, and a kernel of few
programs leaves most multiprocessors idle: the updates of parameters, casts of weights and norms of
gradients are such kernels. What is small waits until something else needs it, or until the end;
what waits then, and does not depend on each other, is one group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence

from functrans.core.record import Record

__all__ = ["MOST_TOGETHER", "StepAccess", "levels_of_small_steps", "worth_compiling"]

MOST_TOGETHER = 32
"""Steps of a group: each has arguments of its own, and is compiled."""


class StepAccess(Record):
    """What a step touches, and what of it it writes; `waits` if it is small enough to be grouped.

    `nbytes` are those that it moves.
    """

    touched: Collection[object]
    written: Collection[object]
    waits: bool = False
    nbytes: int = 0

    def depends_on(self, earlier: StepAccess) -> bool:
        """Whether the step has to come after an earlier one."""
        return any(t in earlier.written for t in self.touched) \
            or any(t in earlier.touched for t in self.written)


def levels_of_small_steps(steps: Sequence[StepAccess], most_bytes: int) -> list[list[int]]:
    """The steps by number in an order that keeps dependencies, those of one group together.

    Other steps keep their order. Steps that move more than so many bytes do not wait longer: what
    they read stays in memory until then.
    """
    found: list[list[int]] = []
    waiting: list[tuple[int, int]] = []  # a step, and its level among those that wait

    def level_before(step: StepAccess) -> int:
        return max((level for k, level in waiting if step.depends_on(steps[k])), default=0)

    def flush(last: int) -> None:
        for level in range(1, last + 1):
            group = [k for k, of in waiting if of == level]
            found.extend(group[a:a + MOST_TOGETHER] for a in range(0, len(group), MOST_TOGETHER))
        waiting[:] = [(k, level - last) for k, level in waiting if level > last]

    for k, step in enumerate(steps):
        if step.waits:
            waiting.append((k, 1 + level_before(step)))
            if sum(steps[j].nbytes for j, _ in waiting) > most_bytes:
                flush(max(level for _, level in waiting))
        else:
            flush(level_before(step))
            found.append([k])
    flush(max((level for _, level in waiting), default=0))
    return found


def worth_compiling(groups: Sequence[Sequence[Hashable]]) -> list[bool]:
    """Which groups of kernels become one kernel each: there are no more kernels than before.

    A kernel that is launched in several places is compiled once; where it is grouped with others in
    each place, it would be compiled for each of these groups. Groups of the same kernels are one.
    """
    before = len({kernel for group in groups for kernel in group})
    classes = Counter(frozenset(Counter(group).items()) for group in groups if len(group) > 1)
    saved = {key: times * (sum(n for _, n in key) - 1) for key, times in classes.items()}
    taken = sorted(classes, key=lambda key: saved[key])  # those that save least are left first
    keys = [frozenset(Counter(group).items()) for group in groups]
    while taken:
        left = {kernel for group, key in zip(groups, keys, strict=True) if key not in taken
                for kernel in group}
        if len(left) + len(taken) <= before:
            break
        taken.pop(0)
    return [key in taken for key in keys]
