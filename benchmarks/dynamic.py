"""Programs of named sizes: one for 100 batch sizes, beside programs of known sizes and peers.

    python benchmarks/dynamic.py [--gpu] [--compile] [--subject-only] [--quick] [--no-write]

The program is value_and_grad of the MLP 784-256-128-10. Its first row is the time of a fresh
process, with empty caches, for one call at each of 100 batch sizes, from arrays to results; JAX
compiles 100 programs, torch.compile(dynamic=True), which --compile measures too (minutes), one or
two. The other rows compare functrans with itself, as ratios or as a difference of times; on a GPU,
where each set of sizes has steps of its own, a row says how long a call at a new one takes.
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
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from bounds import SUBJECT
from compile_time import environment
from gpu_workloads.compiling import caches
from harness import Row, first_line, summarise
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
NEW = "... median of a call at a new size"
GPU_KERNELS: dict[str, tuple[Callable[..., Any], list[tuple[int, int]], Any]] = {
    "softmax of 8192 x 5000": (lambda ft, x: ft.nn.softmax(x), [(8192, 5000)],
                               ({0: "B", 1: "D"},)),
    "gradient of layer norm, 4096 x 1504": (
        lambda ft, x: ft.grad(lambda x: (layer_norm(ft, x) ** 3).sum())(x), [(4096, 1504)],
        ({0: "B", 1: "D"},)),
    "product 1104 x 4096 x 4096": (lambda ft, x, w: x @ w, [(1104, 4096), (4096, 4096)],
                                   ({0: "B"}, None)),
}
"""Programs with names of sizes, and the sizes at which they are timed on a GPU."""
GPU_RUN = "run time at a batch of 1000, times the specialised program"
GPU_TITLES = (TOTAL, NEW, GPU_RUN, *[f"{name} {AT_ONE_SIZE}" for name in GPU_KERNELS])
GPU_FASTER = {"jax": 10, "torch.compile": 2}
NEW_SECONDS = 0.01
PATIENCE = 170
"""Seconds for 100 batch sizes."""
Calls = tuple[list[float], int]
"""The seconds of each call, and how many programs they took."""


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


def layer_norm(ft: Any, x: Any) -> Any:
    """Rows with a mean of 0 and a variance of 1."""
    return (x - x.mean(1, keepdims=True)) / ft.numpy.sqrt(x.var(1, keepdims=True) + 1e-5)


def child(name: str, platform: str) -> None:
    """In a fresh process: print the seconds of 100 calls and how many programs they took."""
    module = importlib.import_module("torch" if name == "torch.compile" else name)
    parameters, batches = arrays(SIZES)
    if name == "torch.compile":
        found = torch_calls(module, parameters, batches, {"gpu": "cuda"}.get(platform, platform))
    else:
        there = module.config.default_device(platform) if name == SUBJECT else nullcontext()
        with there:
            found = calls(module, parameters, batches)
    print(json.dumps(found))


def seconds_of(call: Callable[..., Any], batches: Iterable[Any]) -> list[float]:
    """The seconds of a call for each batch, which waits for its result."""
    found = []
    for batch in batches:
        start = time.perf_counter()
        call(*batch)
        found.append(time.perf_counter() - start)
    return found


def calls(library: Any, parameters: Any, batches: Any) -> Calls:
    for part in ("numpy", "nn"):
        importlib.import_module(f"{library.__name__}.{part}")
    parameters, batches = library.tree.map(library.numpy.asarray, (parameters, batches))
    named = {"dynamic_shapes": {1: {0: "B"}, 2: {0: "B"}}} if library.__name__ == SUBJECT else {}
    run = library.jit(library.value_and_grad(loss(library)), **named)
    seconds = seconds_of(lambda *batch: library.block_until_ready(run(parameters, *batch)), batches)
    return seconds, len(library.explain_retrace(run)) if named else run._cache_size()


def torch_calls(torch: Any, parameters: Any, batches: Any, device: str) -> Calls:
    torch.set_float32_matmul_precision("high")  # on GPUs TF32, as the others
    leaves = [torch.from_numpy(a).to(device).requires_grad_() for p in parameters for a in p]
    there = [(torch.from_numpy(x).to(device), torch.from_numpy(labels).long().to(device))
             for x, labels in batches]

    def value(leaves: Any, x: Any, labels: Any) -> Any:
        for w, b in zip(leaves[:-2:2], leaves[1:-2:2], strict=True):
            x = torch.tanh(x @ w + b)
        return torch.nn.functional.cross_entropy(x @ leaves[-2] + leaves[-1], labels)

    compiled = torch.compile(value, dynamic=True)

    def gradient(x: Any, labels: Any) -> None:
        torch.autograd.grad(compiled(leaves, x, labels), leaves)
        if device != "cpu":
            torch.cuda.synchronize()

    return seconds_of(gradient, there), torch._dynamo.utils.counters["stats"]["unique_graphs"]


def fresh(name: str, platform: str) -> Calls:
    """`child` with empty caches; RuntimeError if it fails, or takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        variables = caches(folder) if platform == "gpu" else environment(folder)
        variables |= {"JAX_PLATFORMS": {"gpu": "cuda"}.get(platform, platform),
                      "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        try:
            done = subprocess.run([sys.executable, __file__, "--child", name, platform],
                                  capture_output=True, text=True, env=variables, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"not done after {PATIENCE} s") from None
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no reason"])[-1])
    return tuple(json.loads(done.stdout.splitlines()[-1]))


Runs = dict[str, list[Calls]]


def runs_of(table: Table, peers: list[str]) -> tuple[Runs, dict[str, str]]:
    """Fresh processes by library, and what failed."""
    platform = "gpu" if table.gpu else "cpu"
    rounds = 1 if table.options.quick else 3
    runs: Runs = {}
    errors: dict[str, str] = {}
    for name in [SUBJECT, *peers]:
        try:
            runs[name] = [fresh(name, platform) for _ in range(rounds if name == SUBJECT else 1)]
        except RuntimeError as error:
            errors[name] = first_line(error)
    return runs, errors


def total(table: Table, runs: Runs, errors: dict[str, str]) -> Row:
    samples = {name: [sum(seconds) for seconds, _ in of] for name, of in runs.items()}
    seconds = {name: statistics.median(s) for name, s in samples.items()}
    kept = {n: s for n, s in table.kept(TOTAL).items() if n not in seconds}
    faster = GPU_FASTER if table.gpu else FASTER
    bounds = {f"{n} / {k}": (seconds | kept)[n] / k for n, k in faster.items()
              if n in seconds | kept}
    label = min(bounds, key=bounds.__getitem__, default="")
    note = "; ".join(f"{name} compiled {of[0][1]}" for name, of in runs.items())
    return Row(TOTAL, seconds, minima={name: min(s) for name, s in samples.items()},
               bound=bounds.get(label, math.nan), bound_is=label, note=note, kept=kept,
               errors=errors)


def new_size(runs: Runs, errors: dict[str, str]) -> Row:
    medians = {name: [statistics.median(s) for s, _ in of] for name, of in runs.items()}
    return summarise(NEW, medians, NEW_SECONDS, errors=errors)


def timed(run: Callable[[], Any], number: int) -> float:
    """Seconds of a call, which waits for its result."""
    return timeit.Timer(run).timeit(number) / number


def timed_on_gpu(run: Callable[[], Any], number: int) -> float:
    """Seconds of calls back to back, the last of which is waited for."""
    wait = importlib.import_module(SUBJECT).block_until_ready
    start = time.perf_counter()
    for _ in range(number):
        out = run()
    wait(out)
    return (time.perf_counter() - start) / number


def ratio(title: str, named: Callable[[], Any], known: Callable[[], Any], bound: float,
          rounds: int, difference: bool = False,
          timed: Callable[[Callable[[], Any], int], float] = timed) -> Row:
    """The time of one statement over, or beyond, that of another: medians of turns."""
    for run in (named, known):
        timed(run, 1)  # compiles it
    number = max(1, int(0.02 / timed(named, 3)))
    samples = [[timed(run, number) for run in (named, known)] for _ in range(rounds)]
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


def gpu_rows(rounds: int) -> Iterator[Row]:
    """Programs on the default device, which is a GPU."""
    ft = importlib.import_module(SUBJECT)
    parameters, batches = ft.tree.map(ft.numpy.asarray, arrays([1000]))
    gradient = ft.value_and_grad(loss(ft))
    rng = np.random.default_rng(0)
    programs = {GPU_RUN: (gradient, (parameters, *batches[0]), {1: {0: "B"}, 2: {0: "B"}})}
    for name, (fun, shapes, names) in GPU_KERNELS.items():
        arguments = [ft.numpy.asarray(rng.standard_normal(s, np.float32)) for s in shapes]
        programs[f"{name} {AT_ONE_SIZE}"] = (partial(fun, ft), arguments, names)
    for title, (fun, arguments, names) in programs.items():
        named, known = ft.jit(fun, dynamic_shapes=names), ft.jit(fun)
        yield ratio(title, partial(named, *arguments), partial(known, *arguments), 1.1, rounds,
                    timed=timed_on_gpu)


def gpu_name() -> str:
    """The name of the first GPU; raises BackendError, which says why there is none."""
    return importlib.import_module(SUBJECT).devices("gpu")[0].device_kind


def main() -> int:
    options = parse_options("Programs of named sizes.", gpu="on a GPU")
    try:
        gpu = gpu_name() if options.gpu else ""
    except RuntimeError as error:
        print(f"--gpu: functrans has no GPU here: {first_line(error)}")
        return 1
    table = Table("dynamic", options, list(GPU_TITLES if gpu else TITLES), 26, gpu)
    peers = [] if options.subject_only else ["jax", *["torch.compile"] * options.compile]
    table.header()
    runs, errors = runs_of(table, peers)
    table.keep(total(table, runs, errors))
    if gpu:
        table.keep(new_size(runs, errors))
    rounds = 5 if options.quick else 25
    ft = importlib.import_module(SUBJECT)
    with ft.config.default_device("gpu" if gpu else "cpu"):
        for row in gpu_rows(rounds) if gpu else own_rows(rounds):
            table.keep(row)
    return table.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--child", nargs=2)
    known = parser.parse_known_args()[0]
    sys.exit(child(*known.child) if known.child else main())
