"""Calls that kernels of this backend compute along one axis: scans and sorting."""

from __future__ import annotations

from collections.abc import Callable

from functrans.lowering.loops.tensor import Call, Tensor
from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.triton.kernels.kernel_source import Launches
from functrans.lowering.triton.kernels.reductions import FUNCTIONS
from functrans.lowering.triton.templates.kernel import Argument

__all__ = ["AxisCall", "extents", "module_text", "sizes"]

HEAD = """\
import triton
import triton.language as tl

from functrans.lowering.triton.kernels import device_math as fm
"""


class AxisCall(Call):
    """A call that knows its launches; with `any_size`, of kernels that other sizes share.

    `target` is what they are compiled for; `spills` tells how many numbers of a thread launches are
    known to keep out of registers.
    """

    name = "rows"
    any_size = False
    target = HOPPER
    spills: Callable[[Launches], int] = staticmethod(lambda launches: 0)

    def launches(self) -> Launches:
        """Raises UnsupportedKernel for sizes that are not known."""
        raise NotImplementedError


def module_text(*functions: str) -> str:
    """The text of a module with these functions and the combine functions that they call."""
    text = "\n\n".join(functions)
    folds = [f"@triton.jit\n{f.strip()}\n" for f in FUNCTIONS.split("@triton.jit") if f.strip()
             and f.split("def ")[1].split("(")[0] in text]
    return "\n\n".join([HEAD, *folds, text])


def extents(x: Tensor, axis: int) -> tuple[int, int, int] | None:
    """The sizes before an axis, of it, and after it; None where one is not known."""
    sizes = [1, 1, 1]
    for k, n in enumerate(x.shape):
        if not isinstance(n, int):
            return None
        sizes[(k >= axis) + (k > axis)] *= n
    return sizes[0], sizes[1], sizes[2]


def sizes(**numbers: int) -> dict[str, Argument]:
    """Numbers that are arguments: kernels of all sizes are one."""
    return {name: Argument(name, "i32", False, value) for name, value in numbers.items()}
