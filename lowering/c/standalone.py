"""Programs as C for those without Python: the text, and what builds, links and calls it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from functrans.core.dims import Dim
from functrans.core.jaxpr import Jaxpr
from functrans.lowering.c.calls import GEMM_TYPES
from functrans.lowering.c.expressions import size_text
from functrans.lowering.c.interface import API, CONV, GEMM
from functrans.lowering.c.isa import AVX2, AVX512, COMMON_FLAGS, GENERIC, NEON, Isa, host_isa
from functrans.lowering.c.lower import LoweredToC, lower
from functrans.lowering.loops.tensor import CLibraryCall
from functrans.lowering.portable import LibraryCall, StandaloneProgram
from functrans.lowering.rules.library import TYPE_CODES
from functrans.lowering.schedule.cpu_target import SERVER

__all__ = ["HEADERS", "INSTRUCTION_SETS", "standalone"]

INSTRUCTION_SETS: Final[dict[str, Callable[[], Isa]]] = {
    "generic": lambda: GENERIC, "avx2": lambda: AVX2, "avx512": lambda: AVX512,
    "neon": lambda: NEON, "host": host_isa}


def _codes(prefix: str, types: Iterable[str]) -> str:
    return f"enum {{ {', '.join(prefix + t.upper() for t in types)} }};\n"


HEADERS: Final = {"api.h": API, "gemm.h": GEMM, "conv.h": CONV,
                  "product_types.h": _codes("FT_", GEMM_TYPES),
                  "row_types.h": _codes("FT_ROW_", TYPE_CODES)}
"""The C types by which programs and their runtime know each other, by the name of the header."""


def standalone(jaxpr: Jaxpr, isa: str) -> StandaloneProgram | None:
    """The program of a jaxpr; None where it computes nothing, or decides sizes of its results."""
    instructions = INSTRUCTION_SETS[isa]()
    made = lower(jaxpr, frozenset(), isa=instructions)
    if made is None:
        return None
    text = made.text
    return StandaloneProgram(
        text=f"#define FT_PARALLEL_WORK {SERVER.exported_parallel_work}\n{text.text}",
        sizes=_sizes(made), constants=text.constants,
        arena_bytes=text.arena_bytes if isinstance(text.arena_bytes, int) else 0,
        library=text.libs, library_calls=_library_calls(made),
        host_equations=[call.eqn for call in text.hosts],
        product_types=_product_types(text.text), headers=HEADERS,
        flags=[f for f in COMMON_FLAGS if f != "-fPIC"], isa_flags=instructions.flags,
        size_text=size_text)


def _sizes(made: LoweredToC) -> list[Dim]:
    avals = made.simplified.in_avals
    sizes = [avals[number].shape[axis] for number, axis in made.sizes]
    return [size for size in sizes if isinstance(size, Dim)]


def _library_calls(made: LoweredToC) -> list[LibraryCall]:
    return [LibraryCall(step.function, step.is_complex, step.source)
            for schedule in made.text.schedules for step in schedule.steps
            if isinstance(step, CLibraryCall)]


def _product_types(text: str) -> dict[int, str]:
    """The element types of the products and convolutions in a program, those in loops included."""
    codes = {int(code) for code in re.findall(r"\.in_type = (\d+)", text)}
    return {code: GEMM_TYPES[code] for code in sorted(codes)}
