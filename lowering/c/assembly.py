"""The machine code of a program, by the compiler that runs it, and the lines of C that it is of."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from typing import Final

from functrans.lowering.c.isa import COMMON_FLAGS
from functrans.lowering.c.toolchain import compiled_isa, compiler

__all__ = ["assembly_lines", "assembly_of"]

_LOC: Final = re.compile(r"\t\.loc \d+ (\d+)\b")
_NOISE: Final = re.compile(r"\t\.(?:cfi_|file|loc|p2align|type|globl|text|section|L)|"
                           r"\.L(?:V|B|F|loc)\w*:")


def assembly_of(program: str, function: str) -> str:
    """The instructions of one function of a program."""
    lines = assembly_lines(program, function, "")
    return "\n".join([f"{function}:", *[text for text, _ in lines]])


def assembly_lines(program: str, function: str, definition: str) -> list[tuple[str, int]]:
    """The instructions of a function, each with the line of its `definition` that it is for.

    -1 where the compiler says none, or one of another function.
    """
    body = _compiled(program).partition(f"\n{function}:\n")[2]
    body = body.partition(f"\t.size\t{function},")[0]
    start = program.find(definition) if definition else -1
    first = program.count("\n", 0, start) + 1 if start >= 0 else 0
    count = definition.count("\n") + 1
    found, line = [], -1
    for text in body.split("\n"):
        loc = _LOC.match(text)
        if loc:
            at = int(loc[1]) - first
            line = at if start >= 0 and 0 <= at < count else -1
        elif text.strip() and not _NOISE.match(text):
            found.append((text, line))
    return found


@lru_cache(maxsize=2)
def _compiled(program: str) -> str:
    """The assembly of a program; lines of the source do not change it."""
    flags = [*COMMON_FLAGS, *compiled_isa().flags, "-w", "-fno-inline", "-g1",
             "-fno-asynchronous-unwind-tables"]
    done = subprocess.run([*compiler(), *flags, "-S", "-x", "c", "-", "-o", "-"], input=program,
                          capture_output=True, text=True, check=True)
    return done.stdout
