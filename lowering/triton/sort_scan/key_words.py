"""Keys as unsigned words: numbers of at most 32 bits in the order of the keys, as Triton text.

NaN comes last and is one number, zeros of both signs are equal. A key of 64 bits is two words.
"""

from __future__ import annotations

from functrans.core.record import Record
from functrans.lowering.loops.tensor import FLOAT8, ITEM_SIZES
from functrans.lowering.triton.kernels.kernel_source import REGISTER

__all__ = ["WIDTHS", "Word", "key_of", "minus_zero", "words_of"]

WIDTHS = {dtype: 8 * size for dtype, size in ITEM_SIZES.items() if dtype not in FLOAT8}
"""The bits of the types that are keys."""
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}


class Word(Record):
    """One word of a key, the lower one first."""

    dtype: str
    number: int = 0

    @property
    def nbytes(self) -> int:
        return min(WIDTHS[self.dtype], 32) // 8

    def lines(self, descending: bool = False, keeps_zeros: bool = False) -> list[str]:
        """`u`, the word of the key `v` as int32; zeros differ by one if it `keeps_zeros`."""
        bits = WIDTHS[self.dtype]
        register = "tl.int64" if bits == 64 else "tl.int32"
        if self.dtype in INFINITY:
            lines = self._float(keeps_zeros)
        elif self.dtype[0] == "i":
            lines = [f"u = v.to({register}) ^ {_sign(bits)}"]
        elif bits < 32:
            lines = ["u = v.to(tl.int32)"]
        else:
            lines = [f"u = v.to({register}, bitcast=True)"]
        if descending:
            lines.append("u = ~u")
        if bits < 32:
            lines.append(f"u = u & {(1 << bits) - 1}")
        if bits == 64:
            lines.append("u = (u >> 32).to(tl.int32)" if self.number else "u = u.to(tl.int32)")
        return lines

    def _float(self, keeps_zeros: bool) -> list[str]:
        bits = WIDTHS[self.dtype]
        most = (1 << (bits - 1)) - 1
        lines = [f"u = v.to(tl.int{bits}, bitcast=True)"]
        lines += ["u = u.to(tl.int32)"] if bits < 32 else []
        lines += [f"m = u & {most}", f"u = tl.where(m > {INFINITY[self.dtype]}, {most}, u)"]
        lines += [] if keeps_zeros else ["u = tl.where(m == 0, 0, u)"]
        return [*lines, f"u = u ^ ((u >> {max(bits, 32) - 1}) & {most}) ^ {_sign(bits)}"]


def words_of(dtype: str) -> list[Word]:
    return [Word(dtype, k) for k in range(2 if WIDTHS[dtype] == 64 else 1)]


def minus_zero(dtype: str) -> int | None:
    """The word of -0.0 among words that keep zeros apart: that of 0.0 follows."""
    return (1 << (WIDTHS[dtype] - 1)) - 1 if dtype in INFINITY else None


def key_of(word: str, dtype: str, descending: bool) -> list[str]:
    """`key`, from its only word, which kept zeros apart."""
    bits = WIDTHS[dtype]
    lines = [f"key = ~{word}" if descending else f"key = {word}"]
    lines += [f"key = key & {(1 << bits) - 1}"] if descending and bits < 32 else []
    if dtype in INFINITY:
        lines += [f"key = key - {1 << (bits - 1)}" if bits < 32 else f"key = key ^ {_sign(bits)}",
                  f"key = key ^ ((key >> 31) & {(1 << (bits - 1)) - 1})"]
        lines += [f"key = key.to(tl.int{bits})"] if bits < 32 else []
        return [*lines, f"key = key.to({REGISTER[dtype]}, bitcast=True)"]
    if dtype[0] == "i":
        return [*lines, f"key = (key ^ {_sign(bits)}).to({REGISTER[dtype]})"]
    if dtype == "bool":
        return [*lines, "key = key.to(tl.uint8)"]
    return [*lines, f"key = key.to(tl.uint32, bitcast=True).to({REGISTER[dtype]})"]


def _sign(bits: int) -> int:
    """The bit of the sign, as a number that a register of 32 or of 64 bits has."""
    return -(1 << (bits - 1)) if bits >= 32 else 1 << (bits - 1)
