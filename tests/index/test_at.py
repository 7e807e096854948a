"""x.at[index] against NumPy: every operation, eagerly, staged, differentiated and mapped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from index_laws import check_batching, check_derivatives
from index_strategies import indexed_arrays
from test_getitem import integer_arrays, numpy_result, with_arrays

import functrans as ft
import functrans.numpy as jnp
from functrans._runtime import wrap
from functrans.at import At
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.dims import Dim
from functrans.core.errors import ArgumentError, DTypeError, ImmutableArrayError, ShapeError
from functrans.core.evaluate import eval_jaxpr, interpret
from functrans.core.staging import stage
from functrans.numpy.indexing import getitem

F32 = np.dtype(np.float32)
UFUNCS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
          "power": np.power, "min": np.minimum, "max": np.maximum}
operations = st.sampled_from(["set", *UFUNCS])


def reference(x: np.ndarray, index: Any, values: np.ndarray, name: str) -> np.ndarray:
    out = x.copy()
    if name == "set":
        out[index] = values
    elif name in ("divide", "power"):
        product = np.ones_like(x)
        np.multiply.at(product, index, values)
        out = UFUNCS[name](x, product)
    else:
        UFUNCS[name].at(out, index, values)
    return out


@st.composite
def updates(draw: Any, **options: Any) -> Any:
    """(x, index, values that broadcast, operation); `set` gets one value if an index repeats."""
    x, index = draw(indexed_arrays(**options))
    target = numpy_result(x, index)
    name = draw(operations)
    dropped = draw(st.integers(0, target.ndim))
    shape = tuple(draw(st.sampled_from([1, s])) for s in target.shape[dropped:])
    if name == "set" and integer_arrays(index):
        shape = ()
    x = 0.5 + (x % 7) / 4
    values = np.random.default_rng(draw(st.integers(0, 99))).uniform(0.5, 2.0, shape)
    return x, index, values, name


@settings(max_examples=300, deadline=None)
@given(updates())
def test_eager_and_staged_are_numpy(case: Any) -> None:
    x, index, values, name = case
    expected = reference(x, index, values, name)
    arrays = integer_arrays(index)

    def fun(x: Any, values: Any, *given_arrays: Any) -> list[Any]:
        return [getattr(At(x)[with_arrays(index, given_arrays)], name)(values)]

    args = [wrap(a) for a in (x, values, *arrays)]
    closed = stage(fun, [get_aval(a) for a in args])
    assert closed.out_avals[0].shape == x.shape
    for got in (getattr(At(wrap(x))[index], name)(wrap(values)), fun(*args)[0],
                eval_jaxpr(closed.jaxpr, closed.consts, *args)[0]):
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(indexed_arrays())
def test_apply_acts_as_often_as_an_index_is_there(case: Any) -> None:
    x, index = case
    places = numpy_result(np.arange(x.size).reshape(x.shape), index)
    expected = x.copy()
    np.multiply.at(expected.reshape(-1), places.reshape(-1), 2)
    got = At(wrap(x))[index].apply(lambda v: v * 2.0)
    np.testing.assert_array_equal(np.asarray(got), expected)
    arrays = integer_arrays(index)
    staged = ft.jit(lambda x, *given: At(x)[with_arrays(index, given)].apply(lambda v: v * 2.0))
    with ft.config.use_backend("reference"):
        np.testing.assert_array_equal(staged(wrap(x), *map(wrap, arrays)), expected)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mode", ["clip", "fill", "drop", "wrap", "promise_in_bounds"])
@pytest.mark.parametrize("i", [0, 4, 5, 9, -1, -5, -6, -12])
def test_ints_out_of_bounds_mean_what_index_arrays_mean(mode: str, i: int) -> None:
    x = jnp.arange(5.0)
    pair = jnp.arange(15.0).reshape(5, 3)
    traced = ft.jit(lambda i, f: f(i), static_argnums=1)
    with ft.config.use_backend("reference"):
        for fun in (lambda i: x.at[i].get(mode=mode, fill_value=-1 if mode == "fill" else None),
                    lambda i: pair.at[i].get(mode=mode), lambda i: pair.at[i, ::2].get(mode=mode),
                    lambda i: pair.at[:, i].get(mode=mode),
                    lambda i: x.at[i].set(9.0, mode=mode), lambda i: x.at[i].add(9.0, mode=mode),
                    lambda i: x.at[i].max(9.0, mode=mode), lambda i: x.at[i].divide(2, mode=mode),
                    lambda i: pair.at[i, 1:].multiply(jnp.ones(2) * 3, mode=mode),
                    lambda i: pair.at[i].apply(jnp.sin, mode=mode),
                    lambda i: jnp.take(x, i, mode=mode if mode != "drop" else "fill"),
                    lambda i: jnp.take_along_axis(
                        x, jnp.asarray([i]), 0, mode=mode if mode != "drop" else "fill")):
            if mode == "promise_in_bounds" and not -5 <= i < 5:
                continue
            expected = traced(np.int32(i), fun)
            np.testing.assert_array_equal(np.asarray(fun(i)), np.asarray(expected))
            np.testing.assert_array_equal(np.asarray(fun(np.int32(i))), np.asarray(expected))
            np.testing.assert_array_equal(np.asarray(ft.jit(lambda fun=fun: fun(i))()),
                                          np.asarray(expected))


def test_modes_are_those_of_jax() -> None:
    x, i = jnp.arange(5.0), jnp.asarray([5, -6, -1])
    assert x.at[5].get(mode="fill", fill_value=-1) == -1
    assert x.at[-6].get(mode="clip") == 0 and x.at[5].get(mode="clip") == 4
    assert x.at[5].set(9.0, mode="clip").tolist() == [0, 1, 2, 3, 9]
    assert x.at[5].set(9.0, mode="drop").tolist() == [0, 1, 2, 3, 4]
    assert jnp.take(x, i, mode="clip").tolist() == [4, 0, 0]  # as NumPy, which does not count back
    assert jnp.take_along_axis(x, i, 0, mode="clip").tolist() == [4, 0, 4]
    assert jnp.take_along_axis(x, i, 0, mode="wrap").tolist() == [0, 4, 4]
    put = jnp.put_along_axis(x, i, 9.0, 0, inplace=False, mode="clip")
    assert put.tolist() == [9, 1, 2, 3, 9]
    assert jnp.put(x, i, 9.0, mode="clip", inplace=False).tolist() == [9, 1, 2, 3, 9]


@settings(max_examples=60, deadline=None)
@given(updates(max_ndim=3))
def test_derivatives(case: Any) -> None:
    x, index, values, name = case
    assume(values.size and x.size < 40)
    if name in ("min", "max"):  # away from ties
        x, values = np.sin(x * np.arange(1, x.size + 1).reshape(x.shape)), np.cos(7 * values)
    check_derivatives(lambda a, v: [getattr(At(a)[index], name)(v)], [x, values],
                      order=1 if name == "power" else 2)


@settings(max_examples=60, deadline=None)
@given(updates(max_ndim=2, masks=False))
def test_mapped_over_operand_indices_and_values(case: Any) -> None:
    x, index, values, name = case
    check_batching(lambda a, v, *arrays: [getattr(At(a)[with_arrays(index, arrays)], name)(v)],
                   [x, values, *integer_arrays(index)], lanes=2)


def test_one_of_repeated_values_wins_and_takes_the_derivative() -> None:
    x, i = np.zeros(3), np.array([1, 1, 1])
    values = np.array([5.0, 6.0, 7.0])
    check_derivatives(lambda a, v: [At(a)[wrap(i)].set(v)], [x, values])
    assert np.asarray(At(wrap(x))[i].set(wrap(values)))[1] in values


class TestBounds:
    x = np.zeros(4)

    def put(self, index: Any, **options: Any) -> Any:
        one = np.asarray(1.0)
        eager = At(wrap(self.x))[wrap(np.asarray(index))].add(wrap(one), **options)
        closed = stage(lambda x, i: [At(x)[i].add(1.0, **options)],
                       [get_aval(self.x), get_aval(np.asarray(index))])
        staged = eval_jaxpr(closed.jaxpr, closed.consts, wrap(self.x), wrap(np.asarray(index)))[0]
        np.testing.assert_array_equal(np.asarray(eager), np.asarray(staged))
        return np.asarray(eager).tolist()

    def test_dropped(self) -> None:
        assert self.put([0, 9, -1, -9]) == [1, 0, 0, 1]
        assert self.put(9) == self.put(9, mode="drop") == [0, 0, 0, 0]

    def test_clip(self) -> None:
        assert self.put([9, -9], mode="clip") == [1, 0, 0, 1]
        assert self.put(9, mode="clip") == [0, 0, 0, 1]

    def test_wrap(self) -> None:
        assert self.put([5, -1], mode="wrap") == [0, 1, 0, 1]
        assert self.put(5, mode="wrap") == [0, 1, 0, 0]

    def test_get(self) -> None:
        got = At(wrap(np.arange(3.0)))[np.array([0, 5])]
        assert np.asarray(got.get(mode="fill", fill_value=9)).tolist() == [0, 9]
        assert np.asarray(got.get()).tolist() == [0, 2]

    def test_unknown_mode(self) -> None:
        with pytest.raises(ArgumentError, match="no mode"):
            At(wrap(self.x))[0].set(1, mode="nearest")


class TestDtypes:
    def test_result_keeps_the_dtype(self) -> None:
        ints = wrap(np.arange(4, dtype=np.int32))
        assert np.asarray(At(ints)[0].set(2.7)).tolist() == [2, 1, 2, 3]
        assert np.asarray(At(ints)[1].add(1.5)).tolist() == [0, 2, 2, 3]
        assert np.asarray(At(ints)[3].divide(2)).tolist() == [0, 1, 2, 1.5]  # a quotient
        big = wrap(np.array([3], np.int64))
        assert np.asarray(At(big)[0].power(39)).tolist() == [3**39]
        for got in (At(ints)[0].set(2.7), At(ints)[np.array([0])].multiply(1.5)):
            assert got.dtype == np.int32

    def test_complex_into_real(self) -> None:
        with pytest.raises(DTypeError, match=r"complex values do not fit an array of float64"):
            At(wrap(np.zeros(2)))[0].set(1j)

    def test_booleans(self) -> None:
        mask = wrap(np.zeros(3, bool))
        assert np.asarray(At(mask)[1].set(True)).tolist() == [False, True, False]
        assert np.asarray(At(mask)[np.array([1])].max(True)).tolist() == [False, True, False]


class TestTracedMask:
    """Scalars can be put where a traced mask says, though x[mask] has no known shape."""

    @pytest.mark.parametrize("name", ["set", *UFUNCS])
    def test_scalar(self, name: str) -> None:
        x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        mask = np.array([True, False, True])
        closed = stage(lambda x, m: [getattr(At(x)[m], name)(3.0)], [get_aval(x), get_aval(mask)])
        got = eval_jaxpr(closed.jaxpr, (), wrap(x), wrap(mask))[0]
        np.testing.assert_allclose(np.asarray(got), reference(x, mask, np.asarray(3.0), name))

    def test_gradient(self) -> None:
        check_derivatives(lambda x, v: [At(x)[wrap(np.array([True, False]))].multiply(v)],
                          [np.array([2.0, 3.0]), np.array(4.0)])


class TestLowering:
    vector = ShapedArray((5,), F32)

    def names(self, fun: Any, *avals: ShapedArray) -> list[str]:
        return [e.primitive.name for e in stage(lambda *a: [fun(*a)], list(avals)).eqns]

    def test_static_parts_are_a_window(self) -> None:
        u = ShapedArray((2,), F32)
        assert self.names(lambda x, u: At(x)[1:3].set(u), self.vector, u) == [
            "dynamic_update_slice"]
        assert self.names(lambda x, u: At(x)[1:3].add(u), self.vector, u) == [
            "slice", "add", "dynamic_update_slice"]
        assert self.names(lambda x, u: At(x)[2:0:-1].set(u), self.vector, u) == [
            "rev", "dynamic_update_slice"]

    def test_everything(self) -> None:
        assert self.names(lambda x: At(x)[:].add(x), self.vector) == ["add"]

    def test_known_distinct_indices_are_said_to_be(self) -> None:
        def text(i: Any) -> str:
            return str(stage(lambda x: [At(x)[i].set(1.0)], [self.vector]))

        assert "unique_indices=True" in text(np.array([3, 1]))
        assert "unique_indices=False" in text(np.array([1, 1]))
        assert "unique_indices=True" in text(np.array([True, False, True, False, False]))


class TestErrors:
    x = wrap(np.zeros((4, 3), np.float32))

    def test_values_do_not_broadcast(self) -> None:
        with pytest.raises(ShapeError, match=r"values of shape \(2,\) do not fit x\[1:3\] of "
                                             r"shape \(2, 3\)"):
            At(self.x)[1:3].set(np.zeros(2))

    def test_assignment_to_at(self) -> None:
        with pytest.raises(ImmutableArrayError, match=r"x = x.at\[0, 1:\].set\(5\)"):
            At(self.x)[0, 1:] = 5


def test_numpy_and_array_values() -> None:
    x = wrap(np.zeros(3, np.float32))
    for values in (np.arange(2), wrap(np.arange(2)), [0, 1]):
        assert np.asarray(At(x)[1:].set(values)).tolist() == [0, 0, 1]
    assert getitem(At(x)[0].set(1), 0).dtype == np.float32


@pytest.mark.parametrize("change", [
    lambda x, i: At(x)[i].add(1.0), lambda x, i: At(x)[-1].set(7.0),
    lambda x, i: At(x)[::2].multiply(3.0), lambda x, i: At(x)[1:].add(2.0),
    lambda x, i: At(x)[:, 0].set(5.0), lambda x, i: At(x)[-2:, i].set(0.0),
    lambda x, i: getitem(x, i), lambda x, i: getitem(x, (i, -1)),
    lambda x, i: getitem(x, -1), lambda x, i: getitem(x, (slice(None, None, -1), 0)),
    lambda x, i: getitem(x, i[0])])
def test_symbolic_sizes(change: Any) -> None:
    """A program over an unknown number of rows gives what the same program over 5 rows gives."""
    x, i = np.arange(15.0).reshape(5, 3), np.array([0, -1], np.int32)
    closed = stage(lambda x, i: [change(x, i)], [ShapedArray((Dim("n"), 3), x.dtype), get_aval(i)])
    got = interpret(closed.jaxpr, [x, i])[0]
    np.testing.assert_array_equal(got, np.asarray(change(wrap(x), wrap(i))))
