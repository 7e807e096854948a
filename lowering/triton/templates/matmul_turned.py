"""Operands of a product that are transposed first, into memory of the call.

Tensor cores read float32 and float8 along the sum alone; other layouts go through registers, at a
third of the speed (4096^3 in tf32: 122 TFLOP/s, not 359, or 328 with what transposing takes).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from functrans.lowering.triton.templates.kernel import (
    BYTES,
    Argument,
    Expression,
    Kernel,
    expand,
    integer,
    pointer,
)
from functrans.lowering.triton.templates.matmul_problem import Matmul, Operand

__all__ = ["Turned", "can_turn", "is_read_along", "turned"]

TURN = '''
@triton.jit
def NAME():
    fars = tl.cdiv(far, BLOCK)
    nears = tl.cdiv(near, BLOCK)
    tile = tl.program_id(0)
    matrix = tl.cast(tile // (fars * nears), tl.int64)
    at_far = tile // nears % fars * BLOCK + tl.arange(0, BLOCK)
    at_near = tile % nears * BLOCK + tl.arange(0, BLOCK)
    source = SOURCE + matrix // count1 * step0 + matrix % count1 * step1
    known = (at_far < far)[:, None] & (at_near < near)[None, :]
    x = tl.load(source + (tl.cast(at_far, tl.int64) * step)[:, None] + at_near[None, :], mask=known)
    target = workspace + first + matrix * far * near
    here = (tl.cast(at_near, tl.int64) * far)[:, None] + at_far[None, :]
    tl.store(target + here, tl.trans(x), mask=tl.trans(known))
'''


@dataclass(frozen=True)
class Turned:
    """`problem` reads `places` of the workspace, in elements, by operand."""

    kernels: tuple[Kernel, ...]
    problem: Matmul
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


def is_read_along(p: Matmul) -> bool:
    """Whether tensor cores read the operands of a product along the sum alone."""
    return BYTES[p.a.dtype] == 1 or (p.a.dtype == "fp32" and p.precision == "tf32")


def can_turn(p: Matmul) -> bool:
    """Whether a product has operands that are worth transposing."""
    fits = p.a.dtype == p.b.dtype and p.k * BYTES[p.a.dtype] % 16 == 0
    return is_read_along(p) and bool(p.across) and fits and all(
        op.along != "neither" if name in p.across else op.has_descriptor
        for name, op in (("a", p.a), ("b", p.b)))


def turned(p: Matmul, name: str = "turned") -> Turned:
    """The product of operands that are read along the sum, and the launches before it."""
    kernels: list[Kernel] = []
    places: dict[str, int] = {}
    operands: dict[str, Operand] = {}
    size = 0
    for which in p.across:
        op = getattr(p, which)
        near = p.m if which == "a" else p.n
        counts = [n if step else 1 for n, step in zip(p.batch, op.batch)]
        matrix = near * p.k
        batch = (counts[1] * matrix if op.batch[0] else 0, matrix if op.batch[1] else 0)
        operands[which] = replace(op, row=p.k, col=1, batch=batch, aligned=True) \
            if which == "a" else replace(op, row=1, col=p.k, batch=batch, aligned=True)
        places[which] = size
        kernels.append(_turn(f"{name}_{which}", which, op, near, p.k, counts, size))
        size += matrix * counts[0] * counts[1]
    nbytes = size * BYTES[p.a.dtype]
    return Turned(tuple([replace(k, workspace=nbytes) for k in kernels]),
                  replace(p, **operands), places, nbytes)  # type: ignore[arg-type]


def _turn(name: str, which: str, op: Operand, near: int, far: int, counts: list[int],
          first: int) -> Kernel:
    arguments = (
        pointer(which, op.dtype, op.aligned), pointer("workspace", op.dtype), integer("far", far),
        integer("near", near), integer("step", op.col if which == "a" else op.row),
        integer("count1", counts[1]), integer("step0", op.batch[0]), integer("step1", op.batch[1]),
        integer("first", first))
    block = 64 if BYTES[op.dtype] > 1 else 128
    text = expand(TURN, name, arguments, {"BLOCK": block, "SOURCE": Expression(which)})
    tiles = -(-near // block) * -(-far // block) * counts[0] * counts[1]
    return Kernel(name, text, arguments, (tiles, 1, 1), 4, 1, flops=0)
