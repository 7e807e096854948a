"""Variables as axes of a product, and how far they are apart in its operands and its result."""

from __future__ import annotations

import math
from collections.abc import Mapping

from functrans.core.record import Record
from functrans.lowering.loops.tensor import Gemm
from functrans.lowering.passes.attention.calls import View
from functrans.lowering.passes.attention.reindexed import NotSoftmax

__all__ = ["AxisMap", "through_axes"]


def _side(gemm: Gemm, role: str) -> dict[str, tuple[int, int]]:
    """The axes of an operand or the result of a product: size and step."""
    f = gemm.fields
    row, col = {"a": ("m", "k"), "b": ("k", "n"), "c": ("m", "n")}[role]
    axes = {"batch0": (f["batch0"], f[f"{role}_batch0"]), "batch1": (f["batch1"],
                                                                     f[f"{role}_batch1"]),
            row: (f[row], f[f"{role}_row"]), col: (f[col], f[f"{role}_col"])}
    return axes  # type: ignore[return-value]


class AxisMap(Record, frozen=False):
    """Which axis of a product a variable is, and how far it is in an operand or the result."""

    gemm: Gemm
    axes: dict[int, tuple[str, int]]  # by variable: an axis, and a number of its steps
    rest: str                         # the axis that no variable is

    def view(self, role: str) -> View:
        side = _side(self.gemm, role)
        steps = {v: side[axis][1] * n for v, (axis, n) in self.axes.items() if axis in side}
        tensor = {"a": self.gemm.operands[0], "b": self.gemm.operands[1],
                  "c": self.gemm.results[0]}[role]
        offset = {"a": self.gemm.a_offset, "b": self.gemm.b_offset, "c": 0}[role]
        size, step = side[self.rest]
        return View(tensor, offset, steps, step if size != 1 else 1)  # type: ignore[arg-type]

    @property
    def size(self) -> int:
        return int(self.gemm.fields[self.rest])


def through_axes(gemm: Gemm, role: str, places: Mapping[int, tuple[int, int]]) -> AxisMap:
    """Variables, by their size and step in an operand or the result, as axes of a product."""
    side, found = _side(gemm, role), dict[int, tuple[str, int]]()
    for v, (size, step) in places.items():
        for axis, (count, own) in side.items():
            if count != 1 and own and step % own == 0 and step // own * size <= count:
                if v in found:
                    raise NotSoftmax("two axes of a product have one step")
                found[v] = (axis, step // own)
        if v not in found:
            raise NotSoftmax("a variable is no part of an axis")
    for axis, (count, _) in side.items():
        if math.prod(places[v][0] for v, (a, _) in found.items() if a == axis) != count:
            raise NotSoftmax("an axis of a product has other parts")
    return AxisMap(gemm, found, {"a": "n", "b": "m", "c": "k"}[role])
