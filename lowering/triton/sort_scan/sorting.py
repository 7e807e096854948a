"""Sorting rows by one key or several, stable, with what goes along; the k largest.

Short rows are sorted by a bitonic network in registers, one word of the keys after the other: word
and place are one number of 64 bits. Longer ones are sorted by digits (`radix`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.tensor import Stored, Tensor
from functrans.lowering.rules.graph import CallRule
from functrans.lowering.rules.library import along_rows, back_from_rows, is_iota
from functrans.lowering.triton.kernels.axis_calls import AxisCall, extents, module_text, sizes
from functrans.lowering.triton.kernels.kernel_source import (
    MEMORY,
    KernelOperand,
    Launches,
    PartialResults,
    power_of_two,
)
from functrans.lowering.triton.sort_scan.key_words import WIDTHS, Word, words_of
from functrans.lowering.triton.sort_scan.radix import Radix
from functrans.lowering.triton.sort_scan.top_k import TopKCall, suits_top_k
from functrans.lowering.triton.templates.kernel import Argument, TemplateKernel, integer, pointer
from functrans.primitives.sort import sort_p, top_k_p

__all__ = ["SORTING", "SortCall"]

# Rows that are sorted by a network, where one word is the key, and where several are: 2^24 float32
# in rows of 256 take 0.31 ms so, of 512 0.61 ms, of 4,096 2.3 ms; by digits 0.41, 0.26 and 0.21.
# A network for two words of 512 compiles in 2.5 s, of 2,048 in 8 s, of 4,096 in 140 s.
LONGEST_ROW = 256
LONGEST_OF_WORDS = 512


class SortCall(AxisCall):
    """Rows sorted by some keys; results are operands in that order, or places (None)."""

    name = "sort"

    def __init__(self, eqn: Equation, keys: Sequence[Tensor], carried: Sequence[Tensor | None],
                 rows: int, n: int, count: int, descending: bool) -> None:
        shape = (*keys[0].shape[:-1], count)
        outs = [Stored(shape, "i32" if t is None else t.dtype, (), eqn.source) for t in carried]
        operands = dict.fromkeys([*keys, *(t for t in carried if t is not None)])
        super().__init__(list(operands), outs, eqn.source)
        self.keys, self.carried = keys, carried
        self.rows, self.n, self.count, self.descending = rows, n, count, descending
        self.names = {t: f"x{k}" for k, t in enumerate(self.operands)}

    def launches(self) -> Launches:
        names: dict[str, tuple[KernelOperand, int]] = {
            name: (t, 0) for t, name in self.names.items()}
        names |= {f"y{k}": (y, 0) for k, y in enumerate(self.results)}
        has_key = len(self.keys) == 1 and WIDTHS[self.keys[0].dtype] <= 32
        if self.n <= (LONGEST_ROW if has_key else LONGEST_OF_WORDS):
            return Launches([self._short()], names)
        alone = has_key and all(t is self.keys[0] for t in self.carried)
        stored, parameters = self._stored("where", has_key)
        radix = Radix(self.rows, self.n, self._words(), self.descending, stored, parameters,
                      has_key, alone)
        names |= {name: (PartialResults(1, size, "i32"), 0) for name, size in radix.memory.items()}
        return Launches(radix.kernels(), names)

    def _words(self) -> list[tuple[str, Word]]:
        """The words of the keys, by the names of their pointers, the least significant first."""
        return [(self.names[t], word) for t in reversed(self.keys) for word in words_of(t.dtype)]

    def _stored(self, where: str, has_key: bool) -> tuple[list[str], dict[str, Argument]]:
        """Lines that write the results, element `place` of a row to `where`, and what they name.

        The key is gathered, too, where it is not there as `key`.
        """
        lines = []
        pointers = {f"y{k}": pointer(f"y{k}", MEMORY[y.dtype]) for k, y in enumerate(self.results)}
        for k, t in enumerate(self.carried):
            value = "place"
            if t is not None and has_key and t is self.keys[0]:
                value = "key"
            elif t is not None:
                name, value = self.names[t], f"g{k}"
                pointers[name] = pointer(name, MEMORY[t.dtype])
                lines.append(f"{value} = tl.load({name} + o * n + place, mask=inside, other=0)")
            lines.append(f"tl.store(y{k} + o * count + {where}, {value}, mask=inside)")
        return lines, pointers | sizes(count=self.count)

    def _short(self) -> TemplateKernel:
        width = max(2, power_of_two(self.n))
        height = min(power_of_two(self.rows), max(1, 1024 // width))
        lines = ["pid = tl.program_id(0)",
                 f"o = pid * {height} + tl.arange(0, {height})[:, None]",
                 f"i = tl.arange(0, {width})[None, :]",
                 "inside = (o < rows) & (i < n)", "place = i + o * 0"]
        for k, (name, word) in enumerate(self._words()):
            lines += [f"v = tl.load({name} + o * n + place, mask=inside, other=0)",
                      *word.lines(self.descending),
                      "u = u.to(tl.uint32, bitcast=True).to(tl.int64)",
                      f"u = tl.where(i < n, u, {2**32 - 1})",
                      "q = (tl.sort((u << 31) | i, 1) & 2147483647).to(tl.int32)",
                      "place = q" if k == 0 else "place = tl.gather(place, q, 1)"]
        stored, parameters = self._stored("i", False)
        lines += ["inside = (o < rows) & (i < count)", *stored]
        parameters |= {self.names[t]: pointer(self.names[t], MEMORY[t.dtype]) for t in self.keys} \
            | sizes(rows=self.rows) | {"n": integer("n", self.n)}
        text = f"@triton.jit\ndef sorted_rows({', '.join(parameters)}):\n" + "".join(
            f"    {line}\n" for line in lines)
        warps = power_of_two(min(16, max(1, width * height // 256)))
        return TemplateKernel("sorted_rows", module_text(text), tuple(parameters.values()),
                              (-(-self.rows // height), 1, 1), warps, 3)


# --------------------------------------------------------------------------- rules


def _rows(xs: Sequence[Tensor], axis: int) -> tuple[int, int] | None:
    sizes = extents(xs[0], axis)
    if sizes is None or any(x.dtype not in WIDTHS for x in xs):
        return None
    outer, n, inner = sizes
    return (outer * inner, n) if 0 < outer * inner * n < 2**31 else None


def _sort(eqn: Equation, xs: list[Tensor]) -> Any:
    axis, count = eqn.params["dimension"], eqn.params["num_keys"]
    found = _rows(xs[:count], axis)
    if found is None:
        return None
    carried = [None if k >= count and is_iota(x, axis) else along_rows(x, axis)
               for k, x in enumerate(xs)]
    keys = [t for t in carried[:count] if t is not None]
    call = SortCall(eqn, keys, carried, *found, found[1], False)
    return call, [back_from_rows(r, axis) for r in call.results]


def _top_k(eqn: Equation, xs: list[Tensor]) -> Any:
    axis, k = eqn.params["axis"], eqn.params["k"]
    found = _rows(xs, axis)
    if found is None or not isinstance(k, int) or k == 0:
        return None
    x = along_rows(xs[0], axis)
    call = TopKCall(eqn, x, *found, k) if suits_top_k(x.dtype, found[1], k) \
        else SortCall(eqn, [x], [x, None], *found, k, True)
    return call, [back_from_rows(r, axis) for r in call.results]


SORTING: dict[Primitive, CallRule] = {sort_p: _sort, top_k_p: _top_k}
