"""Compiled kernels that travel with a program, as data that nothing here runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from functrans.core.errors import ExportError
from functrans.export.plain import damaged, from_bytes

__all__ = ["Kernel", "compile_kernels", "read_kernels"]


@dataclass(frozen=True)
class Kernel:
    """One kernel: its name, its source and, for a GPU, its PTX and machine code."""

    name: str
    source: str
    ptx: str = ""
    code: bytes = b""

    def plain(self) -> list[Any]:
        return [self.name, self.source, self.ptx, self.code]


def compile_kernels(jitted: Any, args: Sequence[Any], kwargs: Mapping[str, Any],
                    target: str) -> list[Kernel]:
    """The kernels of a function for a target, and for the CPU its one C program."""
    compiled = jitted.lower(*args, **kwargs, target=target).compile()
    if target == "cpu":
        return [Kernel(jitted.__name__, compiled.as_text())]
    if not compiled.kernels:
        raise ExportError(f"{jitted.__name__} has no kernels for {target}.",
                          why="the host computes all of it.", fix="leave out the target")
    return [Kernel(k.name, k.text, k.ptx or "", k.cubin or b"") for k in compiled.kernels]


def read_kernels(data: bytes) -> dict[str, tuple[Kernel, ...]]:
    """The kernels of every target; raises ExportError where the section holds something else."""
    found: dict[str, tuple[Kernel, ...]] = {}
    plain = from_bytes(data)
    if not isinstance(plain, list):
        raise damaged("its kernels are no list")
    for entry in plain:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str) \
                or not isinstance(entry[1], list):
            raise damaged("the kernels of a target are no list")
        found[entry[0]] = tuple(map(_kernel, entry[1]))
    return found


def _kernel(plain: Any) -> Kernel:
    if not isinstance(plain, list) or [type(p) for p in plain] != [str, str, str, bytes]:
        raise damaged("a kernel is no list of three texts and its machine code")
    return Kernel(*plain)
