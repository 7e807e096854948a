"""Results of chains in the memory of operands: block by block, each after its last reader.

The gradient of attention is the example: of each head the cotangents of queries, keys and values
are computed when these have been read, and no other head reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from functrans.core.dims import Size
from functrans.lowering.loops.tensor import Gemm, Tensor
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.group import Schedule, Step
from functrans.lowering.schedule.kernel import Kernel

__all__ = ["in_chains"]

_Region = tuple[Size, ...]
"""Where a block of a chain accesses a value: offset, and stride and extent of each axis."""


def in_chains(schedule: Schedule, uses: Mapping[Any, Sequence[int]], fixed: Collection[Tensor],
              taken: Collection[Tensor]) -> dict[Tensor, Tensor]:
    """Temporaries that a chain reads last, by the result of the chain that takes their memory.

    Those that are `fixed` have a place of their own, those that are `taken` are in one already.
    """
    found: dict[Tensor, Tensor] = {}
    for k, step in enumerate(schedule.steps):
        if type(step) is not Chain:  # programs of tiles may run steps of several blocks at a time
            continue
        ending = [x for x in step.operands
                  if x not in fixed and len(uses[x]) > 1 and uses[x][-1] == k]
        reads = {x: _reads(schedule, step, x) for x in ending}
        for j, part in enumerate(step.steps):
            t = _written(step, part)
            if not isinstance(part, Gemm) or t is None or t in fixed or t in taken \
                    or uses[t][0] != k:
                continue
            place = _region(step, part, "c")
            for x, regions in reads.items():
                if x not in found and x.size == t.size and x.dtype == t.dtype \
                        and regions and place is not None \
                        and all(n < j and region == place for n, region in regions):
                    found[x] = t
                    break
    return found


def _written(chain: Chain, part: Step) -> Tensor | None:
    """What a product writes for steps after the chain."""
    if not isinstance(part, Gemm) or isinstance(part, FusedGemm) or part.terms:
        return None
    (t,) = part.results
    return t if t in chain.results else None


def _reads(schedule: Schedule, chain: Chain, x: Tensor) -> list[tuple[int, _Region | None]]:
    """The steps of a chain that read a value, and where; None where that is not known."""
    found: list[tuple[int, _Region | None]] = []
    for j, part in enumerate(chain.steps):
        kernel = part.kernel if isinstance(part, FusedGemm) else part
        if isinstance(kernel, Kernel) and x in kernel.loads(kernel.builder(schedule.is_stored)):
            found.append((j, None))
        if isinstance(part, Gemm):
            found += [(j, _region(chain, part, name))
                      for name, factor in (("a", part.a), ("b", part.b)) if factor is x]
            found += [(j, None) for term in part.terms if x in term.factors]
    return found


def _region(chain: Chain, gemm: Gemm, name: str) -> _Region | None:
    """Where one block accesses an operand or the result of a product."""
    f = gemm.fields
    pieces = chain.count // (f["batch0"] * f["batch1"])
    rows, columns = {"a": ("m", "k"), "b": ("k", "n"), "c": ("m", "n")}[name]
    if pieces > 1 and name == "b":  # all blocks of a batch read the whole of it
        return None
    extents = (f[rows] // pieces if rows == "m" else f[rows], f[columns])
    strides = (f[f"{name}_row"], f[f"{name}_col"])
    axes = sorted((s, n) for s, n in zip(strides, extents, strict=True) if n != 1)
    of_blocks = [f[f"{name}_{axis}"] if f[axis] != 1 else 0 for axis in ("batch0", "batch1")]
    offset = {"a": gemm.a_offset, "b": gemm.b_offset, "c": 0}[name]
    between = extents[0] * strides[0] if pieces > 1 else 0
    return (offset, *of_blocks, between, *[n for axis in axes for n in axis])
