"""Weights in 8 bits: errors within half a step, products, gradients, both backends."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import quantize
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.test_util import check_grads

RNG = np.random.default_rng(0)
W = RNG.standard_normal((64, 48)).astype(np.float32) * np.geomspace(0.01, 10, 48, dtype=np.float32)
X = RNG.standard_normal((5, 64)).astype(np.float32)
KINDS = pytest.mark.parametrize("dtype", ["int8", "float8_e4m3fn", "float8_e5m2"])


@KINDS
def test_each_channel_has_its_scale(dtype):
    q = quantize.quantize(W, dtype)
    assert q.values.dtype == dtype and q.scales.shape == (1, 48) and q.shape == W.shape
    error = abs(np.asarray(quantize.dequantize(q)) - W) / abs(W).max(0)
    assert error.max() < {"int8": 0.51 / 127, "float8_e4m3fn": 0.04, "float8_e5m2": 0.13}[dtype]
    rows = quantize.quantize(W, dtype, axis=1)
    assert rows.scales.shape == (64, 1)
    assert quantize.quantize(0 * W).values.any() == False  # noqa: E712 (an array)


@KINDS
@pytest.mark.parametrize("activations", [False, True])
@pytest.mark.parametrize("x", [X, X[0], np.stack([X, X + 1])])
def test_products(dtype, activations, x):
    q = quantize.quantize(W, dtype)
    given = dtype if activations else None
    wanted = x @ np.asarray(quantize.dequantize(q))
    for run in (lambda f: f, ft.jit):
        got = run(lambda x, q: quantize.matmul(x, q, activations=given))(x, q)
        assert got.dtype == np.float32
        loose = {"int8": 0.02, "float8_e4m3fn": 0.06, "float8_e5m2": 0.1}[dtype]
        error = np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
        assert error < (loose if activations else 1e-5)


def test_products_in_the_interpreter_of_triton():
    q = quantize.quantize(W[:32, :16])
    with ft.config.use_backend("triton"):
        got = ft.jit(quantize.matmul)(X[:, :32], q)
        exact = ft.jit(lambda x, q: quantize.matmul(x, q, activations="int8"))(X[:, :32], q)
    np.testing.assert_allclose(got, quantize.matmul(X[:, :32], q), rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(exact, quantize.matmul(X[:, :32], q, activations="int8"), rtol=1e-5)


@pytest.mark.parametrize("activations", [None, "int8"])
def test_gradients_go_straight_through(activations):
    q = quantize.quantize(W)
    f = lambda x: (quantize.matmul(x, q, activations=activations) ** 2).sum()
    exact = lambda x: ((x @ quantize.dequantize(q)) ** 2).sum()
    got, wanted = ft.grad(f)(X), ft.grad(exact)(X)
    assert np.linalg.norm(got - wanted) < 0.02 * np.linalg.norm(wanted)
    rows = ft.vmap(lambda x: quantize.matmul(x, q, activations=activations))(X)
    np.testing.assert_allclose(rows, quantize.matmul(X, q, activations=activations), rtol=1e-5)


def test_training_with_quantized_weights():
    fake = quantize.fake_quantize(W)
    np.testing.assert_allclose(fake, quantize.dequantize(quantize.quantize(W)), rtol=1e-6,
                               atol=1e-7)
    weights = RNG.standard_normal(W.shape)
    gradient = ft.grad(lambda w: (quantize.fake_quantize(w) * weights).sum())(W)
    np.testing.assert_allclose(gradient, weights, rtol=1e-6)
    check_grads(lambda x: x @ quantize.fake_quantize(W).astype("float64"), (X.astype(float),),
                order=1)


def test_trees_and_programs_take_quantized_arrays():
    params = {"w": W, "b": jnp.ones(48), "ids": np.arange(4).reshape(2, 2)}
    q = quantize.quantize_tree(params)
    assert isinstance(q["w"], quantize.QuantizedArray) and isinstance(q["b"], ft.Array)
    assert q["w"].nbytes == W.size + 4 * 48
    assert q["ids"].dtype == params["ids"].dtype
    chosen = quantize.quantize_tree(params, where=lambda path, x: False)
    assert chosen["w"] is W
    assert len(ft.tree.leaves(q)) == 4
    assert ft.jit(lambda p: quantize.matmul(X, p["w"]) + p["b"])(q).shape == (5, 48)


def test_bad_arguments():
    with pytest.raises(DTypeError, match="no int16"):
        quantize.quantize(W, "int16")
    with pytest.raises(DTypeError, match="dtype int64"):
        quantize.quantize(np.arange(4))
    q = quantize.quantize(W)
    with pytest.raises(ArgumentError, match="activations='float8_e5m2'"):
        quantize.matmul(X, q, activations="float8_e5m2")
    with pytest.raises(ShapeError, match="scales of shape"):
        quantize.matmul(X, quantize.quantize(W, axis=1))


@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float8_e4m3fn"])
def test_a_vector_times_narrow_weights_reads_them_once(dtype):
    """No copy of the weights in float32 is in memory."""
    f = lambda x, w: x @ w.astype("float32")
    shapes = [ft.ShapeDtypeStruct((1, 512), "float32"), ft.ShapeDtypeStruct((512, 512), dtype)]
    compiled = ft.jit(f).lower(*shapes).compile()
    assert compiled.memory_analysis()["temporaries"] < 512 * 512
    w = RNG.integers(-8, 8, (512, 512)).astype(np.float32)
    x = RNG.standard_normal((1, 512)).astype(np.float32)
    got = ft.jit(f)(x, jnp.asarray(w, dtype))
    np.testing.assert_allclose(got, x @ w, rtol=1e-4, atol=1e-3)


@KINDS
@pytest.mark.parametrize("rows, width", [(1, 1030), (3, 256), (7, 130), (13, 512), (32, 129)])
def test_products_of_few_rows_convert_weights_as_they_read_them(dtype, rows, width):
    """All bytes, infinities and NaN included, and columns that fill no vector."""
    depth = 140
    w = RNG.integers(0, 256, (depth, width)).astype(np.uint8).view(jnp.dtype(dtype))
    finite = np.isfinite(w.astype(np.float32))
    x = RNG.standard_normal((rows, depth)).astype(np.float32)
    product = ft.jit(lambda x, w: x @ w.astype("float32"))
    clean = np.where(finite, w, np.zeros((), w.dtype))
    exact = x.astype(np.float64) @ clean.astype(np.float64)
    np.testing.assert_allclose(product(x, clean), exact, rtol=1e-4, atol=1e-4 * abs(exact).max())
    with np.errstate(invalid="ignore"):
        all_bytes = np.isfinite(x[:1] @ w.astype(np.float32))
    np.testing.assert_array_equal(np.isfinite(product(x, w)), np.repeat(all_bytes, rows, 0))
    for half in ("bfloat16", "float16"):
        some = jnp.asarray(x).astype(half)
        got = ft.jit(lambda x, w, half=half: jnp.matmul(
            x, w.astype(half), preferred_element_type="float32"))(some, clean)
        wanted = np.asarray(some.astype("float32")).astype(np.float64) @ clean.astype(np.float64)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4 * abs(wanted).max())
    assert "narrow_product" in str(ft.explain(lambda x, w: x @ w.astype("float32"), x, w,
                                              target="cpu"))
