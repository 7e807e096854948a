"""functrans beside JAX on whole research programs: first calls, steady times and results.

    python benchmarks/programs.py [--gpu] [--size tiny|small|large] [--only WORD] [--budget SECONDS]
                                  [--no-peers] [--peer-python PATH] [--out FILE] [--quick]
                                  [--list] [--show FILE] [--profiles FOLDER]

The programs are in benchmarks/programs/, a file each, one source for both libraries. Each library
works in a process of its own (program_worker.py), so that neither threads nor memory of one are in
the way of the other; rounds of calls alternate between the two. The first call traces, compiles and
runs; no earlier run left compiled code. Results are compared in norm.

A program that functrans cannot run in its time, that ends the process or gives another result is a
FAIL. When the budget is used up, the programs that are left are not run, and the table says so. The
file, benchmarks/results/programs-<device>.json, is written after each row; --quick and --no-peers
write none, unless they get one. It keeps the rows of programs that were not asked for, so that runs
with other words after --only fill it; --show prints such a file. The exit status is 1 if a program
failed, takes more than 1.05 of JAX's time, or was not run.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import programs
from bounds import SUBJECT
from harness import load, results_path
from program_rows import (
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


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true", help="on a GPU, which has to be there")
    parser.add_argument("--size", choices=("tiny", "small", "large"),
                        help="small by default, large on a GPU")  # fmt: skip
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


def chosen(only: str) -> list[str]:
    """The programs that were asked for."""
    return [name for name in programs.names() if any(word in name for word in only.split("|"))]


def listing(titles: list[str]) -> str:
    """A line for each program: its field, and what it computes."""
    width = max(map(len, titles), default=0)
    return "\n".join(f"{title:<{width}}  {programs.load(title).FIELD}: "
                     f"{(programs.load(title).__doc__ or '').splitlines()[0]}" for title in titles)


def results_file(options: argparse.Namespace, gpu: str) -> Path | None:
    """Where the results go; None if nowhere."""
    if options.out is not None:
        return options.out
    usual = options.size == ("large" if options.gpu else "small")
    if options.quick or options.no_peers or not usual:
        return None
    return results_path("programs", gpu)


def show(path: Path) -> None:
    """The table of earlier runs."""
    rows = [from_record(record) for record in earlier_rows(path)]
    width = max((len(row.title) for row in rows), default=0)
    print_header(width)
    for row in rows:
        print_row(row, width)
    print()
    print_summary(rows)


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


def main(arguments: list[str] | None = None) -> int:
    options = parse_options(arguments)
    titles = chosen(options.only)
    if options.list:
        print(listing(titles))
        return 0
    if options.show is not None:
        show(options.show)
        return 0
    pythons = {SUBJECT: sys.executable} | ({} if options.no_peers else {PEER: options.peer_python})
    begin, busy = time.monotonic(), load()
    limits = Limits(options.first_limit, begin + options.budget,
                    QUICK_ROUNDS if options.quick else ROUNDS, options.profiles)  # fmt: skip
    if options.profiles is not None:
        options.profiles.mkdir(parents=True, exist_ok=True)
    rows: list[ProgramRow] = []
    width = max(map(len, titles), default=0)
    with started(options.gpu, pythons) as workers:
        gpu, versions = start(workers, options)
        path = results_file(options, gpu)
        beside = earlier_rows(path) if path is not None else []
        print(f"{gpu or 'CPU'}, {options.size} sizes, {versions}")
        if busy > 0.5 and not options.gpu:
            print(f"The machine is busy (load {busy:.1f}): the figures will be too high.")
        print_header(width)
        for title in titles:
            if time.monotonic() >= limits.over:
                print(f"{title:<{width}} not run: {options.budget:.0f} s are over")
                continue
            row = measure(title, options.size, "gpu" if gpu else "cpu", workers, limits)
            rows.append(row)
            print_row(row, width)
            if path is not None:
                write(path, rows, gpu, versions, busy, beside)
    print()
    print_summary(rows)
    print(f"{len(rows)} of {len(titles)} programs in {time.monotonic() - begin:.0f} s"
          + (f"; {path}" if path is not None else ""))  # fmt: skip
    wanted = ("pass",) if PEER in pythons else ("pass", "no peer")
    return 0 if len(rows) == len(titles) and all(r.verdict in wanted for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
