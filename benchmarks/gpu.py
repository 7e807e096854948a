"""functrans on one GPU beside JAX and PyTorch, and the figures that an H100 has to reach.

    python benchmarks/gpu.py [--only WORD] [--quick] [--no-peers] [--compile] [--out FILE]
                             [--budget SECONDS] [--row-limit SECONDS] [--dry] [--more]

Needs an installed functrans, Triton and PyTorch: torch draws the numbers, which the libraries
share, and computes the results in float64 that every row is compared with before it is timed. All
libraries are measured in the same interleaved rounds (gpu_workloads/timing.py); products of
float32 may use TF32 in all. --compile adds torch.compile (20 s a row). --quick makes short rounds
and writes no file, unless it gets one. --dry runs small sizes on the CPU, for the script itself.
--more measures the figures of docs/internals/gpu.md that are not in the main table instead.

Rows are measured in a process of their own, which a new one replaces where a row takes too long or
ends it: such a row is called slow. When the budget is used up, the rows that are left are left
out. The file, benchmarks/results/gpu-h100.json, is written after each row. The exit status is 1 if
a bound is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import importlib
import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bounds import SUBJECT, Bound, Peer
from cpu_workloads.entries import Peers
from gpu_workloads import (
    compiling,
    details,
    libraries,
    memory,
    models,
    products,
    small,
    timing,
)
from gpu_workloads.entries import Workload, workloads_of
from harness import (
    RESULTS,
    Row,
    first_line,
    gpu_slug,
    print_header,
    print_row,
    processor,
    row_record,
    summarise,
    versions,
)

import functrans as ft
from functrans.core.errors import BackendError

MODULES = (small, memory, products, models, libraries)
PACKAGES = ("functrans", "triton", "numpy", "jax", "jaxlib", "torch")
REACH = 13
MARK = "\x1e"  # begins the lines of a worker that are messages
START_SECONDS = 120.0
BUDGET = 470.0
EXIT_LOST = 3
Send = Callable[[dict[str, Any]], None]


def workloads() -> list[Workload]:
    """All rows that are timed in the worker."""
    return [item for module in (*MODULES, details) for item in workloads_of(module)]


def titles(options: argparse.Namespace) -> list[str]:
    """The rows that were asked for, in their order."""
    words = options.only.split("|")
    more = {*compiling.MORE, *(item.title for item in workloads_of(details))}
    return [title for title in order()
            if (title in more) == options.more and any(word in title for word in words)]


def order() -> list[str]:
    """All rows; those that may be slow come last, when the budget may be used up."""
    found = workloads()
    first, last = ([x.title for x in found if x.host == late] for late in (False, True))
    return [*first, compiling.TITLE, *compiling.MORE, *last]


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only rows whose title contains this, or|this")
    parser.add_argument("--quick", action="store_true", help="short rounds")
    parser.add_argument("--no-peers", action="store_true", help="functrans alone")
    parser.add_argument("--compile", action="store_true", help="torch.compile too")
    parser.add_argument("--out", type=Path, help="the results file")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds of the whole run")
    parser.add_argument("--row-limit", type=float, default=math.inf,
                        help="at most so many seconds for functrans' first result")  # fmt: skip
    parser.add_argument("--dry", action="store_true", help="small sizes on the CPU")
    parser.add_argument("--more", action="store_true", help="the rows of details.py")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


# ------------------------------------------------------------------ the process that measures


def work(options: argparse.Namespace, send: Send) -> int:
    """Measure the rows that the supervisor asks for."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # before JAX is imported
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError:
        send({"fatal": "PyTorch is not installed: it makes the data and the float64 results."})
        return 1
    device = "cpu" if options.dry else "cuda"
    if not options.dry and ft.config.current_device().platform != "gpu":
        send({"fatal": f"functrans has no GPU here: {why_no_gpu()}"})
        return 1
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    peers = Peers() if options.no_peers else Peers.installed(options.compile)
    send({"device": describe(torch, options.dry)})
    by_title = {item.title: item for item in workloads()}
    for title in options.worker:
        try:
            if title in (compiling.TITLE, *compiling.MORE):
                row = compiling.row(title, peers, options.quick or options.dry, send)
            else:
                item = by_title[title]
                item = dataclasses.replace(item, limit=min(item.limit, options.row_limit))
                row = timing.measure(item, torch, peers, device, options.dry,
                                     options.quick, send)  # fmt: skip
        except timing.LostDevice as lost:
            send({"row": dataclasses.asdict(lost.row)})
            return EXIT_LOST
        except Exception as error:  # a row that cannot even be made must not end the table
            row = Row(title, {}, bound=math.nan, errors={SUBJECT: first_line(error)})
            if not timing.alive(torch):
                send({"row": dataclasses.asdict(row)})
                return EXIT_LOST
        send({"row": dataclasses.asdict(row)})
    return 0


def why_no_gpu() -> str:
    """What keeps functrans from using a GPU."""
    try:
        found = ft.devices("gpu")
    except BackendError as error:
        return first_line(error)
    return f"{found}, but Triton is not installed"


def describe(torch: Any, dry: bool) -> dict[str, Any]:
    """The device, as it stands in the file."""
    host = {"processor": processor(), "cores": os.cpu_count()}
    if dry:
        return {"name": "CPU (dry run)", **host}
    found = torch.cuda.get_device_properties(0)
    return {"name": found.name, "memory": found.total_memory, "cuda": torch.version.cuda, **host}


# ------------------------------------------------------------------ the process that supervises


class Worker:
    """A process that measures rows, and its messages."""

    def __init__(self, options: argparse.Namespace, rows: list[str]) -> None:
        flags = [f"--{name.replace('_', '-')}" for name in ("quick", "no_peers", "compile", "dry")
                 if getattr(options, name)]  # fmt: skip
        if math.isfinite(options.row_limit):
            flags.append(f"--row-limit={options.row_limit}")
        self.process = subprocess.Popen(
            [sys.executable, sys.argv[0], *flags, "--worker", json.dumps(rows)],
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self.messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(MARK):
                self.messages.put(json.loads(line[1:]))
            else:
                print(line, end="", flush=True)
        self.messages.put(None)

    def next(self, end: float) -> dict[str, Any] | None:
        """The next message, None at its end; raises queue.Empty at the time `end`."""
        return self.messages.get(timeout=max(0.0, end - time.monotonic()))

    def stop(self) -> None:
        """End it and what it started, which is a session of its own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def bound_of(title: str) -> Bound:
    found = {item.title: item.bound for item in workloads()}
    return found.get(title, Peer("jax"))


def unfinished(title: str, known: dict[str, Any], reason: str) -> Row:
    """The row of a worker that was ended, from what it had said."""
    samples = {name: [seconds] for name, seconds in known.get("estimates", {}).items()}
    row = summarise(title, samples, bound_of(title), unit=known.get("unit", ""),
                    amount=known.get("amount", 0.0), errors=known.get("errors"))  # fmt: skip
    row.errors[SUBJECT] = reason
    if row.bound == 0:  # the work was not known yet
        row.bound = math.nan
    return row


def reason_of(known: dict[str, Any], what: str, own: str) -> str:
    """Why there is no figure; `own` if functrans was at work."""
    column = known.get("column", "the start")
    return f"{own}: {what}" if column == SUBJECT else f"not measured: {column}: {what}"


class Fatal(Exception):
    """No row can be measured."""


def measured(
    options: argparse.Namespace, rows: list[str], device: dict[str, Any]
) -> Iterator[Row]:
    """The rows as they come, of as many workers as it takes, until the budget ends."""
    over = time.monotonic() + options.budget
    left = list(rows)
    while left and time.monotonic() < over:
        worker = Worker(options, left)
        known: dict[str, Any] = {}
        limit, end = START_SECONDS, time.monotonic() + START_SECONDS
        try:
            while left:
                try:
                    message = worker.next(min(end, over))
                except queue.Empty:
                    if time.monotonic() >= over:
                        return
                    reason = reason_of(known, f"no result within {limit:.0f} s", "slow")
                    yield unfinished(left.pop(0), known, reason)
                    break
                if message is None:
                    status = worker.process.wait()
                    if status != EXIT_LOST or known:  # it did not say which row ended it
                        reason = reason_of(known, f"ended with status {status}", "the process")
                        yield unfinished(left.pop(0), known, reason)
                    break
                if "fatal" in message:
                    raise Fatal(message["fatal"])
                if "device" in message:
                    device.update(message["device"])
                elif "row" in message:
                    left.pop(0)
                    known = {}
                    yield Row(**message["row"])
                    end = time.monotonic() + START_SECONDS
                else:
                    known |= message
                    limit = message["limit"]
                    end = time.monotonic() + limit
        finally:
            worker.stop()


def results_path(options: argparse.Namespace, device: dict[str, Any]) -> Path | None:
    """Where the results of this device stand; None where none are kept."""
    if options.out is not None:
        return options.out
    if options.quick or options.dry or options.no_peers or "name" not in device:
        return None
    return RESULTS / f"gpu-{gpu_slug(device['name'])}.json"


def earlier(path: Path, device: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows in the file, if they are of this device."""
    if not path.exists():
        return []
    record = json.loads(path.read_text())
    return record["rows"] if record["device"].get("name") == device.get("name") else []


def write(path: Path, rows: list[Row], device: dict[str, Any], beside: list[dict]) -> None:
    """The file: these rows, and those of earlier runs that are not among them."""
    found = {row["title"]: row for row in beside}
    for row in rows:
        note = {"note": row.note} if row.note else {}
        found[row.title] = row_record(row) | note
    record = {
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "device": device,
        "versions": versions(PACKAGES),
        "unit": "seconds a call, median of rounds of calls back to back",
        "rows": [found[title] for title in order() if title in found],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n")


def main() -> int:
    options = parse_options()
    if options.worker is not None:
        return work(options, lambda message: print(MARK + json.dumps(message), flush=True))
    chosen = titles(options)
    width = max(map(len, chosen), default=0)
    begin = time.monotonic()
    rows: list[Row] = []
    device: dict[str, Any] = {}
    path, beside = None, []
    try:
        for row in measured(options, chosen, device):
            if not rows:
                print(f"{device.get('name', '?')}, {versions(PACKAGES)}")
                if options.dry:
                    print("Sizes are small: the figures and verdicts mean nothing.")
                print_header(width, REACH)
                path = results_path(options, device)
                beside = earlier(path, device) if path is not None else []
            rows.append(row)
            print_row(row, width, REACH)
            if path is not None:
                write(path, rows, device, beside)
    except Fatal as fatal:
        print(fatal)
        return 1
    missed = sum(not row.passed for row in rows)
    done = {row.title for row in rows}
    for title in chosen:
        if title not in done:
            print(f"{title:<{width}} left out: {options.budget:.0f} s are over")
    print(f"\n{len(rows) - missed} of {len(rows)} rows pass, in {time.monotonic() - begin:.0f} s"
          + (f"; {path}" if path is not None else ""))  # fmt: skip
    if options.dry:
        return 1 if any(row.errors for row in rows) else 0
    return 1 if missed or len(done) < len(chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
