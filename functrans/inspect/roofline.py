"""The roofline: what a kernel reaches, and what it could at its arithmetic for each byte."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

__all__ = ["roofline"]

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 620, 340, 70, 44, 16, 16
BLUE, ORANGE = "#3b6ea5", "#c2560c"


def roofline(points: Sequence[tuple[str, float, float, float]], bandwidth: float,
             flops: float) -> str:
    """SVG of points (name, FLOP for each byte, FLOP in a second, seconds) under the roof.

    Areas of points are their times; both axes are logarithmic.
    """
    ridge = flops / bandwidth
    low = min([ridge / 10, *[x for _, x, _, _ in points]]) / 2
    high = max([ridge * 10, *[x for _, x, _, _ in points]]) * 2
    bottom = min([flops / 1e3, *[y for _, _, y, _ in points]]) / 2
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
    left = max(low, bottom / bandwidth)
    roof = [(left, left * bandwidth), (ridge, flops), (high, flops)]
    path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in roof)
    parts.append(f"<polyline points='{path}' fill='none' stroke='{ORANGE}' stroke-width='2'/>")
    parts.append(_text(across(high) - 4, up(flops) + 14, f"{_short(flops)}FLOP/s: a product of "
                       "matrices", "end", ORANGE))
    parts.append(_text(across(left) + 6, up(left * bandwidth) - 8,
                       f"{_short(bandwidth)}B/s: a copy", "start", ORANGE))
    longest = max((s for *_, s in points), default=1.0)
    for name, x, y, seconds in points:
        r = 3 + 9 * math.sqrt(seconds / longest)
        told = f"{name}: {_short(y)}FLOP/s at {x:.3g} FLOP for each byte, {1e6 * seconds:.3g} us"
        parts.append(f"<circle cx='{across(x):.1f}' cy='{up(y):.1f}' r='{r:.1f}' fill='{BLUE}' "
                     f"fill-opacity='0.55'><title>{escape(told)}</title></circle>")
    roof_text = (across(high) - 230, across(high), up(flops) + 10)
    parts += _names([(name, across(x), up(y)) for name, x, y, _ in
                     sorted(points, key=lambda p: -p[3])], [roof_text])
    parts.append(_text((LEFT + WIDTH) / 2, HEIGHT - 8, "FLOP for each byte moved", "middle"))
    parts.append(f"<g transform='rotate(-90 14 {HEIGHT / 2:.0f})'>"
                 f"{_text(14, HEIGHT / 2, 'FLOP in a second', 'middle')}</g>")
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{HEIGHT}' "
            f"viewBox='0 0 {WIDTH} {HEIGHT}' style='max-width:100%;background:#fff' "
            f"font-family='Helvetica,Arial,sans-serif'>{''.join(parts)}</svg>")


def _names(points: Sequence[tuple[str, float, float]],
           taken: list[tuple[float, float, float]]) -> list[str]:
    """The names of points, those that take longest first, where there is room for them.

    `taken`: where texts begin and end, and their height.
    """
    found = []
    for name, x, y in points:
        width = 6.2 * len(name)
        left = x - 14 - width if x + 14 + width > WIDTH - RIGHT else x + 14
        if any(abs(y - v) < 12 and left < end and begin < left + width for begin, end, v in taken):
            continue
        taken.append((left, left + width, y))
        found.append(_text(left, y + 4, name, "start", BLUE))
    return found


def _part(x: float, low: float, high: float) -> float:
    return math.log(x / low) / math.log(high / low)


def _decades(low: float, high: float) -> list[float]:
    return [10.0 ** k for k in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]


def _line(x0: float, y0: float, x1: float, y1: float) -> str:
    return f"<path d='M{x0:.1f},{y0:.1f} L{x1:.1f},{y1:.1f}' stroke='#e4e4e4'/>"


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#444") -> str:
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='11' text-anchor='{anchor}' "
            f"fill='{colour}'>{escape(text)}</text>")


def _short(x: float) -> str:
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if x >= scale:
            return f"{x / scale:.3g} {prefix}"
    return f"{x:.3g} "
