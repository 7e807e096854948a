"""What tables of workloads share: options, rows as they are measured, one JSON file."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field

from bounds import SUBJECT
from cpu_workloads.entries import Peers, Workload
from harness import (
    REACH,
    Row,
    first_line,
    load,
    measure,
    print_header,
    print_row,
    read_results,
    write_results,
)

REST = 0.02  # the threads of torch spin for some milliseconds after their work


def parse_options(
    description: str, arguments: list[str] | None = None, **flags: str
) -> argparse.Namespace:
    """The options of a table; `flags` are more of them, with what they mean."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=100, help="interleaved rounds a row, at most")
    parser.add_argument("--only", default="", help="only rows whose title contains this")
    parser.add_argument("--quick", action="store_true", help="about a second a row; writes nothing")
    parser.add_argument("--compile", action="store_true", help="torch.compile too")
    parser.add_argument("--subject-only", action="store_true", help="functrans alone")
    parser.add_argument("--no-write", action="store_true", help="leave the results file alone")
    for name, meaning in flags.items():
        parser.add_argument(f"--{name}", action="store_true", help=meaning)
    return parser.parse_args(arguments)


def peers_for(options: argparse.Namespace) -> Peers:
    """The libraries that the options ask for."""
    return Peers() if options.subject_only else Peers.installed(options.compile)


def kept_seconds(record: dict) -> dict[str, float]:
    """The peers' times of an earlier run."""
    return {n: s for n, s in (record.get("kept", {}) | record["seconds"]).items() if n != SUBJECT}


@dataclass
class Table:
    """The rows of one run, shown and written as they come."""

    name: str
    options: argparse.Namespace
    titles: list[str]
    reach: int = REACH
    gpu: str = ""
    """The name of the GPU that is measured."""
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.busy = load()
        if self.busy > 0.5:
            print(f"The machine is busy (load {self.busy:.1f}): the figures will be too high.")
        self.earlier = read_results(self.name, self.gpu)
        self.width = max(map(len, self.titles), default=0)

    def header(self) -> None:
        """The line above the rows."""
        print_header(self.width, self.reach)

    def kept(self, title: str) -> dict[str, float]:
        """What stands in for the libraries that are left out now: their times of an earlier run."""
        record = self.earlier.get(title)
        kept = kept_seconds(record) if record else {}
        if self.options.subject_only:
            return kept
        return {name: kept[name] for name in kept if name == "torch.compile"}

    def measured(self, item: Workload, peers: Peers) -> Row:
        """The row of a workload."""
        effort = (15, 1.0, 3) if self.options.quick else (self.options.rounds, 10.0, 9)
        try:
            return measure(item.case(peers), *effort, REST, self.kept(item.title))
        except Exception as error:  # a row that cannot even be made must not end the table
            return self.failed(item.title, error)

    def failed(self, title: str, error: Exception) -> Row:
        """The row that `error` is all there is of."""
        return Row(title, {}, bound=math.nan, errors={SUBJECT: first_line(error)})

    def keep(self, row: Row) -> None:
        """Show the row, and write it at once: a crash in a later one must not lose it."""
        self.rows.append(row)
        print_row(row, self.width, self.reach)
        if not (self.options.no_write or self.options.quick or self.options.subject_only):
            write_results(self.name, self.rows, self.busy, list(self.earlier.values()), self.gpu)

    def close(self) -> int:
        """How many bounds are kept; the exit status."""
        missed = sum(not row.passed for row in self.rows)
        print(f"\n{len(self.rows) - missed} of {len(self.rows)} rows pass")
        return 1 if missed else 0
