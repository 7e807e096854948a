"""Programs with arrays of float0, the tangents of integers, which have no elements to compute.

`jit` of a function that differentiates takes and gives such arrays beside others. The program
without them is compiled, and they are put in their places afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.executable import Executable, WrapperExecutable
from functrans.lowering.passes.pipeline import simplify

__all__ = ["compile_without_float0"]


class Float0Executable(WrapperExecutable):
    """An executable that skips arrays of float0: it drops such arguments, and adds such results."""

    def __init__(self, inner: Executable, kept_ins: list[int],
                 outs: list[tuple[Size, ...] | None]) -> None:
        self._inner = inner
        self._kept_ins = kept_ins
        self._outs = outs  # the shapes of those that hold nothing

    @property
    def inner(self) -> Executable:
        return self._inner

    def run(self, values: Sequence[Any]) -> list[Any]:
        found = iter(self._inner.run([values[i] for i in self._kept_ins]))
        return [np.asarray(next(found)) if shape is None
                else np.zeros(tuple(map(int, shape)), dtypes.float0) for shape in self._outs]

    @property
    def specialized(self) -> str:
        return "tangents of integers are arrays of known shapes"

    def on(self, gpu: int) -> Float0Executable:
        return Float0Executable(self._inner.on(gpu), self._kept_ins, self._outs)


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
