"""Where the first call of a program spends its time, beside JAX's and another version's.

    python benchmarks/first_calls.py [--folder FOLDER] [--programs NAME,NAME] [--size small]
                                     [--rounds N] [--jax PYTHON] [--before PYTHON] [--full]
                                     [--out FILE]

Each first call is in a process of its own with an empty cache, after imports and one small program;
rounds of all libraries alternate, and the figures are medians. Seconds of wall time; the C compiler
takes several units side by side, and the processor time of all is in brackets. "Spent" is the
processor time of the whole first call, which other work on the machine changes less. `--before` is
an interpreter with another version of functrans, `--jax` one that has JAX, and `--full` functrans
without baseline builds (lowering/c/baseline.py).
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import load, processor
from program_folder import folder_at
from program_rows import geometric_mean

PHASES = ("tracing", "passes", "graph", "schedule", "text", "compiler")
LONGEST = 300.0
SLOW, CALLS = 0.5, 20


def phases() -> dict[str, float]:
    """Seconds of each phase of what is compiled from now on."""
    lower = importlib.import_module("functrans.lowering.c.lower")
    functions = importlib.import_module("functrans.lowering.c.functions")
    found = dict.fromkeys((*PHASES, "processors", "units", "characters"), 0.0)

    def timed(module: Any, name: str, phase: str) -> None:
        inner = getattr(module, name)

        def outer(*args: Any, **kwargs: Any) -> Any:
            start, children = time.perf_counter(), os.times()
            try:
                return inner(*args, **kwargs)
            finally:
                found[phase] += time.perf_counter() - start
                if phase == "compiler":
                    after = os.times()
                    found["processors"] += after[2] + after[3] - children[2] - children[3]
                    found["units"] += len(args[0])
                    found["characters"] += sum(map(len, args[0]))

        setattr(module, name, outer)

    timed(lower, "simplify", "passes")
    timed(lower, "graph_with_lanes", "graph")
    timed(functions.FunctionForms, "schedule", "schedule")
    timed(lower, "write_program", "text")
    timed(lower, "compile_shared", "compiler")
    return found


def first_call(library: str, place: str, title: str, size: str, results: str) -> dict[str, float]:
    """Seconds of the first call, of its phases, and of later calls."""
    full, library = library == "full", library.replace("full", "functrans")
    lib = importlib.import_module(library)
    for name in ("lax", "nn", "numpy", "random", "tree", "scipy.linalg", "scipy.sparse.linalg",
                 "scipy.special", "scipy.stats"):  # fmt: skip
        importlib.import_module(f"{library}.{name}")
    lib.block_until_ready(lib.jit(lambda x: lib.numpy.tanh(x) + 1)(np.ones(8, np.float32)))
    step, arguments = folder_at(place).make(title, lib, size)
    arguments = lib.block_until_ready(lib.device_put(arguments))
    found = phases() if library == "functrans" else {}
    if full:
        importlib.import_module("functrans.lowering.c.lower").baseline_units = lambda text: None
    compiled = lib.jit(step)
    start, before = time.perf_counter(), os.times()
    out = lib.block_until_ready(compiled(*arguments))
    wall, spent = time.perf_counter() - start, sum(os.times()[:4]) - sum(before[:4])
    np.savez(results, *(np.asarray(x) for x in lib.tree.leaves(out)))
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        lib.block_until_ready(compiled(*arguments))
        times.append(time.perf_counter() - start)
        if times[-1] > SLOW:
            break
    if found:
        found["text"] -= found["schedule"]
        # tracing, and a first run
        found["tracing"] = wall - sum(found[p] for p in PHASES if p != "tracing")
    return {**found, "wall": wall, "spent": spent, "call": statistics.median(times)}


def child(python: str, library: str, place: str, title: str, size: str,
          results: str) -> dict[str, float] | str:  # fmt: skip
    """What a fresh process measures, or why it does not."""
    with tempfile.TemporaryDirectory() as empty:
        try:
            done = subprocess.run(
                [python, __file__, "--child", library, place, title, size, results],
                capture_output=True, text=True, timeout=LONGEST, check=False,
                env=os.environ | {"XDG_CACHE_HOME": empty, "JAX_PLATFORMS": "cpu",
                                  "CUDA_VISIBLE_DEVICES": ""})  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"more than {LONGEST:.0f} s"
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:200]
    return json.loads(done.stdout.splitlines()[-1])


def difference(one: str, other: str) -> float:
    """The largest difference of a result in norm; 0 where all bits are the same."""
    worst = 0.0
    with np.load(one) as a, np.load(other) as b:
        for key in a.files:
            if a[key].tobytes() == b[key].tobytes():
                continue
            x, y = a[key].astype(np.complex128), b[key].astype(np.complex128)
            worst = max(worst, float(np.linalg.norm(x - y) / max(np.linalg.norm(y), 1e-30)))
    return worst


def measure(place: str, title: str, size: str, libraries: dict[str, tuple[str, str]],
            rounds: int) -> dict[str, Any]:  # fmt: skip
    """The row of a program: medians by library, and how far results are from one another."""
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in libraries}
    row: dict[str, Any] = {"title": title, "size": size, "errors": {}}
    with tempfile.TemporaryDirectory() as folder:
        for index in range(rounds):
            order = list(libraries)
            for name in order[index % len(order):] + order[:index % len(order)]:
                python, library = libraries[name]
                if name not in row["errors"]:
                    found = child(python, library, place, title, size, f"{folder}/{name}.npz")
                    if isinstance(found, str):
                        row["errors"][name] = found
                    else:
                        samples[name].append(found)
        made = [name for name in libraries if samples[name]]
        row["differences"] = {name: difference(f"{folder}/{made[0]}.npz", f"{folder}/{name}.npz")
                              for name in made[1:]}  # fmt: skip
    for name, each in samples.items():
        if each:
            row[name] = {key: statistics.median(s[key] for s in each) for key in each[0]}
    return row


def line(row: dict[str, Any], libraries: dict[str, tuple[str, str]]) -> str:
    cells = [row["title"]]
    for name in libraries:
        of = row.get(name)
        if of is None:
            cells.append(row["errors"].get(name, "-"))
        elif "compiler" in of:
            cells += [*(f"{of[p]:.2f}" for p in PHASES[:-1]),
                      f"{of['compiler']:.2f} ({of['processors']:.2f} in {of['units']:.0f})",
                      f"{of['spent']:.2f}", f"{of['wall']:.2f}",
                      f"{of['call'] * 1e3:.2f}"]  # fmt: skip
        else:
            cells += [f"{of['spent']:.2f}", f"{of['wall']:.2f}", f"{of['call'] * 1e3:.2f}"]
    differences = [f"{x:.0e}" if x else "same bits" for x in row["differences"].values()]
    return f"| {' | '.join([*cells, *differences])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default="lane_programs")
    parser.add_argument("--programs", default="")
    parser.add_argument("--size", default="small")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jax", metavar="PYTHON")
    parser.add_argument("--before", metavar="PYTHON")
    parser.add_argument("--full", action="store_true", help="without baseline builds, too")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(first_call(*options.child)))
        return
    libraries = {"functrans": (sys.executable, "functrans")}
    if options.full:
        libraries["full"] = (sys.executable, "full")
    if options.before:
        libraries["before"] = (options.before, "functrans")
    if options.jax:
        libraries["jax"] = (options.jax, "jax")
    titles = [t for t in options.programs.split(",") if t] or folder_at(options.folder).names()
    rows = []
    heads = [*PHASES, "spent", "wall", "a call, ms"]
    columns = [f"{name}: {head}" for name, (_, library) in libraries.items()
               for head in (heads[-3:] if library == "jax" else heads)]  # fmt: skip
    print(f"| program | {' | '.join(columns)} |")
    for title in titles:
        rows.append(measure(options.folder, title, options.size, libraries, options.rounds))
        print(line(rows[-1], libraries), flush=True)
        if options.out is not None:
            options.out.write_text(json.dumps({
                "date": datetime.datetime.now().isoformat(timespec="seconds"),
                "device": {"processor": processor(), "cores": os.cpu_count()},
                "load_before": load(), "unit": "seconds, medians", "rows": rows,
            }, indent=1) + "\n")  # fmt: skip
    for name in list(libraries)[1:]:
        for what in ("wall", "spent", "call"):
            ratios = [row["functrans"][what] / row[name][what] for row in rows
                      if "functrans" in row and name in row]  # fmt: skip
            if ratios:
                print(f"{what}: {geometric_mean(ratios):.3f} of {name}'s in {len(ratios)} programs")


if __name__ == "__main__":
    main()
