"""Reductions over columns as Triton functions: programs reduce rows, then combine partials.

The last program to finish combines few partials; a second launch combines many.
"""

from __future__ import annotations

from functools import cached_property

from functrans.core.record import Record
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import reachable_expressions
from functrans.lowering.loops.index import Index, LoopVar, Quotient, Remainder, flatten
from functrans.lowering.loops.runs import is_constant_run, visible_run
from functrans.lowering.loops.steps import step_along
from functrans.lowering.loops.tensor import Tensor, item_size
from functrans.lowering.rules.elementwise import ELEMENTWISE
from functrans.lowering.schedule.kernel import Member
from functrans.lowering.triton.kernels.expressions import TileWriter
from functrans.lowering.triton.kernels.kernel_source import (
    ArrivalCounters,
    KernelOperand,
    KernelSource,
    PartialResults,
    power_of_two,
)
from functrans.lowering.triton.kernels.reductions import (
    REDUCED_AT_ONCE,
    TileReduction,
    partials_of,
    reduce_partials,
    second_launch,
)
from functrans.lowering.triton.kernels.writer import TILE, TritonKernelWriter, is_wide
from functrans.lowering.triton.templates.kernel import MOST_ARRIVAL_COUNTERS

__all__ = ["ColumnReductionWriter", "RowSplit"]

COLUMN_TILE = 128  # columns that a program reduces
LEAST_COLUMNS = 32  # a line of the cache in float32
ROW_TILE = 2048
# Elements of four bytes that a program reduces at least: four tiles take as long as a second
# launch, 2 us
SHARE = 1 << 13
NARROWEST = 4  # columns that a program reduces where there are few: half of what is read at once
# Elements that the last program combines at most. A second launch takes 1.4 us on an H100, and
# one multiprocessor reads 16 KB in 0.3.
LAST = 4096
WARP = 32
# Elements of a program where each takes about as long as two values of lgamma, in additions: those
# of 2,048 took 247 registers, of which one program fits a multiprocessor
HEAVY_TILE, HEAVY = 512, 80
# Rows that a thread reduces alone, and numbers that it holds meanwhile
MOST_ROWS_OF_A_THREAD, MOST_NUMBERS = 32, 160
# Programs for each multiprocessor from which on what they do at one time hides what each waits for
WAVES = 16
# Programs of a multiprocessor whose threads read many numbers of each element: those of 16 warps,
# with 86 registers a thread, were alone there, so that nothing hid what they waited for
RESIDENT = 5
# Neighbours that a thread reads at once: 8 bytes of bfloat16 and more
SEEN = 4
# Loads of an element of which sums do not count: the gradient of a batch norm has few of each
FEW_LOADS = 8


class RowSplit(Record):
    """How programs share rows: `splits` for each part and each of `across` tiles of columns."""

    splits: int
    across: int
    block_o: int
    block_i: int

    @property
    def tile(self) -> int:
        return self.block_o * self.block_i


class ColumnReductionWriter(TritonKernelWriter):
    """Writes reductions over the rows of each part, and of whole parts."""

    def write(self) -> list[KernelSource]:
        keeps = any(m.role == "reduce_column" for m in self.kernel.members)
        walk = self._columns() if keeps else self._parts()
        per_part = self.n(self.per_part, "per_part", near=False)
        if keeps:
            along = 1
            o_start, i_start = f"part * {per_part} + t * {walk.block_o}", f"column * {walk.block_i}"
        else:
            along = -(-self.row // walk.block_i)
            around = self.n(along, "along", near=False)
            o_start = f"part * {per_part} + (t // {around}) * {walk.block_o}"
            i_start = f"(t % {around}) * {walk.block_i}"
        self.emit_program()
        sides, share, both = [self.n(value, name, near=False) for value, name in (
            (walk.across, "across"), (walk.splits, "programs"),
            (walk.across * walk.splits, "both"))]
        self.emit(f"column = pid % {sides}")
        self.emit(f"split = pid // {sides} % {share}")
        self.emit(f"part = pid // {both}")
        tiles = -(-self.per_part // walk.block_o) * along
        accumulators = self.walk_begins(walk, tiles, share)
        w = self.walked(walk, o_start, i_start)
        self.walk_members(w, accumulators)
        return self.finished(walk, accumulators, self._warps(walk, tiles))

    def _warps(self, walk: RowSplit, tiles: int) -> int:
        """Many for a tile that is all there is to do, as many as have whole columns for many."""
        if walk.tile <= HEAVY_TILE and self._is_heavy:
            return max(1, walk.tile // (4 * WARP))
        if self._reads_much and walk.block_i != self._columns_of_short_parts():
            return power_of_two(min(16, max(4, walk.tile // (WARP * self._elements_of_a_thread))))
        if tiles > 1 and not self.any_size and self._narrowest() == 1:
            # 16 bytes a thread: energies of 64 x 256 x 256 spins 9.9 us, with 8 bytes 11 to 14
            return power_of_two(min(16, max(1, walk.tile // (16 * WARP))))
        if tiles > 1 or self.any_size:
            return 0
        programs = self.parts * walk.across
        if programs < WAVES * self.options.target.multiprocessors:
            return spread(walk.tile)
        if walk.block_i == self._columns_of_short_parts():
            return max(1, min(4, walk.block_i // self._warp_columns()))
        elements = min(16, max(4, MOST_NUMBERS // max(1, self.loads_of_elements())))
        return power_of_two(min(16, max(1, walk.tile // (WARP * elements))))

    def _narrowest(self) -> int:
        """The bytes of the smallest numbers that are read for each element."""
        both = {self.kernel.o, self.kernel.i}
        return min([item_size(e.aux[0].dtype) for e in reachable_expressions(self.elements.values())
                    if e.op == "load" and both <= e.variables], default=4)

    def _columns(self) -> RowSplit:
        """A narrower tile where the last program has too many partials otherwise."""
        short = self._columns_of_short_parts()
        if short:
            return RowSplit(1, -(-self.row // short), self.extent(self.per_part), short)
        block_i, depth = self._columns_of_a_program(), self.extent(self.per_part)
        if self._reads_much and depth * LEAST_COLUMNS <= self._round:  # all rows of a part at once
            block_i = min(block_i, max(LEAST_COLUMNS, self._round // depth))
        while (walk := self._walk_of(block_i)).splits * block_i > LAST and block_i > LEAST_COLUMNS:
            block_i //= 2
        return walk

    def _walk_of(self, block_i: int) -> RowSplit:
        fits = max(1, self._round // block_i)
        block_o = min(self.extent(self.per_part, fits), fits)
        across = -(-self.row // block_i)
        splits = self._splits(-(-self.per_part // block_o), across * self.parts,
                              self.per_part * block_i)
        if self._orders:  # which the second launch does not know
            few = self.parts * across <= MOST_ARRIVAL_COUNTERS
            splits = min(splits, LAST // block_i) if few and self.options.has_arrival_counters \
                else 1
        return RowSplit(splits, across, block_o, block_i)

    @property
    def _orders(self) -> dict[Tensor, Member]:
        """The members whose columns are not those of their results."""
        return {m.tensor: m for m in self.kernel.members if m.order}

    def _parts(self) -> RowSplit:
        # few elements are one tile, for which memory answers once; loops over tiles wait for each
        tile = self._round
        if self._is_heavy:
            tile = HEAVY_TILE
        elif self.per_part * self.row <= SHARE and not self.any_size:
            tile = SHARE
        block_i = min(self.extent(self.row), tile)
        fits = max(1, tile // block_i)
        block_o = min(self.extent(self.per_part, fits), fits)
        tiles = -(-self.per_part // block_o) * -(-self.row // block_i)
        return RowSplit(self._splits(tiles, self.parts, self.per_part * self.row), 1, block_o,
                        block_i)

    def _splits(self, tiles: int, places: int, elements: int) -> int:
        """How many programs share the tiles of a place: so that none has one more than others."""
        resident = RESIDENT if self._reads_much else 2 * RESIDENT
        most = -(-resident * self.options.target.multiprocessors // places)
        wanted = max(1, min(tiles, elements // self._least_share()))
        rounds = max(-(-tiles // most), tiles // wanted)
        return -(-tiles // rounds)

    def _least_share(self) -> int:
        """Elements of a program at least: fewer where many operands are read for each of them."""
        if self._is_heavy:
            return SHARE // 4
        size = self.rows * self.row
        stored = [m.tensor for m in self.kernel.members if m.role == "full"
                  and self.schedule.is_stored(m.tensor)]
        moved = sum(min(t.size, size) * item_size(t.dtype) if isinstance(t.size, int) else 0
                    for t in (*self.kernel.loads(self.builder), *stored))
        return max(ROW_TILE, min(SHARE, SHARE * 4 * size // max(moved, 1)))

    @property
    def _reads_much(self) -> bool:
        """Whether registers for what is read and summed of 16 elements of a thread, of which it may
        have 8, leave few programs room."""
        numbers = self.loads_of_elements() + len(self._column_reductions())
        return 16 * numbers > MOST_NUMBERS and self.loads_of_elements() > FEW_LOADS \
            and not self.any_size

    @property
    def _elements_of_a_thread(self) -> int:
        """So many that `RESIDENT` programs of four warps fit a multiprocessor."""
        most = max(1, MOST_NUMBERS // 2 // max(1, self.loads_of_elements()))
        return min(4, 1 << (most.bit_length() - 1))

    @cached_property
    def _round(self) -> int:
        """Elements of a round: of four warps where much is read for each of them."""
        return 4 * WARP * self._elements_of_a_thread if self._reads_much else ROW_TILE

    @property
    def _is_heavy(self) -> bool:
        """Whether arithmetic takes longer than memory, and most registers, of many elements."""
        if self.per_part * self.row <= SHARE:
            return False
        return sum(ELEMENTWISE.weight(e.op) for e in reachable_expressions(self.elements.values())
                   if e.args and e.depends_on(self.kernel.i)) >= HEAVY

    def _columns_of_a_program(self) -> int:
        """As many as are read at once, fewer where that fills the GPU in one launch."""
        width = min(self.extent(self.row), COLUMN_TILE)
        if self.per_part * NARROWEST <= SHARE and not self._rereads_rows():
            while (width > NARROWEST and width * self.per_part > TILE
                   and self.parts * self.row < self.options.target.walkers * width):
                width = max(NARROWEST, width // (4 if self.any_size else 2))
        return width

    def _rereads_rows(self) -> bool:
        """Whether programs of other columns read the same lines of memory, one for each row."""
        o, i = self.kernel.o, self.kernel.i
        return any(step_along(e.aux[1], i) != 1 and step_along(e.aux[1], o) not in (0, 1)
                   for e in reachable_expressions(self.elements.values()) if e.op == "load")

    def _is_by_lanes(self, width: int) -> bool:
        """Whether Triton does not see of most of what is read that columns are neighbours.

        It gives a thread four columns where it sees it of one operand, and each of the other loads
        then reads four lines with every fourth number of a warp's columns. It sees those of
        remainders where a power of two divides the divisors: heads of 40 go on for 8 columns.
        """
        if self.any_size:
            return False
        i = self.kernel.i
        places = [e.aux[1] for e in reachable_expressions(self.elements.values())
                  if e.op == "load" and i in e.variables]
        places = [place for place in places if not is_constant_run(place, i, width)]
        hidden = sum(i not in place.terms and visible_run(place, i, width) < SEEN
                     for place in places)
        return 2 * hidden > len(places)

    def _columns_of_short_parts(self) -> int:
        """Columns of a program that has all rows of a part, where threads reduce them alone.

        So many that each warp has whole columns: nothing goes through shared memory. 0 where parts
        are long, or there are too few of them for all multiprocessors.
        """
        depth = self.extent(self.per_part)
        if self.any_size or depth > MOST_ROWS_OF_A_THREAD:
            return 0
        width = self._warp_columns()
        while depth * width * self.loads_of_elements() > MOST_NUMBERS * WARP:
            width //= 2
        if width < WARP:
            return 0
        while width < min(self.extent(self.row), 4 * self._warp_columns()) \
                and 4 * -(-self.row // (2 * width)) * 2 * width <= 5 * self.row:
            width *= 2
        programs = self.parts * -(-self.row // width)
        return width if programs >= WAVES * self.options.target.multiprocessors else 0

    def _warp_columns(self) -> int:
        """Columns that a warp reads at once: 16 bytes a thread where rows are aligned."""
        return WARP * (4 if self.row % 4 == 0 else 1)

    # --------------------------------------------------------------------------- the walk

    def walk_begins(self, walk: RowSplit, tiles: int, share: str) -> dict[Tensor, list[str]]:
        """Write accumulators and the loop over the tiles of a program, where it has several."""
        shape = (walk.block_o, walk.block_i)
        found = {t: self.accumulators(fold, shape) for t, fold in self._column_reductions().items()}
        if tiles == walk.splits and not self.any_size:
            self.emit("t = split")
        else:
            self.emit(f"for t in range(split, {self.n(tiles, 'tiles', near=False)}, {share}):")
            self.indent = "        "
        return found

    def walked(self, walk: RowSplit, o_start: str, i_start: str) -> TileWriter:
        """Write the tile of a step of the walk."""
        per_part = self.n(self.per_part, "per_part", near=False)
        w = self.tile_writer(*self.axes(
            o_start, self.per_part, walk.block_o, i_start, self.row, walk.block_i,
            (f"(part + 1) * {per_part}", self.n(self.row, "row")),
            self._is_by_lanes(walk.block_i)))
        if not self.any_size:
            self._name_what_tiles_share(w, o_start, walk.block_o, i_start, walk.block_i)
        if not self.in_block:
            self.load_early(w)
        return w

    def _name_what_tiles_share(self, w: TileWriter, o_start: str, block_o: int, i_start: str,
                               block_i: int) -> None:
        """Write quotients that are one number of a tile as scalars, and the remainders beside them.

        Tiles begin at multiples of their sides. Group norms read a number for each image and group
        of features: as elements the loads of four took 89 us over 64 x 64 x 64 x 16 of float32.
        """
        # columns may stand in another order in a tile
        for v, start, place, block in (
                (self.kernel.o, o_start, f"tl.arange(0, {block_o})[:, None]", block_o),
                (self.kernel.i, i_start, f"(i - ({i_start}))", block_i)):
            if w.masks[v.name] is not None:
                continue
            for divisor in sorted(self._divisors(v)):
                if divisor % block == 0:
                    quotient, rest = self.fresh(), self.fresh()
                    self.emit(f"{quotient} = ({start}) // {divisor}")
                    self.emit(f"{rest} = ({start}) % {divisor} + {place}")
                    w.atoms |= {Quotient(Index.of(v), divisor): quotient,
                                Remainder(Index.of(v), divisor): rest}

    def _divisors(self, v: LoopVar) -> set[int]:
        """By what a number of rows or columns is divided in the places that are read."""
        found: set[int] = set()
        waiting = [e.aux[1] for e in reachable_expressions(self.elements.values())
                   if e.op == "load"]
        waiting += [e.aux for e in reachable_expressions(self.elements.values())
                    if e.op == "index"]
        while waiting:
            for atom in waiting.pop().terms:
                if isinstance(atom, (Quotient, Remainder)):
                    if atom.index == Index.of(v) and isinstance(atom.divisor, int):
                        found.add(atom.divisor)
                    waiting.append(atom.index)
        return found

    def walk_members(self, w: TileWriter, accumulators: dict[Tensor, list[str]]) -> None:
        """Write what is computed at each tile, and the end of the loop."""
        for m in self.kernel.members:
            if m.tensor in accumulators:
                self._accumulate(w, m, accumulators[m.tensor])
            else:
                self.other(w, m)
        self.indent = "    "

    def other(self, w: TileWriter, m: Member) -> None:
        """A member that is no reduction over rows."""
        self.value(w, m)

    def _column_reductions(self) -> dict[Tensor, TileReduction]:
        return self.reductions_of([m for m in self.kernel.members if m.role in ("reduce_column",
                                                                                "reduce_all")])

    def _accumulate(self, w: TileWriter, m: Member, names: list[str]) -> None:
        place, fold = "", self._column_reductions()[m.tensor]
        if fold.is_place:
            per_part = self.n(self.per_part, "per_part", near=False)
            place = f"(o - part * {per_part})" if self.parts > 1 else "o"
            if m.role == "reduce_all":
                place = f"({place} * {self.n(self.row, 'row')} + i)"
        values = self.reduction_operands(w, m.tensor, fold, place)
        self.emit(f"{', '.join(names)} = {fold.combined(names, values)}")

    # --------------------------------------------------------------------------- its end

    def finished(self, walk: RowSplit, accumulators: dict[Tensor, list[str]],
                 warps: int = 0) -> list[KernelSource]:
        """Reduce the accumulators of each program, then those of all programs."""
        self.emit(f"c = column * {walk.block_i} + tl.arange(0, {walk.block_i})[None, :]")
        left = {role: self._stored(walk, accumulators, role)
                for role in ("reduce_column", "reduce_all")}
        launches: list[KernelSource] = []
        ticket, arrival_counters = 0, ArrivalCounters(0)
        for role, partials in left.items():
            count, width, counters = self._partial_sizes(walk, role)
            if partials and self.options.has_arrival_counters and count * width <= LAST \
                    and counters <= MOST_ARRIVAL_COUNTERS:
                self._reduced_by_last_program(walk, role, partials, arrival_counters, ticket)
                ticket += counters
                arrival_counters.count = ticket
            else:
                if self._orders.keys() & partials.keys():
                    raise UnsupportedKernel("results in another order than their parts")
                launches += [second_launch(t, fold, found, NARROWEST, self.any_size)
                             for t, (fold, found) in partials.items()]
        grid = self.parts * walk.splits * walk.across
        return [self.written(grid, walk.tile, warps), *launches]

    def _partial_sizes(self, walk: RowSplit, role: str) -> tuple[int, int, int]:
        """How many programs reduce into one place, how many places they have, and how often."""
        if role == "reduce_all":
            return walk.splits * walk.across, 1, self.parts
        return walk.splits, walk.block_i, self.parts * walk.across

    def _stored(self, walk: RowSplit, accumulators: dict[Tensor, list[str]],
                role: str) -> dict[Tensor, tuple[TileReduction, list[PartialResults]]]:
        """Store what a program found: results, or partials, which are given."""
        left: dict[Tensor, tuple[TileReduction, list[PartialResults]]] = {}
        folds = self.reductions_of([m for m in self.kernel.members if m.role == role])
        count, _, _ = self._partial_sizes(walk, role)
        for t, fold in folds.items():
            names = self.named_all(len(accumulators[t]), fold.reduced(accumulators[t], 0))
            if role == "reduce_all":
                names = self.named_all(len(names), fold.reduced(names, 1))
            if count == 1:
                self._store_result(t, fold, names, role)
                continue
            partials = partials_of(fold, count,
                                   self.parts if role == "reduce_all" else self.parts * self.row)
            sides = self.n(walk.across, "across", near=False)
            split = f"split * {sides} + column" if role == "reduce_all" and walk.across > 1 \
                else "split"
            for p, name in zip(partials, names, strict=True):
                self._store(p, f"({split}) * {self._step(p, role)} + {self._place(role)}", name,
                            role)
            left[t] = fold, partials
        return left

    def _step(self, partial: PartialResults, role: str) -> str:
        return self.n(partial.size, "size of all" if role == "reduce_all" else "size")

    def _place(self, role: str) -> str:
        return "part" if role == "reduce_all" else f"part * {self.n(self.row, 'row')} + c"

    def _reduced_by_last_program(self, walk: RowSplit, role: str,
                                 left: dict[Tensor, tuple[TileReduction, list[PartialResults]]],
                                 arrival_counters: ArrivalCounters,
                                 first: int) -> None:
        """The last program to finish combines the partials of all."""
        count, width, _ = self._partial_sizes(walk, role)
        sides, share = (self.n(walk.across, "across", near=False),
                        self.n(walk.splits, "programs", near=False))
        all_of = share if role == "reduce_column" else f"{share} * {sides}"
        which = "part" if role == "reduce_all" else f"part * {sides} + column"
        done = self.begin_last_arrival(arrival_counters,
                                       f"{f'{self.n(first)} + ' if first else ''}{which}", all_of)
        depth = min(self.extent(count), max(1, REDUCED_AT_ONCE // width))
        # along the second axis where there is one place: Triton 3.6 would give each thread all of a
        # tile of one column
        axis = int(role == "reduce_all")
        tile = (1, depth) if axis else (depth, width)
        mask = f"c < {self.n(self.row, 'row')}" if role == "reduce_column" else None
        for t, (fold, partials) in left.items():
            names = reduce_partials(self.emit, self.fresh, fold,
                                    [self.pointer(p) for p in partials],
                                    tile, axis, f"({all_of})", self._step(partials[0], role),
                                    self._place(role), mask)
            self._store_result(t, fold, names, role)
        self.end_last_arrival(done)

    def _store_result(self, t: Tensor, fold: TileReduction, names: list[str], role: str) -> None:
        value = self.tile_writer(None, None).stored(self.named(fold.result(names)), t)
        self._store(t, self._place_of(t, role), value, role)

    def _place_of(self, t: Tensor, role: str) -> str:
        """The place of a result."""
        if t not in self._orders:
            return self._place(role)
        place = Index.of(LoopVar("part", self.parts)) * self.row \
            + Index.of(LoopVar("c", self.row))
        index = self._orders[t].unflatten(self.builder, place)
        return self.tile_writer(None, None).index(flatten(index, t.shape), is_wide(t))

    def _store(self, t: KernelOperand, place: str, value: str, role: str) -> None:
        if role == "reduce_all":
            one = "tl.full((1, 1), 0, tl.int32)"
            self.emit(f"tl.store({self.pointer(t)} + {place} + {one}, {value})")
        else:
            row = self.n(self.row, "row")
            self.emit(f"tl.store({self.pointer(t)} + {place}, {value}, mask=c < {row})")


def spread(tile: int) -> int:
    """Warps for a tile that is all that a program computes: 4 elements a thread."""
    return power_of_two(min(16, max(4, tile // 128)))
