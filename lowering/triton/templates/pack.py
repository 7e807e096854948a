"""Operands in memory of the call, in the order in which the copy engine and tensor cores read them.

Tensor cores read float32 and float8 along the sum alone, and the copy engine reads rows that start
at multiples of 16 bytes. Other layouts go through registers, at half of the speed or less
(4096^3 in tf32: 173 TFLOP/s, not 359, or 328 with what packing takes).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from functools import lru_cache

from functrans.core.record import Record
from functrans.lowering.triton.templates.convolution_problem import ConvolutionProblem
from functrans.lowering.triton.templates.kernel import (
    BYTES,
    Argument,
    Expression,
    TemplateKernel,
    expand,
    integer,
    pointer,
    power_of_two,
)
from functrans.lowering.triton.templates.matmul_problem import MatmulOperand, MatmulProblem

__all__ = ["PackedConvolution", "PackedMatmul", "can_pack", "can_pack_convolution",
           "needs_contiguous_sums", "pack", "pack_operands", "packed", "pitch_of"]


PACK = '''
@triton.jit
def NAME():
    tiles = tl.cdiv(cols, COLS)
    tile = tl.program_id(0)
    col = tile % tiles * COLS + tl.arange(0, COLS)
    tile = tile // tiles
    tiles = tl.cdiv(near, ROWS)
    row = tile % tiles * ROWS + tl.arange(0, ROWS)
    tile = tile // tiles
    source = SOURCE + tl.cast(offset, tl.int64)
    target = workspace + tl.cast(first, tl.int64)
    OUTER
    known = (row < near)[:, None] & (col < cols)[None, :]
    there = (tl.cast(row, tl.int64) * NEAR_STEP)[:, None] + (tl.cast(col, tl.int64)
                                                             * COL_STEP)[None, :]
    x = tl.load(source + there, mask=known)
    tl.store(target + ((tl.cast(row, tl.int64) * near_pitch)[:, None] + col[None, :]), x,
             mask=known)
'''


def pitch_of(count: int, dtype: str) -> int:
    """Elements from one row of so many to the next: rows start at multiples of 16 bytes."""
    unit = 16 // BYTES[dtype]
    return -(-count // unit) * unit


def pack(name: str, source: str, dtype: str, dims: Sequence[tuple[int, int]],
         col: tuple[int, int], first: int, aligned: bool, offset: int = 0) -> TemplateKernel:
    """The launch that writes rows of `col` to the workspace, for each index of `dims` one.

    `dims` and `col` are sizes, and strides of the source; `first` is the place of the first row.
    """
    merged: list[tuple[int, int]] = []
    for size, step in dims:
        if size == 1:
            continue
        if merged and merged[-1][1] == size * step:
            size *= merged.pop()[0]
        merged.append((size, step))
    merged = merged or [(1, 1)]
    pitches: list[int] = []
    pitch = pitch_of(col[0], dtype)
    for size, _ in reversed(merged):
        pitches.insert(0, pitch)
        pitch *= size
    near = next((i for i, (_, step) in enumerate(merged) if step == 1), len(merged) - 1)
    outer = [i for i in range(len(merged)) if i != near]
    lines = [line for k, _ in reversed(list(enumerate(outer))) for line in (
        f"at = tl.cast(tile % size{k}, tl.int64)", f"source += at * step{k}",
        f"target += at * pitch{k}", f"tile = tile // size{k}")]
    count, step = merged[near]
    arguments = (
        pointer(source, dtype, aligned), pointer("workspace", dtype), integer("cols", col[0]),
        integer("near", count), integer("near_pitch", pitches[near]), integer("offset", offset),
        integer("first", first), *[integer("near_step", step)] * (step != 1),
        *[integer("col_step", col[1])] * (col[1] != 1),
        *[integer(f"{what}{k}", value) for k, i in enumerate(outer) for what, value in (
            ("size", merged[i][0]), ("step", merged[i][1]), ("pitch", pitches[i]))])
    block = 64 if BYTES[dtype] > 1 else 128
    cols = min(block, power_of_two(col[0]))  # few would leave most threads without work
    rows = block * block // cols
    constants = {"ROWS": rows, "COLS": cols, "SOURCE": Expression(source),
                 "NEAR_STEP": Expression("near_step" if step != 1 else "1"),
                 "COL_STEP": Expression("col_step" if col[1] != 1 else "1")}
    tiles = -(-count // rows) * -(-col[0] // cols) * math.prod(merged[i][0] for i in outer)
    return TemplateKernel(name, expand(PACK, name, arguments, constants, {"OUTER": lines}),
                          arguments,
                          (tiles, 1, 1), 4, 1, flops=0)


# --- Operands of a product that are packed first, into memory of the call
#
# Those that are stored across the sum are transposed, and those whose rows start anywhere are
# copied, with rows that start at multiples of 16 bytes: the copy engine reads these, and rounds
# float32 operands on the way. Through registers 4095^3 in tf32 takes 1,233 us, so 430.

class PackedMatmul(Record):
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
    return BYTES[p.a.dtype] == 1 or (p.a.dtype == "fp32" and p.precision in ("tf32", "tf32x3"))


def can_pack(p: MatmulProblem) -> bool:
    """Whether a product has operands that are worth packing."""
    return needs_contiguous_sums(p) and p.a.dtype == p.b.dtype and p.k > 0 and not p.more \
        and bool(_packed(p))


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


# --- Operands of a convolution of float32 that are packed first, into memory of the call
#
# Tensor cores read TensorFloat-32 along the sum alone, which are the features of the input: images
# are packed with these last, as (batch, *space, features), and filters as (*window, out, in). Then
# the copy engine moves boxes of them, and rounds on the way.

class PackedConvolution(Record):
    """`problem` reads `places` of the workspace, in elements, by operand."""

    kernels: tuple[TemplateKernel, ...]
    problem: ConvolutionProblem
    places: dict[str, int] = field(default_factory=dict)
    size: int = 0

    @property
    def arguments(self) -> list[Argument]:
        return [integer(f"{name}_place", at) for name, at in self.places.items()]

    @property
    def lines(self) -> list[str]:
        return [f"{name} = workspace + {name}_place" for name in self.places]

    def inputs(self) -> list[Argument]:
        """The operands that are read where they are."""
        return [pointer(name, op.dtype, op.aligned)
                for name, op in (("x", self.problem.x), ("w", self.problem.w))
                if name not in self.places]


def can_pack_convolution(p: ConvolutionProblem) -> bool:
    """Whether a convolution has operands that are worth packing."""
    return (p.rounds and p.w.dtype == "fp32" and p.groups == 1 and p.rank <= 3
            and all(d == 1 for d in p.in_dilation) and p.in_features >= 16
            and 0 not in (p.batch, p.out_features, *p.in_size, *p.window, *p.out_size)
            and not (_is_along(p, "x") and _is_along(p, "w")))


def _is_along(p: ConvolutionProblem, which: str) -> bool:
    """Whether the copy engine reads an operand along the sum."""
    op, step, far = (p.x, p.x.feature, (p.x.batch, *p.x.space)) if which == "x" else (
        p.w, p.w.input, (p.w.out, *map(abs, p.w.space)))
    size = BYTES[op.dtype]
    return (step == 1 and op.aligned and op.offset * size % 16 == 0
            and all(s > 0 and s * size % 16 == 0 for s in far))


@lru_cache(maxsize=256)  # asked for by the estimate of each configuration
def packed(p: ConvolutionProblem, first: int = 0, name: str = "packed") -> PackedConvolution:
    """The convolution of operands with the features of the input last, and the launches before.

    They are in the workspace from element `first` on.
    """
    kernels: list[TemplateKernel] = []
    places: dict[str, int] = {}
    size, pitch = -(-first // 4) * 4, pitch_of(p.in_features, "fp32")
    q = p
    if not _is_along(p, "x"):
        dims = [(p.batch, p.x.batch), *zip(p.in_size, p.x.space)]
        kernels.append(pack(f"{name}_x", "x", "fp32", dims, (p.in_features, p.x.feature), size,
                            p.x.aligned, p.x.offset))
        space = _steps(p.in_size, pitch)
        image = math.prod(p.in_size) * pitch
        q = replace(q, x=replace(p.x, batch=image, feature=1, space=space, offset=0, aligned=True))
        places["x"], size = size, size + p.batch * image
    if not _is_along(p, "w"):
        dims = [*zip(p.window, p.w.space), (p.out_features, p.w.out)]
        kernels.append(pack(f"{name}_w", "w", "fp32", dims, (p.in_features, p.w.input), size,
                            p.w.aligned, p.w.offset))
        tap = p.out_features * pitch
        q = replace(q, w=replace(p.w, out=pitch, input=1, space=_steps(p.window, tap), offset=0,
                                 aligned=True))
        places["w"], size = size, size + p.taps * tap
    nbytes = size * BYTES["fp32"]
    return PackedConvolution(tuple([replace(k, workspace=nbytes) for k in kernels]), q, places,
                             size)


def _steps(sizes: tuple[int, ...], last: int) -> tuple[int, ...]:
    """Strides of dimensions, the last one of which has this."""
    return tuple([last * math.prod(sizes[i + 1:]) for i in range(len(sizes))])
