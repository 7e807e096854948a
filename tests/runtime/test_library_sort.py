"""Sorting and selection as compiled programs call them, against the primitives on NumPy."""

import numpy as np
import pytest
from library_helpers import (
    I64,
    POINTER,
    REAL,
    assert_same,
    code,
    library,
    pointers,
    sample,
)

from functrans.primitives.sort import sort_p, top_k_p

# a tie, short rows, rows that are sorted by several threads
SHAPES = [(1, 1), (3, 7), (0, 4), (2, 0), (5, 300), (2, 3000), (1, 70001)]


def sort_rows(operands, num_keys=1, stable=True):
    rows, n = operands[0].shape
    outs = [np.empty_like(x) for x in operands]
    function = library("sort_rows", *[I64] * 5, POINTER, POINTER, POINTER)
    dtypes = np.array([code(x.dtype) for x in operands], np.int64)
    function(rows, n, len(operands), num_keys, stable, dtypes, pointers(operands), pointers(outs))
    return outs


def reference(operands, num_keys=1, stable=True):
    return sort_p.evaluate(*operands, dimension=1, is_stable=stable, num_keys=num_keys)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("name", REAL)
def test_one_operand_is_sorted_as_by_the_primitive(name, few):
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        x = sample(rng, name, shape, few)
        assert_same(sort_rows([x])[0], reference([x])[0])
        unstable, expected = sort_rows([x], stable=False)[0], reference([x], stable=False)[0]
        np.testing.assert_array_equal(unstable.astype(float), expected.astype(float))


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("name", REAL)
def test_operands_are_sorted_together(name, few):
    rng = np.random.default_rng(1)
    for shape in SHAPES:
        keys = sample(rng, name, shape, few)
        payload = [sample(rng, other, shape) for other in ("int32", "uint8", "float64", "bfloat16")]
        second = sample(rng, "float64" if few else "int8", shape, few=True)
        for operands, num_keys in (([keys, *payload], 1), ([second, keys, *payload], 2)):
            got = sort_rows(operands, num_keys)
            for x, y in zip(got, reference(operands, num_keys), strict=True):
                assert_same(x, y)


@pytest.mark.parametrize("name", REAL)
def test_argsort_gives_indices_and_the_sorted_row_if_wanted(name):
    rng = np.random.default_rng(2)
    function = library("argsort_rows", I64, I64, I64, POINTER, POINTER, POINTER)
    for shape in [(3, 50), (1, 70000)]:
        x = sample(rng, name, shape)
        places = np.broadcast_to(np.arange(shape[1], dtype=np.int32), shape)
        expected = reference([x, places])
        out, indices = np.empty_like(x), np.empty(shape, np.int32)
        function(*shape, code(x.dtype), x, out, indices)
        assert_same(out, expected[0])
        assert_same(indices, expected[1])
        function(*shape, code(x.dtype), x, None, indices)
        assert_same(indices, expected[1])


def test_wide_keys_that_agree_in_their_leading_bits_are_told_apart():
    rng = np.random.default_rng(3)
    near = 1 + rng.integers(0, 50, (1, 5000)) * 2.0**-52
    for keys in (near, np.where(rng.random((1, 5000)) < 0.001, 1e300, near),
                 rng.integers(-3, 3, (1, 5000)) + 2**62, np.full((1, 100), -7)):
        operands = [keys, np.arange(keys.size, dtype=np.int32)[None]]
        for x, y in zip(sort_rows(operands), reference(operands), strict=True):
            assert_same(x, y)


def test_long_rows_of_one_value_sorted_rows_and_nothing_but_nan():
    n = 100_000
    for row in (np.zeros(n), np.full(n, np.nan), np.arange(n), -np.arange(n), np.arange(n) % 2):
        for dtype in (np.float32, np.float64):
            x = row.astype(dtype)[None]
            assert_same(sort_rows([x])[0], reference([x])[0])
            operands = [x, np.arange(n, dtype=np.int32)[None]]
            assert_same(sort_rows(operands)[1], reference(operands)[1])


@pytest.mark.parametrize("name", REAL)
def test_top_k_is_that_of_the_primitive(name):
    rng = np.random.default_rng(4)
    function = library("top_k_rows", *[I64] * 4, POINTER, POINTER, POINTER)
    for rows, n in [(1, 1), (3, 7), (5, 300), (2, 5000), (1, 140_000)]:
        for few in (False, True):
            x = sample(rng, name, (rows, n), few)
            for k in {0, 1, min(n, 3), min(n, 64), n // 2, n}:
                values, indices = np.empty((rows, k), x.dtype), np.empty((rows, k), np.int32)
                function(rows, n, k, code(x.dtype), x, values, indices)
                expected = top_k_p.evaluate(x, k=k, axis=1)
                assert_same(values, expected[0])
                assert_same(indices, expected[1])
