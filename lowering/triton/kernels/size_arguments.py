"""The numbers of a kernel that come from sizes: written into its text, or its arguments.

A mean divides by a size: constants of programs may come from sizes, too. Where they are arguments,
the text and the machine code are those of all sizes of a class: sizes of 1 and tiles, which are
rounded up to powers of four (of two along rows that registers hold), make classes, and so does
whether everything that decides how wide loads may be is a multiple of 16, or of 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from functrans.core.dims import Size
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.triton.kernels.names import REGISTER, literal
from functrans.lowering.triton.templates.kernel import Argument

__all__ = ["SizeArgument", "SizeArguments", "arguments_of"]

STRUCTURE = (-1, 0, 1)
"""Factors and terms that are no numbers: what they stand in is written in another way."""


@dataclass(frozen=True)
class SizeArgument:
    """An argument; `near`: whether elements are neighbours in memory depends on it."""

    value: int | float
    near: bool


class SizeArguments:
    """Gives the numbers of one kernel as text, and collects those that are its arguments."""

    def __init__(self, are_arguments: bool) -> None:
        self.are_arguments = are_arguments
        self.found: list[SizeArgument] = []
        self._named: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        return [f"n{k}" for k in range(len(self.found))]

    @property
    def arguments(self) -> list[Argument]:
        """Those of a kernel of a template."""
        return [Argument(name, kind, divisible, value) for name, (value, kind, divisible)
                in zip(self.names, arguments_of(self.found), strict=True)]

    def text(self, value: Size, name: str = "", near: bool = True) -> str:
        """A number as text; one with a name is one argument wherever it stands."""
        if not isinstance(value, int):
            raise UnsupportedKernel("a size that is not known")
        if not self.are_arguments or (not name and value in STRUCTURE):
            return str(value)
        known = self._named.get(name) if name else None
        if known is None:
            known = f"n{len(self.found)}"
            self.found.append(SizeArgument(value, near))
            if name:
                self._named[name] = known
        return known

    def constant(self, value: Any, dtype: str) -> str:
        """A constant of the program as text."""
        number = value.item() if hasattr(value, "item") else value
        if not self.are_arguments or dtype not in ("i32", "i64", "f32") or number in STRUCTURE \
                or not math.isfinite(number):
            return literal(value, dtype)
        self.found.append(SizeArgument(number, near=False))
        return f"tl.full((), n{len(self.found) - 1}, {REGISTER[dtype]})"

    def quartered(self) -> list[str]:
        """Lines to begin with where loads may be four wide: the arguments are quarters then.

        Multiples of 16 get a divisibility hint. Multiples of 4 are passed divided by 4, so that
        Triton sees the factor: softmax of 8192 x 5000 takes 1.2 times as long with scalar loads.
        """
        near = [k for k, n in enumerate(self.found) if n.near and n.value not in STRUCTURE]
        values = [self.found[k].value for k in near]
        if all(v % 16 == 0 for v in values) or any(v % 4 or v >= 2**31 for v in values):
            return []
        for k in near:
            self.found[k] = SizeArgument(self.found[k].value // 4, near=True)
        return [f"n{k} = n{k} * 4" for k in near]

    def extent(self, n: int, least: int = 1) -> int:
        """The extent of a tile for n elements: a power of two, of four if sizes vary.

        Where they do, it is `least` at least.
        """
        bits = max(n - 1, 0).bit_length()
        return max(least, 1 << (bits + bits % 2)) if self.are_arguments else 1 << bits

    def uneven(self, n: int, block: int) -> bool:
        """Whether tiles of a block may end beyond n elements."""
        return block > 1 if self.are_arguments else n % block != 0


def arguments_of(numbers: Sequence[SizeArgument]) -> list[tuple[int | float, str, bool]]:
    """Value and type of each argument, and whether it is to be known as a multiple of 16.

    Either all that decide about the width of loads are, or none.
    """
    aligned = all(n.value % 16 == 0 for n in numbers if n.near and n.value not in STRUCTURE)
    return [(n.value, "fp32" if isinstance(n.value, float) else
             "i32" if -2**31 <= n.value < 2**31 else "i64",
             aligned and n.near and n.value % 16 == 0) for n in numbers]
