"""Kernels of the schedule as Triton functions.

A program of the grid computes a tile of rows and places along them. Kernels that fold rows keep
whole rows in registers, or walk them in chunks where they are too long, once for each stage;
kernels that fold columns walk rows, and a second launch adds up what the programs found.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.tensor import NARROW, Reduce, Scatter, Tensor
from functrans.lowering.schedule.across import reads_across
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import Kernel, Member, stages_of
from functrans.lowering.triton.kernels.expressions import TileWriter, UnsupportedKernel, narrow
from functrans.lowering.triton.kernels.folds import Fold, fold_of
from functrans.lowering.triton.kernels.names import MEMORY, REGISTER
from functrans.lowering.triton.kernels.numbers import Number, Numbers

__all__ = ["Partial", "Written", "write_kernel"]

TILE = 1024  # elements of a program without reductions: 8 for each of 128 threads
LONGEST_ROW = 16384  # that is kept in registers
ROW_TILE = 2048
# Elements that a program folds at least: four tiles take as long as a second launch, 2 us
SHARE = 1 << 13
NARROWEST = 8  # columns that a program folds where there are few: 32 bytes of a row, in float32
# Rows beside which columns are folded: layer norm's gradient, 16384 x 4096 of float32 and 8192 x
# 1024 of bfloat16, takes 223 and 28 us with these tiles and 32 elements for each thread; 281 and 71
# with 132 programs and tiles of 8192 (16 warps), 370 and 64 with those of 4096 and 16 warps
WALKED_TILE = 4096
WALKERS = 264
COLUMN_TILE = 128  # columns that a program folds
PROGRAMS = 264  # two on each multiprocessor of an H100


@dataclass(eq=False)
class Partial:
    """Memory for what the programs of a fold found: [count, size]."""

    count: int
    size: int
    dtype: str

    @property
    def nbytes(self) -> int:
        return self.count * self.size * {"f64": 8, "i64": 8, "u64": 8}.get(self.dtype, 4)


@dataclass
class Written:
    """A function; `NAME` stands for its name.

    Its arguments are pointers to `operands` in order, and `numbers`.
    """

    text: str
    operands: list[Tensor | Partial]
    grid: int
    warps: int
    numbers: list[Number] = field(default_factory=list)

    @property
    def types(self) -> list[str]:
        return [f"*{_memory(t)}" for t in self.operands]


def _memory(t: Tensor | Partial) -> str:
    return MEMORY[t.dtype]


def power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def row_warps(tile: int) -> int:
    """Warps for rows in registers: 16 elements a thread (8192 x 1024: 9 us; with 8, 12)."""
    return power_of_two(min(16, max(1, tile // 512)))


def walking_warps(tile: int) -> int:
    """Warps beside column folds, whose accumulators take registers too."""
    return power_of_two(min(16, max(4, tile // 1024)))


def write_kernel(kernel: Kernel, schedule: Schedule, any_size: bool = False) -> list[Written]:
    """The launches of a kernel. Raises UnsupportedKernel for what Triton cannot say.

    With `any_size` sizes are arguments, and the text is that of all sizes of a class.
    """
    return _Writer(kernel, schedule, any_size).write()


class _Writer:
    def __init__(self, kernel: Kernel, schedule: Schedule, any_size: bool) -> None:
        d = kernel.domain
        if not all(isinstance(n, int) for n in (d.rows, d.row, d.parts, d.size)):
            raise UnsupportedKernel("a size that is not known")
        self.kernel, self.schedule, self.any_size = kernel, schedule, any_size
        self.numbers = Numbers(any_size)
        self.n = self.numbers.text
        self.extent = self.numbers.extent
        self.line = d.total is not None
        self.rows: int = 1 if self.line else d.rows  # type: ignore[assignment]
        self.row: int = d.total if self.line else d.row  # type: ignore[assignment]
        self.parts: int = d.parts  # type: ignore[assignment]
        self.per_part = self.rows // self.parts
        self.builder = kernel.builder(schedule.is_stored)
        self.elements = {m.tensor: kernel.element(self.builder, m) for m in kernel.members}
        self.stages = stages_of(kernel, self.elements)
        self.operands: list[Tensor | Partial] = []
        self.lines: list[str] = []
        self.indent = "    "
        self.count = 0

    # --------------------------------------------------------------------------- text

    def emit(self, text: str) -> None:
        self.lines.append(f"{self.indent}{text}\n")

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def pointer(self, t: Tensor | Partial) -> str:
        if t not in self.operands:
            self.operands.append(t)
        return f"p{self.operands.index(t)}"

    def tile_writer(self, o: str | None, i: str | None) -> TileWriter:
        return TileWriter(self.kernel, self.emit, self.pointer, self.fresh, {"o": o, "i": i},
                          self.numbers)

    def emit_program(self) -> None:
        """Write `pid`, which is wide where tiles times programs are."""
        self.emit(f"pid = {_program(self.rows * self.row)}")

    def written(self, grid: int, tile: int, warps: int = 0) -> Written:
        arguments = ", ".join([f"p{k}" for k in range(len(self.operands))] + self.numbers.names)
        text = f"@triton.jit\ndef NAME({arguments}):\n" + "".join(self.lines)
        warps = warps or power_of_two(min(16, max(1, tile // 256)))
        return Written(text, list(self.operands), grid, warps, self.numbers.found)

    def escapes(self, t: Tensor) -> bool:
        return t in self.schedule.stored

    # --------------------------------------------------------------------------- kinds

    def write(self) -> list[Written]:
        roles = {m.role for m in self.kernel.members}
        if "scatter" in roles:
            return self._scatter()
        if "fold_row" in roles:
            return self._rows(bool(roles & {"fold_column", "fold_all"}))
        if roles & {"fold_column", "fold_all"}:
            return self._columns("fold_column" in roles)
        return [self._elementwise()]

    def _axes(self, o_start: str, rows: int, block_o: int, i_start: str, row: int, block_i: int,
              ends: tuple[str, str] | None = None) -> tuple[str | None, str | None]:
        """Write `o`, `i`, their masks and `inside`, the mask of the tile."""
        self.emit(f"o = {o_start} + tl.arange(0, {block_o})[:, None]")
        self.emit(f"i = {i_start} + tl.arange(0, {block_i})[None, :]")
        o_end, i_end = ends or (self.n(rows, "rows", near=False), self.n(row, "row"))
        o_mask = "mo" if ends or self.numbers.uneven(rows, block_o) else None
        i_mask = "mi" if self.numbers.uneven(row, block_i) else None
        if o_mask:
            self.emit(f"mo = o < {o_end}")
        if i_mask:
            self.emit(f"mi = i < {i_end}")
        self.emit(f"inside = (o < {o_end}) & (i < {i_end})")
        self.emit("zero = (o + i) * 0")  # of the shape of the tile
        return o_mask, i_mask

    def _blocks(self) -> tuple[int, int]:
        if self.row == 1:
            return min(self.extent(self.rows, TILE), TILE), 1
        block_i = min(self.extent(self.row, TILE if self.rows == 1 else 1), TILE)
        if reads_across(self.kernel, self.builder) and self.rows >= 32 and self.row >= 32:
            return 64, 64
        fits = max(1, TILE // block_i)
        return min(self.extent(self.rows, fits), fits), block_i

    def _elementwise(self) -> Written:
        block_o, block_i = self._blocks()
        across = -(-self.row // block_i)
        self.emit_program()
        along = self.n(across, "across", near=False)
        o_mask, i_mask = self._axes(f"(pid // {along}) * {block_o}", self.rows, block_o,
                                    f"(pid % {along}) * {block_i}", self.row, block_i)
        w = self.tile_writer(o_mask, i_mask)
        for m in self.kernel.members:
            self._value(w, m)
        return self.written(-(-self.rows // block_o) * across, block_o * block_i)

    def _value(self, w: TileWriter, m: Member) -> None:
        """Compute a member that is no reduction, and store it where others read it."""
        t = m.tensor
        w.locals[t] = w.expression(self.elements[t])
        if not self.escapes(t):
            return
        place = self.kernel.places[m.role]
        if m.role == "row":
            mask = w.masks["o"]
            where = f"{self.pointer(t)} + o"
        else:
            mask = "inside" if w.masks["o"] or w.masks["i"] else None
            wide = isinstance(t.size, int) and t.size >= 2**31
            where = f"{self.pointer(t)} + {w.index(place, wide)} + zero"
        self.emit(f"tl.store({where}, {w.stored(w.locals[t], t)}"
                  f"{f', mask={mask}' if mask else ''})")

    def _scatter(self) -> list[Written]:
        """Elements to computed places. Of several that go to one place, the last one stays."""
        (m,) = self.kernel.members
        t = m.tensor
        assert isinstance(t, Scatter)
        if t.op != "set" or t.unique:
            return [self._scattered(m, None, is_contest=False)]
        if not isinstance(t.size, int):
            raise UnsupportedKernel("a size that is not known")
        winners = Partial(1, t.size, "i64" if self.rows * self.row >= 2**31 else "i32")
        other = _Writer(self.kernel, self.schedule, self.any_size)
        contest = other._scattered(m, winners, is_contest=True)
        return [_filled(winners, -1, self.any_size), contest,
                self._scattered(m, winners, is_contest=False)]

    def _scattered(self, m: Member, winners: Partial | None, is_contest: bool) -> Written:
        t = m.tensor
        assert isinstance(t, Scatter)
        block_o, block_i = self._blocks()
        across = -(-self.row // block_i)
        self.emit_program()
        along = self.n(across, "across", near=False)
        o_mask, i_mask = self._axes(f"(pid // {along}) * {block_o}", self.rows, block_o,
                                    f"(pid % {along}) * {block_i}", self.row, block_i)
        w = self.tile_writer(o_mask, i_mask)
        index, condition = self.kernel.target(self.builder, m)
        wide = isinstance(t.size, int) and t.size >= 2**31
        place = w.name(f"{w.index(index, wide)} + zero")
        mask = "inside" if condition is None else w.name(
            f"tl.where({w.expression(condition)}, inside, False)")
        number = f"o * {self.n(self.row, 'row')} + i"
        if winners is not None and is_contest:
            self.emit(f"tl.atomic_max({self.pointer(winners)} + {place}, {number}, mask={mask}, "
                      "sem='relaxed')")
            return self.written(-(-self.rows // block_o) * across, block_o * block_i)
        if winners is not None:
            won = w.name(f"tl.load({self.pointer(winners)} + {place}, mask={mask}, other=-1)")
            mask = w.name(f"{mask} & ({won} == {number})")
        value = w.expression(self.elements[t])
        where = f"{self.pointer(t)} + {place}"
        if t.op == "set":
            self.emit(f"tl.store({where}, {w.stored(value, t)}, mask={mask})")
            return self.written(-(-self.rows // block_o) * across, block_o * block_i)
        exact = t.dtype in ("i32", "i64", "u32", "u64")
        if not (exact if t.op in ("max", "min") else t.op == "add" and (
                exact or t.dtype in ("f32", "f64", "f16", "bf16"))):
            raise UnsupportedKernel(f"a scatter by {t.op} of {t.dtype}")
        value = f"({w.stored(value, t)} + zero.to({REGISTER[t.dtype]}))"
        self.emit(f"tl.atomic_{t.op}({where}, {value}, mask={mask}, sem='relaxed')")
        return self.written(-(-self.rows // block_o) * across, block_o * block_i)

    # --------------------------------------------------------------------------- rows

    def _rows(self, columns: bool) -> list[Written]:
        if self.row > LONGEST_ROW:
            if columns:
                raise UnsupportedKernel("rows too long to fold columns beside them")
            return [self._long_rows()]
        block_i = self.extent(self.row)
        fits = max(1, (self._walked_tile() if columns else ROW_TILE) // block_i)
        block_o = min(self.extent(self.per_part, fits), fits)
        tiles = -(-self.per_part // block_o)
        if not columns:
            self.emit_program()
            masks = self._axes(f"pid * {block_o}", self.rows, block_o, "0", self.row, block_i)
            w = self.tile_writer(*masks)
            for m in self.kernel.members:
                self._in_row(w, m)
            tile = block_o * block_i
            return [self.written(-(-self.rows // block_o), tile, row_warps(tile))]
        programs = min(tiles, max(1, WALKERS // self.parts))
        folds = self._column_folds()
        self.emit_program()
        share = self.n(programs, "programs", near=False)
        per_part = self.n(self.per_part, "per_part", near=False)
        self.emit("column = 0")
        self.emit(f"part = pid // {share}")
        self.emit(f"split = pid % {share}")
        accumulators = self._accumulators(folds, block_o, block_i)
        self.emit(f"for t in range(split, {self.n(tiles, 'tiles', near=False)}, {share}):")
        self.indent += "    "
        start = f"part * {per_part} + t * {block_o}"
        masks = self._axes(start, self.rows, block_o, "0", self.row, block_i,
                           (f"(part + 1) * {per_part}", self.n(self.row, "row")))
        w = self.tile_writer(*masks)
        for m in self.kernel.members:
            if m.role in ("fold_column", "fold_all"):
                self._accumulate(w, m, accumulators[m.tensor])
            else:
                self._in_row(w, m)
        self.indent = "    "
        tile = block_o * block_i
        return self._finished(folds, accumulators, programs, 1, tile, block_i, walking_warps(tile))

    def _walked_tile(self) -> int:
        """A smaller tile where there are too few rows for all programs."""
        tile = WALKED_TILE
        while tile > TILE and self.rows * self.row < WALKERS * tile:
            tile //= 2
        return tile

    def _in_row(self, w: TileWriter, m: Member) -> None:
        """A member at rows that are in registers whole."""
        if m.role != "fold_row":
            self._value(w, m)
            return
        t = m.tensor
        assert isinstance(t, Reduce)
        fold = fold_of(t)
        values = [w.name(fold.masked(w.expression(self.elements[t]), "inside"))]
        if fold.is_place:
            values.append(w.name(f"tl.where(inside, i, {2**31 - 1})"))
        self._fold_rows(w, t, fold, values)

    def _fold_rows(self, w: TileWriter, t: Reduce, fold: Fold, values: list[str]) -> None:
        names = [self.fresh() for _ in values]
        self.emit(f"{', '.join(names)} = {fold.folded(values, 1)}")
        self._row_result(w, t, fold, names)

    def _row_result(self, w: TileWriter, t: Reduce, fold: Fold, names: list[str]) -> None:
        w.locals[t] = w.name(fold.result(names))
        if self.escapes(t):
            mask = w.masks["o"]
            self.emit(f"tl.store({self.pointer(t)} + o, {w.stored(w.locals[t], t)}"
                      f"{f', mask={mask}' if mask else ''})")

    def _long_rows(self) -> Written:
        """Rows in chunks, once for each stage; what a later stage reads is computed again."""
        block_o, block_i = 1, 4096
        self.emit_program()
        results: dict[Tensor, str] = {}
        stored: set[Tensor] = set()
        for stage in range(max(self.stages.values()) + 1):
            members = [m for m in self.kernel.members if self.stages[m.tensor] == stage]
            folds = {m.tensor: fold_of(m.tensor) for m in members
                     if m.role == "fold_row" and isinstance(m.tensor, Reduce)}
            accumulators: dict[Tensor, list[str]] = {}
            for t, fold in folds.items():
                accumulators[t] = []
                for text in fold.initial(f"({block_o}, {block_i})"):
                    name = self.fresh()
                    self.emit(f"{name} = {text}")
                    accumulators[t].append(name)
            self.emit(f"for t in range(0, {self.n(self.row, 'row')}, {block_i}):")
            self.indent = "        "
            masks = self._axes("pid", self.rows, block_o, "t", self.row, block_i)
            w = _Again(self, masks, results)
            for m in members:
                if m.role == "fold_row":
                    self._accumulate_row(w, m.tensor, folds[m.tensor], accumulators[m.tensor])
                elif m.role == "full" and m.tensor not in stored:
                    stored.add(m.tensor)
                    self._value(w, m)
                elif m.role == "row":
                    w.locals[m.tensor] = w.expression(self.elements[m.tensor])
            self.indent = "    "
            masks = self._axes("pid", self.rows, block_o, "0", self.row, block_i)
            outer = _Again(self, masks, results)
            for m in members:
                if m.role == "fold_row":
                    assert isinstance(m.tensor, Reduce)
                    self._fold_rows(outer, m.tensor, folds[m.tensor], accumulators[m.tensor])
                    results[m.tensor] = outer.locals[m.tensor]
                elif m.role == "row":
                    self._value(outer, m)
                    results[m.tensor] = outer.locals[m.tensor]
        return self.written(self.rows, block_o * block_i)

    def _accumulate_row(self, w: TileWriter, t: Tensor, fold: Fold, names: list[str]) -> None:
        values = [w.name(fold.masked(w.expression(self.elements[t]), "inside"))]
        if fold.is_place:
            values.append(w.name(f"tl.where(inside, i, {2**31 - 1})"))
        self.emit(f"{', '.join(names)} = {fold.combined(names, values)}")

    # --------------------------------------------------------------------------- columns

    def _columns(self, keeps: bool) -> list[Written]:
        """Reductions over the rows of each part, and of whole parts."""
        folds = self._column_folds()
        per_part = self.n(self.per_part, "per_part", near=False)
        if keeps:
            block_i = self._columns_of_a_program()
            fits = max(1, ROW_TILE // block_i)
            block_o = min(self.extent(self.per_part, fits), fits)
            across = -(-self.row // block_i)
            tiles = -(-self.per_part // block_o)
            programs = min(tiles, max(1, 4 * PROGRAMS // (across * self.parts)),
                           max(1, self.per_part * block_i // SHARE))
            o_start, i_start = f"part * {per_part} + t * {block_o}", f"column * {block_i}"
        else:
            block_i = min(self.extent(self.row), ROW_TILE)
            fits = max(1, ROW_TILE // block_i)
            block_o = min(self.extent(self.per_part, fits), fits)
            along = -(-self.row // block_i)
            tiles = -(-self.per_part // block_o) * along
            across, programs = 1, min(tiles, max(1, 4 * PROGRAMS // self.parts),
                                      max(1, self.per_part * self.row // SHARE))
            around = self.n(along, "along", near=False)
            o_start = f"part * {per_part} + (t // {around}) * {block_o}"
            i_start = f"(t % {around}) * {block_i}"
        self.emit_program()
        sides, share, both = [self.n(value, name, near=False) for value, name in (
            (across, "across"), (programs, "programs"), (across * programs, "both"))]
        self.emit(f"column = pid % {sides}")
        self.emit(f"split = pid // {sides} % {share}")
        self.emit(f"part = pid // {both}")
        accumulators = self._accumulators(folds, block_o, block_i)
        self.emit(f"for t in range(split, {self.n(tiles, 'tiles', near=False)}, {share}):")
        self.indent = "        "
        masks = self._axes(o_start, self.rows, block_o, i_start, self.row, block_i,
                           (f"(part + 1) * {per_part}", self.n(self.row, "row")))
        w = self.tile_writer(*masks)
        for m in self.kernel.members:
            if m.role in ("fold_column", "fold_all"):
                self._accumulate(w, m, accumulators[m.tensor])
            else:
                self._value(w, m)
        self.indent = "    "
        return self._finished(folds, accumulators, programs, across, block_o * block_i, block_i)

    def _columns_of_a_program(self) -> int:
        """As many as are read at once, fewer where that fills the GPU in one launch."""
        width = min(self.extent(self.row), COLUMN_TILE)
        if self.per_part * NARROWEST <= SHARE:
            while (width > NARROWEST and width * self.per_part > ROW_TILE
                   and self.parts * self.row < PROGRAMS * width):
                width //= 4 if self.any_size else 2
        return width

    def _column_folds(self) -> dict[Tensor, Fold]:
        return {m.tensor: fold_of(m.tensor) for m in self.kernel.members
                if m.role in ("fold_column", "fold_all") and isinstance(m.tensor, Reduce)}

    def _accumulators(self, folds: dict[Tensor, Fold], block_o: int,
                      block_i: int) -> dict[Tensor, list[str]]:
        found: dict[Tensor, list[str]] = {}
        for t, fold in folds.items():
            found[t] = []
            for text in fold.initial(f"({block_o}, {block_i})"):
                name = self.fresh()
                self.emit(f"{name} = {text}")
                found[t].append(name)
        return found

    def _accumulate(self, w: TileWriter, m: Member, names: list[str]) -> None:
        t = m.tensor
        assert isinstance(t, Reduce)
        fold = fold_of(t)
        values = [w.name(fold.masked(w.expression(self.elements[t]), "inside"))]
        if fold.is_place:
            per_part = self.n(self.per_part, "per_part", near=False)
            q = f"(o - part * {per_part})" if self.parts > 1 else "o"
            place = q if m.role == "fold_column" else f"({q} * {self.n(self.row, 'row')} + i)"
            values.append(w.name(f"tl.where(inside, {place}, {2**31 - 1}).to(tl.int32)"))
        self.emit(f"{', '.join(names)} = {fold.combined(names, values)}")

    def _finished(self, folds: dict[Tensor, Fold], accumulators: dict[Tensor, list[str]],
                  programs: int, across: int, tile: int, block_i: int,
                  warps: int = 0) -> list[Written]:
        """Fold the accumulators of each program, and those of all programs in a second launch."""
        grid = self.parts * programs * across
        self.emit(f"c = column * {block_i} + tl.arange(0, {block_i})[None, :]")
        launches: list[Written] = []
        for m in self.kernel.members:
            if m.tensor not in folds:
                continue
            t, fold = m.tensor, folds[m.tensor]
            names = [self.fresh() for _ in accumulators[t]]
            self.emit(f"{', '.join(names)} = {fold.folded(accumulators[t], 0)}")
            whole = m.role == "fold_all"
            if whole:
                inner = names
                names = [self.fresh() for _ in inner]
                self.emit(f"{', '.join(names)} = {fold.folded(inner, 1)}")
            size = self.parts if whole else self.parts * self.row
            count = programs * across if whole else programs
            place = "part" if whole else f"part * {self.n(self.row, 'row')} + c"
            if count == 1:
                value = self.tile_writer(None, None).stored(self._named(fold.result(names)), t)
                self._store_fold(t, place, value, whole)
                continue
            sides = self.n(across, "across", near=False)
            split = f"split * {sides} + column" if whole and across > 1 else "split"
            partials = [Partial(count, size, "i32" if fold.dtype == "bool" else fold.dtype)]
            if fold.is_place:
                partials.append(Partial(count, size, "i32"))
            for p, name in zip(partials, names, strict=True):
                step = self.n(size, "size of all" if whole else "size")
                self._store_fold(p, f"({split}) * {step} + {place}", name, whole)
            launches.append(_second(t, fold, partials, self.any_size))
        return [self.written(grid, tile, warps), *launches]

    def _named(self, text: str) -> str:
        name = self.fresh()
        self.emit(f"{name} = {text}")
        return name

    def _store_fold(self, t: Tensor | Partial, place: str, value: str, whole: bool) -> None:
        if whole:
            one = "tl.full((1, 1), 0, tl.int32)"
            self.emit(f"tl.store({self.pointer(t)} + {place} + {one}, {value})")
        else:
            row = self.n(self.row, "row")
            self.emit(f"tl.store({self.pointer(t)} + {place}, {value}, mask=c < {row})")


class _Again(TileWriter):
    """Computes what an earlier stage computed again, where it is read."""

    def __init__(self, owner: _Writer, masks: tuple[str | None, str | None],
                 results: dict[Tensor, str]) -> None:
        super().__init__(owner.kernel, owner.emit, owner.pointer, owner.fresh,
                         {"o": masks[0], "i": masks[1]}, owner.numbers)
        self._owner = owner
        self.locals.update(results)

    def expression(self, e: Expr) -> str:
        if e.op == "local" and e.aux not in self.locals:
            self.locals[e.aux] = super().expression(self._owner.elements[e.aux])
        return super().expression(e)


def _program(elements: int) -> str:
    """The number of a program as text, wide where tiles times programs are."""
    return f"tl.program_id(0){'.to(tl.int64)' if elements >= 2**31 - 2**20 else ''}"


def _filled(t: Partial, value: int, any_size: bool) -> Written:
    """The launch that fills memory with a number."""
    size, numbers = t.count * t.size, Numbers(any_size)
    end = numbers.text(size, "size")
    text = (f"@triton.jit\ndef NAME({', '.join(['p0', *numbers.names])}):\n"
            f"    i = {_program(size)} * {TILE} + tl.arange(0, {TILE})\n"
            f"    tl.store(p0 + i, {value}, mask=i < {end})\n")
    return Written(text, [t], -(-size // TILE), 4, numbers.found)


def _second(t: Tensor, fold: Fold, partials: list[Partial], any_size: bool) -> Written:
    """The launch that folds what the programs of the first found."""
    numbers = Numbers(any_size)
    columns = partials[0].size
    # all at once where there are few: each round waits for memory (132 x 1024: 7 us in 9 rounds)
    depth = min(numbers.extent(partials[0].count), 128)
    block = min(numbers.extent(columns), max(NARROWEST, ROW_TILE // depth), 128)
    count, size = (numbers.text(partials[0].count, "count", near=False),
                   numbers.text(columns, "size"))
    lines = ["pid = tl.program_id(0)",
             f"c = pid * {block} + tl.arange(0, {block})[None, :]"]
    names = []
    for k, text in enumerate(fold.initial(f"({depth}, {block})")):
        names.append(f"a{k}")
        lines.append(f"a{k} = {text}")
    lines.append(f"for s in range(0, {count}, {depth}):")
    lines.append(f"    r = s + tl.arange(0, {depth})[:, None]")
    lines.append(f"    inside = (r < {count}) & (c < {size})")
    starts = [fold.start, str(2**31 - 1)]
    for k in range(len(partials)):
        where = f"p{k + 1} + r * {size} + c"
        lines.append(f"    b{k} = tl.load({where}, mask=inside, other={starts[k]})")
    new = [f"b{k}" for k in range(len(partials))]
    lines.append(f"    {', '.join(names)} = {fold.combined(names, new)}")
    done = [f"d{k}" for k in range(len(partials))]
    lines.append(f"{', '.join(done)} = {fold.folded(names, 0)}")
    value = fold.result(done)
    if t.dtype == "bool":
        value = f"({value}).to(tl.uint8)"
    elif t.dtype in NARROW:
        value = narrow(f"({value})", t.dtype)
    lines.append(f"tl.store(p0 + c, {value}, mask=c < {size})")
    arguments = ", ".join([f"p{k}" for k in range(len(partials) + 1)] + numbers.names)
    text = f"@triton.jit\ndef NAME({arguments}):\n" + "".join(f"    {x}\n" for x in lines)
    return Written(text, [t, *partials], -(-columns // block), 4, numbers.found)

