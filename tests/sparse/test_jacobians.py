"""Sparse Jacobians and Hessians are the dense ones, at few places and by few products."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.experimental import sparse
from functrans.sparse.coloring import column_colors, star_colors
from functrans.sparse.patterns import distinct

rng = np.random.default_rng(1)
N = 6
A = np.where(rng.random((N, N)) < 0.3, rng.normal(size=(N, N)), 0)
K = np.array([1.0, 0.0, -2.0])
I = np.array([3, 0, 5, 5, 1, 9])


@ft.custom_jvp
def cubed(x):
    return x ** 3


cubed.defjvp(lambda primals, tangents: (cubed(*primals), 3 * primals[0] ** 2 * tangents[0]))


def fixpoint(x):
    step = lambda s: (s[0] + 1, s[1] * jnp.roll(x, 1))
    return lax.while_loop(lambda s: s[0] < 3, step, (0, x))[1]


# name, function, and how many places it may take at most
PROGRAMS = {
    "elementwise": (lambda x: jnp.sin(x) * x + 1, N),
    "shift": (lambda x: x * jnp.roll(x, 1), 2 * N),
    "stencil": (lambda x: jnp.convolve(x, K, mode="same"), 2 * N),
    "pad": (lambda x: jnp.pad(x, (2, 1))[1:] ** 2, N),
    "reverse": (lambda x: x[::-1] * x, 2 * N),
    "matrix": (lambda x: A @ x + (x @ A) ** 2, int(2 * np.count_nonzero(A))),
    "matrix of x": (lambda x: jnp.outer(x, x)[:2] @ x, 2 * N),
    "gather": (lambda x: x.at[I].get(mode="fill", fill_value=0) * 2, 5),
    "scatter": (lambda x: jnp.zeros(N, x.dtype).at[np.array([1, 1, 4])].add(x[:3] ** 2), 3),
    "set": (lambda x: x.at[2].set(x[0]).at[np.array([4, 5])].set(x[1]), N),
    "cumsum": (jnp.cumsum, N * (N + 1) // 2),
    "cumsum back": (lambda x: lax.cumsum(x, reverse=True), N * (N + 1) // 2),
    "blocks": (lambda x: (x.reshape(3, 2) ** 2).sum(1), N),
    "grid": (lambda x: jnp.einsum("ij,kj->ik", x.reshape(3, 2), A[:4, :2]), 24),
    "select": (lambda x: jnp.where(np.arange(N) < 3, x, x[::-1]), N),
    "traced select": (lambda x: jnp.where(x > 0, x, x[::-1]), 2 * N),
    "sorted": (jnp.sort, N * N),
    "constant": (lambda x: jnp.ones(3, x.dtype) + jnp.sign(x[:3]) + lax.stop_gradient(x[:3]), 0),
    "scalar": (lambda x: x[1] * x[2], 2),
    "jit": (lambda x: ft.jit(lambda y: y[1:] * y[:-1])(x), 2 * N),
    "custom": (lambda x: cubed(x), N),
    "checkpoint": (lambda x: ft.checkpoint(jnp.sin)(x), N),
    "window": (lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (2,), "VALID"), N),
    "scan": (lambda x: lax.scan(lambda c, y: (c * y, c + y), x[0], x)[1], N * (N + 1) // 2 + N),
    "long scan": (lambda x: lax.scan(lambda c, i: (c * x, c[::-1]), x, jnp.arange(80))[0], 2 * N),
    "fori": (lambda x: lax.fori_loop(0, 2, lambda i, c: c + jnp.roll(c, 1), x), 3 * N),
    "while": (fixpoint, N * N),
    "cond": (lambda x: lax.cond(x[0] > 0, lambda y: y, lambda y: y[::-1], x), 2 * N),
    "linalg": (lambda x: jnp.linalg.solve(A + 5 * np.eye(N), x), N * N),
    "dynamic": (lambda x: lax.dynamic_slice(x, (2,), (3,)) * x[0], 6),
    "traced dynamic": (lambda x: lax.dynamic_slice(x, (jnp.argmax(x),), (2,)), 2 * N),
    "fft": (lambda x: jnp.fft.fft(x.reshape(3, 2)).real, 12),
    "conv": (lambda x: lax.conv_general_dilated(x.reshape(1, 1, 6), K.reshape(1, 1, 3), (1,),
                                                "SAME"), 2 * N),
    "batched conv": (lambda x: lax.conv_general_dilated(
        x.reshape(1, 2, 3), np.ones((2, 1, 2)), (1,), "VALID", feature_group_count=2), 8),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_jacobians_are_those_of_dense_derivatives(name):
    f, most = PROGRAMS[name]
    x = rng.normal(size=N)
    expected = ft.jacfwd(f)(x)
    j = sparse.sparse_jacobian(f)(x)
    assert j.shape == expected.shape and j.nse <= most
    np.testing.assert_allclose(j.todense(), expected, atol=1e-10)
    if name not in ("while",):
        np.testing.assert_allclose(sparse.sparse_jacobian(f, mode="rev")(x).todense(), expected,
                                   atol=1e-10)


PARTS = ["elementwise", "shift", "stencil", "reverse", "matrix", "set", "cumsum", "scatter",
         "gather", "select", "custom"]


@settings(max_examples=4, deadline=None)
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3), st.sampled_from(PARTS))
def test_random_programs(names, other):
    x = rng.normal(size=N)

    def f(x):
        y = x
        for name in names:
            y = PROGRAMS[name][0](y)[:N]
        return y[:3] * PROGRAMS[other][0](x)[:3]

    np.testing.assert_allclose(sparse.sparse_jacobian(f)(x).todense(), ft.jacfwd(f)(x), atol=1e-8)

    def scalar(x):
        return (f(x) ** 2).sum() + (x ** 3).sum()

    np.testing.assert_allclose(sparse.sparse_hessian(scalar)(x).todense(), ft.hessian(scalar)(x),
                               rtol=1e-8, atol=1e-8)


HESSIANS = {
    "band": lambda x: (x[1:] ** 2 * x[:-1]).sum(),
    "arrow": lambda x: x[0] * (x ** 2).sum(),
    "diagonal": lambda x: jnp.sin(x).sum(),
    "rosenbrock": lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(),
    "linear": lambda x: x.sum(),
    "off the diagonal": lambda x: x[0] * x[3] + x[1] * x[4],
}


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians(name):
    f, x = HESSIANS[name], rng.normal(size=N)
    expected = ft.hessian(f)(x)
    h = sparse.sparse_hessian(f)(x)
    np.testing.assert_allclose(h.todense(), expected, atol=1e-10)
    assert h.nse <= np.count_nonzero(expected) + N
    np.testing.assert_allclose(sparse.sparse_hessian(f, sparse_format="bcsr")(x).todense(),
                               expected, atol=1e-10)


def band(x):
    p = jnp.pad(x, 1)
    return p[:-2] * p[2:] - x ** 2


def test_few_products():
    n = 300
    rows, columns = np.nonzero(ft.jacfwd(band)(np.linspace(1.0, 2.0, n)))
    assert column_colors(rows, columns, (n, n)).max() == 2
    i, j = np.nonzero(np.tri(n, k=1) * np.tri(n, k=1).T)
    assert star_colors(i, j, n).max() == 2
    assert star_colors(*np.nonzero(ft.hessian(HESSIANS["arrow"])(jnp.ones(50))), 50).max() == 1
    # a full row and a full column: reverse mode takes the row
    def wide(x):
        return jnp.append(x[:5] ** 2, x.sum() ** 2)
    plan = sparse.sparse_jacobian(wide)(np.linspace(1.0, 2.0, n))
    np.testing.assert_allclose(plan.todense(), ft.jacrev(wide)(np.linspace(1.0, 2.0, n)))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_colorings_are_valid(m, n, seed):
    draw = np.random.default_rng(seed)
    pattern = draw.random((m, n)) < 0.35
    colors = column_colors(*np.nonzero(pattern), (m, n))
    for a in range(n):
        for b in range(a):
            assert colors[a] != colors[b] or not (pattern[:, a] & pattern[:, b]).any()
    symmetric = draw.random((n, n)) < 0.3
    symmetric |= symmetric.T | np.eye(n, dtype=bool)
    colors = star_colors(*np.nonzero(symmetric), n)
    edge = symmetric & ~np.eye(n, dtype=bool)
    for v, w in zip(*np.nonzero(edge)):
        assert colors[v] != colors[w]
        for x in np.nonzero(edge[w])[0]:
            for y in np.nonzero(edge[x])[0]:
                if x != v and y not in (w, v):
                    assert len({colors[v], colors[w], colors[x], colors[y]}) > 2


def test_arguments():
    x, y = rng.normal(size=N), rng.normal(size=N)
    f = lambda y, x: x[1:] * y[:-1]
    j = sparse.sparse_jacobian(f, argnums=-1, sparse_format="bcsr")
    for scale in (1.0, 2.0):
        np.testing.assert_allclose(j(scale * y, x).todense(), ft.jacfwd(f, 1)(scale * y, x))
    np.testing.assert_allclose(ft.jit(lambda x: j(y, x).todense())(x), ft.jacfwd(f, 1)(y, x))
    np.testing.assert_allclose(
        ft.jit(lambda s, x: sparse.sparse_jacobian(lambda x: s * x)(x).todense())(3.0, x),
        3 * np.eye(N))
    # derivatives of a Jacobian
    total = lambda x: (sparse.sparse_jacobian(band)(x) @ y).sum()
    expected = ft.grad(lambda x: (ft.jacfwd(band)(x) @ y).sum())(x)
    np.testing.assert_allclose(ft.grad(total)(x), expected)
    matrix = rng.normal(size=(2, 3))
    j = sparse.sparse_jacobian(lambda x: x.T ** 2)(matrix)
    assert j.shape == (3, 2, 2, 3) and j.nse == 6
    np.testing.assert_allclose(j.todense(), ft.jacfwd(lambda x: x.T ** 2)(matrix))
    given_pattern = sparse.jacobian_sparsity(band, x)
    for pattern in (given_pattern, given_pattern.todense()):
        np.testing.assert_allclose(sparse.sparse_jacobian(band, pattern)(x).todense(),
                                   ft.jacfwd(band)(x))
    with pytest.raises(ft.core.errors.ShapeError, match="pattern"):
        sparse.sparse_jacobian(band, np.ones((2, 3)))(x)
    with pytest.raises(ft.core.errors.ArgumentError, match="tree"):
        sparse.sparse_jacobian(lambda x: (x, x))(x)
    with pytest.raises(ft.core.errors.DTypeError):
        sparse.sparse_jacobian(band)(jnp.arange(N))


def test_the_hessian_of_a_long_chain_is_planned_by_sorting():
    """Its keys as NumPy hashes them take 80 times as long as sorted."""
    n = 100_000

    def least(f):
        seconds = []
        for _ in range(5):
            begin = time.process_time()
            f()
            seconds.append(time.process_time() - begin)
        return min(seconds)

    rows = np.arange(n)
    keys = np.concatenate([rows * n + (rows + k) % n for k in (0, 1, 2, 1)])
    np.testing.assert_array_equal(distinct(keys), sorted(set(keys.tolist())))
    assert least(lambda: distinct(keys)) < 20 * least(lambda: np.sort(keys))
    x = rng.normal(size=n)
    hessian = sparse.sparse_hessian(lambda x: (jnp.diff(x) ** 4).sum() + jnp.exp(x).sum())(x)
    assert hessian.nse == 3 * n - 2
    d = np.diff(x)
    beside = 12 * np.concatenate([[0], d ** 2, [0]])
    expected = np.stack([np.exp(x) + beside[1:] + beside[:-1], -beside[1:]])
    ones = np.arange(n) % 3  # sums over every third column are single elements of the band
    columns = hessian @ (ones[:, None] == np.arange(3)).astype(float)
    np.testing.assert_allclose(columns[rows, ones], expected[0])
    np.testing.assert_allclose(columns[rows[:-1], ones[1:]], expected[1, :-1])
