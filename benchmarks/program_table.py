"""The table of a suite of programs: options, the processes of its libraries, rows, the file."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bounds import SUBJECT
from harness import load, results_path
from program_folder import Folder, folder_at
from program_rows import (
    BY_HAND,
    PEER,
    ProgramRow,
    earlier_rows,
    from_record,
    print_header,
    print_row,
    print_summary,
    write,
)
from program_supervisor import QUICK_ROUNDS, ROUNDS, Limits, WorkerError, measure, started

FIRST_SECONDS = 90.0


@dataclass(frozen=True)
class Suite:
    """A folder of programs and how it is shown. `passes` judges the rows of a run together."""

    folder: Folder
    description: str
    row: Callable[[bool], type[ProgramRow]] = lambda gpu: ProgramRow
    """The kind of its rows, on a GPU or a CPU."""
    print_header: Callable[[int], None] = print_header
    print_row: Callable[[Any, int], None] = print_row
    print_summary: Callable[[Any], None] = print_summary
    passes: Callable[[Any], bool] = lambda rows: True

    @property
    def name(self) -> str:
        return self.folder.package


def parse_options(suite: Suite, arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=suite.description)
    parser.add_argument("--gpu", action="store_true", help="on a GPU, which has to be there")
    parser.add_argument("--size", choices=("tiny", "small", "large"),
                        help="small by default, large on a GPU")  # fmt: skip
    parser.add_argument("--folder", type=Path, metavar="PATH",
                        help="programs kept elsewhere; writes no file without --out")  # fmt: skip
    parser.add_argument("--only", default="", help="only programs with this in their name, or|this")
    parser.add_argument("--budget", type=float, default=3600.0, help="seconds of the whole run")
    parser.add_argument("--first-limit", type=float, default=FIRST_SECONDS,
                        help="seconds that the first call of a library may take")  # fmt: skip
    parser.add_argument("--no-peers", action="store_true", help="functrans alone")
    parser.add_argument("--peer-python", default=sys.executable, metavar="PATH",
                        help="the Python that has JAX, if not this one")  # fmt: skip
    parser.add_argument("--out", type=Path, help="the results file")
    parser.add_argument("--list", action="store_true", help="what there is, and no more")
    parser.add_argument("--profiles", type=Path, metavar="FOLDER",
                        help="write the times of the steps of each program there")  # fmt: skip
    parser.add_argument("--show", type=Path, metavar="FILE", help="the table of a file, no more")
    parser.add_argument("--quick", action="store_true", help="three rounds; writes no file")
    options = parser.parse_args(arguments)
    options.size = options.size or ("large" if options.gpu else "small")
    return options


def chosen(folder: Folder, only: str) -> list[str]:
    """The programs that were asked for."""
    return [name for name in folder.names() if any(word in name for word in only.split("|"))]


def listing(folder: Folder, titles: list[str]) -> str:
    """A line for each program: its field, and what it computes."""
    width = max(map(len, titles), default=0)
    return "\n".join(f"{title:<{width}}  {folder.load(title).FIELD}: "
                     f"{(folder.load(title).__doc__ or '').splitlines()[0]}" for title in titles)


def results_file(name: str, options: argparse.Namespace, gpu: str) -> Path | None:
    """Where the results go; None if nowhere."""
    if options.out is not None:
        return options.out
    usual = options.size == ("large" if options.gpu else "small")
    if options.quick or options.no_peers or options.folder is not None or not usual:
        return None
    return results_path(name, gpu)


def show(suite: Suite, path: Path, gpu: bool) -> None:
    """The table of earlier runs."""
    rows = [from_record(record, suite.row(gpu)) for record in earlier_rows(path)]
    width = max((len(row.title) for row in rows), default=0)
    suite.print_header(width)
    for row in rows:
        suite.print_row(row, width)
    print()
    suite.print_summary(rows)


def start(workers: dict[str, Any], options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """The GPU's name and the versions; drops the peer where it is not installed."""
    hello = {}
    for name in list(workers):
        try:
            hello[name] = workers[name].start()
        except WorkerError as error:
            if name == SUBJECT:
                raise SystemExit(f"{name} cannot start: {error}") from None
            print(f"({name} cannot start: {error}; its columns are left out)")
            workers.pop(name).stop()
    for name, said in hello.items():
        if options.gpu and not said["gpu"]:
            raise SystemExit(f"{name} has no GPU here, which --gpu asks for.")
    return hello[SUBJECT]["gpu"], {name: said["versions"] for name, said in hello.items()}


def run(suite: Suite, arguments: list[str] | None = None) -> int:
    """Measure what the arguments ask for; the exit status."""
    options = parse_options(suite, arguments)
    place = suite.name
    if options.folder is not None:
        place = str(options.folder.resolve())
        suite = replace(suite, folder=folder_at(place))
    titles = chosen(suite.folder, options.only)
    if options.list:
        print(listing(suite.folder, titles))
        return 0
    if options.show is not None:
        show(suite, options.show, options.gpu)
        return 0
    kind = suite.row(options.gpu)
    pythons = {SUBJECT: sys.executable}
    if kind.yardstick == BY_HAND:
        pythons[BY_HAND] = sys.executable
    if not options.no_peers:
        pythons[PEER] = options.peer_python
    begin, busy = time.monotonic(), load()
    limits = Limits(options.first_limit, begin + options.budget,
                    QUICK_ROUNDS if options.quick else ROUNDS, options.profiles)  # fmt: skip
    if options.profiles is not None:
        options.profiles.mkdir(parents=True, exist_ok=True)
    rows: list[ProgramRow] = []
    width = max(map(len, titles), default=0)
    with started(options.gpu, pythons, place) as workers:
        gpu, versions = start(workers, options)
        path = results_file(suite.name, options, gpu)
        beside = earlier_rows(path) if path is not None else []
        print(f"{gpu or 'CPU'}, {options.size} sizes, {versions}")
        if busy > 0.5 and not options.gpu:
            print(f"The machine is busy (load {busy:.1f}): the figures will be too high.")
        suite.print_header(width)
        for title in titles:
            if time.monotonic() >= limits.over:
                print(f"{title:<{width}} not run: {options.budget:.0f} s are over")
                continue
            row = measure(title, options.size, "gpu" if gpu else "cpu", workers, limits,
                          suite.folder, kind)  # fmt: skip
            rows.append(row)
            suite.print_row(row, width)
            if path is not None:
                write(path, rows, gpu, versions, busy, beside, kind.yardstick)
    print()
    suite.print_summary(rows)
    print(f"{len(rows)} of {len(titles)} programs in {time.monotonic() - begin:.0f} s"
          + (f"; {path}" if path is not None else ""))  # fmt: skip
    wanted = ("pass",) if kind.yardstick in pythons else ("pass", "no peer")
    right = len(rows) == len(titles) and all(r.verdict in wanted for r in rows)
    return 0 if right and suite.passes(rows) else 1
