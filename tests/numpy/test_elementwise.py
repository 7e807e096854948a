"""Elementwise functions against NumPy: values, dtypes, special values, promotion."""

import numpy as np
import pytest
from reference import check, compare, integers, normal

import functrans as ft
import functrans.numpy as jnp

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, 1e-30, 30.0, np.inf, -np.inf, np.nan],
                   np.float32)
UNARY = [
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh",
    "arccosh", "arctanh", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt",
    "cbrt", "floor", "ceil", "trunc", "rint", "fabs", "absolute", "abs", "sign", "negative",
    "positive", "square", "conj", "conjugate", "isnan", "isinf", "isfinite", "isposinf",
    "isneginf", "signbit", "logical_not", "real", "imag", "deg2rad", "radians", "rad2deg",
    "degrees", "sinc", "i0", "nan_to_num", "fix", "iscomplex", "isreal", "modf", "frexp",
    "angle", "round", "around", "asin", "acos", "atan", "asinh", "acosh", "atanh"]
COMPLEX = [
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh",
    "arccosh", "arctanh", "exp", "log", "sqrt", "square", "negative", "absolute", "sign",
    "conj", "isnan", "isinf", "isfinite", "logical_not", "real", "imag", "angle", "rint",
    "expm1", "log1p", "log2", "log10", "reciprocal", "sinc", "iscomplex", "isreal",
    "nan_to_num", "round"]
INTEGER = [
    "sin", "exp", "floor", "ceil", "trunc", "rint", "absolute", "sign", "negative", "positive",
    "square", "isnan", "isfinite", "logical_not", "real", "imag", "sqrt", "invert",
    "bitwise_not", "bitwise_invert", "nan_to_num", "fix", "isreal", "signbit", "bitwise_count",
    "round", "i0", "deg2rad"]
BOOLEAN = ["logical_not", "invert", "isnan", "isfinite", "absolute", "real", "sin", "exp",
           "nan_to_num"]
BINARY = [
    "add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "remainder", "mod",
    "fmod", "power", "pow", "maximum", "minimum", "fmax", "fmin", "arctan2", "atan2", "hypot",
    "copysign", "nextafter", "logaddexp", "logaddexp2", "heaviside", "equal", "not_equal",
    "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "logical_xor", "float_power", "divmod", "isclose"]
INTEGER_BINARY = [
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "maximum",
    "minimum", "equal", "less", "greater_equal", "bitwise_and", "bitwise_or", "bitwise_xor",
    "logical_and", "gcd", "lcm", "hypot", "arctan2", "divmod", "isclose"]


@pytest.mark.parametrize("name", UNARY)
def test_unary_special_values(name):
    x = SPECIAL[np.isfinite(SPECIAL)] if name in ("frexp", "i0", "sinc") else SPECIAL
    if name in ("sin", "cos", "tan", "exp", "exp2", "expm1", "sinh", "cosh", "i0"):
        x = x[~(x == 30)]
    compare(name, x)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (3, 1, 2)])
def test_unary_shapes(name, shape):
    compare(name, np.abs(normal(*shape)) % 1)


@pytest.mark.parametrize("name", UNARY)
def test_unary_float64(name):
    compare(name, np.linspace(0.1, 0.9, 5), tol=1e-12 if name != "i0" else 1e-6)


@pytest.mark.parametrize("name", COMPLEX)
def test_unary_complex(name):
    compare(name, normal(7, dtype=np.complex64) + 0.1, tol=1e-4)


@pytest.mark.parametrize("name", INTEGER)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_unary_integer(name, dtype):
    compare(name, integers(4, 3, low=0, dtype=dtype))


@pytest.mark.parametrize("name", ["absolute", "sign", "negative", "square", "invert", "signbit"])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64])
def test_unary_signed(name, dtype):
    compare(name, integers(6, dtype=dtype))


@pytest.mark.parametrize("name", BOOLEAN)
def test_unary_boolean(name):
    compare(name, np.array([True, False]), dtype=name not in ("sin", "exp"), tol=1e-3)


@pytest.mark.parametrize("name", ["sin", "exp", "sqrt", "floor", "square", "negative", "isnan"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_unary_half_keeps_its_dtype(name, dtype):
    x = jnp.asarray([0.5, 1.0, 2.0], dtype=dtype)
    result = getattr(jnp, name)(x)
    expected = getattr(np, name)(np.array([0.5, 1.0, 2.0], np.float32))
    assert result.dtype == (bool if name == "isnan" else x.dtype)
    np.testing.assert_allclose(np.asarray(result).astype(np.float32), expected, rtol=1e-2)


@pytest.mark.parametrize("name", [n for n in BINARY if n != "float_power"])  # float64 in NumPy
def test_binary_special_values(name):
    values = SPECIAL[np.isfinite(SPECIAL)] if name in (
        "divmod", "floor_divide", "remainder", "mod") else SPECIAL
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    if name in ("divmod", "floor_divide", "remainder", "mod", "fmod"):
        keep = (np.abs(y) > 1e-20) & (np.abs(x) < 1e20)
        x, y = x[keep], y[keep]
    compare(name, x, y)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 1), (3,)), ((), (3,)), ((3,), ()),
                                    ((), ()), ((0, 2), (1, 2))])
def test_binary_shapes(name, shapes):
    a, b = shapes
    compare(name, np.abs(normal(*a)) + 0.5, np.abs(normal(*b, seed=1)) + 0.5)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("number", [2, 0.5])
def test_binary_with_python_numbers(name, number):
    x = np.abs(normal(2, 3)) + 0.5
    compare(name, x, number)
    compare(name, number, x)


@pytest.mark.parametrize("name", INTEGER_BINARY)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_binary_integer(name, dtype):
    x = integers(40, low=-9 if dtype == np.int32 else 0, high=10, dtype=dtype)
    y = integers(40, low=-4 if dtype == np.int32 else 1, high=5, dtype=dtype, seed=3)
    compare(name, x, np.where(y == 0, 3, y).astype(dtype))


@pytest.mark.parametrize("name", ["add", "multiply", "subtract", "divide", "power", "equal"])
def test_binary_complex(name):
    x, y = normal(5, dtype=np.complex64), normal(5, dtype=np.complex64, seed=4)
    compare(name, x, y, tol=1e-4)
    compare(name, x, np.float32(2))


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "less", "logical_or"])
def test_binary_boolean(name):
    compare(name, np.array([True, False, True]), np.array([True, True, False]))


@pytest.mark.parametrize("name", ["less", "greater", "less_equal", "greater_equal", "maximum",
                                  "minimum"])
def test_complex_order(name):
    x = np.array([1 + 1j, 1 + 2j, 2 + 0j, 0 - 1j], np.complex64)
    compare(name, x, x[::-1].copy())


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7])
def test_integer_power(exponent):
    compare("power", integers(6), exponent)
    compare("power", integers(6), np.full(6, exponent, np.int32))
    compare("power", normal(6), exponent)


def test_shifts():
    x, y = integers(8, low=-100, high=100), integers(8, low=0, high=5)
    for name in ("left_shift", "right_shift"):
        compare(name, x, y)
        compare(name, np.abs(x).astype(np.uint8), y.astype(np.uint8))


def test_ldexp_at_the_edges():
    x = np.array([1.0, 0.75, -1.0, 1e-40, 3.0], np.float32)
    for n in (-140, -3, 0, 5, 127):
        compare("ldexp", x, np.full(5, n, np.int32))


def test_promotion_of_mixed_dtypes():
    x = jnp.asarray(np.ones(2, np.int8))
    assert jnp.add(x, np.ones(2, np.uint8)).dtype == np.int16
    assert jnp.add(x, 1).dtype == np.int8
    assert jnp.add(x, 1.5).dtype == np.float32
    assert jnp.add(x, np.float16(1)).dtype == np.float16
    assert jnp.multiply(np.ones(2), jnp.ones(2)).dtype == np.float64
    assert jnp.divide(x, x).dtype == np.float32
    assert jnp.add(1, 2).weak_type and jnp.sin(1.0).weak_type
    assert not jnp.add(jnp.ones(2), 1).weak_type


def test_refusals():
    with pytest.raises(TypeError, match="add takes arrays and numbers, and got a list"):
        jnp.add([1, 2], 3)
    with pytest.raises(TypeError, match="got None"):
        jnp.sin(None)
    with pytest.raises(ValueError, match=r"\(2,\), \(3,\) do not broadcast"):
        jnp.add(jnp.ones(2), jnp.ones(3))
    with pytest.raises(TypeError, match="does not take booleans"):
        jnp.subtract(jnp.asarray(True), jnp.asarray(False))
    with pytest.raises(TypeError, match="invert takes integers"):
        jnp.invert(jnp.ones(2))
    with pytest.raises(OverflowError, match="300"):
        jnp.add(jnp.ones(2, "uint8"), 300)
    with pytest.raises(ValueError, match="no integer power -1"):
        jnp.power(jnp.arange(3), -1)


@pytest.mark.parametrize("args", [(-1, 1), (None, 1), (0, None), (np.float32(-1), normal(3))])
def test_clip(args):
    x = normal(4, 3)
    low, high = args
    check(jnp.clip(x, low, high), np.clip(x, low, high))


def test_where_select_piecewise_choose():
    x, y = normal(3, 4), normal(4)
    compare("where", x > 0, x, y)
    compare("where", x > 0, 1, x)
    compare("select", [x > 1, x > 0], [x, -x], 7)
    check(jnp.piecewise(jnp.asarray(x), [x < 0, x > 1], [lambda v: v * 2, 3, lambda v: -v]),
          np.piecewise(x, [x < 0, x > 1], [lambda v: v * 2, 3, lambda v: -v]))
    index = integers(4, low=0, high=3)
    compare("choose", index, [np.arange(4, dtype=np.int32) + 10 * k for k in range(3)])
    compare("choose", index + 2, [normal(4), normal(4, seed=2)], mode="clip")
    compare("choose", index - 4, [normal(4), normal(4, seed=2)], mode="wrap")


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 3])
def test_round(decimals):
    compare("round", normal(20) * 100, decimals)
    compare("round", integers(20, low=-500, high=500), decimals)


def test_closeness():
    x = np.array([1.0, np.nan, np.inf, -np.inf, 2.0], np.float32)
    y = np.array([1.0 + 1e-6, np.nan, np.inf, np.inf, 2.1], np.float32)
    for equal_nan in (False, True):
        compare("isclose", x, y, equal_nan=equal_nan)
        compare("allclose", x[:3], y[:3], equal_nan=equal_nan)
        compare("array_equal", x, x, equal_nan=equal_nan)
    assert not jnp.array_equal(jnp.ones(2), jnp.ones(3))
    assert jnp.array_equiv(jnp.ones((2, 3)), jnp.ones(3))
    assert not jnp.array_equiv(jnp.ones(2), jnp.ones(3))


def test_unwrap():
    phase = np.cumsum(normal(3, 20) * 2, axis=1) % (2 * np.pi)
    compare("unwrap", phase)
    compare("unwrap", phase, axis=0)
    compare("unwrap", phase * 10, period=7.0)


def test_nan_to_num_with_values():
    compare("nan_to_num", SPECIAL, nan=7.0, posinf=8.0, neginf=-9.0)


def test_real_if_close_and_isin():
    x = np.array([1 + 1e-9j, 2], np.complex64)
    compare("real_if_close", x)
    compare("real_if_close", x + 1j)
    compare("isin", integers(3, 4), np.array([1, 2], np.int32))
    compare("isin", integers(3, 4), np.array([1, 2], np.int32), invert=True)
    compare("isin", integers(3), np.array([], np.int32))


def test_cbrt_and_gcd_of_large_numbers():
    x = np.array([0, 12, 2**31 - 1, 7, 0], np.int32)
    y = np.array([5, 18, 1, 7, 0], np.int32)
    compare("gcd", x, y)
    compare("lcm", np.array([4, 0, 6], np.int32), np.array([6, 3, 0], np.int32))


def test_bits_of_booleans_are_counted():
    for x in (np.array([True, False]), np.array([-3, 7], np.int8), np.uint16(255)):
        for f in (jnp.bitwise_count, ft.jit(jnp.bitwise_count)):
            got = f(x)
            assert got.dtype == np.uint8 and np.array_equal(got, np.bitwise_count(x))
