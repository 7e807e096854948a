"""`ufunc` and `frompyfunc`: calls, methods, attributes, beside NumPy's."""

import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, NotCoveredError

X = np.arange(1.0, 41.0, dtype=np.float32).reshape(4, 10)
MIX = jnp.frompyfunc(lambda x, y: x * 0.5 + y, 2, 1)
MIX_NP = np.frompyfunc(lambda x, y: x * 0.5 + y, 2, 1)


def test_what_is_a_ufunc():
    for name in ("add", "floor_divide", "logaddexp", "negative", "maximum"):
        assert isinstance(getattr(jnp, name), jnp.ufunc), name
    assert not isinstance(jnp.sin, jnp.ufunc) and not isinstance(jnp.sum, jnp.ufunc)
    assert (jnp.add.nin, jnp.add.nout, jnp.add.nargs, jnp.add.identity) == (2, 1, 2, 0)
    assert jnp.subtract.identity is None and jnp.negative.nin == 1
    assert (MIX.nin, MIX.nout, MIX.nargs, MIX.identity) == (2, 1, 2, None)
    assert repr(jnp.ufunc(abs, 1, 1, name="size")) == "<functrans.numpy.ufunc 'size'>"
    assert jnp.ufunc(abs, 1, 1) == jnp.ufunc(abs, 1, 1) != MIX
    assert len({jnp.ufunc(abs, 1, 1), jnp.ufunc(abs, 1, 1)}) == 1


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("size", [3, 50])  # written out, and in a loop
def test_methods_are_numpys(axis, size):
    x = np.random.default_rng(0).random((size, size)).astype(np.float32)
    close = lambda ours, theirs: np.testing.assert_allclose(ours, theirs.astype("f"), rtol=2e-5)
    close(MIX.reduce(x, axis), MIX_NP.reduce(x.astype(object), axis))
    close(MIX.accumulate(x, axis), MIX_NP.accumulate(x.astype(object), axis))
    close(MIX.reduce(x, axis, initial=2.0), MIX_NP.reduce(x.astype(object), axis, initial=2.0))
    places = [0, 2, 1]
    close(MIX.reduceat(x, places, axis), MIX_NP.reduceat(x.astype(object), places, axis))
    close(MIX.outer(x[0], x[1]), MIX_NP.outer(x[0], x[1]))
    np.testing.assert_array_equal(jnp.floor_divide.reduce(X, 1), np.floor_divide.reduce(X, 1))
    assert MIX.reduce(x, axis, keepdims=True).ndim == 2


def test_long_folds_are_loops():
    text = str(ft.make_jaxpr(lambda x: MIX.reduce(x))(jnp.ones(1000)))
    assert "scan" in text and len(text.splitlines()) < 60
    less = jnp.less.accumulate(jnp.arange(40))  # booleans after the first step
    expected = list(itertools.accumulate(range(40), lambda r, i: r < i))
    assert less.tolist() == [bool(v) for v in expected]


def test_calls_and_updates():
    np.testing.assert_array_equal(MIX(X, X[0]), X * 0.5 + X[0])
    two = jnp.frompyfunc(lambda x: (x + 1, x * 2), 1, 2)
    a, b = two(jnp.arange(3), where=jnp.array([True, False, True]))
    assert a.tolist() == [1, 0, 3] and b.tolist() == [0, 0, 4]
    assert MIX.at(jnp.ones(3), jnp.array([1, 1]), 1.0, inplace=False).tolist() == [1, 1.75, 1]
    squared = jnp.frompyfunc(jnp.square, 1, 1).at(jnp.arange(3), 2, inplace=False)
    assert squared.tolist() == [0, 1, 4]
    assert float(jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=7).reduce(jnp.zeros(0))) == 7
    slope = ft.grad(lambda x: MIX.reduce(ft.vmap(MIX.reduce)(x)))(jnp.asarray(X[:, :3]))
    assert slope[3].tolist() == [0.25, 0.5, 1.0]
    assert float(ft.jit(MIX.reduce)(X[0])) == pytest.approx(float(MIX.reduce(X[0])))


def test_a_function_of_a_known_name_is_not_taken_for_it():
    def add(x, y):
        return x * y

    assert jnp.frompyfunc(add, 2, 1).reduce(jnp.array([2.0, 3.0, 4.0])).item() == 24
    assert jnp.frompyfunc(add, 2, 1).at(jnp.ones(2), 0, 5.0, inplace=False).tolist() == [5, 1]


def test_what_is_given_runs():
    f = jnp.ufunc(abs, 2, 1, call=jnp.add, reduce=lambda a, *rest: "reduced",
                  accumulate=lambda *rest: "accumulated", at=lambda *a, inplace: "at",
                  reduceat=lambda *rest: "reduceat")
    assert f(1, 2).item() == 3 and f.reduce(X) == "reduced" and f.accumulate(X) == "accumulated"
    assert f.at(X, 0, 1) == "at" and f.reduceat(X, [0]) == "reduceat"


def test_errors():
    with pytest.raises(ArgumentError, match="takes 2 arrays and got 1"):
        MIX(1.0)
    with pytest.raises(ArgumentError, match=r"reduce of .* has 1 operands and 2 results"):
        jnp.frompyfunc(lambda x: (x, x), 1, 2).reduce(X)
    with pytest.raises(ArgumentError, match="arrays are immutable"):
        MIX.at(X, 0, 1.0)
    with pytest.raises((ArgumentError, NotCoveredError), match="out"):
        MIX(X, X, out=np.zeros(3))
