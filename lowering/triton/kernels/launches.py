"""Kernels that compute one call, and what their pointers are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.triton.kernels.kernel_source import PartialResults
from functrans.lowering.triton.templates.kernel import TemplateKernel

__all__ = ["Launches"]


@dataclass(eq=False)
class Launches:
    """Kernels in order, and what their pointers are: by name a tensor, and bytes into it."""

    kernels: list[TemplateKernel]
    places: dict[str, tuple[Tensor | PartialResults, int]]

    def __post_init__(self) -> None:
        if nbytes := max(k.workspace for k in self.kernels):
            self.places["workspace"] = (PartialResults(1, -(-nbytes // 4), "f32"), 0)

    @property
    def touched(self) -> Iterable[Tensor | PartialResults]:
        return dict.fromkeys(t for t, _ in self.places.values())
