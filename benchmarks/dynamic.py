"""Programs of named sizes: one for 100 batch sizes, beside programs of known sizes and peers.

    python benchmarks/dynamic.py [--compile] [--subject-only] [--quick] [--no-write]

The program is value_and_grad of the MLP 784-256-128-10. Its first row is the time of a fresh
process, with empty caches, for one call at each of 100 batch sizes, from arrays to results; JAX
compiles 100 programs, torch.compile(dynamic=True), which --compile measures too (minutes), one or
two. The other rows compare functrans with itself, as ratios or as a difference of times.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
from bounds import SUBJECT
from compile_time import environment
from harness import Row
from table import Table, parse_options

SIZES = range(29, 129)
LAYERS = ((784, 256), (256, 128), (128, 10))
TOTAL = "value_and_grad of an MLP at 100 batch sizes"
AT_ONE_SIZE = "at one size, times the specialised program"
RUN = f"run time {AT_ONE_SIZE}"
TRACE = "tracing with named sizes, times with ints"
CALL = "a call of a program of named sizes, more than of ints"
KERNELS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, int]]] = {
    "sums of columns": (lambda ft, x: x.sum(0), (2000, 1024)),
    "sums of few columns": (lambda ft, x: x.sum(0), (64, 256)),
    "sums of rows": (lambda ft, x: x.sum(1), (2000, 1000)),
    "transposed": (lambda ft, x: x.T + 1, (1000, 1024)),
    "softmax": (lambda ft, x: ft.nn.softmax(x), (2000, 1024)),
    "standardized": (lambda ft, x: (x - x.mean(0)) / x.std(0), (2000, 1024)),
    "joined": (lambda ft, x: ft.numpy.concatenate([x, x * 2], 1), (1000, 1024)),
    "places of largest": (lambda ft, x: x.argmax(1), (2000, 1024)),
}
"""Kernels over a matrix both of whose sizes are named, and the size at which they are timed."""
TITLES = (TOTAL, RUN, *[f"{name} {AT_ONE_SIZE}" for name in KERNELS], TRACE, CALL)
FASTER = {"jax": 20, "torch.compile": 10}


def loss(library: Any) -> Callable[..., Any]:
    """Cross entropy of an MLP, for functrans and JAX."""
    def of(parameters: Any, x: Any, labels: Any) -> Any:
        for w, b in parameters[:-1]:
            x = library.numpy.tanh(x @ w + b)
        w, b = parameters[-1]
        logits = x @ w + b
        chosen = library.numpy.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
        return (library.nn.logsumexp(logits, axis=1) - chosen).mean()
    return of


def arrays(sizes: Any) -> tuple[Any, Any]:
    """The parameters, and inputs and labels for each batch size."""
    rng = np.random.default_rng(0)
    parameters = [(rng.standard_normal((i, o), np.float32) / 16, np.zeros(o, np.float32))
                  for i, o in LAYERS]
    return parameters, [(rng.standard_normal((n, 784), np.float32),
                         rng.integers(0, 10, n).astype(np.int32)) for n in sizes]


def child(name: str) -> None:
    """In a fresh process: print the seconds of 100 calls and how many programs they took."""
    module = importlib.import_module("torch" if name == "torch.compile" else name)
    parameters, batches = arrays(SIZES)
    seconds, count = (torch_calls if name == "torch.compile" else calls)(
        module, parameters, batches)
    print(json.dumps([seconds, count]))


def calls(library: Any, parameters: Any, batches: Any) -> tuple[float, int]:
    for part in ("numpy", "nn"):
        importlib.import_module(f"{library.__name__}.{part}")
    parameters, batches = library.tree.map(library.numpy.asarray, (parameters, batches))
    named = {"dynamic_shapes": {1: {0: "B"}, 2: {0: "B"}}} if library.__name__ == SUBJECT else {}
    run = library.jit(library.value_and_grad(loss(library)), **named)
    start = time.perf_counter()
    for x, labels in batches:
        library.block_until_ready(run(parameters, x, labels))
    seconds = time.perf_counter() - start
    return seconds, len(library.explain_retrace(run)) if named else run._cache_size()


def torch_calls(torch: Any, parameters: Any, batches: Any) -> tuple[float, int]:
    leaves = [torch.from_numpy(a).requires_grad_() for layer in parameters for a in layer]

    def value(leaves: Any, x: Any, labels: Any) -> Any:
        for w, b in zip(leaves[:-2:2], leaves[1:-2:2], strict=True):
            x = torch.tanh(x @ w + b)
        return torch.nn.functional.cross_entropy(x @ leaves[-2] + leaves[-1], labels)

    compiled = torch.compile(value, dynamic=True)
    start = time.perf_counter()
    for x, labels in batches:
        torch.autograd.grad(compiled(leaves, torch.from_numpy(x),
                                     torch.from_numpy(labels).long()), leaves)
    return (time.perf_counter() - start,
            torch._dynamo.utils.counters["stats"]["unique_graphs"])


def fresh(name: str) -> tuple[float, int]:
    """`child` with empty caches; RuntimeError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, __file__, "--child", name], capture_output=True,
                              text=True, env=environment(folder))
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no reason"])[-1])
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def total(table: Table, peers: list[str]) -> Row:
    seconds, minima, notes = {}, {}, []
    rounds = 1 if table.options.quick else 3
    for name in [SUBJECT, *peers]:
        runs = [fresh(name) for _ in range(rounds if name == SUBJECT else 1)]
        seconds[name] = statistics.median(s for s, _ in runs)
        minima[name] = min(s for s, _ in runs)
        notes.append(f"{name} compiled {runs[0][1]}")
    kept = {n: s for n, s in table.kept(TOTAL).items() if n not in seconds}
    bounds = {f"{n} / {k}": (seconds | kept)[n] / k for n, k in FASTER.items()
              if n in seconds | kept}
    label = min(bounds, key=bounds.__getitem__, default="")
    return Row(TOTAL, seconds, minima, bound=bounds.get(label, math.nan), bound_is=label,
               note="; ".join(notes), kept=kept)


def ratio(title: str, named: Callable[[], Any], known: Callable[[], Any], bound: float,
          rounds: int, difference: bool = False) -> Row:
    """The time of one statement over, or beyond, that of another: medians of turns."""
    timers = [timeit.Timer(named), timeit.Timer(known)]
    number = max(1, int(0.02 / (timers[0].timeit(3) / 3)))
    samples = [[t.timeit(number) / number for t in timers] for _ in range(rounds)]
    a, b = (statistics.median(s[k] for s in samples) for k in (0, 1))
    least = [min(s[k] for s in samples) for k in (0, 1)]
    note = f"{a * 1e6:.4g} and {b * 1e6:.4g} us"
    if difference:
        return Row(title, {SUBJECT: max(a - b, 1e-9)}, {SUBJECT: max(least[0] - least[1], 1e-9)},
                   bound=bound, note=note)
    return Row(title, {SUBJECT: a / b}, {SUBJECT: least[0] / least[1]}, bound=bound, note=note,
               unit="x")


def own_rows(rounds: int) -> list[Row]:
    ft = importlib.import_module(SUBJECT)

    parameters, batches = ft.tree.map(ft.numpy.asarray, arrays([64, 65, 66]))
    gradient = ft.value_and_grad(loss(ft))
    sizes = {1: {0: "B"}, 2: {0: "B"}}
    named, known = ft.jit(gradient, dynamic_shapes=sizes), ft.jit(gradient)
    x, labels = batches[0]
    small_named = ft.jit(lambda x: x + 1, dynamic_shapes=({0: "B"},))
    small_known = ft.jit(lambda x: x + 1)
    vector = ft.numpy.ones(64)

    def traced(jitted: Any) -> Callable[[], Any]:
        def trace() -> Any:
            jitted.clear_cache()
            return jitted.lower(parameters, x, labels)
        return trace

    return [
        ratio(RUN, lambda: named(parameters, x, labels), lambda: known(parameters, x, labels),
              1.1, rounds),
        *[kernel_row(ft, name, rounds) for name in KERNELS],
        ratio(TRACE, traced(ft.jit(gradient, dynamic_shapes=sizes)), traced(ft.jit(gradient)),
              1.5, rounds),
        ratio(CALL, lambda: small_named(vector), lambda: small_known(vector), 0.5e-6, rounds,
              difference=True),
    ]


def kernel_row(ft: Any, name: str, rounds: int) -> Row:
    fun, shape = KERNELS[name]
    x = ft.numpy.asarray(np.random.default_rng(0).standard_normal(shape, np.float32))
    named = ft.jit(lambda x: fun(ft, x), dynamic_shapes=({0: "B", 1: "D"},))
    known = ft.jit(lambda x: fun(ft, x))
    return ratio(f"{name} {AT_ONE_SIZE}", lambda: named(x), lambda: known(x), 1.1, rounds)


def main() -> int:
    options = parse_options("Programs of named sizes.")
    table = Table("dynamic", options, list(TITLES), 26)
    peers = [] if options.subject_only else ["jax", *["torch.compile"] * options.compile]
    table.header()
    try:
        table.keep(total(table, peers))
    except RuntimeError as error:
        table.keep(table.failed(TOTAL, error))
    for row in own_rows(5 if options.quick else 25):
        table.keep(row)
    return table.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--child")
    known = parser.parse_known_args()[0]
    sys.exit(child(known.child) if known.child else main())
