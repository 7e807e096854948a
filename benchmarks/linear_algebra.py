"""Linear algebra on one GPU by kernels and products, beside CUDA's libraries and PyTorch.

    python benchmarks/linear_algebra.py [--dry] [--only WORD]

Each row is an operation on a stack of matrices, in microseconds: as functrans chooses, with
cuSOLVER and cuBLAS for all of it, and by torch.linalg. Figures of `schedule/target.py` come from
these: `small_system_rate` and `small_system_round` from the first column, `library_call` and
`library_element` from the second, `triangular_row` and `triangular_rate` from triangular systems.
The last rows are programs. Each choice runs in a process and with a cache of its own. --dry runs
small sizes on the CPU, for the script itself.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

FORMS = ("chosen", "library", "torch")
SIZES = (2, 4, 8, 16, 32, 48, 64)
COUNT = 4096
LARGE = ((256, 1), (256, 256), (1024, 1), (1024, 1024), (2048, 1), (2048, 2048), (4096, 64))
ROUNDS, CALLS = 7, 20


def matrices(count: int, n: int, k: int) -> tuple[Any, ...]:
    """Definite matrices, and right-hand sides."""
    rng = np.random.default_rng(n)
    x = (rng.normal(size=(count, n, n)) / np.sqrt(n)).astype("f")
    a = x @ x.swapaxes(1, 2) + np.eye(n, dtype="f")
    return a, rng.normal(size=(count, n, k)).astype("f")


def rows(dry: bool) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """The title of a row, its operation, and its sizes."""
    for n in SIZES[:3] if dry else SIZES:
        for count in (1, 8 if dry else COUNT):
            for name in ("cholesky", "solve", "inv", "lu", "slogdet", "triangular"):
                yield f"{name}, {count} x {n} x {n}", name, (count, n, 4)
    for n, k in LARGE[:1] if dry else LARGE:
        yield f"triangular, {n} rows, {k} sides", "triangular", (1, n, k)
    yield "likelihood of a Gaussian process and its gradient", "process", (100 if dry else 2048,)
    yield "Kalman filters of 4 x 4, value and gradient", "filter", (8, 4) if dry else (1024, 32)


# --------------------------------------------------------------------------- functrans


def functions(ft: Any) -> dict[str, Callable[..., Any]]:
    from functrans.scipy.linalg import cho_solve  # noqa: PLC0415

    jnp, la = ft.numpy, ft.numpy.linalg

    def likelihood(p: Any, x: Any, y: Any) -> Any:
        distance = jnp.sum((x[:, None] - x[None]) ** 2, -1)
        kernel = jnp.exp(p[1] - 0.5 * distance * jnp.exp(-2 * p[0]))
        factor = la.cholesky(kernel + jnp.exp(p[2]) * jnp.eye(len(x), dtype=x.dtype))
        alpha = cho_solve((factor, True), y)
        return 0.5 * y @ alpha + jnp.sum(jnp.log(jnp.diagonal(factor)))

    def evidence(p: Any, ys: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            m, c = carry
            m, c = p @ m, p @ c @ p.T + 0.1 * jnp.eye(4)
            s, v = c + jnp.eye(4), y - m
            gain = la.solve(s, c).T
            return (m + gain @ v, c - gain @ c), v @ la.solve(s, v) + la.slogdet(s)[1]

        return ft.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), ys)[1].sum()

    return {
        "cholesky": lambda a, b: ft.lax.linalg.cholesky(a, symmetrize_input=False),
        "solve": la.solve, "inv": lambda a, b: la.inv(a), "slogdet": lambda a, b: la.slogdet(a),
        "lu": lambda a, b: ft.lax.linalg.lu(a)[:2],
        "triangular": lambda a, b: ft.lax.linalg.triangular_solve(
            a, b, left_side=True, lower=True),
        "process": ft.value_and_grad(likelihood),
        "filter": ft.value_and_grad(
            lambda p, ys: ft.vmap(evidence, (None, 0))(p, ys).mean()),
    }


def operands(name: str, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    if name == "process":
        (n,) = sizes
        x = rng.normal(size=(n, 3)).astype("f")
        return np.zeros(3, "f"), x, np.sin(x[:, 0])
    if name == "filter":
        return 0.9 * np.eye(4, dtype="f"), rng.normal(size=(*sizes, 4)).astype("f")
    return matrices(*sizes)  # type: ignore[arg-type]  # two or three sizes, as its row says


def by_functrans(form: str, dry: bool) -> Callable[[str, tuple[int, ...]], float]:
    import functrans as ft  # noqa: PLC0415

    if form == "library":
        from functrans.lowering.schedule.plans import GPU  # noqa: PLC0415
        from functrans.lowering.triton.libraries import replace  # noqa: PLC0415

        replace.is_small_and_fast = lambda eqn, target: False
        GPU.algebra.clear()  # type: ignore[attr-defined]  # a Mapping, which is a dict here
    known = functions(ft)
    place = (lambda x: x) if dry else (lambda x: ft.device_put(x, "gpu"))

    def run(name: str, sizes: tuple[int, ...]) -> float:
        arrays = [place(x) for x in operands(name, sizes)]
        return median(ft.jit(known[name]), arrays, ft.block_until_ready)

    return run


def by_torch(dry: bool) -> Callable[[str, tuple[int, ...]], float]:
    import torch  # noqa: PLC0415

    device = "cpu" if dry else "cuda"
    la = torch.linalg
    known = {"cholesky": lambda a, b: la.cholesky(a), "solve": la.solve,
             "inv": lambda a, b: la.inv(a), "slogdet": lambda a, b: la.slogdet(a),
             "lu": lambda a, b: la.lu_factor(a),
             "triangular": lambda a, b: la.solve_triangular(a, b, upper=False)}

    def wait(_: Any) -> None:
        if not dry:
            torch.cuda.synchronize()

    def run(name: str, sizes: tuple[int, ...]) -> float:
        if name not in known:
            return float("nan")
        arrays = [torch.from_numpy(x).to(device) for x in operands(name, sizes)]
        return median(known[name], arrays, wait)

    return run


def median(fun: Callable[..., Any], arrays: list[Any], wait: Callable[[Any], Any]) -> float:
    """Microseconds of a call, of many in a row."""
    for _ in range(3):
        wait(fun(*arrays))
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            out = fun(*arrays)
        wait(out)
        found.append((time.perf_counter() - start) / CALLS)
    return statistics.median(found) * 1e6


# --------------------------------------------------------------------------- the table


def measured(form: str, dry: bool, only: str) -> None:
    """Print a line of JSON for each row: in a process of its own."""
    run = by_torch(dry) if form == "torch" else by_functrans(form, dry)
    for title, name, sizes in rows(dry):
        if only in title:
            print(json.dumps([title, run(name, sizes)]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--form", choices=FORMS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.form:
        measured(given.form, given.dry, given.only)
        return
    table: dict[str, dict[str, float]] = {}
    for form in FORMS:
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, __file__, "--form", form, "--only", given.only,
                       *["--dry"] * given.dry]
            done = subprocess.run(command, env={**os.environ, "XDG_CACHE_HOME": cache},
                                  stdout=subprocess.PIPE, text=True, check=False)
        for line in done.stdout.splitlines():
            title, value = json.loads(line)
            table.setdefault(title, {})[form] = value
    print(f"{'us':56}" + "".join(f"{form:>12}" for form in FORMS))
    for title, found in table.items():
        print(f"{title:56}" + "".join(f"{found.get(form, float('nan')):12.1f}" for form in FORMS))


if __name__ == "__main__":
    main()
