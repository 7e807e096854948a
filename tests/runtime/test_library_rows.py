"""Running combinations, scatter and gather of rows as compiled programs call them."""

import ml_dtypes
import numpy as np
import pytest
from library_helpers import I64, POINTER, REAL, assert_same, code, dtype_of, library, sample

from functrans.primitives import cumulative

CUMULATIVE = [cumulative.cumsum_p, cumulative.cumprod_p, cumulative.cummax_p, cumulative.cummin_p,
              cumulative.cumlogsumexp_p]
WHOLE = [name for name in REAL if name not in ("float16", "bfloat16")]


FLOATING = ("float32", "float64")
TAKEN = [(op, name) for op in range(5) for name in WHOLE
         if (op != 4 or name in FLOATING) and (op >= 2 or name != "bool")]


@pytest.mark.parametrize(("op", "name"), TAKEN)
def test_running_combinations_are_those_of_the_primitives(op, name):
    inexact = name in FLOATING and op in (0, 1, 4)
    rng = np.random.default_rng(0)
    function = library("cumulate_rows", *[I64] * 6, POINTER, POINTER)
    for shape in [(1, 1, 1), (3, 7, 1), (5, 300, 1), (1, 200_001, 1), (2, 40, 33), (2, 5, 1100)]:
        x = sample(rng, name, shape, few=True)
        if inexact:
            x = (rng.standard_normal(shape) * 1e-3 + (op == 1)).astype(name)
        for reverse in (False, True):
            out = np.empty_like(x)
            function(op, code(x.dtype), reverse, *shape, x, out)
            if inexact:
                wide = CUMULATIVE[op].evaluate(x.astype(np.float64), axis=1, reverse=reverse)
                rtol = 1e-11 if name == "float64" else 1e-3 if op == 4 else 2e-5
                np.testing.assert_allclose(out, wide, rtol, 20 * rtol)
            else:
                assert_same(out, CUMULATIVE[op].evaluate(x, axis=1, reverse=reverse))


def test_sums_of_negative_zeros_are_negative_and_nan_stays_in_extrema():
    function = library("cumulate_rows", *[I64] * 6, POINTER, POINTER)
    x = np.full((1, 20, 1), -0.0, np.float32)
    out = np.empty_like(x)
    function(0, code(x.dtype), 0, *x.shape, x, out)
    assert np.signbit(out).all()
    x[0, 5] = np.nan
    for op in (2, 3):
        function(op, code(x.dtype), 0, *x.shape, x, out)
        assert_same(out, CUMULATIVE[op].evaluate(x, axis=1, reverse=False))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["float32", "float64", "int32", "int64", "uint32", "uint64",
                                  "bfloat16"])
@pytest.mark.parametrize("op", ["add", "multiply", "maximum", "minimum", "set"])
def test_scattered_rows_are_combined_in_their_order(op, name):
    rng = np.random.default_rng(1)
    function = library("scatter_rows", *[I64] * 6, POINTER, POINTER, POINTER)
    number = {"add": 0, "multiply": 1, "maximum": 2, "minimum": 3, "set": 5}[op]
    dtype = dtype_of(name)
    for rows, width, targets in [(5, 3, 4), (3000, 1, 50), (3000, 17, 90), (900, 200, 33),
                                 (0, 3, 4), (1, 1, 1), (2000, 40, 1)]:
        for index_dtype, sort in [(np.int32, True), (np.int64, False)]:
            index = rng.integers(-2, targets + 2, rows).astype(index_dtype)
            if sort:
                index.sort()
            updates = rng.integers(0, 3, (rows, width)).astype(dtype)
            out = rng.integers(1, 4, (targets, width)).astype(dtype)
            expected = out.copy()
            for row in np.flatnonzero((index >= 0) & (index < targets)):
                at, update = index[row], updates[row]
                with np.errstate(over="ignore"):
                    expected[at] = update if op == "set" else getattr(np, op)(expected[at], update)
            function(number, code(dtype), index_dtype == np.int64, rows, width, targets, index,
                     updates, out)
            assert_same(out, expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64, np.complex128,
                                   ml_dtypes.bfloat16])
def test_gathered_rows_and_the_fill_where_an_index_is_outside(dtype):
    rng = np.random.default_rng(2)
    function = library("gather_rows", *[I64] * 5, *[POINTER] * 4)
    for width in (1, 2, 3, 20):
        x = rng.integers(0, 100, (40, width)).astype(dtype)
        index = rng.integers(-3, 43, 5000).astype(np.int32)
        inside = (index >= 0) & (index < 40)
        for fill in (None, np.array([7]).astype(dtype)):
            out = np.empty((5000, width), dtype)
            function(x.itemsize, 0, 5000, width, 40, index, x, fill, out)
            value = np.zeros(1, dtype) if fill is None else fill
            expected = np.where(inside[:, None], x[np.where(inside, index, 0)], value)
            np.testing.assert_array_equal(out, expected)
