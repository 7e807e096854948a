"""`draw`: the graph of a program as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from functrans.core.errors import ArgumentError, public, shown
from functrans.inspect.draw.graph import Drawn, DrawnGroup, Node, graph_of_report
from functrans.inspect.draw.layout import Box, Placed, place
from functrans.inspect.explain.explanation import lowered_of, report_of
from functrans.typing import PyTree

__all__ = ["Drawing", "draw"]

CHARACTER, NODE, HEAD, PAD, MARGIN = 6.6, 26.0, 34.0, 10.0, 12.0
FAR = 8  # an edge that bends more often is light: it passes many kernels
COLOURS = {"input": ("#e8f3ea", "#2a7d3f"), "output": ("#fdeee2", "#c2560c"),
           "kernel": ("#eef3fa", "#3b6ea5"), "alone": ("#f4f4f4", "#999999")}
NODES = {"operation": ("#ffffff", "#b8c4d4"), "other": ("#dbe6f5", "#5b86b8")}
FONT = "font-family='ui-sans-serif,Helvetica,Arial,sans-serif'"
ARROW = ("<defs><marker id='arrow' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='6' "
         "markerHeight='6' orient='auto'><path d='M0,0 L8,4 L0,8 z' fill='#555'/></marker></defs>")


class Drawing:
    """A picture of a program, shown by notebooks; `svg` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    @public
    def save(self, path: str | Path) -> None:
        """Write the picture to a file, whose name ends with `.svg`; else raises ArgumentError."""
        if Path(path).suffix.lower() != ".svg":
            raise ArgumentError(f"the picture is SVG, and {shown(str(path))} is no name for that.",
                                fix='save("program.svg"), for browsers and Inkscape')
        Path(path).write_text(self.svg, encoding="utf-8")


@public
def draw(f: Callable[..., Any], *args: PyTree, target: str | None = None, **kwargs: PyTree
         ) -> Drawing:
    """The graph of `f` as it is compiled: a rounded box for each kernel, what it computes inside.

    Arguments are green, results orange; long chains of elementwise operations are one node, and
    pointing at it tells the equations and the lines. Arguments as for `ft.explain`. Raises whatever
    tracing raises.

    >>> import functrans as ft
    >>> x = ft.ShapeDtypeStruct((8, 8), "float32")
    >>> picture = ft.draw(lambda x: ft.numpy.tanh(x @ x), x, target="cpu")
    >>> picture.svg[:4], "matmul" in picture.svg
    ('<svg', True)
    """
    lowered = lowered_of(f, args, kwargs, target)
    return Drawing(_svg(graph_of_report(report_of(lowered, f, args, kwargs))))


def _svg(drawn: Drawn) -> str:
    inner = [_inside(group) for group in drawn.groups]
    boxes = [_box(group, placed) for group, placed in zip(drawn.groups, inner, strict=True)]
    whole = place(boxes, list(drawn.edges))
    shapes = [_edge(whole, boxes, edge, types) for edge, types in drawn.edges.items()]
    for group, placed, box, at in zip(drawn.groups, inner, boxes, whole.at, strict=True):
        shapes.append(_group(group, placed, box, at))
    width, height = whole.width + 2 * MARGIN, whole.height + 2 * MARGIN
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height:.0f}' "
            f"viewBox='{-MARGIN:.0f} {-MARGIN:.0f} {width:.0f} {height:.0f}' "
            f"style='max-width:100%;height:auto;background:#fff' {FONT}>{ARROW}"
            f"{''.join(shapes)}</svg>")


def _inside(group: DrawnGroup) -> Placed:
    boxes = [Box(_text_width(n), NODE) for n in group.nodes]
    return place(boxes, group.edges, gap=16.0)


def _text_width(node: Node) -> float:
    return CHARACTER * (len(node.label) + (len(node.type) + 1) * 0.9) + 16


def _box(group: DrawnGroup, placed: Placed) -> Box:
    title = CHARACTER * max(len(group.title) * 1.1, len(group.subtitle) * 0.85) + 2 * PAD
    if not group.nodes:
        return Box(title, HEAD + 4)
    head = HEAD if group.title else 0.0
    return Box(max(title, placed.width + 2 * PAD), placed.height + head + 2 * PAD)


def _group(group: DrawnGroup, placed: Placed, box: Box, at: tuple[float, float]) -> str:
    x, y = at
    fill, stroke = COLOURS[group.kind]
    round_ = 19 if not group.nodes else 9
    parts = [f"<rect x='{x:.1f}' y='{y:.1f}' width='{box.width:.1f}' height='{box.height:.1f}' "
             f"rx='{round_}' fill='{fill}' stroke='{stroke}'/>"]
    if group.title:
        middle = x + box.width / 2
        parts += [_text(middle, y + 15, group.title, 12, stroke, bold=True),
                  _text(middle, y + 28, group.subtitle, 10, "#666")]
    left = x + (box.width - placed.width) / 2
    top = y + PAD + (HEAD if group.title else 0.0)
    inner = [Box(_text_width(n), NODE) for n in group.nodes]
    for edge in group.edges:
        parts.append(_curve(_points(placed, inner, edge, (left, top)), "#8899aa", 1.0))
    for node, (nx, ny) in zip(group.nodes, placed.at, strict=True):
        parts.append(_node(node, left + nx, top + ny))
    return f"<g>{''.join(parts)}</g>"


def _node(node: Node, x: float, y: float) -> str:
    width = _text_width(node)
    fill, stroke = NODES[node.kind]
    return (f"<g><title>{escape(node.tooltip)}</title>"
            f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{NODE:.0f}' rx='4' "
            f"fill='{fill}' stroke='{stroke}'/>"
            f"<text x='{x + 8:.1f}' y='{y + 17:.1f}' font-size='11' fill='#222'>"
            f"{escape(node.label)} <tspan fill='#888' font-size='10'>{escape(node.type)}</tspan>"
            "</text></g>")


def _edge(whole: Placed, boxes: Sequence[Box], edge: tuple[int, int], types: list[str]) -> str:
    is_far = len(whole.bends[edge]) > FAR
    return _curve(_points(whole, boxes, edge, (0.0, 0.0)), "#bbb" if is_far else "#555", 1.3,
                  ", ".join(types), True)


def _points(placed: Placed, boxes: Sequence[Box], edge: tuple[int, int],
            origin: tuple[float, float]) -> list[tuple[float, float]]:
    """Where an edge begins, bends and ends; it leaves and enters a box where it comes from."""
    (a, b), (dx, dy) = edge, origin
    bends = [(x + dx, y + dy) for x, y in placed.bends[edge]]

    def middle(n: int) -> float:
        return placed.at[n][0] + boxes[n].width / 2 + dx

    def toward(n: int, x: float) -> float:
        reach = max(boxes[n].width / 2 - 14, 0.0) * 0.7
        return middle(n) + max(-reach, min(reach, (x - middle(n)) * 0.5))

    first = bends[0][0] if bends else middle(b)
    last = bends[-1][0] if bends else middle(a)
    begin = (toward(a, first), placed.at[a][1] + boxes[a].height + dy)
    floor = [(begin[0], placed.floors[a] + dy)] if placed.floors[a] + dy > begin[1] + 1 else []
    return [begin, *floor, *bends, (toward(b, last), placed.at[b][1] + dy - 1)]


def _curve(points: Sequence[tuple[float, float]], colour: str, width: float, title: str = "",
           arrow: bool = False) -> str:
    """A smooth line downwards through points."""
    (x, y), *rest = points
    path = [f"M{x:.1f},{y:.1f}"]
    for nx, ny in rest:
        half = (y + ny) / 2
        path.append(f"C{x:.1f},{half:.1f} {nx:.1f},{half:.1f} {nx:.1f},{ny:.1f}")
        x, y = nx, ny
    end = " marker-end='url(#arrow)'" if arrow else ""
    told = f"<title>{escape(title)}</title>" if title else ""
    return (f"<path d='{' '.join(path)}' fill='none' stroke='{colour}' "
            f"stroke-width='{width}'{end}>{told}</path>")


def _text(x: float, y: float, text: str, size: int, colour: str, bold: bool = False) -> str:
    weight = " font-weight='600'" if bold else ""
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='middle' "
            f"fill='{colour}'{weight}>{escape(text)}</text>")
