"""The source of a launch: names of types, numbers, and the buffers that it needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from functrans.core.dims import Size
from functrans.core.record import Record
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.tensor import ITEM_SIZES, Tensor
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.triton.templates.kernel import Argument, TemplateKernel
from functrans.lowering.triton.templates.notes import NOTHING_NOTED, KernelNotes

__all__ = ["ANY_FLAG_BYTES", "MEMORY", "REGISTER", "ArrivalCounters", "KernelOperand",
           "KernelSource", "Launches", "Options", "PartialResults", "SizeArgument", "SizeArguments",
           "any_flag_memory", "arguments_of", "clear_any_flags", "literal", "power_of_two"]


# --- Names of element types in Triton, and numbers as its source text

MEMORY = {"f32": "fp32", "f64": "fp64", "f16": "fp16", "bf16": "bf16", "i8": "i8", "i16": "i16",
          "i32": "i32", "i64": "i64", "u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64",
          "bool": "u8", "f8e4": "u8", "f8e5": "u8"}
"""The types of elements in memory, as in signatures."""

REGISTER = {"f32": "tl.float32", "f64": "tl.float64", "f16": "tl.float16", "bf16": "tl.bfloat16",
            "i8": "tl.int8", "i16": "tl.int16", "i32": "tl.int32", "i64": "tl.int64",
            "u8": "tl.uint8", "u16": "tl.uint16", "u32": "tl.uint32", "u64": "tl.uint64",
            "bool": "tl.int1", "f8e4": "tl.uint8", "f8e5": "tl.uint8"}


def literal(value: Any, dtype: str) -> str:
    """A number of a dtype; the text has that dtype wherever it stands."""
    if dtype == "bool":
        return f"tl.full((), {int(bool(value))}, tl.int1)"
    if dtype[0] == "f":
        number = float(value)
        if math.isnan(number):
            text = "float('nan')"
        elif math.isinf(number):
            text = "float('inf')" if number > 0 else "float('-inf')"
        else:
            text = repr(number)
        return f"tl.full((), {text}, {REGISTER[dtype]})"
    return f"tl.full((), {int(value)}, {REGISTER[dtype]})"


# --- The numbers of a kernel that come from sizes: written into its text, or its arguments
#
# A mean divides by a size: constants of programs may come from sizes, too. Where they are
# arguments, the text and the machine code are those of all sizes of a class: sizes of 1 and tiles,
# which are rounded up to powers of four (of two along rows that registers hold), make classes, and
# so does whether everything that decides how wide loads may be is a multiple of 16, or of 4.

STRUCTURE = (-1, 0, 1)
"""Factors and terms that are no numbers: what they stand in is written in another way."""


class SizeArgument(Record):
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


# --- The source of a launch, and the buffers that it needs besides the tensors of the program

class Options(Record):
    """How kernels are written.

    `any_size`: sizes are arguments, and the text is that of all sizes of a class.
    `has_arrival_counters`: programs may count who of them is done. `never_written` is what no
    launch of the program writes to.
    """

    any_size: bool = False
    has_arrival_counters: bool = True
    never_written: frozenset[Tensor] = frozenset()
    target: Target = HOPPER


class PartialResults(Record, frozen=False, eq=False):
    """The buffer of the partials that programs store: [count, size]."""

    count: int
    size: int
    dtype: str

    @property
    def nbytes(self) -> int:
        return self.count * self.size * max(ITEM_SIZES[self.dtype], 4)


class ArrivalCounters(Record, frozen=False, eq=False):
    """Each program adds 1 to a counter when it is done; the last one sets it to 0 again."""

    count: int
    dtype = "i32"

    @property
    def nbytes(self) -> int:
        return 4 * self.count


KernelOperand = Tensor | PartialResults | ArrivalCounters


class KernelSource(Record, frozen=False):
    """The source of a kernel, in which `NAME` stands for its name.

    Its arguments are pointers to `operands` in order, and `numbers`. `flops` is its arithmetic;
    None: the first such launch of a step has all of it.
    """

    text: str
    operands: list[KernelOperand]
    grid: int
    warps: int
    numbers: list[SizeArgument] = field(default_factory=list)
    flops: int | None = None
    notes: KernelNotes = field(default=NOTHING_NOTED, compare=False, repr=False)

    @property
    def types(self) -> list[str]:
        return [f"*{MEMORY[t.dtype]}" for t in self.operands]


def power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


# --- Any-flags: bytes of a program, cleared before all launches, set where a condition holds

ANY_FLAG_BYTES = 16
"""Bytes of a flag: the alignment of accesses of every width."""


def any_flag_memory(count: int) -> PartialResults:
    """Memory for some flags of a program, next to each other."""
    return PartialResults(1, power_of_two(count * ANY_FLAG_BYTES // 4), "i32")


def clear_any_flags(room: PartialResults, more: Sequence[Tensor]) -> KernelSource:
    """The launch before all others, which sets all flags to 0."""
    operands: list[KernelOperand] = [room, *more]
    lines = [f"tl.store(p0 + tl.arange(0, {room.size}), 0)",
             *[f"tl.store(p{k}, 0)" for k in range(1, len(operands))]]
    arguments = ", ".join(f"p{k}" for k in range(len(operands)))
    text = f"@triton.jit\ndef NAME({arguments}):\n" + "".join(f"    {x}\n" for x in lines)
    return KernelSource(text, operands, 1, 4)


# --- Kernels that compute one call, and what their pointers are

class Launches(Record, frozen=False, eq=False):
    """Kernels in order, and what their pointers are: by name a tensor, and bytes into it."""

    kernels: list[TemplateKernel]
    places: dict[str, tuple[KernelOperand, int]]

    def __post_init__(self) -> None:
        if nbytes := max(k.workspace for k in self.kernels):
            self.places["workspace"] = (PartialResults(1, -(-nbytes // 4), "f32"), 0)
        if count := max(k.arrivals for k in self.kernels):
            self.places["arrivals"] = (ArrivalCounters(count), 0)

    @property
    def touched(self) -> Iterable[KernelOperand]:
        return dict.fromkeys(t for t, _ in self.places.values())
