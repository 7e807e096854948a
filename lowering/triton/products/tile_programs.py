"""Tile programs as Triton functions: values in registers, products of tiles, sums of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import Index
from functrans.lowering.loops.tensor import ITEM_SIZES, Reduce, Tensor
from functrans.lowering.schedule.kernel import Domain, Kernel
from functrans.lowering.schedule.tile_programs import TileProgram
from functrans.lowering.schedule.tile_space import (
    TileAccess,
    TileSize,
    TileSpace,
    TileValue,
    extent,
)
from functrans.lowering.triton.kernels.axis_calls import module_text
from functrans.lowering.triton.kernels.expressions import TileWriter
from functrans.lowering.triton.kernels.kernel_source import MEMORY, Launches
from functrans.lowering.triton.kernels.reductions import tile_reduction
from functrans.lowering.triton.templates.kernel import TemplateKernel, pointer
from functrans.lowering.triton.templates.notes import KernelNotes, NamedValue

__all__ = ["CHUNK", "launches_of_tiles", "sums_of_parts"]

BITS = {2: "tl.int16", 4: "tl.int32"}
CHUNK = 64
"""Places of sums over all indices that a program adds up."""
ADDED_AT_ONCE = 64
MANY_PARTS, FEWER_PLACES, MORE_AT_ONCE = 1024, 16, 512
"""Parts from which on programs have fewer places and more of their parts at once: each round waits
for memory. With 8,192 parts of 64 places one program took 65 us on an H100, for 2.1 MB."""
MATRICES = {"bf16": "tl.bfloat16", "f16": "tl.float16"}


def launches_of_tiles(call: TileProgram, precisions: Mapping[Tensor, str]) -> Launches:
    """The launch of a tile program; `precisions` are those of products, by what they compute."""
    return _TileProgramWriter(call, precisions).written()


def sums_of_parts(totals: Mapping[Tensor, tuple[str, int]], count: int, row: int,
                  stored: Callable[[str, Tensor], str]) -> TemplateKernel:
    """The launch that adds up parts of sums, of which each of some programs has stored a row.

    `totals` are the sums: the names of their arguments, and where they begin in a row.
    """
    wide = count * row >= 2**31
    places, rows, warps = (FEWER_PLACES, MORE_AT_ONCE, 8) if count >= MANY_PARTS else (
        CHUNK, min(extent(count), ADDED_AT_ONCE), 4)
    lines = ["pid = tl.program_id(0)", f"c = pid * {places} + tl.arange(0, {places})[None, :]",
             f"acc = tl.zeros(({rows}, {places}), tl.float32)",
             f"for first in range(0, {count}, {rows}):",
             f"    r = first + tl.arange(0, {rows})[:, None]",
             f"    at = {'tl.cast(r, tl.int64)' if wide else 'r'} * {row} + c",
             f"    acc += tl.load(workspace + at, mask=r < {count}, other=0.0)",
             "x = tl.sum(acc, 0, keep_dims=True)"]
    arguments = []
    for t, (name, first) in totals.items():
        assert isinstance(t.size, int)
        arguments.append(pointer(name, MEMORY[t.dtype]))
        lines.append(f"tl.store({name} + (c - {first}), {stored('x', t)}, "
                     f"mask=(c >= {first}) & (c < {first + t.size}))")
    arguments.append(pointer("workspace", "fp32"))
    text = f"@triton.jit\ndef tile_sums({', '.join(a.name for a in arguments)}):\n" + "".join(
        f"    {x}\n" for x in lines)
    return TemplateKernel("tile_sums", module_text(text), tuple(arguments), (row // places, 1, 1),
                          warps, 1, workspace=4 * count * row)


class _TileProgramWriter:
    def __init__(self, call: TileProgram, precisions: Mapping[Tensor, str]) -> None:
        self.call, self.precisions = call, precisions
        self.space: TileSpace = call.space
        self.lines: list[str] = []
        self.pointers: dict[Tensor, str] = {}
        self.count = 0
        self.tiles: dict[Tensor, str] = {}
        self.accessed: dict[TileAccess, str] = {}
        self.operands: dict[tuple[Expr, TileSize, bool, str], str] = {}
        rows, cols = self.space.extents
        ragged = call.shape.block > 1 and self.space.count % call.shape.block
        self.masks: dict[str, str | None] = {
            "l": "in_l" if ragged else None,
            **{f"r{n}": f"in_r{n}" if extent(n) != n else None for n in rows},
            **{f"c{n}": f"in_c{n}" if extent(n) != n else None for n in cols}}
        self.writers: dict[TileSize, _ElementWriter] = {}
        self.totals: dict[Tensor, int] = {}  # where they begin in a row of the workspace
        self.row = 0
        for v in call.values:
            if v.total:
                self.totals[v.tensor] = self.row
                self.row += -(-v.form.rows * v.form.cols // CHUNK) * CHUNK

    # --------------------------------------------------------------------------- text

    def emit(self, line: str) -> None:
        self.lines.append(f"    {line}")

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def name(self, text: str) -> str:
        name = self.fresh()
        self.emit(f"{name} = {text}")
        return name

    def pointer(self, t: Tensor) -> str:
        return self.pointers.setdefault(t, f"p{len(self.pointers)}")

    def writer(self, form: TileSize) -> _ElementWriter:
        found = self.writers.get(form)
        if found is None:
            found = self.writers[form] = _ElementWriter(self, form)
        return found

    def shape(self, form: TileSize, by_index: bool = True) -> str:
        """The shape of a tile of a form; indices are its rows where they are blocked."""
        rows = self.call.shape.block if self.space.by_rows and by_index else extent(form.rows)
        return f"({rows}, {extent(form.cols)})"

    def mask(self, index: Index) -> str | None:
        texts = [m for v in sorted(index.variables(), key=lambda v: v.name)
                 if (m := self.masks[v.name])]
        return " & ".join(texts) or None

    # --------------------------------------------------------------------------- program

    def written(self) -> Launches:
        self._begin()
        results = {*self.call.results}
        for value in self.call.values:
            t = value.tensor
            if value.total:
                self._store_part(value)
                continue
            text = self._product(value) if value.product is not None \
                else self._reduced(value) if value.axes or isinstance(t, Reduce) \
                else self._mapped(value)
            w = self.writer(value.form)
            self.tiles[t] = w.as_stored(text, t) if t in self.call.rounded else text
            if t in results:
                self._store(w, value)
        kernels = [self._kernel("tile_program", self.lines, self.pointers, self.call.shape.programs,
                                self.call.shape.warps)]
        if self.totals:
            kernels.append(self._sums())
        notes = KernelNotes([NamedValue("", name, (t,)) for t, name in self.tiles.items()])
        return Launches([replace(k, notes=notes) for k in kernels],
                        {name: (t, 0) for t, name in self.pointers.items()})

    def _kernel(self, name: str, lines: Sequence[str], pointers: Mapping[Tensor, str], grid: int,
                warps: int) -> TemplateKernel:
        arguments = [pointer(p, MEMORY[t.dtype]) for t, p in pointers.items()]
        arguments += [pointer("workspace", "fp32")] * bool(self.totals)
        names = ", ".join(a.name for a in arguments)
        text = f"@triton.jit\ndef {name}({names}):\n" + "\n".join(lines)
        return TemplateKernel(name, module_text(text + "\n"), tuple(arguments), (grid, 1, 1), warps,
                              1, workspace=4 * self.call.shape.programs * self.row)

    # --------------------------------------------------------------------------- totals

    def _store_part(self, value: TileValue) -> None:
        """Store what a program has of a sum over all indices, in its row of the workspace."""
        form, t = value.form, value.tensor
        first = self.totals[t]
        part = self._part_of_product(value) if value.product is not None \
            else self._reduced(value)
        index = self.space.row(form.rows) * form.cols + self.space.col(form.cols)
        shape = f"({extent(form.rows)}, {extent(form.cols)})"
        mask = self.mask(index)
        place = self.writer(form).index(index, wide=False)
        wide = self.call.shape.programs * self.row >= 2**31
        program = f"tl.program_id(0){'.to(tl.int64)' if wide else ''}"
        self.emit(f"tl.store(workspace + {program} * {self.row} + {first} + ({place}) "
                  f"+ tl.zeros({shape}, tl.int32), {part}"
                  + (f", mask=({mask}) & tl.full({shape}, 1, tl.int1))" if mask else ")"))

    def _part_of_product(self, value: TileValue) -> str:
        p = value.product
        assert p is not None
        (a, over_a), (b, over_b) = value.exprs
        along = "l" if self.space.by_rows else f"r{p.k}"
        if 1 in (p.m, p.n):
            x = self.name(f"{self._factor(a, over_a, True)} * {self._factor(b, over_b, True)}")
            if self.masks.get(along):
                x = self.name(f"tl.where({self.masks[along]}, {x}, 0.0)")
            return self.name(f"tl.sum({x}, 0, keep_dims=True)")
        precision = self.precisions[value.tensor]
        x, y = (self._operand(e, over, True, t.dtype, precision, along)
                for (e, over), t in zip(value.exprs, p.gemm.operands, strict=True))
        if p.k == 1 and not self.space.by_rows:
            return self.name(f"tl.trans({x}).to(tl.float32) * {y}.to(tl.float32)")
        return self.name(f"tl.dot(tl.trans({x}), {y}, input_precision='{precision}', "
                         "out_dtype=tl.float32)")

    def _sums(self) -> TemplateKernel:
        """The launch that adds up what the programs have of all sums."""
        return sums_of_parts({t: (self.pointer(t), first) for t, first in self.totals.items()},
                             self.call.shape.programs, self.row,
                             self.writer(TileSize(1, 1)).stored)

    def _begin(self) -> None:
        """Write the index of the program, and the rows and columns of its tiles."""
        block = self.call.shape.block
        if self.space.by_rows:
            self.emit(f"l = tl.program_id(0) * {block} + tl.arange(0, {block})[:, None]")
            if self.masks["l"]:
                self.emit(f"in_l = l < {self.space.count}")
        else:
            self.emit("l = tl.program_id(0)")
        for kind, lane, sizes in zip("rc", ("[:, None]", "[None, :]"), self.space.extents,
                                     strict=True):
            for n in sizes:
                self.emit(f"{kind}{n} = tl.arange(0, {extent(n)}){lane}")
                if self.masks[f"{kind}{n}"]:
                    self.emit(f"in_{kind}{n} = {kind}{n} < {n}")

    def _store(self, w: _ElementWriter, value: TileValue) -> None:
        place = self.space.place(value.form)
        mask = self.mask(place)
        where = f"{self.pointer(value.tensor)} + ({w.place(value.tensor, place)})"
        self.emit(f"tl.store({where} + tl.zeros({self.shape(value.form)}, tl.int32), "
                  f"{w.stored(self.tiles[value.tensor], value.tensor)}"
                  + (f", mask=({mask}) & tl.full({self.shape(value.form)}, 1, tl.int1))"
                     if mask else ")"))

    def _whole(self, value: str, form: TileSize) -> str:
        return self.name(f"tl.broadcast_to({value}, {self.shape(form)})")

    def _mapped(self, value: TileValue) -> str:
        ((e, form),) = value.exprs
        return self._whole(self.writer(form).expression(e), form)

    def _reduced(self, value: TileValue) -> str:
        ((e, over),) = value.exprs
        assert isinstance(value.tensor, Reduce)
        fold = tile_reduction(value.tensor)
        masks = [m for kind, n in zip("rc", over, strict=True)
                 if n > 1 and (m := self.masks[f"{kind}{n}"])]
        if value.total and self.masks["l"]:
            masks.append("in_l")
        x = self._whole(self.writer(over).expression(e), over)
        inside = " & ".join(masks) or f"tl.full({self.shape(over)}, 1, tl.int1)"
        x = self.name(fold.masked(x, inside))
        for axis in value.axes:
            x = self.name(fold.reduced([x], axis))
        return self.name(fold.result([x]))

    # --------------------------------------------------------------------------- products

    def _product(self, value: TileValue) -> str:
        p = value.product
        assert p is not None
        (a, over_a), (b, over_b) = value.exprs
        sums = over_b.rows == 1 and p.k > 1, over_a.cols == 1 and p.k > 1
        if p.k == 1 or any(sums):
            x, y = self._factor(a, over_a, True), self._factor(b, over_b, not self.space.by_rows
                                                               or over_b.rows == 1)
            x = self.name(f"{x} * {y}")
            if p.k == 1:
                return self._whole(x, value.form)
            mask = self.masks[f"{'c' if sums[0] else 'r'}{p.k}"]
            if mask:
                x = self.name(f"tl.where({mask}, {x}, 0.0)")
            return self.name(f"tl.sum({x}, {int(sums[0])}, keep_dims=True)")
        precision = self.precisions[value.tensor]
        dtype = p.gemm.operands[0].dtype
        x = self._operand(a, over_a, True, dtype, precision, f"c{p.k}")
        y = self._operand(b, over_b, not self.space.by_rows, p.gemm.operands[1].dtype, precision,
                          f"r{p.k}")
        return self.name(f"tl.dot({x}, {y}, input_precision='{precision}', "
                         "out_dtype=tl.float32)")

    def _factor(self, e: Expr, over: TileSize, by_index: bool) -> str:
        return self.name(f"tl.broadcast_to({self.writer(over).expression(e)}, "
                         f"{self.shape(over, by_index)})")

    def _operand(self, e: Expr, over: TileSize, by_index: bool, dtype: str, precision: str,
                 along: str) -> str:
        """A tile that a tensor core reads: 0 behind the end of the sum."""
        key = e, over, by_index, f"{along} {precision}"
        found = self.operands.get(key)
        if found is None:
            w = self.writer(over)
            x = w.expression(e)
            x = self.name(f"tl.broadcast_to({x}, {self.shape(over, by_index)})")
            if mask := self.masks.get(along):  # none along a size of 1, which has no variable
                x = self.name(f"tl.where({mask}, {x}, 0.0)")
            if dtype in MATRICES:
                x = self.name(f"{x}.to({MATRICES[dtype]})")
            elif precision == "tf32":
                x = self.name(f"fm.tf32({x})")
            found = self.operands[key] = x
        return found

    # --------------------------------------------------------------------------- reads

    def access(self, how: TileAccess) -> str:
        """What is read of a value of the program."""
        found = self.accessed.get(how)
        if found is None:
            found = self.tiles[how.tensor]
            form = self.space.forms[how.tensor]
            if how.row is not None:
                found = self._taken(found, how.tensor, 0, f"r{form.rows} == {how.row}")
            if how.col is not None:
                found = self._taken(found, how.tensor, 1, f"c{form.cols} == {how.col}")
            if how.transposed:
                found = self.name(f"tl.trans({found})")
            self.accessed[how] = found
        return found

    def _taken(self, x: str, t: Tensor, axis: int, where: str) -> str:
        """A row or a column: the sum of its bits and of zeros."""
        if t.compute[0] == "f":
            bits = BITS[ITEM_SIZES[t.compute]]
            x = self.name(f"{x}.to({bits}, bitcast=True)")
            x = self.name(f"tl.sum(tl.where({where}, {x}, 0), {axis}, keep_dims=True)")
            return self.name(f"{x}.to(tl.float32, bitcast=True)")
        if t.compute == "bool":
            return self.name(f"tl.sum(tl.where({where}, {x}.to(tl.int32), 0), {axis}, "
                             "keep_dims=True) != 0")
        return self.name(f"tl.sum(tl.where({where}, {x}, 0), {axis}, keep_dims=True).to({x}.dtype)")


class _ElementWriter(TileWriter):
    """Expressions over tiles of one form."""

    def __init__(self, program: _TileProgramWriter, form: TileSize) -> None:
        super().__init__(Kernel(Domain(form.rows, form.cols), []), program.emit, program.pointer,
                         program.fresh, program.masks)
        self._program = program

    def expression(self, e: Expr) -> str:
        return self._program.access(e.aux) if e.op == "local" else super().expression(e)
