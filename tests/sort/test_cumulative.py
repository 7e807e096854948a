"""Cumulative operations: values, and derivatives at zeros, ties and infinities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.test_util import check_grads

OPERATIONS = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum,
              "cummin": np.minimum, "cumlogsumexp": np.logaddexp}


@settings(deadline=None, max_examples=100)
@given(hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, min_side=0, max_side=6),
                  elements=st.floats(-3, 3)), st.sampled_from(sorted(OPERATIONS)), st.booleans(),
       st.data())
def test_values(x, name, reverse, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    flip = (lambda y: np.flip(y, axis)) if reverse else (lambda y: y)
    expected = flip(OPERATIONS[name].accumulate(flip(x), axis))
    np.testing.assert_allclose(getattr(lax, name)(x, axis=axis, reverse=reverse), expected,
                               rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_derivatives(name, reverse, n):
    x = np.random.default_rng(n).standard_normal((2, n))
    check_grads(lambda a: jnp.sin(getattr(lax, name)(a, axis=1, reverse=reverse)), (x,), 2)


@pytest.mark.parametrize("zeros", [(2,), (0,), (1, 3), (0, 1, 2, 3, 4)])
def test_cumprod_at_zeros(zeros):
    x = np.array([1.5, -2.0, 0.5, 3.0, -1.0])
    x[list(zeros)] = 0
    check_grads(lax.cumprod, (x,), 3)
    jacobian = ft.jacrev(lax.cumprod)(x)
    expected = [[np.prod(np.delete(x[:i + 1], j)) if j <= i else 0.0 for j in range(5)]
                for i in range(5)]
    np.testing.assert_allclose(jacobian, expected, atol=1e-12)


def test_ties_share_the_derivative_as_in_the_reduction():
    x = np.array([1.0, 3.0, 3.0, 2.0, 3.0, 4.0])
    jacobian = np.asarray(ft.jacfwd(lax.cummax)(x))
    for i in range(6):
        last = ft.grad(lambda a: jnp.max(a[:i + 1]))(x)  # noqa: B023
        np.testing.assert_allclose(jacobian[i], last)


def test_cumlogsumexp_neither_overflows_nor_makes_nan():
    x = np.array([-np.inf, -np.inf, 1000.0, 999.0, -1000.0])
    np.testing.assert_allclose(lax.cumlogsumexp(x), np.logaddexp.accumulate(x))
    jacobian = np.asarray(ft.jacrev(lax.cumlogsumexp)(x))
    assert np.isfinite(jacobian).all()
    np.testing.assert_allclose(jacobian[2:].sum(1), 1.0)
    steep = np.array([0.0, 800.0, -800.0, 0.0])
    np.testing.assert_allclose(np.asarray(ft.jacfwd(lax.cumlogsumexp)(steep)).sum(1), 1.0)


def test_dtypes_and_errors():
    assert lax.cumsum(jnp.arange(4, dtype="int8")).dtype == np.int8
    assert lax.cumsum(jnp.ones(300, "bfloat16")).dtype.name == "bfloat16"
    assert float(lax.cumsum(jnp.ones(600, "float16"))[-1]) == 600
    assert lax.cummax(jnp.array([False, True, False])).tolist() == [False, True, True]
    with pytest.raises(TypeError, match="does not take bool"):
        lax.cumsum(jnp.array([True]))
    with pytest.raises(ValueError, match="no axis 2"):
        lax.cumsum(jnp.ones(3), axis=2)
    with pytest.raises(TypeError, match="does not take complex64"):
        lax.cummax(jnp.ones(3, "complex64"))


def test_vmap_and_jit():
    x = np.random.default_rng(0).standard_normal((3, 4, 5))
    for name in OPERATIONS:
        op = getattr(lax, name)
        loop = np.stack([np.asarray(op(x[:, i], axis=0)) for i in range(4)])
        np.testing.assert_allclose(ft.vmap(lambda a: op(a, axis=0), 1)(x), loop)  # noqa: B023
        mapped = ft.jit(ft.vmap(ft.grad(lambda a: jnp.sum(op(a, axis=0) ** 2)), 1, 1))  # noqa: B023
        gradient = ft.grad(lambda a: jnp.sum(op(a, axis=0) ** 2))  # noqa: B023
        np.testing.assert_allclose(mapped(x), np.stack([np.asarray(gradient(x[:, i]))
                                                       for i in range(4)], 1))
