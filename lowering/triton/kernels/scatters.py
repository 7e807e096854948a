"""Scatters as Triton functions: elements go to computed places."""

from __future__ import annotations

from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.tensor import ScatterTensor
from functrans.lowering.triton.kernels.kernel_source import (
    REGISTER,
    KernelSource,
    PartialResults,
    SizeArguments,
    power_of_two,
)
from functrans.lowering.triton.kernels.writer import (
    TILE,
    TritonKernelWriter,
    is_wide,
    program_number,
)

__all__ = ["ScatterWriter"]

COPIED = frozenset(("f32", "f64", "i32", "i64", "u32", "u64"))
MOST_COPIES, MOST_COPIED = 64, 1 << 18
"""Sums of one place, and all of them, which stay in the second-level cache."""


class ScatterWriter(TritonKernelWriter):
    """Writes a scatter. Of several elements that go to one place, the last one stays."""

    def write(self) -> list[KernelSource]:
        t = self.kernel.members[0].tensor
        assert isinstance(t, ScatterTensor)
        if not isinstance(t.size, int):
            raise UnsupportedKernel("a size that is not known")
        if copies := self._copies(t, t.size):
            sums = PartialResults(copies, t.size, t.dtype)
            return [_filled(sums, 0, False), self._scattered(sums, is_contest=False),
                    _with_sums(t, sums)]
        if t.op != "set" or t.unique:
            return [self._scattered(None, is_contest=False)]
        winners = PartialResults(1, t.size, "i64" if self.rows * self.row >= 2**31 else "i32")
        contest = ScatterWriter(self.kernel, self.schedule, self.options)._scattered(
            winners, is_contest=True)
        return [_filled(winners, -1, self.any_size), contest,
                self._scattered(winners, is_contest=False)]

    def _copies(self, t: ScatterTensor, places: int) -> int:
        """How many sums there are for each place, so that programs wait less for each other.

        0 for the one in the result.
        """
        updates = self.rows * self.row
        known = self.options.target.measured
        waiting = known.atomic * updates // max(places, 1)
        if t.op != "add" or t.dtype not in COPIED or t.unique or self.any_size \
                or waiting < 2 * known.split_launch:
            return 0
        return min(power_of_two(int(waiting // 1000)), MOST_COPIED // places, MOST_COPIES)

    def _scattered(self, winners: PartialResults | None, is_contest: bool) -> KernelSource:
        (m,) = self.kernel.members
        t = m.tensor
        assert isinstance(t, ScatterTensor)
        w, grid, tile = self.begin_tiles()
        index, condition = self.kernel.target(self.builder, m)
        place = w.name(f"{w.index(index, is_wide(t))} + zero")
        mask = "inside" if condition is None else w.name(
            f"tl.where({w.expression(condition)}, inside, False)")
        number = f"o * {self.n(self.row, 'row')} + i"
        if t.op == "add" and winners is not None:
            copy = f"pid % {winners.count} * {winners.size}"
            value = f"({w.expression(self.elements[t])} + zero.to({REGISTER[t.dtype]}))"
            self.emit(f"tl.atomic_add({self.pointer(winners)} + {copy} + {place}, {value}, "
                      f"mask={mask}, sem='relaxed')")
            return self.written(grid, tile)
        if winners is not None and is_contest:
            self.emit(f"tl.atomic_max({self.pointer(winners)} + {place}, {number}, mask={mask}, "
                      "sem='relaxed')")
            return self.written(grid, tile)
        if winners is not None:
            won = w.name(f"tl.load({self.pointer(winners)} + {place}, mask={mask}, other=-1)")
            mask = w.name(f"{mask} & ({won} == {number})")
        value = w.expression(self.elements[t])
        where = f"{self.pointer(t)} + {place}"
        if t.op == "set":
            self.emit(f"tl.store({where}, {w.stored(value, t)}, mask={mask})")
            return self.written(grid, tile)
        exact = t.dtype in ("i32", "i64", "u32", "u64")
        if not (exact if t.op in ("max", "min") else t.op == "add" and (
                exact or t.dtype in ("f32", "f64", "f16", "bf16"))):
            raise UnsupportedKernel(f"a scatter by {t.op} of {t.dtype}")
        value = f"({w.stored(value, t)} + zero.to({REGISTER[t.dtype]}))"
        self.emit(f"tl.atomic_{t.op}({where}, {value}, mask={mask}, sem='relaxed')")
        return self.written(grid, tile)


def _with_sums(t: ScatterTensor, sums: PartialResults) -> KernelSource:
    """The launch that adds the sums of each place to it."""
    depth = power_of_two(sums.count)
    block = max(4, min(power_of_two(sums.size), TILE // depth))
    text = f"""@triton.jit
def NAME(p0, p1):
    c = tl.program_id(0) * {block} + tl.arange(0, {block})[None, :]
    r = tl.arange(0, {depth})[:, None]
    found = tl.load(p1 + r * {sums.size} + c, mask=(r < {sums.count}) & (c < {sums.size}), other=0)
    inside = c < {sums.size}
    before = tl.load(p0 + c, mask=inside, other=0)
    tl.store(p0 + c, before + tl.reduce(found, 0, combine_add, keep_dims=True), mask=inside)
"""
    return KernelSource(text, [t, sums], -(-sums.size // block), 4)


def _filled(t: PartialResults, value: int, any_size: bool) -> KernelSource:
    """The launch that fills memory with a number."""
    size, numbers = t.count * t.size, SizeArguments(any_size)
    end = numbers.text(size, "size")
    text = (f"@triton.jit\ndef NAME({', '.join(['p0', *numbers.names])}):\n"
            f"    i = {program_number(size)} * {TILE} + tl.arange(0, {TILE})\n"
            f"    tl.store(p0 + i, {value}, mask=i < {end})\n")
    return KernelSource(text, [t], -(-size // TILE), 4, numbers.found)
