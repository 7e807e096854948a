"""Products of blocks of few bits: what is exact stays exact, the rest is near; straight through."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 5, 64)).astype("f"), RNG.normal(size=(2, 64, 32)).astype("f")
DIMS = (((2,), (1,)), ((0,), (0,)))


def configs(mode):
    return [ft.nn.get_scaled_dot_general_config(mode)] * 3


@pytest.mark.parametrize("mode, error", [("mxfp8", 0.04), ("nvfp4", 0.2)])
def test_near_the_product(mode, error):
    exact = X @ Y
    found = ft.nn.scaled_dot_general(X, Y, DIMS, configs=configs(mode))
    assert 1e-4 < np.linalg.norm(found - exact) / np.linalg.norm(exact) < error
    jitted = ft.jit(lambda x, y: ft.nn.scaled_dot_general(x, y, DIMS, configs=configs(mode)))
    np.testing.assert_allclose(jitted(X, Y), found, rtol=1e-5, atol=1e-5)
    plain = ft.nn.scaled_dot_general(X, Y, DIMS)
    np.testing.assert_allclose(plain, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
def test_small_integers_are_exact(mode):
    x = RNG.integers(-4, 5, (3, 64)).astype("f")
    x[:, ::16] = 6 if mode == "nvfp4" else 448  # the largest: the scale is 1
    x[x == 5] = 4
    y = RNG.choice([0.5, 1, 1.5, 2, 3, -1], (64, 2)).astype("f")
    y[::16] = 6 if mode == "nvfp4" else 448
    found = ft.nn.scaled_dot_general(x, y, (((1,), (0,)), ((), ())), configs=configs(mode))
    np.testing.assert_array_equal(found, x @ y)


@pytest.mark.parametrize("mode, error", [("mxfp8", 0.1), ("nvfp4", 1e-5)])
def test_the_rounding_is_straight_through(mode, error):
    ct = RNG.normal(size=(2, 64, 32)).astype("f")
    x = RNG.normal(size=(2, 64, 64)).astype("f")
    product = lambda x, y: (ft.nn.scaled_dot_general(x, y, DIMS, configs=configs(mode)) * ct).sum()
    dx, dy = ft.grad(product, (0, 1))(x, Y)
    for found, exact in ((dx, ct @ Y.swapaxes(1, 2)), (dy, x.swapaxes(1, 2) @ ct)):
        assert np.linalg.norm(found - exact) / np.linalg.norm(exact) < error


def test_numbers_that_are_too_large_do_not_move():
    few = [ft.nn.get_scaled_dot_general_config("nvfp4", jnp.array([1e-3], "float32"))] * 3
    x = jnp.ones((1, 16)).at[0, 3].set(100.0)
    y = jnp.ones((16, 1))
    dims = (((1,), (0,)), ((), ()))
    slope = ft.grad(lambda x: ft.nn.scaled_dot_general(x, y, dims, configs=few).sum())(x)
    assert slope[0, 3].item() == 0 and slope[0, 2].item() == 1


def test_products_with_scales():
    x = RNG.normal(size=(2, 3, 64)).astype(jnp.float8_e4m3fn.dtype)
    y = RNG.normal(size=(2, 4, 64)).astype(jnp.float8_e4m3fn.dtype)
    a, b = (2.0 ** RNG.integers(-2, 3, (2, n, 2)) for n in (3, 4))
    scales = [jnp.asarray(v.astype("f")).astype("float8_e8m0fnu") for v in (a, b)]
    wide = [v.astype("f") * s.repeat(32, 2) for v, s in ((x, a), (y, b))]
    expected = np.einsum("bmk,bnk->bmn", *wide)
    for run in (ft.nn.scaled_matmul, ft.jit(ft.nn.scaled_matmul)):
        np.testing.assert_allclose(run(x, y, *scales), expected, rtol=1e-5, atol=1e-5)
    assert ft.nn.scaled_matmul(x, y, *scales, jnp.bfloat16).dtype == jnp.bfloat16


def test_a_last_block_may_be_shorter():
    zeros = np.zeros((2, 5, 64), "f")
    zeros[..., :40] = X[..., :40]
    found = ft.nn.scaled_dot_general(X[..., :40], Y[:, :40], DIMS, configs=configs("mxfp8"))
    whole = ft.nn.scaled_dot_general(zeros, Y, DIMS, configs=configs("mxfp8"))
    assert np.linalg.norm(found - whole) / np.linalg.norm(whole) < 0.01


def test_refusals():
    with pytest.raises(ArgumentError, match="none of 'nvfp4', 'mxfp8'"):
        ft.nn.get_scaled_dot_general_config("int8")
    with pytest.raises(ArgumentError, match="a scale of all"):
        ft.nn.get_scaled_dot_general_config("mxfp8", jnp.ones(1))
    with pytest.raises(ArgumentError, match="2 configs"):
        ft.nn.scaled_dot_general(X, Y, DIMS, configs=configs("mxfp8")[:2])
    with pytest.raises(ShapeError, match=r"\(b, m, k\)"):
        ft.nn.scaled_matmul(X[0], X[0], X[0], X[0])
