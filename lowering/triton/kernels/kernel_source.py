"""The source of a launch, and the buffers that it needs besides the tensors of the program."""

from __future__ import annotations

from dataclasses import dataclass, field

from functrans.lowering.loops.tensor import ITEM_SIZES, Tensor
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.triton.kernels.names import MEMORY
from functrans.lowering.triton.kernels.size_arguments import SizeArgument

__all__ = [
    "ArrivalCounters",
    "KernelOperand",
    "KernelSource",
    "Options",
    "PartialResults",
    "power_of_two",
]


@dataclass(frozen=True)
class Options:
    """How kernels are written.

    `any_size`: sizes are arguments, and the text is that of all sizes of a class.
    `has_arrival_counters`: programs may count who of them is done. `never_written` is what no
    launch of the program writes to.
    """

    any_size: bool = False
    has_arrival_counters: bool = True
    never_written: frozenset[Tensor] = frozenset()
    target: Target = HOPPER


@dataclass(eq=False)
class PartialResults:
    """The buffer of the partials that programs store: [count, size]."""

    count: int
    size: int
    dtype: str

    @property
    def nbytes(self) -> int:
        return self.count * self.size * max(ITEM_SIZES[self.dtype], 4)


@dataclass(eq=False)
class ArrivalCounters:
    """Each program adds 1 to a counter when it is done; the last one sets it to 0 again."""

    count: int
    dtype = "i32"

    @property
    def nbytes(self) -> int:
        return 4 * self.count


KernelOperand = Tensor | PartialResults | ArrivalCounters


@dataclass
class KernelSource:
    """The source of a kernel, in which `NAME` stands for its name.

    Its arguments are pointers to `operands` in order, and `numbers`.
    """

    text: str
    operands: list[KernelOperand]
    grid: int
    warps: int
    numbers: list[SizeArgument] = field(default_factory=list)

    @property
    def types(self) -> list[str]:
        return [f"*{MEMORY[t.dtype]}" for t in self.operands]


def power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()
