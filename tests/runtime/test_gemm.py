"""Matrix products of csrc against NumPy in wider types."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from functrans import _runtime
from tests.runtime.library_calls import Epilogue, Fill, gemm, gemm_call, library

NDArray = np.ndarray[Any, Any]
SIZES = [0, 1, 2, 3, 5, 8, 12, 13, 16, 17, 31, 32, 33, 64, 65, 100, 150, 300, 513]
FLOATS = [np.float32, np.float64, ml_dtypes.bfloat16, np.float16]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def sample(rng: np.random.Generator, dtype: Any, *shape: int) -> NDArray:
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 200, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def laid_out(rng: np.random.Generator, x: NDArray) -> NDArray:
    """x in row order, in column order, with gaps, or backwards."""
    kind = int(rng.integers(0, 4))
    if kind == 0:
        return x
    if kind == 1:
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    if kind == 2:
        return np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    base = np.zeros((*x.shape[:-2], 2 * x.shape[-2], 3 * x.shape[-1] + 1), x.dtype)
    view = base[..., ::2, :3 * x.shape[-1]:3]
    view[...] = x
    return view


def check(c: NDArray, a: NDArray, b: NDArray, alpha: float, before: NDArray | None) -> None:
    """Every element within k roundings of sums of magnitudes."""
    kind = c.dtype.kind
    if kind in "iu":
        wide = int(alpha) * (a.astype(np.int64) @ b.astype(np.int64))
        wide = wide if before is None else wide + before.astype(np.int64)
        np.testing.assert_array_equal(c, wide.astype(c.dtype))
        return
    x, y = (z.astype(np.complex128 if kind == "c" else np.float64) for z in (a, b))
    exact, bound = alpha * (x @ y), abs(alpha) * (np.abs(x) @ np.abs(y))
    if before is not None:
        added = before.astype(exact.dtype)
        exact, bound = exact + added, bound + np.abs(added)
    inner = ml_dtypes.finfo(a.dtype).eps if a.dtype.itemsize >= 4 else np.finfo(np.float32).eps
    slack = (a.shape[-1] + 8) * float(inner) + float(ml_dtypes.finfo(c.dtype).eps)
    assert np.all(np.abs(c.astype(exact.dtype) - exact) <= slack * bound + 1e-6 * (c.itemsize < 4))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, np.complex64, np.complex128])
def test_random_products(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    for _ in range(120 if dtype in FLOATS else 30):
        m, n, k = (int(s) for s in rng.choice(SIZES, 3))
        batch = tuple(int(s) for s in rng.integers(1, 3, 2))
        a = laid_out(rng, sample(rng, dtype, *batch, m, k))
        b = laid_out(rng, sample(rng, dtype, *batch[rng.integers(0, 3):], k, n))
        c = laid_out(rng, sample(rng, dtype, *batch, m, n))
        before = c.copy() if rng.integers(2) else None
        alpha = float(rng.choice([1.0, 3.0]))
        gemm(a, b, c, alpha=alpha, accumulate=before is not None)
        check(c, a, b, alpha, before)


def instruction_sets() -> list[bytes]:
    """Those that this machine has, the best first."""
    found = [x for x in (b"amx", b"avx512", b"avx2", b"portable") if library.ft_gemm_use(x)]
    library.ft_gemm_use(found[0])
    return found


@pytest.fixture(params=instruction_sets())
def isa(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kernels of each."""
    assert library.ft_gemm_use(request.param)
    yield
    assert library.ft_gemm_use(instruction_sets()[0])


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("dtype", [*FLOATS, np.int8, np.int64])
def test_every_instruction_set(dtype: Any) -> None:
    rng = np.random.default_rng(8)
    for m in (*range(1, 14), 30, 70, 200):
        for n, k in ((1, 50), (8, 8), (9, 33), (37, 70), (90, 700)):
            a = laid_out(rng, sample(rng, dtype, m, k))
            b = laid_out(rng, sample(rng, dtype, k, n))
            check(gemm(a, b, np.empty((m, n), dtype)), a, b, 1.0, None)


def gathering(out: NDArray) -> Any:
    """An epilogue that keeps sums of float32."""
    def epilogue(arg: Any, batch: int, i0: int, i1: int, j0: int, j1: int, tile: Any,
                 tile_row: int) -> None:
        count = (i1 - i0 - 1) * tile_row + j1 - j0
        flat = np.ctypeslib.as_array((ctypes.c_float * count).from_address(tile))
        for i in range(i1 - i0):
            out[i0 + i, j0:j1] += flat[i * tile_row:i * tile_row + j1 - j0]
    return Epilogue(epilogue)


FEW = [(1, 70, 600), (2, 130, 333), (5, 66, 2100), (17, 300, 129), (32, 45, 4200)]


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("dtype", [*FLOATS, np.int8, np.uint8])
def test_few_rows(dtype: Any) -> None:
    """Columns along k, rows of adjacent numbers, and both with gaps; NaN stays in its column."""
    rng = np.random.default_rng(9)
    wide = {1: np.int32, 2: np.float32}.get(np.dtype(dtype).itemsize, dtype)
    for m, n, k in FEW:
        a = laid_out(rng, sample(rng, dtype, m, k))
        gaps = sample(rng, dtype, n, k + 3)[:, :k].T
        for b in (sample(rng, dtype, k, n), sample(rng, dtype, n, k).T, gaps):
            for c in (np.zeros((m, n), wide), np.zeros((n, m), wide).T):
                check(gemm(a, b, c), a, b, 1.0, None)
            before = sample(rng, wide, m, n)
            check(gemm(a, b, before.copy(), accumulate=True, alpha=3.0), a, b, 3.0, before)
            if wide is np.float32:
                out = np.zeros((m, n), np.float32)
                gemm(a, b, np.empty((m, n), dtype), epilogue=gathering(out))
                check(out, a, b, 1.0, None)
                poisoned = b.copy()
                poisoned[k - 1, n // 2] = np.nan
                found = np.isnan(gemm(a, poisoned, np.zeros((m, n), np.float32)))
                assert np.all(found[:, n // 2]) and found.sum() == m


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_the_largest_integers(dtype: Any) -> None:
    """Numbers that are flipped to the other kind on the way, at both ends, and sums that wrap."""
    ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    for m, n, k in ((3, 80, 300), (70, 90, 700), (150, 64, 65)):
        for x in ends:
            for y in ends:
                a, b = np.full((m, k), x, dtype), np.full((k, n), y, dtype)
                for z in (b, np.ascontiguousarray(b.T).T):
                    check(gemm(a, z, np.empty((m, n), np.int32)), a, z, 1.0, None)
                    check(gemm(a, z, np.empty((m, n), dtype)), a, z, 1.0, None)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("shape", [(1, 3000, 700), (3000, 1, 700), (700, 500, 1), (1, 1, 5000),
                                   (4, 2000, 900), (600, 40, 900), (400, 300, 2000), (1, 7, 9000),
                                   (70, 50, 9000)])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_flat_and_large(shape: tuple[int, int, int], dtype: Any) -> None:
    rng = np.random.default_rng(2)
    m, n, k = shape
    for _ in range(4):
        a = laid_out(rng, sample(rng, dtype, m, k))
        b = laid_out(rng, sample(rng, dtype, k, n))
        check(gemm(a, b, laid_out(rng, np.zeros((m, n), dtype))), a, b, 1.0, None)


def test_many_small() -> None:
    rng = np.random.default_rng(3)
    for n in (1, 3, 8, 16, 32):
        a, b = sample(rng, np.float32, 50, 7, n, n), sample(rng, np.float32, 50, 7, n, n)
        for y in (b, b.swapaxes(-1, -2)):
            check(gemm(a, y, np.empty((50, 7, n, n), np.float32)), a, y, 1.0, None)


def test_widening_results() -> None:
    rng = np.random.default_rng(4)
    for dtype, wide in ((ml_dtypes.bfloat16, np.float32), (np.float16, np.float32),
                        (np.int8, np.int32), (np.uint8, np.int32)):
        a, b = sample(rng, dtype, 70, 90), sample(rng, dtype, 90, 80)
        check(gemm(a, b, np.empty((70, 80), wide)), a, b, 1.0, None)


def test_halves_are_rounded_as_numpy_does() -> None:
    values = np.arange(1 << 16, dtype=np.uint16)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = values.view(dtype)[:, None].astype(np.float32)
        one = np.ones((1, 1), np.float32)
        with np.errstate(all="ignore"):
            cases = (x, np.nextafter(x, np.float32(np.inf)), x * np.float32(1 + 2.0 ** -9))
            rounded = [(y + np.float32(0)).astype(dtype) for y in cases]
        for y, want in zip(cases, rounded, strict=True):
            got = gemm(y, one, np.empty(y.shape, dtype))
            same = got == want
            assert np.all(same | (np.isnan(got) & np.isnan(want)))
        half = values.view(dtype)[:, None]
        got = gemm(half, np.ones((1, 1), dtype), np.empty(x.shape, np.float32))
        # dot products of bfloat16 pairs may take denormals as zero
        flushed = (dtype is not np.float16) & (np.abs(x) < 2.0 ** -126) & (got == 0)
        assert np.all((got == x) | np.isnan(x) & np.isnan(got) | flushed)


def test_nan_and_infinity_stay() -> None:
    for n in (4, 40, 200):
        a, b = np.ones((n, n), np.float32), np.ones((n, n), np.float32)
        a[1, 2], a[3, 0], b[3, 1] = np.nan, np.inf, 0.0
        c = gemm(a, b, np.empty((n, n), np.float32))
        assert np.isnan(c[1]).all() and np.isinf(c[3]).all() and np.isfinite(c[2]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(1, 5, 3), (3, 3, 0), (30, 30, 30), (200, 300, 500),
                                   (40, 50, 6000)])
def test_epilogue_sees_every_tile_once(shape: tuple[int, int, int], dtype: Any) -> None:
    rng = np.random.default_rng(5)
    m, n, k = shape
    a, b = sample(rng, dtype, 2, 3, m, k), sample(rng, dtype, 2, 3, k, n)
    out = np.zeros((6, m, n))
    seen = np.zeros((6, m, n), int)
    sums = ctypes.c_double if dtype is np.float64 else ctypes.c_float

    def epilogue(arg: Any, batch: int, i0: int, i1: int, j0: int, j1: int, tile: Any,
                 tile_row: int) -> None:
        count = (i1 - i0 - 1) * tile_row + j1 - j0
        flat = np.ctypeslib.as_array((sums * count).from_address(tile))
        for i in range(i1 - i0):
            out[batch, i0 + i, j0:j1] = flat[i * tile_row:i * tile_row + j1 - j0]
        seen[batch, i0:i1, j0:j1] += 1

    gemm(a, b, np.zeros((2, 3, m, n), dtype), epilogue=Epilogue(epilogue))
    assert np.all(seen == 1)
    exact = np.float64 if dtype is np.float64 else np.float32
    check(out.reshape(2, 3, m, n).astype(exact), a, b, 1.0, None)


@pytest.mark.parametrize("by_columns", [False, True])
def test_operands_made_while_packing(by_columns: bool) -> None:
    rng = np.random.default_rng(6)
    a, b = sample(rng, np.float32, 250, 800), sample(rng, np.float32, 800, 700)

    def fill_of(x: NDArray) -> Any:
        def fill(arg: Any, batch: int, r0: int, r1: int, c0: int, c1: int, to: Any) -> None:
            part = x[r0:r1, c0:c1].T if by_columns else x[r0:r1, c0:c1]
            target = (ctypes.c_float * part.size).from_address(to)
            np.ctypeslib.as_array(target)[:] = np.ascontiguousarray(part).ravel()
        return Fill(fill)

    nothing = np.zeros((1, 1), np.float32)
    c = gemm(np.broadcast_to(nothing, a.shape), np.broadcast_to(nothing, b.shape),
             np.empty((250, 700), np.float32), a_fill=fill_of(a), b_fill=fill_of(b),
             a_fill_columns=by_columns, b_fill_columns=by_columns)
    check(c, a, b, 1.0, None)


@pytest.mark.parametrize("shape", [(300, 500, 900), (1, 5000, 300), (5000, 1, 300), (16, 900, 400),
                                   (70, 50, 9000)])
def test_results_do_not_depend_on_threads(shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(7)
    m, n, k = shape
    a, b = sample(rng, np.float32, m, k), sample(rng, np.float32, k, n)
    call = gemm_call(a, b, c := np.empty((m, n), np.float32))
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("m", "n", "k"), [
    (1000, 1010, 7), (777, 13, 40), (1, 4096, 900), (1, 5000, 257), (1, 3001, 700), (24, 900, 70)])
def test_tasks_of_other_sizes_on_more_threads_have_the_same_bits(
    m: int, n: int, k: int, dtype: Any) -> None:
    rng = np.random.default_rng(k)
    a, b, before = (sample(rng, dtype, *shape) for shape in ((m, k), (k, n), (m, n)))
    results = []
    try:
        for threads in (1, 3, 16):
            _runtime.set_num_threads(threads)
            results.append([gemm(a, b, np.empty((m, n), dtype)),
                            gemm(a, b, before.copy(), accumulate=True),
                            gemm(a, b, before.copy(), accumulate=True, alpha=2.0)])
    finally:
        _runtime.set_num_threads(None)
    check(results[2][2], a, b, 2.0, before)
    for other in results[1:]:
        for one, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(one.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_many_rows_with_few_columns_of_a_transposed_operand(dtype: Any) -> None:
    rng = np.random.default_rng(21)
    for m, n, k in ((64, 2, 4), (501, 3, 3), (500, 17, 300), (130, 32, 32), (70, 64, 9)):
        a, b = laid_out(rng, sample(rng, dtype, m, k)), sample(rng, dtype, n, k).T
        before = sample(rng, dtype, m, n)
        check(gemm(a, b, before.copy(), alpha=3.0, accumulate=True), a, b, 3.0, before)
        check(gemm(a, b, np.empty((m, n), dtype)), a, b, 1.0, None)


def test_every_float16_keeps_its_value() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    one = np.ones((1, 1), np.float16)
    wide = gemm(halves[:, None], one, np.empty((1 << 16, 1), np.float32))[:, 0]
    np.testing.assert_array_equal(wide, halves.astype(np.float32))
    np.testing.assert_array_equal(
        gemm(halves[:, None], one, np.empty((1 << 16, 1), np.float16))[:, 0], halves)
