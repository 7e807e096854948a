"""Triton functions as machine code, ahead of time: no GPU, driver or torch is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

__all__ = ["ALIGNED", "Binary", "compile_kernel"]

ALIGNED = [["tt.divisibility", 16]]
"""What Triton is told of a number, or an address, that is a multiple of 16."""

KINDS = {"i32": "i", "i64": "l", "fp32": "f", "fp64": "d"}


@dataclass(frozen=True)
class Binary:
    """Machine code of a kernel, and what the driver must be told to launch it.

    `scratch` are bytes of global memory for each program, which a launch passes after the other
    arguments.
    """

    name: str
    kinds: str  # of its arguments, a letter each: p pointer, i int32, l int64, f float32
    cubin: bytes
    warps: int
    shared: int
    scratch: int
    scratch_alignment: int
    ptx: str
    registers: int
    spills: int


def compile_kernel(function: Any, types: Sequence[str], divisible: Sequence[bool], warps: int,
                   stages: int = 3, capability: int = 90, fuses: bool = False) -> Binary:
    """Compile a function of Triton for GPUs of a compute capability.

    `types` are those of its arguments, as `*fp32` or `i32`; which are `divisible` by 16 is known.
    """
    names = function.arg_names
    signature = dict(zip(names, types, strict=True))
    attributes = {(k,): ALIGNED for k, known in enumerate(divisible) if known}
    source = ASTSource(function, signature, {}, attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32),
                              options={"num_warps": warps, "num_stages": stages,
                                       "enable_fp_fusion": fuses})
    meta = compiled.metadata
    kinds = "".join("p" if t[0] == "*" else KINDS[t] for t in types)
    return Binary(meta.name, kinds, compiled.asm["cubin"], meta.num_warps, meta.shared,
                  getattr(meta, "global_scratch_size", 0) or 0,
                  getattr(meta, "global_scratch_align", 1) or 1, compiled.asm["ptx"],
                  getattr(compiled, "n_regs", 0) or 0, getattr(compiled, "n_spills", 0) or 0)
