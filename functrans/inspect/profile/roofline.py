"""The roofline: what a kernel reaches, and what it could at its arithmetic for each byte."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

__all__ = ["roofline"]

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 620, 340, 70, 44, 16, 16
BLUE, ORANGE = "var(--bar,#3b6ea5)", "var(--hot,#c2560c)"


def roofline(points: Sequence[tuple[str, float, float, float]], bandwidth: float,
             flops: float) -> str:
    """SVG of points (name, FLOP for each byte, FLOP in a second, seconds) under the roof.

    Areas of points are their times; both axes are logarithmic.
    """
    ridge = flops / bandwidth
    low = min([ridge / 10, *[x for _, x, _, _ in points]]) / 2
    high = max([ridge * 10, *[x for _, x, _, _ in points]]) * 2
    bottom = min([low * bandwidth, *[y for _, _, y, _ in points]]) / 2
    top = flops * 3

    def across(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * _part(x, low, high)

    def up(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * _part(y, bottom, top)

    parts = []
    for x in _decades(low, high):
        parts += [_line(across(x), up(bottom), across(x), up(top)),
                  _text(across(x), HEIGHT - BOTTOM + 15, f"{x:g}", "middle")]
    for y in _decades(bottom, top):
        parts += [_line(across(low), up(y), across(high), up(y)),
                  _text(LEFT - 6, up(y) + 4, _short(y), "end")]
    roof = [(low, low * bandwidth), (ridge, flops), (high, flops)]
    path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in roof)
    parts.append(f"<polyline points='{path}' fill='none' stroke='{ORANGE}' stroke-width='2'/>")
    # above the roof, where no kernel is
    told = f"{_short(flops)}FLOP/s: a product of matrices"
    parts.append(_text(across(high) - 4, up(flops) - 7, told, "end", ORANGE))
    taken = [(across(high) - 6.6 * len(told), across(high), up(flops) - 16, up(flops) + 2)]
    slope = math.degrees(math.atan2(up(flops) - up(low * bandwidth), across(ridge) - across(low)))
    x, y = (across(low) + across(ridge)) / 2, (up(low * bandwidth) + up(flops)) / 2
    told = f"{_short(bandwidth)}B/s: a copy"
    parts.append(f"<g transform='rotate({slope:.1f} {x:.1f} {y:.1f})'>"
                 f"{_text(x, y - 7, told, 'middle', ORANGE)}</g>")
    for k in range(-len(told) // 2, len(told) // 2 + 1):  # its letters go up along the roof
        at = (x + 6.6 * k * math.cos(math.radians(slope)),
              y + 6.6 * k * math.sin(math.radians(slope)))
        taken.append((at[0] - 9, at[0] + 5, at[1] - 17, at[1] + 2))
    longest = max((s for *_, s in points), default=1.0)
    placed = []
    for name, x, y, seconds in sorted(points, key=lambda p: -p[3]):
        r = 3 + 9 * math.sqrt(seconds / longest)
        told = f"{name}: {_short(y)}FLOP/s at {x:.3g} FLOP for each byte, {1e6 * seconds:.3g} us"
        parts.append(f"<circle cx='{across(x):.1f}' cy='{up(y):.1f}' r='{r:.1f}' fill='{BLUE}' "
                     f"fill-opacity='0.55'><title>{escape(told)}</title></circle>")
        placed.append((name, across(x), up(y), r))
    parts += _names(placed, taken)
    parts.append(_text((LEFT + WIDTH) / 2, HEIGHT - 8, "FLOP for each byte moved", "middle"))
    parts.append(f"<g transform='rotate(-90 14 {HEIGHT / 2:.0f})'>"
                 f"{_text(14, HEIGHT / 2, 'FLOP in a second', 'middle')}</g>")
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{HEIGHT}' "
            f"viewBox='0 0 {WIDTH} {HEIGHT}' style='max-width:100%;background:var(--bg,#fff)' "
            f"font-family='Helvetica,Arial,sans-serif'>{''.join(parts)}</svg>")


Area = tuple[float, float, float, float]
"""Left, right, top and bottom."""


def _names(points: Sequence[tuple[str, float, float, float]], roof: Sequence[Area]) -> list[str]:
    """The names of points (name, x, y, radius), the first ones first, where there is room.

    A name is right or left of its point, below or above it, and on nothing else.
    """
    taken = [*roof, *((x - r, x + r, y - r, y + r) for _, x, y, r in points)]
    found = []
    for name, x, y, r in points:
        width = 6.6 * len(name)
        for left, middle in ((x + r + 4, y), (x - r - 4 - width, y),
                             (x - width / 2, y + r + 8), (x - width / 2, y - r - 8)):
            box = (left, left + width, middle - 5, middle + 5)
            if left < LEFT or left + width > WIDTH or any(_overlap(box, other) for other in taken):
                continue
            taken.append(box)
            found.append(_text(left, middle + 4, name, "start", BLUE))
            break
    return found


def _overlap(a: Area, b: Area) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def _part(x: float, low: float, high: float) -> float:
    return math.log(x / low) / math.log(high / low)


def _decades(low: float, high: float) -> list[float]:
    return [10.0 ** k for k in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]


def _line(x0: float, y0: float, x1: float, y1: float) -> str:
    return f"<path d='M{x0:.1f},{y0:.1f} L{x1:.1f},{y1:.1f}' stroke='var(--line,#e4e4e4)'/>"


def _text(x: float, y: float, text: str, anchor: str, colour: str = "var(--fg,#444)") -> str:
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='11' text-anchor='{anchor}' "
            f"fill='{colour}'>{escape(text)}</text>")


def _short(x: float) -> str:
    for prefix, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if x >= scale:
            return f"{x / scale:.3g} {prefix}"
    return f"{x:.3g} "
