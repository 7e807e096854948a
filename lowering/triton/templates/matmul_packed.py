"""Operands of a product that are packed first, into memory of the call.

Those that are stored across the sum are transposed, and those whose rows start anywhere are copied,
with rows that start at multiples of 16 bytes: the copy engine reads these, and rounds float32
operands on the way. Through registers 4095^3 in tf32 takes 1,233 us, so 430.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from functrans.lowering.triton.templates.kernel import (
    BYTES,
    Argument,
    TemplateKernel,
    integer,
    pointer,
)
from functrans.lowering.triton.templates.matmul_problem import MatmulOperand, MatmulProblem
from functrans.lowering.triton.templates.pack import pack, pitch_of

__all__ = ["PackedMatmul", "can_pack", "needs_contiguous_sums", "pack_operands"]

@dataclass(frozen=True)
class PackedMatmul:
    """`problem` reads `places` of the workspace, in elements, by operand."""

    kernels: tuple[TemplateKernel, ...]
    problem: MatmulProblem
    places: dict[str, int] = field(default_factory=dict)
    nbytes: int = 0

    @property
    def arguments(self) -> list[Argument]:
        if not self.places:
            return []
        return [pointer("workspace", self.problem.a.dtype),
                *[integer(f"{name}_place", at) for name, at in self.places.items()]]

    @property
    def lines(self) -> list[str]:
        return [f"{name} = workspace + {name}_place" for name in self.places]


def needs_contiguous_sums(p: MatmulProblem) -> bool:
    """Whether tensor cores read the operands of a product along the sum alone."""
    return BYTES[p.a.dtype] == 1 or (p.a.dtype == "fp32" and p.precision == "tf32")


def can_pack(p: MatmulProblem) -> bool:
    """Whether a product has operands that are worth packing."""
    return needs_contiguous_sums(p) and p.a.dtype == p.b.dtype and p.k > 0 and bool(_packed(p))


def _packed(p: MatmulProblem) -> list[str]:
    """The operands that the copy engine or the tensor cores cannot read where they are."""
    return [name for name, op in (("a", p.a), ("b", p.b))
            if name in p.across or not op.has_descriptor]


def pack_operands(p: MatmulProblem, name: str = "turned") -> PackedMatmul:
    """The product of operands that are read along the sum, and the launches before it."""
    kernels: list[TemplateKernel] = []
    places: dict[str, int] = {}
    operands: dict[str, MatmulOperand] = {}
    size, pitch = 0, pitch_of(p.k, p.a.dtype)
    for which in _packed(p):
        op = getattr(p, which)
        near, near_step, col_step = (p.m, op.row, op.col) if which == "a" else (
            p.n, op.col, op.row)
        counts = [n if step else 1 for n, step in zip(p.batch, op.batch)]
        matrix = near * pitch
        batch = (counts[1] * matrix if op.batch[0] else 0, matrix if op.batch[1] else 0)
        operands[which] = replace(op, row=pitch, col=1, batch=batch, aligned=True) \
            if which == "a" else replace(op, row=1, col=pitch, batch=batch, aligned=True)
        places[which] = size
        dims = [*zip(counts, op.batch), (near, near_step)]
        kernels.append(pack(f"{name}_{which}", which, op.dtype, dims, (p.k, col_step), size,
                            op.aligned))
        size += matrix * counts[0] * counts[1]
    nbytes = size * BYTES[p.a.dtype]
    return PackedMatmul(tuple([replace(k, workspace=nbytes) for k in kernels]),
                        replace(p, **operands), places, nbytes)  # type: ignore[arg-type]
