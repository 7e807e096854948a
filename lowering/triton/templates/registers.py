"""How many registers an epilogue takes: a model that says what spills a lot, uncompiled.

Triton computes a tile operation by operation, each for all numbers that a thread has of it. ptxas
begins all loads of tiles as early as it can, and finishes some numbers before others, so that two
of the tiles that are live in the text are not kept. What counts is how many numbers of a tile a
thread has: 128 x 256 with 256 threads spill what 128 x 128 with 128 do. (Of 130 epilogues.)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = ["Tiles", "expected_spills", "live_tiles"]

REGISTERS: Final = 255
"""Of a thread."""
PLACES: Final = 70
"""Registers of places and sizes."""
COMPUTED_AGAIN: Final = 2
"""Tiles that are not kept though they are live."""
CERTAIN: Final = 200
"""The model is off by less than this: of the 130 epilogues none of which it says more spills fewer
numbers of a thread than 96."""


class Tiles(NamedTuple):
    """The most tiles that are live at once, and how many are loaded, and stored."""

    live: int
    loaded: int
    stored: int


def expected_spills(lines: Sequence[str], result: str | None, numbers: int, parts: int = 1) -> int:
    """About how many numbers a thread keeps out of registers; 0 where those are not certainly many.

    `numbers` are those that a thread has of a tile, of which it holds so many `parts`.
    """
    tiles = live_tiles(lines, result)
    kept = max(tiles.live - COMPUTED_AGAIN, tiles.loaded + 1, tiles.stored) + parts - 1
    spilled = PLACES + numbers * kept - REGISTERS
    return spilled if spilled > CERTAIN else 0


def live_tiles(lines: Sequence[str], result: str | None) -> Tiles:
    """The tiles of an epilogue, which computes `result` from `acc`.

    >>> live_tiles(["e1 = tl.load(p0 + o * 8 + i)", "e2 = acc * e1", "e3 = e2 + acc"], "e3")
    Tiles(live=3, loaded=1, stored=1)
    """
    tiles = {"acc"}
    loaded = stored = 0
    steps: list[tuple[str | None, set[str]]] = []
    for line in lines:
        (node,) = ast.parse(line.strip()).body
        read = {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        made = target.id if isinstance(target, ast.Name) else None
        is_load = made is not None and "tl.load" in line
        if made is not None and (({"o", "i"} <= read) if is_load else read & tiles):
            tiles.add(made)
            loaded += is_load
        stored += "tl.store" in line and bool(read & tiles)
        steps.append((made, read & tiles - {made}))
    steps.append((None, tiles & set(re.findall(r"\w+", result or ""))))
    last = {name: k for k, (_, read) in enumerate(steps) for name in read}
    live, most = {"acc"}, 1
    for k, (made, _) in enumerate(steps):
        live |= tiles & {made}
        most = max(most, len(live))
        live = {name for name in live if last.get(name, -1) > k}
    return Tiles(most, loaded, stored + (result is not None))
