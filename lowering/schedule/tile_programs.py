"""Runs of small steps over one axis, as programs that keep what belongs to an index in registers.

Maps over tasks, samples or points of small networks, controllers and systems are many steps that
each do little: a launch takes longer than its arithmetic, and values go to memory between them.
Such steps are one launch here: a program takes an index of the axis, or a block of them, multiplies
tiles by tensor cores with small matrices from the second-level cache, and writes what others read.

Of a sum over all indices, the gradient of weights say, each program stores its part, and a second
launch adds them up. Other steps that mix the axis stay by themselves, behind the programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from functrans.core.record import Record
from functrans.lowering.loops.expr import IterationSpaceMismatch
from functrans.lowering.loops.tensor import Call, Gemm, ScatterTensor, Stored, Tensor, item_size
from functrans.lowering.schedule.chains import Chain, tensors_of
from functrans.lowering.schedule.group import Schedule, Step
from functrans.lowering.schedule.kernel import Kernel, Member, Reads
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.schedule.tile_costs import TileShape, cut, launched_time, tiled_time
from functrans.lowering.schedule.tile_space import TileMismatch, TileSpace, TileValue
from functrans.lowering.schedule.unfused import ALL_FUSED, UnfusedValues

__all__ = ["TileProgram", "form_tile_programs"]

LEAST_INDICES = 32
"""Of an axis whose programs can fill multiprocessors."""
LEAST_PRODUCTS = 2
GAIN = 0.75
"""What tile programs may take, by estimate, of the time of their steps: both are guesses."""
MOST_FAILURES = 2
"""Of a tile program, before its steps have launches of their own: the first one halves it."""


class TileProgram(Chain):
    """Steps of which a program computes those of one index of an axis, or of a block of them."""

    name = "tile program"

    def __init__(self, steps: Sequence[Step], values: Sequence[TileValue], space: TileSpace,
                 shape: TileShape, inner: Collection[Tensor], made: Sequence[Tensor],
                 rounded: Collection[Tensor]) -> None:
        reads = dict.fromkeys(t for v in values for t in v.outside)
        super().__init__(steps, space.count, inner, reads, made)
        self.values, self.space, self.shape = tuple(values), space, shape
        self.rounded = frozenset(rounded)
        self.source = next((v.tensor.source for v in values if v.tensor.source is not None), None)


class _Run(Record):
    """Steps of a schedule in another order: those before, of programs, and behind them.

    Those that are `parted` were values of a kernel, some others of which are behind the programs.
    """

    before: list[Step]
    tiled: list[tuple[Step, list[TileValue]]]
    after: list[Step]
    end: int
    parted: frozenset[Tensor]


def form_tile_programs(schedule: Schedule, outputs: Collection[Tensor], reads: Reads,
                       target: Target = HOPPER, unfused: UnfusedValues = ALL_FUSED) -> Schedule:
    """The schedule with tile programs where they are estimated to be faster than launches."""
    if sum(type(s) is Gemm for s in schedule.steps) < LEAST_PRODUCTS:
        return schedule
    return _TileFormer(schedule, outputs, reads, target, unfused).run()


class _TileFormer:
    def __init__(self, schedule: Schedule, outputs: Collection[Tensor], reads: Reads,
                 target: Target, unfused: UnfusedValues) -> None:
        self.schedule, self.target, self.unfused, self.reads = schedule, target, unfused, reads
        self.steps = list(schedule.steps)
        self.stored = set(schedule.stored)
        self.outputs = frozenset(outputs)

    def is_stored(self, t: Tensor) -> bool:
        return isinstance(t, Stored) or t in self.stored

    def run(self) -> Schedule:
        for count, by_rows in self._axes():
            k = 0
            while k < len(self.steps):
                k = self._form(k, count, by_rows)
        return replace(self.schedule, steps=self.steps, stored=self.stored)

    def _axes(self) -> list[tuple[int, bool]]:
        """The axes that several products have, those of most products first."""
        found: Counter[tuple[int, bool]] = Counter()
        for gemm in self.steps:
            if type(gemm) is Gemm:
                found.update(set(_axes_of(gemm)))
        axes = [x for x, n in found.items() if n >= LEAST_PRODUCTS and x[0] >= LEAST_INDICES]
        return sorted(axes, key=lambda x: (-found[x], not x[1]))

    # --------------------------------------------------------------------------- runs

    def _form(self, first: int, count: int, by_rows: bool) -> int:
        """Put tile programs in the place of the steps from a first one on; where to look next."""
        run = self._run(first, count, by_rows)
        if run is None:
            return first + 1
        products = sum(v.product is not None and not v.total
                       for _, values in run.tiled for v in values)
        behind = self.steps[run.end:]
        if products < LEAST_PRODUCTS:
            return first + 1
        pieces = cut([values for _, values in run.tiled], count, by_rows, self.target,
                     self.unfused.tiled)
        made: list[TileProgram] = []
        tiled = {v.tensor for _, values in run.tiled for v in values}
        stored = self._stored_behind(run.before, {*tiled, *run.parted})
        begin = 0
        for size, shape in pieces:
            piece = run.tiled[begin:begin + size]
            rest = [s for s, _ in run.tiled[begin + size:]]
            begin += size
            program = self._program([s for s, _ in piece], shape, count, by_rows,
                                    [*run.before, *made, *rest, *run.after, *behind], stored)
            made.append(program)
        if not self._pays(made, [s for s, _ in run.tiled]):
            return first + 1
        self.stored.update(t for t in (*[t for p in made for t in p.results], *(run.parted - tiled))
                           if t in stored and not isinstance(t, Stored))
        self.steps[first:run.end] = [*run.before, *made, *run.after]
        return first + len(run.before) + len(made)

    def _stored_behind(self, before: Sequence[Step], made: Collection[Tensor]) -> set[Tensor]:
        """What is stored when programs have made some values.

        But not those of them that steps before the programs compute for themselves.
        """
        stored = {*self.stored, *made}
        while early := {t for s in before for t in _read(s, stored)
                        if t in stored and t not in self.stored}:
            stored -= early
        return stored

    def _run(self, first: int, count: int, by_rows: bool) -> _Run | None:
        start = self.steps[first]
        space = TileSpace(count, by_rows, self.is_stored, self._shared(count))
        tiled: list[tuple[Step, list[TileValue]]] = []
        before, after = list[Step](), list[Step]()
        made, later, parted = set[Tensor](), set[Tensor](), set[Tensor]()
        end = first
        for step in self.steps[first:]:
            if isinstance(step, Call) and (step.has_effect or step.updated is not None):
                break
            read = {*self.reads.of(step, self.is_stored), *_bases(step)}
            values, rest = ([], step) if any(t in later for t in read) \
                else self._tiled(step, space, later)
            if step is start and not values:
                return None
            end += 1
            if values:
                tiled.append((self._only(step, values), values))
                made.update(v.tensor for v in values)
                later.update(v.tensor for v in values if v.total)
            if rest is None:
                continue
            parted.update(v.tensor for v in values)
            if values or not made.isdisjoint(read) or not later.isdisjoint(read):
                after.append(rest)
                later.update(tensors_of(rest))
            else:
                before.append(rest)
        return _Run(*self._connected(before, tiled, after), end, frozenset(parted))

    def _tiled(self, step: Step, space: TileSpace, later: Collection[Tensor]
               ) -> tuple[list[TileValue], Step | None]:
        """The values of a step that tiles compute, and the step for the others, if there are."""
        mine = tensors_of(step)
        if any(self.unfused.tiled.get(t, 0) >= MOST_FAILURES for t in mine) \
                or self.unfused.why(mine):
            return [], step
        if type(step) is Gemm:
            try:
                return [_checked(space.product(step), later)], None
            except (TileMismatch, IterationSpaceMismatch):
                space.forms.pop(step.results[0], None)
            try:
                return [_checked(space.total_product(step), later)], None
            except (TileMismatch, IterationSpaceMismatch):
                return [], step
        if not isinstance(step, Kernel):
            return [], step
        found: list[TileValue] = []
        rest: list[Member] = []
        waiting = set(later)
        for m in step.members:
            try:
                found.append(_checked(space.value(m.tensor), waiting))
                continue
            except TileMismatch:
                space.forms.pop(m.tensor, None)
                waiting.add(m.tensor)
            try:
                found.append(_checked(space.total(m.tensor), waiting))
            except TileMismatch:
                rest.append(m)
        return found, Kernel(step.domain, rest) if rest else None

    def _only(self, step: Step, values: Sequence[TileValue]) -> Step:
        """The part of a step that computes some values."""
        if not isinstance(step, Kernel):
            return step
        taken = {v.tensor for v in values}
        return Kernel(step.domain, [m for m in step.members if m.tensor in taken])

    def _connected(self, before: list[Step], tiled: list[tuple[Step, list[TileValue]]],
                   after: list[Step]) -> tuple[list[Step], list[tuple[Step, list[TileValue]]],
                                               list[Step]]:
        """Without steps that share nothing with products: they are behind the programs."""
        wanted = {id(s) for s, values in tiled if any(
            v.product is not None and not v.total for v in values)}
        readers: dict[Tensor, list[int]] = {}
        makers: dict[Tensor, int] = {}
        for k, (_, values) in enumerate(tiled):
            for v in values:
                makers[v.tensor] = k
                for how in v.inside:
                    readers.setdefault(how.tensor, []).append(k)
        waiting = [k for k, (s, _) in enumerate(tiled) if id(s) in wanted]
        seen = set(waiting)
        while waiting:
            values = tiled[waiting.pop()][1]
            near = [j for v in values for j in readers.get(v.tensor, ())]
            near += [makers[how.tensor] for v in values for how in v.inside]
            for j in near:
                if j not in seen:
                    seen.add(j)
                    waiting.append(j)
        apart = [s for k, (s, _) in enumerate(tiled) if k not in seen]
        return [*before, *apart], [x for k, x in enumerate(tiled) if k in seen], after

    def _shared(self, count: int) -> frozenset[Tensor]:
        """What products over an axis read as one matrix for all indices."""
        return frozenset(s.operands[1] for s in self.steps if type(s) is Gemm
                         and s.fields["batch0"] == s.fields["batch1"] == 1
                         and any(n == count for n, _ in _axes_of(s)))

    # --------------------------------------------------------------------------- programs

    def _program(self, steps: Sequence[Step], shape: TileShape, count: int, by_rows: bool,
                 others: Sequence[Step], stored: Collection[Tensor]) -> TileProgram:
        """The program of some steps, which leaves in memory what the others read there.

        That are those that are `stored`, with all that programs compute.
        """
        def is_stored(t: Tensor) -> bool:
            return isinstance(t, Stored) or t in stored

        space = TileSpace(count, by_rows, is_stored, self._shared(count))
        values = [v for s in steps for v in self._tiled(s, space, ())[0]]
        read = {*self.outputs}
        for s in others:
            read.update(_read(s, stored))
        return TileProgram(steps, values, space, shape,
                           [v.tensor for v in values if not (v.tensor in read or v.total)],
                           [v.tensor for v in values if v.tensor in read or v.total],
                           [v.tensor for v in values if self.is_stored(v.tensor)])

    def _pays(self, programs: Sequence[TileProgram], steps: Sequence[Step]) -> bool:
        """Whether the programs are estimated to take less time than launches of the steps."""
        tiled = sum(tiled_time(p.values, p.shape, p.space, _nbytes(p), self.target)
                    for p in programs)
        launched = sum(launched_time(s, self.is_stored, self.target) for s in steps)
        return tiled < GAIN * launched


def _checked(value: TileValue, later: Collection[Tensor]) -> TileValue:
    if any(t in later for t in value.outside):
        raise TileMismatch("it reads what is computed behind the programs")
    return value


def _read(step: Step, stored: Collection[Tensor]) -> list[Tensor]:
    """What a step reads from memory where these are stored."""
    def is_stored(t: Tensor) -> bool:
        return isinstance(t, Stored) or t in stored

    return [*(step.operands if isinstance(step, Call) else step.loads(step.builder(is_stored))),
            *_bases(step)]


def _bases(step: Step) -> list[Tensor]:
    """What the scatters of a step begin as."""
    return [m.tensor.base for m in step.members if isinstance(m.tensor, ScatterTensor)] \
        if isinstance(step, Kernel) else []


def _nbytes(program: TileProgram) -> int:
    total = 0
    for t in (*program.operands, *program.results):
        assert isinstance(t.size, int)
        total += t.size * item_size(t.dtype)
    return total + 2 * program.shape.programs * 4 * sum(
        v.form.rows * v.form.cols for v in program.values if v.total)


def _axes_of(gemm: Gemm) -> Iterator[tuple[int, bool]]:
    """The axes over which a product might be in tiles: rows of tiles, or one index a program."""
    f = gemm.fields
    batch, m = f["batch0"] * f["batch1"], f["m"]
    if not isinstance(batch, int) or not isinstance(m, int):
        return
    if batch > 1:
        yield batch, False
    else:
        yield m, True
        for n in gemm.results[0].shape[:1]:
            if isinstance(n, int) and 1 < n < m and m % n == 0:
                yield n, False
