"""Convolution: against a plain loop, its laws over random configurations, and its errors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_laws import check_batching, check_derivatives, check_staging, wide

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.dims import Dim
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.core.staging import stage
from functrans.primitives import conv as cv
from functrans.primitives import conv_columns
from functrans.primitives.arithmetic import mul
from functrans.primitives.broadcast import reduce_sum
from functrans.transforms.derivatives import grad, hessian
from functrans.transforms.forward import jvp
from functrans.transforms.reverse import vjp
from functrans.transforms.vmap import vmap

LAYOUTS = {1: [("NCW", "OIW", "NCW"), ("NWC", "WIO", "NWC")],
           2: [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("CNWH", "IWOH", "HNCW")],
           3: [("NCDHW", "OIDHW", "NCDHW"), ("NDHWC", "DHWIO", "NDHWC")]}


def total(x: Any) -> Any:
    return reduce_sum(x, tuple(range(x.ndim)))


def loop_conv(x: np.ndarray, w: np.ndarray, strides: Any, padding: Any, lhs_dilation: Any,
              rhs_dilation: Any, specs: Any, groups: int, batch_groups: int) -> np.ndarray:
    """Convolution as its definition says, one multiplication at a time."""
    spatial = [c for c in specs[1] if c not in "OI"]
    x = x.transpose([specs[0].index(c) for c in ("N", "C", *spatial)])
    w = w.transpose([specs[1].index(c) for c in ("O", "I", *spatial)])
    sizes = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[2:], lhs_dilation)]
    windows = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], rhs_dilation)]
    places = [max(0, (n + lo + hi - k) // s + 1) for n, (lo, hi), k, s
              in zip(sizes, padding, windows, strides)]
    per_group = w.shape[0] // (groups * batch_groups)
    images = x.shape[0] // batch_groups
    out = np.zeros((images, w.shape[0], *places), x.dtype)
    for n, o, *p in np.ndindex(out.shape):
        group = o // per_group
        image = n + (group * images if batch_groups > 1 else 0)
        first = group * w.shape[1] if groups > 1 else 0
        for i, *k in np.ndindex(w.shape[1:]):
            at = [pp * s + kk * rd - lo for pp, s, kk, rd, (lo, _)
                  in zip(p, strides, k, rhs_dilation, padding)]
            if all(0 <= a < size and a % d == 0 for a, size, d in zip(at, sizes, lhs_dilation)):
                place = tuple(a // d for a, d in zip(at, lhs_dilation))
                out[(n, o, *p)] += x[(image, first + i, *place)] * w[(o, i, *k)]
    order = [("N", "C", *spatial).index(c) for c in specs[2]]
    return out.transpose(order)


@st.composite
def configurations(draw: Any) -> dict[str, Any]:
    n = draw(st.sampled_from([1, 1, 2, 2, 2, 3]))
    small = lambda low, high: st.lists(st.integers(low, high), min_size=n, max_size=n)
    specs = draw(st.sampled_from(LAYOUTS[n]))
    groups, batch_groups = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2)]))
    kernel = draw(small(1, 3 if n < 3 else 2))
    sizes = draw(small(1, 6 if n < 3 else 4))
    lhs_dilation, rhs_dilation = draw(small(1, 3)), draw(small(1, 2))
    padding = []
    for size, d in zip(sizes, lhs_dilation):
        low = draw(st.integers(-1, 3))
        padding.append((low, draw(st.integers(max(-2, -low - (size - 1) * d - 1), 3))))
    inner = draw(st.integers(1, 2))
    dims = {"N": draw(st.integers(1, 2)) * batch_groups, "C": inner * groups, "I": inner,
            "O": draw(st.integers(1, 2)) * groups * batch_groups}
    letters = [c for c in specs[1] if c not in "OI"]
    x = [dims.get(c, 0) or sizes[letters.index(c)] for c in specs[0]]
    w = [dims.get(c, 0) or kernel[letters.index(c)] for c in specs[1]]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return {"x": rng.normal(size=x), "w": rng.normal(size=w), "specs": specs,
            "params": {"window_strides": draw(small(1, 3)), "padding": padding,
                       "lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation,
                       "dimension_numbers": specs, "feature_group_count": groups,
                       "batch_group_count": batch_groups}}


def function(config: dict[str, Any]) -> Any:
    return lambda x, w: cv.conv_general_dilated(x, w, **config["params"])


@settings(max_examples=120, deadline=None)
@given(configurations())
def test_against_a_loop(config: dict[str, Any]) -> None:
    p = config["params"]
    got = np.asarray(function(config)(config["x"], config["w"]))
    expected = loop_conv(config["x"], config["w"], p["window_strides"], p["padding"],
                         p["lhs_dilation"], p["rhs_dilation"], config["specs"],
                         p["feature_group_count"], p["batch_group_count"])
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(configurations())
def test_derivatives_to_second_order(config: dict[str, Any]) -> None:
    check_derivatives(function(config), (config["x"], config["w"]))


@settings(max_examples=40, deadline=None)
@given(configurations())
def test_vmap_is_a_loop(config: dict[str, Any]) -> None:
    check_batching(function(config), (config["x"], config["w"]))


@settings(max_examples=25, deadline=None)
@given(configurations())
def test_vmap_of_gradients_is_a_loop(config: dict[str, Any]) -> None:
    fun = function(config)

    def gradients(x: Any, w: Any) -> Any:
        out, pull = vjp(fun, x, w)
        dx, dw = pull(out)
        return cv.reshape(dw, (-1,)) if dw.size > dx.size else cv.reshape(dx, (-1,))

    check_batching(gradients, (config["x"], config["w"]))


@settings(max_examples=40, deadline=None)
@given(configurations())
def test_staging(config: dict[str, Any]) -> None:
    check_staging(function(config), (config["x"], config["w"]))


@pytest.mark.parametrize("index", range(len(list(cv.conv_general_dilated_p.samples()))))
def test_samples_keep_the_laws(index: int) -> None:
    sample = list(cv.conv_general_dilated_p.samples())[index]
    args = [wide(a) for a in sample.args]
    fun = lambda *xs: cv.conv_general_dilated_p.bind(*xs, **sample.params)
    check_derivatives(fun, args)
    check_batching(fun, args)
    check_staging(fun, args)


def test_vmap_twice_over_both_operands() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 1, 2, 5, 4)), rng.normal(size=(2, 3, 4, 2, 3, 2))
    fun = lambda x, w: cv.conv(x, w, (1, 1), "SAME")
    got = np.asarray(vmap(vmap(fun))(x, w))
    for i, j in np.ndindex(2, 3):
        np.testing.assert_allclose(got[i, j], np.asarray(fun(x[i, j], w[i, j])), atol=1e-12)
    crossed = np.asarray(vmap(vmap(fun, (0, None)), (None, 0))(x[0], w[0]))
    for i, j in np.ndindex(3, 3):
        np.testing.assert_allclose(crossed[i, j], np.asarray(fun(x[0, j], w[0, i])), atol=1e-12)


def test_per_sample_gradients_are_those_of_single_samples() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(5, 8, 8, 3)), rng.normal(size=(3, 3, 3, 4))

    def loss(w: Any, image: Any) -> Any:
        out = cv.conv_general_dilated(cv.reshape(image, (1, 8, 8, 3)), w, (2, 2), "SAME",
                                      dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return total(mul(out, mul(out, out)))

    got = np.asarray(vmap(grad(loss), in_axes=(None, 0))(w, x))
    for g, image in zip(got, x):
        np.testing.assert_allclose(g, np.asarray(grad(loss)(w, image)), rtol=1e-9)


def test_bilinear_hessian() -> None:
    x, w = np.arange(5.0).reshape(1, 1, 5), np.array([[[1.0, -2.0, 0.5]]])

    def loss(w: Any) -> Any:
        out = cv.conv(x, w, (1,), "VALID")
        return total(mul(out, out))

    windows = np.lib.stride_tricks.sliding_window_view(x[0, 0], 3)
    np.testing.assert_allclose(np.asarray(hessian(loss)(w)).reshape(3, 3), 2 * windows.T @ windows)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_halves_are_summed_in_float32(dtype: str) -> None:
    half = dtypes.as_dtype(dtype)
    x, w = np.ones((1, 1, 4097), half), np.ones((1, 1, 4097), half)
    out = cv.conv(x, w, (1,), "VALID")
    assert out.dtype == half
    assert np.asarray(out, np.float32).sum() == np.float32(4097).astype(half)
    full = cv.conv(x, w, (1,), "VALID", preferred_element_type=np.float32)
    assert full.dtype == np.float32 and np.asarray(full).sum() == 4097.0


def test_preferred_element_type_keeps_the_dtypes_of_gradients() -> None:
    x, w = np.ones((1, 1, 4), ml_dtypes.bfloat16), np.ones((1, 1, 2), ml_dtypes.bfloat16)
    fun = lambda x, w: cv.conv(x, w, (1,), "VALID", preferred_element_type=np.float32)
    out, pull = vjp(fun, x, w)
    dx, dw = pull(np.ones(out.shape, np.float32))
    assert (out.dtype, dx.dtype, dw.dtype) == (np.float32, ml_dtypes.bfloat16, ml_dtypes.bfloat16)
    np.testing.assert_array_equal(np.asarray(dw, np.float32), [[[3, 3]]])
    _, t = jvp(fun, (x, w), (x, w))
    assert t.dtype == np.float32


def test_integers_and_complex_numbers() -> None:
    x, w = np.arange(6).reshape(1, 1, 6), np.array([[[1, 2]]])
    assert np.asarray(cv.conv(x, w, (2,), "VALID")).tolist() == [[[2, 8, 14]]]
    narrow = cv.conv(x.astype(np.int8), w.astype(np.int8), (1,), "VALID",
                     preferred_element_type=np.int32)
    assert narrow.dtype == np.int32
    z = x + 1j
    np.testing.assert_allclose(np.asarray(cv.conv(z, w.astype(complex), (2,), "VALID"))[0, 0],
                               [2 + 3j, 8 + 3j, 14 + 3j])


def test_large_inputs_are_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    cases = [((7, 2, 9, 8), (3, 2, 3, 3), 1), ((1, 6, 9, 8), (3, 6, 3, 3), 1),
             ((2, 6, 9, 8), (6, 2, 3, 3), 3)]
    for xs, ws, groups in cases:
        x, w = rng.normal(size=xs), rng.normal(size=ws)
        run = lambda x=x, w=w, groups=groups: np.asarray(cv.conv_general_dilated(
            x, w, (1, 1), "SAME", feature_group_count=groups))
        whole = run()
        with monkeypatch.context() as m:
            m.setattr(conv_columns, "_PIECE", 2048)
            np.testing.assert_allclose(run(), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [(3, 3), (7, 7)])
def test_depthwise(kernel: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    for specs in LAYOUTS[2]:
        sizes = {"N": 2, "C": 4, "O": 4, "I": 1}
        x = rng.normal(size=[sizes.get(c, 9) for c in specs[0]])
        w = rng.normal(size=[sizes.get(c, 0) or kernel["HW".index(c)] for c in specs[1]])
        out = cv.conv_general_dilated(x, w, (2, 1), [(1, 1), (0, 2)], rhs_dilation=(1, 1),
                                      dimension_numbers=specs, feature_group_count=4)
        expected = loop_conv(x, w, (2, 1), [(1, 1), (0, 2)], (1, 1), (1, 1), specs, 4, 1)
        np.testing.assert_allclose(np.asarray(out), expected, rtol=1e-10, atol=1e-10)


def test_string_padding() -> None:
    x = np.zeros((1, 1, 7))
    for k, stride, kind, size in [(3, 1, "SAME", 7), (3, 2, "same", 4), (4, 3, "SAME_LOWER", 3),
                                  (3, 2, "VALID", 3), (9, 1, "VALID", 0)]:
        assert cv.conv(x, np.zeros((1, 1, k)), (stride,), kind).shape == (1, 1, size)
    ramp = np.arange(1.0, 5.0).reshape(1, 1, 4)
    w = np.array([[[1.0, 0.0]]])
    assert np.asarray(cv.conv(ramp, w, (1,), "SAME")).ravel().tolist() == [1, 2, 3, 4]
    assert np.asarray(cv.conv(ramp, w, (1,), "SAME_LOWER")).ravel().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2), (0, 1)]])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (5, 2)])
def test_conv_transpose_is_the_gradient(strides: Any, padding: Any) -> None:
    """With the kernel transposed it is the transpose of a convolution: a reference of its own."""
    rng = np.random.default_rng(4)
    specs = ("NHWC", "HWIO", "NHWC")
    y, w = rng.normal(size=(2, 4, 3, 3)), rng.normal(size=(3, 2, 5, 3))
    out = np.asarray(cv.conv_transpose(y, w, strides, padding, transpose_kernel=True,
                                       use_consistent_padding=True))
    forward = lambda x: cv.conv_general_dilated(x, w, strides, padding,
                                                dimension_numbers=specs)
    primal, pull = vjp(forward, np.zeros(out.shape))
    assert primal.shape == y.shape
    np.testing.assert_allclose(out, np.asarray(pull(y)[0]), rtol=1e-10, atol=1e-12)


def test_patches() -> None:
    x = np.arange(24.0).reshape(1, 2, 3, 4)
    patches = np.asarray(cv.conv_general_dilated_patches(x, (2, 3), (1, 1), "VALID"))
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), axis=(2, 3))
    np.testing.assert_array_equal(patches, windows.transpose(0, 1, 4, 5, 2, 3).reshape(1, 12, 2, 2))


def test_symbolic_batch() -> None:
    size = Dim("B")
    x = ShapedArray((size, 3, 8, 8), np.dtype(np.float32))
    w = ShapedArray((4, 3, 3, 3), np.dtype(np.float32))
    closed = stage(lambda x, w: [cv.conv(x, w, (2, 2), "VALID")], [x, w])
    assert closed.out_avals[0].shape == (size, 4, 3, 3)


def test_dimension_numbers_print_as_letters() -> None:
    dims = cv.conv_dimension_numbers((1,) * 4, (1,) * 4, ("NHWC", "HWIO", "NHWC"))
    assert str(dims) == "N01C,01IO->N01C"
    assert cv.conv_dimension_numbers((1,) * 3, (1,) * 3, None) == ((0, 1, 2),) * 3
    assert cv.conv_dimension_numbers((1,) * 4, (1,) * 4, dims) is dims


def test_cost_counts_multiplications_and_additions() -> None:
    sample = next(cv.conv_general_dilated_p.samples())
    avals = [ShapedArray(a.shape, a.dtype) for a in sample.args]
    cost = cv.conv_general_dilated_p.cost(*avals, **sample.params)
    assert cost.flops == 2 * (2 * 4 * 3 * 3) * (3 * 3 * 2)
    assert cost.bytes == 4 * (2 * 3 * 5 * 4 + 4 * 3 * 3 * 2 + 2 * 4 * 3 * 3)


X, W = np.zeros((1, 3, 8, 8), np.float32), np.zeros((4, 3, 3, 3), np.float32)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: cv.conv(X, W[:, :2], (1, 1), "SAME"), ShapeError, r"has 3 features \(axis 1\), the "
     r"kernel f32\[4,2,3,3\] takes 2"),
    (lambda: cv.conv(X, W.astype(float), (1, 1), "SAME"), DTypeError, "kernel.astype.'float32'."),
    (lambda: cv.conv(X > 0, W > 0, (1, 1), "SAME"), DTypeError, "does not take bool"),
    (lambda: cv.conv(X[0], W, (1, 1), "SAME"), ShapeError, "same number of dimensions"),
    (lambda: cv.conv(X, W, (1,), "SAME"), ArgumentError, "window_strides=.* 2 positive integers"),
    (lambda: cv.conv(X, W, (0, 1), "SAME"), ArgumentError, "window_strides"),
    (lambda: cv.conv(X, W, (1, 1), "FULL"), ArgumentError, '"SAME", "SAME_LOWER", "VALID"'),
    (lambda: cv.conv(X, W, (1, 1), [(1, 1)]), ArgumentError, "2 pairs of integers"),
    (lambda: cv.conv(X, W, (1, 1), [(-9, 0), (0, 0)]), ShapeError, "crops more than the 8"),
    (lambda: cv.conv_general_dilated(X, W, (1, 1), "SAME", (2, 2)), ArgumentError, "lhs_dilation"),
    (lambda: cv.conv_general_dilated(X, W, (1, 1), "SAME", feature_group_count=2), ShapeError,
     "2 groups do not divide the 3 features of lhs"),
    (lambda: cv.conv_general_dilated(X, W, (1, 1), "SAME", feature_group_count=3), ShapeError,
     "3 groups do not divide the 4 output features"),
    (lambda: cv.conv_general_dilated(X, W[:3], (1, 1), "SAME", feature_group_count=3), ShapeError,
     "3 features in 3 groups, the kernel .* takes 3 per group"),
    (lambda: cv.conv_general_dilated(X, W, (1, 1), "SAME", batch_group_count=2), ShapeError,
     "2 groups do not divide the 1 images"),
    (lambda: cv.conv_general_dilated(X, W, (1, 1), "SAME", feature_group_count=2,
                                     batch_group_count=2), ArgumentError, "one of them is 1"),
    (lambda: cv.conv_general_dilated(X, W, (1, 1), "SAME",
                                     dimension_numbers=("NHWC", "HWIO", "NHW")), ArgumentError,
     "one letter per axis"),
    (lambda: cv.conv_general_dilated(X, W, (1, 1), "SAME",
                                     dimension_numbers=("NHWC", "HWIO", "NHDC")), ArgumentError,
     "same spatial letters"),
])
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
