"""What kernels of every kind are written with: names, arguments, and tiles of rows and places."""

from __future__ import annotations

from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import computed_in, reachable_expressions
from functrans.lowering.loops.index import Index, Quotient, Remainder
from functrans.lowering.loops.tensor import Reduce, Tensor
from functrans.lowering.schedule.group import Schedule
from functrans.lowering.schedule.kernel import ANY_FLAG_ROLES, Kernel, Member
from functrans.lowering.schedule.memory_steps import has_transposed_reads, run_of_rows
from functrans.lowering.triton.kernels.expressions import TileWriter
from functrans.lowering.triton.kernels.kernel_source import (
    ArrivalCounters,
    KernelOperand,
    KernelSource,
    Options,
    SizeArguments,
    power_of_two,
)
from functrans.lowering.triton.kernels.packed_operands import packed_operands
from functrans.lowering.triton.kernels.reductions import TileReduction, tile_reduction
from functrans.lowering.triton.templates.notes import KernelNotes, NamedValue, named_values

__all__ = ["TILE", "TRANSPOSED_TILE", "TritonKernelWriter", "program_number"]

TILE = 1024  # elements of a program without reductions: 8 for each of 128 threads
TRANSPOSED_TILE = 64  # rows and columns of a transposed tile
NARROW_TILE = 32  # of kernels that read much for each element
MANY_LOADS = 32  # of an element, of which a thread has 4
MOST_LOADS = 8  # of an element: 64 x 64 have 16 warps, whose threads have 128 registers each
MOST_EARLY = 1 << 18
"""Elements of a kernel that takes as long as memory takes to answer."""

PLACES_END = 2**31 - 1
"""The place of what is outside of a row: behind all others."""


class TritonKernelWriter:
    """Writes the launches of one kernel."""

    def __init__(self, kernel: Kernel, schedule: Schedule, options: Options) -> None:
        d = kernel.domain
        if not all(isinstance(n, int) for n in (d.rows, d.row, d.parts, d.size)):
            raise UnsupportedKernel("a size that is not known")
        self.kernel, self.schedule, self.options = kernel, schedule, options
        self.any_size = options.any_size
        self.numbers = SizeArguments(self.any_size)
        self.n = self.numbers.text
        self.extent = self.numbers.extent
        self.line = d.total is not None
        self.rows: int = 1 if self.line else d.rows  # type: ignore[assignment]
        self.row: int = d.total if self.line else d.row  # type: ignore[assignment]
        self.parts: int = d.parts  # type: ignore[assignment]
        self.per_part = self.rows // self.parts
        self.builder = kernel.shared(schedule.is_stored)
        self.elements = {m.tensor: kernel.element(self.builder, m) for m in kernel.members}
        self.packed = packed_operands(self)
        self.operands: list[KernelOperand] = []
        self.lines: list[str] = []
        self.indent = "    "
        self.count = 0
        self.writers: list[TileWriter] = []
        self.tiles: dict[str, int] = {}

    def write(self) -> list[KernelSource]:
        raise NotImplementedError

    # --------------------------------------------------------------------------- text

    def emit(self, text: str) -> None:
        self.lines.append(f"{self.indent}{text}\n")

    @property
    def in_block(self) -> bool:
        """Whether lines are those of a loop or branch."""
        return len(self.indent) > 4

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def named(self, text: str) -> str:
        name = self.fresh()
        self.emit(f"{name} = {text}")
        return name

    def named_all(self, count: int, text: str) -> list[str]:
        """The names of several values that one expression gives."""
        names = [self.fresh() for _ in range(count)]
        self.emit(f"{', '.join(names)} = {text}")
        return names

    def pointer(self, t: KernelOperand) -> str:
        if t not in self.operands:
            self.operands.append(t)
        return f"p{self.operands.index(t)}"

    def tile_writer(self, o: str | None, i: str | None) -> TileWriter:
        w = TileWriter(self.kernel, self.emit, self.pointer, self.fresh, {"o": o, "i": i},
                       self.numbers, self.packed)
        self.writers.append(w)
        return w

    def launches(self) -> list[KernelSource]:
        """The launches of the kernel, behind those that copy its operands."""
        copies = dict.fromkeys(copy for copy, _ in self.packed.values())
        return [*[copy.launch() for copy in copies], *self.write()]

    def emit_program(self) -> None:
        """Write `pid`, which is wide where tiles times programs are."""
        self.emit(f"pid = {program_number(self.rows * self.row)}")

    def written(self, grid: int, tile: int, warps: int = 0) -> KernelSource:
        arguments = ", ".join([f"p{k}" for k in range(len(self.operands))] + self.numbers.names)
        lines = [f"    {line}\n" for line in self.numbers.quartered()] + self.lines
        text = f"@triton.jit\ndef NAME({arguments}):\n" + "".join(lines)
        each = 256 if warps or self.loads_of_elements() <= MANY_LOADS else 128
        warps = warps or power_of_two(min(16, max(1, tile // each)))
        return KernelSource(text, list(self.operands), grid, warps, self.numbers.found,
                            notes=KernelNotes(self._values(), self.tiles))

    def _values(self) -> list[NamedValue]:
        """The values that variables are elements of."""
        reads = [*((t, e) for (t, _), e in self.builder.reads().items()),
                 *self.elements.items()]
        names = {name: e for w in self.writers for name, e in w.named.items()}
        known = {x: None for w in self.writers for x in w.locals.items()}
        return [*named_values(names, reads, known)]

    # --------------------------------------------------------------------------- tiles

    def axes(self, o_start: str, rows: int, block_o: int, i_start: str, row: int, block_i: int,
             ends: tuple[str, str] | None = None,
             by_lanes: bool = False) -> tuple[str | None, str | None]:
        """Write `o`, `i`, their masks and `inside`, the mask of the tile.

        `by_lanes`: neighbours are those of other lanes, none of the same thread.
        """
        self.tiles = {"o": block_o, "i": block_i}
        self.emit(f"o = {o_start} + tl.arange(0, {block_o})[:, None]")
        along = f"tl.arange(0, {block_i})"
        self.emit(f"i = {i_start} + {f'fm.by_lanes({along})' if by_lanes else along}[None, :]")
        o_end, i_end = ends or (self.n(rows, "rows", near=False), self.n(row, "row"))
        o_mask = "mo" if self.numbers.uneven(rows, block_o) else None
        i_mask = "mi" if self.numbers.uneven(row, block_i) else None
        if o_mask:
            self.emit(f"mo = o < {o_end}")
        if i_mask:
            self.emit(f"mi = i < {i_end}")
        self.emit(f"inside = (o < {o_end}) & (i < {i_end})")
        self.emit("zero = (o + i) * 0")  # of the shape of the tile
        return o_mask, i_mask

    def blocks(self) -> tuple[int, int]:
        """Rows and places of a tile without reductions."""
        if self.row == 1:
            return min(self.extent(self.rows, TILE), TILE), 1
        block_i = min(self.extent(self.row, TILE if self.rows == 1 else 1), TILE)
        if has_transposed_reads(self.kernel, self.builder) and self.rows >= 32 and self.row >= 32:
            side = TRANSPOSED_TILE if self.loads_of_elements() <= MOST_LOADS else NARROW_TILE
            return side, side
        fits = max(1, TILE // block_i)
        return min(self.extent(self.rows, fits), fits), block_i

    def loads_of_elements(self) -> int:
        """How many numbers a kernel reads for each element, which registers hold at one time."""
        both = {self.kernel.o, self.kernel.i}
        return sum(e.op == "load" and both <= e.variables
                   for e in reachable_expressions(self.elements.values()))

    def begin_tiles(self) -> tuple[TileWriter, int, int]:
        """Write the tile of a program without reductions; with how many programs and elements."""
        block_o, block_i = self.blocks()
        across = -(-self.row // block_i)
        self.emit_program()
        along = self.n(across, "across", near=False)
        i_start = f"(pid % {along}) * {block_i}"
        run = run_of_rows(self.kernel, self.builder) if block_o == block_i > 1 else None
        if run is not None and not self.any_size and 2 * -(-run // block_o) * block_o <= 3 * run:
            w = self._tile_in_run(run, block_o, along, i_start)
            tiles = self.rows // run * -(-run // block_o)
        else:
            w = self.tile_writer(*self.axes(f"(pid // {along}) * {block_o}", self.rows, block_o,
                                            i_start, self.row, block_i))
            tiles = -(-self.rows // block_o)
        self.load_early(w)
        return w, tiles * across, block_o * block_i

    def _tile_in_run(self, run: int, side: int, along: str, i_start: str) -> TileWriter:
        """Write a tile of rows of one run, whose remainders are seen to go on."""
        tiles, o = -(-run // side), Index.of(self.kernel.o)
        self.tiles = {"o": side, "i": side}
        # of the shape of rows, as their masks are
        self.emit(f"run = pid // {along} // {tiles} + tl.full(({side}, 1), 0, tl.int32)")
        self.emit(f"at = pid // {along} % {tiles} * {side} + tl.arange(0, {side})[:, None]")
        self.emit(f"i = {i_start} + tl.arange(0, {side})[None, :]")
        self.emit(f"o = run * {run} + at")
        self.emit(f"mo = at < {run}")
        i_mask = "mi" if self.row % side else None
        if i_mask:
            self.emit(f"mi = i < {self.row}")
        self.emit(f"inside = (at < {run}) & (i < {self.row})")
        self.emit("zero = (o + i) * 0")
        w = self.tile_writer("mo", i_mask)
        w.atoms = {Quotient(o, run): "run", Remainder(o, run): "at"}
        return w

    def load_early(self, w: TileWriter) -> None:
        """Read what lasts, and wait for the launches before only then.

        So it is on its way while these end. Where there is much to read that is no gain.
        """
        if self.rows * self.row > MOST_EARLY:
            return
        loads = [e for e in reachable_expressions(self.elements.values()) if e.op == "load"
                 and e.aux[0] in self.options.never_written and not computed_in(e)]
        for e in loads:
            w.expression(e)
        if loads:
            self.emit("fm.grid_dependency_wait()")

    # --------------------------------------------------------------------------- members

    def is_materialized(self, t: Tensor) -> bool:
        return t in self.schedule.stored

    def value(self, w: TileWriter, m: Member) -> None:
        """Compute a member that is no reduction, and store it where others read it."""
        t = m.tensor
        if m.role in ANY_FLAG_ROLES:
            self._set_any_flag(w, m)
            return
        w.locals[t] = self.computed(w, t)
        if not self.is_materialized(t):
            return
        if m.role == "row":
            self.store_in_rows(w, t)
            return
        mask = "inside" if w.masks["o"] or w.masks["i"] else None
        where = f"{self.pointer(t)} + {w.index(self.kernel.places[m.role], is_wide(t))} + zero"
        self.emit(f"tl.store({where}, {w.stored(w.locals[t], t)}"
                  f"{f', mask={mask}' if mask else ''})")

    def computed(self, w: TileWriter, t: Tensor) -> str:
        """Compute a value, as its readers in other kernels see it."""
        value = w.expression(self.elements[t])
        return w.as_stored(value, t) if self.is_materialized(t) else value

    def _set_any_flag(self, w: TileWriter, m: Member) -> None:
        """Store that a condition holds, where it does and no program before has.

        Of 2^26 elements that are all true, those that begin together store it.
        """
        at = self.pointer(m.tensor)
        seen = self.named(f"tl.load({at})")
        place, inside = ("zero", "inside") if m.role == "any_flag" else (
            "o * 0", w.masks["o"] or "(o >= 0)")
        holds = w.expression(self.elements[m.tensor])
        self.emit(f"tl.store({at} + {place}, 1, mask={holds} & {inside} & ({seen} == 0))")

    def store_in_rows(self, w: TileWriter, t: Tensor) -> None:
        """Store a number for each row."""
        mask = w.masks["o"]
        self.emit(f"tl.store({self.pointer(t)} + o, {w.stored(w.locals[t], t)}"
                  f"{f', mask={mask}' if mask else ''})")

    def reductions_of(self, members: list[Member]) -> dict[Tensor, TileReduction]:
        """The reductions among some members."""
        return {m.tensor: tile_reduction(m.tensor) for m in members if isinstance(m.tensor, Reduce)}

    def accumulators(self, fold: TileReduction, shape: tuple[int, int]) -> list[str]:
        """Write the initial accumulators of a reduction, over a tile."""
        return [self.named(text) for text in fold.initial(str(shape))]

    def begin_last_arrival(self, arrival_counters: ArrivalCounters, which: str, count: str) -> str:
        """Write the arrival of a program, and begin the branch of the last of `count` programs.

        An atomic operation that acquires and releases comes between the stores of the others and
        its loads, and a barrier between those of its own threads and that.
        """
        at = f"{self.pointer(arrival_counters)} + {which}"
        self.emit("tl.debug_barrier()")
        self.emit(f"done = tl.atomic_add({at}, 1, sem='acq_rel')")
        self.emit(f"if done == {count} - 1:")
        self.indent = "        "
        return at

    def end_last_arrival(self, at: str) -> None:
        """Set the arrival counter to 0 again, and end the branch."""
        self.emit(f"tl.store({at}, 0)")
        self.indent = "    "

    def reduction_operands(self, w: TileWriter, t: Tensor, fold: TileReduction,
                           place: str) -> list[str]:
        """The operands of a reduction in a tile: values, and indices for argmax and argmin."""
        values = [w.name(fold.masked(w.expression(self.elements[t]), "inside"))]
        if fold.is_place:
            values.append(w.name(f"tl.where(inside, {place}, {PLACES_END}).to(tl.int32)"))
        return values


def is_wide(t: Tensor) -> bool:
    """Whether places in a tensor may need 64 bits."""
    return isinstance(t.size, int) and t.size >= 2**31


def program_number(elements: int) -> str:
    """The number of a program as text, wide where tiles times programs are."""
    return f"tl.program_id(0){'.to(tl.int64)' if elements >= 2**31 - 2**20 else ''}"
