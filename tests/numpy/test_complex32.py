"""complex32: what its arrays are, convert to and promote to, how they leave, what is refused."""

import pickle

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.errors import DTypeError
from functrans.test_util import check_grads

COMPLEX32 = np.dtype(ml_dtypes.complex32)
VALUES = [1 + 2j, 3.1 - 0.5j, 0, 1e5, -65504 + 65519j, 65520j]


@pytest.fixture
def x():
    return jnp.array(VALUES, dtype="complex32")


def test_an_array(x):
    assert x.dtype == COMPLEX32 == jnp.complex32 == ft.dtypes.complex32
    assert (x.itemsize, x.nbytes, ft.dtypes.itemsize_bits(x.dtype)) == (4, 24, 32)
    assert jnp.issubdtype(x.dtype, jnp.complexfloating) and jnp.iscomplexobj(x)
    assert jnp.isdtype(x.dtype, "complex floating") and not jnp.isdtype(x.dtype, "real floating")
    assert float(jnp.finfo("complex32").max) == 65504
    assert x.tolist() == [1 + 2j, 3.099609375 - 0.5j, 0, complex(np.inf, 0), -65504 + 65504j,
                          complex(0, np.inf)]


def test_it_is_printed_as_complex_numbers(x):
    assert repr(x[:2]) == "Array([1.       +2.j , 3.0996094-0.5j], dtype=complex32)"
    assert repr(x[0]) == "Array(1.+2.j, dtype=complex32)"
    assert f"{x[0]:.1f}" == "1.0+2.0j" and str(x[0]) == "(1+2j)"
    assert str(ft.make_jaxpr(jnp.exp)(x)).startswith("{ lambda ; a:c32[6]. let")


def test_numpy_sees_complex64(x):
    assert np.asarray(x).dtype == np.complex64
    assert np.asarray(x, COMPLEX32).dtype == COMPLEX32
    assert (np.ones(6, np.complex64) * x).dtype == np.complex64  # an operation of ours
    assert ft.device_get(x).dtype == np.complex64


def test_copies_keep_the_dtype(x):
    for y in (jnp.array(x), x.copy(), jnp.asarray([x[0], x[1]]), jnp.stack([x]),
              pickle.loads(pickle.dumps(x)), jnp.asarray(np.asarray(x, COMPLEX32)),
              jnp.zeros_like(x), jnp.complex32(1j), ft.device_put(x), jnp.ravel(x[:0])):
        assert y.dtype == COMPLEX32


@pytest.mark.parametrize("run", (ft.jit, lambda f: f), ids=("jit", "eager"))
def test_conversions(x, run):
    small = x[:3]
    names = ("complex64", "complex128", "float16", "float32", "bfloat16", "int32", "float8_e5m2",
             "int4", "bool")
    converted = run(lambda x: [x.astype(name) for name in names])(small)
    back = run(lambda all: [x.astype("complex32") for x in all])(converted)
    for name, found, again in zip(names, converted, back, strict=True):
        of = jnp.astype(small, "complex64")
        assert found.tolist() == of.astype(name).tolist() and found.dtype.name == name
        assert again.dtype == COMPLEX32
        np.testing.assert_array_equal(np.asarray(again), found.astype("complex64"))
    # by one rounding: 65519.999999 is no 65520, which complex64 would make of it
    wide = np.array([1e5 + 1e-9j, 65519.9 - 65519.999999j, 1.00048828125 + 1.001j,
                     complex(-0.0, 4e-8)])
    found = run(lambda x: x.astype("complex32"))(jnp.asarray(wide))
    assert np.asarray(found.real).tolist() == [np.inf, 65504, 1, 0]
    assert np.asarray(found.imag).tolist() == [0, -65504, 1.0009765625, 2.0**-24]
    assert np.signbit(np.asarray(found.real)).tolist() == [False, False, False, True]


def test_promotion():
    for other, wanted in {"float16": "complex32", "float32": "complex64", "float64": "complex128",
                          "complex64": "complex64", "bfloat16": "complex64", "int32": "complex32",
                          "bool": "complex32", complex: "complex32", float: "complex32"}.items():
        assert jnp.promote_types("complex32", other).name == wanted
        assert jnp.promote_types(other, "complex32").name == wanted
    assert jnp.result_type("float16", "float32", "complex32").name == "complex64"
    assert jnp.result_type("float16", 1j).name == "complex64"  # nobody asked for half of it
    with pytest.raises(ft.errors.PromotionError):
        jnp.promote_types("complex32", "float8_e5m2")


def test_promotion_of_arrays(x):
    for other, wanted in ((2, "complex32"), (2.5, "complex32"), (1j, "complex32"),
                          (jnp.float16(2), "complex32"), (jnp.float32(2), "complex64"),
                          (np.complex64(2), "complex64"), (jnp.int32(2), "complex32")):
        assert (x * other).dtype.name == (other * x).dtype.name == wanted
        assert ft.eval_shape(lambda x, y: x * y, x, other).dtype.name == wanted


def test_can_cast():
    for source, wanted in {"float16": True, "int8": True, "float32": False, "complex64": False,
                           "complex32": True}.items():
        assert jnp.can_cast(source, "complex32") is wanted
    assert jnp.can_cast("complex64", "complex32", "same_kind")
    assert jnp.can_cast("complex32", "complex64")


def test_parts(x):
    for part in (x.real, x.imag, abs(x), jnp.angle(x)):
        assert part.dtype == np.float16
    joined = ft.lax.complex(x.real, x.imag)
    assert joined.dtype == COMPLEX32
    np.testing.assert_array_equal(np.asarray(joined), np.asarray(x))


def test_constants_of_programs(x):
    number = x[1]
    expected = np.asarray(x * x + number)
    np.testing.assert_array_equal(np.asarray(ft.jit(lambda y: y * x + number)(x)), expected)


def test_bits(x):
    bits = ft.lax.bitcast_convert_type(x[:1], "uint32")
    assert bits.tolist() == [0x3C00 | 0x4000 << 16]
    for run in (ft.jit, lambda f: f):
        assert run(lambda b: ft.lax.bitcast_convert_type(b, "complex32"))(bits).tolist() == [1 + 2j]
        halves = run(lambda z: ft.lax.bitcast_convert_type(z, "float16"))(x[:1])
        assert halves.tolist() == [[1, 2]]


def test_callbacks_get_what_they_were_promised(x):
    seen = []

    def double(a):
        seen.append(a.dtype)
        return (a.astype(np.complex64) * 2).astype(COMPLEX32)

    found = ft.jit(lambda x: ft.pure_callback(double, ft.ShapeDtypeStruct((3,), "complex32"), x))(
        x[:3])
    assert found.tolist() == (x[:3] * 2).tolist() and set(seen) == {COMPLEX32}


def test_an_exported_program(x):
    def f(y):
        return jnp.exp(y) * x[:3] + x[1]

    exported = ft.export.deserialize(ft.export.export(ft.jit(f))(x[:3]).serialize())
    assert exported.in_avals[0].dtype == exported.out_avals[0].dtype == COMPLEX32
    assert exported.call(x[:3]).tolist() == ft.jit(f)(x[:3]).tolist()


def test_derivatives():
    z = jnp.array([0.5 + 1j, -1.25 + 0.75j], dtype="complex32")
    found = ft.grad(lambda z: (z * z).sum(), holomorphic=True)(z)
    assert found.dtype == COMPLEX32 and found.tolist() == (2 * z).tolist()
    wide = ft.grad(lambda z: abs(z.astype("complex64") ** 2).sum())(z)
    assert wide.dtype == COMPLEX32
    np.testing.assert_allclose(np.asarray(wide), 2 * np.conj(np.asarray(z)), rtol=2e-3)
    check_grads(lambda z: z * z / 2, (z,), order=1)
    assert ft.jacfwd(lambda z: z * z, holomorphic=True)(z).dtype == COMPLEX32


def test_nan_is_found(x):
    def f(x):
        return (x - x) / (x - x)

    for run in (ft.jit, lambda f: f):
        with pytest.raises(ft.errors.NotFiniteError, match="c32"), ft.debug_nans(True):
            run(f)(x[:2])
    assert ft.checked(lambda x: x / 2)(x[:2]).dtype == COMPLEX32


@pytest.mark.parametrize("function", (
    jnp.linalg.inv, jnp.linalg.svd, jnp.linalg.eig, jnp.linalg.eigh, jnp.linalg.qr, jnp.linalg.det,
    jnp.linalg.cholesky, jnp.linalg.pinv, ft.scipy.linalg.lu, ft.scipy.linalg.schur,
    lambda a: jnp.linalg.solve(a, a), lambda a: ft.lax.linalg.tridiagonal_solve(*a, a.T)))
def test_linear_algebra_is_refused(function):
    with pytest.raises(DTypeError, match="complex32"):
        function(jnp.ones((3, 3), "complex32"))


def test_order_is_refused(x):
    with pytest.raises(DTypeError, match="complex32"):
        ft.lax.lt(x, x)
    with pytest.raises(DTypeError, match="converts"):
        ft.lax.fft_p.bind(x, fft_type=ft.lax.FftType.FFT, fft_lengths=(6,))
