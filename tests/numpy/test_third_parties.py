"""Code written for NumPy that is handed our arrays: buffers, methods, writers, SciPy, figures."""

import io
import pickle

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.special
import sklearn.linear_model
import sklearn.metrics
import sklearn.preprocessing

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, FunctransError, ImmutableArrayError

V = np.array([0.5, -1.25, 2.0, 0.75], np.float32)
I = np.array([3, 1, 2, 0])
S = np.array([[4.0, 1.0], [2.0, 3.0]], np.float32)


def v():
    return jnp.asarray(V)


def i():
    return jnp.asarray(I)


def test_in_place_operators_on_numpy_arrays():
    for update in ("+=", "-=", "*=", "/=", "//=", "**=", "%="):
        a, b = np.full(4, 3.0), np.full(4, 3.0)
        same = a
        exec(f"a {update} x", {"a": a, "x": jnp.asarray([1.0, 2.0, 3.0, 2.0])})
        exec(f"b {update} x", {"b": b, "x": np.array([1.0, 2.0, 3.0, 2.0])})
        assert same is a and isinstance(a, np.ndarray)
        np.testing.assert_array_equal(a, b)
    n = np.arange(4)
    n <<= i()
    n |= i()
    np.testing.assert_array_equal(n, (np.arange(4) << I) | I)
    m = np.eye(2)
    m @= jnp.asarray(S)
    np.testing.assert_array_equal(m, S)
    with pytest.raises(TypeError):  # NumPy's own rule of casting
        n += v()


def test_out():
    out = np.zeros(4)
    assert np.add(v(), 1, out=out) is out and (out == V + 1).all()
    assert np.sin(v(), out=out, where=jnp.asarray(V > 0)) is out
    assert np.sum(jnp.asarray(S), axis=0, out=out[:2]).tolist() == S.sum(0).tolist()
    assert np.cumsum(v(), 0, None, out) is out
    square = np.zeros((2, 2), np.float32)
    assert np.matmul(jnp.asarray(S), jnp.asarray(S), out=square) is square
    assert np.add.reduce(v(), out=np.zeros(())) == V.sum()
    assert np.clip(v(), 0, 1, out=out) is out
    assert np.concatenate([v()[:2], v()[2:]], out=out) is out
    for call in (lambda o: np.add(v(), 1, out=o), lambda o: np.sum(v(), out=o)):
        with pytest.raises(ArgumentError, match="out="):
            call(v())
    with pytest.raises(ArgumentError, match=r"functrans\.numpy\.sin"):
        ft.jit(lambda x: np.sin(x, out=np.zeros(4)))(v())
    with pytest.raises(ArgumentError, match=r"x = x \+ y in place of x \+= y"):
        ft.jit(lambda x: np.add(np.ones(4), x, out=np.ones(4)))(v())


WRITERS = {
    "copyto": lambda a, x: np.copyto(a, x),
    "fill_diagonal": lambda a, x: np.fill_diagonal(a.reshape(2, 2), x[:2]),
    "place": lambda a, x: np.place(a, a > -1, x),
    "put": lambda a, x: np.put(a, [0, 2], x[:2]),
    "putmask": lambda a, x: np.putmask(a, [True, False, True, False], x),
    "put_along_axis": lambda a, x: np.put_along_axis(a, np.array([1, 0]), x[:2], 0),
    "add.at": lambda a, x: np.add.at(a, [0, 0, 1, 2], x),
    "maximum.at": lambda a, x: np.maximum.at(a, [0, 0, 1, 2], x),
    "divide.at": lambda a, x: np.divide.at(a, [0, 0, 1, 2], x),
}


@pytest.mark.parametrize("name", WRITERS)
def test_written(name):
    write = WRITERS[name]
    ours, theirs = np.arange(4.0), np.arange(4.0)
    write(ours, v())
    write(theirs, V)
    np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(FunctransError, match=r"functrans\."):
        ft.jit(lambda x: write(np.arange(4.0), x))(v())
    if name != "fill_diagonal":
        with pytest.raises((ImmutableArrayError, ArgumentError), match=r"(?s)immutable.*functrans"):
            write(v(), V)


def test_what_is_made_to_be_written_into_can_be():
    for make in (np.copy, np.empty_like, np.zeros_like, np.ones_like, np.array,
                 lambda x: np.full_like(x, 2)):
        buffer = make(v())
        buffer[1] = 7
        assert isinstance(buffer, np.ndarray) and buffer[1] == 7 and v()[1] == -1.25
    assert isinstance(ft.jit(np.zeros_like)(v()), ft.Array)


def test_methods_of_numpy_arrays():
    a = np.arange(8.0).reshape(2, 4)
    x = v()
    assert a.dot(x).tolist() == a.dot(V).tolist() and (a @ x).tolist() == (a @ V).tolist()
    assert a[:, i()].tolist() == a[:, I].tolist() and a[jnp.asarray([True, False])].shape == (1, 4)
    assert a.take(i(), 1).tolist() == a.take(I, 1).tolist()
    assert a[0].searchsorted(x).tolist() == a[0].searchsorted(V).tolist()
    assert a.sum(where=jnp.asarray(a > 2)) == a.sum(where=a > 2)
    assert a.clip(x, 3).tolist() == a.clip(V, 3).tolist()
    assert a[0].compress(jnp.asarray([True, False, True, True])).tolist() == [0, 2, 3]
    assert np.arange(4).choose([x, x, x, x]).tolist() == V.tolist()
    assert a.repeat(i(), 1).tolist() == a.repeat(I, 1).tolist()
    a[0] = x
    a[1, i()] = x
    assert a[0].tolist() == V.tolist() and a[1].tolist() == V[np.argsort(I)].tolist()
    a[jnp.asarray(a > 1)] = 0
    a.fill(jnp.asarray(3.0))
    assert a.flat[i()].tolist() == [3.0] * 4 and list(range(5))[jnp.asarray(2)] == 2


def test_conversions():
    x = v()
    assert np.asarray(x).base is not None and not np.asarray(x).flags.writeable
    assert np.shares_memory(np.asarray(x), np.asarray(x))
    assert np.asarray(x, copy=False).tolist() == V.tolist()
    assert not np.shares_memory(np.array(x), np.asarray(x)) and np.array(x).flags.writeable
    assert np.array(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float64, copy=False)
    assert np.asarray([x, x]).shape == (2, 4) and np.array([x[0], x[1]]).tolist() == [0.5, -1.25]
    assert np.require(x, requirements="W").flags.writeable and np.asanyarray(x).shape == (4,)
    assert memoryview(x).tolist() == V.tolist() and memoryview(x).readonly
    assert bytes(x) == V.tobytes() and list(x) == V.tolist()
    assert x.strides == V.strides and jnp.ones((2, 3)).strides == (12, 4)
    assert np.frombuffer(x, np.float32).tolist() == V.tolist()
    assert np.vectorize(lambda a, b: a + b)(x, 1).tolist() == (V + 1).tolist()
    assert np.frompyfunc(lambda a: a * 2, 1, 1)(x).tolist() == (V * 2).tolist()
    assert np.ma.masked_invalid(x).sum() == V.sum()
    masked = np.ma.array(V, mask=[0, 1, 0, 0])
    assert (masked + x).mask.tolist() == [False, True, False, False]
    assert np.nditer(x).itersize == 4 and [b.item() for _, b in np.ndenumerate(x)] == V.tolist()
    assert np.broadcast(x, S[:1, :1]).shape == (1, 4) and np.fromiter(x, float).tolist() == [*V]
    assert np.poly1d(x)(2.0) == np.poly1d(V)(2.0) and np.r_[x, 1.0].shape == (5,)
    assert np.polynomial.Polynomial(x)(0.5) == np.polynomial.Polynomial(V)(0.5)
    assert np.lib.stride_tricks.sliding_window_view(x, 2).shape == (3, 2)


def test_round():
    assert round(jnp.asarray(1.23456), 3) == pytest.approx(1.235)
    assert round(v(), 1).tolist() == np.round(V, 1).tolist()
    assert round(jnp.asarray([1.5, 2.5])).tolist() == [2, 2]
    assert ft.jit(lambda x: round(x, 1))(v()).tolist() == np.round(V, 1).tolist()


def test_testing():
    x = v()
    np.testing.assert_array_equal(x, V)
    np.testing.assert_allclose(x, V.tolist(), rtol=1e-6)
    np.testing.assert_almost_equal(x, V)
    np.testing.assert_array_almost_equal(x, V, 3)
    np.testing.assert_array_less(x, V + 1)
    np.testing.assert_array_max_ulp(x, V)
    np.testing.assert_array_almost_equal_nulp(x, V)
    np.testing.assert_equal({"a": x}, {"a": V})
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(x, V + 1)


def test_random_generators():
    rng, same = np.random.default_rng(0), np.random.default_rng(0)
    x, p = v(), jnp.asarray([0.25, 0.25, 0.25, 0.25], "float64")
    for draw in (lambda r, x, p: r.normal(x, 2.0), lambda r, x, p: r.choice(x, 3),
                 lambda r, x, p: r.choice(4, 3, p=p), lambda r, x, p: r.permutation(x),
                 lambda r, x, p: r.multinomial(5, p), lambda r, x, p: r.uniform(x, x + 1),
                 lambda r, x, p: r.integers(0, abs(x) + 2, 4), lambda r, x, p: r.poisson(abs(x)),
                 lambda r, x, p: r.multivariate_normal(x[:2], jnp.eye(2))):
        np.testing.assert_array_equal(draw(rng, x, p), draw(same, V, np.asarray(p)))


def test_files(tmp_path):
    x = v()
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "y.npz", x=x, y=x)
    np.savez_compressed(tmp_path / "z.npz", x)
    np.savetxt(tmp_path / "x.txt", x)
    for loaded in (np.load(tmp_path / "x.npy"), np.load(tmp_path / "y.npz")["y"],
                   np.load(tmp_path / "z.npz")["arr_0"], np.loadtxt(tmp_path / "x.txt"),
                   np.genfromtxt(tmp_path / "x.txt"), pickle.loads(pickle.dumps(x))):
        assert loaded.tolist() == V.tolist()
    stream = io.BytesIO()
    stream.write(x)
    assert stream.getvalue() == V.tobytes()


def test_scipy():
    x, s = v(), jnp.asarray(S)
    assert scipy.special.erf(x).tolist() == scipy.special.erf(V).tolist()
    assert scipy.special.logsumexp(x) == pytest.approx(scipy.special.logsumexp(V))
    np.testing.assert_allclose(scipy.linalg.expm(s), scipy.linalg.expm(S), rtol=1e-5)
    np.testing.assert_allclose(scipy.linalg.solve(s, x[:2]), scipy.linalg.solve(S, V[:2]))
    assert (scipy.sparse.csr_matrix(S) @ x[:2]).tolist() == (S @ V[:2]).tolist()
    assert scipy.sparse.csr_matrix(s).nnz == 4

    def residuals(p):
        return (jnp.exp(p[0] * jnp.arange(4.0)) + p[1]) - jnp.exp(0.5 * jnp.arange(4.0)) - 1.0

    start = jnp.asarray([0.1, 0.0], "float64")
    with ft.default_dtypes("float64", "int64"):
        fitted = scipy.optimize.least_squares(residuals, start, jac=ft.jit(ft.jacfwd(residuals)))
        assert fitted.x == pytest.approx([0.5, 1.0], abs=1e-6)
        loss = ft.jit(ft.value_and_grad(lambda p: jnp.sum(residuals(p) ** 2)))
        for method in ("BFGS", "L-BFGS-B", "CG", "trust-constr"):
            found = scipy.optimize.minimize(loss, start, jac=True, method=method)
            assert found.x == pytest.approx([0.5, 1.0], abs=1e-3), method
        root = scipy.optimize.root(residuals_of_two, start + 1.0, jac=ft.jacfwd(residuals_of_two))
        assert root.x == pytest.approx([1.0, 2.0], abs=1e-6)


def residuals_of_two(p):
    return jnp.stack([p[0] - 1.0, p[1] ** 2 - 4.0 * p[0]])


def test_scikit_learn():
    rng = np.random.default_rng(0)
    features, w = rng.normal(size=(20, 3)), np.array([1.0, -2.0, 0.5])
    x, y = jnp.asarray(features), jnp.asarray(features @ w)
    model = sklearn.linear_model.LinearRegression().fit(x, y)
    np.testing.assert_allclose(model.coef_, w, atol=1e-6)
    assert sklearn.metrics.mean_squared_error(y, model.predict(x)) < 1e-10
    scaled = sklearn.preprocessing.StandardScaler().fit_transform(x)
    np.testing.assert_allclose(scaled.std(0), 1.0, rtol=1e-6)
    assert sklearn.linear_model.LogisticRegression().fit(x, y > 0).score(x, y > 0) > 0.9
    assert sklearn.metrics.accuracy_score(y > 0, jnp.asarray(y) > 0) == 1.0


def test_figures():
    x, n = v(), jnp.arange(4)
    plt.switch_backend("Agg")
    figure, axes = plt.subplots(2, 3)
    axes = axes.ravel()
    axes[0].bar(n, x, yerr=abs(x))
    axes[0].plot(n, x, "o-")
    axes[1].scatter(n, x, c=x, s=abs(x))
    axes[1].fill_between(n, x, x + 1)
    axes[2].hist(x, bins=jnp.linspace(-2, 2, 5))
    axes[2].errorbar(n, x, yerr=abs(x))
    axes[3].imshow(jnp.asarray(S))
    grid = jnp.meshgrid(jnp.linspace(0, 1, 4), jnp.linspace(0, 1, 5))
    axes[4].contourf(*grid, jnp.sin(grid[0] * grid[1]))
    axes[4].pcolormesh(*grid, jnp.sin(grid[0] * grid[1]))
    axes[5].barh(n, x)
    axes[5].axhline(x[0])
    axes[5].set_xlim(x[0], x[2])
    figure.add_subplot(projection="3d").plot_surface(*grid, jnp.sin(grid[0] * grid[1]),
                                                     facecolors=None, cmap="viridis")
    figure.canvas.draw()
    plt.close(figure)
