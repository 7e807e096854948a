"""Which configuration of a template computes a call: what a model of the GPU likes best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.triton.kernels.kernel_source import Launches
from functrans.lowering.triton.kernels.source import NONE_REJECTED, RejectedKernels
from functrans.lowering.triton.steps.spec import GPUProgram

__all__ = ["BY_MODEL", "MOST_TRIED", "Chooser"]

C = TypeVar("C")

MOST_TRIED: Final = 2
"""Configurations of a product that are compiled before its epilogue is a kernel of its own."""


class Chooser:
    """Chooses among configurations, the likely best of which come first."""

    def __init__(self, target: Target = HOPPER, rejected: RejectedKernels = NONE_REJECTED) -> None:
        self.target, self.rejected = target, rejected

    def among(self, title: str, problem: Any, configs: Iterable[C], launches: Callable[[C], Any],
              nanoseconds: Callable[[C], float], smaller: Iterable[C] = (),
              may_spill: bool = True, expected: Callable[[C], int] | None = None,
              lighter: Callable[[], Iterable[C]] = tuple) -> C:
        """One of those whose kernels can be had, else the first of the `smaller` ones.

        Those that spill registers, as is known or `expected`, are taken last, or not at all: of the
        `lighter` ones the first that does not. Raises UnsupportedKernel where there is none.
        """
        def can_be_had(c: C) -> bool:
            return self.rejected.of(launches(c).kernels) is None

        left = list(configs) if not self.rejected.reasons else list(filter(can_be_had, configs))
        spills = {k: n for k, c in enumerate(left) if (n := self.spills(launches(c)))} \
            if self.rejected.spilling else {}
        if expected is not None:
            spills |= {k: n for k, c in enumerate(left[:MOST_TRIED])
                       if k not in spills and (n := expected(c))}
        if spills and not may_spill and len(spills) >= min(MOST_TRIED, len(left)):
            for c in filter(can_be_had, lighter()):
                if not self.spills(launches(c)) and not (expected is not None and expected(c)):
                    return c
            raise UnsupportedKernel(f"a {title} spills {min(spills.values())} numbers of a thread")
        if len(spills) < len(left):
            left = [c for k, c in enumerate(left) if k not in spills]
        elif spills:
            left = [left[min(spills, key=spills.__getitem__)]]
        if left:
            return self(title, problem, left, launches, nanoseconds)
        for c in filter(can_be_had, smaller):
            return c
        raise UnsupportedKernel(f"no kernel of a {title} can be had")

    def spills(self, found: Launches) -> int:
        """The numbers that threads are known to keep out of registers."""
        return self.rejected.spills(found.kernels)

    def __call__(self, title: str, problem: Any, configs: Sequence[C],
                 launches: Callable[[C], Any], nanoseconds: Callable[[C], float]) -> C:
        """One of `configs`; `title` says of what.

        `launches` makes the `Launches` of one, and `nanoseconds` is what a model says of it.
        """
        return configs[0]

    @property
    def notes(self) -> list[str]:
        """Why what was chosen was."""
        return []

    def tune(self, program: GPUProgram) -> bool:
        """Find out what is not known; whether the choices may be others than in a program."""
        return False


BY_MODEL: Final = Chooser()
