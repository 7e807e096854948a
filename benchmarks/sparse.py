"""Sparse products beside SciPy and JAX, and sparse Jacobians beside dense ones, on one CPU.

    python benchmarks/sparse.py [--quick] [--only WORD] [--gpu | --busy]

Each row is an operation on a matrix of compressed rows in float64, in microseconds: the median of
rounds in which the libraries take turns. SciPy runs in this process, and JAX where it is installed
(BCSR under jit, in float64). The last columns are functrans's time over theirs: 0.8 of SciPy's is
the reach. The gradient in the stored values is beside two gathers and a product of NumPy, as SciPy
has none. A sum of two sparse matrices has each place once, of rows or of coordinates, as SciPy's;
`as coordinates` makes coordinates of rows before, the row `stored` keeps both as they are, which is
what `+` of coordinates does, and `duplicates` adds up what that has, as `sum_duplicates` of SciPy's
coordinates. Results go to benchmarks/results/ unless the run is quick or of some rows. On a machine
that is busy, `--busy` gives all libraries one thread and takes the time of the processor.

With `--gpu` products on the GPU are beside cuSPARSE, through CuPy where that is installed and
through PyTorch otherwise: many calls one after the other, and the time of one.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy.sparse
from harness import results_path

import functrans as ft
import functrans.numpy as jnp
from functrans.experimental import sparse

SIZES = (1_000, 10_000, 100_000, 1_000_000)
GPU_SIZES = (100_000, 1_000_000, 10_000_000)
COLUMNS = 32
PATTERNS = ("banded", "uniform", "power law")
Call = Callable[[], Any]


def matrix(pattern: str, nse: int) -> Any:
    """A square matrix of about `nse` stored elements, ten a row."""
    rng = np.random.default_rng(nse)
    n = nse // 10
    if pattern == "banded":
        bands = [rng.normal(size=n) for _ in range(10)]
        return scipy.sparse.dia_matrix((bands, range(-5, 5)), shape=(n, n)).tocsr()
    if pattern == "uniform":
        rows = np.repeat(np.arange(n), 10)
    else:
        weights = 1.0 / np.arange(1, n + 1)
        rows = rng.choice(n, size=nse, p=weights / weights.sum())
    columns = rng.integers(0, n, len(rows))
    a = scipy.sparse.coo_matrix((rng.normal(size=len(rows)), (rows, columns)), shape=(n, n))
    return a.tocsr()


def rows(nse: int, pattern: str) -> Iterator[tuple[str, dict[str, Call]]]:
    a = matrix(pattern, nse)
    a.sort_indices()
    n = a.shape[0]
    rng = np.random.default_rng(0)
    x, wide, ct = rng.normal(size=n), rng.normal(size=(n, COLUMNS)), rng.normal(size=n)
    other = matrix(pattern, nse).T.tocsr()
    m, o = sparse.BCSR.from_scipy_sparse(a), sparse.BCSR.from_scipy_sparse(other)
    bcoo = m.to_bcoo()
    row, coo = np.repeat(np.arange(n), np.diff(a.indptr)), a.tocoo()
    other_coo = other.tocoo()
    peer = jax_calls(a, x, wide, ct) if importlib.util.find_spec("jax") else {}

    def loss(m: Any, x: Any, ct: Any) -> Any:
        return ct @ (m @ x)

    product = ft.jit(lambda m, x: m @ x)
    back = ft.jit(lambda m, x: x @ m)
    gradient = ft.jit(sparse.grad(loss))
    both = m.nse + o.nse
    summed = ft.jit(lambda m, o: m + o)
    of_rows = ft.jit(lambda m, o: (m.to_bcoo() + o.to_bcoo()).sum_duplicates(
        nse=both, remove_zeros=False))
    of_places = ft.jit(lambda m, o: (m + o).sum_duplicates(nse=both, remove_zeros=False))
    without_zeros = ft.jit(lambda m, o: (m + o).sum_duplicates(nse=both))
    once = ft.jit(lambda t: t.sum_duplicates(nse=both, remove_zeros=False))
    stored = ft.jit(lambda m, o: m.to_bcoo() + o.to_bcoo())
    arrays = [jnp.asarray(v) for v in (x, wide, ct)]
    twice = m.to_bcoo() + o.to_bcoo()
    theirs_twice = scipy.sparse.coo_matrix(
        (np.asarray(twice.data), np.asarray(twice.indices).T), shape=a.shape)

    def o_product(m: Any, o: Any) -> Any:
        return (m @ o).block_until_ready()

    def ours(f: Any, *args: Any) -> Call:
        return lambda: f(*args).block_until_ready()

    calls = {
        "matvec": (ours(product, m, arrays[0]), lambda: a @ x),
        f"matmat, {COLUMNS} columns": (ours(product, m, arrays[1]), lambda: a @ wide),
        "matvec, as coordinates": (ours(product, bcoo, arrays[0]), lambda: coo @ x),
        "matvec, eager": (ours(lambda m, x: m @ x, m, arrays[0]), lambda: a @ x),
        "transposed": (ours(back, m, arrays[2]), lambda: a.T @ ct),
        "gradient": (ours(gradient, m, arrays[0], arrays[2]), lambda: ct[row] * x[a.indices]),
        "product of two": (lambda: o_product(m, o), lambda: a @ other),
        "compressed from coordinates": (lambda: sparse.BCSR.from_bcoo(bcoo),
                                        lambda: coo.tocsr()),
        "sum": (ours(summed, m, o), lambda: a + other),
        "sum, as coordinates": (ours(of_rows, m, o), lambda: a + other),
        "sum of coordinates": (ours(of_places, bcoo, o.to_bcoo()),
                               lambda: coo + other_coo),
        "sum of coordinates, no zeros": (ours(without_zeros, bcoo, o.to_bcoo()),
                                         lambda: coo + other_coo),
        "duplicates, jitted": (ours(once, twice), lambda: theirs_twice.copy().sum_duplicates()),
        "duplicates": (lambda: twice.sum_duplicates(remove_zeros=False).data.block_until_ready(),
                       lambda: theirs_twice.copy().sum_duplicates()),
        "sum, stored": (ours(stored, m, o), lambda: a + other),
    }
    for name, (mine, scipys) in calls.items():
        found = {"functrans": mine, "scipy": scipys}
        if name in peer:
            found["jax"] = peer[name]
        yield f"{pattern}, {a.nnz} elements, {name}", found


def jax_calls(a: Any, x: Any, wide: Any, ct: Any) -> dict[str, Call]:
    import jax  # noqa: PLC0415
    from jax.experimental import sparse as theirs  # noqa: PLC0415

    jax.config.update("jax_enable_x64", True)
    m = theirs.BCSR.from_scipy_sparse(a)
    product = jax.jit(lambda m, x: m @ x)
    back = jax.jit(lambda m, x: x @ m)
    gradient = jax.jit(theirs.grad(lambda m, x, ct: ct @ (m @ x)))
    x, wide, ct = map(jax.numpy.asarray, (x, wide, ct))
    return {"matvec": lambda: product(m, x).block_until_ready(),
            f"matmat, {COLUMNS} columns": lambda: product(m, wide).block_until_ready(),
            "transposed": lambda: back(m.to_bcoo(), ct).block_until_ready(),
            "gradient": lambda: gradient(m, x, ct).data.block_until_ready()}


def gpu_rows(nse: int, pattern: str, dtype: str) -> Iterator[tuple[str, dict[str, Call]]]:
    """Products on the GPU, with a vector, with columns, and of the transpose with a vector."""
    a = matrix(pattern, nse).astype(dtype)
    a.sort_indices()
    rng = np.random.default_rng(0)
    x, ct = (rng.normal(size=a.shape[0]).astype(dtype) for _ in range(2))
    wide = rng.normal(size=(a.shape[0], COLUMNS)).astype(dtype)
    with ft.config.default_device("gpu"):
        m = sparse.BCSR.from_scipy_sparse(a)
        m, *arrays = ft.device_put((m, x, wide, ct), ft.devices("gpu")[0])
    product, back = ft.jit(lambda m, x: m @ x), ft.jit(lambda m, x: x @ m)
    theirs = cusparse(a, (x, wide, ct))
    for name, f, of, expected in (
            ("matvec", product, arrays[0], a @ x), (f"matmat, {COLUMNS} columns", product,
             arrays[1], a @ wide), ("transposed", back, arrays[2], a.T @ ct)):
        error = np.abs(np.asarray(f(m, of)) - expected).max() / np.abs(expected).max()
        if error > (1e-4 if dtype == "float32" else 1e-12):
            raise SystemExit(f"{name} of {pattern}, {nse}, {dtype}: an error of {error:.1e}")
        yield f"{pattern}, {a.nnz} elements, {dtype}, {name}", {
            "functrans": many(lambda f=f, of=of: f(m, of), lambda y: y.block_until_ready()),
            **{library: many(calls[name], wait) for library, (calls, wait) in theirs.items()
               if name in calls}}


def many(call: Call, wait: Callable[[Any], Any], count: int = 50) -> Call:
    """Calls one after the other, of which the last is waited for."""
    def run() -> None:
        for _ in range(count - 1):
            call()
        wait(call())

    run.count = count  # type: ignore[attr-defined]
    return run


def cusparse(a: Any, operands: Any) -> dict[str, Any]:
    """The same products by CuPy, or by PyTorch, whose sparse products are those of cuSPARSE."""
    names = ("matvec", f"matmat, {COLUMNS} columns", "transposed")
    if importlib.util.find_spec("cupy"):
        import cupy  # noqa: PLC0415
        import cupyx.scipy.sparse  # noqa: PLC0415

        m = cupyx.scipy.sparse.csr_matrix(a)
        x, wide, ct = map(cupy.asarray, operands)
        mt = m.T
        calls = dict(zip(names, (lambda: m @ x, lambda: m @ wide, lambda: mt @ ct), strict=True))
        return {"cusparse": (calls, lambda _: cupy.cuda.Device().synchronize())}
    if importlib.util.find_spec("torch"):
        import torch  # noqa: PLC0415

        parts = [torch.from_numpy(v).cuda() for v in (a.indptr, a.indices, a.data)]
        t = torch.sparse_csr_tensor(*parts, size=a.shape)
        x, wide, ct = (torch.from_numpy(v).cuda() for v in operands)
        other = a.T.tocsr()  # PyTorch has no product with a transpose: compressed once more
        back = torch.sparse_csr_tensor(*[torch.from_numpy(v).cuda() for v in (
            other.indptr, other.indices, other.data)], size=other.shape)
        calls = dict(zip(names, (lambda: t @ x, lambda: t @ wide, lambda: back @ ct), strict=True))
        return {"cusparse": (calls, lambda _: torch.cuda.synchronize())}
    return {}


def band(x: Any) -> Any:
    p = jnp.pad(x, 2)
    return x ** 2 + p[:-4] * p[1:-3] - jnp.sin(p[3:-1]) + p[4:]


def jacobians(n: int) -> Iterator[tuple[str, dict[str, Call]]]:
    x = jnp.linspace(0.0, 1.0, n, dtype="float32")
    few, dense = sparse.sparse_jacobian(band), ft.jit(ft.jacfwd(band))
    start = time.perf_counter()
    few(x).block_until_ready()
    print(f"pattern, colours and compilation for {n}: {time.perf_counter() - start:.2f} s")
    yield f"banded Jacobian of {n}", {"functrans": lambda: few(x).block_until_ready(),
                                      "dense jacfwd": lambda: dense(x).block_until_ready()}
    hessian = sparse.sparse_hessian(lambda x: (band(x) ** 2).sum())
    full = ft.jit(ft.hessian(lambda x: (band(x) ** 2).sum()))
    k = min(n, 2000)
    y = x[:k]
    yield f"banded Hessian of {k}", {"functrans": lambda: hessian(y).block_until_ready(),
                                     "dense hessian": lambda: full(y).block_until_ready()}


def medians(calls: dict[str, Call], quick: bool, clock: Callable[[], float]) -> dict[str, float]:
    """Microseconds of each call: rounds in turns, at least 5 and for about a second."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for call in calls.values():
        call()
    start, rounds = time.perf_counter(), 0
    while rounds < 5 or (rounds < 200 and time.perf_counter() - start < (0.2 if quick else 1.0)):
        for name in names[rounds % len(names):] + names[:rounds % len(names)]:
            begin = clock()
            calls[name]()
            count = getattr(calls[name], "count", 1)
            times[name].append(1e6 * (clock() - begin) / count)
        rounds += 1
    return {name: statistics.median(t) for name, t in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter rounds")
    parser.add_argument("--only", default="", help="rows with this word")
    parser.add_argument("--gpu", action="store_true", help="products on the GPU, beside cuSPARSE")
    parser.add_argument("--busy", action="store_true", help="one thread, time of the processor")
    given = parser.parse_args()
    if given.busy:
        os.environ["OMP_NUM_THREADS"] = "1"
    with ft.config.default_device("gpu" if given.gpu else "cpu"), \
            ft.config.threads(count=1) if given.busy else nullcontext():
        results = list(table(given))
    if not given.quick and not given.only:
        path = results_path("sparse", ft.devices("gpu")[0].device_kind if given.gpu else "")
        unit = "microseconds, median" + ", one thread" * given.busy
        path.write_text(json.dumps({"date": datetime.date.today().isoformat(), "unit": unit,
                                    "rows": results}, indent=2) + "\n")


def table(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows that are asked for, shown as they are measured."""
    clock = time.thread_time if given.busy else time.perf_counter
    cases = [gpu_rows(nse, pattern, dtype) for nse in GPU_SIZES for pattern in PATTERNS
             for dtype in ("float32", "float64")] if given.gpu else [
        *[rows(nse, pattern) for nse in SIZES for pattern in PATTERNS], jacobians(10_000)]
    for group in cases:
        for title, calls in group:
            if given.only not in title:
                continue
            found = medians(calls, given.quick, clock)
            mine = found["functrans"]
            print(f"{title:50}", *[f"{name} {t:9.1f} us" for name, t in found.items()],
                  *[f"{mine / t:6.2f} of {name}" for name, t in found.items()
                    if name != "functrans"], flush=True)
            yield {"title": title, "microseconds": {n: round(t, 2) for n, t in found.items()}}


if __name__ == "__main__":
    main()
