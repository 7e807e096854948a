"""What is computed from the sums of a product before they are stored, as lines of Triton."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import Index
from functrans.lowering.loops.tensor import FLOAT8, AnyFlag, Tensor
from functrans.lowering.schedule.epilogues import FusedConv, FusedGemm
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.triton.kernels.expressions import TileWriter
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    KernelOperand,
    SizeArguments,
)
from functrans.lowering.triton.templates.kernel import EpilogueSource, pointer
from functrans.lowering.triton.templates.notes import NamedValue, named_values

__all__ = ["STORED_TYPES", "EpilogueWriter", "check_length", "main_result"]

STORED_TYPES = {"f32": "fp32", "bf16": "bf16", "f16": "fp16",
                "f64": "fp64", "i8": "i8", "u8": "u8", "i32": "i32", "bool": "u8", "f8e4": "u8",
                "f8e5": "u8"}
"""What a template stores itself."""
MOST_BEHIND = 160
"""Expressions behind a product: all lanes of a tile compute those of its rows. Behind a product a
value of rows of 380 operations took 8 s to compile, in a kernel of its own half a second."""
EARLY_STORES = 3
"""Of 6 stores at the end 256 threads spilled 212 numbers, at once none; of one 112, and 268 at
once, as it needs a tile more while others are kept."""


def main_result(call: FusedGemm | FusedConv) -> Tensor:
    """What a template stores itself."""
    for t in call.results:
        if t.dtype in STORED_TYPES and not isinstance(t, AnyFlag):
            return t
    raise UnsupportedKernel("a product that is stored in none of the types of products")


def check_length(call: FusedGemm | FusedConv, schedule: Schedule) -> None:
    """Raise UnsupportedKernel where an epilogue would take long to compile."""
    if call.kernel.shared(schedule.is_stored).count > MOST_BEHIND:
        raise UnsupportedKernel("more is computed behind a product than in a kernel of its own")


class EpilogueWriter:
    """The lines that compute the results of a product from its sums."""

    def __init__(self, call: FusedGemm | FusedConv, schedule: Schedule, main: Tensor,
                 numbers: SizeArguments, coordinates: Sequence[str],
                 masks: Mapping[str, str | None], is_line: bool = False) -> None:
        """`coordinates` are lines that find `o` and `i`, and `masks` names of what says that these
        are inside. `is_line`: the matrix has one row, or one column."""
        self.numbers, self.masks, self.is_line = numbers, dict(masks), is_line
        self.call, self.schedule, self.main = call, schedule, main
        self.lines = list(coordinates)
        self.pointers: dict[Tensor, str] = {}
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"e{self.count}"

    def pointer(self, t: Tensor) -> str:
        return self.pointers.setdefault(t, f"p{len(self.pointers)}")

    def written(self) -> tuple[EpilogueSource, dict[str, tuple[KernelOperand, int]]]:
        masks = self.masks
        kernel = self.call.kernel
        builder = kernel.shared(self.schedule.is_stored)
        halves = all(t.dtype in ("bf16", "f16") for t in self.call.results)
        kept = set(self.call.results)
        w = _AfterProduct(self.call.product, self.call.product in kept, halves, kernel,
                          self.lines.append, self.pointer, self.fresh, masks, self.numbers)
        any_flags = [m.tensor for m in kernel.members if m.role == "any_flag"]
        texts = [t for t in (masks["o"], masks["i"]) if t]
        mask = f", mask={' & '.join(texts)}" if texts else ""

        stores: list[tuple[int, str]] = []

        def store(t: Tensor, value: str) -> None:
            if t in any_flags:
                holds = " & ".join([value, *texts])
                text = f"tl.store({self.pointer(t)} + {w.tile_of_zeros}, 1, mask={holds})"
            elif t in kept and t is not self.main:
                place = w.place(t, kernel.places["full"])
                # of one row the index has no rows, and the value has those of a tile
                spread = f" + {w.tile_of_zeros}" if self.is_line else ""
                text = f"tl.store({self.pointer(t)} + {place}{spread}, {w.stored(value, t)}{mask})"
            else:
                return
            stores.append((len(self.lines), text))

        store(self.call.product, "acc")
        for m in kernel.members:
            value = w.expression(kernel.element(builder, m))
            w.locals[m.tensor] = w.as_stored(value, m.tensor) if m.tensor in kept else value
            store(m.tensor, w.locals[m.tensor])
        self._insert(stores)
        result = {**w.locals, self.call.product: "acc"}[self.main]
        if self.main.dtype in FLOAT8:  # the template stores its bits
            result = w.name(w.stored(result, self.main))
        arguments = (*[pointer(name, MEMORY[t.dtype]) for t, name in self.pointers.items()],
                     *self.numbers.arguments)
        reads = [(t, e) for (t, _), e in builder.reads().items()]
        values = (*named_values(w.named, reads, w.locals.items()),
                  NamedValue("", "acc", (self.call.product,)))
        return (EpilogueSource(tuple(self.lines), arguments, result, values),
                {name: (t, 0) for t, name in self.pointers.items()})

    def _insert(self, stores: list[tuple[int, str]]) -> None:
        """Put stores at the end; many of them where their values are known, which take registers
        until they are stored. What is loaded may be where a result goes: its loads come first.
        """
        first = len(self.lines) if len(stores) < EARLY_STORES else max(
            [k + 1 for k, line in enumerate(self.lines) if "tl.load(" in line], default=0)
        for k, text in reversed(stores):
            self.lines.insert(max(k, first), text)


class _AfterProduct(TileWriter):
    """Reads a product where it is: in the tile of sums."""

    tile_of_zeros = "(rows + cols) * 0"

    def __init__(self, product: Tensor, is_kept: bool, stores_halves: bool, *rest: Any) -> None:
        super().__init__(*rest)
        self._product = product
        self._is_kept = is_kept
        self._stores_halves = stores_halves

    def _load(self, tensor: Tensor, index: Index, e: Expr) -> str:
        if tensor is not self._product:
            return super()._load(tensor, index, e)
        return self.as_stored("acc", tensor) if self._is_kept else "acc"

    def _operation(self, e: Expr, args: list[str]) -> str:
        if e.op == "tanh" and self._stores_halves:  # a gelu: 615 TFLOP/s with that of float32
            return f"fm.tanh_half({args[0]})"
        return super()._operation(e, args)
