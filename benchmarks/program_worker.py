"""One library at work on a suite of programs; `programs.py` and `lanes.py` start it.

    python benchmarks/program_worker.py LIBRARY FOLDER SUITE

SUITE is a folder of programs, its name or its path. LIBRARY may be "by hand": the texts that stand
in the programs. Reads a command a line, writes an answer a line, both JSON. Results of programs go
to a file in FOLDER. Whatever else writes to the standard output is sent to the error stream.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import by_hand
import numpy as np
from harness import first_line, versions
from program_folder import Folder, folder_at
from program_rows import BY_HAND

SUBMODULES = ("image", "lax", "nn", "numpy", "random", "tree", "scipy.linalg",
              "scipy.sparse.linalg", "scipy.special", "scipy.stats")  # fmt: skip
PACKAGES = {"functrans": ("functrans", "triton", "numpy"), "jax": ("jax", "jaxlib", "numpy"),
            BY_HAND: ("numpy", "cupy-cuda12x", "cupy-cuda13x")}  # fmt: skip
REST = 0.02  # slept before a round: the threads of the other library spin for some milliseconds
SLOW_SECONDS = 1.0  # calls that take longer are not warmed up before a round


class Bench:
    """A library, and the program that it has at hand."""

    def __init__(self, name: str, folder: Path, suite: Folder) -> None:
        self.name, self.folder, self.suite = name, folder, suite
        self.run: Callable[..., Any] | None = None
        self.arguments: tuple[Any, ...] = ()
        self.start()

    def start(self) -> None:
        """Import the library, and do what happens once in a process whatever the program is."""
        name = self.name
        self.lib: ModuleType = importlib.import_module(name)
        for submodule in SUBMODULES:
            importlib.import_module(f"{name}.{submodule}")
        lib = self.lib  # the context of the device, and imports
        lib.block_until_ready(lib.jit(lambda x: lib.numpy.tanh(x) + 1)(np.ones(8, np.float32)))

    def hello(self) -> dict[str, Any]:
        """What is measured: the device, and versions."""
        if self.name == "functrans":
            device = self.lib.config.current_device()
            gpu = device.device_kind if device.platform == "gpu" else ""
        else:
            device = self.lib.devices()[0]
            gpu = device.device_kind if device.platform in ("gpu", "cuda") else ""
        return {"gpu": gpu, "versions": versions(PACKAGES[self.name])}

    def first(self, program: str, size: str | dict[str, Any]) -> dict[str, Any]:
        """Trace, compile and run a program; its results are in a file."""
        self.drop()
        self.take(program, size)
        assert self.run is not None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", DeprecationWarning)
            start = time.perf_counter()
            results = self.run(*self.arguments)
            self.wait(results)
            seconds = time.perf_counter() - start
        path = self.folder / f"{self.name}.npz"
        np.savez(path, *self.arrays(results))
        said = [f"{w.category.__name__}: {' '.join(str(w.message).split())}" for w in caught]
        return {"seconds": seconds, "results": str(path), "warnings": list(dict.fromkeys(said))}

    def take(self, program: str, size: str | dict[str, Any]) -> None:
        """Have a program and its arguments at hand."""
        step, arguments = self.suite.make(program, self.lib, size)
        self.arguments = self.lib.block_until_ready(self.lib.device_put(arguments))
        self.run = self.lib.jit(step)

    def wait(self, results: Any) -> None:
        """Until they are there."""
        self.lib.block_until_ready(results)

    def arrays(self, results: Any) -> list[np.ndarray]:
        """The leaves of results."""
        return [plain(x) for x in self.lib.tree.leaves(results)]

    def calibrate(self, seconds: float) -> dict[str, Any]:
        """How many calls last `seconds`, and the seconds of one; warms up, too."""
        calls = 1
        taken = self.burst(1)
        while taken < seconds / 2 and calls < 2**16:
            calls *= 8 if taken < seconds / 16 else 2
            taken = self.burst(calls)
        return {"calls": max(1, math.ceil(calls * seconds / taken)), "seconds": taken / calls}

    def threads(self, count: int) -> dict[str, Any]:
        """Have programs use so many threads from now on (functrans alone)."""
        self.lib.config.threads(count=count)
        return {}

    def warm(self, calls: int, seconds: float) -> dict[str, Any]:
        """Call the program so many times, or for so many seconds."""
        end = time.perf_counter() + seconds
        for _ in range(calls):
            self.burst(1)
            if time.perf_counter() > end:
                break
        return {}

    def again(self) -> dict[str, Any]:
        """Run the program once more; its results are in a file."""
        assert self.run is not None
        path = self.folder / f"{self.name}-again.npz"
        np.savez(path, *self.arrays(self.run(*self.arguments)))
        return {"results": str(path)}

    def exact(self, program: str, size: str | dict[str, Any]) -> dict[str, Any]:
        """Run the program with all numbers and products in float32; its results are in a file."""
        step, _ = self.suite.make(program, InFloat32(self.lib), size)
        path = self.folder / f"{self.name}-exact.npz"
        with self.lib.default_matmul_precision("highest"):
            np.savez(path, *self.arrays(self.lib.jit(step)(*self.arguments)))
        return {"results": str(path)}

    def round(self, calls: int, estimate: float, rest: float = REST) -> dict[str, Any]:
        """Seconds of a call, in a round of so many."""
        time.sleep(rest)
        if estimate < SLOW_SECONDS:
            self.burst(1)  # caches, pages and sleeping threads are this library's again
        return {"seconds": self.burst(calls) / calls}

    def burst(self, calls: int) -> float:
        """Seconds of so many calls, the last of which is waited for."""
        run, arguments = self.run, self.arguments
        assert run is not None
        out = None
        gc.disable()
        start = time.perf_counter()
        for _ in range(calls):
            out = None  # its memory is free for the next
            out = run(*arguments)
        self.wait(out)
        seconds = time.perf_counter() - start
        gc.enable()
        return seconds

    def profile(self, path: str) -> dict[str, Any]:
        """Write how long each step of the program takes to a file (functrans alone)."""
        Path(path).write_text(f"{self.lib.profile(self.run, *self.arguments)}\n", encoding="utf-8")
        return {}

    def drop(self) -> dict[str, Any]:
        """Forget the program, and give its memory back to the device."""
        self.run, self.arguments = None, ()
        if self.name == "jax":
            self.lib.clear_caches()
        gc.collect()
        if self.name == "functrans":
            for device in self.lib.devices():
                device.release_cached()
        return {}


class InFloat32:
    """A library whose narrow numbers have 32 bits: what a program of bfloat16 rounds, it keeps."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib

    def __getattr__(self, name: str) -> Any:
        if name in ("bfloat16", "float16"):
            return self._lib.float32
        found = getattr(self._lib, name)
        return InFloat32(found) if name == "numpy" else found


class HandWritten(Bench):
    """The texts that stand in the programs, compiled for a GPU where there is one with CuPy."""

    def start(self) -> None:
        self.gpu = by_hand.gpu_name()

    def hello(self) -> dict[str, Any]:
        return {"gpu": self.gpu, "versions": versions(PACKAGES[BY_HAND]) | by_hand.compilers()}

    def take(self, program: str, size: str | dict[str, Any]) -> None:
        found = self.suite.load(program)
        _, arguments = self.suite.make(program, by_hand.NoLibrary(), size)
        sizes = found.SIZES[size]
        call: list[Callable[[], Any]] = []

        def run() -> Any:
            if not call:
                call.append(by_hand.compiled(found, sizes, arguments, self.folder, bool(self.gpu)))
            return call[0]()

        self.run = run

    def wait(self, results: Any) -> None:
        if self.gpu:
            by_hand.synchronize()

    def arrays(self, results: Any) -> list[np.ndarray]:
        return [x.get() if self.gpu else x for x in results]

    def drop(self) -> dict[str, Any]:
        self.run = None
        gc.collect()
        return {}


def plain(x: Any) -> np.ndarray:
    """A result in a dtype that NumPy writes to files."""
    x = np.asarray(x)
    return x if x.dtype.kind in "biufc" and x.dtype.isbuiltin else x.astype(np.float32)


def main() -> int:
    name, folder, suite = sys.argv[1:]
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def answer(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")

    try:
        kind = HandWritten if name == BY_HAND else Bench
        bench = kind(name, Path(folder), folder_at(suite))
        answer(bench.hello())
        if name == "functrans" and (threads := os.environ.get("OMP_NUM_THREADS")):
            # as many as the others have, without a processor of their own that neighbours load
            importlib.import_module("functrans._runtime").set_num_threads(int(threads))
    except Exception as error:
        answer({"error": first_line(error)})
        return 1
    for line in sys.stdin:
        command, options = json.loads(line)
        try:
            answer(getattr(bench, command)(**options))
        except Exception as error:  # a program that one library cannot run is a row of the table
            answer({"error": first_line(error)})
            with contextlib.suppress(Exception):
                bench.drop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
