"""Where the first call of a long program spends its time, phase by phase, beside JAX's first call.

`python benchmarks/long_programs.py [--quick] [--jax PYTHON] [--deep 96]`: chains of 100 to 100,000
operations written as Python loops, and their gradients, each in a new process with an empty cache.
Processor time in seconds, which other work on the machine changes little; JAX's is of all its
threads, by the interpreter PYTHON, which has it. A program that takes longer than a minute is given
up. With --deep, the gradient of a transformer of so many layers instead, written as a Python loop
and as a scan over stacked parameters: the first call and a later one.
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
DEEP = (64, 128)  # positions, features
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

    def transformer(x: Any, params: Any) -> Any:
        for p in params:
            x = transformer_block(library, x, p)
        return x

    if kind == "layers":
        return layers, (array(64, 64), [(array(64, 64), array(64)) for _ in range(size // 4)])
    if kind == "transformer":
        blocks = [block_parameters(array, 64) for _ in range(size // 60)]
        return transformer, (array(32, 64), blocks)
    x = np.float32(0.5) if kind == "scalar" else array(64, 64)
    return {"varied": varied, "reductions": reductions}.get(kind, elementwise), (x,)


def transformer_block(library: Any, x: Any, p: Any) -> Any:
    """Attention of four heads and a layer of four times the width, each behind a norm."""
    xp, (positions, width) = library.numpy, x.shape
    heads = (positions, 4, width // 4)

    def normal(x: Any, scale: Any) -> Any:
        x = x - xp.mean(x, -1, keepdims=True)
        return x / xp.sqrt(xp.mean(x * x, -1, keepdims=True) + 1e-5) * scale

    y = normal(x, p["scale"])
    query, key, value = (xp.swapaxes((y @ p[n]).reshape(heads), 0, 1) for n in "qkv")
    scores = query @ xp.swapaxes(key, -1, -2) / (width // 4) ** 0.5
    weights = library.nn.softmax(scores, axis=-1)
    x = x + xp.swapaxes(weights @ value, 0, 1).reshape(positions, width) @ p["mix"]
    return x + library.nn.gelu(normal(x, p["shift"]) @ p["wide"]) @ p["narrow"]


def block_parameters(array: Callable[..., np.ndarray], width: int) -> dict[str, np.ndarray]:
    return {"scale": np.ones(width, np.float32), "shift": np.ones(width, np.float32),
            **{n: array(width, width) for n in ("q", "k", "v", "mix")},
            "wide": array(width, 4 * width), "narrow": array(4 * width, width)}


def deep(form: str, layers: int, library: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The gradient of `layers` blocks to their parameters, by a Python loop or by a scan."""
    rng = np.random.default_rng(0)

    def array(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    def by_loop(params: Any, x: Any) -> Any:
        for p in params:
            x = transformer_block(library, x, p)
        return (x * x).mean()

    def by_scan(params: Any, x: Any) -> Any:
        x, _ = library.lax.scan(lambda x, p: (transformer_block(library, x, p), None), x, params)
        return (x * x).mean()

    x, blocks = array(DEEP[0], DEEP[1]), [block_parameters(array, DEEP[1]) for _ in range(layers)]
    if form == "loop":
        return library.grad(by_loop), (blocks, x)
    stacked = {name: np.stack([b[name] for b in blocks]) for name in blocks[0]}
    return library.grad(by_scan), (stacked, x)


def deep_seconds(library_name: str, form: str, layers: int) -> dict[str, float]:
    """Of the first call, and of a later one."""
    library = importlib.import_module(library_name)
    for name in ("numpy", "nn", "lax"):
        importlib.import_module(f"{library_name}.{name}")
    few, small = deep(form, 2, library)
    library.block_until_ready(library.jit(few)(*small))
    f, args = deep(form, layers, library)
    args = library.tree.map(library.numpy.asarray, args)
    compiled, times = library.jit(f), []
    for _ in range(8):
        start, begin = time.perf_counter(), processor_time()
        library.block_until_ready(compiled(*args))
        times.append((time.perf_counter() - start, processor_time() - begin))
    later = sorted(wall for wall, _ in times[1:])
    return {"wall": times[0][0], "all": times[0][1], "later": later[len(later) // 2],
            "least": later[0]}


def show_deep(layers: int, jax: str | None) -> None:
    """Print the rows of deep programs."""
    print(f"gradient of {layers} blocks, {DEEP[0]} positions of {DEEP[1]} features\n"
          "| library | layers by | first call, s | its processor time, s | a call, ms | fastest |\n"
          "|---|---|---|---|---|---|")
    for library, python in (("functrans", sys.executable), ("jax", jax)):
        for form in ("loop", "scan"):
            found = python and child(python, library, f"deep {form}", layers, True, 4 * LONGEST)
            cells = "more than 4 minutes | | |" if not found else \
                f"{found['wall']:.2f} | {found['all']:.2f} | {found['later'] * 1e3:.1f} | " \
                f"{found['least'] * 1e3:.1f} |"
            if python:
                print(f"| {library} | {form} | {cells}", flush=True)


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


def child(python: str, library: str, kind: str, size: int, gradient: bool,
          longest: float = LONGEST) -> dict[str, float] | None:
    """The seconds of a program in a fresh process; None where it takes too long."""
    with tempfile.TemporaryDirectory() as empty:
        try:
            done = subprocess.run(
                [python, __file__, "--child", library, kind, str(size), str(int(gradient))],
                capture_output=True, text=True, timeout=longest, check=True,
                env=os.environ | {"XDG_CACHE_HOME": empty})
        except subprocess.TimeoutExpired:
            return None
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="programs of up to 1,000 operations")
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter that has JAX")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--deep", metavar="LAYERS", type=int, help="transformers of so many layers")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        library, kind, size, gradient = options.child
        if kind.startswith("deep "):
            print(json.dumps(deep_seconds(library, kind.split()[1], int(size))))
            return
        measure = phases if library == "functrans" else jax_phases
        print(json.dumps(measure(kind, int(size), gradient == "1")))
        return
    if options.deep:
        show_deep(options.deep, options.jax)
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
