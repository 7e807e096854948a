"""Where the time of one eager gradient goes: grad of sum(tanh(x @ w)**2) on 8x8 arrays.

    python benchmarks/profile_overheads.py [--seconds 5]

Three views, none of which slows the program as a tracing profiler does: a ladder of ever larger
parts of the program, timed alone; the calls it makes, counted; and samples of its stack, taken by a
timer signal. A sample falls on the Python line that runs or that called into C++, so the time of
an extension is charged to its caller.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import time
import timeit
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from harness import duration
from traced_programs import make_tanh_loss

import functrans as ft
import functrans.numpy as jnp

INTERVAL = 0.001
SHOWN = 20


def program() -> dict[str, Any]:
    """The names that the statements below use."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((8, 8)).astype(np.float32)
    x = rng.standard_normal((8, 8)).astype(np.float32)
    loss = make_tanh_loss(jnp)
    return {
        "ft": ft,
        "jnp": jnp,
        "np": np,
        "numpy_loss": make_tanh_loss(np),
        "numpy_w": w,
        "numpy_x": x,
        "w": jnp.asarray(w),
        "x": jnp.asarray(x),
        "one": jnp.asarray(np.float32(1)),
        "loss": loss,
        "gradient": ft.grad(loss),
        "pull": ft.vjp(loss, jnp.asarray(w), jnp.asarray(x))[1],
    }


LADDER = [
    ("NumPy: the loss alone", "numpy_loss(numpy_w, numpy_x)"),
    ("one eager operation: tanh", "jnp.tanh(x)"),
    ("one eager product: x @ w", "x @ w"),
    ("one eager sum", "jnp.sum(x)"),
    ("the loss", "loss(w, x)"),
    ("flatten and unflatten (w, x)", "ft.tree.unflatten(*ft.tree.flatten((w, x))[::-1])"),
    ("jvp of the loss", "ft.jvp(loss, (w, x), (w, x))"),
    ("vjp: linearisation only", "ft.vjp(loss, w, x)"),
    ("vjp: pull back only", "pull(one)"),
    ("to make ft.grad(loss)", "ft.grad(loss)"),
    ("to call it", "gradient(w, x)"),
    ("both: ft.grad(loss)(w, x)", "ft.grad(loss)(w, x)"),
]


def time_ladder(names: dict[str, Any], rounds: int = 15) -> None:
    """Print the median time of every rung."""
    print("parts, each timed alone")
    for title, statement in LADDER:
        timer = timeit.Timer(statement, globals=names)
        number = max(1, timer.autorange()[0] // 10)
        seconds = statistics.median(timer.repeat(rounds, number)) / number
        print(f"  {title:<32} {duration(seconds):>9}")


def count_calls(names: dict[str, Any]) -> None:
    """Print how many functions one gradient calls, and the most called of them."""
    ft.grad(names["loss"])(names["w"], names["x"])
    python: Counter[str] = Counter()
    builtin: Counter[str] = Counter()

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            python[place(frame)] += 1
        elif event == "c_call":
            builtin[getattr(argument, "__qualname__", repr(argument))] += 1

    sys.setprofile(watch)
    ft.grad(names["loss"])(names["w"], names["x"])
    sys.setprofile(None)
    print(f"\ncalls in one gradient: {python.total()} of Python functions, "
          f"{builtin.total()} of built-in ones")  # fmt: skip
    for counter in (python, builtin):
        for name, count in counter.most_common(SHOWN // 2):
            print(f"  {count:>5}  {name}")
        print()


def place(frame: FrameType) -> str:
    """Function and file, short enough for a table."""
    path = Path(frame.f_code.co_filename)
    return f"{frame.f_code.co_qualname}  ({'/'.join(path.parts[-2:])})"


def sample_stacks(names: dict[str, Any], seconds: float) -> None:
    """Print which functions and files the stack ends in, from a sample every millisecond."""
    own: Counter[str] = Counter()
    files: Counter[str] = Counter()

    def sample(number: int, frame: FrameType | None) -> None:
        if frame is not None:
            own[place(frame)] += 1
            files["/".join(Path(frame.f_code.co_filename).parts[-2:])] += 1

    run = timeit.Timer("ft.grad(loss)(w, x)", globals=names)
    previous = signal.signal(signal.SIGALRM, sample)
    signal.setitimer(signal.ITIMER_REAL, INTERVAL, INTERVAL)
    end = time.perf_counter() + seconds
    try:
        while time.perf_counter() < end:
            run.timeit(100)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    total = max(1, own.total())
    print(f"share of {total} samples, by file")
    for name, count in files.most_common(SHOWN):
        print(f"  {count / total:>6.1%}  {name}")
    print("\nby function (callees in Python not included)")
    for name, count in own.most_common(SHOWN):
        print(f"  {count / total:>6.1%}  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Where the time of an eager gradient goes.")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to sample")
    options = parser.parse_args()
    names = program()
    time_ladder(names)
    count_calls(names)
    sample_stacks(names, options.seconds)


if __name__ == "__main__":
    main()
