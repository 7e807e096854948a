"""Running sums, products, extrema and log-sums of exponentials along an axis.

A program of the grid has rows, or a few columns, and walks along the axis in chunks that it scans
in registers: elements are read and written once. Where there are too few rows for the GPU, pieces
of them are folded first, and begin with what comes before them: elements are read twice.
"""

from __future__ import annotations

from typing import Any

from functrans.core.jaxpr import Equation
from functrans.core.record import Record
from functrans.core.table import Table
from functrans.lowering.loops.tensor import FLOAT8, Stored, Tensor, compute_dtype
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.triton.kernels.axis_calls import AxisCall, extents, module_text
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    REGISTER,
    Launches,
    PartialResults,
    SizeArguments,
    power_of_two,
)
from functrans.lowering.triton.kernels.reductions import TileReduction
from functrans.lowering.triton.templates.kernel import TemplateKernel, pointer
from functrans.primitives.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p

__all__ = ["OPS", "CumulativeCall", "cumulative_rule", "running_sums"]

OPS: Table[str] = Table({cumsum_p: "add", cumprod_p: "mul", cummax_p: "max", cummin_p: "min",
       cumlogsumexp_p: "logsumexp"},
                        otherwise="it accumulates nothing")

LONGEST_ROW = 16384  # that is scanned at once
CHUNK = 8192  # of longer rows
COLUMNS = 32  # 128 bytes of float32: what memory is read in
TILE = 4096  # of columns
PIECES = 4  # of a long row, for each of `Target.walkers`


class CumulativeCall(AxisCall):
    """The scan of x along an axis."""

    name = "cumulative"

    def __init__(self, eqn: Equation, x: Tensor, sizes: tuple[int, int, int]) -> None:
        out = Stored(x.shape, x.dtype, (), eqn.source)
        super().__init__([x], [out], eqn.source)
        self.op = OPS[eqn.primitive]
        self.reverse: bool = eqn.params["reverse"]
        self.sizes = sizes

    def launches(self) -> Launches:
        (x,), (y,) = self.operands, self.results
        register = compute_dtype(x.dtype)
        scan = _ScanKernels(self.op, self.reverse, *self.sizes, x.dtype, register,
                            any_size=self.any_size, target=self.target)
        if scan.pieces == 1:
            return Launches([scan.scan("x", "y", None)], {"x": (x, 0), "y": (y, 0)})
        outer, inner = scan.outer, scan.inner
        totals = PartialResults(1, outer * scan.pieces * inner, register)
        before = PartialResults(1, outer * scan.pieces * inner, register)
        small = _ScanKernels(self.op, self.reverse, outer, scan.pieces, inner, register, register,
                             whole=True, any_size=self.any_size, target=self.target)
        return Launches([scan.fold("x", "totals"), small.scan("totals", "before", None),
                         scan.scan("x", "y", "before")],
                        {"x": (x, 0), "y": (y, 0), "totals": (totals, 0), "before": (before, 0)})


def cumulative_rule(eqn: Equation, xs: list[Tensor]) -> Any:
    (x,) = xs
    sizes = extents(x, eqn.params["axis"])
    if sizes is None or x.dtype in FLOAT8 | {"bool"} or 0 in sizes:
        return None
    call = CumulativeCall(eqn, x, sizes)
    return call, call.results


class _ScanKernels(Record, frozen=False):
    """The kernels of one array [outer, n, inner], scanned along the second axis."""

    op: str
    reverse: bool
    outer: int
    n: int
    inner: int
    dtype: str
    register: str
    whole: bool = False  # in one piece
    any_size: bool = False
    target: Target = HOPPER

    def __post_init__(self) -> None:
        self.columns = self.inner > 1
        self.numbers = SizeArguments(self.any_size)
        extent = self.numbers.extent
        if self.columns:
            self.block_inner = min(extent(self.inner), COLUMNS)
            self.chunk = min(extent(self.n), max(1, TILE // self.block_inner))
            self.inner_blocks = -(-self.inner // self.block_inner)
            blocks = self.outer * self.inner_blocks
        else:
            self.chunk = extent(self.n) if self.n <= LONGEST_ROW else CHUNK
            self.block_inner = min(extent(self.outer), max(1, 2048 // self.chunk))
            self.inner_blocks = 1
            blocks = -(-self.outer // self.block_inner)
        self.blocks = blocks
        self.chunks = -(-self.n // self.chunk)
        self.pieces, self.each = 1, self.chunks
        if not self.whole and self.chunks > 1 and blocks < self.target.multiprocessors:
            most = -(-PIECES * self.target.walkers // blocks)
            self.each = -(-self.chunks // min(self.chunks, most))
            self.pieces = -(-self.chunks // self.each)

    @property
    def axis(self) -> int:
        return 0 if self.columns else 1

    @property
    def start(self) -> str:
        return "float('-inf')" if self.op == "logsumexp" else TileReduction(self.op,
                                                                            self.register).start

    def _kernel(self, name: str, pointers: dict[str, str], lines: list[str]) -> TemplateKernel:
        arguments = (*[pointer(p, t) for p, t in pointers.items()], *self.numbers.arguments)
        text = f"@triton.jit\ndef {name}({', '.join(a.name for a in arguments)}):\n" + "".join(
            f"    {line}\n" for line in lines)
        self.numbers = SizeArguments(self.any_size)
        warps = min(16, max(1, power_of_two(self.chunk * self.block_inner // 512)))
        return TemplateKernel(name, module_text(text), arguments, (self.blocks * self.pieces, 1, 1),
                              warps, 3)

    def _begin(self) -> list[str]:
        """`o` and `c`: where a program is beside the axis; `along`: in which piece of it."""
        n = self.numbers.text
        pieces = n(self.pieces, "pieces", near=False)
        lines = ["pid = tl.program_id(0)", f"block = pid // {pieces}", f"along = pid % {pieces}"]
        if self.columns:
            across = n(self.inner_blocks, "across", near=False)
            lines += [f"o = block // {across}",
                      f"c = block % {across} * {self.block_inner} "
                      f"+ tl.arange(0, {self.block_inner})[None, :]",
                      f"there = c < {n(self.inner, 'inner')}"]
        else:
            lines += [f"o = block * {self.block_inner} + tl.arange(0, {self.block_inner})[:, None]",
                      "c = 0",
                      f"there = o < {n(self.outer, 'outer', near=False)}"]
        if self.outer * self.n * self.inner >= 2**31:
            lines.append("o = o.to(tl.int64)")
        return lines

    def _chunk(self, x: str) -> list[str]:
        """`v`: a chunk, which is number `t` of the piece in the order of the scan."""
        n = self.numbers.text
        each = n(self.each, "each", near=False)
        number = f"along * {each} + t" if self.pieces > 1 else "t"
        if self.reverse:
            end = f"(along + 1) * {each}" if self.pieces > 1 else each
            number = f"{end} - 1 - t"
        spread = "[:, None]" if self.columns else "[None, :]"
        return [f"i = ({number}) * {self.chunk} + tl.arange(0, {self.chunk}){spread}",
                f"inside = there & (i < {n(self.n, 'n')})",
                f"at = o * {n(self.n * self.inner, 'step')} + i * {n(self.inner, 'inner')} + c",
                f"v = tl.load({x} + at, mask=inside, other=0).to({REGISTER[self.register]})",
                f"v = tl.where(inside, v, {self.start}).to({REGISTER[self.register]})"]

    def _loop(self, lines: list[str]) -> list[str]:
        if self.each == 1:
            return ["t = 0", *lines]
        each = self.numbers.text(self.each, "each", near=False)
        return [f"for t in tl.range(0, {each}, num_stages=3):",
                *(f"    {line}" for line in lines)]

    def _empty(self) -> str:
        shape = f"(1, {self.block_inner})" if self.columns else f"({self.block_inner}, 1)"
        return f"tl.full({shape}, {self.start}, {REGISTER[self.register]})"

    def _piece(self, along: str) -> str:
        """Where the total of a piece is."""
        n = self.numbers.text
        pieces, inner = n(self.pieces, "pieces", near=False), n(self.inner, "inner")
        return f"(o * {pieces} + {along}) * {inner} + c"

    def fold(self, x: str, totals: str) -> TemplateKernel:
        """What every piece comes to."""
        folded = f"tl.reduce(v, {self.axis}, combine_{self.op}, keep_dims=True)"
        lines = [*self._begin(), f"carry = {self._empty()}",
                 *self._loop([*self._chunk(x), f"carry = combine_{self.op}(carry, {folded})"]),
                 f"tl.store({totals} + {self._piece('along')}, carry, mask=there)"]
        return self._kernel("folded", {x: MEMORY[self.dtype],
                                       totals: MEMORY[self.register]}, lines)

    def scan(self, x: str, y: str, before: str | None) -> TemplateKernel:
        """All results; `before` has the running results of pieces, from three launches."""
        pointers = {x: MEMORY[self.dtype], y: MEMORY[self.dtype]}
        lines = self._begin()
        carried = before is not None or self.each > 1
        if before is not None:
            pointers[before] = MEMORY[self.register]
            pieces = self.numbers.text(self.pieces, "pieces", near=False)
            last = f"< {pieces} - 1" if self.reverse else "> 0"
            other = "along + 1" if self.reverse else "along - 1"
            lines += [f"where = {self._piece(other)}",
                      f"carry = tl.load({before} + where, mask=there & (where * 0 + along {last}), "
                      f"other={self.start})"]
        elif carried:
            lines.append(f"carry = {self._empty()}")
        inner = [*self._chunk(x),
                 f"s = tl.associative_scan(v, {self.axis}, combine_{self.op}, "
                 f"reverse={self.reverse})"]
        if carried:
            inner.append(f"s = combine_{self.op}(carry, s)")
        if self.each > 1:
            inner.append(f"carry = combine_{self.op}(carry, tl.reduce(v, {self.axis}, "
                         f"combine_{self.op}, keep_dims=True))")
        stored = "fm.bfloat16(s)" if self.dtype == "bf16" else f"s.to({REGISTER[self.dtype]})"
        inner.append(f"tl.store({y} + at, {stored}, mask=inside)")
        return self._kernel("scanned", pointers, [*lines, *self._loop(inner)])


def running_sums(rows: int, n: int, x: str, y: str) -> tuple[list[TemplateKernel],
                                                             dict[str, PartialResults]]:
    """The launches that add up rows of int32, and the memory that they need by its names."""
    scan = _ScanKernels("add", False, rows, n, 1, "i32", "i32")
    if scan.pieces == 1:
        return [scan.scan(x, y, None)], {}
    small = _ScanKernels("add", False, rows, scan.pieces, 1, "i32", "i32", whole=True)
    memory = {name: PartialResults(1, rows * scan.pieces, "i32") for name in ("totals", "before")}
    return [scan.fold(x, "totals"), small.scan("totals", "before", None),
            scan.scan(x, y, "before")], memory
