"""Boxes within boxes: what is drawn, and where everything goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from functrans.inspect.draw.layout import Box, Placed, place

__all__ = ["CHARACTER", "HEAD", "LINE", "PAD", "Laid", "Shape", "laid_out"]

CHARACTER: Final = 6.6
LINE: Final = 26.0  # height of a node
HEAD: Final = 34.0
PAD: Final = 10.0
INNER_GAP: Final = 16.0
OUTER_GAP: Final = 40.0


@dataclass(eq=False)
class Shape:
    """A box: its texts, the boxes in it, and edges among these, by number, with what flows.

    Its `kind` is `root`, `node`, `other` (a node that is not elementwise), `input`, `output`,
    `kernel`, `alone`, `line`, `backward` or `repeat`.
    """

    title: str
    subtitle: str = ""
    kind: str = "node"
    tooltip: str = ""
    children: list[Shape] = field(default_factory=list)
    edges: dict[tuple[int, int], list[str]] = field(default_factory=dict)

    def connect(self, source: int, target: int, kind: str) -> None:
        """An edge from an earlier child to a later one, with the type of what flows."""
        if source < target:
            kinds = self.edges.setdefault((source, target), [])
            if kind not in kinds:
                kinds.append(kind)


@dataclass(eq=False)
class Laid:
    """A box with its size, and the places of the boxes in it, from their upper left corner."""

    shape: Shape
    width: float
    height: float
    inner: Sequence[Laid]
    placed: Placed
    top: float
    """Where the boxes in it begin."""

    @property
    def boxes(self) -> list[Box]:
        """The sizes of the boxes in it."""
        return [Box(x.width, x.height) for x in self.inner]

    @property
    def bends(self) -> Mapping[tuple[int, int], Sequence[tuple[float, float]]]:
        """Where the edges in it bend."""
        return self.placed.bends


def laid_out(shape: Shape) -> Laid:
    """The sizes and places of a box and of all in it."""
    inner = [laid_out(child) for child in shape.children]
    gap = OUTER_GAP if any(child.children for child in shape.children) or shape.kind == "root" \
        else INNER_GAP
    placed = place([Box(x.width, x.height) for x in inner], list(shape.edges), gap=gap)
    if shape.kind in ("node", "other"):
        width = CHARACTER * (len(shape.title) + (len(shape.subtitle) + 1) * 0.9) + 16
        return Laid(shape, width, LINE, inner, placed, 0.0)
    if shape.kind == "root":
        return Laid(shape, placed.width, placed.height, inner, placed, 0.0)
    title = CHARACTER * max(len(shape.title) * 1.1, len(shape.subtitle) * 0.85) + 2 * PAD
    if not inner:
        return Laid(shape, title, HEAD + 4, inner, placed, 0.0)
    head = HEAD if shape.title else 0.0
    return Laid(shape, max(title, placed.width + 2 * PAD), placed.height + head + 2 * PAD, inner,
                placed, head + PAD)
