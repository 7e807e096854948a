"""Dtypes of results that NumPy and JAX agree on."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import DTypeError

F4, F8 = jnp.asarray(np.array([3, 1, 1], "f4")), jnp.asarray(np.array([1, 2], "f8"))


@pytest.mark.parametrize(("fun", "dtype", "values"), [
    (lambda: jnp.setdiff1d(F4, F8), "float32", [3]),
    (lambda: jnp.setdiff1d(F4, F8, size=2), "float32", [3, 0]),
    (lambda: jnp.setdiff1d(jnp.asarray([1, 300]), jnp.asarray([1], "int8")), "int32", [300]),
    (lambda: jnp.setdiff1d(F4, F8, assume_unique=True), "float32", [3]),
    (lambda: jnp.intersect1d(F4, F8), "float64", [1]),
    (lambda: jnp.union1d(F4, F8), "float64", [1, 2, 3]),
    (lambda: jnp.setxor1d(F4, F8), "float64", [2, 3]),
    (lambda: jnp.var(F4, dtype="complex64"), "complex64", 8 / 9),
    (lambda: jnp.std(F4, dtype="complex64"), "complex64", 8**0.5 / 3),
    (lambda: jnp.nanvar(F4, dtype="complex64"), "complex64", 8 / 9),
    (lambda: jnp.var(F4 * 1j, dtype="complex64"), "complex64", 8 / 9),
    (lambda: jnp.var(F4 * 1j), "float32", 8 / 9),
    (lambda: jnp.var(F8, dtype="float32"), "float32", 0.25),
    (lambda: F8.astype(None), "float32", [1, 2]),
    (lambda: jnp.astype(jnp.arange(2), None), "float32", [0, 1]),
    (lambda: jnp.zeros_like(2.0) * F4.astype("float16"), "float16", [0, 0, 0]),
    (lambda: jnp.full_like(jnp.asarray(1.5), 2) * F4.astype("float16"), "float16", [6, 2, 2]),
])
def test_dtype_and_values(fun, dtype, values):
    found = fun()
    assert found.dtype == dtype
    np.testing.assert_allclose(found, values, rtol=1e-6)


def test_dtype_of_none_is_the_default_in_scope():
    with ft.default_dtypes("float64"):
        assert jnp.arange(3).astype(None).dtype == "float64"


def test_a_real_variance_of_complex_numbers_is_refused():
    with pytest.raises(DTypeError, match="imaginary"):
        jnp.var(F4 * 1j, dtype="float32")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_attention_and_its_residual_have_the_dtype_of_the_query(dtype):
    x = jnp.ones((1, 2, 1, 4), dtype)
    out, residual = ft.nn.dot_product_attention(x, x, x, return_residual=True)
    assert out.dtype == residual.dtype == dtype and residual.shape == (1, 2, 1)
    assert residual[0, 0, 0] == jnp.asarray(2 + np.log(2)).astype(dtype)


def test_toeplitz_of_stacks():
    toeplitz = ft.scipy.linalg.toeplitz
    c, r = np.array([[1, 2], [3, 4]]), np.array([[1, 2, 3], [3, 4, 5]])
    assert toeplitz(c).tolist() == [[[1, 2], [2, 1]], [[3, 4], [4, 3]]]
    assert toeplitz(c, r).tolist() == [[[1, 2, 3], [2, 1, 2]], [[3, 4, 5], [4, 3, 4]]]
    assert toeplitz(c[0], r).tolist() == [[[1, 2, 3], [2, 1, 2]], [[1, 4, 5], [2, 1, 4]]]
    assert toeplitz(np.float32(2)).tolist() == [[2]]
