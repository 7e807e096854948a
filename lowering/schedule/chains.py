"""Chains: steps that run one after another on a block of rows, before the next block begins.

Attention is the example: scores, the softmax of each row of them, and the product with the values
need an S x S matrix for each head. Step by step these matrices go to memory and back; block by
block (a head, or some rows of one) they stay in the cache of the thread that works on the block,
and take no other memory. Every value of a chain is split along its leading dimensions into equal
blocks, and whoever reads it in the chain reads only from the block of the same number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice

from functrans.core.dims import Size
from functrans.lowering.loops.expr import IterationSpaceMismatch
from functrans.lowering.loops.index import ZERO, Index, LoopVar
from functrans.lowering.loops.tensor import Call, Gemm, Tensor
from functrans.lowering.schedule.cpu_target import SERVER
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.group import FusionNote, Schedule, Step, has_constant_stride
from functrans.lowering.schedule.kernel import Domain, Kernel, Reads, accesses
from functrans.lowering.schedule.unfused import ALL_FUSED, UnfusedValues

__all__ = ["Chain", "form_chains", "tensors_of"]

# Kernels that read by transposed tiles begin at rows that are multiples of a tile.
TILE_ROWS = 64
MOST_IDLE = 64
"""A chain ends before so many steps in a row that read nothing of it: long programs are not walked
through for each product."""


class Chain(Call):
    """Steps of which each runs on one block of its rows at a time.

    There are `count` blocks; `inner` are the values that only the steps need.
    """

    name = "chain"

    def __init__(self, steps: Sequence[Step], count: int, inner: Collection[Tensor],
                 reads: Iterable[Tensor], made: Iterable[Tensor]) -> None:
        super().__init__(list(reads), list(made), None)
        self.steps = tuple(steps)
        self.count = count
        self.inner = tuple(inner)


class _ChainRefused(Exception):
    pass


def form_chains(schedule: Schedule, outputs: Collection[Tensor], reads: Reads,
                unfused: UnfusedValues = ALL_FUSED) -> Schedule:
    """The schedule with chains where values between products stay in the cache.

    Steps that make values which are `unfused` are in none.
    """
    if sum(isinstance(s, Gemm) for s in schedule.steps) < 2:
        return schedule
    return _ChainFormer(schedule, outputs, reads, unfused).run()


class _ChainFormer:
    def __init__(self, schedule: Schedule, outputs: Collection[Tensor], reads: Reads,
                 unfused: UnfusedValues) -> None:
        self.schedule = schedule
        self.unfused = unfused
        self.steps = list(schedule.steps)
        self.outputs = set(outputs)
        self.notes = list(schedule.notes)
        # made in the chain that is being formed, but not block by block
        self.spread: set[Tensor] = set()
        self.reads = {id(s): reads.of(s, schedule.is_stored) for s in self.steps}
        self.made = {id(s): self._made(s) for s in self.steps}
        self.readers = Counter(t for s in self.steps for t in self.reads[id(s)])

    def run(self) -> Schedule:
        k = 0
        done = set[Tensor]()
        while k < len(self.steps):
            if isinstance(self.steps[k], Gemm) and not self._is_barrier(self.steps[k]):
                self._form(k, done)
            done.update(self.made[id(self.steps[k])])
            k += 1
        return replace(self.schedule, steps=self.steps, notes=self.notes)

    def _made(self, step: Step) -> list[Tensor]:
        if isinstance(step, Call):
            return list(step.results)
        return [m.tensor for m in step.members if m.tensor in self.schedule.stored]

    def _is_barrier(self, step: Step) -> bool:
        return _is_barrier(step) or bool(self.unfused.why(tensors_of(step)))

    def _form(self, first: int, done: Collection[Tensor]) -> None:
        """Put a chain that begins with a product in the place of its steps, if it pays.

        The steps before have made what is `done`.
        """
        start = self.steps[first]
        assert isinstance(start, Gemm)
        count = start.fields["batch0"] * start.fields["batch1"]
        if not isinstance(count, int) or count < SERVER.least_blocks \
                or not self._fits(start, count, {}):
            return
        self.spread = {start.results[0]} if _is_spread(start, count) else set()
        chain: list[Step] = [start]
        before, after = list[Step](), list[Step]()
        made, later = set(self.made[id(start)]), set[Tensor]()
        earlier = self.schedule.after_of(start)
        end = first + 1
        refusals: list[FusionNote] = []
        idle = 0
        for step in islice(self.steps, end, None):
            if self._is_barrier(step) or idle > MOST_IDLE:
                break
            end += 1
            read = self.reads[id(step)]
            idle = 0 if read & made else idle + 1
            joins = bool(read & made) or isinstance(step, Gemm)
            waits = not all(t in made or t in earlier or t in done
                            for t in self.schedule.after_of(step))
            if waits or read & later:
                after.append(step)
            elif joins and self._fits(step, count, made, refusals):
                chain.append(step)
                made.update(self.made[id(step)])
                if isinstance(step, Gemm) and _is_spread(step, count):
                    self.spread.update(step.results)
            elif read & made:
                after.append(step)
            else:
                before.append(step)
                earlier.update(self.made[id(step)])
                continue
            if after and after[-1] is step:
                later.update(self.made[id(step)])
        self.notes.extend(refusals)
        chain, apart = self._pruned(chain)
        others = {id(s) for s in (*before, *apart)}
        before = [s for s in self.steps[first:end] if id(s) in others]
        inner = self._inner(chain)
        saved = sum(_nbytes(t) for t in inner)
        if len(chain) < 2 or saved < SERVER.least_chain_bytes:
            return
        one = max(_live_bytes(chain, inner, self), 1) // count
        if one > SERVER.block_bytes or count < SERVER.enough_blocks:
            count = self._finer(chain, count, one)
        reads = dict.fromkeys(t for s in chain for t in self.reads[id(s)])
        all_made = [t for s in chain for t in self.made[id(s)]]
        joined = Chain([suit_blocks(s, count) for s in chain], count, inner,
                       [t for t in reads if t not in all_made],
                       [t for t in all_made if t not in inner])
        self.readers.subtract(t for s in chain for t in self.reads[id(s)])
        self.reads[id(joined)] = dict.fromkeys(joined.operands).keys()
        self.readers.update(self.reads[id(joined)])
        self.made[id(joined)] = list(joined.results)
        self.steps[first:end] = [*before, joined, *after]

    def _pruned(self, chain: list[Step]) -> tuple[list[Step], list[Step]]:
        """Without steps that share nothing with the others."""
        apart: list[Step] = []
        changed = True
        while changed:
            made = Counter(t for s in chain for t in self.made[id(s)])
            read = Counter(t for s in chain for t in self.reads[id(s)])
            alone = [s for s in chain if not self._shares(s, made, read)]
            changed = bool(alone)
            apart += alone
            gone = {id(s) for s in alone}
            chain = [s for s in chain if id(s) not in gone]
        return chain, apart

    def _shares(self, step: Step, made: Mapping[Tensor, int], read: Mapping[Tensor, int]) -> bool:
        """Whether others make what a step reads, or read what it makes."""
        own_made, own_read = self.made[id(step)], self.reads[id(step)]
        return any(made.get(t, 0) > (t in own_made) for t in own_read) or any(
            read.get(t, 0) > (t in own_read) for t in own_made)

    def _inner(self, chain: list[Step]) -> list[Tensor]:
        """What only the steps of a chain read."""
        inside = Counter(t for s in chain for t in self.reads[id(s)])
        return [t for s in chain for t in self.made[id(s)]
                if t not in self.outputs and self.readers[t] == inside[t]]

    def _finer(self, chain: list[Step], count: int, nbytes: int) -> int:
        """More blocks, if the rows of every product can be split."""
        gemm = chain[0]
        assert isinstance(gemm, Gemm)
        m = gemm.fields["m"]
        assert isinstance(m, int)
        pieces = [q for q in range(2, m // SERVER.least_block_rows + 1) if m % q == 0]
        for q in pieces:
            enough = nbytes // q <= SERVER.block_bytes and count * q >= SERVER.enough_blocks
            if enough or q == pieces[-1]:
                made = set[Tensor]()
                for step in chain:
                    if not self._fits(step, count * q, made):
                        return count
                    made.update(self.made[id(step)])
                return count * q
        return count

    # --- whether a step can run block by block

    def _fits(self, step: Step, count: int, made: Collection[Tensor],
              refusals: list[FusionNote] | None = None) -> bool:
        try:
            for t in self.reads[id(step)]:
                if t in self.spread:
                    raise _ChainRefused(f"{t} is read from other blocks too")
            if isinstance(step, Gemm):
                _check_gemm(step, count, made)
            kernel = step.kernel if isinstance(step, FusedGemm) else suit_blocks(step, count)
            if isinstance(kernel, Kernel):
                self._check_kernel(kernel, count, made)
        except _ChainRefused as reason:
            if refusals is not None:
                t = step.results[0] if isinstance(step, Call) else step.members[0].tensor
                refusals.append(FusionNote(t, t.source, f"not in a chain of products: {reason}"))
            return False
        return True

    def _check_kernel(self, kernel: Kernel, count: int, made: Collection[Tensor]) -> None:
        d = kernel.domain
        if any(m.role not in ("full", "row", "reduce_row") for m in kernel.members):
            raise _ChainRefused("it reduces over rows")
        if d.total is not None or not isinstance(d.row, int) or not isinstance(d.rows, int) \
                or d.rows % count:
            raise _ChainRefused("its rows are not split in the same blocks")
        rows = d.rows // count
        block, r = LoopVar("b", count), LoopVar("r", rows)
        o = Index.of(block) * rows + (Index.of(r) if rows > 1 else ZERO)
        i = Index.of(kernel.i) if not (isinstance(d.row, int) and d.row == 1) else ZERO
        split = kernel.at({"full": o * d.row + i, "row": o, "reduce_row": o})
        s = split.builder(self.schedule.is_stored)
        try:
            found = accesses(split.all_expressions(s))
        except IterationSpaceMismatch:
            raise _ChainRefused("a value is read at another place than it is computed") from None
        for t, index in found:
            if not has_constant_stride(index, kernel.i) or (
                    rows % TILE_ROWS and not _is_near(index, kernel.i)):
                raise _ChainRefused("memory is not read in order along its rows")
            if t is not None and t in made:
                _check_place(t, index, block)


def suit_blocks(step: Step, count: int) -> Step:
    """A kernel that only maps elements, over rows that can be split."""
    if not isinstance(step, Kernel) or any(m.role != "full" for m in step.members):
        return step
    d, size = step.domain, step.domain.size
    if isinstance(size, int) and size % count == 0 and (
            d.total is not None or not isinstance(d.rows, int) or d.rows % count):
        return Kernel(Domain(count, size // count), step.members)
    return step


def _check_place(t: Tensor, index: Index, block: LoopVar) -> None:
    """That a place in a value of the chain is in the block of the same number."""
    nbytes = _per_block(t, block.high)
    rest = index - Index.of(block) * nbytes
    if rest.depends_on(block) or not rest.within(0, nbytes):
        raise _ChainRefused(f"{t} is read from other blocks too")


def _check_gemm(gemm: Gemm, count: int, made: Collection[Tensor]) -> None:
    f = gemm.fields
    if not all(isinstance(n, int) for n in f.values()):
        raise _ChainRefused("its sizes are known only when it runs")
    batch = f["batch0"] * f["batch1"]
    if count % batch or f["m"] % (count // batch):
        raise _ChainRefused("its rows are not split in the same blocks")
    pieces = count // batch
    a, b = gemm.operands[:2]
    if pieces > 1 and f["m"] // pieces < SERVER.least_block_rows:
        raise _ChainRefused("a block would have few rows")
    if f["m"] // pieces * f["n"] * f["k"] < SERVER.least_block_work:
        raise _ChainRefused("the product of a block is small")
    if b in made and pieces > 1:
        raise _ChainRefused(f"{b} is needed as a whole")
    for name, t, offset, rows, columns in (
            ("a", a, gemm.a_offset, f["m"] // pieces, f["k"]),
            ("b", b, gemm.b_offset, f["k"], f["n"])):
        if t in made and (offset != 0 or not _in_block(gemm, name, t, count, rows, columns)):
            raise _ChainRefused(f"{t} is read from other blocks too")


def _in_block(gemm: Gemm, name: str, t: Tensor, count: int, rows: Size, columns: Size) -> bool:
    """Whether the part of an operand that belongs to a block is the block of that number."""
    f = gemm.fields
    block, row, column = _per_block(t, count), f[f"{name}_row"], f[f"{name}_col"]
    pieces = count // (f["batch0"] * f["batch1"])
    inside = (rows - 1) * row + (columns - 1) * column < block and min(row, column) >= 0
    return inside and (f["batch1"] == 1 or f[f"{name}_batch1"] == block * pieces) and (
        f["batch0"] == 1 or f[f"{name}_batch0"] == f["batch1"] * block * pieces) and (
        pieces == 1 or rows * row == block)


def _is_spread(step: Step, count: int) -> bool:
    """Whether a step writes to other places than the block of what it makes."""
    if not isinstance(step, Gemm) or isinstance(step, FusedGemm):
        return False
    f = step.fields
    pieces = count // (f["batch0"] * f["batch1"])
    return not _in_block(step, "c", step.results[0], count, f["m"] // pieces, f["n"])


def _per_block(t: Tensor, count: Size) -> Size:
    if not isinstance(t.size, int) or t.size % count:
        raise _ChainRefused(f"{t} is not split in the same blocks")
    return t.size // count


def tensors_of(step: Step) -> list[Tensor]:
    """The values that a step computes, those inside of it included."""
    if isinstance(step, Kernel):
        return [m.tensor for m in step.members]
    if isinstance(step, FusedGemm):
        return [step.product, *tensors_of(step.kernel)]
    if isinstance(step, Chain):
        return [t for s in step.steps for t in tensors_of(s)]
    return list(step.results)


def _is_barrier(step: Step) -> bool:
    """Whether a step may do more than write what it makes."""
    if isinstance(step, Call):  # tile programs multiply what is of one dtype
        return not isinstance(step, Gemm) or len({t.dtype for t in step.operands}) > 1
    return any(m.role == "scatter" for m in step.members)


def _is_near(index: Index, i: LoopVar) -> bool:
    step = index.coefficient(i)
    return isinstance(step, int) and step in (0, 1)


def _nbytes(t: Tensor) -> int:
    assert isinstance(t.size, int)
    bits = "".join(filter(str.isdigit, t.dtype))
    return t.size * int(bits or 8) // 8


def _live_bytes(chain: Sequence[Step], inner: Collection[Tensor], former: _ChainFormer) -> int:
    """The most bytes of inner values that are needed at one time."""
    first: dict[Tensor, int] = {}
    last: dict[Tensor, int] = {}
    for k, step in enumerate(chain):
        for t in former.made[id(step)]:
            first.setdefault(t, k)
            last[t] = k
        last.update(dict.fromkeys(former.reads[id(step)], k))
    change = [0] * (len(chain) + 1)
    for t in inner:
        if t in first:
            change[first[t]] += _nbytes(t)
            change[last[t] + 1] -= _nbytes(t)
    return max(accumulate(change))
