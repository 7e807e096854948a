"""Boxes and edges as SVG, in colours that a page may set by variables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from functrans.inspect.draw.shapes import LINE, Laid, Shape, laid_out

__all__ = ["svg_of"]

MARGIN: Final = 12.0
FAR: Final = 8  # an edge that bends more often is light: it passes many boxes
STYLE: Final = """\
svg.ft-draw{--page:#fff;--ink:#222;--faint:#666;--edge:#555;--far:#bbb;--in:#8899aa;
--input:#e8f3ea;--input-line:#2a7d3f;--output:#fdeee2;--output-line:#b04d08;
--kernel:#eef3fa;--kernel-line:#3b6ea5;--alone:#f4f4f4;--alone-line:#888;--node:#fff;
--node-line:#b8c4d4;--other:#dbe6f5;--other-line:#5b86b8;--line-box:#eef3fa;--line-line:#3b6ea5;
--back:#f4eef9;--back-line:#7a4da8;--repeat:#fbfaf3;--repeat-line:#a08a2c}
@media (prefers-color-scheme:dark){svg.ft-draw{--page:#16181d;--ink:#e3e6eb;--faint:#9aa3b0;
--edge:#9aa3b0;--far:#4a515e;--in:#6f7c8d;--input:#1d3325;--input-line:#6cc184;--output:#3a2718;
--output-line:#f0945a;--kernel:#1e2836;--kernel-line:#74a8e0;--alone:#22262e;--alone-line:#8a93a0;
--node:#16181d;--node-line:#4a5a70;--other:#2b3c52;--other-line:#74a8e0;--line-box:#1e2836;
--line-line:#74a8e0;--back:#2a2136;--back-line:#b894e0;--repeat:#25231a;--repeat-line:#cdb65a}}
svg.ft-draw{background:var(--page);font-family:ui-sans-serif,Helvetica,Arial,sans-serif}
svg.ft-draw .hit>rect{stroke:#d55e00;stroke-width:3}
"""
COLOURS: Final = {
    "input": ("input", "input-line"), "output": ("output", "output-line"),
    "kernel": ("kernel", "kernel-line"), "alone": ("alone", "alone-line"),
    "node": ("node", "node-line"), "other": ("other", "other-line"),
    "line": ("line-box", "line-line"), "backward": ("back", "back-line"),
    "repeat": ("repeat", "repeat-line")}
ARROW: Final = (
    "<defs><marker id='arrow' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='6' "
    "markerHeight='6' orient='auto'><path d='M0,0 L8,4 L0,8 z' fill='var(--edge)'/></marker>"
    "</defs>")


def svg_of(shape: Shape) -> str:
    """The picture of a box and of all in it."""
    laid = laid_out(shape)
    width, height = laid.width + 2 * MARGIN, laid.height + 2 * MARGIN
    return (f"<svg xmlns='http://www.w3.org/2000/svg' class='ft-draw' width='{width:.0f}' "
            f"height='{height:.0f}' "
            f"viewBox='{-MARGIN:.0f} {-MARGIN:.0f} {width:.0f} {height:.0f}' "
            f"style='max-width:100%;height:auto'><style>{STYLE}</style>{ARROW}"
            f"{_inside(laid, 0.0, 0.0)}</svg>")


def _inside(laid: Laid, left: float, top: float) -> str:
    """The edges among the boxes of a box, and these."""
    is_small = all(x.shape.kind in ("node", "other") for x in laid.inner)
    parts = []
    for edge, kinds in laid.shape.edges.items():
        points = _points(laid, edge, (left, top))
        if is_small:
            parts.append(_curve(points, "var(--in)", 1.0))
        else:
            is_far = len(laid.bends[edge]) > FAR
            parts.append(_curve(points, f"var(--{'far' if is_far else 'edge'})", 1.3,
                                ", ".join(kinds), True))
    for inner, (x, y) in zip(laid.inner, laid.placed.at, strict=True):
        parts.append(_box(inner, left + x, top + y))
    return "".join(parts)


def _box(laid: Laid, x: float, y: float) -> str:
    shape = laid.shape
    if shape.kind in ("node", "other"):
        return _node(laid, x, y)
    fill, stroke = (f"var(--{name})" for name in COLOURS[shape.kind])
    corner = 19 if shape.kind in ("input", "output") else 9
    dashes = " stroke-dasharray='5 3'" if shape.kind == "repeat" else ""
    told = f"<title>{escape(shape.tooltip)}</title>" if shape.tooltip else ""
    parts = [told, f"<rect x='{x:.1f}' y='{y:.1f}' width='{laid.width:.1f}' "
                   f"height='{laid.height:.1f}' rx='{corner}' fill='{fill}' stroke='{stroke}'"
                   f"{dashes}/>"]
    if shape.title:
        middle = x + laid.width / 2
        parts += [_text(middle, y + 15, shape.title, 12, stroke, bold=True),
                  _text(middle, y + 28, shape.subtitle, 10, "var(--faint)")]
    if laid.inner:
        left = x + (laid.width - laid.placed.width) / 2
        parts.append(_inside(laid, left, y + laid.top))
    return f"<g class='b'>{''.join(parts)}</g>"


def _node(laid: Laid, x: float, y: float) -> str:
    shape = laid.shape
    fill, stroke = (f"var(--{name})" for name in COLOURS[shape.kind])
    return (f"<g class='b'><title>{escape(shape.tooltip)}</title>"
            f"<rect x='{x:.1f}' y='{y:.1f}' width='{laid.width:.1f}' height='{LINE:.0f}' rx='4' "
            f"fill='{fill}' stroke='{stroke}'/>"
            f"<text x='{x + 8:.1f}' y='{y + 17:.1f}' font-size='11' fill='var(--ink)'>"
            f"{escape(shape.title)} <tspan fill='var(--faint)' font-size='10'>"
            f"{escape(shape.subtitle)}</tspan></text></g>")


def _points(laid: Laid, edge: tuple[int, int],
            origin: tuple[float, float]) -> list[tuple[float, float]]:
    """Where an edge begins, bends and ends; it leaves and enters a box where it comes from."""
    (a, b), (dx, dy), placed, boxes = edge, origin, laid.placed, laid.inner
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
