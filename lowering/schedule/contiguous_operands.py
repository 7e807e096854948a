"""Copies of operands of products that are contiguous along the sum, as tensor cores read them.

The fast instructions for TensorFloat-32 and float8 have no transposed operands. Others have half
the rate for TensorFloat-32, and float8 is turned in registers, step by step: a copy is cheaper
where the product is large in all directions. Measured on an H100, TFLOP/s: TensorFloat-32 at 4096^3
173 with operands across the sum, 374 with none (cuBLAS 242); float8 at 8192^3 334 and 1502.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from functrans.core.dims import Size, static_shape
from functrans.core.precision import Precision
from functrans.lowering.loops.index import ZERO, unflatten
from functrans.lowering.loops.tensor import FLOAT8, Call, Gemm, Map, Tensor
from functrans.lowering.rules.graph import Graph
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.primitives.precision import resolved_precision

__all__ = ["copy_operands_contiguous"]


def copy_operands_contiguous(graph: Graph, target: Target = HOPPER) -> Graph:
    """The graph with copies of operands where these make products faster."""
    items: list[Tensor | Call] = []
    known = {t for t in graph.items if isinstance(t, Tensor)}
    after = dict(graph.after)
    for item in graph.items:
        if type(item) is Gemm and _needs_contiguous(item) and _is_known(item):
            item = _with_copies(item, target)
            for t in item.operands:
                if isinstance(t, Map) and t not in known:
                    known.add(t)
                    items.append(t)
                    if item.after:
                        after[t] = frozenset(item.after)
        items.append(item)
    return replace(graph, items=items, after=after)


def _needs_contiguous(call: Gemm) -> bool:
    """Whether tensor cores have no transposed operands of a product."""
    dtype = call.operands[0].dtype
    return dtype in FLOAT8 or (
        dtype == "f32" and resolved_precision(call.precision) is Precision.DEFAULT)


def _is_known(call: Gemm) -> bool:
    return all(isinstance(n, int) for n in (*call.fields.values(), call.a_offset, call.b_offset))


def _with_copies(call: Gemm, target: Target) -> Gemm:
    """The product with the copies that pay."""
    f: Mapping[str, Any] = call.fields
    figures = target.measured
    rates = figures.products_across[call.operands[0].dtype]
    work = 2 * f["batch0"] * f["batch1"] * f["m"] * f["n"] * f["k"]
    # rows that start anywhere would be copied again (`matmul_turned`)
    starts = f["k"] * (1 if call.operands[0].dtype in FLOAT8 else 4) % 16 == 0
    across = (starts and f["m"] > 1 and f["a_col"] != 1, starts and f["n"] > 1 and f["b_row"] != 1)
    copies = (_OperandCopy(call, 0, "a", "m", ("a_row", "a_col")),
              _OperandCopy(call, 1, "b", "n", ("b_col", "b_row")))

    def nanoseconds(chosen: tuple[bool, ...]) -> float:
        left = sum(across) - sum(chosen)
        copied = [2 * c.nbytes / (figures.copy_bandwidth if 2 * c.nbytes > figures.copy_cached
                                  else figures.copy_bandwidth_cached) + figures.copy_launch
                  for c in itertools.compress(copies, chosen)]
        return float(work / rates[left] + sum(copied))

    options = itertools.product(*[(False, True) if a else (False,) for a in across])
    best = min(options, key=nanoseconds)
    (a, b), offsets = call.operands, [call.a_offset, call.b_offset]
    operands = [a, b]
    fields = dict(f)
    for k, copy in enumerate(copies):
        if best[k]:
            operands[k], offsets[k] = copy.made(), 0
            fields |= copy.fields
    if not any(best):
        return call
    return Gemm(operands[0], operands[1], offsets[0], offsets[1], fields, call.results[0],
                call.source, call.precision, call.terms, call.after)


class _OperandCopy:
    """A copy of an operand that is contiguous along the sum."""

    def __init__(self, call: Gemm, number: int, name: str, free: str,
                 steps: tuple[str, str]) -> None:
        f = call.fields
        self.base = call.operands[number]
        self.after = frozenset(call.after)  # a copy for later ones is not that of earlier ones
        self.offset = call.a_offset if name == "a" else call.b_offset
        batches = [(f"batch{k}", f"{name}_batch{k}") for k in (0, 1)]
        kept = [(f[size], f[step], step) for size, step in batches if f[step] != 0]
        dims = [*kept, (f[free], f[steps[0]], steps[0]), (f["k"], f[steps[1]], steps[1])]
        self.shape = tuple([size for size, *_ in dims])
        self.steps = tuple([step for _, step, _ in dims])
        self.fields: dict[str, Size] = {step: 0 for _, step in batches}
        count: Size = 1
        for size, _, field in reversed(dims):
            self.fields[field] = count
            count = count * size
        self.nbytes = static_shape([count])[0] * (1 if self.base.dtype in FLOAT8 else 4)

    def made(self) -> Tensor:
        base, key = self.base, (self.shape, self.steps, self.offset, self.after)
        if key not in base.copies:
            base.copies[key] = Map(self.shape, base.dtype, [base], lambda s, index: s.read(
                base, unflatten(sum((i * n for i, n in zip(index, self.steps)),
                                    ZERO + self.offset), base.shape)),
                                   weight=0, source=base.source)
        return base.copies[key]
