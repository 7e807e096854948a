"""Products with gathered rows are made once for each row of the table."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.passes import gathered_rows
from functrans.lowering.passes.pipeline import simplify

RNG = np.random.default_rng(0)
ROWS, EDGES = 6, 40


def normal(*shape):
    return RNG.normal(size=shape).astype("float32")


X, Z, HEADS = normal(ROWS, 5), normal(EDGES, 3), normal(ROWS, 2, 5)
I, J = RNG.integers(ROWS, size=(2, EDGES))
NEIGHBOURS = RNG.integers(ROWS, size=(9, 4))
W, V, U = normal(5, 4), normal(13, 4), normal(2, 5, 3)


@pytest.fixture(autouse=True)
def _however_small(monkeypatch):
    monkeypatch.setattr(gathered_rows, "LEAST_SAVED", 0)


def messages(x, v, z):
    return jnp.tanh(jnp.concatenate([x[I], x[J], z], 1) @ v)


def layer(x, v, z):
    return jnp.zeros((ROWS, 4)).at[J].add(messages(x, v, z))


LAWS = {  # a function, its arguments, and the laws that apply
    "rows": (lambda x, w: x[I] @ w, (X, W), ["(x . y)[i]"]),
    "on the right": (lambda x, w: w.T @ x[I].T, (X, W), ["(x . y)[i]"]),
    "a vector": (lambda x, w: x[I] @ w[:, 0], (X, W), ["(x . y)[i]"]),
    "neighbours": (lambda x, w: x[NEIGHBOURS] @ w, (X, W), ["(x . y)[i]"]),
    "heads": (lambda x, u: jnp.einsum("ehd,hdf->ehf", x[I], u), (HEADS, U), ["(x . y)[i]"]),
    "joined": (messages, (X, V, Z), ["(x . y)[i]", "y1 + z . y2"]),
    "weights": (lambda x, g: x[I].T @ g, (X, Z), ["added up by i)"]),
    "weights of neighbours": (
        lambda x, g: jnp.einsum("nkd,nkf->df", x[NEIGHBOURS], g), (X, normal(9, 4, 3)),
        ["added up by i)"]),
    "weights on the right": (lambda x, g: g.T @ x[I], (X, Z), ["added up by i)"]),
    "added": (lambda g, w, x: jnp.asarray(x).at[I].add(g @ w), (Z, normal(3, 5), X),
              ["fewer rows"]),
    "added in parts": (lambda g, w: jnp.zeros((ROWS, 4)).at[I].add((g @ w)[:, 2:6]),
                       (Z, normal(3, 9)), ["fewer rows"]),
    "a layer": (layer, (X, V, Z), ["(x . y)[i]"]),
    "its gradient": (ft.grad(lambda *p: (layer(*p) ** 2).sum(), (0, 1, 2)), (X, V, Z),
                     ["(x . y)[i]", "added up by i)", "fewer rows"]),
    "its Hessian": (ft.hessian(lambda x: (layer(x, V, Z) ** 2).sum()), (X,), ["(x . y)[i]"]),
    "lanes": (ft.vmap(layer, (0, None, 0)), (normal(3, ROWS, 5), V, normal(3, EDGES, 3)), []),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", LAWS)
def test_values(name):
    fun, args, laws = LAWS[name]
    log = []
    simplify(ft.make_jaxpr(fun)(*args).jaxpr.hoist_consts(), log)
    told = {change.law for change in log}
    assert all(any(law in t for t in told) for law in laws), told
    expected = fun(*[x.astype("float64") for x in args])
    for got, want in zip(ft.tree.leaves(ft.jit(fun)(*args)), ft.tree.leaves(expected),
                         strict=True):
        np.testing.assert_allclose(got, want, 2e-5, 2e-5)


def changes(fun, *args):
    log = []
    simplify(ft.make_jaxpr(fun)(*args).jaxpr.hoist_consts(), log)
    return [change.law for change in log if change.table == "gathered rows"]


def test_few_rows_stay_as_they_are():
    few = I[:2 * ROWS - 1]
    assert not changes(lambda x, w: x[few] @ w, X, W)
    assert not changes(lambda x, g: x[few].T @ g, X, Z[:len(few)])
    assert not changes(lambda g, w: jnp.zeros((ROWS, 4)).at[few].add(g @ w), Z[:len(few)],
                       normal(3, 4))
    assert not changes(lambda x, w: x[I] @ w, X.astype("int32"), W.astype("int32"))


def test_small_products_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(gathered_rows, "LEAST_SAVED", 1 << 20)
    assert not changes(ft.grad(lambda *p: layer(*p).sum(), (0, 1, 2)), X, V, Z)


def test_rounding_to_few_digits_is_not_done_more_often():
    half = [x.astype("bfloat16") for x in map(jnp.asarray, (X, V, Z))]
    gradient = ft.grad(lambda *p: layer(*p).astype("float32").sum(), (0, 1, 2))
    assert not changes(gradient, *half)


@pytest.mark.parametrize("mode", ["fill", "clip"])
def test_rows_that_are_not_there(mode):
    outside = I.copy()
    outside[3] = ROWS + 2

    def both(x, w, g):
        rows = jnp.take(x, outside, axis=0, mode=mode)
        return rows @ w, rows.T @ g

    for got, want in zip(ft.jit(both)(X, W, Z), both(X, W, Z), strict=True):
        np.testing.assert_allclose(got, want, 2e-5, 2e-5)
