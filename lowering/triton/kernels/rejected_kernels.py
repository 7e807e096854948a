"""Kernels that do not compile for a target, or take more shared memory than it has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from functrans.lowering.triton.kernels.kernel_source import KernelSource
from functrans.lowering.triton.kernels.source import TritonModule
from functrans.lowering.triton.steps.spec import GPUProgram, Launch
from functrans.lowering.triton.templates.kernel import TemplateKernel

__all__ = ["NONE_REJECTED", "RejectedKernels"]

Key = tuple[str, int, int]


@dataclass(eq=False)
class RejectedKernels:
    """What is known not to compile, by text, warps and stages, and why."""

    reasons: dict[Key, str] = field(default_factory=dict)

    def add(self, program: GPUProgram, launch: Launch, reason: str) -> bool:
        """Reject the kernel of a launch; False where it was rejected before."""
        text = program.sources[launch.module] if launch.module else launch.kernel
        key = (text, launch.warps, launch.stages)
        if key in self.reasons:
            return False
        self.reasons[key] = reason
        return True

    def of(self, kernels: Iterable[TemplateKernel | KernelSource]) -> str | None:
        """Why one of some kernels was rejected; None where none was."""
        if not self.reasons:
            return None
        return next((self.reasons[key] for k in kernels if (key := _key(k)) in self.reasons), None)


def _key(kernel: TemplateKernel | KernelSource) -> Key:
    if isinstance(kernel, TemplateKernel):
        return kernel.text, kernel.warps, kernel.stages
    return TritonModule.name_of(kernel.text), kernel.warps, Launch.stages


NONE_REJECTED: Final = RejectedKernels()
"""The one of programs that are not compiled; it stays empty."""
