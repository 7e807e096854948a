"""Functions of `series_math` as calls, of one element a thread.

Fused with others, which have 8 or 16, igamma took 11 s to compile for an H100, its derivative
spilled 386 registers; so they take 3 and 2 s, with 56 and 120 registers and next to no spills.
"""

from __future__ import annotations

from typing import Final

from functrans.core.jaxpr import Equation
from functrans.core.table import Table
from functrans.lowering.loops.tensor import NARROW, Stored, Tensor, dtype_name
from functrans.lowering.triton.kernels.axis_calls import AxisCall, module_text
from functrans.lowering.triton.kernels.expressions import narrow, widened
from functrans.lowering.triton.kernels.kernel_source import MEMORY, Launches
from functrans.lowering.triton.templates.kernel import TemplateKernel, integer, pointer
from functrans.primitives.special import igamma_p, igammac_p, random_gamma_grad_p, zeta_p

__all__ = ["FUNCTIONS", "series_rule"]

FUNCTIONS: Final[Table[str]] = Table(
    {igamma_p: "igamma", igammac_p: "igammac", random_gamma_grad_p: "random_gamma_grad",
     zeta_p: "zeta"}, otherwise="its terms are no loop")
TILE: Final = 128
"""Elements of a program, each of a thread."""


class SeriesCall(AxisCall):
    """A function of each pair of elements."""

    def __init__(self, eqn: Equation, xs: list[Tensor], size: int) -> None:
        aval = eqn.outvars[0].aval
        self.name = FUNCTIONS[eqn.primitive]
        super().__init__(xs, [Stored(aval.shape, dtype_name(aval.dtype) or "", (), eqn.source)],
                         eqn.source)
        self.size = size

    def launches(self) -> Launches:
        (y,) = self.results
        names = [f"x{k}" for k in range(len(self.operands))]
        loads = [self._load(name, x) for name, x in zip(names, self.operands, strict=True)]
        value = f"fm.{self.name}({', '.join(loads)}) + tl.zeros([{TILE}], tl.int8)"
        value = narrow(f"({value})", y.dtype) if y.dtype in NARROW else value
        text = f"@triton.jit\ndef {self.name}({', '.join(names)}, y, n):\n" + "".join(
            f"    {line}\n" for line in (
                f"i = tl.program_id(0).to(tl.int64) * {TILE} + tl.arange(0, {TILE})",
                f"tl.store(y + i, {value}, mask=i < n)"))
        arguments = (*[pointer(name, MEMORY[x.dtype]) for name, x in
                       zip(names, self.operands, strict=True)],
                     pointer("y", MEMORY[y.dtype]), integer("n", self.size))
        kernel = TemplateKernel(self.name, module_text(text), arguments,
                                (-(-self.size // TILE), 1, 1), TILE // 32, 3)
        places = {name: (x, 0) for name, x in zip(names, self.operands, strict=True)}
        return Launches([kernel], {**places, "y": (y, 0)})

    def _load(self, name: str, x: Tensor) -> str:
        """Elements, or the one of a scalar."""
        text = f"tl.load({name} + i, mask=i < n, other=0)" if x.shape else f"tl.load({name})"
        return widened(text, x.dtype) if x.dtype in NARROW else text


def series_rule(eqn: Equation, xs: list[Tensor]) -> SeriesCall | None:
    size = eqn.outvars[0].aval.size
    return SeriesCall(eqn, xs, size) if isinstance(size, int) and size else None
