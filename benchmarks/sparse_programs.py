"""Programs on sparse arrays beside SciPy, and beside JAX where it is installed, on one CPU.

    python benchmarks/sparse_programs.py [--quick] [--only WORD] [--busy]

Programs that nobody tuned for: ranking of pages, smoothing of a graph, finite elements, a graph
network with its gradient, Newton's method on a nonlinear equation, factors of observed elements,
diffusion in a changing medium, and particles on a grid. One source serves JAX and
functrans, under jit, in float64; the NumPy and SciPy that a user would write stands beside it.
Each row first compares all results. Times are milliseconds, the median of rounds in which the
libraries take turns, and results go to benchmarks/results/ unless the run is quick or of some rows.
On a machine that is busy, `--busy` gives all libraries one thread and takes the time of the
processor.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from harness import results_path

import functrans as ft
import functrans.scipy.sparse.linalg
from functrans.experimental import sparse

Call = Callable[[], Any]
TOLERANCE = 1e-6


class Library(NamedTuple):
    """What the programs take from a library."""

    numpy: Any
    lax: Any
    sparse: Any
    cg: Any
    value_and_grad: Any
    nn: Any


class Program(NamedTuple):
    """A function of a library, its arguments, and the same on NumPy and SciPy."""

    make: Callable[[Library], Callable[..., Any]]
    args: Callable[[Any], tuple[Any, ...]]
    scipy: Call


def links(n: int, nse: int, seed: int) -> Any:
    """A random graph whose nodes differ in their number of links, as 0-1 matrix."""
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, n + 1) ** 0.7
    to, of = rng.choice(n, nse, p=weights / weights.sum()), rng.integers(0, n, nse)
    found = scipy.sparse.coo_matrix((np.ones(nse), (to, of)), shape=(n, n)).tocsr()
    found.data[:] = 1.0
    return found


def page_rank(n: int = 50_000, nse: int = 500_000, steps: int = 40) -> Program:
    """Power iteration with jumps; pages without links jump anywhere."""
    a = links(n, nse, 0)
    out = np.asarray(a.sum(0)).ravel()
    a = (a @ scipy.sparse.diags_array(1 / np.maximum(out, 1))).tocsr()
    a.sort_indices()
    dangling = (out == 0).astype(float)

    def make(lib: Library) -> Any:
        jnp = lib.numpy

        def step(_: Any, r: Any, a: Any, dangling: Any) -> Any:
            return 0.85 * (a @ r + (dangling @ r) / n) + 0.15 / n

        def rank(a: Any, dangling: Any) -> Any:
            return lib.lax.fori_loop(0, steps, lambda i, r: step(i, r, a, dangling),
                                     jnp.full((n,), 1 / n, "float64"))
        return rank

    def by_scipy() -> Any:
        r = np.full(n, 1 / n)
        for _ in range(steps):
            r = 0.85 * (a @ r + (dangling @ r) / n) + 0.15 / n
        return r

    return Program(make, lambda s: (s.BCSR.from_scipy_sparse(a), dangling), by_scipy)


def smoothing(n: int = 20_000, neighbours: int = 8, steps: int = 20) -> Program:
    """Taubin's smoothing of points in space, by a Laplacian that is made of their distances."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, 3))
    i = np.repeat(np.arange(n), neighbours).astype(np.int32)
    j = ((i + rng.integers(1, 200, len(i))) % n).astype(np.int32)
    rows, columns = np.r_[i, j], np.r_[j, i]

    def make(lib: Library) -> Any:
        jnp = lib.numpy

        def smooth(x: Any, rows: Any, columns: Any) -> Any:
            w = jnp.exp(-0.1 * jnp.sum((x[rows] - x[columns]) ** 2, axis=1))
            a = lib.sparse.BCOO((w, jnp.stack([rows, columns], axis=1)), shape=(n, n))
            degree = a @ jnp.ones((n,), "float64")

            def step(_: Any, x: Any) -> Any:
                for factor in (0.5, -0.53):
                    x = x + factor * ((a @ x) / degree[:, None] - x)
                return x
            return lib.lax.fori_loop(0, steps, step, x)
        return smooth

    def by_scipy() -> Any:
        w = np.exp(-0.1 * ((x[rows] - x[columns]) ** 2).sum(1))
        a = scipy.sparse.coo_matrix((w, (rows, columns)), shape=(n, n)).tocsr()
        degree = (a @ np.ones(n))[:, None]
        y = x
        for _ in range(steps):
            for factor in (0.5, -0.53):
                y = y + factor * ((a @ y) / degree - y)
        return y

    return Program(make, lambda s: (x, rows, columns), by_scipy)


def triangles(n: int) -> Any:
    """A square of n x n points, cut into triangles: the places of the points, and their numbers."""
    at = np.stack(np.meshgrid(*[np.linspace(0, 1, n)] * 2, indexing="ij"), -1).reshape(-1, 2)
    k = np.arange(n * n).reshape(n, n)
    a, b, c, d = (v.ravel() for v in (k[:-1, :-1], k[1:, :-1], k[:-1, 1:], k[1:, 1:]))
    return at, np.concatenate([np.stack([a, b, c], 1), np.stack([d, c, b], 1)]).astype(np.int32)


def finite_elements(n: int = 120, steps: int = 60) -> Program:
    """Stiffness of linear triangles put together, and a solution by conjugate gradients."""
    at, cells = triangles(n)
    k = np.random.default_rng(2).uniform(1, 2, len(cells))
    size = n * n
    rows, columns = np.repeat(cells, 3, 1).ravel(), np.tile(cells, 3).ravel()
    room = len(np.unique(rows.astype(np.int64) * size + columns))
    load = np.full(size, 1 / size)

    def local(xp: Any, at: Any, cells: Any, k: Any) -> Any:
        p = at[cells]
        edges = xp.stack([p[:, 2] - p[:, 1], p[:, 0] - p[:, 2], p[:, 1] - p[:, 0]], 1)
        area = 0.5 * xp.abs(edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0])
        stiff = xp.einsum("eik,ejk->eij", edges, edges) * (k / (4 * area))[:, None, None]
        mass = (area / 12)[:, None, None] * (xp.ones((3, 3)) + xp.eye(3))
        return (stiff + 10.0 * mass).reshape(-1)

    def make(lib: Library) -> Any:
        def solve(at: Any, cells: Any, k: Any, rows: Any, columns: Any) -> Any:
            jnp = lib.numpy
            values = local(jnp, at, cells, k)
            a = lib.sparse.BCOO((values, jnp.stack([rows, columns], 1)), shape=(size, size))
            a = lib.sparse.BCSR.from_bcoo(a.sum_duplicates(nse=room))
            return lib.cg(lambda v: a @ v, jnp.asarray(load), tol=0.0, maxiter=steps)[0]
        return solve

    def by_scipy() -> Any:
        a = scipy.sparse.coo_matrix((local(np, at, cells, k), (rows, columns)),
                                    shape=(size, size)).tocsr()
        return scipy.sparse.linalg.cg(a, load, rtol=0.0, maxiter=steps)[0]

    return Program(make, lambda s: (at, cells, k, rows, columns), by_scipy)


def graph_network(n: int = 20_000, nse: int = 200_000, inputs: int = 64, hidden: int = 32,
                  classes: int = 8) -> Program:
    """The loss of two graph convolutions and its gradient in their weights."""
    rng = np.random.default_rng(3)
    a = links(n, nse, 3)
    a = (a + a.T + scipy.sparse.eye_array(n)).tocsr()
    degree = 1 / np.sqrt(np.asarray(a.sum(1)).ravel())
    a = (scipy.sparse.diags_array(degree) @ a @ scipy.sparse.diags_array(degree)).tocsr()
    a.sort_indices()
    x, kinds = rng.normal(size=(n, inputs)), rng.integers(0, classes, n)
    v, w = rng.normal(size=(inputs, hidden)) / 8, rng.normal(size=(hidden, classes)) / 6

    def make(lib: Library) -> Any:
        jnp = lib.numpy

        def loss(weights: Any, a: Any, x: Any, kinds: Any) -> Any:
            v, w = weights
            h = lib.nn.relu(a @ (x @ v))
            logits = lib.nn.log_softmax(a @ (h @ w))
            return -jnp.take_along_axis(logits, kinds[:, None], axis=1).mean()
        return lib.value_and_grad(loss)

    def by_scipy() -> Any:
        z = a @ (x @ v)
        h = np.maximum(z, 0)
        y = a @ (h @ w)
        y = y - y.max(1, keepdims=True)
        e = np.exp(y)
        total = e.sum(1, keepdims=True)
        loss = -(y[np.arange(n), kinds] - np.log(total[:, 0])).mean()
        g = e / total
        g[np.arange(n), kinds] -= 1
        g = a.T @ (g / n)
        gw, gh = h.T @ g, g @ w.T
        gv = x.T @ (a.T @ (gh * (z > 0)))
        return loss, (gv, gw)

    return Program(make, lambda s: ((v, w), s.BCSR.from_scipy_sparse(a), x, kinds), by_scipy)


def newton(n: int = 120, steps: int = 6, inner: int = 30) -> Program:
    """-Δu + u³ = 1 by Newton's method: a Jacobian that is a sum, and conjugate gradients."""
    size = n * n
    one = scipy.sparse.diags_array([np.full(n, 2.0), -np.ones(n - 1), -np.ones(n - 1)],
                                   offsets=[0, -1, 1])
    eye = scipy.sparse.eye_array(n)
    laplacian = ((scipy.sparse.kron(one, eye) + scipy.sparse.kron(eye, one)) * (n / 10)).tocsr()
    laplacian.sort_indices()
    diagonal = np.arange(size, dtype=np.int32)

    def make(lib: Library) -> Any:
        jnp = lib.numpy

        def solve(laplacian: Any, diagonal: Any) -> Any:
            places = jnp.stack([diagonal, diagonal], axis=1)

            def step(_: Any, u: Any) -> Any:
                residual = laplacian @ u + u ** 3 - 1
                slope = lib.sparse.BCOO((3 * u ** 2, places), shape=(size, size))
                jacobian = laplacian.to_bcoo() + slope
                return u - lib.cg(lambda v: jacobian @ v, residual, tol=0.0, maxiter=inner)[0]
            return lib.lax.fori_loop(0, steps, step, jnp.zeros((size,), "float64"))
        return solve

    def by_scipy() -> Any:
        u = np.zeros(size)
        for _ in range(steps):
            residual = laplacian @ u + u ** 3 - 1
            jacobian = laplacian + scipy.sparse.diags_array(3 * u ** 2)
            u = u - scipy.sparse.linalg.cg(jacobian, residual, rtol=0.0, maxiter=inner)[0]
        return u

    return Program(make, lambda s: (s.BCSR.from_scipy_sparse(laplacian), diagonal), by_scipy)


def factors(users: int = 60_000, items: int = 20_000, nse: int = 600_000,
            rank: int = 16) -> Program:
    """The loss of factors of observed elements in any order, and its gradient in the factors."""
    rng = np.random.default_rng(4)
    i, j = (rng.integers(0, n, nse).astype(np.int32) for n in (users, items))
    values, u, v = rng.normal(size=nse), rng.normal(size=(users, rank)), \
        rng.normal(size=(items, rank))

    def make(lib: Library) -> Any:
        jnp = lib.numpy

        def loss(factors: Any, i: Any, j: Any, values: Any) -> Any:
            u, v = factors
            error = jnp.sum(u[i] * v[j], axis=1) - values
            return 0.5 * jnp.mean(error ** 2) + 1e-4 * (jnp.sum(u ** 2) + jnp.sum(v ** 2))
        return lib.value_and_grad(loss)

    def by_scipy() -> Any:
        error = (u[i] * v[j]).sum(1) - values
        loss = 0.5 * (error ** 2).mean() + 1e-4 * ((u ** 2).sum() + (v ** 2).sum())
        e = scipy.sparse.coo_matrix((error / nse, (i, j)), shape=(users, items)).tocsr()
        return loss, (e @ v + 2e-4 * u, e.T @ u + 2e-4 * v)

    return Program(make, lambda s: ((u, v), i, j, values), by_scipy)


def medium(n: int = 300, steps: int = 8) -> Program:
    """Diffusion in a medium that changes: each step adds three operators and applies the sum."""
    size = n * n
    one = scipy.sparse.diags_array([np.full(n, 2.0), -np.ones(n - 1), -np.ones(n - 1)],
                                   offsets=[0, -1, 1])
    eye = scipy.sparse.eye_array(n)
    along, across = (scipy.sparse.kron(*p).tocsr() for p in ((one, eye), (eye, one)))
    far = links(size, 2 * size, 5) * 0.01
    operators = [along, across, far.tocsr()]
    for m in operators:
        m.sort_indices()
    x = np.random.default_rng(5).normal(size=size)

    def make(lib: Library) -> Any:
        jnp = lib.numpy

        def run(a: Any, b: Any, c: Any, x: Any) -> Any:
            def step(k: Any, x: Any) -> Any:
                t = 0.1 * k
                m = (a * jnp.cos(t)).to_bcoo() + (b * jnp.sin(t)).to_bcoo() + c.to_bcoo()
                m = lib.sparse.BCSR.from_bcoo(m.sum_duplicates(nse=a.nse + b.nse + c.nse))
                y = m @ x
                return x - 0.1 * y + 0.005 * (m @ y)
            return lib.lax.fori_loop(0, steps, step, x)
        return run

    def by_scipy() -> Any:
        y = x
        for k in range(steps):
            t = 0.1 * k
            m = operators[0] * np.cos(t) + operators[1] * np.sin(t) + operators[2]
            z = m @ y
            y = y - 0.1 * z + 0.005 * (m @ z)
        return y

    return Program(make, lambda s: (*map(s.BCSR.from_scipy_sparse, operators), x), by_scipy)


def particles(count: int = 400_000, n: int = 512, steps: int = 3) -> Program:
    """Charges put on the four nearest points of a grid, and moved by the slope of their sum."""
    rng = np.random.default_rng(6)
    at, charge = rng.uniform(0, n - 2, (count, 2)), rng.uniform(0.5, 1.5, count)

    def moved(xp: Any, at: Any, charge: Any, add: Callable[[Any, Any], Any]) -> Any:
        k = xp.floor(at).astype("int32")
        f = at - k
        corner = k[:, 0] * n + k[:, 1]
        places = xp.concatenate([corner, corner + 1, corner + n, corner + n + 1])
        near = [(1 - f[:, 0]) * (1 - f[:, 1]), (1 - f[:, 0]) * f[:, 1],
                f[:, 0] * (1 - f[:, 1]), f[:, 0] * f[:, 1]]
        total = add(places, xp.concatenate([charge * w for w in near]))
        slope = xp.stack([total[corner + n] - total[corner], total[corner + 1] - total[corner]], 1)
        return xp.clip(at - 0.05 * slope, 0, n - 2.001)

    def make(lib: Library) -> Any:
        jnp = lib.numpy

        def run(at: Any, charge: Any) -> Any:
            def add(places: Any, values: Any) -> Any:
                return jnp.zeros((n * n,), "float64").at[places].add(values)
            return lib.lax.fori_loop(0, steps, lambda _, at: moved(jnp, at, charge, add), at)
        return run

    def by_scipy() -> Any:
        y = at
        for _ in range(steps):
            y = moved(np, y, charge, lambda k, v: np.bincount(k, v, n * n))
        return y

    return Program(make, lambda s: (at, charge), by_scipy)


PROGRAMS = {"page rank": page_rank, "graph smoothing": smoothing,
            "finite elements": finite_elements, "graph network, gradient": graph_network,
            "newton": newton, "factors of observed elements": factors,
            "changing medium": medium, "particles on a grid": particles}


def calls_of(program: Program) -> dict[str, Call]:
    """The program for each library, compiled."""
    mine = Library(ft.numpy, ft.lax, sparse, ft.scipy.sparse.linalg.cg, ft.value_and_grad, ft.nn)
    f = ft.jit(program.make(mine))
    args = ft.tree.map(ft.numpy.asarray, program.args(sparse))
    found = {"functrans": lambda: ft.block_until_ready(f(*args)), "scipy": program.scipy}
    if importlib.util.find_spec("jax"):
        import jax  # noqa: PLC0415
        import jax.experimental.sparse  # noqa: PLC0415
        import jax.scipy.sparse.linalg  # noqa: PLC0415

        jax.config.update("jax_enable_x64", True)
        theirs = Library(jax.numpy, jax.lax, jax.experimental.sparse, jax.scipy.sparse.linalg.cg,
                         jax.value_and_grad, jax.nn)
        g = jax.jit(program.make(theirs))
        given = jax.tree.map(jax.numpy.asarray, program.args(jax.experimental.sparse))
        found["jax"] = lambda: jax.block_until_ready(g(*given))
    return found


def compare(name: str, calls: dict[str, Call]) -> None:
    """Raise where results of two libraries are apart."""
    results = {library: ft.tree.leaves(call()) for library, call in calls.items()}
    for library, leaves in results.items():
        for x, y in zip(leaves, results["scipy"], strict=True):
            x, y = np.asarray(x), np.asarray(y)
            if not np.linalg.norm(x - y) <= TOLERANCE * np.linalg.norm(y):
                raise SystemExit(f"{name}: {library} is {np.linalg.norm(x - y):.1e} from SciPy")


def medians(calls: dict[str, Call], rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """Milliseconds of each call, in rounds that begin with another library each time."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for k in range(rounds):
        for name in names[k % len(names):] + names[:k % len(names)]:
            begin = clock()
            calls[name]()
            times[name].append(1e3 * (clock() - begin))
    return {name: statistics.median(t) for name, t in times.items()}


def table(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows that are asked for, shown as they are measured."""
    clock = time.process_time if given.busy else time.perf_counter  # JAX has threads of its own
    for name, program in PROGRAMS.items():
        if given.only not in name:
            continue
        calls = calls_of(program())
        compare(name, calls)
        found = medians(calls, 5 if given.quick else 25, clock)
        mine = found["functrans"]
        print(f"{name:28}", *[f"{library} {t:8.2f} ms" for library, t in found.items()],
              *[f"{mine / t:6.2f} of {library}" for library, t in found.items()
                if library != "functrans"], flush=True)
        yield {"title": name, "milliseconds": {n: round(t, 3) for n, t in found.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--only", default="", help="rows with this word")
    parser.add_argument("--busy", action="store_true", help="one thread, time of the processor")
    given = parser.parse_args()
    alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if given.busy and any(os.environ.get(name) != n for name, n in alone.items()):
        # NumPy has read them: its other threads wait in loops, which counts as SciPy's time
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | alone)
    with ft.config.default_device("cpu"), \
            ft.config.threads(count=1) if given.busy else nullcontext():
        rows = list(table(given))
    if not given.quick and not given.only:
        unit = "milliseconds, median" + ", one thread" * given.busy
        results_path("sparse_programs").write_text(json.dumps(
            {"date": datetime.date.today().isoformat(), "unit": unit, "rows": rows}, indent=2)
            + "\n")


if __name__ == "__main__":
    main()
