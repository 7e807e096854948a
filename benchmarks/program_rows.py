"""Rows of the suite of programs: what was measured, how it is shown, kept and summed up."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from bounds import SUBJECT, duration
from harness import processor

PEER, BY_HAND = "jax", "by hand"
MOST = 1.05
"""The most of the peer's time that a program may take."""


@dataclass
class ProgramRow:
    """A program of a suite, by library: seconds of the first call, median and least of a call.

    `error` is the largest difference of a result in norm. `errors` says what a library could not
    do, or that a result is wrong; `warnings` what a library warned of.
    """

    yardstick: ClassVar[str] = PEER
    """What functrans is measured against."""
    most: ClassVar[float] = MOST

    title: str
    field: str
    size: str
    first: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    fastest: dict[str, float] = field(default_factory=dict)
    error: float = math.nan
    errors: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    date: str = ""

    @property
    def first_ratio(self) -> float:
        """functrans' first call by the yardstick's; NaN where one of them is missing."""
        return ratio(self.first, self.yardstick)

    @property
    def ratio(self) -> float:
        """functrans' time by the yardstick's; NaN where one of them is missing."""
        return ratio(self.seconds, self.yardstick)

    @property
    def verdict(self) -> str:
        """FAIL where functrans did not run or is wrong, slower, no peer, or pass."""
        if SUBJECT in self.errors or SUBJECT not in self.seconds:
            return "FAIL"
        if self.yardstick in self.errors or self.yardstick not in self.seconds:
            return "no peer"
        return "slower" if self.ratio > self.most else "pass"

    @property
    def remarks(self) -> list[str]:
        """Errors and warnings."""
        return [f"{name}: {text}" for name, text in self.errors.items()] + self.warnings

    def record(self) -> dict[str, Any]:
        """The row as it stands in the file."""
        found = dataclasses.asdict(self) | {"verdict": self.verdict}
        found["error"] = None if math.isnan(self.error) else self.error
        return found


def ratio(seconds: dict[str, float], yardstick: str = PEER) -> float:
    if SUBJECT not in seconds or yardstick not in seconds:
        return math.nan
    return seconds[SUBJECT] / seconds[yardstick]


def shown(seconds: dict[str, float], name: str) -> str:
    return duration(seconds[name]) if name in seconds else "-"


def shown_ratio(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def print_header(width: int) -> None:
    """The lines above the rows."""
    print(f"\n{'':<{width}} {'first call':>10} {PEER:>9} {'ratio':>7} {'a call':>10} {PEER:>9}"
          f" {'ratio':>7} {'error':>8}")  # fmt: skip


def print_row(row: ProgramRow, width: int) -> None:
    """One line, and below it one for each remark."""
    error = "-" if math.isnan(row.error) else f"{row.error:.1e}"
    print(f"{row.title:<{width}} {shown(row.first, SUBJECT):>10} {shown(row.first, PEER):>9}"
          f" {shown_ratio(row.first_ratio):>7} {shown(row.seconds, SUBJECT):>10}"
          f" {shown(row.seconds, PEER):>9} {shown_ratio(row.ratio):>7} {error:>8}  {row.verdict}",
          flush=True)  # fmt: skip
    print_remarks(row, width)


def print_remarks(row: ProgramRow, width: int) -> None:
    """A line for each error and warning."""
    for remark in row.remarks:
        print(f"{'':<{width}} {remark[:200]}", flush=True)


def geometric_mean(values: Sequence[float]) -> float:
    """NaN of no values."""
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else math.nan


def print_summary(rows: Sequence[ProgramRow]) -> None:
    """Geometric means of the ratios, how many are above the bound, and the worst."""
    for what, name in (("first call", "first_ratio"), ("a call", "ratio")):
        found = {row.title: getattr(row, name) for row in rows}
        found = {title: value for title, value in found.items() if not math.isnan(value)}
        if found:
            worst = sorted(found, key=found.__getitem__, reverse=True)[:5]
            print(f"{what}: geometric mean {geometric_mean(list(found.values())):.3f} of {PEER}'s"
                  f" time in {len(found)} programs, {sum(x > MOST for x in found.values())} above"
                  f" {MOST}; worst {', '.join(f'{t} {found[t]:.2f}' for t in worst)}")  # fmt: skip
    failed = [row.title for row in rows if row.verdict == "FAIL"]
    if failed:
        print(f"failed: {', '.join(failed)}")


def from_record(record: dict[str, Any], kind: type[ProgramRow] = ProgramRow) -> ProgramRow:
    """The row that stands in a file."""
    found = {item.name: record[item.name] for item in dataclasses.fields(ProgramRow)}
    return kind(**found | {"error": math.nan if found["error"] is None else found["error"]})


def earlier_rows(path: Path) -> list[dict[str, Any]]:
    """The rows that the file has."""
    return json.loads(path.read_text())["rows"] if path.exists() else []


def write(path: Path, rows: Sequence[ProgramRow], gpu: str, versions: dict[str, dict[str, str]],
          load_before: float, beside: Sequence[dict[str, Any]],
          yardstick: str = PEER) -> None:  # fmt: skip
    """The file: these rows, and of earlier runs those of other programs and sizes."""
    found = {(row["title"], row["size"]): row for row in beside}
    found |= {(row.title, row.size): row.record() for row in rows}
    means = {name: geometric_mean([value for row in found.values()
                                   if not math.isnan(value := ratio(row.get(name, {}), yardstick))])
             for name in ("first", "seconds")}  # fmt: skip
    record = {
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "device": ({"name": gpu} if gpu else {}) | {"processor": processor(),
                                                    "cores": os.cpu_count()},
        "versions": versions,
        "load_before": round(load_before, 2),
        "unit": "seconds: of the first call, and of a call, median of alternating rounds",
        "geometric_means": {k: None if math.isnan(v) else v for k, v in means.items()},
        "rows": [found[key] for key in sorted(found)],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n")
