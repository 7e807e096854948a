"""functrans on 1, 2, 4, 8, 16 threads: how much faster whole programs become.

    python benchmarks/scaling.py [--threads 1,2,4] [--size small,server] [--only WORD]
                                 [--folder FOLDER] [--budget SECONDS] [--rounds N] [--out FILE]

The programs are twenty of benchmarks/programs/, in sizes of their own (tiny, small, large) or in
those of a server (scaling_sizes.py): calls of 1 to 10 ms on one core, and of 20 to 300. Each works
in a process of its own, where numbers of threads take turns in an order that rotates: what they
compute lies in the same memory, and a slow moment of the machine falls on all alike. The figure is
the median of rounds. Before them a program is called until the runtime knows what its loops take,
with each number of threads anew. Numbers of threads beyond the processors that this process may
use are left out. The efficiency is the speed-up over one thread by the number of threads. Results
have to be the same bits on any number of threads, at the first call and at the last.
`--folder thread_programs` measures ten programs that threads were not chosen with.

`beside` is what two processes compute together, each on all threads, over what one computes alone:
below 1 they are in each other's way. The first line is the machine's own: how much more processes
that share nothing count together than one does alone. On a virtual machine whose processors have
neighbours it is less than their number, and no program can scale beyond it.

`noise` is chance within a process: all threads are measured as two numbers of threads, and this is
the larger figure over the smaller one. Smaller differences of a row say nothing.

A row fails where a program raises, where its bits depend on the number of threads, where more
threads take more than 1.05 of the time of fewer, or where two processes together compute less than
0.9 of what one does. When the budget is used up, the programs that are
left are not run, and the table says so. The exit status is 1 if a row failed or was not run.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from bounds import SUBJECT, duration
from harness import load, processor
from program_folder import folder_at
from program_supervisor import Worker, WorkerError
from scaling_sizes import SERVER

THREADS = (1, 2, 4, 8, 16)
SLACK = 1.05
TOGETHER = 0.9  # what two processes compute at least, over one alone
COUNTING = """
import time
end, counted = time.perf_counter() + 0.5, 0
while time.perf_counter() < end:
    for _ in range(10000):
        pass
    counted += 1
print(counted)
"""
FIRST_LIMIT, ROUND_SECONDS, BESIDE_SECONDS, BESIDE_ROUNDS = 120.0, 0.015, 0.05, 3
WARM_CALLS, WARM_SECONDS = 64, 0.5  # whichever comes first
SLOW_SECONDS = 0.05  # of a call, of which half as many rounds are run
PROGRAMS = (
    "bundle_adjustment", "contrastive_learning", "denoising_diffusion", "electronic_structure",
    "finite_elements", "gaussian_mixture", "gaussian_process", "graph_attention",
    "kalman_smoother", "language_model", "long_convolution", "molecular_dynamics",
    "particle_filter", "radiance_field", "reaction_diffusion", "recurrent_network",
    "residual_network", "segmentation_unet", "state_space", "vision_transformer",
)  # fmt: skip


@dataclass
class ScalingRow:
    """A program: median seconds of a call by number of threads, and what two processes do."""

    title: str
    size: str
    seconds: dict[int, float] = field(default_factory=dict)
    beside: float = math.nan
    noise: float = 1.0
    """The larger time over the smaller one of two that are both of all threads."""
    differs: list[int] = field(default_factory=list)
    """Numbers of threads whose results are not the bits of the first."""
    error: str = ""

    def efficiency(self, threads: int) -> float:
        """The speed-up over the fewest threads by how many times as many these are."""
        fewest = min(self.seconds)
        return self.seconds[fewest] * fewest / (self.seconds[threads] * threads)

    @property
    def slower(self) -> list[int]:
        """Numbers of threads that take more time than fewer do."""
        return [t for t, s in self.seconds.items()
                if any(s > SLACK * less for u, less in self.seconds.items() if u < t)]  # fmt: skip

    @property
    def verdict(self) -> str:
        """pass, or FAIL with the reason."""
        if self.error:
            return f"FAIL {self.error}"
        if self.differs:
            return f"FAIL other bits on {_listed(self.differs)} threads"
        if self.slower:
            return f"FAIL slower on {_listed(self.slower)} threads"
        return f"FAIL {self.beside:.2f} side by side" if self.beside < TOGETHER else "pass"

    def record(self) -> dict[str, Any]:
        """The row in the file."""
        efficiencies = {t: self.efficiency(t) for t in self.seconds}
        beside = None if math.isnan(self.beside) else self.beside
        return asdict(self) | {
            "efficiency": efficiencies, "beside": beside, "verdict": self.verdict}  # fmt: skip


@dataclass
class Case:
    """A program in a size, and the two processes that have it."""

    title: str
    size: str
    one: Worker
    other: Worker
    first: list[np.ndarray] = field(default_factory=list)
    error: str = ""

    def prepare(self, sizes: str | Mapping[str, Any]) -> None:
        """Compile and run it in both processes, in one after the other: that loads what it made."""
        try:
            self.one.ask("threads", FIRST_LIMIT, count=1)
            self.first = results_of(self.one.ask("first", FIRST_LIMIT, program=self.title,
                                                 size=sizes))  # fmt: skip
            self.other.ask("first", FIRST_LIMIT, program=self.title, size=sizes)
        except WorkerError as error:
            self.error = str(error)

    def stop(self) -> None:
        """End the processes."""
        self.one.stop()
        self.other.stop()


def measure(case: Case, counts: Sequence[int], rounds: int) -> ScalingRow:
    """The row of a program."""
    row = ScalingRow(case.title, case.size, error=case.error)
    if row.error:
        return row
    try:
        settings = [*counts, max(counts)]
        plans = [warmed(case.one, t) for t in settings]
        samples: list[list[float]] = [[] for _ in settings]
        order = list(range(len(settings)))
        slow = max(plan["seconds"] for plan in plans) > SLOW_SECONDS
        for index in range((rounds + 1) // 2 if slow else rounds):
            shift = index % len(order)
            for k in order[shift:] + order[:shift]:
                samples[k].append(one_round(case.one, plans[k], settings[k]))
        *medians, twin = map(statistics.median, samples)
        row.seconds = dict(zip(counts, medians, strict=True))
        row.noise = max(twin, medians[-1]) / min(twin, medians[-1])
        for t in counts:
            case.one.ask("threads", FIRST_LIMIT, count=t)
            if not same_bits(case.first, results_of(case.one.ask("again", FIRST_LIMIT))):
                row.differs.append(t)
        warmed(case.other, max(counts))
        row.beside = beside(case, max(counts), row.seconds[max(counts)])
    except WorkerError as error:
        row.error = str(error)
    return row


def warmed(worker: Worker, threads: int) -> dict[str, Any]:
    """How many calls a round has on so many threads, when the runtime knows what loops take."""
    worker.ask("threads", FIRST_LIMIT, count=threads)
    if threads > 1:
        worker.ask("warm", FIRST_LIMIT, calls=WARM_CALLS, seconds=WARM_SECONDS)
    return worker.ask("calibrate", FIRST_LIMIT, seconds=ROUND_SECONDS)


def results_of(answer: Mapping[str, Any]) -> list[np.ndarray]:
    """The arrays that a process has written."""
    with np.load(answer["results"]) as file:
        return [file[key] for key in file.files]


def prepared(cases: Sequence[Case], sizes: Callable[[Case], str | Mapping[str, Any]]) -> None:
    """Have all programs compiled, in as many processes at a time as there are processors."""
    left = list(reversed(cases))

    def compiles() -> float:
        while left:
            case = left.pop()
            case.prepare(sizes(case))
        return math.nan

    at_once([compiles] * min(len(cases), len(os.sched_getaffinity(0))))


def same_bits(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> bool:
    """Whether two lists of arrays are the same, NaN for NaN and zero for zero of one sign."""
    return len(a) == len(b) and all(
        x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()
        for x, y in zip(a, b, strict=True))  # fmt: skip


def one_round(worker: Worker, plan: Mapping[str, Any], threads: int) -> float:
    """Seconds of a call in a round on so many threads."""
    worker.ask("threads", FIRST_LIMIT, count=threads)
    return timed(worker, plan["calls"], plan["seconds"])


def timed(worker: Worker, calls: int, estimate: float) -> float:
    """Seconds of a call in a round of so many."""
    limit = 30 + 3 * calls * estimate
    answer = worker.ask("round", limit, calls=calls, estimate=estimate, rest=0.001)
    return float(answer["seconds"])


def beside(case: Case, threads: int, alone: float) -> float:
    """Calls in a second of two processes at once over those of one that is alone."""
    for worker in (case.one, case.other):
        worker.ask("threads", FIRST_LIMIT, count=threads)
    calls = max(1, math.ceil(BESIDE_SECONDS / (2 * alone)))
    together = []
    for _ in range(BESIDE_ROUNDS):
        pair = at_once([lambda w=w: timed(w, calls, alone) for w in (case.one, case.other)])
        together.append(sum(alone / seconds for seconds in pair))
    return statistics.median(together)


def at_once(calls: Sequence[Callable[[], float]]) -> list[float]:
    """The results of calls that wait for processes, in threads of their own."""
    results: list[float | WorkerError] = [math.nan] * len(calls)

    def run(index: int) -> None:
        try:
            results[index] = calls[index]()
        except WorkerError as error:
            results[index] = error

    running = [threading.Thread(target=run, args=(k,)) for k in range(len(calls))]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    seconds = []
    for result in results:
        if isinstance(result, WorkerError):
            raise result
        seconds.append(result)
    return seconds


def counted() -> float:
    """How far a process of its own counts in half a second."""
    done = subprocess.run([sys.executable, "-c", COUNTING], capture_output=True, text=True,
                          check=True)  # fmt: skip
    return float(done.stdout)


def machine(counts: Sequence[int]) -> dict[int, float]:
    """What so many processes count together over what one does alone."""
    alone = statistics.median(counted() for _ in range(3))
    return {n: statistics.median(sum(at_once([counted] * n)) for _ in range(3)) / alone
            for n in counts}  # fmt: skip


@contextlib.contextmanager
def started(names: Sequence[tuple[str, str]], suite: str) -> Iterator[list[Case]]:
    """Programs in sizes with two processes each, which start when they are asked; ended at last."""
    with tempfile.TemporaryDirectory(prefix="scaling-") as temporary:

        def worker(name: str) -> Worker:
            folder = Path(temporary) / name
            folder.mkdir()
            new = Worker(SUBJECT, sys.executable, folder, gpu=False, suite=suite)
            # what one compiles the others load
            new.environment["XDG_CACHE_HOME"] = f"{temporary}/cache"
            return new

        cases = [Case(title, size, worker(f"{title}-{size}"), worker(f"{title}-{size}-other"))
                 for title, size in names]  # fmt: skip
        try:
            yield cases
        finally:
            for case in cases:
                case.stop()


def titles_of(options: argparse.Namespace) -> list[str]:
    """The programs that are asked for; ends the process where there are none."""
    every = PROGRAMS if options.folder == "programs" else folder_at(options.folder).names()
    titles = [title for title in every if options.only in title]
    if not titles:
        raise SystemExit(f"--only {options.only}: no program has that in its name; they are "
                         f"{', '.join(every)}")  # fmt: skip
    return titles


def run(options: argparse.Namespace) -> int:
    """Measure, print and write the rows; the exit status."""
    cpus = len(os.sched_getaffinity(0))
    counts = sorted({t for t in options.threads if t <= cpus})
    if not counts:
        raise SystemExit(f"--threads {_listed(options.threads)}: this process may use {cpus} "
                         "processors; ask for one number of threads that is no larger")  # fmt: skip
    names = [(title, size) for size in options.size for title in titles_of(options)]
    over = time.monotonic() + options.budget
    result = {"date": datetime.datetime.now().isoformat(timespec="seconds"),
              "device": {"processor": processor(), "cores": cpus}, "load_before": load(),
              "unit": "seconds of a call by number of threads, median of alternating rounds",
              "threads": counts, "rows": [], "not_run": names}  # fmt: skip
    rows: list[ScalingRow] = []
    alone = machine(counts)
    result["machine"] = alone
    print("the machine: " + ", ".join(f"{gain:.2f} on {n}" for n, gain in alone.items()))
    print(header(counts))

    def sizes(case: Case) -> str | Mapping[str, Any]:
        at_server = case.size == "server" and options.folder == "programs"
        return SERVER[case.title] if at_server else case.size

    with started(names, options.folder) as cases:
        prepared(cases, sizes)
        for index, case in enumerate(cases):
            if time.monotonic() > over:
                print("not run, the budget is used up: "
                      + ", ".join(f"{t} ({s})" for t, s in names[index:]))  # fmt: skip
                break
            rows.append(measure(case, counts, options.rounds))
            case.stop()
            print(line(rows[-1], counts), flush=True)
            result |= {"rows": [row.record() for row in rows], "not_run": names[index + 1:],
                       "geometric_means": means_by_size(rows, counts)}  # fmt: skip
            if options.out is not None:
                options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for size, gains in means_by_size(rows, counts).items():
        print(f"speed-up over one thread, geometric mean, {size}: " + ", ".join(
            f"{speedup:.2f} on {t}" for t, speedup in gains.items()))  # fmt: skip
    return int(len(rows) < len(names) or any(row.verdict != "pass" for row in rows))


def means(rows: Sequence[ScalingRow], counts: Sequence[int]) -> dict[int, float]:
    """The geometric mean of the speed-ups over the fewest threads, of the rows without errors."""
    timed = [row.seconds for row in rows if row.seconds]
    return {t: statistics.geometric_mean(s[counts[0]] / s[t] for s in timed)
            for t in counts if timed}  # fmt: skip


def means_by_size(rows: Sequence[ScalingRow],
                  counts: Sequence[int]) -> dict[str, dict[int, float]]:  # fmt: skip
    """The means of the rows of each size."""
    sizes = dict.fromkeys(row.size for row in rows)
    return {size: means([row for row in rows if row.size == size], counts) for size in sizes}


def header(counts: Sequence[int]) -> str:
    """The first line of the table."""
    numbers = "".join(f"{t:>10} thr" for t in counts)
    return f"{'program':24}{'size':8}{numbers}  efficiency  beside   noise"


def line(row: ScalingRow, counts: Sequence[int]) -> str:
    """A row of the table."""
    if not row.seconds:
        return f"{row.title:24}{row.size:8}{row.verdict}"
    times = "".join(f"{duration(row.seconds[t]):>14}" for t in counts)
    return (f"{row.title:24}{row.size:8}{times}{row.efficiency(counts[-1]):>12.2f}"
            f"{row.beside:>8.2f}{row.noise:>8.2f}  {row.verdict}")


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _numbers(text: str) -> list[int]:
    numbers = [int(word) for word in text.split(",")]
    if min(numbers) < 1:
        raise ValueError("numbers of threads are at least 1")
    return numbers


def _sizes(text: str) -> list[str]:
    sizes = text.split(",")
    if not set(sizes) <= {"tiny", "small", "server", "large"}:
        raise ValueError("sizes are tiny, small, server and large")
    return sizes


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=_numbers, default=list(THREADS), help="1,2,4,8,16")
    parser.add_argument("--size", type=_sizes, default=["small", "server"],
                        help="of tiny, small, server, large; small,server unless given")
    parser.add_argument("--only", default="", help="only programs whose name contains this")
    parser.add_argument("--folder", default="programs", help="where they are; programs")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds of the whole run")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each program")
    parser.add_argument("--out", type=Path, help="the JSON file to write; without it none is")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(run(options()))
