"""Machine code of kernels by the lines of their source: PTX by `.loc`, SASS by `nvdisasm`."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["ptx_lines", "sass_lines"]

FILE: Final = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
LOC: Final = re.compile(r"\s*\.loc\s+(\d+) (\d+) (\d+)(?:.*inlined_at (\d+) (\d+) (\d+))?")
MODULE: Final = "<functrans_triton_"
"""What the file of a module that was made in memory begins with."""
SASS_LINE: Final = re.compile(r'\s*//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line '
                              r"(\d+))?")
INSTRUCTION: Final = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?;)")
LABEL: Final = re.compile(r"\.L_x?_?\w*:")


def ptx_lines(ptx: str) -> list[tuple[str, int]]:
    """The lines of a kernel in PTX, each with the line of the source it is for, from 0; -1: none.

    Sections for debuggers, and the lines that say where code comes from, are left out.
    """
    files = dict(FILE.findall(ptx))
    inlined: dict[tuple[str, ...], tuple[str, ...]] = {}
    found: list[tuple[str, int]] = []
    line, is_debug = -1, False
    for text in ptx.split("\n"):
        is_debug = is_debug or ".section" in text
        loc = LOC.match(text)
        if loc:
            here, at = loc.groups()[:3], loc.groups()[3:]
            if at[0] is not None:
                inlined[here] = at
            line = _own_line(here, inlined, files)
        elif not is_debug and text.strip() and not _is_noise(text):
            inside = found and text.startswith(("\t", "$")) and not text.startswith("\t.reg")
            found.append((text, line if inside else -1))
    return found


def _is_noise(text: str) -> bool:
    return text.startswith(("$L__tmp", "$L__func", "//")) or bool(FILE.match(text))


def _own_line(place: tuple[str, ...], inlined: dict[tuple[str, ...], tuple[str, ...]],
              files: dict[str, str]) -> int:
    """The line of the module that a place is in, or that what it is in was called from."""
    seen = set()
    while not files.get(place[0], "").startswith(MODULE):
        if place in seen or place not in inlined:
            return -1
        seen.add(place)
        place = inlined[place]
    return int(place[1]) - 1


def sass_lines(cubin: bytes, nvdisasm: str) -> list[tuple[str, int]]:
    """The instructions of a kernel, each with the line of the source it is for, from 0; -1: none.

    Raises CalledProcessError and OSError where `nvdisasm` does not work.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        done = subprocess.run([nvdisasm, "-c", "-gi", str(file)], check=True, capture_output=True,
                              text=True)
    return _instructions(done.stdout.split("\n"))


def _instructions(lines: Sequence[str]) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    line, is_fresh = -1, True
    for text in lines:
        place = SASS_LINE.match(text)
        if place:
            # what is inlined comes first, then where it is inlined
            line = -1 if is_fresh else line
            is_fresh = False
            for name, number in (place.groups()[:2], place.groups()[2:]):
                if line < 0 and name is not None and name.startswith(MODULE):
                    line = int(number) - 1
            continue
        instruction = INSTRUCTION.match(text)
        if instruction:
            found.append((f"    {instruction[1]}", line))
            is_fresh = True
        elif LABEL.match(text.strip()):
            found.append((text.strip(), -1))
    return found
