"""Extrema of complex numbers: ordered by real and then by imaginary parts, as in NumPy."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

NAN, INF = np.nan, np.inf
PARTS = np.array([0.0, 1.0, -1.0, 2.0, INF, -INF])
PLAIN = (PARTS[:, None] + np.zeros(6)).astype(np.complex128)
PLAIN.imag = PARTS
NANS = np.array([complex(NAN, 1), complex(1, NAN), complex(NAN, NAN)])
ALL = np.concatenate([PLAIN.ravel(), NANS])
PAIRS = [v.ravel() for v in np.meshgrid(ALL, ALL)]
ROWS = np.array([[1 + 2j, 1 + 3j, 0 + 9j, 1 + 3j], [2 - 1j, 2 - 1j, -5 + 0j, 2 - 3j],
                 [-INF + 1j, complex(-INF, INF), complex(-INF, -INF), -INF + 2j]])


def in_parts(fun):
    """A function of complex arrays as one of real parts, which is compiled as such."""
    def of_parts(*parts):
        xs = [ft.lax.complex(re, im) for re, im in zip(parts[::2], parts[1::2], strict=True)]
        out = fun(*xs)
        return jnp.real(out), jnp.imag(out)

    compiled = ft.jit(of_parts)
    return lambda *xs: np.stack(compiled(*[p for x in xs for p in (x.real, x.imag)]))


def parts(x):
    x = np.asarray(x)
    return np.stack([x.real, x.imag])


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_elementwise(name):
    fun, expected = getattr(jnp, name), parts(getattr(np, name)(*PAIRS))
    np.testing.assert_array_equal(parts(fun(*PAIRS)), expected)
    np.testing.assert_array_equal(parts(ft.vmap(fun)(*PAIRS)), expected)
    np.testing.assert_array_equal(parts(ft.jit(fun)(*PAIRS)), expected)
    np.testing.assert_array_equal(in_parts(fun)(*PAIRS), expected)
    single = [v.astype(np.complex64) for v in PAIRS]
    np.testing.assert_array_equal(parts(fun(*single)), parts(getattr(np, name)(*single)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["max", "min", "ptp", "nanmax", "nanmin"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_reductions(name, axis):
    fun, x = getattr(jnp, name), ROWS[:2] if name == "ptp" else ROWS
    expected = parts(getattr(np, name)(x, axis=axis))
    for transform in (lambda f: f, ft.jit, in_parts):
        got = transform(lambda v: fun(v, axis=axis))(x)
        np.testing.assert_array_equal(got if transform is in_parts else parts(got), expected)
    got = ft.vmap(lambda v: fun(v, axis=axis))(np.stack([x, x]))
    np.testing.assert_array_equal(parts(got)[:, 1], expected)


def test_reductions_with_nan():
    x = np.concatenate([ROWS[:1], ROWS[:1]])
    x[0, 1] = complex(5, NAN)
    x[1, 2] = complex(NAN, 5)
    for fun in (jnp.max, jnp.min):
        for transform in (lambda f: f, ft.jit):
            assert np.isnan(np.asarray(transform(lambda v, f=fun: f(v, axis=1))(x))).all()
    assert complex(jnp.nanmax(x[0])) == np.nanmax(x[0])
    assert complex(ft.jit(jnp.nanmin)(x[1])) == np.nanmin(x[1])


def test_initial_and_where():
    x = ROWS[0]
    assert complex(jnp.max(x, initial=1 + 9j)) == 1 + 9j
    assert complex(jnp.min(x, initial=3 + 0j, where=np.array([True, True, False, True]))) == 1 + 2j
    assert complex(ft.lax.max(1 + 2j, 1 + 3j)) == 1 + 3j
    assert complex(ft.lax.reduce_min(x, (0,))) == 9j


def test_ties_share_the_gradient():
    z = np.array([1 + 2j, 1 + 3j, 1 + 3j])
    for transform in (lambda f: f, ft.jit):
        got = transform(ft.grad(lambda v: jnp.max(v).real))(z)
        np.testing.assert_allclose(got, [0, 0.5, 0.5])
        got = transform(ft.grad(lambda v: jnp.maximum(v, 1 + 3j).real.sum()))(z)
        np.testing.assert_allclose(got, [0, 0.5, 0.5])
        assert complex(ft.grad(lambda v: jnp.max(v), holomorphic=True)(z)[0]) == 0
