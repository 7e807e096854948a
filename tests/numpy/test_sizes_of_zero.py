"""Functions of arrays without elements: NumPy's results or its refusal, eagerly and compiled."""

import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax

SHAPES = ((0,), (0, 3), (3, 0), (0, 0))
FUNCTIONS = {
    **{name: lambda m, x, name=name: getattr(m, name)(x) for name in (
        "diff", "ediff1d", "cumsum", "cumprod", "nancumsum", "sort", "argsort", "unique", "sum",
        "median", "nanmedian", "var", "std", "mean", "prod", "max", "min", "argmax", "argmin",
        "nanmax", "nanmean", "ptp", "trapezoid", "unwrap", "poly", "flip", "diagonal",
        "ravel", "squeeze", "nonzero", "flatnonzero", "argwhere", "count_nonzero", "sinc",
        "nan_to_num", "sort_complex", "atleast_2d", "isnan", "signbit", "average")},
    **{f"{name} along {axis}": lambda m, x, name=name, axis=axis: getattr(m, name)(x, axis=axis)
       for axis in (0, -1) for name in (
           "diff", "cumsum", "sort", "argsort", "unique", "median", "nanmedian", "var", "mean",
           "prod", "max", "argmax", "trapezoid", "unwrap", "flip", "all", "any", "ptp",
           "nanmax", "nanmean", "nancumsum")},
    **{f"norm {ord}": lambda m, x, ord=ord: m.linalg.norm(x, ord)
       for ord in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)},
    "matrix_norm": lambda m, x: m.linalg.matrix_norm(x),
    "vector_norm": lambda m, x: m.linalg.vector_norm(x),
    "diff of order 2": lambda m, x: m.diff(x, 2),
    "diff and ends": lambda m, x: m.diff(x, axis=0, prepend=1, append=2),
    "ediff1d and ends": lambda m, x: m.ediff1d(x, 1, 2),
    "convolve": lambda m, x: m.convolve(x, x), "correlate": lambda m, x: m.correlate(x, x),
    "convolve with some": lambda m, x: m.convolve(x, m.ones(2)),
    "partition": lambda m, x: m.partition(x, 0),
    "percentile": lambda m, x: m.percentile(x, 50, axis=0),
    "nanpercentile": lambda m, x: m.nanpercentile(x, 50),
    "rfft": lambda m, x: m.fft.rfft(x), "irfft": lambda m, x: m.fft.irfft(x),
    "fft of 2": lambda m, x: m.fft.fft(x, 2), "fft of 0": lambda m, x: m.fft.fft(x, 0),
    "svd": lambda m, x: m.linalg.svd(x, compute_uv=False), "det": lambda m, x: m.linalg.det(x),
    "inv": lambda m, x: m.linalg.inv(x), "solve": lambda m, x: m.linalg.solve(x, x),
    "matmul": lambda m, x: x @ x.T, "outer": lambda m, x: m.outer(x, x),
    "kron": lambda m, x: m.kron(x, x), "cov": lambda m, x: m.cov(x),
    "histogram": lambda m, x: m.histogram(x, 3, (0, 1)),
}


def outcome(fun, module, x):
    """The results as NumPy arrays, or None where the function refuses."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            out = fun(module, x)
        except (ValueError, TypeError, IndexError, ZeroDivisionError, np.linalg.LinAlgError):
            return None
    return [np.asarray(y) for y in (out if isinstance(out, (tuple, list)) else [out])]


def agree(found, expected):
    assert (found is None) == (expected is None), (found, expected)
    for y, e in zip(found or [], expected or [], strict=True):
        assert y.shape == e.shape
        np.testing.assert_allclose(y, e)


VALUES_DECIDE = ("unique", "nonzero", "flatnonzero", "argwhere")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpy_agrees(name, shape):
    fun, x = FUNCTIONS[name], np.zeros(shape, np.float32)
    expected = outcome(fun, np, x)
    agree(outcome(fun, jnp, jnp.asarray(x)), expected)
    if name.split()[0] not in VALUES_DECIDE:
        with ft.config.use_backend("reference"):
            agree(outcome(lambda m, x: ft.jit(lambda x: fun(m, x))(x), jnp, x), expected)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [
    "diff", "ediff1d", "diff along 0", "unwrap", "trapezoid", "norm 2", "nanmedian along 0",
    "cumsum", "matmul", "mean along 0"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("backend", ["c", "triton"])
def test_compiled_code_agrees(name, shape, backend):
    """The array is reshaped in the program from one of another shape without elements."""
    fun, x = FUNCTIONS[name], np.zeros(shape, np.float32)
    with ft.config.use_backend(backend):
        found = outcome(lambda m, y: ft.jit(lambda y: fun(m, y.reshape(shape)))(y), jnp,
                        np.zeros((0, 7), np.float32))
    agree(found, outcome(fun, np, x))


@pytest.mark.parametrize("backend", ["c", "reference", "triton"])
def test_convolutions_of_reshaped_empties(backend):
    def rows(x):
        return lax.conv_general_dilated(x.reshape(0, 2, 5), jnp.ones((3, 2, 3)), (1,), "SAME")

    def channels(x):
        return lax.conv_general_dilated(x.reshape(4, 0, 5), jnp.ones((3, 0, 3)), (1,), "SAME")

    x = jnp.zeros((0, 7))
    with ft.config.use_backend(backend):
        assert ft.jit(rows)(x).shape == rows(x).shape == (0, 3, 5)
        for out in (ft.jit(channels)(x), channels(x)):
            assert out.shape == (4, 3, 5) and not out.any()


def test_transforms_of_no_points_are_empty_as_in_jax():
    for shape in SHAPES:
        for name in ("fft", "ifft", "fftn", "ifftn"):
            fun = getattr(jnp.fft, name)
            for out in (fun(jnp.zeros(shape)), ft.jit(fun)(jnp.zeros(shape))):
                assert out.shape == shape and out.dtype == "complex64"
    assert lax.fft(jnp.zeros(0, "complex64"), "FFT", (0,)).shape == (0,)
    assert jnp.fft.fft(jnp.zeros((2, 0)), n=3).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_grids_of_no_axes():
    assert jnp.mgrid[()].shape == np.mgrid[()].shape == (0,) and jnp.mgrid[()].dtype == "int32"
    assert jnp.ogrid[()] == []  # JAX's is a list, NumPy's a tuple


@pytest.mark.parametrize("size", [0, 3])
def test_map_in_batches_of_0_is_one_batch(size):
    for fun in (lambda x: lax.map(lambda a: a * 2, x, batch_size=0),
                ft.jit(lambda x: lax.map(lambda a: a * 2, x, batch_size=0))):
        assert fun(jnp.arange(size)).tolist() == list(range(0, 2 * size, 2))
