"""Operands of a convolution of float32 that are packed first, into memory of the call.

Tensor cores read TensorFloat-32 along the sum alone, which are the features of the input: images
are packed with these last, as (batch, *space, features), and filters as (*window, out, in). Then
the copy engine moves boxes of them, and rounds on the way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from functrans.lowering.triton.templates.convolution_problem import ConvolutionProblem
from functrans.lowering.triton.templates.kernel import (
    BYTES,
    Argument,
    TemplateKernel,
    integer,
    pointer,
)
from functrans.lowering.triton.templates.pack import pack, pitch_of

__all__ = ["PackedConvolution", "can_pack", "packed"]


@dataclass(frozen=True)
class PackedConvolution:
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


def can_pack(p: ConvolutionProblem) -> bool:
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
