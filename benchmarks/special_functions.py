"""Special functions on the CPU beside JAX: milliseconds for 2^18 elements of float32.

    python benchmarks/special_functions.py [--peer-python PATH] [--count N] [--out FILE]

Each side runs in a process of its own, in turns; a figure is the median of the turns. The result of
each function is compared, too. Without JAX in the environment, or by --peer-python, there is only
one column.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TURNS, CALLS = 3, 5
FRAMEWORKS = ("functrans", "jax")


def functions(lax: Any, jit: Callable[..., Any], grad: Callable[..., Any]) -> dict[str, Any]:
    """Functions of two positive arrays, the first one near the second."""
    special = {name: getattr(lax, name) for name in ("igamma", "igammac", "random_gamma_grad")}
    return {
        **{name: jit(f) for name, f in special.items()},
        "derivative of igamma to x": jit(grad(lambda a, x: lax.igamma(a, x).sum(), 1)),
        "derivative of igamma to a": jit(grad(lambda a, x: lax.igamma(a, x).sum(), 0)),
        "zeta": jit(lambda a, x: lax.zeta(a + 1.1, x)),
        "polygamma 2": jit(lambda a, x: lax.polygamma(2.0, x)),
        "bessel_i0e": jit(lambda a, x: lax.bessel_i0e(x)),
        "bessel_i1e": jit(lambda a, x: lax.bessel_i1e(x)),
        "lgamma": jit(lambda a, x: lax.lgamma(x)),
        "digamma": jit(lambda a, x: lax.digamma(x)),
    }


def work(framework: str, count: int, folder: Path) -> None:
    """Time every function once, and keep its result."""
    module = importlib.import_module(framework)
    lax = importlib.import_module(f"{framework}.lax")
    numpy = importlib.import_module(f"{framework}.numpy")
    rng = np.random.default_rng(0)
    a = rng.gamma(2.0, 3.0, count).astype("f") + np.float32(0.05)
    x = (a * rng.uniform(0.1, 2.5, count)).astype("f")
    args = numpy.asarray(a), numpy.asarray(x)
    times = {}
    for name, fun in functions(lax, module.jit, module.grad).items():
        out = fun(*args)
        np.save(folder / f"{framework} {name}.npy", np.asarray(out))
        taken = []
        for _ in range(CALLS):
            start = time.perf_counter()
            module.block_until_ready(fun(*args))
            taken.append(time.perf_counter() - start)
        times[name] = 1e3 * statistics.median(taken)
    print(json.dumps(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--count", type=int, default=2**18)
    parser.add_argument("--out")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work[0], options.count, Path(options.work[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        turns: dict[str, list[dict[str, float]]] = {name: [] for name in FRAMEWORKS}
        for _ in range(TURNS):
            for name in FRAMEWORKS:
                python = sys.executable if name == "functrans" else options.peer_python
                done = subprocess.run(
                    [python, __file__, "--count", str(options.count), "--work", name, folder],
                    capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    turns[name].append(json.loads(done.stdout))
                elif name == "functrans":
                    sys.exit(done.stderr)
        rows = []
        for name in turns["functrans"][0]:
            row: dict[str, Any] = {"function": name}
            for side, found in turns.items():
                if found:
                    row[side] = statistics.median(turn[name] for turn in found)
            if turns["jax"]:
                ours, theirs = (np.load(Path(folder) / f"{side} {name}.npy").astype("f8")
                                for side in FRAMEWORKS)
                row["difference"] = float(np.nanmax(
                    np.abs(ours - theirs) / np.maximum(np.abs(theirs), 0.1)))
            rows.append(row)
    for row in rows:
        print("  ".join([f"{row['function']:28}", *[f"{side} {row[side]:8.2f} ms"
                         for side in FRAMEWORKS if side in row],
                         f"{row.get('difference', 0):.1e}"]))
    if options.out:
        Path(options.out).write_text(json.dumps({"count": options.count, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
