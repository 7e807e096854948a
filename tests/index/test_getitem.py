"""Indexing against NumPy: eagerly, staged with traced indices, differentiated, mapped."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from index_laws import check_batching, check_derivatives
from index_strategies import indexed_arrays, is_integer_array

from functrans._runtime import wrap
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.dims import Dim
from functrans.core.errors import ArgumentError, ConcretizationError, IndexingError
from functrans.core.evaluate import eval_jaxpr
from functrans.core.staging import stage
from functrans.numpy.indexing import getitem, index_array
from functrans.transforms.jvp import jvp_flat

F32 = np.dtype(np.float32)
many = settings(max_examples=300, deadline=None)
few = settings(max_examples=60, deadline=None)


def numpy_result(x: np.ndarray, index: Any) -> np.ndarray:
    """x[index] by NumPy; an example whose masks and arrays do not broadcast is dropped."""
    try:
        return np.asarray(x[index])
    except IndexError:
        assume(False)
        raise


def with_arrays(index: tuple[Any, ...], arrays: Any) -> tuple[Any, ...]:
    given_arrays = iter(arrays)
    return tuple(next(given_arrays) if is_integer_array(i) else i for i in index)


def integer_arrays(index: tuple[Any, ...]) -> list[np.ndarray]:
    return [i for i in index if is_integer_array(i)]


@many
@given(indexed_arrays())
def test_eager_is_numpy(case: Any) -> None:
    x, index = case
    expected = numpy_result(x, index)
    ours = tuple(wrap(i) if is_integer_array(i) else i for i in index)
    for got in (getitem(wrap(x), index), getitem(wrap(x), ours), index_array(wrap(x), index)):
        assert got.shape == expected.shape
        np.testing.assert_array_equal(np.asarray(got), expected)


@many
@given(indexed_arrays())
def test_staged_with_known_and_with_traced_indices_is_numpy(case: Any) -> None:
    x, index = case
    expected = numpy_result(x, index)
    arrays = integer_arrays(index)
    for traced in ([], arrays):
        def fun(x: Any, *given_arrays: Any, traced: Any = traced) -> list[Any]:
            return [getitem(x, with_arrays(index, given_arrays) if traced else index)]

        closed = stage(fun, [get_aval(a) for a in (x, *traced)])
        assert closed.out_avals[0].shape == expected.shape
        got = eval_jaxpr(closed.jaxpr, closed.consts, wrap(x), *map(wrap, traced))[0]
        np.testing.assert_array_equal(np.asarray(got), expected)


@few
@given(indexed_arrays(max_ndim=3))
def test_derivatives(case: Any) -> None:
    x, index = case
    numpy_result(x, index)
    check_derivatives(lambda v: [getitem(v, index)], [np.sin(x)])


@few
@given(indexed_arrays(max_ndim=3, masks=False))
def test_mapped_over_operand_and_indices(case: Any) -> None:
    x, index = case
    numpy_result(x, index)
    check_batching(lambda v, *arrays: [getitem(v, with_arrays(index, arrays))],
                   [x, *integer_arrays(index)])


class TestLowering:
    """The cheapest operations that say it."""

    def names(self, fun: Any, *avals: ShapedArray) -> list[str]:
        return [e.primitive.name for e in stage(lambda *a: [fun(*a)], list(avals)).eqns]

    matrix = ShapedArray((4, 3), F32)
    scalar = ShapedArray((), np.dtype(np.int32))

    @pytest.mark.parametrize(("index", "expected"), [
        (0, ["slice", "reshape"]), (slice(None), []), (slice(1, 3), ["slice"]),
        ((..., None), ["reshape"]), (slice(None, None, -1), ["rev"]),
        (slice(None, None, -2), ["slice", "rev"]), ((1, 2), ["slice", "reshape"]),
        (np.array(1), ["slice", "reshape"]), (np.array([1, 0]), ["gather"]),
        ((np.array([1, 0]), 2), ["slice", "reshape", "gather"])], ids=str)
    def test_static(self, index: Any, expected: list[str]) -> None:
        assert self.names(lambda x: getitem(x, index), self.matrix) == expected

    def test_traced_scalar_is_a_dynamic_slice(self) -> None:
        names = self.names(lambda x, i: getitem(x, (slice(None), i)), self.matrix, self.scalar)
        assert names == ["lt", "add", "select_n", "dynamic_slice", "reshape"]

    def test_known_indices_in_bounds_need_no_clamp(self) -> None:
        text = str(stage(lambda x: [getitem(x, np.array([0, 3]))], [self.matrix]))
        assert "mode=PROMISE_IN_BOUNDS" in text

    def test_no_batch_iota(self) -> None:
        names = self.names(lambda x, i: getitem(x, i), self.matrix,
                           ShapedArray((2,), np.dtype(np.uint8)))
        assert names == ["reshape", "gather"]


class TestBounds:
    x = np.arange(4.0)

    def get(self, index: Any, **options: Any) -> Any:
        """The same eagerly and staged."""
        eager = index_array(wrap(self.x), wrap(np.asarray(index)), **options)
        closed = stage(lambda x, i: [index_array(x, i, **options)],
                       [get_aval(self.x), get_aval(np.asarray(index))])
        staged = eval_jaxpr(closed.jaxpr, (), wrap(self.x), wrap(np.asarray(index)))[0]
        np.testing.assert_array_equal(np.asarray(eager), np.asarray(staged))
        return np.asarray(eager).tolist()

    def test_arrays_are_clamped(self) -> None:
        assert self.get([0, 9, -9, -1]) == [0, 3, 0, 3]
        assert self.get(9) == 3 and self.get(-9) == 0
        assert np.asarray(getitem(wrap(self.x), np.array([9]))).tolist() == [3]

    def test_fill(self) -> None:
        assert self.get([0, 9, -1], mode="fill", fill_value=7) == [0, 7, 3]
        assert np.isnan(self.get([9], mode="fill")[0])
        assert np.isnan(self.get(9, mode="fill"))
        assert self.get([0, 9], fill_value=5) == [0, 5]

    def test_wrap(self) -> None:
        assert self.get([5, -1, -5, 8], mode="wrap") == [1, 3, 3, 0]
        assert self.get(5, mode="wrap") == 1

    def test_negative_without_wrapping(self) -> None:
        assert self.get([-1, 1], mode="clip", wrap_negative_indices=False) == [0, 1]

    def test_narrow_index_on_a_long_axis(self) -> None:
        x = np.arange(1000)
        i = np.array([-1, 5], np.int8)
        closed = stage(lambda x, i: [getitem(x, i)], [get_aval(x), get_aval(i)])
        assert np.asarray(eval_jaxpr(closed.jaxpr, (), wrap(x), wrap(i))[0]).tolist() == [999, 5]

    def test_empty_axis(self) -> None:
        empty = wrap(np.zeros((0, 3), np.float32))
        assert index_array(empty, np.zeros((0,), np.int32)).shape == (0, 3)
        assert np.isnan(np.asarray(index_array(empty, np.zeros(2, np.int32), mode="fill"))).all()
        with pytest.raises(IndexingError, match="axis 0 has size 0"):
            index_array(empty, np.zeros(2, np.int32))

    def test_symbolic_size(self) -> None:
        n = Dim("n")
        aval = ShapedArray((n, 3), F32)
        out = stage(lambda x: [getitem(x, slice(1, None)), getitem(x, (slice(None), 0)),
                               getitem(x, (..., None))], [aval]).out_avals
        assert [str(a) for a in out] == ["f32[n - 1,3]", "f32[n]", "f32[n,3,1]"]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", ml_dtypes.bfloat16, "complex64"])
def test_every_dtype(dtype: Any) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for index in (0, (slice(None), slice(None, None, -1)), np.array([1, 1]), x != 0):
        got = getitem(wrap(x), index)
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(got), x[index])


class TestErrors:
    x = wrap(np.zeros((4, 3), np.float32))

    @pytest.mark.parametrize(("index", "message"), [
        (5, "index 5 is out of bounds for axis 0 of size 4"),
        ((0, -4), "index -4 is out of bounds for axis 1 of size 3"),
        ((0, 0, 0), r"too many indices: x\[0, 0, 0\] uses 3 axes of an array of shape \(4, 3\)"),
        ([0, 1], r"a list is no index"),
        (1.5, r"1.5 is no index"), ("a", "'a' is no index"),
        (np.zeros(2), "an array of dtype float64 is no index"),
        ((..., ...), "at most one Ellipsis"), (slice(0, 2, 0), "step of a slice of axis 0 is 0"),
        (slice(0.5, 2), "a slice bound is an integer or None, and 0.5 is neither"),
        (np.zeros(3, bool), r"boolean index of shape \(3,\) does not match .* shape \(4,\)"),
        ((np.zeros(2, int), np.zeros(3, int)), r"shapes \(2,\), \(3,\), which do not broadcast"),
    ], ids=str)
    def test_what_is_no_index(self, index: Any, message: str) -> None:
        for read in (getitem, index_array):
            with pytest.raises(IndexingError, match=message) as error:
                read(self.x, index)
            assert "test_getitem.py" in str(error.value)

    def test_list_names_the_fix(self) -> None:
        with pytest.raises(IndexingError, match=r"x\[np.array\(\[...\]\)\]"):
            getitem(self.x, [0])

    def test_traced_mask(self) -> None:
        def select(x: Any) -> list[Any]:
            return [getitem(x, x > 0)]

        with pytest.raises(ConcretizationError, match=r"functrans.numpy.where\(mask, x"):
            stage(select, [ShapedArray((3,), F32)])

    def test_traced_slice_bound(self) -> None:
        with pytest.raises(ConcretizationError, match="dynamic_slice_in_dim"):
            stage(lambda x, i: [getitem(x, slice(i, None))],
                  [ShapedArray((3,), F32), ShapedArray((), np.dtype(np.int32))])

    def test_unknown_mode(self) -> None:
        with pytest.raises(ArgumentError, match="no mode 'raise'"):
            index_array(self.x, 0, mode="raise")


def test_concrete_mask_under_grad() -> None:
    """Under jvp and grad values are known, so a computed mask is an index."""
    x = wrap(np.array([-1.0, 2.0, 3.0]))
    outs, tangents = jvp_flat(lambda v: [getitem(v, v > 0)], [x], [x])
    assert np.asarray(outs[0]).tolist() == np.asarray(tangents[0]).tolist() == [2.0, 3.0]


def test_small_results_do_not_keep_the_whole() -> None:
    x = wrap(np.arange(100_000.0))
    assert getitem(x, (slice(2, 4),))._np.base is None
    assert getitem(x, (slice(2, 50_000),))._np.base is not None  # a large one is a view
