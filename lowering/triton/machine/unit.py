"""Kernels on their way to machine code: what is compiled, what comes out, and both as bytes."""

from __future__ import annotations

from dataclasses import fields
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from functrans.core.errors import BackendError
from functrans.core.record import Record
from functrans.lowering.store.cache import digest, literal, matches

__all__ = ["Binary", "KernelError", "Unit", "triton_version"]

FORMAT: Final = "10"
"""Changes with what is kept of a kernel, and with how it is compiled."""
MATH: Final = ("device_math.py", "series_math.py", "trigonometry.py")


class Unit(Record):
    """A kernel to compile: a module of Triton and its function, and all that decides the outcome.

    `types` are those of its arguments, as `*fp32` or `i32`; which are `divisible` by 16 is known.
    With fewer than `stages` it is compiled where it takes more than `shared` bytes.
    """

    source: str
    name: str
    types: tuple[str, ...]
    divisible: tuple[bool, ...]
    warps: int
    stages: int
    fuses: bool
    capability: int
    shared: int

    @cached_property
    def key(self) -> str:
        """What its machine code is kept under on disk."""
        math = _math_digest() if "device_math as fm" in self.source else ""
        return digest(FORMAT, triton_version(), math, self.encode())

    def encode(self) -> bytes:
        return repr(tuple([getattr(self, f.name) for f in fields(self)])).encode()

    @classmethod
    def decode(cls, data: bytes) -> Unit:
        return cls(*literal(data))


class KernelError(BackendError):
    """Triton cannot compile a kernel, or it is `too_large`: for the shared memory of its target.

    `reason` are Triton's words. Programs are written without such kernels; who sees this error has
    asked for a kernel by itself, or has found a defect.
    """

    def __init__(self, unit: Unit, reason: str, too_large: bool = False) -> None:
        super().__init__(
            f"Triton cannot compile a kernel for GPUs of compute capability {unit.capability}.",
            where=None, why=f"{reason.strip()}\nThe kernel is\n{unit.source}",
            fix='with ft.config.use_backend("c"): ...  # on the CPU. This is a defect of functrans '
                "or of Triton, where they know that GPU: please report the program with the kernel")
        self.unit, self.reason, self.too_large = unit, reason.strip(), too_large


class Binary(Record):
    """Machine code of a kernel, and what the driver must be told to launch it.

    `scratch` are bytes of global memory for each program, which a launch passes after the other
    arguments; `spills` are numbers of 4 bytes that a thread keeps outside of registers.
    """

    name: str
    kinds: str  # of its arguments, a letter each: p pointer, i int32, l int64, f float32
    warps: int
    stages: int
    shared: int
    scratch: int
    scratch_alignment: int
    registers: int
    spills: int
    ptx: str
    cubin: bytes

    def encode(self) -> bytes:
        """A line that says what it is, and both texts."""
        ptx = self.ptx.encode()
        told = {name: getattr(self, name) for name in SCHEMA} | {"ptx": len(ptx)}
        return b"%s\n%s%s" % (repr(told).encode(), ptx, self.cubin)

    @classmethod
    def decode(cls, data: bytes) -> Binary | None:
        """What `encode` wrote; None where that is something else."""
        head, _, rest = data.partition(b"\n")
        try:
            told: dict[str, Any] = literal(head)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None
        if not matches(told, SCHEMA | {"ptx": int}):
            return None
        length = told.pop("ptx")
        ptx, cubin = rest[:length], rest[length:]
        if not cubin.startswith(b"\x7fELF"):
            return None
        return cls(**told, ptx=ptx.decode(), cubin=cubin)


SCHEMA: Final = {f.name: {"str": str, "int": int}[str(f.type)] for f in fields(Binary)
                 if f.name not in ("ptx", "cubin")}


@cache
def triton_version() -> str:
    """What tells this Triton from others, without its import; 0.3 ms."""
    found = find_spec("triton")
    if found is None or found.origin is None:
        return ""
    folder = Path(found.origin).parent
    status = [(p.name, p.stat().st_size, p.stat().st_mtime_ns)
              for p in (folder / "__init__.py", *sorted((folder / "_C").glob("libtriton*")))]
    return digest(str(folder), repr(status))


@cache
def _math_digest() -> str:
    folder = Path(__file__).parents[1] / "kernels"
    return digest(*[folder.joinpath(name).read_bytes() for name in MATH])
