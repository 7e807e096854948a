"""functrans.numpy.fft against numpy.fft, and derivatives of all transforms."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.test_util import check_grads

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]


def operand(name, shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return x if name[0] == "r" or name == "ihfft" else x + 1j * rng.standard_normal(shape)


def assert_same(actual, expected):
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ONE)
def test_one_axis(name, norm):
    for n in (None, 3, 4, 8, 1):
        for axis in (-1, 0):
            x = operand(name, (5, 6))
            assert_same(getattr(jnp.fft, name)(x, n, axis, norm),
                        getattr(np.fft, name)(x, n, axis, norm))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", MANY)
def test_several_axes(name, norm):
    x = operand(name, (3, 4, 5, 2))
    cases = [(None, (0, 2)), ((5, 3), (2, 0)), ((2, 7), (-1, 1)), (None, (1, 3))]
    if not name.endswith("2"):
        cases += [(None, None), ((3, 4, 2), (0, 1, 2)), (None, (3,))]
    for s, axes in cases:
        given = {} if axes is None else {"axes": axes}
        assert_same(getattr(jnp.fft, name)(x, s, norm=norm, **given),
                    getattr(np.fft, name)(x, s, norm=norm, **given))


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("n", [None, 4, 9])
def test_derivatives_along_one_axis(name, n):
    def fun(x):
        return jnp.sin(getattr(jnp.fft, name)(x, n))

    check_grads(fun, (operand(name, (2, 5)),), 2)


@pytest.mark.parametrize("name", MANY)
def test_derivatives_over_several_axes(name):
    check_grads(lambda x: getattr(jnp.fft, name)(x, (3, 4), (2, 0)) ** 2,
                (operand(name, (3, 2, 4)),), 2)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ONE + MANY)
def test_vmap_and_jit(name):
    x = operand(name, (4, 3, 5))
    transform = getattr(jnp.fft, name)
    for axis in (0, 1, 2):
        loop = np.stack([np.asarray(transform(np.take(x, i, axis))) for i in range(x.shape[axis])])
        np.testing.assert_allclose(ft.vmap(transform, axis)(x), loop, atol=1e-12)
        np.testing.assert_allclose(ft.jit(ft.vmap(transform, axis))(x), loop, atol=1e-12)


def test_frequencies_and_shifts():
    for n in (1, 4, 5):
        np.testing.assert_allclose(jnp.fft.fftfreq(n, 0.1), np.fft.fftfreq(n, 0.1), rtol=1e-6)
        np.testing.assert_allclose(jnp.fft.rfftfreq(n, 0.1), np.fft.rfftfreq(n, 0.1), rtol=1e-6)
    assert jnp.fft.fftfreq(3).dtype == np.float32
    assert jnp.fft.fftfreq(3, dtype="float64").dtype == np.float64
    x = np.arange(20).reshape(4, 5)
    for axes in (None, 0, (1,), (0, -1)):
        assert np.array_equal(jnp.fft.fftshift(x, axes), np.fft.fftshift(x, axes))
        assert np.array_equal(jnp.fft.ifftshift(x, axes), np.fft.ifftshift(x, axes))


def test_dtypes():
    assert jnp.fft.fft(jnp.arange(4)).dtype == np.complex64
    assert jnp.fft.rfft(jnp.ones(4, "float16")).dtype == np.complex64
    assert jnp.fft.irfft(jnp.ones(4, "complex128")).dtype == np.float64
    assert np.fft.fft(jnp.ones(4)).dtype == np.complex64


def test_lax_fft():
    x = jnp.asarray(operand("fft", (3, 4)))
    np.testing.assert_allclose(lax.fft(x, "FFT", (3, 4)), np.fft.fft2(x), atol=1e-5)
    np.testing.assert_allclose(lax.fft(x, lax.FftType.IFFT, (4,)), np.fft.ifft(x), atol=1e-5)


@pytest.mark.parametrize("call, text", [
    (lambda x: jnp.fft.rfft(x * 1j), "real numbers"),
    (lambda x: jnp.fft.fft(x, norm="half"), "no norm 'half'"),
    (lambda x: jnp.fft.fft(x, 0), "points"),
    (lambda x: jnp.fft.fft(x, axis=3), "out of bounds"),
    (lambda x: jnp.fft.fftn(x, (2, 2), (0,)), "2 sizes for 1 axes"),
    (lambda x: jnp.fft.fftn(x, axes=(0, 0)), "twice"),
    (lambda x: lax.fft(x * 1j, "FFT", (5,)), "must have sizes"),
    (lambda x: lax.fft(x, "DFT", (4,)), "no transform is named"),
])
def test_errors(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call(jnp.ones(4))
