"""The texts of an exported C program: runtime, constants, function, header and CMake file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from functrans.core.bounds import Bound
from functrans.core.guards import Guard
from functrans.export.c_names import Parameter
from functrans.export.container import ALIGNMENT, aligned
from functrans.lowering.c.isa import COMMON_FLAGS, Isa
from functrans.lowering.c.names import size_text
from functrans.lowering.c.products import GEMM_TYPES

__all__ = ["LIBRARY", "Function", "cmake_text", "constants_files", "function_text", "header_text",
           "runtime_text"]

RUNTIME: Final = Path(__file__).parent / "runtime"
_PRODUCTS = ("numbers.c", "gemm.c", "gemm_of_type.c")
LIBRARY: Final[dict[str, tuple[str, ...]]] = {
    "gemm": _PRODUCTS,
    "conv": (*_PRODUCTS, "conv.c"),
    **dict.fromkeys(("sort_rows", "argsort_rows", "top_k_rows"), ("rows.c", "sort.c")),
    "cumulate_rows": ("rows.c", "cumulate.c"),
}
"""The library functions that exported programs have, and the files that define each."""

MOST_TEXT: Final = 1 << 20
"""Bytes of constants that are written as C; more are a file of their own (2.5 s for 10 MB)."""


@dataclass(frozen=True)
class Function:
    """What the C function is: its name, sizes, arrays and memory."""

    name: str
    sizes: Mapping[str, Bound]
    constraints: Sequence[Guard]
    inputs: Sequence[Parameter]
    outputs: Sequence[Parameter]
    constants: Sequence[np.ndarray[Any, Any]]
    hoisted: int
    """How many of the constants come before the inputs; the others come after them."""
    arena_bytes: int
    libs: Sequence[str]
    product_types: Sequence[int]
    """The codes of the element types of its products."""

    @property
    def places(self) -> list[int]:
        """Where each constant begins in the block of all."""
        at, found = 0, []
        for c in self.constants:
            found.append(at)
            at = aligned(at + c.nbytes)
        return found

    def signature(self, line: str) -> str:
        """The declaration, a parameter a line."""
        parts = [f"int64_t {name}" for name in self.sizes]
        parts += [f"const {p.ctype} *{p.name}" for p in self.inputs]
        parts += [f"{p.ctype} *{p.name}" for p in self.outputs]
        return f"int {self.name}({line}{(',' + line).join(parts) or 'void'})"


def runtime_text(function: Function) -> str:
    """The C text of threads, memory and the library functions that the program calls."""
    files = list(dict.fromkeys(("core.c", *(f for lib in function.libs for f in LIBRARY[lib]))))
    parts = []
    for file in files:
        text = (RUNTIME / file).read_text()
        parts.append(_products(text, function) if file == "gemm_of_type.c" else text)
    entries = ", ".join([*(f"(void *)ft_lib_{lib}" for lib in function.libs), "0"])
    parts.append(f"static void *const ft_library[] = {{{entries}}};\n"
                 f"const ft_api {function.name}_api = {{1, ft_parallel, 0, ft_allocate, free, "
                 "ft_library};\n")
    return "\n".join(parts)


def _products(text: str, function: Function) -> str:
    """The products of the element types that the program has, narrow integers in 32 bits."""
    sums = {code: _SUMS.get(GEMM_TYPES[code], "u32") for code in function.product_types}
    parts = [text.replace("SUM", {"f32": "float", "f64": "double"}.get(tag, tag)).replace(
        "TAG", tag) for tag in sorted(set(sums.values()))]
    cases = "".join(f"  if (g->in_type == {code}) return ft_product_of_{tag}(g);\n"
                    for code, tag in sums.items())
    return "\n".join([*parts, f"static int ft_lib_gemm(const ft_gemm *g) {{\n{cases}"
                      "  return 2;\n}\n"])


_SUMS: Final = {"f32": "f32", "f16": "f32", "bf16": "f32", "f64": "f64", "i64": "u64", "u64": "u64"}


def constants_files(function: Function) -> dict[str, str | bytes]:
    """The files of the constants: C, or raw bytes and the assembler text that takes them in."""
    name = f"{function.name}_constants"
    data = bytearray()
    for array in function.constants:
        data += bytes(aligned(len(data)) - len(data)) + np.ascontiguousarray(array).tobytes()
    data += bytes(aligned(len(data) + 1) - len(data))
    if len(data) > MOST_TEXT:
        return {f"{name}.bin": bytes(data), f"{name}.S": (
            f".section .rodata\n.balign {ALIGNMENT}\n.global {name}\n{name}:\n"
            f'.incbin "{name}.bin"\n.section .note.GNU-stack,"",%progbits\n')}
    words = [f"0x{w:x}" for w in np.frombuffer(bytes(data), np.uint64).tolist()]
    rows = [", ".join(words[k:k + 8]) for k in range(0, len(words), 8)]
    return {f"{name}.c": (
        f"#include <stdint.h>\n\n_Alignas({ALIGNMENT}) const uint64_t {name}[] = {{\n  "
        + ",\n  ".join(rows) + "};\n")}


def header_text(function: Function) -> str:
    """The header: the function, and what each parameter is."""
    guard = f"{function.name.upper()}_H"
    about = [f"{name}: a size" + _bounds(bound) for name, bound in function.sizes.items()]
    about += [f"{guard.left} {guard.op} {guard.right}" for guard in function.constraints]
    about += [f"{p.name}: {p.comment()}" for p in (*function.inputs, *function.outputs)]
    comment = "\n".join(f"//   {line}" for line in about)
    return (f"// Exported by functrans. Arrays are in row-major order; outputs may not overlap "
            f"inputs.\n//\n{comment}\n//\n// Returns 0, 1 where a size is not one of those above, "
            "and 2 when memory ran out. Any number of\n// threads may call it at once.\n"
            f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n#ifdef __cplusplus\n"
            'extern "C" {\n#endif\n\n'
            f"{function.signature(chr(10) + '    ')};\n\n"
            f"#ifdef __cplusplus\n}}\n#endif\n\n#endif\n")


def _bounds(bound: Bound) -> str:
    parts = [f"at least {bound.min or 0}"]
    parts += [f"at most {bound.max}"] if bound.max is not None else []
    parts += [f"a multiple of {bound.multiple_of}"] if bound.multiple_of > 1 else []
    return ", " + ", ".join(parts)


def function_text(function: Function, program: str) -> str:
    """The C text of the program, and of the function that calls it."""
    name, sizes = function.name, list(function.sizes)
    renamed = "".join(f"#define ft_{x} {name}_{x}\n" for x in ("program", "shapes", "abi"))
    checks = "".join(f"  if ({_outside(n, b)}) return 1;\n" for n, b in function.sizes.items())
    names = {n: n for n in sizes}
    checks += "".join(f"  if (!({size_text(g.left, names)} {g.op} {size_text(g.right, names)})) "
                      "return 1;\n" for g in function.constraints)
    constants = [f"constants + {at}" for at in function.places]
    buffers = [*constants[:function.hoisted], *(f"(char *){p.name}" for p in function.inputs),
               *constants[function.hoisted:], *(f"(char *){p.name}" for p in function.outputs)]
    arena = f"  i64 bytes = {function.arena_bytes};\n"
    if sizes:
        dims = sum(len(p.aval.shape) for p in function.outputs)
        arena = f"  i64 shapes[{max(dims, 1)}], bytes;\n  {name}_shapes(z, shapes, &bytes);\n"
    return (
        f"{renamed}{program}\n#include \"{name}.h\"\n\n"
        f"extern const uint64_t {name}_constants[];\nextern const ft_api {name}_api;\n\n"
        f"{function.signature(chr(10) + '    ')} {{\n{checks}"
        f"  const i64 z[] = {{{', '.join([*sizes, '0'])}}};\n{arena}"
        f"  char *constants = (char *){name}_constants;\n  (void)constants;\n"
        f"  char *const buffers[] = {{{', '.join([*buffers, '0'])}}};\n"
        f"  char *arena = {name}_api.allocate(bytes);\n  if (!arena) return 2;\n"
        f"  const int error = {name}_program(&{name}_api, 0, buffers, arena, z);\n"
        f"  {name}_api.release(arena);\n  return error;\n}}\n")


def _outside(name: str, bound: Bound) -> str:
    parts = [f"{name} < {bound.min or 0}"]
    parts += [f"{name} > {bound.max}"] if bound.max is not None else []
    parts += [f"{name} % {bound.multiple_of}"] if bound.multiple_of > 1 else []
    return " || ".join(parts)


def cmake_text(function: Function, isa: Isa, files: Sequence[str]) -> str:
    """A CMake file that makes a static library of the program."""
    name = function.name
    sources = "\n  ".join(f for f in files if f.endswith((".c", ".S")))
    flags = " ".join([*(f for f in COMMON_FLAGS if f not in ("-std=gnu11", "-fPIC")), *isa.flags])
    languages = "C ASM" if any(f.endswith(".S") for f in files) else "C"
    assembled = "" if languages == "C" else (
        f"set_source_files_properties({name}_constants.S PROPERTIES\n"
        '  COMPILE_FLAGS "-I${CMAKE_CURRENT_SOURCE_DIR}"\n'
        f"  OBJECT_DEPENDS ${{CMAKE_CURRENT_SOURCE_DIR}}/{name}_constants.bin)\n")
    return f"""\
# Made by functrans: a static library with the function of {name}.h.
cmake_minimum_required(VERSION 3.13)
project({name} {languages})

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(OpenMP COMPONENTS C)

add_library({name} STATIC
  {sources})
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({name} PROPERTIES C_STANDARD 11 POSITION_INDEPENDENT_CODE ON)
# The program's arithmetic is exact to the last bit as written; that of the library's sums is not.
set_source_files_properties({name}.c PROPERTIES COMPILE_FLAGS "{flags}")
set_source_files_properties({name}_runtime.c PROPERTIES COMPILE_FLAGS
  "-O3 -ffp-contract=fast -fwrapv -fno-strict-aliasing {' '.join(isa.flags)}")
{assembled}target_link_libraries({name} PUBLIC m)
if(OpenMP_C_FOUND)
  target_link_libraries({name} PUBLIC OpenMP::OpenMP_C)
endif()
"""
