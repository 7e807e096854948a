"""Machines that C is compiled for, and the functions of a C text called on them.

A machine is a compiler and what runs its programs: this processor, qemu, node. An `Executable` is a
program beside the driver of driver.c, which calls functions for us: `call` sends arrays and
integers, and takes the arrays back as the function has left them.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from functrans.lowering.c.isa import AVX2, COMMON_FLAGS, GENERIC, NEON, Isa

FOLDER = Path(__file__).parent
DRIVER = (FOLDER / "driver.c").read_text()


@dataclass(frozen=True)
class Machine:
    """A compiler, the instruction set that C is written for, and what runs a program.

    `runner` is empty where this processor runs it, and None where nothing here does.
    """

    name: str
    isa: Isa
    compiler: tuple[str, ...]
    runner: tuple[str, ...] | None = ()
    suffix: str = ""

    def __str__(self) -> str:
        return self.name

    def build(self, source: Path, target: Path) -> Path:
        """A program of a C source; what the compiler says of errors is in the exception."""
        target = target.with_suffix(self.suffix)
        # Zig would compile its C library again for position-independent code
        flags = [flag for flag in COMMON_FLAGS if flag != "-fPIC"]
        command = [*self.compiler, *flags, *self.isa.flags, "-w",
                   "-Werror=incompatible-pointer-types", "-o", str(target), str(source), "-lm"]
        done = subprocess.run(command, cwd=target.parent, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[-4000:]}"
        return target


GCC_FOR_ARM = ("aarch64-linux-gnu-gcc", "-static")
QEMU = ("qemu-aarch64",)
ARM_TOOLS = (GCC_FOR_ARM[0], "aarch64-linux-gnu-g++", QEMU[0])
ARM_MISSING = ("compiled for ARM and run: apt-get install gcc-aarch64-linux-gnu "
               "g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user")

ARM = Machine("arm-neon", NEON, GCC_FOR_ARM, QEMU)
ARM_GENERIC = Machine("arm-generic", GENERIC, GCC_FOR_ARM, QEMU)
X86_AVX2 = Machine("x86-avx2", AVX2, ("gcc",))
X86_GENERIC = Machine("x86-generic", GENERIC, ("gcc",))
BY_GCC = (ARM, ARM_GENERIC, X86_AVX2, X86_GENERIC)


@cache
def zig() -> str:
    """The compiler of the wheel ziglang; a name that no file has where it is missing."""
    found = find_spec("ziglang")
    places = None if found is None else found.submodule_search_locations
    return str(Path(places[0]) / "zig") if places else "zig of the wheel ziglang"


def by_zig(target: str, isa: Isa = GENERIC, runner: tuple[str, ...] | None = None,
           suffix: str = "", flags: tuple[str, ...] = ()) -> Machine:
    name = target if isa is GENERIC else f"{target}-{isa.name}"
    return Machine(name, isa, (zig(), "cc", "-target", target, "-fno-sanitize=undefined", *flags),
                   runner, suffix)


def zig_machines() -> list[Machine]:
    """One for each system that `to_c` is for. What nothing here runs is built."""
    node = ("node", "--no-warnings", str(FOLDER / "wasi.mjs"))
    return [by_zig("x86_64-linux-musl", runner=()),
            by_zig("aarch64-linux-musl", runner=QEMU),
            by_zig("aarch64-linux-musl", NEON, QEMU),
            by_zig("wasm32-wasi", runner=node, suffix=".wasm"),
            by_zig("x86_64-windows-gnu", suffix=".exe"),
            by_zig("aarch64-macos"), by_zig("aarch64-macos", NEON), by_zig("x86_64-macos")]


def missing(tools: Sequence[str]) -> list[str]:
    return [tool for tool in tools if shutil.which(tool) is None]


@dataclass
class Executable:
    """Functions that are called on a machine.

    `functions` says of each what it takes, "p" for an array and "i" for an integer of 64 bits, with
    "r" at the end where it returns an integer.
    """

    machine: Machine
    functions: Mapping[str, str]
    path: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, machine: Machine, text: str, functions: Mapping[str, str],
           folder: Path) -> Executable:
        """Of a C text that has these functions."""
        source = folder / "main.c"
        source.write_text(f"{text}\n{cls.driver(functions)}")
        return cls(machine, functions, machine.build(source, folder / "main"))

    @staticmethod
    def driver(functions: Mapping[str, str]) -> str:
        """C that calls these functions, written out: those of WebAssembly are called by no other
        type than theirs."""
        cases = []
        for k, (name, kinds) in enumerate(functions.items()):
            given = ", ".join(f"a[{i}].{'data' if kind == 'p' else 'number'}"
                              for i, kind in enumerate(kinds.removesuffix("r")))
            result = "return " if kinds.endswith("r") else ""
            cases.append(f"  case {k}: {result}{name}({given}); break;\n")
        calls = ("static long long ft_call(int which, ft_argument *a) {\n  switch (which) {\n"
                 + "".join(cases) + "  }\n  return 0;\n}\n")
        return DRIVER.replace("int main(void) {", calls + "\nint main(void) {")

    def call(self, name: str, *args: Any) -> int:
        """The result of a function; its arrays are written in place."""
        if self.process is None:
            assert self.machine.runner is not None, f"nothing here runs {self.machine}"
            self.process = subprocess.Popen([*self.machine.runner, str(self.path)],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        sent = [struct.pack("<qq", list(self.functions).index(name), len(args))]
        arrays = [np.ascontiguousarray(a) if isinstance(a, np.ndarray) else None for a in args]
        for arg, array in zip(args, arrays, strict=True):
            sent += [struct.pack("<qq", -1, arg)] if array is None else [
                struct.pack("<q", array.nbytes), array.tobytes()]
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(b"".join(sent))
            stdin.flush()
            result = self._read(8)
        except BrokenPipeError:
            result = b""
        assert len(result) == 8, f"{name} ended the program: status {self.process.wait()}"
        for arg, array in zip(args, arrays, strict=True):
            if array is not None:
                back = np.frombuffer(self._read(array.nbytes), array.dtype)
                if arg.flags.writeable:
                    arg[...] = back.reshape(arg.shape)
        return int(struct.unpack("<q", result)[0])

    def _read(self, count: int) -> bytes:
        assert self.process is not None and self.process.stdout is not None
        return self.process.stdout.read(count)

    def __enter__(self) -> Executable:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process is not None:
            self.process.communicate()

