"""Rows of the programs over lanes: beside what was written by hand, and beside JAX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from bounds import SUBJECT
from program_rows import (
    BY_HAND,
    PEER,
    ProgramRow,
    geometric_mean,
    print_remarks,
    shown,
    shown_ratio,
)


class LaneRow(ProgramRow):
    """A program over lanes on a CPU; `mean` bounds the geometric mean of all programs' ratios."""

    yardstick: ClassVar[str] = BY_HAND
    most: ClassVar[float] = 2.0
    mean: ClassVar[float] = 1.2


class GpuLaneRow(LaneRow):
    """A program over lanes on a GPU."""

    mean: ClassVar[float] = 1.3


def kind(gpu: bool) -> type[LaneRow]:
    """The rows of a GPU or a CPU."""
    return GpuLaneRow if gpu else LaneRow


def print_header(width: int) -> None:
    """The line above the rows."""
    print(f"\n{'':<{width}} {BY_HAND:>9} {SUBJECT:>10} {'ratio':>6} {PEER:>9} {'first':>9}"
          f" {f'({PEER})':>9} {f'({BY_HAND})':>10} {'error':>8}")  # fmt: skip


def print_row(row: ProgramRow, width: int) -> None:
    """One line, and below it one for each remark."""
    error = "-" if math.isnan(row.error) else f"{row.error:.1e}"
    print(f"{row.title:<{width}} {shown(row.seconds, BY_HAND):>9}"
          f" {shown(row.seconds, SUBJECT):>10} {shown_ratio(row.ratio):>6}"
          f" {shown(row.seconds, PEER):>9} {shown(row.first, SUBJECT):>9}"
          f" {shown(row.first, PEER):>9} {shown(row.first, BY_HAND):>10} {error:>8}"
          f"  {row.verdict}", flush=True)  # fmt: skip
    print_remarks(row, width)


def ratios(rows: Sequence[ProgramRow]) -> dict[str, float]:
    """functrans' times by those of what was written by hand, the worst first."""
    found = {row.title: row.ratio for row in rows if not math.isnan(row.ratio)}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def print_summary(rows: Sequence[LaneRow]) -> None:
    """Geometric mean and the worst of the ratios, and first calls above a second."""
    found = ratios(rows)
    if found:
        row, (title, worst) = rows[0], next(iter(found.items()))
        print(f"geometric mean {geometric_mean(list(found.values())):.2f} of what was written by"
              f" hand in {len(found)} programs ({row.mean} is to be reached), the worst {title}"
              f" {worst:.2f}; above {row.most}:"
              f" {', '.join(t for t, x in found.items() if x > row.most) or 'none'}")  # fmt: skip
    slow = [row.title for row in rows if row.first.get(SUBJECT, 0.0) > 1.0]
    print(f"first calls above 1 s: {', '.join(slow) or 'none'}")
    failed = [row.title for row in rows if row.verdict == "FAIL"]
    if failed:
        print(f"failed: {', '.join(failed)}")


def passes(rows: Sequence[LaneRow]) -> bool:
    """Whether the geometric mean is reached, where anything was written by hand."""
    found = list(ratios(rows).values())
    return not found or geometric_mean(found) <= rows[0].mean
