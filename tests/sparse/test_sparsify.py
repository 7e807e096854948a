"""Functions on dense arrays run on sparse ones."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.experimental import sparse

rng = np.random.default_rng(4)


def dense(*shape):
    return np.where(rng.random(shape) < 0.4, rng.normal(size=shape), 0)


X, Y, V = dense(4, 5), dense(4, 5), rng.normal(size=5)

FUNCTIONS = {
    "product": lambda m, n: m @ V, "vector": lambda m, n: V @ n.T,
    "sparse product": lambda m, n: m @ n.T, "sum": lambda m, n: m + 2 * n - m / 3,
    "times": lambda m, n: m * n * V, "unary": lambda m, n: jnp.sin(m) + jnp.tanh(abs(n)) ** 2,
    "reduce": lambda m, n: m.sum(0), "total": lambda m, n: (m * m).sum(),
    "reshape": lambda m, n: m.reshape(2, 10).T, "slice": lambda m, n: m[1:3, ::-1],
    "row": lambda m, n: m[2], "gather": lambda m, n: m[np.array([2, 0])],
    "join": lambda m, n: jnp.concatenate([m, n, jnp.ones((1, 5))]),
    "stack": lambda m, n: jnp.stack([m, n]), "einsum": lambda m, n: jnp.einsum("ij,ij->i", m, n),
    "jit": lambda m, n: ft.jit(lambda a: a @ V)(m), "dense": lambda m, n: m + V,
    "broadcast": lambda m, n: jnp.broadcast_to(m, (3, 4, 5)),
    "cond": lambda m, n: lax.cond(V[0] > 0, lambda a: a @ V, lambda a: -(a @ V), m),
    "while": lambda m, n: lax.fori_loop(0, 3, lambda i, c: c + m @ V, jnp.zeros(4, "float64")),
    "scan": lambda m, n: lax.scan(lambda c, row: (c + row @ V, row.sum()), 0.0, m)[1],
    "todense": lambda m, n: jnp.exp(sparse.todense(m)), "astype": lambda m, n: m.astype("float32"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sparsified_functions(name):
    f = FUNCTIONS[name]
    expected = f(jnp.asarray(X), jnp.asarray(Y))
    m, n = sparse.BCOO.fromdense(X), sparse.BCSR.fromdense(Y)
    for run in (sparse.sparsify(f), ft.jit(sparse.sparsify(f))):
        got = run(m, n)
        assert got.shape == expected.shape
        np.testing.assert_allclose(sparse.todense(got), expected, rtol=1e-6, atol=1e-9)


def test_trees_and_errors():
    f = sparse.sparsify(lambda p, *, scale: {"y": p["w"] @ p["x"] * scale, "w": p["w"]})
    out = f({"w": sparse.BCOO.fromdense(X), "x": V}, scale=2.0)
    np.testing.assert_allclose(out["y"], 2 * X @ V)
    assert isinstance(out["w"], sparse.BCOO)
    with pytest.raises(ft.core.errors.NotCoveredError, match=r"exp[\s\S]*todense"):
        sparse.sparsify(jnp.exp)(sparse.eye(3))
    got = sparse.grad(lambda m: sparse.sparsify(lambda m: (jnp.sin(m) @ V).sum())(m))(
        sparse.BCOO.fromdense(X))
    np.testing.assert_allclose(got.todense(), np.where(X != 0, np.cos(X) * V, 0))
