"""Calls: the steps of a program that are not expressions of the loop language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from functrans.core.dims import Dim, Size
from functrans.core.jaxpr import Equation, Jaxpr, subjaxprs
from functrans.core.precision import Precision
from functrans.core.source import Source
from functrans.lowering.loops.tensor import Stored, Tensor

__all__ = ["Branch", "CLibraryCall", "Call", "Conv", "Gemm", "HostCall", "ScanLoop", "WhileLoop"]


class Call:
    """Reads its operands from memory, writes its results to memory."""

    name = "call"
    has_effect = False
    scratch: Sequence[Size] = ()
    """Bytes of memory that it needs besides operands and results."""
    updated: Tensor | None = None
    """An operand in whose memory the first result may be: it is read where that is written."""
    is_composed = False
    """Whether simpler operations, from which it was recognised, compute the same."""
    replaces_elements = False
    """Whether that is an update that a user wrote, who may ask for updates in place."""

    def __init__(self, operands: Sequence[Tensor], results: Sequence[Stored],
                 source: Source | None) -> None:
        self.operands = tuple(operands)
        self.results = tuple(results)
        self.source = source

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.operands))})"


class HostCall(Call):
    """An equation that Python evaluates: callbacks, and primitives without a rule."""

    name = "host call"

    def __init__(self, eqn: Equation, operands: Sequence[Tensor],
                 results: Sequence[Stored]) -> None:
        super().__init__(operands, results, eqn.source)
        self.eqn = eqn
        self.has_effect = eqn.primitive.has_effect or any(map(has_effect, subjaxprs(eqn)))


class ScanLoop(Call):
    """A loop over the first axis of some operands, with a carry (see `primitives.control_flow`)."""

    name = "scan"

    def __init__(self, eqn: Equation, operands: Sequence[Tensor],
                 results: Sequence[Stored]) -> None:
        super().__init__(operands, results, eqn.source)
        self.body = eqn.params["jaxpr"]
        self.length: Size = eqn.params["length"]
        self.reverse: bool = eqn.params["reverse"]
        self.num_consts: int = eqn.params["num_consts"]
        self.num_carry: int = eqn.params["num_carry"]
        self.has_effect = has_effect(self.body)


class WhileLoop(Call):
    """A loop while a predicate of the carry holds.

    Its body may have `records` besides the carry, of every iteration: `record` is their number.
    """

    name = "while"

    def __init__(self, eqn: Equation, operands: Sequence[Tensor],
                 results: Sequence[Stored]) -> None:
        super().__init__(operands, results, eqn.source)
        self.predicate = eqn.params["cond_jaxpr"]
        self.body = eqn.params["body_jaxpr"]
        self.predicate_consts: int = eqn.params["cond_nconsts"]
        self.body_consts: int = eqn.params["body_nconsts"]
        self.record: Dim | None = eqn.params.get("record")
        self.records = self.results[len(operands) - self.predicate_consts - self.body_consts:]
        self.has_effect = has_effect(self.body) or has_effect(self.predicate)


class Branch(Call):
    """One of several programs, chosen by the first operand."""

    name = "cond"

    def __init__(self, eqn: Equation, operands: Sequence[Tensor],
                 results: Sequence[Stored]) -> None:
        super().__init__(operands, results, eqn.source)
        self.branches = eqn.params["branches"]
        self.has_effect = any(map(has_effect, self.branches))


class Gemm(Call):
    """A product of matrices; `fields` are the sizes and strides of the library's `ft_gemm`.

    `precision` is that of float32 on GPUs, None what the settings say.
    """

    name = "gemm"

    def __init__(self, a: Tensor, b: Tensor, a_offset: Size, b_offset: Size,
                 fields: Mapping[str, Size], result: Stored, source: Source | None,
                 precision: Precision | None = None) -> None:
        super().__init__((a, b), (result,), source)
        self.precision = precision
        self.a_offset = a_offset
        self.b_offset = b_offset
        self.fields = fields


class Conv(Call):
    """A convolution; `fields` are those of the library's `ft_conv`, `offsets` of x and w."""

    name = "conv"

    def __init__(self, x: Tensor, w: Tensor, offsets: tuple[Size, Size],
                 fields: Mapping[str, Size | Sequence[Size]], result: Stored,
                 source: Source | None, precision: Precision | None = None) -> None:
        super().__init__((x, w), (result,), source)
        self.precision = precision
        self.offsets = offsets
        self.fields = fields


Argument = Size | Tensor | Sequence[int] | Sequence[Tensor]


class CLibraryCall(Call):
    """A call of a library function; `signature` are the C types of its arguments.

    An argument is a size, a tensor (its address), or an array of either.
    """

    name = "library"

    def __init__(self, function: str, signature: str, operands: Sequence[Tensor],
                 results: Sequence[Stored], arguments: Sequence[Argument],
                 source: Source | None) -> None:
        super().__init__(operands, results, source)
        self.function = function
        self.signature = signature
        self.arguments = tuple(arguments)


def has_effect(jaxpr: Jaxpr) -> bool:
    """Whether a program or one of its bodies does something besides its results."""
    return any(eqn.primitive.has_effect or any(map(has_effect, subjaxprs(eqn)))
               for eqn in jaxpr.eqns)
