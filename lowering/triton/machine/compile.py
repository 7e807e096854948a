"""Triton functions as machine code, ahead of time: no GPU, driver or torch is needed.

The stages of Triton's compiler are run one by one: `triton.compile` would look into its own cache,
and to do so read the whole of Triton (0.5 s in every process).
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

from triton._C.libtriton import ir, nvidia
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptx_version_from_options
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

from functrans.lowering.store.cache import PARSING
from functrans.lowering.triton.kernels.source import module_of
from functrans.lowering.triton.machine.elf import resources
from functrans.lowering.triton.machine.late_inlining import (
    coalesced_before_inlining,
    keep_functions,
)
from functrans.lowering.triton.machine.unit import Binary, Unit
from functrans.lowering.triton.templates.kernel import flushes_denormals

__all__ = [
    "ALIGNED",
    "SharedMemoryExceeded",
    "TritonStages",
    "compile_unit",
    "launched_early",
    "stages_of",
    "with_all_registers",
]

ALIGNED: Final = [["tt.divisibility", 16]]
"""The divisibility hint of an argument that is a multiple of 16."""

HOPPER: Final = 90
"""The first capability whose kernels may start before the one before them has ended."""

AMPERE: Final = 80

KINDS: Final = {"i32": "i", "i64": "l", "fp32": "f", "fp64": "d"}


class SharedMemoryExceeded(Exception):
    """A kernel takes more shared memory than its target has, with whatever stages."""


def compile_unit(unit: Unit) -> Binary:
    """The machine code of a kernel. Raises SharedMemoryExceeded, and whatever Triton raises."""
    for stages in stages_of(unit):
        compilation = TritonStages(unit, stages)
        # what a layout needs besides is not foreseen
        if compilation.shared() <= unit.shared and (
                binary := compilation.binary()).shared <= unit.shared:
            return binary
    raise SharedMemoryExceeded(
        f"it takes {compilation.shared()} bytes of shared memory, where GPUs of "
                               f"compute capability {unit.capability} have {unit.shared}")


def stages_of(unit: Unit) -> range:
    """The stages with which a kernel is compiled, until it fits the shared memory."""
    return range(max(unit.stages, 1), 0, -1)


def launched_early(ptx: str) -> str:
    """A kernel that waits for the one before it, and then lets the next be launched.

    So the launch of a kernel happens while the one before it runs (PTX, griddepcontrol). It waits
    before anything else, or wherever `device_math.grid_dependency_wait` stands: kernels that share
    a launch wait each for itself.
    """
    lines = ptx.split("\n")
    places = [k for k, line in enumerate(lines) if line.strip() == MARK]
    if not places:
        begin = lines.index("{", next(k for k, line in enumerate(lines) if ".entry" in line)) + 1
        while not lines[begin].strip() or lines[begin].lstrip().startswith(DECLARATIONS):
            begin += 1
        places = [begin]
    for place in reversed(places):
        lines[place:place] = ["\tgriddepcontrol.wait;", "\tgriddepcontrol.launch_dependents;"]
    return "\n".join(lines)


MARK: Final = "// earlier launches end"


def without_packed_additions(ptx: str) -> str:
    """A kernel whose additions of two numbers of 16 bits at once are two.

    ptxas 12.8 and 12.9 forget the constant in some of them (VIADD.16x2 adds 0): a diagonal that was
    repeated for 16 rows had its fifth element at the sixth place.
    """
    return PACKED_ADDITION.sub(TWO_ADDITIONS, ptx)


PACKED_ADDITION: Final = re.compile(r"\badd\.[su]16x2\s+(%\w+),\s*(%\w+),\s*(%\w+);")
TWO_ADDITIONS: Final = (r"{ .reg .b16 a0, a1, b0, b1; mov.b32 {a0, a1}, \2; mov.b32 {b0, b1}, \3; "
                        r"add.s16 a0, a0, b0; add.s16 a1, a1, b1; mov.b32 \1, {a0, a1}; }")


def rounded_copies(ptx: str) -> str:
    """A kernel whose descriptors behind `device_math.next_copies_round` are of TensorFloat-32.

    The copy engine rounds to the nearest what it copies as that type (PTX, tensormap.replace:
    `.elemtype`). Tensor cores cut off the last 13 bits of a float32 number, and what they read in
    shared memory passes no register. Triton's language has no such type.
    """
    head, *parts = ptx.split(ROUNDS)
    return head + ROUNDS.join(["", *[_rounded(part) for part in parts]])


def _rounded(part: str) -> str:
    changed, count = ELEMENT_TYPE.subn(rf"\g<1>{TENSOR_FLOAT32};", part, count=1)
    assert count == 1, "a descriptor that is to round is not of float32"
    return changed


def with_all_registers(ptx: str, warps: int) -> str:
    """A kernel whose threads may have all registers that the warps of a program can have.

    Of some kernels that let the next one begin early ptxas 12.9 takes 32, as many as 64 warps can
    have, and puts hundreds of a thread's numbers into memory: in a scan 916, where 255 leave 22.
    """
    most = min(255, REGISTERS // (32 * warps) // 8 * 8)
    return THREADS.sub(lambda found: f"{found[0]}\n.maxnreg {most}", ptx, count=1)


REGISTERS: Final = 65_536
"""Of a multiprocessor: a program that has more is not launched."""
SPILLED, FEW_REGISTERS = 64, 128
"""Bytes of a thread's stack, with fewer registers than these, are spilled for no reason."""
THREADS: Final = re.compile(r"^\.reqntid [0-9, ]+$", re.MULTILINE)
ROUNDS: Final = "// the next descriptor rounds"
ELEMENT_TYPE: Final = re.compile(
    r"(tensormap\.replace\.tile\.elemtype\S*\s+\[[^]]*\],\s*)(?:0x)?7;")
TENSOR_FLOAT32: Final = 11

BY_WARPS: Final = "fm.products_by_warps()"

DECLARATIONS: Final = (".reg", ".local", ".shared", ".loc", "//")


class TritonStages:
    """The stages of Triton's compiler for a kernel, which are run as far as someone asks."""

    def __init__(self, unit: Unit, stages: int) -> None:
        self.unit, self.stages = unit, stages
        function = getattr(module_of(unit.source), unit.name)
        signature = dict(zip(function.arg_names, unit.types, strict=True))
        attributes = {(k,): ALIGNED for k, known in enumerate(unit.divisible) if known}
        source = ASTSource(function, signature, {}, attributes)
        target = GPUTarget("cuda", unit.capability, 32)
        backend = make_backend(target)
        self._options = options = backend.parse_options({
            "num_warps": unit.warps, "num_stages": stages, "enable_fp_fusion": unit.fuses,
            "enable_reflect_ftz": flushes_denormals(unit.source)})
        self._passes: dict[str, Any] = {}
        backend.add_stages(self._passes, options, source.language)
        if BY_WARPS in unit.source:
            self._passes["ttgir"] = partial(self._like_ampere, backend)
        self._context = ir.context()
        ir.load_dialects(self._context)
        backend.load_dialects(self._context)
        with PARSING:
            module = source.make_ir(
                target, options, backend.get_codegen_implementation(options),
                backend.get_module_map(), self._context)
        self._made: dict[str, Any] = {"": module}
        self._metadata: dict[str, Any] = {"target": target, **vars(options)}
        if kept := keep_functions(module):
            self._passes["ttgir"] = lambda module, metadata: coalesced_before_inlining(
                module, kept, options, metadata, unit.capability)

    def _like_ampere(self, backend: Any, module: Any, metadata: dict[str, Any]) -> Any:
        """The stage that chooses instructions of products: on Ampere those of one warp."""
        return backend.make_ttgir(module, metadata, self._options, AMPERE)

    def _run(self, last: str) -> Any:
        """What comes out of a stage, after those before it."""
        module = self._made[list(self._made)[-1]]
        for name, run in self._passes.items():
            if last in self._made:
                break
            if name not in self._made:
                module = run(module, self._metadata)
                if name == "ptx" and self.unit.capability >= HOPPER:
                    module = rounded_copies(launched_early(without_packed_additions(module)))
                self._made[name] = module
        return self._made[last]

    def shared(self) -> int:
        """Bytes of shared memory, as the first pass of the stage for LLVM finds them.

        10 ms, where all that follows takes seconds.
        """
        if self._metadata.get("shared") is not None:
            return int(self._metadata["shared"])
        module = self._run("ttgir")
        manager = ir.pass_manager(module.context)
        nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(
            manager, self.unit.capability,
            get_ptx_version_from_options(self._options, self.unit.capability))
        manager.run(module, "shared memory")
        return int(module.get_int_attr("ttg.shared"))

    def binary(self) -> Binary:
        """The machine code."""
        unit, metadata = self.unit, self._metadata
        cubin, ptx = self._run("cubin"), self._made["ptx"]
        registers, stack = resources(cubin)
        if stack > SPILLED and registers < FEW_REGISTERS:
            other = self._passes["cubin"](with_all_registers(ptx, unit.warps), metadata)
            if resources(other)[1] < stack:
                cubin, (registers, stack) = other, resources(other)
        kinds = "".join("p" if t[0] == "*" else KINDS[t] for t in unit.types)
        return Binary(metadata["name"], kinds, metadata["num_warps"], self.stages,
                      metadata["shared"], metadata.get("global_scratch_size") or 0,
                      metadata.get("global_scratch_align") or 1, registers, stack // 4, ptx, cubin)
