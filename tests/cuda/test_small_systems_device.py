"""Small matrices by kernels, larger ones by libraries and products, on a GPU against float64."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lax.linalg import cholesky, lu, triangular_solve
from functrans.scipy.linalg import cho_solve

pytestmark = pytest.mark.gpu

la = jnp.linalg
SIZES = [1, 2, 3, 7, 8, 16, 31, 32, 33, 64, 65, 100]
STACKS = [(), (1,), (5,), (2, 131)]
EPSILON = {"float32": 2e-5, "float64": 1e-12}


def matrices(*shape, dtype, definite=False):
    rng = np.random.default_rng(shape[-1])
    n = shape[-1]
    x = rng.normal(size=shape) / np.sqrt(n)
    x = x @ x.swapaxes(-1, -2) + np.eye(n) if definite else x + 2 * np.eye(n)
    return x.astype(dtype)


def on_gpu(fun, *args):
    outs = ft.jit(fun)(*[ft.device_put(x, "gpu") for x in args])
    assert all(x.device.platform == "gpu" for x in ft.tree.leaves(outs))
    return [np.asarray(x) for x in ft.tree.leaves(outs)]


def close(found, expected, dtype):
    assert found.dtype == np.dtype(dtype) and found.shape == expected.shape
    limit = EPSILON[dtype] * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, EPSILON[dtype], limit)


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("stack", STACKS, ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_against_float64(n, stack, dtype):
    definite = matrices(*stack, n, n, dtype=dtype, definite=True)
    a = matrices(*stack, n, n, dtype=dtype)
    b = np.random.default_rng(0).normal(size=(*stack, n, 3)).astype(dtype)
    exact, wide, sides = (x.astype(np.float64) for x in (definite, a, b))
    (factor,) = on_gpu(lambda x: cholesky(x, symmetrize_input=False), definite)
    close(factor, np.linalg.cholesky(exact), dtype)
    assert (np.triu(factor, 1) == 0).all()
    x, inverse, d, sign, log = on_gpu(
        lambda a, b: (la.solve(a, b), la.inv(a), la.det(a), *la.slogdet(a)), a, b)
    close(x, np.linalg.solve(wide, sides), dtype)
    close(inverse, np.linalg.inv(wide), dtype)
    size = np.linalg.slogdet(wide)
    np.testing.assert_array_equal(sign, size[0])
    np.testing.assert_allclose(log, size[1], 1e-4, 1e-4)
    np.testing.assert_allclose(d, np.linalg.det(wide), 1e-3)
    factors, pivots, order = on_gpu(lambda a: lu(a), a)
    low, up = np.tril(factors, -1) + np.eye(n), np.triu(factors)
    close((low @ up).astype(dtype), np.take_along_axis(wide, order[..., None], -2), dtype)
    assert (np.abs(np.tril(factors, -1)) <= 1 + 1e-5).all() and (pivots >= np.arange(n)).all()


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("n, k", [(1, 1), (7, 3), (33, 70), (64, 64), (100, 1), (300, 300),
                                  (1000, 5)])
def test_triangular_systems(n, k, dtype):
    """Of more than 64 rows they are products with the inverse."""
    rng = np.random.default_rng(n)
    a = np.tril(rng.normal(size=(n, n))) / n + np.eye(n)
    for lower in (True, False):
        for transpose_a in (True, False):
            for left in (True, False):
                m = (a if lower else a.T).astype(dtype)
                b = rng.normal(size=(n, k) if left else (k, n)).astype(dtype)
                (x,) = on_gpu(lambda m, b: triangular_solve(
                    m, b, left_side=left, lower=lower, transpose_a=transpose_a), m, b)  # noqa: B023
                op = (m.T if transpose_a else m).astype(np.float64)
                expected = np.linalg.solve(op, b) if left else np.linalg.solve(op.T, b.T).T
                close(x, expected, dtype)


@pytest.mark.parametrize("n", [4, 40, 80])
def test_what_has_no_factor_is_nan(n):
    a = matrices(3, n, n, dtype="float32", definite=True)
    a[1, n // 2, n // 2] = -1
    (factor,) = on_gpu(lambda x: cholesky(x, symmetrize_input=False), a)
    assert np.isnan(factor[1][np.tril_indices(n)]).all()
    assert np.isfinite(factor[::2]).all()


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6])
def test_the_likelihood_of_a_process(condition):
    """float32 on a GPU against float64: value and gradient."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(600, 2)), 600 / condition

    def likelihood(p, x, y):
        distance = jnp.sum((x[:, None] - x[None]) ** 2, -1)
        kernel = jnp.exp(p[1] - 0.5 * distance * jnp.exp(-2 * p[0]))
        factor = la.cholesky(kernel + jnp.exp(p[2]) * jnp.eye(len(x), dtype=x.dtype))
        alpha = cho_solve((factor, True), y)
        return 0.5 * y @ alpha + jnp.sum(jnp.log(jnp.diagonal(factor)))

    args = np.array([0.0, 0.0, np.log(noise)]), x, np.sin(x[:, 0]) + noise * rng.normal(size=600)
    with ft.config.default_device("cpu"):
        value, gradient = ft.value_and_grad(likelihood)(*args)
    narrow = [a.astype(np.float32) for a in args]
    found, slope = on_gpu(ft.value_and_grad(likelihood), *narrow)
    limit = 1e-7 * condition ** 0.5 * 20
    np.testing.assert_allclose(found, value, limit)
    np.testing.assert_allclose(slope, gradient, limit, limit * np.abs(gradient).max())
