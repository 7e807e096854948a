"""The processes that measure a program of the suite, a library each, and what they make of it."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import queue
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import programs
from bounds import SUBJECT
from program_folder import Folder
from program_rows import BY_HAND, PEER, ProgramRow

WORKER = Path(__file__).parent / "program_worker.py"
ROUND_SECONDS, ROUNDS, QUICK_ROUNDS, LEAST_ROUNDS = 0.02, 9, 3, 2
PROGRAM_SECONDS = 8.0  # of all rounds of a program; slow ones make fewer
START_LIMIT = 120.0
MOST_BEHIND = 1.25
"""Times the other library's error that a result may have, where both are far from float32."""


class WorkerError(Exception):
    """A library that could not do what it was asked; the message says why."""


class WorkerLost(WorkerError):
    """A process that ended, or that was ended because it took too long."""


class Worker:
    """A process with one of the libraries, started when it is asked for something."""

    def __init__(self, name: str, python: str, folder: Path, gpu: bool,
                 suite: str = "programs") -> None:  # fmt: skip
        self.name, self.folder = name, folder
        self.command = [python, str(WORKER), name, str(folder), suite]
        self.environment = os.environ | {
            "XDG_CACHE_HOME": str(folder / "cache"),  # nothing is compiled before the run
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        self.environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        if name == BY_HAND:
            # threads that spin where another process has a core lose 8 ms a time; those that sleep
            # wake up on one core, and share it for milliseconds, unless each has its own
            self.environment |= {"OMP_WAIT_POLICY": "passive", "OMP_PROC_BIND": "true"}
        if not gpu:
            self.environment |= {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
        self.process: subprocess.Popen[str] | None = None
        self.answers: queue.Queue[str | None] = queue.Queue()

    def start(self) -> dict[str, Any]:
        """Start the process; returns its device and versions."""
        self.answers = queue.Queue()
        with (self.folder / f"{self.name}.log").open("a") as log:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, text=True, start_new_session=True,
            )  # fmt: skip
        threading.Thread(target=self.read, args=(self.process, self.answers), daemon=True).start()
        return self.answer(START_LIMIT)

    @staticmethod
    def read(process: subprocess.Popen[str], answers: queue.Queue[str | None]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                answers.put(line)
        answers.put(None)

    def ask(self, command: str, limit: float, **options: Any) -> dict[str, Any]:
        """The answer to a command; raises WorkerError where it says an error or none comes."""
        if self.process is None:
            self.start()
        assert self.process is not None and self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the missing answer says so
            self.process.stdin.write(json.dumps([command, options]) + "\n")
            self.process.stdin.flush()
        return self.answer(limit)

    def answer(self, limit: float) -> dict[str, Any]:
        """The next answer of the process, within `limit` seconds."""
        try:
            line = self.answers.get(timeout=limit)
        except queue.Empty:
            self.stop()
            raise WorkerLost(f"no result within {limit:.0f} s") from None
        if line is None:
            assert self.process is not None
            status = self.process.wait()
            self.stop()
            raise WorkerLost(f"the process ended with status {status}: {self.last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def last_words(self) -> str:
        """The last line that the process wrote to its error stream."""
        lines = (self.folder / f"{self.name}.log").read_text(errors="replace").split("\n")
        return next((line.strip()[:160] for line in reversed(lines) if line.strip()), "no word")

    def stop(self) -> None:
        """End the process and what it started, which is a session of its own."""
        process, self.process = self.process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


@dataclass
class Limits:
    """How long a program may take, and how many rounds it is measured in."""

    first: float
    """Seconds of the first call of a library."""
    over: float
    """When the budget of the whole run is used up, by time.monotonic()."""
    rounds: int = ROUNDS
    profiles: Path | None = None
    """The folder that gets the times of the steps of each program, a file each."""

    def now(self, seconds: float) -> float:
        """`seconds`, or what is left of the run."""
        return max(5.0, min(seconds, self.over - time.monotonic()))


def measure(title: str, size: str, device: str, workers: Mapping[str, Worker], limits: Limits,
            suite: Folder = programs.FOLDER,
            kind: type[ProgramRow] = ProgramRow) -> ProgramRow:  # fmt: skip
    """The row of a program: first calls, comparison of results, alternating rounds."""
    row = kind(title, suite.load(title).FIELD, size)
    row.date = datetime.date.today().isoformat()
    results: dict[str, list[np.ndarray]] = {}
    plans: dict[str, dict[str, Any]] = {}
    for name, worker in workers.items():
        try:
            answer = worker.ask("first", limits.now(limits.first), program=title, size=size)
            row.first[name] = answer["seconds"]
            row.warnings += [f"{name}: {said}" for said in answer["warnings"]]
            with np.load(answer["results"]) as file:
                results[name] = [file[key] for key in file.files]
            limit = limits.now(limits.first)
            plans[name] = worker.ask("calibrate", limit, seconds=ROUND_SECONDS)
        except WorkerError as error:
            row.errors[name] = str(error)
            worker.stop()  # a fault of the device would last as long as the process
    others = [name for name in results if name != SUBJECT] if SUBJECT in results else []
    for name in others:
        error, reason = compare(results[SUBJECT], results[name], name)
        allowed = suite.tolerance(title, device)
        if not reason and not error <= allowed:
            reason = f"results differ by {error:.1e} in norm, where {allowed:.0e} is allowed"
            exact = None if device == "cpu" else _exact(workers[name], title, size, limits)
            if exact is not None:
                error, reason, said = judged(results[SUBJECT], results[name], exact, allowed, name)
                row.warnings.append(said)
        if reason:
            beside = f" (beside {name})" if len(others) > 1 else ""
            row.errors[SUBJECT] = f"wrong: {reason}{beside}"
        row.error = error if np.isnan(row.error) else max(row.error, error)
    if not others and not all(np.isfinite(x).all() for x in results.get(SUBJECT, [])):
        row.errors[SUBJECT] = "wrong: a result is not finite"
    samples = rounds(row, plans, workers, limits)
    row.seconds = {name: statistics.median(times) for name, times in samples.items() if times}
    row.fastest = {name: min(times) for name, times in samples.items() if times}
    if limits.profiles is not None and workers[SUBJECT].process is not None:
        path = limits.profiles / f"{title}.txt"
        try:
            workers[SUBJECT].ask("profile", limits.now(limits.first), path=str(path))
        except WorkerError as error:
            path.write_text(f"{error}\n", encoding="utf-8")
    for name in workers:
        if workers[name].process is not None:
            with contextlib.suppress(WorkerError):
                workers[name].ask("drop", START_LIMIT)
    return row


def judged(ours: list[np.ndarray], theirs: list[np.ndarray], exact: list[np.ndarray],
           allowed: float, peer: str = PEER) -> tuple[float, str, str]:  # fmt: skip
    """How far our results are from those without TensorFloat-32, why that is wrong, and both."""
    error, beside = (compare(found, exact, peer)[0] for found in (ours, theirs))
    said = f"{error:.1e} from products of float32, {peer} {beside:.1e}"
    right = error <= max(allowed, MOST_BEHIND * beside)
    return error, "" if right else f"results are {said}", said


def _exact(worker: Worker, title: str, size: str, limits: Limits) -> list[np.ndarray] | None:
    """The results of a program without TensorFloat-32, which both libraries have on GPUs."""
    try:
        answer = worker.ask("exact", limits.now(limits.first), program=title, size=size)
    except WorkerError:
        return None
    with np.load(answer["results"]) as file:
        return [file[key] for key in file.files]


def rounds(row: ProgramRow, plans: dict[str, dict[str, Any]], workers: Mapping[str, Worker],
           limits: Limits) -> dict[str, list[float]]:  # fmt: skip
    """Seconds of a call by library, in rounds that take turns in an order that rotates."""
    samples: dict[str, list[float]] = {name: [] for name in plans}
    names, end = list(plans), time.monotonic() + limits.now(PROGRAM_SECONDS)
    for index in range(limits.rounds):
        if index >= LEAST_ROUNDS and time.monotonic() > end:
            break
        shift = index % len(names) if names else 0
        for name in names[shift:] + names[:shift]:
            plan = plans[name]
            limit = limits.now(30 + 3 * plan["calls"] * plan["seconds"])
            try:
                answer = workers[name].ask("round", limit, calls=plan["calls"],
                                           estimate=plan["seconds"])  # fmt: skip
            except WorkerError as error:
                row.errors[name] = str(error)
                workers[name].stop()
                names = [other for other in names if other != name]
            else:
                samples[name].append(answer["seconds"])
    return samples


def compare(actual: list[np.ndarray], expected: list[np.ndarray],
            peer: str = PEER) -> tuple[float, str]:  # fmt: skip
    """The largest ||a - b|| / ||b|| of the results, and how they differ otherwise."""
    if len(actual) != len(expected):
        return float("nan"), f"{len(actual)} results instead of {len(expected)}"
    worst = 0.0
    for index, (a, b) in enumerate(zip(actual, expected)):
        if a.shape != b.shape:
            return float("nan"), f"result {index} has shape {a.shape} instead of {b.shape}"
        wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
        a, b = a.astype(wide).ravel(), b.astype(wide).ravel()
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            who = SUBJECT if np.isfinite(b).all() else peer
            return float("nan"), f"result {index} of {who} is not finite"
        norm = float(np.linalg.norm(b))
        worst = max(worst, float(np.linalg.norm(a - b)) / (norm if norm > 0 else 1.0))
    return worst, ""


@contextlib.contextmanager
def started(gpu: bool, pythons: Mapping[str, str], suite: str = "programs") -> Any:
    """Workers by library in a folder of their own, which are ended and removed with it."""
    with tempfile.TemporaryDirectory(prefix=f"{suite}-") as folder:
        workers = {name: Worker(name, python, Path(folder), gpu, suite)
                   for name, python in pythons.items()}  # fmt: skip
        try:
            yield workers
        finally:
            for worker in workers.values():
                worker.stop()
