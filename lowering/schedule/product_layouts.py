"""Products write their results in the layout of the transposes that follow."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from functrans.core.dims import Size
from functrans.lowering.loops.call import Gemm
from functrans.lowering.loops.expr import ExprBuilder
from functrans.lowering.loops.index import ZERO, Index, LoopVar, unflatten
from functrans.lowering.loops.tensor import Map, Tensor
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Kernel
from functrans.lowering.schedule.reads import Reads
from functrans.lowering.schedule.unfused import ALL_FUSED, UnfusedValues

__all__ = ["absorb_product_transposes"]

NAMES = ("batch0", "batch1", "row", "col")


def absorb_product_transposes(schedule: Schedule, outputs: Collection[Tensor], reads: Reads,
                              unfused: UnfusedValues = ALL_FUSED) -> Schedule:
    """The schedule without kernels that only give a product another order of dimensions."""
    steps = list(schedule.steps)
    for gemm in [s for s in schedule.steps if type(s) is Gemm]:
        product = gemm.results[0]
        readers = [k for k, s in enumerate(steps) if product in reads.of(s, schedule.is_stored)]
        if len(readers) != 1 or product in outputs:
            continue
        kernel = steps[readers[0]]
        if not isinstance(kernel, Kernel) or len(kernel.members) != 1 or \
                kernel.members[0].role != "full":
            continue
        moved = kernel.members[0].tensor
        if unfused.why([product, moved]):
            continue
        fields = next((found for f in _batches(gemm)
                       if (found := _written(gemm, f, moved, schedule)) is not None), None)
        if fields is not None:
            call = Gemm(*gemm.operands, gemm.a_offset, gemm.b_offset, fields,
                        moved, gemm.source, gemm.precision)  # type: ignore[arg-type]
            steps[readers[0]] = call
            steps.remove(gemm)
    return replace(schedule, steps=steps)


def _batches(gemm: Gemm) -> Iterator[Mapping[str, Size]]:
    """The fields of a product as they are, and with its batch as two dimensions of the result."""
    f = gemm.fields
    yield f
    inner: Size = 1
    for n in reversed(gemm.results[0].shape[:-2]):
        inner = inner * n
        if f["batch0"] == 1 and isinstance(inner, int) and isinstance(f["batch1"], int) \
                and 1 < inner < f["batch1"] and f["batch1"] % inner == 0:
            yield {**f, "batch0": f["batch1"] // inner, "batch1": inner,
                   **{f"{x}_batch0": f[f"{x}_batch1"] * inner for x in "abc"}}


def _written(gemm: Gemm, f: Mapping[str, Size], moved: Tensor,
             schedule: Schedule) -> dict[str, Size] | None:
    """The fields of a product that writes `moved`, if that has its elements in another order."""
    product = gemm.results[0]
    sizes = (f["batch0"], f["batch1"], f["m"], f["n"])
    if moved.dtype != product.dtype or not isinstance(moved, Map) or not all(
            isinstance(n, int) for n in sizes) or moved.size != product.size:
        return None  # a repeated or a cut product is more, or less, than a movement
    variables = [LoopVar(name, n) for name, n in zip(NAMES, sizes)]
    parts = [Index.of(v) if n != 1 else ZERO for v, n in zip(variables, sizes)]
    at = ZERO
    for name, part in zip(NAMES, parts):
        at = at + part * f[f"c_{name}"]
    axes = [k for k, n in enumerate(sizes) if n != 1]
    for order in itertools.permutations(axes):
        if order and order[-1] < 2:
            continue  # elements one by one
        strides, step = [0, 0, 0, 0], 1
        for k in reversed(order):
            strides[k] = step
            step *= sizes[k]  # type: ignore[operator,assignment]
        place = ZERO
        for part, stride in zip(parts, strides):
            place = place + part * stride
        s = ExprBuilder(schedule.is_stored)
        e = moved.define(s, unflatten(place, moved.shape))
        if e.op != "load" or e.aux[0] is not product:
            return None  # more than a movement, in whatever order
        if e.aux[1] == at:
            return {**f, **{f"c_{name}": n for name, n in zip(NAMES, strides)}}
    return None
