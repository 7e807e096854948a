"""Numbers of few bits in compiled programs: those of ml_dtypes, to the bit."""

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.c.lower import lower
from functrans.lowering.passes.narrow_formats import FLOATS, INTEGERS

RNG = np.random.default_rng(0)


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name))


def codes(name):
    bits = ml_dtypes.finfo(dtype_of(name)).bits if name in FLOATS else ml_dtypes.iinfo(name).bits
    return np.arange(1 << int(bits), dtype=np.uint8)


def same(actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.tobytes() == expected.tobytes()


def converted(x, name):
    return compiled(lambda x: x.astype(name), x)


def compiled(fun, *args):
    """The results of a program in which nothing is left to Python."""
    program = lower(ft.lower(fun, *args).jaxpr, frozenset())
    assert program is None or not program.text.hosts  # None: there is nothing to compute
    return ft.jit(fun)(*args)


@pytest.mark.parametrize("name", FLOATS)
def test_values_of_all_codes(name):
    x = codes(name).view(dtype_of(name))
    for wide in ("float32", "float64", "bfloat16"):
        out = np.asarray(converted(x, wide))
        np.testing.assert_array_equal(out.astype("d"), x.astype(wide).astype("d"))
        np.testing.assert_array_equal(np.signbit(out.astype("f"))[out == 0],
                                      np.signbit(x.astype("f"))[out == 0])


def hard_numbers(name, dtype):
    """All values of a format, what is half way between two, neighbours of these, and others."""
    with np.errstate(all="ignore"):
        values = codes(name).view(dtype_of(name)).astype(np.float64)
        finite = np.unique(values[np.isfinite(values)])
        halves = (finite[1:] + finite[:-1]) / 2
        beyond = finite[-1] + np.array([0.25, 0.5, 0.75, 1, 100]) * (finite[-1] - finite[-2])
        marked = np.concatenate([finite, halves, beyond, -beyond]).astype(dtype)
        near = [np.nextafter(marked, np.array(s, dtype)) for s in (np.inf, -np.inf)]
        random = RNG.integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32).astype(dtype)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 1e-39],
                           dtype)
        return np.concatenate([marked, *near, random, special])


def to_odd(x):
    """float64 as float32, odd where it is not exact: what is rounded on from there is rounded once.

    Source: Boldo and Melquiond, "When double rounding is odd", 2005.
    """
    near = x.astype(np.float32)
    bits = near.view(np.uint32) - (np.abs(near.astype("d")) > np.abs(x))
    odd = (bits | (near.astype("d") != x)).view(np.float32)
    return np.where(np.isfinite(x), odd, near)


@pytest.mark.parametrize("wide", ("float32", "float64"))
@pytest.mark.parametrize("name", FLOATS)
def test_rounding(name, wide):
    x = hard_numbers(name, wide)
    if name == "float8_e8m0fnu":  # below its second number it is no format of powers of two
        x = x[~(np.abs(x) < 2.0**-126)]
    with np.errstate(all="ignore"):
        expected = to_odd(x).astype(dtype_of(name))
    actual = converted(x, name)
    nan = np.isnan(x)  # the sign of one that is no number means nothing
    same(np.asarray(actual)[~nan], expected[~nan])
    np.testing.assert_array_equal(np.asarray(actual).astype("f")[nan], expected.astype("f")[nan])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", FLOATS)
def test_conversions_of_integers_and_halves(name):
    for x in (np.arange(-300, 300), np.arange(256, dtype=np.uint8), np.array([True, False]),
              RNG.standard_normal(1000).astype(np.float16) * 8,
              RNG.standard_normal(1000).astype(ml_dtypes.bfloat16)):
        with np.errstate(all="ignore"):
            same(converted(x, name), x.astype(dtype_of(name)))
    x = codes(name).view(dtype_of(name))
    finite = x[np.isfinite(x.astype("f"))]
    for wide in ("int32", "uint8", "bool", "int8"):
        same(converted(finite, wide),
             np.asarray(jnp.asarray(finite).astype(wide)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    x = codes(name).view(dtype_of(name))
    y = x[::-1].copy()
    for wide in ("float32", "int8", "int32", "uint8", "bool"):
        same(converted(x, wide), x.astype(wide))
    for given in (np.arange(-20, 40), np.arange(256, dtype=np.uint8)):
        same(converted(given, name), given.astype(x.dtype))
    given = np.array([-100, -3.7, -1, -0.5, 0, 0.9, 1.5, 6.9, 100, np.nan, np.inf], "f")
    low, high = (float(getattr(ml_dtypes.iinfo(name), k)) for k in ("min", "max"))
    expected = np.clip(np.trunc(np.nan_to_num(given)), low, high).astype(x.dtype)
    same(converted(given, name), expected)
    same(jnp.asarray(given).astype(name), expected)
    for fun in (lambda x, y: x + y, lambda x, y: x * y - x, lambda x, y: jnp.maximum(x, y),
                lambda x, y: x < y, lambda x, y: jnp.sort(x), lambda x, y: x.sum(),
                lambda x, y: jnp.stack([x, y]).T[0], lambda x, y: jnp.where(x > y, x, y)[::-1]):
        same(compiled(fun, x, y), fun(jnp.asarray(x), jnp.asarray(y)))


def test_bits_and_loops_and_branches():
    x = codes("float8_e5m2").view(ml_dtypes.float8_e5m2)[:64]
    same(compiled(lambda x: ft.lax.bitcast_convert_type(x, "uint8"), x), x.view(np.uint8))
    same(compiled(lambda x: ft.lax.bitcast_convert_type(x, "float8_e5m2") * 1, x.view(np.uint8)),
         x)
    same(compiled(lambda x: ft.lax.bitcast_convert_type(x.reshape(-1, 2), "uint16"), x),
         x.view(np.uint16))

    def halve(x):
        return ft.lax.while_loop(lambda x: x.max() > 1, lambda x: x * 0.5, x)

    def running(x):
        return ft.lax.scan(lambda c, row: (c + row, ft.lax.cond(c[0] > 2, jnp.negative, jnp.copy,
                                                               c)), x[0] * 0, x)

    for fun, arg in ((halve, x[:60]), (running, x[:60].reshape(12, 5))):
        for actual, expected in zip(ft.tree.leaves(compiled(fun, arg)),
                                    ft.tree.leaves(fun(jnp.asarray(arg))), strict=True):
            same(actual, expected)


def test_python_is_given_numbers():
    seen = []

    def look(x):
        seen.append(x)
        return (x.astype("f") * 2).astype(x.dtype)

    x = codes("float8_e4m3fn").view(ml_dtypes.float8_e4m3fn)[:20]
    out = ft.jit(lambda x: ft.pure_callback(look, ft.ShapeDtypeStruct(x.shape, x.dtype), x))(x)
    assert seen[0].dtype == x.dtype
    same(out, (x.astype("f") * 2).astype(x.dtype))


def test_products_are_sums_of_float32():
    x = (RNG.standard_normal((40, 300)) * 0.5).astype(ml_dtypes.float8_e4m3fn)
    y = (RNG.standard_normal((300, 30)) * 0.5).astype(ml_dtypes.float8_e4m3fn)
    out = compiled(lambda x, y: ft.lax.dot(x, y, preferred_element_type="float32"), x, y)
    np.testing.assert_allclose(np.asarray(out), x.astype("f") @ y.astype("f"), atol=1e-4)
    i = RNG.integers(-8, 8, (9, 50)).astype(ml_dtypes.int4)
    out = compiled(lambda i: ft.lax.dot(i, i.T, preferred_element_type="int32"), i)
    same(out, i.astype(np.int32) @ i.astype(np.int32).T)
