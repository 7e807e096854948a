"""Triton functions as machine code, ahead of time: no GPU, driver or torch is needed.

The stages of Triton's compiler are run one by one: `triton.compile` would look into its own cache,
and to do so read the whole of Triton (0.5 s in every process).
"""

from __future__ import annotations

from typing import Any, Final

from triton._C.libtriton import ir, nvidia
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptx_version_from_options
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

from functrans.lowering.c.manifests import PARSING
from functrans.lowering.triton.kernels.source import module_of
from functrans.lowering.triton.machine.elf import resources
from functrans.lowering.triton.machine.unit import Binary, Unit

__all__ = ["ALIGNED", "compile_unit", "launched_early"]

ALIGNED: Final = [["tt.divisibility", 16]]
"""What Triton is told of a number, or an address, that is a multiple of 16."""

HOPPER: Final = 90
"""The first capability whose kernels may start before the one before them has ended."""

KINDS: Final = {"i32": "i", "i64": "l", "fp32": "f", "fp64": "d"}


def compile_unit(unit: Unit) -> Binary:
    """The machine code of a kernel. Raises whatever Triton raises."""
    function = getattr(module_of(unit.source), unit.name)
    for stages in range(unit.stages, 1, -1):  # what a layout needs besides is not foreseen
        binary = _compile(function, unit, stages, unit.shared)
        if binary is not None and binary.shared <= unit.shared:
            return binary
    binary = _compile(function, unit, 1)
    assert binary is not None
    return binary


def _shared_bytes(module: Any, options: Any, unit: Unit) -> int:
    """What the first pass of the next stage finds: 10 ms, where all that follows takes seconds."""
    manager = ir.pass_manager(module.context)
    nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(
        manager, unit.capability, get_ptx_version_from_options(options, unit.capability))
    manager.run(module, "shared memory")
    return int(module.get_int_attr("ttg.shared"))


def launched_early(ptx: str) -> str:
    """A kernel that waits for the one before it, and then lets the next be launched.

    So the launch of a kernel happens while the one before it runs (PTX, griddepcontrol). It waits
    before anything else, or where `device_math.earlier_launches_end` stands.
    """
    lines = ptx.split("\n")
    begin = next((k for k, line in enumerate(lines) if line.strip() == MARK), 0)
    if not begin:
        begin = lines.index("{", next(k for k, line in enumerate(lines) if ".entry" in line)) + 1
        while not lines[begin].strip() or lines[begin].lstrip().startswith(DECLARATIONS):
            begin += 1
    lines[begin:begin] = ["\tgriddepcontrol.wait;", "\tgriddepcontrol.launch_dependents;"]
    return "\n".join(lines)


MARK: Final = "// earlier launches end"


DECLARATIONS: Final = (".reg", ".local", ".shared", ".loc", "//")


def _compile(function: Any, unit: Unit, stages: int, most: int | None = None) -> Binary | None:
    """The machine code, or None where it is known early to take more than `most` shared memory."""
    signature = dict(zip(function.arg_names, unit.types, strict=True))
    attributes = {(k,): ALIGNED for k, known in enumerate(unit.divisible) if known}
    source = ASTSource(function, signature, {}, attributes)
    target = GPUTarget("cuda", unit.capability, 32)
    backend = make_backend(target)
    options = backend.parse_options({"num_warps": unit.warps, "num_stages": stages,
                                     "enable_fp_fusion": unit.fuses})
    passes: dict[str, Any] = {}
    backend.add_stages(passes, options, source.language)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    with PARSING:
        made = {"ttir": source.make_ir(target, options, backend.get_codegen_implementation(options),
                                       backend.get_module_map(), context)}
    metadata: dict[str, Any] = {"target": target, **vars(options)}
    module = made["ttir"]
    for name, run in passes.items():
        module = run(module, metadata)
        if name == "ttgir" and most is not None and _shared_bytes(module, options, unit) > most:
            return None
        if name == "ptx" and unit.capability >= HOPPER:
            module = launched_early(module)
        made[name] = module
    registers, stack = resources(made["cubin"])
    kinds = "".join("p" if t[0] == "*" else KINDS[t] for t in unit.types)
    return Binary(metadata["name"], kinds, metadata["num_warps"], stages, metadata["shared"],
                  metadata.get("global_scratch_size") or 0,
                  metadata.get("global_scratch_align") or 1, registers, stack // 4, made["ptx"],
                  made["cubin"])
