"""Two profiles side by side: which steps became faster, slower, or are of one of them alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from functrans.core.errors import ArgumentError, public, shown
from functrans.inspect.pages import save_page
from functrans.inspect.profile.page import comparison_page
from functrans.inspect.profile.profiles import BETWEEN, Profile, Row, seconds_text
from functrans.lowering.report import Line

__all__ = ["Compared", "ProfileComparison", "compare"]


@dataclass(frozen=True)
class Compared:
    """A step of two programs, in seconds; None of the one that has no such step."""

    name: str
    before: float | None
    after: float | None
    line: Line | None

    @property
    def difference(self) -> float:
        """Seconds that the second takes longer."""
        return (self.after or 0.0) - (self.before or 0.0)


class ProfileComparison:
    """The steps of two profiles, the largest differences first; these add up to that of a run."""

    def __init__(self, first: Profile, second: Profile) -> None:
        self.first = first
        self.second = second
        self.rows = tuple(sorted(_matched(first.rows, second.rows),
                                 key=lambda row: -abs(row.difference)))

    @property
    def head(self) -> str:
        """Both runs in one line."""
        a, b = self.first, self.second
        ratio = a.seconds / b.seconds
        told = f"{ratio:.2f} times as fast" if ratio >= 1 else f"{1 / ratio:.2f} times as slow"
        name = a.report.name if a.report.name == b.report.name else \
            f"{a.report.name} and {b.report.name}"
        return f"{name}: {seconds_text(a.seconds)} -> {seconds_text(b.seconds)}, {told}"

    def __str__(self) -> str:
        titles = ("step", "first", "second", "difference", "line")
        rows = [titles, *[(row.name, *["" if t is None else seconds_text(t)
                                       for t in (row.before, row.after)],
                           f"{'+' * (row.difference > 0)}{seconds_text(row.difference)}",
                           str(row.line or "")) for row in self.rows]]
        widths = [max(len(row[c]) for row in rows) for c in range(len(titles))]
        lines = ["  ".join(text.rjust(w) if 1 <= c <= 3 else text.ljust(w)
                           for c, (text, w) in enumerate(zip(row, widths, strict=True))).rstrip()
                 for row in rows]
        return "\n".join([self.head, lines[0], "-" * len(lines[0]), *lines[1:]])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return comparison_page(self)

    @public
    def save(self, path: str | Path) -> None:
        """Write the page to an HTML file, which needs no network and no other file.

        Raises ArgumentError for a name that does not end with `.html`.
        """
        save_page(path, self.head, comparison_page(self))


def _matched(first: Sequence[Row], second: Sequence[Row]) -> list[Compared]:
    """Rows of the same work: of equal sources and lines, else of one kind and line, in order.

    What is left, of functions at different lines, is matched by its kind and how much it does.
    """
    left, right = list(first), list(second)
    found = []
    for key in (_by_source, _by_line, _by_work):
        places: dict[Hashable, list[Row]] = {}
        for row in right:
            if (k := key(row)) is not None:
                places.setdefault(k, []).append(row)
        for row in list(left):
            same = places.get(key(row)) if key(row) is not None else None
            if same:
                other = same.pop(0)
                left.remove(row)
                right.remove(other)
                name = row.name if row.name == other.name else f"{row.name} -> {other.name}"
                found.append(Compared(name, row.seconds, other.seconds, other.line or row.line))
    found += [Compared(row.name, row.seconds, None, row.line) for row in left]
    return found + [Compared(row.name, None, row.seconds, row.line) for row in right]


def _by_source(row: Row) -> Hashable:
    if row.step is None:
        return BETWEEN
    k = row.step.kernel
    return (k.source, k.about, k.place, row.line) if k.source else (k.name, k.about, k.place)


def _by_line(row: Row) -> Hashable:
    if row.step is None or row.line is None:
        return None
    return row.step.kernel.kind, row.line.text, row.step.kernel.place


def _by_work(row: Row) -> Hashable:
    if row.step is None:
        return None
    k = row.step.kernel
    return k.kind, k.about, k.place, k.flops, k.moved


def compare(first: object, second: object) -> ProfileComparison:
    """Compare two profiles. Raises ArgumentError for anything else."""
    for x in (first, second):
        if not isinstance(x, Profile):
            raise ArgumentError(f"compare takes what functrans.profile returned, got {shown(x)} of "
                                f"type {type(x).__name__}.",
                                fix="functrans.profile.compare(functrans.profile(f, x), "
                                    "functrans.profile(g, x))")
    assert isinstance(first, Profile) and isinstance(second, Profile)
    return ProfileComparison(first, second)
