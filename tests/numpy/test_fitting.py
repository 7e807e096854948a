"""polyfit and roots beside NumPy's, in float64; spacing; files and printing."""

import io

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, DTypeError, KeyTypeError, ShapeError

RNG = np.random.default_rng(3)
X, Y = np.linspace(-2, 3, 12), RNG.normal(size=(12, 2))
W = RNG.random(12) + 0.5


@pytest.mark.parametrize("y", [Y[:, 0], Y], ids=["vector", "columns"])
def test_polyfit_is_numpys(y):
    close = np.testing.assert_allclose
    close(jnp.polyfit(X, y, 3), np.polyfit(X, y, 3), rtol=1e-9)
    close(jnp.polyfit(X, y, 2, w=W), np.polyfit(X, y, 2, w=W), rtol=1e-9)
    for ours, theirs in zip(jnp.polyfit(X, y, 3, full=True), np.polyfit(X, y, 3, full=True)):
        close(ours, theirs, rtol=1e-9)
    for cov in (True, "unscaled"):
        for ours, theirs in zip(jnp.polyfit(X, y, 3, cov=cov), np.polyfit(X, y, 3, cov=cov)):
            close(np.squeeze(ours), np.squeeze(theirs), rtol=1e-8)
    close(ft.jit(lambda x, y: jnp.polyfit(x, y, 3))(X, y), np.polyfit(X, y, 3), rtol=1e-9)
    ft.test_util.check_grads(lambda x, y: jnp.polyfit(x, y, 2), (X, y), order=1)


def test_polyfit_refuses():
    with pytest.raises(ArgumentError, match="degree -1"):
        jnp.polyfit(X, X, -1)
    with pytest.raises(ShapeError, match="points of shapes"):
        jnp.polyfit(X, X[:3], 1)
    with pytest.raises(ShapeError, match=r"weights of shape \(3,\)"):
        jnp.polyfit(X, X, 1, w=X[:3])
    with pytest.raises(ArgumentError, match="covariance of 2 coefficients from 2 points"):
        jnp.polyfit(X[:2], X[:2], 1, cov=True)


@pytest.mark.parametrize("p", [[1, -6, 11, -6], [0, 0, 2, 1, 0, 5, 0, 0], [3.0], [0, 0], [1, 0, 1],
                               [1 + 2j, 0, 3]])
def test_roots_are_numpys(p):
    def ordered(x):
        return sorted(np.round(np.asarray(x), 6), key=lambda z: (z.real, z.imag))

    p = np.asarray(p) + np.zeros((), "complex128" if np.iscomplexobj(p) else "float64")
    np.testing.assert_allclose(ordered(jnp.roots(p)), ordered(np.roots(p)), atol=1e-5)
    traced = np.asarray(ft.jit(lambda p: jnp.roots(p, strip_zeros=False))(p))
    assert traced.shape == (max(len(p) - 1, 0),)
    lead = int(np.cumprod(p == 0).sum())
    known = traced[:len(traced) - lead] if lead else traced
    assert np.isnan(traced[len(known):]).all()
    np.testing.assert_allclose(ordered(known), ordered(np.roots(p)), atol=1e-5)


def test_roots_move_with_the_coefficients():
    p = np.array([1.0, -3.0, 2.0, 0.5])
    ft.test_util.check_grads(lambda p: jnp.roots(p, strip_zeros=False), (p,), order=1)
    with pytest.raises(ArgumentError, match="strip_zeros=False"):
        ft.jit(jnp.roots)(p)
    with pytest.raises(ShapeError):
        jnp.roots(np.ones((2, 2)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_spacing_is_numpys(dtype):
    x = np.array([1, -1, 0, -0.0, 3.5, -1e4, np.inf, np.nan, np.finfo(dtype).max], dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(jnp.spacing(x), np.spacing(x))
        np.testing.assert_array_equal(ft.jit(jnp.spacing)(x), np.spacing(x))
    assert ft.grad(jnp.spacing)(1.0).item() == 0
    assert float(jnp.spacing(jnp.bfloat16(1))) == float(jnp.finfo("bfloat16").eps)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "complex64", "int8"])
def test_files(dtype, tmp_path):
    x = jnp.asarray(np.arange(6).reshape(2, 3), dtype)
    jnp.save(tmp_path / "x.npy", x)
    back = jnp.load(tmp_path / "x.npy")
    assert back.dtype == x.dtype and (back == x).all()
    jnp.savez(tmp_path / "x.npz", x, named=x[0])
    found = jnp.load(tmp_path / "x.npz")
    assert sorted(found) == ["arr_0", "named"] and found["named"].shape == (3,)


def test_files_that_would_be_misread():
    with pytest.raises(DTypeError, match=r'x.view\("uint8"\)'):
        jnp.save(io.BytesIO(), jnp.zeros(2, "float8_e5m2"))
    with pytest.raises(KeyTypeError, match="key_data"):
        jnp.savez(io.BytesIO(), ft.random.key(0))


def test_fromfile_and_printing(tmp_path):
    np.arange(4, dtype=np.int16).tofile(tmp_path / "x")
    assert jnp.fromfile(tmp_path / "x", np.int16).tolist() == [0, 1, 2, 3]
    x = jnp.array([1e-9, 1.23456789])
    assert jnp.array_repr(x, precision=2, suppress_small=True) == \
        "Array([0.  , 1.23], dtype=float32)"
    assert jnp.array_str(x, precision=2) == "[1.00e-09 1.23e+00]"
    with jnp.printoptions(precision=1):
        assert jnp.get_printoptions()["precision"] == 1 and str(jnp.array([1.25])) == "[1.2]"


@pytest.mark.parametrize("name", [n for n in jnp.__all__ if n.startswith((
    "float4", "float6", "float8", "int1", "int2", "int4", "uint1", "uint2", "uint4"))
    and n not in ("int16", "uint16")])
def test_narrow_scalar_types(name):
    kind = getattr(jnp, name)
    x = kind(np.array([1.0, 0.5, 1.0]) if name.startswith("float") else np.array([0, 1, 0]) % 2)
    assert x.dtype == kind and x.dtype.name == name
    wide = x.astype("float32")
    assert (ft.jit(lambda x: x.astype("float32"))(x) == wide).all()


def test_ndarray_is_the_class_of_arrays():
    assert isinstance(jnp.ones(2), jnp.ndarray) and jnp.ndarray is ft.Array
    assert ft.jit(lambda x: x if isinstance(x, jnp.ndarray) else None)(1.0) is not None
    assert not isinstance(np.ones(2), jnp.ndarray)
    assert issubclass(jnp.object_, np.generic)
    assert jnp.ComplexWarning is np.exceptions.ComplexWarning
