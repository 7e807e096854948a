"""Memory over time as a picture: the temporaries that are alive at each step."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import accumulate
from typing import Final

from functrans.lowering.report import MemoryStep, bytes_text

__all__ = ["timeline_svg"]

WIDTH: Final = 720
HEIGHT: Final = 150
LEFT: Final = 64
TOP: Final = 12
BOTTOM: Final = 22
LARGEST: Final = 4  # values that a tooltip names


def timeline_svg(steps: Sequence[MemoryStep], seconds: Sequence[float] = ()) -> str:
    """A column for each step; pointing at it tells the values that are alive, and their lines.

    Columns are as wide as the steps take `seconds`, where these are known.
    """
    most = max((s.nbytes for s in steps), default=0)
    if not most:
        return ""
    peak = max(range(len(steps)), key=lambda k: steps[k].nbytes)
    height, room = HEIGHT - TOP - BOTTOM, WIDTH - LEFT - 8
    timed = len(seconds) == len(steps) and sum(seconds) > 0
    parts = [s / sum(seconds) for s in seconds] if timed else [1 / len(steps)] * len(steps)
    begins = [LEFT + room * x for x in accumulate(parts, initial=0.0)]
    columns = []
    for k, step in enumerate(steps):
        tall = max(height * step.nbytes / most, 0.5)
        colour = "var(--hot,#c2560c)" if k == peak else "var(--bar,#5b8dc4)"
        columns.append(
            f"<rect x='{begins[k]:.2f}' y='{TOP + height - tall:.2f}' "
            f"width='{max(room * parts[k] - 0.4, 0.3):.2f}' height='{tall:.2f}' fill='{colour}'>"
            f"<title>{escape(_told(k, step))}</title></rect>")
    labels = [_text(LEFT - 6, TOP + 8, bytes_text(most), "end"),
              _text(LEFT - 6, TOP + height, "0", "end"),
              _text(LEFT, HEIGHT - 6, "begin" if timed else "first step", "start"),
              _text(WIDTH - 8, HEIGHT - 6, "time" if timed else f"step {len(steps) - 1}", "end")]
    label = f"memory over time, {bytes_text(most)} at step {peak} {steps[peak].step}"
    return (f"<svg xmlns='http://www.w3.org/2000/svg' role='img' viewBox='0 0 {WIDTH} {HEIGHT}' "
            f"width='{WIDTH}' aria-label='{escape(label, quote=True)}' fill='currentColor'>"
            f"{''.join([*columns, *labels])}</svg>")


def _told(number: int, step: MemoryStep) -> str:
    lines = [f"step {number} {step.step}: {bytes_text(step.nbytes)}"]
    lines += [f"{bytes_text(v.nbytes)} {v.type}  {v.line or ''}" for v in step.values[:LARGEST]]
    more = len(step.values) - LARGEST
    return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (f"<text x='{x:.0f}' y='{y:.0f}' font-size='11' text-anchor='{anchor}' "
            f"fill='currentColor' font-family='sans-serif'>"
            f"{escape(text)}</text>")
