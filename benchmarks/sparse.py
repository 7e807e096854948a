"""Sparse products beside SciPy and JAX, and sparse Jacobians beside dense ones, on one CPU.

    python benchmarks/sparse.py [--quick] [--only WORD]

Each row is an operation on a matrix of compressed rows in float64, in microseconds: the median of
rounds in which the libraries take turns. SciPy runs in this process, and JAX where it is installed
(BCSR under jit, in float64). The last columns are functrans's time over theirs: 0.8 of SciPy's is
the reach. The gradient in the stored values is beside two gathers and a product of NumPy, as SciPy
has none. A sum of two sparse matrices is that of sorted rows without duplicates, as SciPy's; the
row `stored` keeps both as they are, which is what `+` does.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

import functrans as ft
import functrans.numpy as fnp
from functrans.experimental import sparse

SIZES = (10_000, 100_000, 1_000_000)
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
    row = np.repeat(np.arange(n), np.diff(a.indptr))
    peer = jax_calls(a, x, wide, ct) if importlib.util.find_spec("jax") else {}

    def loss(m: Any, x: Any, ct: Any) -> Any:
        return ct @ (m @ x)

    product = ft.jit(lambda m, x: m @ x)
    back = ft.jit(lambda m, x: x @ m)
    gradient = ft.jit(sparse.grad(loss))
    both = m.nse + o.nse
    summed = ft.jit(lambda m, o: (m.to_bcoo() + o.to_bcoo()).sum_duplicates(
        nse=both, remove_zeros=False))
    stored = ft.jit(lambda m, o: m.to_bcoo() + o.to_bcoo())
    arrays = [fnp.asarray(v) for v in (x, wide, ct)]

    def ours(f: Any, *args: Any) -> Call:
        return lambda: f(*args).block_until_ready()

    calls = {
        "matvec": (ours(product, m, arrays[0]), lambda: a @ x),
        f"matmat, {COLUMNS} columns": (ours(product, m, arrays[1]), lambda: a @ wide),
        "transposed": (ours(back, m, arrays[2]), lambda: a.T @ ct),
        "gradient": (ours(gradient, m, arrays[0], arrays[2]), lambda: ct[row] * x[a.indices]),
        "sum": (ours(summed, m, o), lambda: a + other),
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


def band(x: Any) -> Any:
    p = fnp.pad(x, 2)
    return x ** 2 + p[:-4] * p[1:-3] - fnp.sin(p[3:-1]) + p[4:]


def jacobians(n: int) -> Iterator[tuple[str, dict[str, Call]]]:
    x = fnp.linspace(0.0, 1.0, n, dtype="float32")
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


def medians(calls: dict[str, Call], quick: bool) -> dict[str, float]:
    """Microseconds of each call: rounds in turns, at least 5 and for about a second."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for call in calls.values():
        call()
    start, rounds = time.perf_counter(), 0
    while rounds < 5 or (rounds < 200 and time.perf_counter() - start < (0.2 if quick else 1.0)):
        for name in names[rounds % len(names):] + names[:rounds % len(names)]:
            begin = time.perf_counter()
            calls[name]()
            times[name].append(1e6 * (time.perf_counter() - begin))
        rounds += 1
    return {name: statistics.median(t) for name, t in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter rounds")
    parser.add_argument("--only", default="", help="rows with this word")
    given = parser.parse_args()
    cases = [rows(nse, pattern) for nse in SIZES for pattern in PATTERNS] + [jacobians(10_000)]
    for group in cases:
        for title, calls in group:
            if given.only not in title:
                continue
            found = medians(calls, given.quick)
            mine = found["functrans"]
            print(f"{title:50}", *[f"{name} {t:9.1f} us" for name, t in found.items()],
                  *[f"{mine / t:6.2f} of {name}" for name, t in found.items()
                    if name != "functrans"], flush=True)


if __name__ == "__main__":
    main()
