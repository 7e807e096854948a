"""Scatters as Triton functions: elements go to computed places."""

from __future__ import annotations

from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.tensor import ScatterTensor
from functrans.lowering.triton.kernels.kernel_source import (
    REGISTER,
    KernelSource,
    PartialResults,
    SizeArguments,
)
from functrans.lowering.triton.kernels.writer import (
    TILE,
    TritonKernelWriter,
    is_wide,
    program_number,
)

__all__ = ["ScatterWriter"]


class ScatterWriter(TritonKernelWriter):
    """Writes a scatter. Of several elements that go to one place, the last one stays."""

    def write(self) -> list[KernelSource]:
        t = self.kernel.members[0].tensor
        assert isinstance(t, ScatterTensor)
        if t.op != "set" or t.unique:
            return [self._scattered(None, is_contest=False)]
        if not isinstance(t.size, int):
            raise UnsupportedKernel("a size that is not known")
        winners = PartialResults(1, t.size, "i64" if self.rows * self.row >= 2**31 else "i32")
        contest = ScatterWriter(self.kernel, self.schedule, self.options)._scattered(
            winners, is_contest=True)
        return [_filled(winners, -1, self.any_size), contest,
                self._scattered(winners, is_contest=False)]

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


def _filled(t: PartialResults, value: int, any_size: bool) -> KernelSource:
    """The launch that fills memory with a number."""
    size, numbers = t.count * t.size, SizeArguments(any_size)
    end = numbers.text(size, "size")
    text = (f"@triton.jit\ndef NAME({', '.join(['p0', *numbers.names])}):\n"
            f"    i = {program_number(size)} * {TILE} + tl.arange(0, {TILE})\n"
            f"    tl.store(p0 + i, {value}, mask=i < {end})\n")
    return KernelSource(text, [t], -(-size // TILE), 4, numbers.found)
