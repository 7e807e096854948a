"""Creation functions against NumPy, and the default dtypes."""

import numpy as np
import pytest
from reference import check, compare, integers, normal

import functrans as ft
import functrans.numpy as jnp


@pytest.mark.parametrize("data", [
    3, 2.5, True, 1j, [1, 2], [1, 2.5], [[1, 2], [3, 4]], (1, (2,))[0], [], [[]], [True, False],
    [1 + 2j, 3], range(4), [np.float32(1), np.float32(2)], np.arange(3, dtype=np.int64),
    [np.zeros(2, np.float32), np.ones(2, np.float32)], np.float64(2)])
def test_array(data):
    wide = "ifc" if isinstance(data, (np.ndarray, np.generic)) else ""
    check(jnp.array(data), np.array(data), wide)
    check(jnp.asarray(data), np.asarray(data), wide)
    check(jnp.array(data, dtype="float64"), np.array(data).real.astype("float64"), "f")


def test_array_of_arrays():
    x = jnp.asarray([1.0, 2.0])
    check(jnp.array([x, x]), np.array([[1, 2], [1, 2]], np.float32))
    check(jnp.array([x, [3, 4]]), np.array([[1, 2], [3, 4]], np.float32))
    check(jnp.array([x[0], 2]), np.array([1, 2], np.float32))
    check(ft.jit(lambda v: jnp.array([[v, 1], [2, v]]))(np.float32(3)),
          np.array([[3, 1], [2, 3]], np.float32))
    assert jnp.array(x, ndmin=3).shape == (1, 1, 2)


def test_array_keeps_numpy_dtypes_and_does_not_alias():
    source = np.ones(3)
    x = jnp.asarray(source)
    source[0] = 7
    assert x.dtype == np.float64 and float(x[0]) == 1.0


def test_array_refusals():
    with pytest.raises(ValueError, match="one shape"):
        jnp.array([[1, 2], [3]])
    with pytest.raises(TypeError, match="str"):
        jnp.array(["a"])
    with pytest.raises(TypeError, match="got None"):
        jnp.asarray(None)
    with pytest.raises(OverflowError):
        jnp.array([1, 2**40])
    assert jnp.array(2**40, dtype="int64") == np.int64(2**40)
    assert jnp.array([2**40], dtype="int64")[0] == np.int64(2**40)


@pytest.mark.parametrize("make", [jnp.array, lambda x, to: jnp.full((), x, to)])
def test_ints_beyond_the_default_dtype(make):
    """A dtype that holds them takes them, whatever int alone would have been."""
    for value in (2**32, -2**40, 2**64 - 1, 2**70):
        for to in (float, "float32", "bfloat16", complex):
            x = make(value, to)
            assert complex(x.item()) == complex(np.asarray(float(value), x.dtype).item())
        assert make(value, bool).item() is True


@pytest.mark.parametrize("name", ["zeros", "ones"])
def test_constants(name):
    for shape in [(), 3, (2, 3), (0, 2), np.int64(2)]:
        compare(name, shape)
    compare(name, (2,), dtype=np.int8)
    compare(name + "_like", normal(2, 3))
    compare(name + "_like", integers(2, 3), dtype=np.float32, shape=(4,))


def test_full_and_empty():
    compare("full", (2, 3), 7)
    compare("full", 2, 1.5)
    compare("full", (2, 3), np.arange(3, dtype=np.float32))
    compare("full", 2, 7, dtype=np.float32)
    compare("full_like", integers(2, 3), 7)
    compare("full_like", normal(2), 7, dtype=np.int32)
    assert jnp.empty((2, 3)).shape == (2, 3) and jnp.empty_like(jnp.ones(3)).shape == (3,)
    with pytest.raises(TypeError, match=r"3\.0 is not"):
        jnp.zeros(3.0)
    with pytest.raises(ValueError, match="negative"):
        jnp.zeros(-1)


@pytest.mark.parametrize("args", [(4,), (2, 7), (2, 9, 3), (9, 2, -2), (0,), (5, 1), (2.5,),
                                  (0, 1, 0.25), (1, 4.0)])
def test_arange(args):
    compare("arange", *args)
    compare("arange", *args, dtype=np.float32)
    check(ft.jit(lambda: jnp.arange(*args))(), np.arange(*args))


@pytest.mark.parametrize("kwargs", [
    {}, {"num": 5}, {"num": 1}, {"num": 0}, {"num": 5, "endpoint": False},
    {"num": 5, "retstep": True}, {"num": 4, "dtype": np.int32}])
def test_linspace(kwargs):
    compare("linspace", 1, 4.5, **kwargs)
    compare("linspace", normal(3), normal(3, seed=2), **kwargs)
    compare("linspace", normal(2, 3), 2.0, axis=-1, **kwargs)


def test_logspace_and_geomspace():
    compare("logspace", 0, 2, 5)
    compare("logspace", 0, 3, 4, base=2.0, endpoint=False)
    compare("geomspace", 1, 1000, 4)
    compare("geomspace", -1.0, -1000.0, 4)
    compare("geomspace", np.array([1, 2], np.float32), np.array([8, 4], np.float32), 3)
    compare("geomspace", np.array([1, 2], np.float32), np.array([8, 4], np.float32), 3, axis=-1)


def test_matrices():
    for args in [(3,), (2, 3), (3, 3, 1), (3, 4, -1), (3, None, 5)]:
        compare("eye", *args)
        compare("tri", *args)
    compare("eye", 2, dtype=np.int32)
    compare("identity", 3)
    for k in (-4, -1, 0, 2, 4):
        compare("tril", normal(3, 4), k)
        compare("triu", normal(2, 3, 3), k)
    compare("vander", normal(4))
    compare("vander", integers(4), 3, increasing=True)


def test_diagonals():
    for k in (-2, -1, 0, 1, 3):
        compare("diag", normal(3), k)
        compare("diag", normal(3, 4), k)
        compare("diagflat", normal(2, 2), k)
        compare("diagonal", normal(4, 3), k)
        compare("diagonal", normal(2, 3, 4), k, 2, 0)
        compare("trace", normal(4, 3), k)
    compare("trace", integers(2, 3, 4), 1, 1, 2)
    check(jnp.fill_diagonal(jnp.zeros((3, 3)), 7.0, inplace=False), np.eye(3) * 7)
    check(jnp.fill_diagonal(jnp.zeros((3, 3)), np.arange(3.0), inplace=False), np.diag(range(3)),
          dtype=False)


def test_grids():
    x, y, z = normal(2), normal(3), normal(4)
    for kwargs in ({}, {"indexing": "ij"}, {"sparse": True}):
        check(jnp.meshgrid(x, y, **kwargs), list(np.meshgrid(x, y, **kwargs)))
        check(jnp.meshgrid(x, y, z, **kwargs), list(np.meshgrid(x, y, z, **kwargs)))
    check(jnp.mgrid[0:3, 1:2:4j], np.mgrid[0:3, 1:2:4j])
    check(jnp.mgrid[0:3], np.mgrid[0:3])
    check(jnp.ogrid[0:3, 1:6:2], np.ogrid[0:3, 1:6:2])
    compare("indices", (2, 3))
    compare("indices", (2, 3), sparse=True)
    check(jnp.ix_(np.array([0, 2]), np.array([True, False])), np.ix_([0, 2], [True, False]), "i",
          dtype=False)


def test_indices_of_triangles():
    for n, k, m in [(3, 0, None), (3, 1, 4), (4, -1, 2)]:
        compare("tril_indices", n, k, m)
        compare("triu_indices", n, k, m)
    compare("tril_indices_from", normal(3, 3))
    compare("triu_indices_from", normal(3, 3), 1)
    compare("diag_indices", 3)
    compare("diag_indices_from", normal(3, 3))
    check(jnp.mask_indices(3, jnp.triu), np.mask_indices(3, np.triu))


def test_from_other_sources():
    check(jnp.frombuffer(b"\x01\x02", dtype="uint8"), np.array([1, 2], np.uint8))
    check(jnp.fromiter((i * i for i in range(3)), "float32"), np.array([0, 1, 4], np.float32))
    check(jnp.fromstring("1 2", sep=" "), np.array([1.0, 2.0]))
    x = np.ones(2, np.float32)
    check(jnp.from_dlpack(x), x)
    assert np.shares_memory(np.asarray(jnp.from_dlpack(x)), x)
    compare("fromfunction", lambda i, j: i * 10 + j, (2, 3))
    check(jnp.fromfunction(lambda i, j, k: i + 10 * j + 100 * k, (2, 3, 4), dtype=int),
          np.fromfunction(lambda i, j, k: i + 10 * j + 100 * k, (2, 3, 4), dtype=int))
    check(jnp.copy(jnp.ones(2)), np.ones(2))


def test_shapes_cannot_be_traced():
    with pytest.raises(TypeError, match="shape"):
        ft.jit(lambda n: jnp.zeros(n))(3)
    with pytest.raises(TypeError, match="traced"):
        ft.jit(lambda n: jnp.arange(n))(3)
