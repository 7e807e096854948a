"""Matrix products of tile registers (AMX), which are memory here, against NumPy in wider types."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from functrans import _runtime
from tests.runtime.library_calls import TYPES, Epilogue, Fill, gemm, gemm_call, library
from tests.runtime.test_gemm import check, gathering, laid_out, sample

NDArray = np.ndarray[Any, Any]
DTYPES = [ml_dtypes.bfloat16, np.int8, np.uint8]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The kernels with tiles in memory, for any processor."""
    path = tmp_path_factory.mktemp("tiles") / "emulated_tiles.so"
    subprocess.run(["c++", "-std=gnu++17", "-O2", "-shared", "-fPIC", "-Wno-psabi",
                    f"-I{HERE.parents[1] / 'csrc'}", str(HERE / "emulated_tiles.cpp"), "-o", path],
                   check=True)
    made = ctypes.CDLL(str(path))
    made.emulated_kernels.restype = ctypes.c_void_p
    for name in ("faults", "open", "uses"):
        getattr(made, f"emulated_{name}").restype = ctypes.c_longlong
    library.ft_gemm_use_groups.argtypes = [ctypes.c_int, ctypes.c_void_p]
    library.ft_gemm_use_groups.restype = None
    return made


@pytest.fixture(autouse=True)
def tiles(emulated: ctypes.CDLL) -> Iterator[None]:
    """Products are made of them; each use gave its tiles a shape, and freed them."""
    before = emulated.emulated_uses()
    try:
        for dtype in DTYPES:
            kind = TYPES[np.dtype(dtype)]
            library.ft_gemm_use_groups(kind, emulated.emulated_kernels(kind))
        yield
    finally:
        for dtype in DTYPES:
            library.ft_gemm_use_groups(TYPES[np.dtype(dtype)], None)
    assert emulated.emulated_uses() > before
    assert emulated.emulated_faults() == 0
    assert emulated.emulated_open() == 0


@pytest.fixture(params=[1, 6])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """As many threads; with several each packs what it reads."""
    try:
        _runtime.set_num_threads(request.param)
        yield
    finally:
        _runtime.set_num_threads(None)


def guarded(rng: np.random.Generator, dtype: Any, *shape: int) -> tuple[NDArray, NDArray]:
    """An array whose elements are some of a larger one, which is returned, too."""
    base = sample(rng, dtype, *shape[:-2], shape[-2] + 3, shape[-1] + int(rng.integers(0, 40)))
    j = int(rng.integers(0, base.shape[-1] - shape[-1] + 1))
    return base[..., 1:1 + shape[-2], j:j + shape[-1]], base


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_products(dtype: Any) -> None:
    rng = np.random.default_rng(11)
    wide = np.float32 if dtype is ml_dtypes.bfloat16 else np.int32
    for trial in range(60):
        m, n, k = (int(x) for x in rng.integers(1, 201, 3))
        if max(m, n, k) <= 64:  # such products have other kernels
            k += 64
        batch = tuple(int(s) for s in rng.integers(1, 3, 2)) if trial % 4 == 0 else ()
        a = laid_out(rng, sample(rng, dtype, *batch, m, k))
        b = laid_out(rng, sample(rng, dtype, *batch, k, n))
        c, base = guarded(rng, wide if rng.integers(2) else dtype, *batch, m, n)
        before, outside = c.copy(), base.copy()
        accumulate, alpha = bool(rng.integers(2)), float(rng.choice([1.0, 1.0, 3.0]))
        gemm(a, b, c, alpha=alpha, accumulate=accumulate)
        check(c, a, b, alpha, before if accumulate else None)
        c[...] = before
        np.testing.assert_array_equal(base, outside)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_are_read_where_they_are(dtype: Any) -> None:
    rng = np.random.default_rng(13)
    wide = np.float32 if dtype is ml_dtypes.bfloat16 else np.int32
    outside = np.nan if dtype is ml_dtypes.bfloat16 else 77
    for m, n, k in ((70, 33, 1344), (300, 600, 704), (1, 700, 64), (33, 17, 576), (96, 128, 192)):
        base = np.full((m + 2, k + 256), outside, dtype)
        start = -base.ctypes.data % 64 // base.itemsize
        a = base[1:1 + m, start:start + k]
        a[...] = sample(rng, dtype, m, k)
        for b in (sample(rng, dtype, k, n), sample(rng, dtype, n, k).T):
            check(gemm(a, b, np.empty((m, n), wide)), a, b, 1.0, None)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", DTYPES)
def test_columns_that_are_read_where_they_are(dtype: Any) -> None:
    rng = np.random.default_rng(17)
    wide = np.float32 if dtype is ml_dtypes.bfloat16 else np.int32
    for m, n, k in ((1, 520, 192), (7, 333, 256), (16, 140, 1344), (32, 45, 640), (20, 300, 200)):
        a = laid_out(rng, sample(rng, dtype, m, k))
        b = sample(rng, dtype, n, k + 64)[:, 64:].T
        for c in (np.zeros((m, n), wide), np.zeros((n, m), wide).T, np.zeros((m, n), dtype)):
            check(gemm(a, b, c), a, b, 1.0, None)
        before = sample(rng, wide, m, n)
        check(gemm(a, b, before.copy(), accumulate=True, alpha=3.0), a, b, 3.0, before)
        if wide is np.float32:
            out = np.zeros((m, n), wide)
            gemm(a, b, np.empty((m, n), dtype), epilogue=gathering(out))
            check(out, a, b, 1.0, None)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_sums_and_many_tasks(dtype: Any) -> None:
    rng = np.random.default_rng(12)
    for m, n, k in ((70, 33, 1300), (300, 600, 700), (1, 700, 90), (700, 1, 90), (40, 50, 5000),
                    (33, 17, 513), (65, 65, 0)):
        a, b = laid_out(rng, sample(rng, dtype, m, k)), laid_out(rng, sample(rng, dtype, k, n))
        check(gemm(a, b, np.empty((m, n), dtype)), a, b, 1.0, None)


def test_infinity_stays_in_its_row_and_column() -> None:
    rng = np.random.default_rng(13)
    a, b = sample(rng, ml_dtypes.bfloat16, 75, 85), sample(rng, ml_dtypes.bfloat16, 85, 77)
    a[40, 3], b[84, 70] = np.nan, np.inf
    c = gemm(a, b, np.empty((75, 77), ml_dtypes.bfloat16)).astype(np.float32)
    expected = np.zeros((75, 77), bool)
    expected[40], expected[:, 70] = True, True
    np.testing.assert_array_equal(~np.isfinite(c), expected)


@pytest.mark.parametrize("by_columns", [False, True])
def test_operands_made_while_packing_and_epilogue(by_columns: bool) -> None:
    rng = np.random.default_rng(14)
    dtype = ml_dtypes.bfloat16
    a, b = sample(rng, dtype, 170, 300), sample(rng, dtype, 300, 270)
    out, seen = np.zeros((170, 270), np.float32), np.zeros((170, 270), int)

    def fill_of(x: NDArray) -> Any:
        def fill(arg: Any, batch: int, r0: int, r1: int, c0: int, c1: int, to: Any) -> None:
            part = x[r0:r1, c0:c1].T if by_columns else x[r0:r1, c0:c1]
            target = (ctypes.c_uint16 * part.size).from_address(to)
            np.ctypeslib.as_array(target)[:] = np.ascontiguousarray(part).ravel().view(np.uint16)
        return Fill(fill)

    def epilogue(arg: Any, batch: int, i0: int, i1: int, j0: int, j1: int, tile: Any,
                 tile_row: int) -> None:
        count = (i1 - i0 - 1) * tile_row + j1 - j0
        flat = np.ctypeslib.as_array((ctypes.c_float * count).from_address(tile))
        for i in range(i1 - i0):
            out[i0 + i, j0:j1] = flat[i * tile_row:i * tile_row + j1 - j0]
        seen[i0:i1, j0:j1] += 1

    nothing = np.zeros((1, 1), dtype)
    gemm(np.broadcast_to(nothing, a.shape), np.broadcast_to(nothing, b.shape),
         np.empty((170, 270), dtype), a_fill=fill_of(a), b_fill=fill_of(b),
         a_fill_columns=by_columns, b_fill_columns=by_columns, epilogue=Epilogue(epilogue))
    assert np.all(seen == 1)
    check(out, a, b, 1.0, None)


def test_results_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(15)
    a = sample(rng, ml_dtypes.bfloat16, 270, 1100)
    b = sample(rng, ml_dtypes.bfloat16, 1100, 330)
    call = gemm_call(a, b, c := np.empty((270, 330), np.float32))
    results = []
    try:
        for threads in (1, 2, 5):
            _runtime.set_num_threads(threads)
            call()
            results.append(c.copy())
    finally:
        _runtime.set_num_threads(None)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_threads_of_the_caller_have_tiles_of_their_own() -> None:
    rng = np.random.default_rng(16)
    shapes = [(33, 70, 100), (17, 90, 64), (48, 80, 130), (70, 70, 33)]
    operands = [(sample(rng, np.int8, m, k), sample(rng, np.int8, k, n)) for m, n, k in shapes]

    def run(index: int) -> None:
        a, b = operands[index % len(operands)]
        check(gemm(a, b, np.empty((a.shape[0], b.shape[1]), np.int32)), a, b, 1.0, None)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(24)))
