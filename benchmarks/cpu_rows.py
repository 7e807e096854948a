"""Rows that the other tables have no place for: derivatives of lanes of a loop, and accurate sums.

    python benchmarks/cpu_rows.py [--rounds N] [--no-write]

Derivatives of Newton's method in a `while_loop`, over 512 lanes, beside JAX; and sums of 10**8
float32, with how far each library is off the sum in float64. Calls of the libraries alternate; the
fastest of each is kept, which neighbours on the same cores disturb least.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import PEERS, RESULTS, load, processor, results_path, versions

LANES, TERMS = 512, 10**8
Calls = dict[str, Callable[[], Any]]


def library(name: str) -> Any:
    """functrans or JAX, with the modules that are used here."""
    for part in ("numpy", "lax"):
        importlib.import_module(f"{name}.{part}")
    return importlib.import_module(name)


def anomaly(lib: Any) -> Callable[[Any], Any]:
    """Kepler's equation by Newton's method, as often as each lane needs it; its derivative."""
    def solve(mean: Any) -> Any:
        def goes_on(state: Any) -> Any:
            _, change, count = state
            return (abs(change) > 1e-6) & (count < 50)

        def step(state: Any) -> Any:
            e, _, count = state
            change = (e - 0.5 * lib.numpy.sin(e) - mean) / (1 - 0.5 * lib.numpy.cos(e))
            return e - change, change, count + 1

        return lib.lax.while_loop(goes_on, step, (mean, mean * 0 + 1.0, 0))[0]

    return lib.jit(lib.vmap(lib.jacfwd(solve)))


def derivatives() -> tuple[Calls, dict[str, float]]:
    """Calls, and the largest error of each against the derivative in closed form."""
    mean = np.linspace(0.1, 3, LANES).astype(np.float32)
    exact = mean.astype(np.float64)
    for _ in range(50):
        exact -= (exact - 0.5 * np.sin(exact) - mean) / (1 - 0.5 * np.cos(exact))
    exact = 1 / (1 - 0.5 * np.cos(exact))
    calls, errors = {}, {}
    for name in ("functrans", "jax"):
        lib = library(name)
        f, x = anomaly(lib), lib.numpy.asarray(mean)
        calls[name] = lambda f=f, x=x: f(x).block_until_ready()
        errors[name] = float(np.abs(np.asarray(f(x)) - exact).max())
    return calls, errors


def sums() -> tuple[Calls, dict[str, float]]:
    """Calls, and how far each is off, of the sum."""
    x = np.random.default_rng(0).random(TERMS, np.float32)
    exact = float(np.sum(x, dtype=np.float64))
    torch = importlib.import_module("torch")
    tensor = torch.from_numpy(x)
    calls: Calls = {"numpy": x.sum, "torch": tensor.sum}
    for name in ("functrans", "jax"):
        lib = library(name)
        total, array = lib.jit(lib.numpy.sum), lib.numpy.asarray(x)
        calls[name] = lambda total=total, array=array: total(array).block_until_ready()
    return calls, {name: abs(float(call()) - exact) / exact for name, call in calls.items()}


ROWS = {f"vmap(jacfwd(while_loop)), {LANES} lanes": derivatives, "sum of 10**8 float32": sums}


def measured(title: str, rounds: int) -> dict[str, Any]:
    """The fastest call of each library, of `rounds` that alternate."""
    calls, errors = ROWS[title]()
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return {"title": title, "fastest": best, "errors": errors}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--no-write", action="store_true")
    known = parser.parse_args()
    before, rows = load(), []
    for title in ROWS:
        rows.append(measured(title, known.rounds))
        for name, seconds in sorted(rows[-1]["fastest"].items(), key=lambda found: found[1]):
            print(f"{title}: {name} {seconds * 1e6:.4g} us, off by {rows[-1]['errors'][name]:.1e}")
    if not known.no_write:
        RESULTS.mkdir(exist_ok=True)
        results_path("cpu-rows").write_text(json.dumps({
            "date": datetime.date.today().isoformat(),
            "device": {"processor": processor(), "cores": os.cpu_count()},
            "versions": versions(["functrans", *PEERS]), "load_before": round(before, 2),
            "unit": "seconds, fastest", "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
