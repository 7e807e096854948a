"""The page of a profile: all of the time, sorted, with bars; the roofline; memory over time."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from functrans.inspect.pages import fold, fragment, table
from functrans.inspect.timeline import timeline_svg
from functrans.lowering.report import Line, bytes_text, count_text

if TYPE_CHECKING:
    from functrans.inspect.profile.compare import ProfileComparison
    from functrans.inspect.profile.profiles import Profile, Row

__all__ = ["comparison_page", "page_of"]

SHOWN: Final = 20
HEADS: Final = ("step", "#time", "#share", "", "#moved", "#arithmetic", "reaches", "line")


def page_of(profiled: Profile) -> str:
    """The page as one element with its own style, without a script."""
    rows = [row for row in profiled.rows if row.step is not None]
    between = [row for row in profiled.rows if row.step is None]
    most = max((row.share for row in profiled.rows), default=1.0)
    shown, rest = rows[:SHOWN], rows[SHOWN:]
    cells = [[*_cells(row, most)] for row in (*shown, *between)]
    by_step = {t.kernel.name: t.seconds for t in profiled.steps}
    inside: dict[str, float] = {}
    for t in profiled.steps:
        inside[t.kernel.place] = inside.get(t.kernel.place, 0.0) + t.seconds
    seconds = [by_step.get(s.step, 0.0) + inside.get(s.step.rpartition(" ")[0], 0.0)
               for s in profiled.timeline]
    peak = profiled.report.peak
    told = ""
    if peak is not None:
        told = f"<div>most temporaries at {escape(peak.step)}: {bytes_text(peak.nbytes)}</div>"
        told += table(["#bytes", "value", "line"], [
            [bytes_text(v.nbytes), f"<code>{escape(v.type)}</code>", _line(v.line)]
            for v in peak.values[:6]], "alive at the peak, the largest first")
    idle = "".join(f"<div>{escape(line)}</div>" for line in profiled.idle)
    parts = [f"<h3>{escape(profiled.head)}</h3>",
             fold("Little of the machine", idle, True, "steps of a tenth of the run and more"),
             fold("Time", table(HEADS, cells, wide=True), True,
                  f"{len(rows)} steps, and what lies between them"),
             fold(f"{len(rest)} more steps", table(HEADS, [[*_cells(r, most)] for r in rest],
                                                   wide=True)),
             fold("Roofline", profiled.roofline(), True),
             fold("Memory over time", timeline_svg(profiled.timeline, seconds) + told, True),
             f'<div class="dim">{escape(profiled.note)}</div>' if profiled.note else ""]
    return fragment("".join(parts), label=f"profile of {profiled.report.name}")


def _cells(row: Row, most: float) -> list[str]:
    # later than the class that uses this module: a row tells the rest
    kernel = row.step.kernel if row.step is not None else None
    moved = bytes_text(kernel.moved) if kernel is not None and kernel.moved != 0 else ""
    flops = count_text(kernel.flops, "FLOP") if kernel is not None and kernel.flops != 0 else ""
    width = 100 * max(min(row.share / most, 1.0), 0.0) if most > 0 else 0.0
    bar = f'<span class="bar" aria-hidden="true"><i style="width:{width:.1f}%"></i></span>'
    return [f"<b>{escape(row.name)}</b>", time_text(row.seconds), f"{row.share:.0%}", bar, moved,
            flops, escape(row.reaches), _line(row.line)]


def time_text(seconds: float) -> str:
    """A time in three digits, of a table."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _line(line: Line | None) -> str:
    if line is None:
        return ""
    return (f'<code title="{escape(line.file, quote=True)}"><span class="dim">'
            f"{escape(line.place)}</span> {escape(line.text)}</code>")


def comparison_page(compared: ProfileComparison) -> str:
    """The page of a comparison: differences, the largest first, as bars to either side."""
    most = max((abs(row.difference) for row in compared.rows), default=0.0) or 1.0
    rows = []
    for row in compared.rows:
        width = 50 * min(abs(row.difference) / most, 1.0)
        left = 50 if row.difference > 0 else 50 - width
        colour = "var(--hot)" if row.difference > 0 else "var(--good)"
        bar = (f'<span class="bar" aria-hidden="true"><i style="left:{left:.1f}%;right:auto;'
               f'width:{width:.1f}%;background:{colour}"></i></span>')
        rows.append([f"<b>{escape(row.name)}</b>", *[
            "" if t is None else time_text(t) for t in (row.before, row.after)],
            f"{'+' * (row.difference > 0)}{time_text(row.difference)}", bar, _line(row.line)])
    heads = ["step", "#first", "#second", "#difference", "", "line"]
    return fragment(f"<h3>{escape(compared.head)}</h3>{table(heads, rows, wide=True)}",
                    label="comparison of two profiles")
