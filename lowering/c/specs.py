"""Types of values and programs as the runtime takes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from functrans._runtime import Program
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Jaxpr

__all__ = ["runtime_program", "spec"]


def spec(aval: ShapedArray) -> tuple[np.dtype[Any], tuple[int | None, ...]]:
    """The dtype and shape of a value as the runtime takes them: None for a symbolic size."""
    return aval.dtype, tuple([n if isinstance(n, int) else None for n in aval.shape])


def runtime_program(jaxpr: Jaxpr, path: Path, constants: list[np.ndarray[Any, Any]],
                    aliases: list[int], arena: int, sizes: Sequence[Sequence[int]],
                    libs: list[str], hosts: list[tuple[Any, ...]], heavy: bool) -> Program:
    """A shared object that the runtime can run."""
    return Program(
        str(path), [spec(v.aval) for v in jaxpr.invars], constants,
        [(*spec(a.aval), alias) for a, alias in zip(jaxpr.outvars, aliases, strict=True)], arena,
        [(k, axis) for k, axis in sizes], libs, hosts, heavy,
        tuple(sorted(a for a in aliases if a >= 0)))
