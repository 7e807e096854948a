"""Normalizations, cells, embeddings and caches against plain NumPy and loops."""

from functools import partial

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import nn
from functrans.core.errors import ArgumentError, DTypeError, ShapeError
from functrans.test_util import check_grads

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 5, 4)) * 3 + 1
SCALE, BIAS = RNG.standard_normal((2, 4))


def standardized(x, axis, epsilon=1e-5):
    centred = x - x.mean(axis, keepdims=True)
    return centred / np.sqrt(x.var(axis, keepdims=True) + epsilon)


GROUPED = standardized(X.reshape(6, 5, 2, 2), (1, 3)).reshape(X.shape)


@pytest.mark.parametrize(("norm", "wanted"), [
    (nn.layer_norm, standardized(X, -1) * SCALE + BIAS),
    (partial(nn.layer_norm, axis=(1, 2)), standardized(X, (1, 2)) * SCALE + BIAS),
    (lambda x, scale, bias: nn.rms_norm(x, scale) + (0 if bias is None else bias),
     X / np.sqrt((X * X).mean(-1, keepdims=True) + 1e-6) * SCALE + BIAS),
    (lambda x, scale, bias: nn.group_norm(x, 2, scale, bias), GROUPED * SCALE + BIAS),
    (lambda x, scale, bias: nn.batch_norm(x, None, scale, bias, training=True)[0],
     standardized(X, (0, 1)) * SCALE + BIAS),
])
def test_normalizations(norm, wanted):
    np.testing.assert_allclose(norm(X, SCALE, BIAS), wanted, rtol=1e-10, atol=1e-12)
    check_grads(lambda x, s, b: norm(x, s, b), (X, SCALE, BIAS), order=1)
    half = norm(jnp.asarray(X, "bfloat16"), jnp.asarray(SCALE, "float32"), None)
    assert half.dtype == "bfloat16"
    np.testing.assert_allclose(half.astype("float32"), norm(X, SCALE, None), atol=0.15)


def test_batch_norm_keeps_running_statistics():
    stats = nn.BatchStats(np.zeros(4), np.ones(4))
    _, after = nn.batch_norm(X, stats, training=True, momentum=0.75)
    np.testing.assert_allclose(after.mean, X.mean((0, 1)) / 4)
    np.testing.assert_allclose(after.variance, 0.75 + X.var((0, 1)) / 4)
    at_test, same = nn.batch_norm(X, after, training=False)
    np.testing.assert_allclose(at_test, (X - after.mean) / np.sqrt(after.variance + 1e-5))
    assert same is after
    mapped, _ = ft.vmap(lambda x: nn.batch_norm(x, training=True, axis=(), axis_name="batch"),
                        axis_name="batch")(X[:, 0])
    np.testing.assert_allclose(mapped, standardized(X[:, 0], 0))
    with pytest.raises(ArgumentError, match="needs stats"):
        nn.batch_norm(X, training=False)
    with pytest.raises(ShapeError, match="groups=3"):
        nn.group_norm(X, 3)


@pytest.mark.parametrize("cell", [nn.rnn_cell, nn.lstm_cell, nn.gru_cell])
def test_cells(cell):
    params = nn.init_cell(ft.random.key(0), cell, 3, 4, "float64")
    start = jnp.zeros((2, 4), "float64")
    state = nn.LSTMState(start, start) if cell is nn.lstm_cell else start
    xs = RNG.standard_normal((5, 2, 3))
    last, outs = nn.run_cell(cell, params, state, xs)
    step, rows = state, []
    for x in xs:
        step, out = cell(params, step, x)
        rows.append(out)
    np.testing.assert_allclose(outs, np.stack(rows))
    for a, b in zip(ft.tree.leaves(last), ft.tree.leaves(step), strict=True):
        np.testing.assert_allclose(a, b)
    lanes = ft.vmap(lambda x: nn.run_cell(cell, params, ft.tree.map(lambda s: s[0], state), x)[1],
                    1, 1)(xs)
    np.testing.assert_allclose(lanes, outs)
    check_grads(lambda p: nn.run_cell(cell, p, state, xs)[1], (params,), order=1)


def test_gates_are_those_of_the_papers():
    """A GRU by its equations, with separate matrices."""
    p = nn.init_cell(ft.random.key(1), nn.gru_cell, 3, 4, "float64")
    p["bias"] = RNG.standard_normal(24)
    x, h = RNG.standard_normal(3), RNG.standard_normal(4)
    (wr, wz, wn), (ur, uz, un) = np.split(p["input"], 3, 1), np.split(p["recurrent"], 3, 1)
    br, bz, bn, cr, cz, cn = np.split(p["bias"], 6)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    r, z = sigmoid(x @ wr + br + h @ ur + cr), sigmoid(x @ wz + bz + h @ uz + cz)
    n = np.tanh(x @ wn + bn + r * (h @ un + cn))
    np.testing.assert_allclose(nn.gru_cell(p, h, x)[1], (1 - z) * n + z * h)
    with pytest.raises(ArgumentError, match="no parameters"):
        nn.init_cell(ft.random.key(0), abs, 3, 4)


def test_embed():
    table = RNG.standard_normal((7, 3))
    ids = np.array([[6, 0], [2, 2]])
    np.testing.assert_array_equal(nn.embed(table, ids), table[ids])
    gradient = ft.grad(lambda t: nn.embed(t, ids).sum())(table)
    np.testing.assert_array_equal(gradient[:, 0], [1, 0, 2, 0, 0, 0, 1])
    assert np.isnan(nn.embed(table, np.array([7]))).all()
    with pytest.raises(DTypeError, match="ids of dtype float64"):
        nn.embed(table, ids * 1.0)


def test_rotary_products_depend_on_distance():
    q, k = RNG.standard_normal((2, 1, 1, 8))
    at = lambda x, n: np.asarray(nn.rotary_embedding(x[None], jnp.array([n]))).ravel()
    near, far = at(q, 3) @ at(k, 1), at(q, 10) @ at(k, 8)
    np.testing.assert_allclose(near, far, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(at(q, 5)), np.linalg.norm(q), rtol=1e-6)
    np.testing.assert_array_equal(at(q, 0), q.ravel())
    table = nn.sinusoidal_positions(6, 8, dtype="float64")
    np.testing.assert_allclose((table**2).sum(1), 4, rtol=1e-6)


def test_dropout():
    x = np.ones((100, 50))
    kept = np.asarray(nn.dropout(ft.random.key(0), x, 0.25))
    assert set(np.unique(kept)) == {0, 1 / 0.75} and abs(kept.mean() - 1) < 0.03
    rows = np.asarray(nn.dropout(ft.random.key(0), x, 0.5, broadcast_axes=(-1,)))
    assert (rows == rows[:, :1]).all() and 0 < rows.mean() < 2
    assert nn.dropout(None, x, 0.5, deterministic=True).tolist() == x.tolist()
    assert not np.asarray(nn.dropout(ft.random.key(0), x, 1.0)).any()
    with pytest.raises(ArgumentError, match="no key"):
        nn.dropout(None, x, 0.5)
    with pytest.raises(ArgumentError, match="rate=2"):
        nn.dropout(ft.random.key(0), x, 2)


def test_attention_with_a_cache_is_causal_attention():
    q, k, v = RNG.standard_normal((3, 2, 7, 4, 8)).astype(np.float32)
    k, v = k[:, :, :2], v[:, :, :2]
    wanted = nn.dot_product_attention(q, k, v, is_causal=True)
    step = ft.jit(nn.cached_attention)
    cache, outs = nn.init_cache(2, 9, 2, 8), []
    for i, n in ((0, 3), (3, 1), (4, 1), (5, 2)):
        part = slice(i, i + n)
        out, cache = step(q[:, part], k[:, part], v[:, part], cache)
        outs.append(out)
    np.testing.assert_allclose(np.concatenate(outs, 1), wanted, rtol=2e-5, atol=1e-6)
    assert int(cache.length) == 7
    out, _ = step(q[:, :3], k[:, :3], v[:, :3], cache)  # room for two of three
    assert np.isnan(out[:, 2]).all() and np.isfinite(out[:, :2]).all()
    with pytest.raises(ShapeError, match="for a cache of shape"):
        nn.cached_attention(q, q, q, cache)
