"""How many registers an epilogue takes: a model that says what is certain to spill, uncompiled.

Triton computes a tile operation by operation, each for all numbers that a thread has of it. ptxas
finishes some numbers before others, and so keeps few of them, unless the sums and what is loaded
beside them, which comes all at once through shared memory, take all registers already. Programs of
256 threads spill far less. (Of 140 epilogues.)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = ["Tiles", "certainly_spills", "live_tiles"]

REGISTERS: Final = 255
"""Of a thread."""
THREADS: Final = 128
"""Of programs whose epilogues are known to spill."""
COMPUTED_AGAIN: Final = 2.5
"""Tiles that are not kept though they are live."""
MARGIN: Final = 1.6
"""So many times the registers are certainly too many: of the 140 none is refused that spills less
than 82 numbers of a thread, and those of a gelu's gradient in float32, which spill 900, are."""


class Tiles(NamedTuple):
    """The most tiles that are live at once, and those of them that are sums or were loaded."""

    live: int
    loaded: float


def certainly_spills(lines: Sequence[str], result: str | None, numbers: int, threads: int) -> int:
    """About how many numbers a thread keeps out of registers; 0 where that is not certain.

    `numbers` are those that each of so many threads has of a tile.
    """
    if threads != THREADS:
        return 0
    tiles = live_tiles(lines, result)
    needed = numbers * (tiles.live - COMPUTED_AGAIN)
    is_full = tiles.loaded > 1 and numbers * tiles.loaded > REGISTERS
    return int(needed - REGISTERS) if is_full and needed > MARGIN * REGISTERS else 0


def live_tiles(lines: Sequence[str], result: str | None) -> Tiles:
    """The tiles of an epilogue, which computes `result` from `acc`.

    >>> live_tiles(["e1 = tl.load(p0 + o * 8 + i)", "e2 = acc * e1", "e3 = e2 + acc"], "e3")
    Tiles(live=3, loaded=2.0)
    """
    sizes = {"acc": 1.0}  # of the sums and of what is loaded
    tiles = {"acc"}
    steps: list[tuple[str | None, set[str]]] = []
    for line in lines:
        (node,) = ast.parse(line.strip()).body
        read = {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        made = target.id if isinstance(target, ast.Name) else None
        is_load = made is not None and "tl.load" in line
        if made is not None and (({"o", "i"} <= read) if is_load else read & tiles):
            tiles.add(made)
            if is_load:  # what is narrow in memory is narrow on its way
                sizes[made] = 0.5 if ".to(" in line else 1.0
        steps.append((made, read & tiles - {made}))
    steps.append((None, tiles & set(re.findall(r"\w+", result or ""))))
    last = {name: k for k, (_, read) in enumerate(steps) for name in read}
    live, most, loaded = {"acc"}, 1, 1.0
    for k, (made, _) in enumerate(steps):
        live |= tiles & {made}
        most = max(most, len(live))
        loaded = max(loaded, sum(sizes.get(name, 0.0) for name in live))
        live = {name for name in live if last.get(name, -1) > k}
    return Tiles(most, loaded)
