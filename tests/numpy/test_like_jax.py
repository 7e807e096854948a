"""What programs written for JAX ask of functions where NumPy has another result, or none."""

import array
from types import SimpleNamespace

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax, random
from functrans.core.errors import ArgumentError, KeyTypeError

POINTS = np.array([3.0, 2.0, 1.5, 1.0, 0.0, 4.0])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [2.0, 2.0], [1.0]])
@pytest.mark.parametrize("method", [None, "sort", "compare_all"])
def test_digitize_at_the_edges(bins, right, method):
    ours = jnp.digitize(POINTS, jnp.array(bins), right, method=method)
    np.testing.assert_array_equal(ours, np.digitize(POINTS, bins, right))
    staged = ft.jit(lambda x, b: jnp.digitize(x, b, right))(POINTS, np.array(bins))
    np.testing.assert_array_equal(staged, ours)


def test_put_takes_the_nearest_place():
    x, values = jnp.zeros(3), jnp.array([1.0, 2.0])
    def put(places, mode=None):
        return jnp.put(x, jnp.array(places), values, mode, inplace=False).tolist()
    assert put([0, 5]) == [1.0, 0.0, 2.0]
    assert put([0, -1]) == [1.0, 0.0, 2.0]
    assert put([2, -7]) == [2.0, 0.0, 1.0]
    assert put([0, 4], "wrap") == [1.0, 2.0, 0.0]


def test_negative_indices_that_do_not_wrap():
    x = jnp.arange(5.0)
    for index in (-1, np.int64(-1), jnp.array([-1]), (-1,)):
        at = x.at[index]
        assert at.set(99, wrap_negative_indices=False, mode="drop").tolist() == x.tolist()
        assert at.add(9, wrap_negative_indices=False).tolist() == x.tolist()
        assert np.isnan(at.get(wrap_negative_indices=False, mode="fill")).all()
        assert np.all(at.get(wrap_negative_indices=False, mode="clip") == 0)
    staged = ft.jit(lambda x: x.at[-2].mul(7, wrap_negative_indices=False, mode="drop"))
    assert staged(x).tolist() == x.tolist()
    assert x.at[-1].set(9).tolist() == [0, 1, 2, 3, 9]


def test_a_quotient_of_integers_is_none():
    x = jnp.arange(4)
    for index in (slice(1, 4, 2), jnp.array([3, 1])):
        assert x.at[index].divide(2).tolist() == [0, 0.5, 2, 1.5]
    assert x.at[3].divide(2).tolist() == [0, 1, 2, 1.5]
    assert ft.jit(lambda x: x.at[3].divide(2))(x).dtype == "float32"


def test_polynomials_with_more_axes():
    p, q = jnp.arange(6.0).reshape(2, 3), jnp.ones((4, 3))
    expected = np.array([[1, 1, 1], [1, 1, 1], [1, 2, 3], [4, 5, 6.0]])
    assert jnp.polyadd(p, q).tolist() == expected.tolist()
    assert jnp.polysub(q, p).tolist() == (2 - expected).tolist()
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(jnp.poly(matrix), np.poly(matrix), atol=1e-12)
    np.testing.assert_allclose(ft.jit(jnp.poly)(matrix), np.poly(matrix), atol=1e-12)


def test_the_rest_of_a_division_has_the_size_of_what_is_divided():
    for n, m in ((4, 2), (3, 3), (2, 3), (4, 1)):
        u, v = np.arange(1.0, n + 1), np.arange(2.0, m + 2)
        quotient, rest = np.polydiv(u, v)
        ours = ft.jit(jnp.polydiv)(u, v)
        np.testing.assert_allclose(ours[0], quotient)
        np.testing.assert_allclose(ours[1], np.pad(rest, (n - len(rest), 0)), atol=1e-12)
        for a, b in zip(np.polydiv(jnp.asarray(u), v), (quotient, rest), strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_pad_by_a_function_that_returns_its_vector():
    def fill(vector, width, axis, options):
        assert vector.ndim == 1 and axis in (0, 1)
        before, after = width
        return vector.at[:before].set(options["value"]).at[vector.shape[0] - after:].set(axis)

    def fill_in_place(vector, width, axis, options):
        before, after = width
        vector[:before] = options["value"]
        vector[vector.shape[0] - after:] = axis

    x = np.arange(6).reshape(2, 3)
    expected = np.pad(x, ((1, 2), (0, 1)), fill_in_place, value=7)
    for f in (fill, fill_in_place):
        assert jnp.pad(x, ((1, 2), (0, 1)), f, value=7).tolist() == expected.tolist()
    staged = ft.jit(lambda x: jnp.pad(x, ((1, 2), (0, 1)), fill, value=7))
    assert staged(x).tolist() == expected.tolist()


def test_piecewise_takes_a_stack_of_conditions():
    x = jnp.arange(-1, 2)
    stack = jnp.stack([x < 0, x == 0, x > 0])  # as many as x has elements
    functions = [lambda x: x * 10, lambda x: x + 5, lambda x: x * 100]
    assert jnp.piecewise(x, stack, functions).tolist() == [-10, 5, 100]
    assert jnp.piecewise(x, stack[:2], functions).tolist() == [-10, 5, 100]


def test_histograms_count_in_integers():
    x = jnp.array([0.1, 0.9, 0.8])
    counts = jnp.histogram2d(x, x, bins=2)[0]
    assert counts.dtype == "int32" and counts.tolist() == [[1, 0], [0, 2]]
    assert jnp.histogramdd(x[:, None], bins=2)[0].dtype == "int32"
    assert jnp.histogram2d(x, x, bins=2, density=True)[0].dtype == "float32"
    assert jnp.histogram2d(x, x, bins=2, weights=x)[0].dtype == "float32"


def test_arrays_in_foreign_memory():
    assert jnp.array(array.array("i", [1, 2])).tolist() == [1, 2]
    picture = SimpleNamespace(__array_interface__=np.eye(2).__array_interface__)
    assert jnp.asarray(picture).tolist() == [[1, 0], [0, 1]]
    assert jnp.size(jnp.ones((2, 3, 4)), axis=(0, -1)) == 8
    with pytest.raises(ArgumentError, match="axis 3"):
        jnp.size(jnp.ones(2), axis=3)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "nanmax", "ptp"])
def test_a_reduction_is_no_python_number(name):
    fun = getattr(jnp, name)
    for x in (3.0, jnp.array(3.0)[None]):
        assert not fun(x).weak_type and not ft.jit(fun)(x).weak_type
        assert (jnp.float16(2) * fun(x)).dtype == "float32"


def test_operations_of_lax():
    x = jnp.arange(12).reshape(4, 3)
    out = lax.broadcast_in_dim(x, (2, 3, 4), (2, 1))
    assert out.tolist() == np.broadcast_to(np.asarray(x).T, (2, 3, 4)).tolist()
    assert ft.grad(lambda x: (lax.broadcast_in_dim(x, (2, 3, 4), (2, 1)) ** 2).sum())(
        x.astype(float)).tolist() == (4.0 * x).tolist()
    v = jnp.arange(6)
    assert lax.slice_in_dim(v, -3, None).tolist() == [3, 4, 5]
    assert lax.slice_in_dim(v, None, -1, 2).tolist() == [0, 2, 4]
    assert lax.empty(3, "float32").shape == (3,)
    for condition in (True, np.bool_(True)):
        assert lax.select(condition, jnp.ones(2), jnp.zeros(2)).tolist() == [1, 1]
    assert lax.pow(jnp.array([2.0]), jnp.array([-3])).tolist() == [0.125]
    assert ft.grad(lambda x: lax.pow(x, jnp.int32(3)))(jnp.float32(2)) == 12
    real = lax.conj(jnp.array([1.0]))
    assert real.dtype == "complex64" and not np.signbit(np.asarray(real).imag[0])


def test_keys_by_their_dtype():
    key = random.key(3)
    assert random.wrap_key_data(random.key_data(key), dtype=key.dtype) == key
    other = random.key(3, impl="philox")
    assert random.wrap_key_data(random.key_data(other), dtype=other.dtype) == other
    with pytest.raises(ArgumentError, match="which generator"):
        random.wrap_key_data(random.key_data(key), dtype=key.dtype, impl="threefry2x32")
    with pytest.raises(KeyTypeError, match="no dtype of keys"):
        random.wrap_key_data(random.key_data(key), dtype=np.dtype("uint32"))


@pytest.mark.parametrize("text", ["0", "-1", "0,2", "0,2,0", "0,2,-1", "0,2,-2", "1,2,0", "0,3,1"])
def test_directives_of_joins(text):
    for items in (([1, 2, 3], [4, 5, 6]), (np.ones((2, 2)), np.zeros((2, 2)))):
        for ours, theirs in ((jnp.r_, np.r_), (jnp.c_, np.c_)):
            expected = theirs[(text, *map(np.asarray, items))]
            got = ours[(text, *map(jnp.asarray, items))]
            assert got.shape == expected.shape
            np.testing.assert_array_equal(got, expected)


def test_rows_and_columns():
    assert jnp.r_["r", [1, 2], 3].tolist() == [[1, 2, 3]]
    assert jnp.r_["c", [1, 2], 3].tolist() == [[1], [2], [3]]
    assert jnp.c_["r", [1, 2], [3, 4]].tolist() == [[1, 3], [2, 4]]
    assert ft.jit(lambda x: jnp.r_["0,2", x, x])(jnp.arange(2)).tolist() == [[0, 1], [0, 1]]
    for key in ("x", "0,1,2,3", "0,"):
        with pytest.raises(ArgumentError, match="a text comes first"):
            jnp.r_[key, [1]]


def test_sets_of_a_size_end_with_their_smallest_element():
    x, y = jnp.array([2, 7, 3]), jnp.array([2, 3, 5])
    assert jnp.setxor1d(x, y, size=4).tolist() == [5, 7, 5, 5]
    assert jnp.intersect1d(x, y, size=4).tolist() == [2, 3, 2, 2]
    assert ft.jit(lambda x, y: jnp.intersect1d(x, y, size=4))(x, y).tolist() == [2, 3, 2, 2]
    assert jnp.intersect1d(x, y, size=3, fill_value=-1).tolist() == [2, 3, -1]
    assert jnp.setxor1d(x, x, size=2).tolist() == [0, 0]
    assert jnp.intersect1d(x, y + 9, size=2).tolist() == [0, 0]


def test_a_tangent_is_as_weak_as_its_value():
    for f in (jnp.square, jnp.sin, jnp.deg2rad, jnp.sinc, lambda x: jnp.sin(x) * x):
        assert f(3.0).weak_type and ft.jvp(f, (3.0,), (2.0,))[1].weak_type
        assert ft.linearize(f, 3.0)[1](2.0).weak_type
        assert not ft.jvp(f, (jnp.float32(3.0),), (2.0,))[1].weak_type
    assert ft.jacfwd(lambda x: x * x)(3.0).weak_type
