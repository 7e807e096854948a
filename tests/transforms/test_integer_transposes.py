"""Transposes of linear functions of integers are those of the same functions of floats."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import DTypeError

X = np.arange(6, dtype=np.int32).reshape(2, 3)
LINEAR = {
    "scaled": lambda x: 2 * x,
    "negated difference": lambda x: -x[1] - 3 * x[0],
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: jnp.sum(x, axis=0),
    "product": lambda x: x @ x.dtype.type(3) if x.ndim == 0 else x @ np.arange(3, dtype=x.dtype),
    "cumulative sum": lambda x: jnp.cumsum(x, 1),
    "transposed": lambda x: x.T,
    "gathered": lambda x: x[np.array([1, 1, 0])],
    "selected": lambda x: jnp.where(np.array([True, False, True]), x, 0),
    "padded": lambda x: jnp.pad(x, 1),
    "joined": lambda x: jnp.concatenate([x, 2 * x]),
    "reversed": lambda x: x[::-1],
    "scattered": lambda x: jnp.zeros((3, 3), x.dtype).at[np.array([1, 1])].add(x),
    "jit": ft.jit(lambda x: 5 * x),
    "vmap": ft.vmap(lambda x: 5 * x + x[::-1]),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: 2 * c + x, x),
    "scan": lambda x: lax.scan(lambda c, _: (2 * c, c.sum()), x, None, length=3),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LINEAR)
def test_transposes_of_integers_are_those_of_floats(name):
    fun = LINEAR[name]
    outs = ft.eval_shape(fun, X)
    cts = ft.tree.map(
        lambda o: np.arange(1, 1 + int(np.prod(o.shape)), dtype=o.dtype).reshape(o.shape), outs)
    (expected,) = ft.linear_transpose(fun, X.astype("float64"))(
        ft.tree.map(lambda c: c.astype("float64"), cts))
    assert np.abs(expected).sum() > 0
    for transposed in (ft.linear_transpose(fun, X), ft.jit(ft.linear_transpose(fun, X))):
        (got,) = transposed(cts)
        assert got.dtype == np.int32
        np.testing.assert_array_equal(got, np.asarray(expected, np.int32))


def test_python_ints():
    (got,) = ft.linear_transpose(lambda x: 2 * x, 1)(3)
    assert int(got) == 6 and got.dtype == np.int32


@pytest.mark.parametrize("fun, x, ct", [
    (lambda x: 2.0 * x, 1, 3.0), (lambda x: 2 * x, True, True),
    (lambda x: 2 * x, X, np.ones(X.shape)),
    (lambda x: 2 * x, 1.0, 3 + 1j), (lambda x: x.astype("int32"), 1.0, 1),
], ids=["int to float", "bool", "float for int", "complex for float", "float to int"])
def test_what_has_no_transpose_is_refused(fun, x, ct):
    with pytest.raises(DTypeError):
        ft.linear_transpose(fun, x)(ct)


def test_vjp_and_linearize_of_integers_have_no_derivatives():
    out, pull = ft.vjp(lambda x: 2 * x, X)
    assert np.array_equal(out, 2 * X)
    assert pull(X)[0].dtype == ft.float0
    with pytest.raises(DTypeError, match="float0"):
        ft.linearize(lambda x: 2 * x, X)[1](X)
    assert ft.linearize(lambda x: 2 * x, X)[1](np.zeros(X.shape, ft.float0)).dtype == ft.float0
