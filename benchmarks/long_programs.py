"""Where the first call of a long program spends its time, phase by phase, beside JAX's first call.

`python benchmarks/long_programs.py [--quick] [--jax PYTHON]`: chains of 100 to 100,000 operations
written as Python loops, and their gradients, each in a fresh process with an empty cache. Processor
time in seconds, which other work on the machine changes little; JAX's is of all its threads, by the
interpreter PYTHON, which has it. A program that takes longer than a minute is given up.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SIZES = (100, 1000, 10_000, 100_000)
LONGEST = 60.0
PHASES = ("tracing", "passes", "graph", "schedule", "text", "compiler")
KINDS = {
    "elementwise": "sin, *: one array of 64 x 64",
    "varied": "eight functions in random order, other constants each time",
    "reductions": "tanh, minus the mean of the rows",
    "layers": "tanh(x @ w + b), 64 x 64, parameters of their own",
    "transformer": "blocks of 64 features, 32 positions",
    "scalar": "sin, * of a number",
}


def make(kind: str, size: int, library: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A chain of about `size` operations, and its arguments."""
    xp, rng = library.numpy, np.random.default_rng(0)

    def array(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    def elementwise(x: Any) -> Any:
        for _ in range(size // 2):
            x = xp.sin(x) * 1.01
        return x

    functions = [
        lambda v, c: xp.sin(v), lambda v, c: xp.cos(v), lambda v, c: xp.tanh(v),
        lambda v, c: xp.exp(-v * v), lambda v, c: v * c, lambda v, c: v + c,
        lambda v, c: c / (2 + v * v), lambda v, c: xp.maximum(v, c)]

    def varied(x: Any) -> Any:
        draw = np.random.default_rng(1)
        for _ in range(size):
            x = functions[draw.integers(8)](x, float(draw.random()))
        return x

    def reductions(x: Any) -> Any:
        for _ in range(size // 5):
            x = xp.tanh(x)
            x = x - xp.mean(x, axis=-1, keepdims=True)
        return x

    def layers(x: Any, params: Any) -> Any:
        for weight, bias in params:
            x = xp.tanh(x @ weight + bias)
        return x

    def normal(x: Any, scale: Any) -> Any:
        x = x - xp.mean(x, -1, keepdims=True)
        return x / xp.sqrt(xp.mean(x * x, -1, keepdims=True) + 1e-5) * scale

    def transformer(x: Any, params: Any) -> Any:
        for p in params:
            y = normal(x, p["scale"])
            query, key, value = (xp.swapaxes((y @ p[n]).reshape(32, 4, 16), 0, 1) for n in "qkv")
            weights = library.nn.softmax(query @ xp.swapaxes(key, -1, -2) / 4.0, axis=-1)
            x = x + xp.swapaxes(weights @ value, 0, 1).reshape(32, 64) @ p["mix"]
            x = x + library.nn.gelu(normal(x, p["shift"]) @ p["wide"]) @ p["narrow"]
        return x

    if kind == "layers":
        return layers, (array(64, 64), [(array(64, 64), array(64)) for _ in range(size // 4)])
    if kind == "transformer":
        blocks = [{"scale": np.ones(64, np.float32), "shift": np.ones(64, np.float32),
                   **{n: array(64, 64) for n in ("q", "k", "v", "mix")},
                   "wide": array(64, 256), "narrow": array(256, 64)} for _ in range(size // 60)]
        return transformer, (array(32, 64), blocks)
    x = np.float32(0.5) if kind == "scalar" else array(64, 64)
    return {"varied": varied, "reductions": reductions}.get(kind, elementwise), (x,)


def program(kind: str, size: int, gradient: bool, library: Any) -> tuple[Any, tuple[Any, ...]]:
    f, args = make(kind, size, library)
    if gradient:
        return library.grad(lambda *xs: library.numpy.sum(f(*xs))), args
    return f, args


def processor_time() -> float:
    return sum(os.times()[:4])


def phases(kind: str, size: int, gradient: bool) -> dict[str, float]:
    """Seconds of processor time of each phase, and how many equations there are."""
    ft = importlib.import_module("functrans")
    lower = importlib.import_module("functrans.lowering.c.lower")
    functions = importlib.import_module("functrans.lowering.c.functions")
    found = dict.fromkeys(PHASES, 0.0)

    def timed(module: Any, name: str, phase: str) -> None:
        inner = getattr(module, name)

        def outer(*args: Any, **kwargs: Any) -> Any:
            start = processor_time()
            try:
                return inner(*args, **kwargs)
            finally:
                found[phase] += processor_time() - start

        setattr(module, name, outer)

    f, args = program(kind, size, gradient, ft)
    small, few = program(kind, 120, gradient, ft)
    ft.jit(small)(*few)  # imports, and the first use of the compiler
    timed(lower, "simplify", "passes")
    timed(lower, "graph_with_lanes", "graph")
    timed(functions.FunctionForms, "schedule", "schedule")
    timed(lower, "write_program", "text")
    timed(lower, "compile_shared", "compiler")
    start, begin = time.perf_counter(), processor_time()
    compiled = ft.jit(f)
    ft.block_until_ready(compiled(*ft.tree.map(ft.numpy.asarray, args)))
    wall, all_time = time.perf_counter() - start, processor_time() - begin
    found["text"] -= found["schedule"]
    found["tracing"] = all_time - sum(found.values())
    equations = len(compiled.lower(*args).jaxpr.eqns)
    return {**found, "wall": wall, "all": all_time, "equations": equations}


def jax_phases(kind: str, size: int, gradient: bool) -> dict[str, float]:
    """The same of JAX, whose first call is not divided."""
    jax = importlib.import_module("jax")
    f, args = program(kind, size, gradient, jax)
    small, few = program(kind, 120, gradient, jax)
    jax.jit(small)(*few)
    start, begin = time.perf_counter(), processor_time()
    jax.block_until_ready(jax.jit(f)(*args))
    return {"wall": time.perf_counter() - start, "all": processor_time() - begin}


def child(python: str, library: str, kind: str, size: int,
          gradient: bool) -> dict[str, float] | None:
    """The seconds of a program in a fresh process; None where it takes too long."""
    with tempfile.TemporaryDirectory() as empty:
        try:
            done = subprocess.run(
                [python, __file__, "--child", library, kind, str(size), str(int(gradient))],
                capture_output=True, text=True, timeout=LONGEST, check=True,
                env=os.environ | {"XDG_CACHE_HOME": empty})
        except subprocess.TimeoutExpired:
            return None
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="programs of up to 1,000 operations")
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter that has JAX")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        library, kind, size, gradient = options.child
        measure = phases if library == "functrans" else jax_phases
        print(json.dumps(measure(kind, int(size), gradient == "1")))
        return
    print(f"| program | operations | equations | {' | '.join(PHASES)} | all | wall "
          "| ms an equation | JAX, all | wall |")
    print("|" + "---|" * (len(PHASES) + 8))
    sizes = SIZES[:2] if options.quick else SIZES
    for kind in options.kinds:
        for gradient in (False, True):
            beside = options.jax
            for size in sizes:
                own = child(sys.executable, "functrans", kind, size, gradient)
                peer = child(beside, "jax", kind, size, gradient) if beside else None
                beside = beside if peer else None
                name = f"{kind}{', gradient' if gradient else ''}"
                if own is None:
                    print(f"| {name} | {size:,} | more than {LONGEST:.0f} s |")
                    break
                cells = [f"{own['equations']:,.0f}", *(f"{own[p]:.2f}" for p in PHASES),
                         f"{own['all']:.2f}", f"{own['wall']:.2f}",
                         f"{1e3 * own['all'] / max(own['equations'], 1):.2f}",
                         *([f"{peer['all']:.2f}", f"{peer['wall']:.2f}"] if peer else ["", ""])]
                print(f"| {name} | {size:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
