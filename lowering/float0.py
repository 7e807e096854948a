"""Programs with arrays of float0, the tangents of integers, which have no elements to compute.

`jit` of a function that differentiates takes and gives such arrays beside others. The program
without them is compiled, and they are put in their places afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.executable import Executable
from functrans.lowering.passes.pipeline import simplify

__all__ = ["compile_without_float0"]


@dataclass
class Float0Executable(Executable):
    """An executable that skips arrays of float0: it drops such arguments, and adds such results."""

    inner: Executable
    kept_ins: list[int]
    outs: list[tuple[int, ...] | None]  # the shape of those that hold nothing

    def run(self, values: Sequence[Any]) -> list[Any]:
        found = iter(self.inner.run([values[i] for i in self.kept_ins]))
        return [np.asarray(next(found)) if shape is None else np.zeros(shape, dtypes.float0)
                for shape in self.outs]

    @property
    def specialized(self) -> str:
        return "tangents of integers are arrays of known shapes"

    def on(self, gpu: int) -> Float0Executable:
        return replace(self, inner=self.inner.on(gpu))

    @property
    def kernels(self) -> tuple[Any, ...]:
        return self.inner.kernels

    def as_text(self) -> str:
        return self.inner.as_text()

    def cost_analysis(self) -> dict[str, Size]:
        return self.inner.cost_analysis()

    def memory_analysis(self) -> dict[str, Size]:
        return self.inner.memory_analysis()


def compile_without_float0(compile_: Callable[[Jaxpr, frozenset[int], bool], Executable],
                           jaxpr: Jaxpr, donated: frozenset[int],
                           require_inplace: bool) -> Executable:
    """The compiled form of a jaxpr by a backend that has no float0."""
    outs = [v.aval.shape if v.aval.dtype == dtypes.float0 else None for v in jaxpr.outvars]
    rest = replace(jaxpr, outvars=tuple(v for v in jaxpr.outvars
                                        if v.aval.dtype != dtypes.float0))
    rest = simplify(rest)  # what only they needed goes
    kept = [i for i, v in enumerate(rest.invars) if v.aval.dtype != dtypes.float0]
    rest = replace(rest, invars=tuple(rest.invars[i] for i in kept))
    return Float0Executable(
        compile_(rest, frozenset(k for k, i in enumerate(kept) if i in donated), require_inplace),
        kept, outs)
