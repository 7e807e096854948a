"""What functrans costs before it computes: eager calls, the call path of jit, transforms, tracing.

    python benchmarks/overheads.py [--rounds 300] [--only WORD]

JAX and PyTorch are measured in the same rounds where they are installed. Results go to
benchmarks/results/; the exit status is 1 if a bound is missed. Close other programs first.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np
from harness import (
    SUBJECT,
    Case,
    Row,
    Timing,
    load,
    measure,
    optional_module,
    print_table,
    summarise,
    write_results,
)
from traced_programs import (
    make_mlp_loss,
    make_tanh_loss,
    make_transformer_loss,
    mlp_arguments,
    nested_grad,
    small_tree,
    transformer_arguments,
)

import functrans as ft

jax = optional_module("jax")
torch = optional_module("torch")
LARGE = 2**22
IMPORT_BOUND = 0.25
LAZY_MODULES = ("sympy", "triton", "scipy")


def libraries() -> dict[str, ModuleType]:
    """The libraries with JAX's names: functrans, and JAX where it is installed."""
    return {SUBJECT: ft} if jax is None else {SUBJECT: ft, "jax": jax}


def elementwise_cases() -> list[Case]:
    """One operation on 8 floats, each library called directly."""
    x, y = np.linspace(0, 1, 8, dtype=np.float32), np.linspace(1, 2, 8, dtype=np.float32)
    sin, add = {}, {}
    for name, library in libraries().items():
        xp = library.numpy
        names = {"sin": xp.sin, "x": xp.asarray(x), "y": xp.asarray(y)}
        sin[name] = Timing("sin(x).block_until_ready()", names)
        add[name] = Timing("(x + y).block_until_ready()", names)
    if torch is not None:
        names = {"sin": torch.sin, "x": torch.from_numpy(x), "y": torch.from_numpy(y)}
        sin["torch"], add["torch"] = Timing("sin(x)", names), Timing("x + y", names)
    names = {"sin": np.sin, "x": x, "y": y}
    sin["numpy"], add["numpy"] = Timing("sin(x)", names), Timing("x + y", names)
    return [Case("eager sin(x), 8 floats", sin, 1.2e-6), Case("eager x + y, 8 floats", add, 1.2e-6)]


def add_one(library: ModuleType) -> Callable:
    """One more on every leaf of a tree."""
    return lambda tree: library.tree.map(lambda leaf: leaf + 1, tree)


def jit_cases() -> list[Case]:
    """The call of a compiled function that does nothing, and JAX also where it adds one."""
    x = np.linspace(0, 1, 8, dtype=np.float32)
    one: dict[str, Timing] = {}
    many: dict[str, Timing] = {}
    for name, library in libraries().items():
        names = {
            "same": library.jit(lambda tree: tree),
            "more": library.jit(add_one(library)),
            "x": library.numpy.asarray(x),
            "tree": small_tree(library.numpy.asarray),
        }
        # One leaf is waited for: the leaves of a call are ready together.
        one[name] = Timing("same(x).block_until_ready()", names)
        many[name] = Timing("same(tree)[-1]['bias'].block_until_ready()", names)
        if name != SUBJECT:
            one[f"{name} x + 1"] = Timing("more(x).block_until_ready()", names)
            many[f"{name} x + 1"] = Timing("more(tree)[-1]['bias'].block_until_ready()", names)
    return [
        Case("jit call path, 8 floats", one, 1.5e-6),
        Case("jit call path, tree of 50 arrays", many, 15e-6),
    ]


def gradient_cases() -> list[Case]:
    """Eager grad and vmap(grad) of sum(tanh(x @ w)**2), and five nested grads."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((8, 8)).astype(np.float32)
    x = rng.standard_normal((8, 8)).astype(np.float32)
    batch = rng.standard_normal((8, 8, 8)).astype(np.float32)
    single: dict[str, Timing] = {}
    batched: dict[str, Timing] = {}
    nested: dict[str, Timing] = {}
    for name, library in libraries().items():
        xp = library.numpy
        names = {
            "grad": library.grad,
            "vmap": library.vmap,
            "loss": make_tanh_loss(xp),
            "w": xp.asarray(w),
            "x": xp.asarray(x),
            "batch": xp.asarray(batch),
            "point": xp.asarray(np.float32(0.3)),
            "nested": nested_grad(library.grad, lambda t, xp=xp: xp.sin(xp.tanh(t)), 5),
        }
        single[name] = Timing("grad(loss)(w, x).block_until_ready()", names)
        batched[name] = Timing(
            "vmap(grad(loss), in_axes=(None, 0))(w, batch).block_until_ready()", names
        )
        nested[name] = Timing("nested(point).block_until_ready()", names)
    if torch is not None:
        add_torch_gradients(single, batched, nested, w, x, batch)
    return [
        Case("eager grad of sum(tanh(x @ w)**2), 8x8", single, 0.12e-3),
        Case("eager vmap(grad) of it, 8 samples", batched, 0.25e-3),
        Case("five nested grads of sin(tanh(x))", nested, 8e-3),
    ]


def add_torch_gradients(single, batched, nested, w, x, batch) -> None:
    """PyTorch's columns: torch.func, and for one gradient torch.autograd too."""
    loss = make_tanh_loss(torch)
    leaf = torch.from_numpy(w.copy()).requires_grad_()
    names = {
        "grad": torch.func.grad,
        "vmap": torch.func.vmap,
        "autograd": torch.autograd.grad,
        "loss": loss,
        "leaf": leaf,
        "w": torch.from_numpy(w),
        "x": torch.from_numpy(x),
        "batch": torch.from_numpy(batch),
        "point": torch.tensor(0.3),
        "nested": nested_grad(torch.func.grad, lambda t: torch.sin(torch.tanh(t)), 5),
    }
    single["torch.func"] = Timing("grad(loss)(w, x)", names)
    single["torch autograd"] = Timing("autograd(loss(leaf, x), leaf)", names)
    batched["torch.func"] = Timing("vmap(grad(loss), in_dims=(None, 0))(w, batch)", names)
    nested["torch.func"] = Timing("nested(point)", names)


def tracing_cases() -> list[Case]:
    """make_jaxpr of value_and_grad; a new function every time, since the libraries cache by it."""
    statement = "make_jaxpr(value_and_grad(lambda p, x, y: loss(p, x, y)))(params, x, y)"
    programs = [
        ("trace value_and_grad, 12-layer MLP", make_mlp_loss, mlp_arguments(), 7e-3),
        (
            "trace value_and_grad, 4-block transformer",
            make_transformer_loss,
            transformer_arguments(),
            30e-3,
        ),
    ]
    cases = []
    for title, make_loss, arguments, bound in programs:
        timings = {}
        for name, library in libraries().items():
            params, x, y = library.tree.map(library.numpy.asarray, arguments)
            timings[name] = Timing(
                statement,
                {
                    "make_jaxpr": library.make_jaxpr,
                    "value_and_grad": library.value_and_grad,
                    "loss": make_loss(library.numpy),
                    "params": params,
                    "x": x,
                    "y": y,
                },
            )
        cases.append(Case(title, timings, bound))
    return cases


def large_cases() -> list[Case]:
    """Eager arithmetic on arrays that do not fit the caches; the bound is NumPy's time."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(LARGE).astype(np.float32) for _ in range(2))
    statements = {"add": "add(x, y)", "tanh": "tanh(x)", "sum": "sum(x)"}
    cases = []
    for operation, statement in statements.items():
        timings = {}
        for name, library in libraries().items():
            xp = library.numpy
            names = {operation: getattr(xp, operation), "x": xp.asarray(x), "y": xp.asarray(y)}
            timings[name] = Timing(f"{statement}.block_until_ready()", names)
        if torch is not None:
            names = {operation: getattr(torch, operation)}
            names |= {"x": torch.from_numpy(x), "y": torch.from_numpy(y)}
            timings["torch"] = Timing(statement, names)
        timings["numpy"] = Timing(statement, {operation: getattr(np, operation), "x": x, "y": y})
        cases.append(Case(f"eager {operation}, 2^22 floats", timings, "numpy"))
    return cases


def import_seconds(module: str) -> float:
    """Seconds that `import module` takes in a new process."""
    code = (
        "import time; start = time.perf_counter(); "
        f"import {module}; print(time.perf_counter() - start)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def modules_after_import() -> list[str]:
    """Those of LAZY_MODULES that `import functrans` brings in: there should be none."""
    code = f"import sys, functrans; print(*(m for m in {LAZY_MODULES} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def import_row(rounds: int) -> Row:
    """Import time of each library, in new processes, interleaved."""
    modules = [SUBJECT, "numpy"]
    modules += [name for name, module in (("jax", jax), ("torch", torch)) if module is not None]
    for name in modules:
        import_seconds(name)
    samples: dict[str, list[float]] = {name: [] for name in modules}
    for _ in range(rounds):
        for name in modules:
            samples[name].append(import_seconds(name))
    return summarise("import", samples, IMPORT_BOUND)


def main() -> int:
    parser = argparse.ArgumentParser(description="Overheads of functrans beside its peers.")
    parser.add_argument("--rounds", type=int, default=300, help="interleaved rounds a row, at most")
    parser.add_argument("--only", default="", help="only rows whose title contains this")
    parser.add_argument("--no-write", action="store_true", help="leave the results file alone")
    options = parser.parse_args()

    busy = load()
    if busy > 0.5:
        print(f"The machine is busy (load {busy:.1f}): the figures will be too high.")
    families = (elementwise_cases, jit_cases, gradient_cases, tracing_cases, large_cases)
    cases = [case for family in families for case in family() if options.only in case.title]
    rows = []
    for case in cases:
        print(f"... {case.title}", file=sys.stderr, flush=True)
        rows.append(measure(case, options.rounds))
    eager_imports: list[str] = []
    if options.only in "import":
        rows.append(import_row(rounds=max(3, options.rounds // 30)))
        eager_imports = modules_after_import()
        if eager_imports:
            rows[-1].note = f"FAIL: import functrans also imports {', '.join(eager_imports)}"
        else:
            rows[-1].note = f"imports none of {', '.join(LAZY_MODULES)}"
    print_table(rows)
    if not options.only and not options.no_write:
        print(f"\nwritten: benchmarks/results/{write_results('overheads', rows, busy).name}")
    return 0 if all(row.passed for row in rows) and not eager_imports else 1


if __name__ == "__main__":
    sys.exit(main())
