"""The k largest elements of rows, where these are few: of each tile, then of what tiles found."""

from __future__ import annotations

from functrans.core.jaxpr import Equation
from functrans.lowering.loops.tensor import Stored, Tensor
from functrans.lowering.triton.calls import Launches
from functrans.lowering.triton.kernel import Partial, power_of_two
from functrans.lowering.triton.key_words import WIDTHS, words_of
from functrans.lowering.triton.names import MEMORY
from functrans.lowering.triton.rows import AlongRows, module_text
from functrans.lowering.triton.templates.kernel import Argument, Kernel, pointer

__all__ = ["Largest", "is_selected"]

TILE = 4096
MOST = 256  # elements that are selected; of more, sorting them all is as fast
PLACE = 2**31 - 1


def is_selected(dtype: str, n: int, k: int) -> bool:
    """Whether `Largest` computes them; the key and the place are one number of 64 bits."""
    return WIDTHS[dtype] <= 32 and k <= min(MOST, n // 4)


class Largest(AlongRows):
    """The k largest elements of rows in decreasing order, the first of equal ones first."""

    name = "top_k"

    def __init__(self, eqn: Equation, x: Tensor, rows: int, n: int, k: int) -> None:
        shape = (*x.shape[:-1], k)
        outs = [Stored(shape, dtype, (), eqn.source) for dtype in (x.dtype, "i32")]
        super().__init__([x], outs, eqn.source)
        self.rows, self.n, self.k = rows, n, k
        self.most = power_of_two(k)  # of each tile

    def launches(self) -> Launches:
        (x,), (y, places) = self.operands, self.results
        names: dict[str, tuple[Tensor | Partial, int]] = {"x": (x, 0), "y": (y, 0),
                                                          "places": (places, 0)}
        kernels, n, level = [], self.n, 0
        while n:
            kernel, n = self._level(n, level)
            kernels.append(kernel)
            if n:
                names[f"found{level}"] = (Partial(1, self.rows * n, "i64"), 0)
            level += 1
        return Launches(kernels, names)

    def _level(self, n: int, level: int) -> tuple[Kernel, int]:
        """The largest of each tile of rows of n pairs, and how many that are; 0 at the end."""
        width = max(2 * self.most, min(TILE, power_of_two(n)))
        tiles = -(-n // width)
        height = min(power_of_two(self.rows), max(1, 1024 // width)) if tiles == 1 else 1
        lines = ["pid = tl.program_id(0)",
                 f"o = pid // {tiles} * {height} + tl.arange(0, {height})[:, None]",
                 f"i = pid % {tiles} * {width} + tl.arange(0, {width})[None, :]",
                 f"inside = (o < {self.rows}) & (i < {n})", *self._pairs(n, level),
                 f"pair = tl.topk(pair, {self.most}, 1)",
                 f"i = tl.arange(0, {self.most})[None, :]"]
        source = {"x": pointer("x", MEMORY[self.operands[0].dtype])} if level == 0 else \
            {f"found{level - 1}": pointer(f"found{level - 1}", "i64")}
        if tiles == 1:
            return self._kernel("largest", source | self._results(), [*lines, *self._stored()],
                                -(-self.rows // height), width * height), 0
        count = tiles * self.most
        lines += [f"at = o * {count} + pid % {tiles} * {self.most} + i",
                  f"tl.store(found{level} + at, pair, mask=(o < {self.rows}) & (i >= 0))"]
        kernel = self._kernel("selected", source | {f"found{level}": pointer(f"found{level}", "i64")
                                                    }, lines, self.rows * tiles, width)
        return kernel, count

    def _pairs(self, n: int, level: int) -> list[str]:
        """`pair`: in the order of keys, and the first place is the largest; none is -1."""
        if level:
            return [f"pair = tl.load(found{level - 1} + o * {n} + i, mask=inside, other=-1)"]
        (word,) = words_of(self.operands[0].dtype)
        return [f"v = tl.load(x + o * {n} + i, mask=inside, other=0)", *word.lines(),
                f"pair = (u.to(tl.uint32, bitcast=True).to(tl.int64) << 31) | ({PLACE} - i)",
                "pair = tl.where(inside, pair, -1)"]

    def _stored(self) -> list[str]:
        return [f"inside = (o < {self.rows}) & (i < {self.k})",
                f"place = {PLACE} - (pair & {PLACE}).to(tl.int32)",
                f"v = tl.load(x + o * {self.n} + place, mask=inside, other=0)",
                f"tl.store(y + o * {self.k} + i, v, mask=inside)",
                f"tl.store(places + o * {self.k} + i, place, mask=inside)"]

    def _results(self) -> dict[str, Argument]:
        dtype = MEMORY[self.operands[0].dtype]
        return {"x": pointer("x", dtype), "y": pointer("y", dtype),
                "places": pointer("places", "i32")}

    def _kernel(self, name: str, pointers: dict[str, Argument], lines: list[str], grid: int,
                tile: int) -> Kernel:
        text = f"@triton.jit\ndef {name}({', '.join(pointers)}):\n" + "".join(
            f"    {line}\n" for line in lines)
        warps = power_of_two(min(16, max(1, tile // 256)))
        return Kernel(name, module_text(text), tuple(pointers.values()), (grid, 1, 1), warps, 3)
