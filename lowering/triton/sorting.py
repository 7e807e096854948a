"""Sorting rows by one key of up to 32 bits, stable, with what goes along; the k largest.

Short rows are sorted in registers: key and place are one number of 64 bits. Longer ones by their
digits of eight bits from the last to the first: how often each digit is in each block, where it
begins (a running sum over digits and blocks), and each block, sorted by its digits, written there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.jaxpr import Equation
from functrans.lowering.loops.tensor import Stored, Tensor
from functrans.lowering.rules.library import along_rows, back_from_rows, is_iota
from functrans.lowering.triton.calls import Launches
from functrans.lowering.triton.cumulative import running_sums
from functrans.lowering.triton.kernel import Partial, power_of_two
from functrans.lowering.triton.names import MEMORY
from functrans.lowering.triton.rows import AlongRows, extents, module_text
from functrans.lowering.triton.templates.kernel import Argument, Kernel, pointer

__all__ = ["SORTING", "Sorted"]

LONGEST_ROW = 4096  # that is sorted in registers
BLOCK = 2048  # of longer rows
DIGITS = 256

# The digits of a key as a signed number of 32 bits, by their first bits, and which of them has the
# sign.
SHIFTS = {"f32": (0, 8, 16, 24), "i32": (0, 8, 16, 24), "u32": (0, 8, 16, 24), "bf16": (16, 24),
          "f16": (8, 16, 24), "i16": (0, 8), "u16": (0, 8), "i8": (0,), "u8": (0,), "bool": (0,)}
SIGNED = {"f32": 24, "i32": 24, "u32": 24, "bf16": 24, "f16": 24, "i16": 8, "i8": 0}


class Sorted(AlongRows):
    """Rows sorted by the first operand; results are operands in that order, or places (None)."""

    name = "sort"

    def __init__(self, eqn: Equation, operands: Sequence[Tensor], given: Sequence[Tensor | None],
                 rows: int, n: int, count: int, descending: bool) -> None:
        shape = (*operands[0].shape[:-1], count)
        outs = [Stored(shape, "i32" if t is None else t.dtype, (), eqn.source) for t in given]
        super().__init__(list(dict.fromkeys(operands)), outs, eqn.source)
        self.key, self.given = operands[0], given
        self.rows, self.n, self.count, self.descending = rows, n, count, descending

    def launches(self) -> Launches:
        names = {"x": (self.key, 0)}
        names |= {f"y{k}": (y, 0) for k, y in enumerate(self.results)}
        names |= {f"x{k}": (t, 0) for k, t in enumerate(self.given) if t is not None}
        if self.n <= LONGEST_ROW:
            return Launches([self._short()], names)
        return self._long(names)

    # --------------------------------------------------------------------------- text

    def _ordered(self) -> list[str]:
        """`s`: a signed number of 32 bits in the order of the keys `v`."""
        t = self.key.dtype
        if t in ("f32", "f16", "bf16"):
            lines = ["v = v.to(tl.float32)", "v = tl.where(v == 0, 0.0, v)",
                     "v = tl.where(v != v, float('nan'), v)", "s = v.to(tl.int32, bitcast=True)",
                     "s = s ^ ((s >> 31) & 2147483647)"]
        elif t[0] == "i":
            lines = ["s = v.to(tl.int32)"]
        else:
            lines = ["s = v.to(tl.uint32).to(tl.int32, bitcast=True) ^ -2147483648"]
        return [*lines, "s = ~s"] if self.descending else lines

    def _stored(self, place: str, where: str, mask: str) -> list[str]:
        """Write the results: element `place` of a row goes to `where`."""
        lines = []
        for k, t in enumerate(self.given):
            value = "place"
            if t is not None:
                lines.append(f"g{k} = tl.load(x{k} + o * {self.n} + {place}, mask={mask}, other=0)")
                value = f"g{k}"
            lines.append(f"tl.store(y{k} + o * {self.count} + {where}, {value}, mask={mask})")
        return lines

    def _pointers(self) -> dict[str, Argument]:
        named = [*((f"y{k}", y) for k, y in enumerate(self.results)),
                 *((f"x{k}", t) for k, t in enumerate(self.given) if t is not None)]
        return {name: pointer(name, MEMORY[t.dtype]) for name, t in named}

    def _kernel(self, name: str, arguments: dict[str, Argument], lines: list[str], grid: int,
                warps: int) -> Kernel:
        text = f"@triton.jit\ndef {name}({', '.join(arguments)}):\n" + "".join(
            f"    {line}\n" for line in lines)
        return Kernel(name, module_text(text), tuple(arguments.values()), (grid, 1, 1), warps, 3)

    # --------------------------------------------------------------------------- short rows

    def _short(self) -> Kernel:
        width = max(2, power_of_two(self.n))
        height = min(power_of_two(self.rows), max(1, 1024 // width))
        lines = ["pid = tl.program_id(0)",
                 f"o = pid * {height} + tl.arange(0, {height})[:, None]",
                 f"i = tl.arange(0, {width})[None, :]",
                 f"inside = (o < {self.rows}) & (i < {self.n})",
                 f"v = tl.load(x + o * {self.n} + i, mask=inside, other=0)", *self._ordered(),
                 "pair = (s.to(tl.int64) << 32) | (i + o * 0).to(tl.int64)",
                 "pair = tl.where(inside, pair, 9223372036854775807)",
                 "pair = tl.sort(pair, 1)",
                 "place = (pair & 2147483647).to(tl.int32)",
                 f"inside = (o < {self.rows}) & (i < {self.count})",
                 *self._stored("place", "i", "inside")]
        warps = min(16, max(1, width * height // 256))
        return self._kernel("sorted_rows", {"x": pointer("x", MEMORY[self.key.dtype])}
                            | self._pointers(), lines, -(-self.rows // height),
                            power_of_two(warps))

    # --------------------------------------------------------------------------- long rows

    def _long(self, names: dict[str, tuple[Tensor | Partial, int]]) -> Launches:
        blocks = -(-self.n // BLOCK)
        size = self.rows * self.n
        for name in ("keys0", "keys1", "places0", "places1"):
            names[name] = (Partial(1, size, "i32"), 0)
        table = self.rows * DIGITS * blocks
        names["counts"] = (Partial(1, table, "i32"), 0)
        names["begins"] = (Partial(1, table, "i32"), 0)
        sums, more = running_sums(self.rows, DIGITS * blocks, "counts", "begins")
        names |= {name: (p, 0) for name, p in more.items()}
        kernels = []
        passes = len(SHIFTS[self.key.dtype])
        for k in range(passes):
            kernels += [self._counted(k, blocks), *sums,
                        self._spread(k, blocks, k == passes - 1)]
        return Launches(kernels, names)

    def _block(self, k: int, blocks: int) -> list[str]:
        """`s`: the keys of a block in pass k, `d`: their digits.

        All passes but the first and the last are one kernel, to which the shift is a number.
        """
        shifts = SHIFTS[self.key.dtype]
        lines = ["pid = tl.program_id(0)", f"o = pid // {blocks}", f"b = pid % {blocks}",
                 f"j = tl.arange(0, {BLOCK})", f"i = b * {BLOCK} + j", f"inside = i < {self.n}",
                 *self._keys(k)]
        flip = " ^ 128" if SIGNED.get(self.key.dtype) == shifts[k] else ""
        return [*lines, f"d = ((s >> shift) & 255){flip}"]

    def _keys(self, k: int) -> list[str]:
        load = f"tl.load(keys + o * {self.n} + i, mask=inside, other=0)"
        return [f"v = {load}", *self._ordered()] if k == 0 else [f"s = {load}"]

    def _pass(self, k: int) -> tuple[dict[str, Argument], list[Argument]]:
        """The pointers to keys and places that pass k reads, and its shift."""
        shift = Argument("shift", "i32", False, SHIFTS[self.key.dtype][k])
        if k == 0:
            return {"keys": pointer("x", MEMORY[self.key.dtype])}, [shift]
        return {"keys": pointer(f"keys{(k - 1) % 2}", "i32"),
                "before": pointer(f"places{(k - 1) % 2}", "i32")}, [shift]

    def _counted(self, k: int, blocks: int) -> Kernel:
        pointers, (shift,) = self._pass(k)
        lines = [*self._block(k, blocks), f"h = tl.histogram(d, {DIGITS}, mask=inside)",
                 f"q = tl.arange(0, {DIGITS})",
                 f"tl.store(counts + (o * {DIGITS} + q) * {blocks} + b, h)"]
        return self._kernel("counted", {"keys": pointers["keys"],
                                        "counts": pointer("counts", "i32"), "shift": shift}, lines,
                            self.rows * blocks, 8)

    def _spread(self, k: int, blocks: int, last: bool) -> Kernel:
        pointers, (shift,) = self._pass(k)
        bits = BLOCK.bit_length() - 1
        lines = [*self._block(k, blocks), "d = tl.where(inside, d, 255)",
                 f"h = tl.histogram(d, {DIGITS})",
                 "first = tl.associative_scan(h, 0, fold_add) - h",
                 f"q = tl.sort((d << {bits}) | j, 0)", f"d = q >> {bits}",
                 f"j = q & {BLOCK - 1}", f"i = b * {BLOCK} + j", f"inside = i < {self.n}",
                 f"at = d * {blocks} + b",
                 f"begin = tl.load(begins + o * {DIGITS * blocks} + at - 1, "
                 "mask=inside & (at > 0), other=0)",
                 f"where = begin + tl.arange(0, {BLOCK}) - tl.gather(first, d, 0)"]
        lines.append("place = i" if k == 0 else
                     f"place = tl.load(before + o * {self.n} + i, mask=inside, other=0)")
        pointers |= {"begins": pointer("begins", "i32")}
        if last:
            pointers |= self._pointers() | {"shift": shift}
            lines += [f"inside = inside & (where < {self.count})",
                      *self._stored("place", "where", "inside")]
            return self._kernel("ordered", pointers, lines, self.rows * blocks, 8)
        pointers |= {"after": pointer(f"keys{k % 2}", "i32"),
                     "then": pointer(f"places{k % 2}", "i32"), "shift": shift}
        lines += [*self._keys(k), f"tl.store(after + o * {self.n} + where, s, mask=inside)",
                  f"tl.store(then + o * {self.n} + where, place, mask=inside)"]
        return self._kernel("spread", pointers, lines, self.rows * blocks, 8)


# --------------------------------------------------------------------------- rules


def _rows(x: Tensor, axis: int) -> tuple[int, int] | None:
    sizes = extents(x, axis)
    if sizes is None or x.dtype not in SHIFTS:
        return None
    outer, n, inner = sizes
    return (outer * inner, n) if 0 < outer * inner * n < 2**31 else None


def _sort(eqn: Equation, xs: list[Tensor]) -> Any:
    axis = eqn.params["dimension"]
    found = _rows(xs[0], axis) if eqn.params["num_keys"] == 1 else None
    if found is None:
        return None
    given = [None if k and is_iota(x, axis) else along_rows(x, axis) for k, x in enumerate(xs)]
    call = Sorted(eqn, [t for t in given if t is not None], given, *found, found[1], False)
    return call, [back_from_rows(r, axis) for r in call.results]


def _top_k(eqn: Equation, xs: list[Tensor]) -> Any:
    axis, k = eqn.params["axis"], eqn.params["k"]
    found = _rows(xs[0], axis)
    if found is None or not isinstance(k, int) or k == 0:
        return None
    x = along_rows(xs[0], axis)
    call = Sorted(eqn, [x], [x, None], *found, k, True)
    return call, [back_from_rows(r, axis) for r in call.results]


SORTING = {"sort": _sort, "top_k": _top_k}
