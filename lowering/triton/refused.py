"""Kernels that cannot be had for a target: Triton does not compile them, or they are too large."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from functrans.lowering.triton.kernels.source import Module
from functrans.lowering.triton.kernels.written import Written
from functrans.lowering.triton.spec import Launch, Program
from functrans.lowering.triton.templates.kernel import Kernel

__all__ = ["NOTHING_REFUSED", "Refused"]

Key = tuple[str, int, int]


@dataclass(eq=False)
class Refused:
    """What is known not to compile, by text, warps and stages, and why."""

    reasons: dict[Key, str] = field(default_factory=dict)

    def add(self, program: Program, launch: Launch, reason: str) -> bool:
        """Refuse the kernel of a launch; False where it was refused before."""
        text = program.sources[launch.module] if launch.module else launch.kernel
        key = (text, launch.warps, launch.stages)
        if key in self.reasons:
            return False
        self.reasons[key] = reason
        return True

    def of(self, kernels: Iterable[Kernel | Written]) -> str | None:
        """Why one of some kernels cannot be had; None where all can."""
        if not self.reasons:
            return None
        return next((self.reasons[key] for k in kernels if (key := _key(k)) in self.reasons), None)


def _key(kernel: Kernel | Written) -> Key:
    if isinstance(kernel, Kernel):
        return kernel.text, kernel.warps, kernel.stages
    return Module.name_of(kernel.text), kernel.warps, Launch.stages


NOTHING_REFUSED: Final = Refused()
"""Of programs that are not compiled; nobody adds to it."""
