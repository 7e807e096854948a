"""The C text of matrix products, and of their epilogues.

An epilogue is a kernel over one tile of a product: it has the arguments that the library gives
(csrc/gemm.h) instead of a range of rows, and reads the sums from the tile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from functrans.core.dims import Size
from functrans.lowering.c.expressions import CodeScope, ExprWriter
from functrans.lowering.c.interface import GEMM
from functrans.lowering.c.kernel import CKernelWriter
from functrans.lowering.c.kernel_text import KernelText
from functrans.lowering.c.names import C_TYPES
from functrans.lowering.c.row_reductions import RowReduction
from functrans.lowering.loops.call import Gemm
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import Index, unflatten
from functrans.lowering.loops.tensor import Tensor
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.kernel import Member

if TYPE_CHECKING:
    from functrans.lowering.c.prelude import Prelude
    from functrans.lowering.c.program import CModule
    from functrans.lowering.schedule.group import Schedule

__all__ = ["GEMM_TYPES", "declare_gemm", "gemm_lines", "gemm_work", "write_epilogue"]

GEMM_TYPES = ("f32", "f64", "bf16", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def declare_gemm(module: CModule) -> str:
    """Make the library's function known; its name in C."""
    module.declare(GEMM)
    return f"((int (*)(const ft_gemm *)){module.library('gemm')})"


def gemm_work(call: Gemm) -> Size:
    """The multiply-adds of a product."""
    f = call.fields
    return f["batch0"] * f["batch1"] * f["m"] * f["n"] * f["k"]


def gemm_lines(call: Gemm, module: CModule, pointers: Callable[[Tensor], str], sizes: Mapping[
        str, Size], epilogue: KernelText | None = None, batch: str = "0", row: str = "0",
        failure: str = "return 2;") -> list[str]:
    """The statements of a product, or of a part of one.

    `pointers` gives where a tensor is, `sizes` replace those of the product. `batch` and `row` are
    the C expressions of where the part begins, if it does not begin at the beginning.
    """
    run = declare_gemm(module)
    f = {**call.fields, **sizes}
    fields = [f".{name} = {module.size(n)}" for name, n in f.items()]
    lines = []
    a, b = call.operands[:2]
    parts = [("a", a, call.a_offset, True), ("b", b, call.b_offset, False)]
    if epilogue is None:
        parts.append(("c", call.results[0], 0, True))
    for name, t, offset, by_row in parts:
        place = f"(({C_TYPES[t.dtype]} *){pointers(t)}) + {module.size(offset)}"
        if batch != "0":
            outer, inner = f[f"{name}_batch0"], f[f"{name}_batch1"]
            count = module.size(call.fields["batch1"])
            place += f" + ({batch}) / {count} * {module.size(outer)}" \
                     f" + ({batch}) % {count} * {module.size(inner)}"
        if by_row and row != "0":
            place += f" + ({row}) * {module.size(f[f'{name}_row'])}"
        fields.append(f".{name} = {place}")
    fields.append(f".in_type = {GEMM_TYPES.index(a.dtype)}, .alpha = 1.0")
    out = call.product if isinstance(call, FusedGemm) else call.results[0]
    fields.append(f".out_type = {GEMM_TYPES.index(out.dtype)}")
    if epilogue is not None:
        first = f"({batch}) * {module.size(call.fields['m'])} + ({row})"
        lines.append(f"const i64 first = {first};")
        given = ", ".join([*map(pointers, epilogue.operands), "(void *)z", "(void *)&first"])
        lines.append(f"void *e[] = {{{given}}};")
        name = module.kernel_name(epilogue.text)
        fields.append(f".epilogue = {name}, .epilogue_arg = e")
    lines.append(f"const ft_gemm m = {{{', '.join(fields)}}};")
    lines.append(f"if ({run}(&m)) {failure}")
    return lines


def write_epilogue(call: FusedGemm, schedule: Schedule, prelude: Prelude,
                   sizes: dict[str, str]) -> KernelText:
    """The C text of the epilogue of a product."""
    return _EpilogueWriter(call, schedule, prelude, sizes).write()


def sum_type(dtype: str) -> str:
    """The type of the sums in a tile."""
    if dtype in ("f32", "f64"):
        return dtype
    if dtype in ("f16", "bf16"):
        return "f32"
    return "i64" if dtype in ("i64", "u64") else "i32"


class _ProductTileWriter(ExprWriter):
    """Reads the product from the tile; rows and columns have the numbers of the whole matrix."""

    def __init__(self, owner: _EpilogueWriter) -> None:
        super().__init__(owner)
        self.product = owner.call.product
        self.sums = sum_type(self.product.dtype)
        self.is_kept = self.product in owner.call.results

    def _load(self, t: Tensor, place: Index, loop: CodeScope) -> str:
        if t is not self.product:
            return super()._load(t, place, loop)
        text = self.prelude.load(self.sums, self.lanes, f"sums + {self.i_text}", self.count)
        if self.sums != t.compute:
            text = self.prelude.convert(self.sums, t.compute, text, self.lanes)
        if self.is_kept:  # as others read it
            text = self.prelude.convert(t.compute, t.dtype, text, self.lanes)
        return text


class _EpilogueWriter(CKernelWriter):
    def __init__(self, call: FusedGemm, schedule: Schedule, prelude: Prelude,
                 sizes: dict[str, str]) -> None:
        self.call = call
        super().__init__(call.kernel, schedule, prelude, sizes)

    def write(self) -> KernelText:
        self.writer = _ProductTileWriter(self)
        self.head = head = CodeScope("  ")
        body = CodeScope("    ")
        rows = self.writer.size(self.call.fields["m"])
        ctype = C_TYPES[self.writer.sums]
        body.line("for (i64 r = i0; r < i1; r++) {")
        body.line(f"  const i64 o = first + batch * {rows} + r;")
        body.line(f"  const {ctype} *sums = ({ctype} *)tile + (r - i0) * tile_row - j0;")
        inner = body.nested()
        self._row(inner)
        body.take(inner)
        body.line("}")
        text = self._finish(head, body, self.domain.rows)
        text.text = text.text.replace(
            "(void *arg, i64 begin, i64 end)", "(void *arg, i64 batch, i64 i0, i64 i1, i64 j0, "
            "i64 j1, const void *tile, i64 tile_row)", 1).replace(
            "(void)z;\n", f"(void)z;\n  const i64 first = *(i64 *)a[{len(self.operands) + 1}];\n",
            1)
        return text

    def _segments(self, members: list[object], facts: object) -> list[tuple[Size, Size]]:
        return [(0, self.domain.row)]

    def _ends(self, a: Size, b: Size) -> tuple[str, str, list[Size]]:
        return "j0", "j1", [self.domain.row]  # tiles have whole vectors, but for the row's end

    def _is_in_memory(self, t: Tensor) -> bool:
        return t is not self.call.product  # its sums are in the tile

    def _member(self, m: Member, e: Expr, stage: int, loop: CodeScope, fold: RowReduction | None,
                u: int,
                s: Any) -> None:
        product = self.call.product
        if m is self.kernel.members[0] and product in self.call.results:
            place = unflatten(self.kernel.places["full"], product.shape)
            self._store(product, self.operand(product),
                        self.writer.vector(s.read(product, place), loop), loop)
        super()._member(m, e, stage, loop, fold, u, s)
