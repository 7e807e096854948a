"""The k largest elements of rows, where these are few: of each tile, then of what tiles found."""

from __future__ import annotations

from functrans.core.jaxpr import Equation
from functrans.lowering.loops.tensor import Stored, Tensor
from functrans.lowering.triton.kernels.axis_calls import AxisCall, module_text, sizes
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    KernelOperand,
    Launches,
    PartialResults,
    power_of_two,
)
from functrans.lowering.triton.sort_scan.key_words import WIDTHS, words_of
from functrans.lowering.triton.templates.kernel import Argument, TemplateKernel, integer, pointer

__all__ = ["TopKCall", "suits_top_k"]

TILE = 1024
MOST = 64  # elements that are selected; of more, sorting them all is as fast
PLACE = 2**31 - 1


def suits_top_k(dtype: str, n: int, k: int) -> bool:
    """Whether `TopKCall` computes them; the key and the place are one number of 64 bits."""
    return WIDTHS[dtype] <= 32 and k <= min(MOST, n // 4)


class TopKCall(AxisCall):
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
        names: dict[str, tuple[KernelOperand, int]] = {"x": (x, 0), "y": (y, 0),
                                                                 "places": (places, 0)}
        kernels, n, level = [], self.n, 0
        while n > TILE:
            kernels.append(self._selected(n, level))
            n = -(-n // TILE) * self.most
            names[f"found{level}"] = (PartialResults(1, self.rows * n, "i64"), 0)
            level += 1
        return Launches([*kernels, self._largest(n, level)], names)

    def _selected(self, n: int, level: int) -> TemplateKernel:
        """The largest of each tile of rows of n; all levels but the first are one function."""
        tiles = -(-n // TILE)
        lines = ["pid = tl.program_id(0)", "o = pid // tiles",
                 f"i = pid % tiles * {TILE} + tl.arange(0, {TILE})[None, :]", "inside = i < n",
                 *self._pairs(level), self._chosen(),
                 f"tl.store(then + pid * {self.most} + tl.arange(0, {self.most})[None, :], pair)"]
        parameters = self._source(level) | {"then": pointer(f"found{level}", "i64"),
                                            "n": integer("n", n), **sizes(tiles=tiles)}
        return self._kernel("selected", parameters, lines, self.rows * tiles, TILE)

    def _largest(self, n: int, level: int) -> TemplateKernel:
        """The results, from rows of n that are one tile."""
        width = max(2 * self.most, power_of_two(n))
        height = min(power_of_two(self.rows), max(1, TILE // width))
        lines = [f"o = tl.program_id(0) * {height} + tl.arange(0, {height})[:, None]",
                 f"i = tl.arange(0, {width})[None, :]",
                 "inside = (o < rows) & (i < n)", *self._pairs(level),
                 f"pair = tl.topk(pair, {self.most}, 1)",
                 f"i = tl.arange(0, {self.most})[None, :]",
                 "inside = (o < rows) & (i < count)",
                 f"place = {PLACE} - (pair & {PLACE}).to(tl.int32)",
                 "v = tl.load(x + o * row + place, mask=inside, other=0)",
                 "tl.store(y + o * count + i, v, mask=inside)",
                 "tl.store(places + o * count + i, place, mask=inside)"]
        dtype = MEMORY[self.operands[0].dtype]
        parameters = self._source(level) | {"x": pointer("x", dtype), "y": pointer("y", dtype),
                                            "places": pointer("places", "i32"),
                                            "n": integer("n", n),
                                            **sizes(row=self.n, rows=self.rows, count=self.k)}
        return self._kernel("largest", parameters, lines, -(-self.rows // height), width * height)

    def _chosen(self) -> str:
        """The largest pairs of rows; Triton 3.6 has no selection of one."""
        if self.most == 1:
            return "pair = tl.max(pair, 1, keep_dims=True)"
        return f"pair = tl.topk(pair, {self.most}, 1)"

    def _source(self, level: int) -> dict[str, Argument]:
        if level:
            return {"found": pointer(f"found{level - 1}", "i64")}
        return {"x": pointer("x", MEMORY[self.operands[0].dtype])}

    def _pairs(self, level: int) -> list[str]:
        """`pair`: in the order of keys, and the first place is the largest; none is -1."""
        if level:
            return ["pair = tl.load(found + o * n + i, mask=inside, other=-1)"]
        (word,) = words_of(self.operands[0].dtype)
        return ["v = tl.load(x + o * n + i, mask=inside, other=0)", *word.lines(),
                f"pair = (u.to(tl.uint32, bitcast=True).to(tl.int64) << 31) | ({PLACE} - i)",
                "pair = tl.where(inside, pair, -1)"]

    def _kernel(self, name: str, pointers: dict[str, Argument], lines: list[str], grid: int,
                tile: int) -> TemplateKernel:
        text = f"@triton.jit\ndef {name}({', '.join(pointers)}):\n" + "".join(
            f"    {line}\n" for line in lines)
        warps = power_of_two(min(16, max(1, tile // 256)))
        return TemplateKernel(name, module_text(text), tuple(pointers.values()), (grid, 1, 1),
                              warps, 3)
