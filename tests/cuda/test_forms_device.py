"""On a GPU: epilogues that store constants, kernels that fit, and sums over nothing."""

import warnings

import numpy as np
import pytest

import functrans as ft
from functrans import lax, nn
from functrans import numpy as xp

pytestmark = pytest.mark.gpu
RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype("f4")


def agree(fun, *args, tolerance=1e-3):
    """Values on the GPU by kernels alone, near those of NumPy."""
    with warnings.catch_warnings(), ft.config.matmul_precision("highest"):
        warnings.simplefilter("error")
        found = ft.tree.leaves(ft.device_get(ft.jit(fun)(*args)))
    with ft.config.use_backend("reference"):
        expected = ft.tree.leaves(ft.jit(fun)(*args))
    for a, e in zip(found, expected, strict=True):
        a, e = np.asarray(a, "f8"), np.asarray(e, "f8")
        scale = max(1e-6, float(np.abs(e).max(initial=0)))
        np.testing.assert_allclose(a, e, tolerance, tolerance * scale)


def huber(x):
    size = xp.abs(x)
    return xp.where(size <= 1, 0.5 * x * x, size - 0.5)


def test_epilogues_that_store_constants():
    index = RNG.integers(0, 1000, 1000).astype("i4")
    agree(ft.value_and_grad(lambda x, w, b: xp.mean(nn.log_softmax(huber(x[index]) @ w + b)),
                            (0, 1, 2)), normal(1000, 256), normal(256, 16), normal(16))


@pytest.mark.parametrize("m, k, n", [(4096, 96, 768), (8192, 128, 512), (8192, 64, 512)])
@pytest.mark.parametrize("precision", ["default", "highest"])
def test_large_products_with_epilogues(m, k, n, precision):
    gradient = ft.value_and_grad(lambda x, w, b: xp.mean(xp.tanh(x @ w + b)), (0, 1, 2))
    args = normal(m, k), 0.1 * normal(k, n), normal(n)
    with ft.config.matmul_precision(precision):
        found = ft.device_get(ft.jit(gradient)(*args))
    assert all(np.isfinite(np.asarray(x)).all() for x in ft.tree.leaves(found))
    agree(gradient, *args)


@pytest.mark.parametrize("batch, features, outs, window", [(2, 0, 4, 3), (2, 3, 4, 0),
                                                           (0, 3, 4, 3), (2, 3, 4, 1)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_convolutions_over_nothing(batch, features, outs, window, dilation):
    def convolved(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), [(1, 1), (1, 1)],
                                        lhs_dilation=(dilation, dilation))

    agree(convolved, normal(batch, features, 8, 8), normal(outs, features, window, window))


def test_a_mixture_of_experts():
    def mixture(gate, w, x):
        weights, experts = lax.top_k(nn.softmax(x @ gate), 2)
        chosen = xp.sum(nn.one_hot(experts, 8) * weights[..., None], axis=1)
        return xp.mean(xp.einsum("teh,te->th", nn.relu(xp.einsum("td,edh->teh", x, w)), chosen))

    agree(ft.value_and_grad(mixture, (0, 1)), normal(64, 8), normal(8, 64, 32), normal(4096, 64),
          tolerance=1e-2)


def test_a_repeated_diagonal():
    """ptxas forgets the constant of some additions of two numbers of 16 bits."""
    for n in range(2, 20):
        agree(lambda d: xp.broadcast_to(xp.diag(d), (16, *d.shape, *d.shape)), normal(n))
