"""Pooling: against a plain loop, its laws over random windows, and its errors."""

from __future__ import annotations

import builtins
import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_laws import check_batching, check_derivatives, check_staging, wide

from functrans.core.avals import ShapedArray, get_aval
from functrans.core.dims import Dim
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.core.staging import stage
from functrans.primitives import window as pool
from functrans.primitives.arithmetic import add, max, min, mul
from functrans.primitives.broadcast import reduce_sum
from functrans.transforms.derivatives import grad
from functrans.transforms.forward import jvp
from functrans.transforms.reverse import vjp
from functrans.transforms.vmap import vmap

REDUCTIONS = {"sum": (pool.reduce_window_sum, np.add, 0.0),
              "max": (pool.reduce_window_max, np.maximum, -np.inf),
              "min": (pool.reduce_window_min, np.minimum, np.inf)}
PRIMITIVES = [pool.reduce_window_sum_p, pool.reduce_window_max_p, pool.reduce_window_min_p,
              pool.window_take_p, pool.window_put_p, pool.window_argmax_p, pool.window_argmin_p]


def loop_pool(x: np.ndarray, ufunc: Any, start: Any, window: Any, strides: Any, padding: Any,
              base_dilation: Any, window_dilation: Any) -> np.ndarray:
    """One window after the other, one element after the other."""
    sizes = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape, base_dilation)]
    extents = [(k - 1) * d + 1 for k, d in zip(window, window_dilation)]
    places = [0 if n + lo + hi < k else (n + lo + hi - k) // s + 1
              for n, (lo, hi), k, s in zip(sizes, padding, extents, strides)]
    out = np.full(places, start, x.dtype)
    for p in np.ndindex(*places):
        for k in np.ndindex(*window):
            at = [pp * s + kk * wd - lo for pp, s, kk, wd, (lo, _)
                  in zip(p, strides, k, window_dilation, padding)]
            inside = all(0 <= a < n and a % d == 0 for a, n, d in zip(at, sizes, base_dilation))
            value = x[tuple(a // d for a, d in zip(at, base_dilation))] if inside else start
            out[p] = ufunc(out[p], value)
    return out


@st.composite
def windows(draw: Any) -> dict[str, Any]:
    n = draw(st.integers(1, 3))
    small = lambda low, high: tuple(draw(st.integers(low, high)) for _ in range(n))
    shape, base_dilation = small(1, 6), small(1, 2)
    padding = []
    for size, d in zip(shape, base_dilation):
        low = draw(st.integers(-1, 2))
        padding.append((low, draw(st.integers(builtins.max(-1, -low - (size - 1) * d - 1), 2))))
    x = np.random.default_rng(draw(st.integers(0, 99))).permutation(int(np.prod(shape))) * 1.0
    return {"x": x.reshape(shape) - 3.0, "args": (small(1, 3), small(1, 3), padding, base_dilation,
                                                  small(1, 2))}



every_reduction = pytest.mark.parametrize("name", REDUCTIONS)


@every_reduction
@settings(max_examples=60, deadline=None)
@given(config=windows())
def test_against_a_loop(name: str, config: dict[str, Any]) -> None:
    fun, ufunc, start = REDUCTIONS[name]
    expected = loop_pool(config["x"], ufunc, start, *config["args"])
    np.testing.assert_allclose(np.asarray(fun(config["x"], *config["args"])), expected, rtol=1e-12)


@every_reduction
@settings(max_examples=40, deadline=None)
@given(config=windows())
def test_derivatives_to_second_order(name: str, config: dict[str, Any]) -> None:
    fun = REDUCTIONS[name][0]
    if not np.all(np.isfinite(np.asarray(fun(config["x"], *config["args"])))):
        return  # a window of padding alone: its difference quotient is inf - inf

    def smooth(x: Any) -> Any:
        out = fun(mul(x, x), *config["args"])
        return mul(out, out)

    check_derivatives(smooth, [config["x"] / 7 + 2])


@every_reduction
@settings(max_examples=25, deadline=None)
@given(config=windows())
def test_batching_and_staging(name: str, config: dict[str, Any]) -> None:
    fun = REDUCTIONS[name][0]
    pooled = lambda x: fun(x, *config["args"])
    check_batching(pooled, [config["x"]])
    check_staging(pooled, [config["x"]])
    gradient = lambda x, ct: vjp(pooled, x)[1](ct)[0]
    check_batching(gradient, [config["x"], np.asarray(pooled(config["x"])) * 0 + 1
                              if name == "sum" else np.ones(pooled(config["x"]).shape)])


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=str)
def test_samples_keep_the_laws(primitive: Any) -> None:
    for sample in primitive.samples():
        args = [wide(a) for a in sample.args]
        floats = [a for a in args if a.dtype.kind == "f"]
        rest = [a for a in args if a.dtype.kind != "f"]
        fun = lambda *xs, s=sample, r=rest: primitive.bind(*xs, *r, **s.params)
        check_batching(fun, floats)
        check_staging(fun, floats)
        if np.asarray(fun(*floats)).dtype.kind == "f":
            check_derivatives(fun, floats)


def test_places_may_be_mapped_alone() -> None:
    sample = next(pool.window_take_p.samples())
    x, place = sample.args
    places = np.stack([place, 3 - place])
    take = lambda p: pool.window_take_p.bind(x, p, **sample.params)
    got = np.asarray(vmap(take)(places))
    for lane, p in zip(got, places):
        np.testing.assert_array_equal(lane, np.asarray(take(p)))


def test_wide_windows_go_through_one_reduction() -> None:
    x = np.random.default_rng(0).normal(size=(40, 50))
    for name, (fun, ufunc, start) in REDUCTIONS.items():
        args = ((20, 3), (3, 1), [(4, 1), (0, 0)], (1, 1), (2, 17))
        np.testing.assert_allclose(np.asarray(fun(x, *args)), loop_pool(x, ufunc, start, *args),
                                   err_msg=name)


def test_first_of_equal_elements_has_the_derivative() -> None:
    x = np.array([2.0, 2.0, 1.0, 5.0])
    pooled = lambda x: reduce_sum(pool.reduce_window_max(x, (3,), (1,)), (0,))
    assert np.asarray(grad(pooled)(x)).tolist() == [1, 0, 0, 1]


def test_nan_wins_and_has_the_derivative() -> None:
    x = np.array([1.0, np.nan, 3.0, np.nan])
    pooled = lambda x: pool.reduce_window_max(x, (4,))
    out, tangent = jvp(pooled, (x,), (np.array([1.0, 2.0, 3.0, 4.0]),))
    assert np.isnan(np.asarray(out)).all() and np.asarray(tangent).tolist() == [2.0]


def test_windows_of_padding_alone() -> None:
    x = np.array([1.0, 2.0])
    pooled = lambda x: pool.reduce_window_max(x, (2,), (2,), [(2, 0)])
    out, pull = vjp(pooled, x)
    assert np.asarray(out).tolist() == [-np.inf, 2.0]
    assert np.asarray(pull(np.array([7.0, 1.0]))[0]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16, np.int32, np.uint8, np.bool_])
def test_dtypes(dtype: Any) -> None:
    x = (np.arange(12).reshape(3, 4) % 5).astype(dtype)
    for fun, ufunc in [(pool.reduce_window_max, np.maximum), (pool.reduce_window_min, np.minimum)]:
        out = fun(x, (2, 2), padding="SAME")
        assert out.dtype == x.dtype
        edge = np.pad(x, ((0, 1), (0, 1)), mode="edge")
        expected = ufunc(ufunc(edge[1:, 1:], edge[1:, :-1]), ufunc(edge[:-1, 1:], edge[:-1, :-1]))
        np.testing.assert_array_equal(np.asarray(out), expected)
    if dtype is not np.bool_:
        assert pool.reduce_window_sum(x, (3, 4)).dtype == x.dtype


@pytest.mark.parametrize(("computation", "init", "primitive"), [
    (add, 0.0, "reduce_window_sum"), (max, -np.inf, "reduce_window_max"),
    (min, np.inf, "reduce_window_min"), (lambda a, b: add(b, a), 0, "reduce_window_sum"),
])
def test_reduce_window_recognises_what_is_one_operation(computation: Any, init: Any,
                                                        primitive: str) -> None:
    fun = lambda x: [pool.reduce_window(x, init, computation, (2, 2), (2, 2))]
    eqns = stage(fun, [ShapedArray((4, 4), np.dtype(np.float32))]).jaxpr.eqns
    assert [e.primitive.name for e in eqns] == [primitive]


@pytest.mark.parametrize(("computation", "ufunc", "init"), [
    (mul, np.multiply, 1.0), (add, np.add, 3.0), (max, np.maximum, 0.5),
    (lambda a, b: add(a, mul(b, b)), lambda a, b: a + b * b, 0.0),
])
@settings(max_examples=20, deadline=None)
@given(config=windows())
def test_reduce_window_with_any_function(computation: Any, ufunc: Any, init: float,
                                         config: dict[str, Any]) -> None:
    x = config["x"] / 10 + 0.03
    fun = lambda x: pool.reduce_window(x, init, computation, *config["args"])
    np.testing.assert_allclose(np.asarray(fun(x)), loop_pool(x, ufunc, init, *config["args"]))
    check_derivatives(fun, [x], order=1)
    check_batching(fun, [x])


def test_reduce_window_over_a_tree_finds_the_place_of_the_largest() -> None:
    x, at = np.array([3.0, 9.0, 4.0, 1.0]), np.arange(4.0)

    def larger(a: Any, b: Any) -> Any:
        wins = np.asarray(b[0]) > np.asarray(a[0])
        return np.where(wins, b[0], a[0]), np.where(wins, b[1], a[1])

    value, place = pool.reduce_window((x, at), (-np.inf, -1.0), larger, (2,), (2,))
    assert value.tolist() == [9.0, 4.0] and place.tolist() == [1.0, 2.0]


def test_a_traced_initial_value_has_a_derivative() -> None:
    x = np.array([1.0, 2.0, 3.0])
    fun = lambda init: reduce_sum(pool.reduce_window(x, init, mul, (2,)), (0,))
    assert float(np.asarray(grad(fun)(np.float64(2.0)))) == 1 * 2 + 2 * 3


def test_symbolic_batch() -> None:
    x = ShapedArray((Dim("B"), 8), np.dtype(np.float32))
    closed = stage(lambda x: [pool.reduce_window_max(x, (1, 2), (1, 2))], [x])
    assert closed.out_avals[0].shape == (Dim("B"), 4)


def test_cost() -> None:
    sample = next(pool.reduce_window_sum_p.samples())
    cost = pool.reduce_window_sum_p.cost(get_aval(sample.args[0]), **sample.params)
    assert (cost.flops, cost.bytes) == (2 * 2 * 2 * 4, 4 * (2 * 5 * 4 + 2 * 2 * 2))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: pool.reduce_window_sum(x, (2,)), ArgumentError, "window_dimensions.* 2 positive"),
    (lambda x: pool.reduce_window_sum(x, (2, 0)), ArgumentError, "window_dimensions"),
    (lambda x: pool.reduce_window_sum(x, (2, 2), (1,)), ArgumentError, "window_strides"),
    (lambda x: pool.reduce_window_max(x, (2, 2), padding="ALL"), ArgumentError, "'ALL'"),
    (lambda x: pool.reduce_window_max(x, (2, 2), padding=[(-9, 0)] * 2), ShapeError, "crops more"),
    (lambda x: pool.reduce_window_max(x + 1j, (2, 2)), DTypeError, "does not take complex"),
    (lambda x: pool.reduce_window((x, x), 0.0, operator.add, (2, 2)), ArgumentError,
     "one initial value per array"),
])
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(np.ones((3, 4)))
