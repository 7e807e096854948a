"""The texts of an exported C program: runtime, constants, function, header and CMake file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from functrans.core.bounds import Bound
from functrans.core.guards import Guard
from functrans.export.c_names import Parameter
from functrans.export.container import ALIGNMENT, aligned
from functrans.lowering.portable import StandaloneProgram

__all__ = ["LIBRARY", "LOCALS", "REAL_MATRICES", "Function", "SizeParameter", "cmake_text",
           "constants_files", "function_text", "header_text", "is_replaceable", "runtime_file",
           "runtime_text"]

MADE: Final = "Made by functrans"
"""In the first line of every text."""
RUNTIME: Final = Path(__file__).parent / "runtime"

_PRODUCTS = ("numbers.c", "gemm.c", "gemm_of_type.c")
REAL_MATRICES: Final = ("cholesky", "det", "lu", "slogdet", "solve", "triangular_solve")
LIBRARY: Final[dict[str, tuple[str, ...]]] = {
    "gemm": _PRODUCTS,
    "conv": (*_PRODUCTS, "conv.c"),
    **dict.fromkeys(("sort_rows", "argsort_rows", "top_k_rows"), ("rows.c", "sort.c")),
    "cumulate_rows": ("rows.c", "cumulate.c"),
    **dict.fromkeys(REAL_MATRICES, ("linalg.c",)),
    "fft": ("fft.c",),
    **dict.fromkeys(("coo_dot", "csr_dot", "csr_sample", "row_coordinates"),
                    ("sparse.c",)),
    "sum_places": ("sparse_sums.c",),
    "narrow_dot": ("narrow.c",),
    "scatter_slices": ("scatter.c",),
}
"""The library functions that exported programs have, and the files that define each."""

MOST_TEXT: Final = 1 << 20
"""Bytes of constants that are written as C; more are a file of their own (2.5 s for 10 MB)."""


LOCALS: Final = ("z", "bytes", "shapes", "constants", "buffers", "arena", "error")
"""Names inside of the C function, which no parameter has."""


@dataclass(frozen=True)
class SizeParameter:
    """A symbolic size: its name in C and in Python, and its bounds."""

    name: str
    symbol: str
    bound: Bound

    def comment(self) -> str:
        """What it is for a reader of the header."""
        low, high, multiple = self.bound.min or 0, self.bound.max, self.bound.multiple_of
        parts = [f"a size, at least {low}"]
        parts += [f"at most {high}"] if high is not None else []
        parts += [f"a multiple of {multiple}"] if multiple > 1 else []
        parts += [f"{self.symbol} in the types below"] if self.symbol != self.name else []
        return ", ".join(parts)

    def is_outside(self) -> str:
        """The C condition that a value breaks the bounds."""
        low, high, multiple = self.bound.min or 0, self.bound.max, self.bound.multiple_of
        parts = [f"{self.name} < {low}"]
        parts += [f"{self.name} > {high}"] if high is not None else []
        parts += [f"{self.name} % {multiple}"] if multiple > 1 else []
        return " || ".join(parts)


@dataclass(frozen=True)
class Function:
    """What the C function is: its name, program, sizes and arrays."""

    name: str
    program: StandaloneProgram
    sizes: Sequence[SizeParameter]
    constraints: Sequence[Guard]
    inputs: Sequence[Parameter]
    outputs: Sequence[Parameter]
    constants: Sequence[np.ndarray[Any, Any]]
    hoisted: int
    """How many of the constants come before the inputs; the others come after them."""

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
        parts = [f"int64_t {size.name}" for size in self.sizes]
        parts += [f"const {p.ctype} *{p.name}" for p in self.inputs]
        parts += [f"{p.ctype} *{p.name}" for p in self.outputs]
        return f"int {self.name}({line}{(',' + line).join(parts) or 'void'})"


def runtime_file(name: str, headers: Mapping[str, str]) -> str:
    """The text of a file of the runtime with the texts of our headers: the runtime is one file."""
    text = (RUNTIME / name).read_text()
    for header, types in headers.items():
        text = text.replace(f'#include "{header}"\n', types)
    return text


def runtime_text(function: Function) -> str:
    """The C text of threads, memory and the library functions that the program calls."""
    program = function.program
    files = list(dict.fromkeys(("core.c", *(f for lib in program.library for f in LIBRARY[lib]))))
    parts = [f"// {MADE}: what the program of {function.name}.c calls.\n"]
    for file in files:
        text = runtime_file(file, program.headers)
        parts.append(_products(text, program) if file == "gemm_of_type.c" else text)
    entries = ", ".join([*(f"(void *)ft_lib_{lib}" for lib in program.library), "0"])
    parts.append(f"static void *const ft_library[] = {{{entries}}};\n"
                 f"const ft_api {function.name}_api = {{2, ft_parallel_to_end, 0, ft_allocate, "
                 "ft_release, ft_library, ft_never};\n")
    return "\n".join(parts)


def _products(text: str, program: StandaloneProgram) -> str:
    """The products of the element types that the program has, narrow integers in 32 bits."""
    sums = {code: _SUMS.get(name, "u32") for code, name in program.product_types.items()}
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
        return {f"{name}.bin": bytes(data),
                f"{name}.S": f"/* {MADE} */\n" + _ASSEMBLY.format(name=name, size=len(data))}
    words = [f"0x{w:x}" for w in np.frombuffer(bytes(data), np.uint64).tolist()]
    rows = [", ".join(words[k:k + 8]) for k in range(0, len(words), 8)]
    return {f"{name}.c": (
        f"// {MADE}\n#include <stdint.h>\n\n_Alignas({ALIGNMENT}) const uint64_t {name}[] = {{\n  "
        + ",\n  ".join(rows) + "};\n")}


_ASSEMBLY: Final = f"""\
#if defined(__APPLE__)
.section __TEXT,__const
.globl _{{name}}
.p2align {ALIGNMENT.bit_length() - 1}
_{{name}}:
#elif defined(__wasm__)
.section .rodata.{{name}},"",@
.globl {{name}}
.type {{name}},@object
.size {{name}}, {{size}}
.p2align {ALIGNMENT.bit_length() - 1}
{{name}}:
#else
#if defined(_WIN32)
.section .rdata,"dr"
#else
.section .rodata
#endif
.globl {{name}}
.balign {ALIGNMENT}
{{name}}:
#endif
.incbin "{{name}}.bin"
#if defined(__ELF__) && !defined(__wasm__)
.section .note.GNU-stack,"",%progbits
#endif
"""
"""Of Mach-O, WebAssembly, Windows and ELF systems."""


def is_replaceable(file: Path) -> bool:
    """Whether nothing is lost where a file is written: there is none, or one of ours."""
    if not os.path.lexists(file):
        return True
    if not file.is_file():
        return False
    if file.suffix == ".bin":  # of the text beside it
        return file.with_suffix(".S").exists() and is_replaceable(file.with_suffix(".S"))
    with open(file, "rb") as opened:
        return re.search(rb"(Made|Exported) by functrans", opened.readline(256)) is not None


def header_text(function: Function, files: Sequence[str]) -> str:
    """The header: the function, what each parameter is, and how to build without CMake."""
    guard = f"{function.name.upper()}_H"
    about = [f"{p.name}: {p.comment()}" for p in function.sizes]
    about += [f"{guard.left} {guard.op} {guard.right}" for guard in function.constraints]
    about += [f"{p.name}: {p.comment()}" for p in (*function.inputs, *function.outputs)]
    comment = "\n".join(f"//   {line}" for line in about)
    sources = [f for f in files if f.endswith((".c", ".S"))]
    constants = next(f for f in sources if f.startswith(f"{function.name}_constants."))
    commands = "\n".join(f"//   {line}" for line in (
        f"cc -c {program_flags(function.program)} {function.name}.c -o {function.name}.o",
        f"cc -c {runtime_flags(function.program)} -fopenmp {function.name}_runtime.c "
        f"-o {function.name}_runtime.o",
        f"cc -c {constants} -o {function.name}_constants.o",
        f"cc -fopenmp yours.c {' '.join(f[:-2] + '.o' for f in sources)} -lm"))
    return (f"// Exported by functrans. Arrays are in row-major order; outputs may not overlap "
            f"inputs.\n//\n{comment}\n//\n// Returns 0, 1 where a size is not one of those above, "
            "and 2 when memory ran out. Any number of\n// threads may call it at once.\n//\n"
            "// CMakeLists.txt makes a library of it. By hand, in this folder, with GCC or Clang\n"
            "// (without -fopenmp it has one thread):\n"
            f"{commands}\n"
            f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n#ifdef __cplusplus\n"
            'extern "C" {\n#endif\n\n'
            f"{function.signature(chr(10) + '    ')};\n\n"
            f"#ifdef __cplusplus\n}}\n#endif\n\n#endif\n")


def program_flags(program: StandaloneProgram) -> str:
    """Flags of the program, whose arithmetic is exact to the last bit as written."""
    return " ".join([*program.flags, "-w", *program.isa_flags])


def runtime_flags(program: StandaloneProgram) -> str:
    """Flags of the library, whose sums are not."""
    return " ".join(["-std=gnu11 -O3 -ffp-contract=fast -fwrapv -fno-strict-aliasing -w",
                     *program.isa_flags])


def function_text(function: Function) -> str:
    """The C text of the program, and of the function that calls it."""
    program, name, sizes = function.program, function.name, [s.name for s in function.sizes]
    size_text = program.size_text
    renamed = "".join(f"#define ft_{x} {name}_{x}\n" for x in ("program", "shapes", "abi"))
    checks = "".join(f"  if ({size.is_outside()}) return 1;\n" for size in function.sizes)
    names = {size.symbol: size.name for size in function.sizes}
    checks += "".join(f"  if (!({size_text(g.left, names)} {g.op} {size_text(g.right, names)})) "
                      "return 1;\n" for g in function.constraints)
    constants = [f"constants + {at}" for at in function.places]
    buffers = [*constants[:function.hoisted], *(f"(char *){p.name}" for p in function.inputs),
               *constants[function.hoisted:], *(f"(char *){p.name}" for p in function.outputs)]
    arena = f"  i64 bytes = {program.arena_bytes};\n"
    if sizes:
        dims = sum(len(p.aval.shape) for p in function.outputs)
        arena = f"  i64 shapes[{max(dims, 1)}], bytes;\n  {name}_shapes(z, shapes, &bytes);\n"
    return (
        f"// {MADE}\n{renamed}{program.text}\n#include \"{name}.h\"\n\n"
        f"extern const uint64_t {name}_constants[];\nextern const ft_api {name}_api;\n\n"
        f"{function.signature(chr(10) + '    ')} {{\n{checks}"
        f"  const i64 z[] = {{{', '.join([*sizes, '0'])}}};\n{arena}"
        f"  char *constants = (char *){name}_constants;\n  (void)constants;\n"
        f"  char *const buffers[] = {{{', '.join([*buffers, '0'])}}};\n"
        f"  char *arena = {name}_api.allocate(bytes);\n  if (!arena) return 2;\n"
        f"  const int error = {name}_program(&{name}_api, 0, buffers, arena, z);\n"
        f"  {name}_api.release(arena);\n  return error;\n}}\n")


def cmake_text(function: Function, files: Sequence[str]) -> str:
    """A CMake file that makes a static library of the program."""
    name, program = function.name, function.program
    sources = "\n  ".join(f for f in files if f.endswith((".c", ".S")))
    languages = "C ASM" if any(f.endswith(".S") for f in files) else "C"
    assembled = "" if languages == "C" else (
        f"set_source_files_properties({name}_constants.S PROPERTIES\n"
        '  COMPILE_FLAGS "-I${CMAKE_CURRENT_SOURCE_DIR}"\n'
        f"  OBJECT_DEPENDS ${{CMAKE_CURRENT_SOURCE_DIR}}/{name}_constants.bin)\n")
    return f"""\
# {MADE}: a static library with the function of {name}.h.
cmake_minimum_required(VERSION 3.13)
project({name} {languages})

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(OpenMP COMPONENTS C)

add_library({name} STATIC
  {sources})
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
# The program's arithmetic is exact to the last bit as written; that of the library's sums is not.
set_source_files_properties({name}.c PROPERTIES COMPILE_FLAGS "{program_flags(program)}")
set_source_files_properties({name}_runtime.c PROPERTIES COMPILE_FLAGS "{runtime_flags(program)}")
{assembled}target_link_libraries({name} PUBLIC m)
if(OpenMP_C_FOUND)
  target_link_libraries({name} PUBLIC OpenMP::OpenMP_C)
endif()
"""
