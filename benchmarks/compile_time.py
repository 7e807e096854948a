"""Seconds to the first result in a fresh process, with an empty and with a filled disk cache.

    python benchmarks/compile_time.py [--quick] [--torch]

The clock of a row starts after the imports, with the inputs as NumPy arrays, and stops when the
result is there; the note under a row adds the import. JAX is measured without its persistent
compilation cache, which is off by default, and with it. Each process gets folders of its own for
the caches: functrans' is below XDG_CACHE_HOME.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PROGRAMS = {
    "chain": "10-op chain",
    "mlp": "3-layer MLP value_and_grad",
    "per_sample": "3-layer MLP vmap(grad)",
    "transformer": "2-layer transformer gradient",
}
COLD, WARM = "cold first result: ", "from the disk cache: "
MEAN = "cold first result: geometric mean"
TITLES = [COLD + t for t in PROGRAMS.values()] + [MEAN] + [WARM + t for t in PROGRAMS.values()]
CACHED_JAX = "jax with cache"


def program(name: str, library: Any, models: Any, memory: Any) -> tuple[Callable, Any]:
    """A jitted program of functrans or JAX, not called yet, and its NumPy arguments."""
    if name == "chain":
        return library.jit(memory.chain(library.numpy)), (memory.normal(2**20),)
    if name == "transformer":
        loss, arrays = models.transformer_loss(library), models.transformer_arrays()
        return library.jit(library.grad(loss)), arrays
    loss, arrays = models.mlp_loss(library), models.mlp_arrays(batch=32)
    if name == "mlp":
        return library.jit(library.value_and_grad(loss)), arrays
    return library.jit(library.vmap(library.grad(loss), in_axes=(None, 0, 0))), arrays


def first_result(library: Any, name: str, models: Any, memory: Any) -> float:
    """Seconds of the first call, from arguments in NumPy to a result that is ready."""
    run, arrays = program(name, library, models, memory)
    start = time.perf_counter()
    library.block_until_ready(run(*library.tree.map(library.numpy.asarray, arrays)))
    return time.perf_counter() - start


def torch_first_result(torch: Any, name: str, models: Any, memory: Any) -> float:
    """The same for torch.compile."""
    flatten, func = torch.utils._pytree.tree_leaves, torch.func
    if name == "chain":
        run, arrays = memory.chain(torch), (memory.normal(2**20),)
    elif name == "per_sample":
        gradient = func.grad(models.torch_mlp_loss(torch))
        run, arrays = func.vmap(gradient, in_dims=(None, 0, 0)), models.mlp_arrays(batch=32)
    elif name == "mlp":
        run, arrays = models.torch_mlp_loss(torch), models.mlp_arrays(batch=32)
    else:
        run, arrays = models.torch_transformer_loss(torch), models.transformer_arrays()
    start = time.perf_counter()
    values = torch.utils._pytree.tree_map(torch.from_numpy, arrays)
    if name in ("mlp", "transformer"):
        leaves = [leaf.requires_grad_() for leaf in flatten(values[0])]
        torch.autograd.grad(torch.compile(run)(*values), leaves)
    else:
        torch.compile(run)(*values)
    return time.perf_counter() - start


def child(module: str, name: str) -> None:
    """In the fresh process: print the seconds of the import and those to the first result."""
    start = time.perf_counter()
    library = importlib.import_module(module)
    if module != "torch":
        for part in ("numpy", "lax", "nn"):
            importlib.import_module(f"{module}.{part}")
    imported = time.perf_counter() - start
    models = importlib.import_module("cpu_workloads.models")
    memory = importlib.import_module("cpu_workloads.memory")
    measure = torch_first_result if module == "torch" else first_result
    print(json.dumps([imported, measure(library, name, models, memory)]))


def environment(folder: str) -> dict[str, str]:
    """Caches of all libraries in one folder."""
    return os.environ | {
        "XDG_CACHE_HOME": folder,
        "TORCHINDUCTOR_CACHE_DIR": str(Path(folder, "inductor")),
    }


def with_jax_cache(folder: str) -> dict[str, str]:
    """JAX's persistent cache, for programs of any size and compile time."""
    return environment(folder) | {
        "JAX_COMPILATION_CACHE_DIR": str(Path(folder, "jax")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def fresh(module: str, name: str, variables: dict[str, str]) -> tuple[float, float]:
    """Seconds of the import and to the first result, in a new process; RuntimeError if it fails."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", module, name],
        capture_output=True, text=True, env=variables,
    )  # fmt: skip
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise RuntimeError(lines[-1])
    imported, first = json.loads(done.stdout.splitlines()[-1])
    return imported, first


Samples = dict[str, list[tuple[float, float]]]


def samples_of(name: str, modules: list[str], rounds: int) -> tuple[Samples, Samples, dict]:
    """Cold and warm samples of a program by library, and what failed; rounds are interleaved."""
    cold: Samples = {}
    warm: Samples = {}
    errors: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as kept:
        for index in range(rounds + 1):
            for module in modules:
                label = "torch.compile" if module == "torch" else module
                if label in errors:
                    continue
                try:
                    if index:  # the first round only fills the caches, of the system too
                        with tempfile.TemporaryDirectory() as empty:
                            sample = fresh(module, name, environment(empty))
                        cold.setdefault(label, []).append(sample)
                    cached = CACHED_JAX if module == "jax" else label
                    variables = (with_jax_cache if module == "jax" else environment)(kept)
                    sample = fresh(module, name, variables)
                    if index:
                        warm.setdefault(cached, []).append(sample)
                except RuntimeError as error:
                    errors[label] = str(error)[:160]
    return cold, warm, errors


def rows(peers: Any, quick: bool) -> Iterator[Any]:
    """The rows of the first result, cold and warm, and the geometric mean beside JAX's."""
    # later: the child measures the import of its library, and the harness imports NumPy
    harness, bounds = importlib.import_module("harness"), importlib.import_module("bounds")
    modules = ["functrans"] + ["jax"] * (peers.jax is not None) + ["torch"] * peers.compile
    warm_rows, ratios = [], []
    for name, title in PROGRAMS.items():
        cold, warm, errors = samples_of(name, modules, 1 if quick else 5)
        for prefix, samples, bound in (
            (COLD, cold, bounds.Peer("jax")),
            (WARM, warm, bounds.Peer(CACHED_JAX, 0.5)),
        ):
            seconds = {label: [first for _, first in pairs] for label, pairs in samples.items()}
            row = harness.summarise(prefix + title, seconds, bound, errors=errors)
            row.note = "with the import: " + ", ".join(
                f"{label} {bounds.duration(statistics.median(map(sum, pairs)))}"
                for label, pairs in samples.items()
            )
            if prefix == COLD:
                yield row
                if "jax" in row.seconds and "functrans" in row.seconds:
                    ratios.append(row.seconds["functrans"] / row.seconds["jax"])
            else:
                warm_rows.append(row)
    if ratios:
        ratio = statistics.geometric_mean(ratios)
        row = harness.summarise(MEAN, {"functrans": [ratio], "jax": [1.0]}, 0.7, unit="x")
        row.note = f"functrans' times over jax's, {len(ratios)} of {len(PROGRAMS)} programs"
        if len(ratios) < len(PROGRAMS):
            row.errors["functrans"] = "a program is missing"
        yield row
    yield from warm_rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Time to the first result in a fresh process.")
    parser.add_argument("--quick", action="store_true", help="one process a figure")
    parser.add_argument("--torch", action="store_true", help="torch.compile too (minutes)")
    parser.add_argument("--child", nargs=2, metavar=("MODULE", "PROGRAM"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    harness = importlib.import_module("harness")
    entries = importlib.import_module("cpu_workloads.entries")
    peers = entries.Peers.installed(options.torch)
    harness.print_table(list(rows(peers, options.quick)))


if __name__ == "__main__":
    main()
