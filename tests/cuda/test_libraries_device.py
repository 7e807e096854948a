"""Transforms and linear algebra of cuFFT, cuSOLVER and cuBLAS on a GPU, beside NumPy's.

A missing library is a warning, which fails a test.
"""

from functools import partial

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from tests.laws.primitives import all_cases

pytestmark = pytest.mark.gpu

DTYPES = ["float32", "float64", "complex64", "complex128"]
REAL = DTYPES[:2]
EPSILON = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-11, "complex128": 1e-11}
RNG = np.random.default_rng(0)
STACKS = [(), (3,), (2, 2)]


def numbers(*shape, dtype="float64"):
    x = RNG.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * RNG.normal(size=shape)
    return x.astype(dtype)


def on_gpu(fun, *args):
    outs = ft.jit(fun)(*[ft.device_put(x, "gpu") for x in args])
    assert all(x.device.platform == "gpu" for x in ft.tree.leaves(outs))
    return ft.tree.map(np.asarray, outs)


def on_cpu(fun, *args):
    with ft.config.default_device("cpu"):
        return ft.tree.map(np.asarray, fun(*args))


def close(actual, expected, dtype):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(actual, expected, EPSILON[dtype], EPSILON[dtype] * scale)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("shape", [(7,), (64,), (3, 1000), (32, 128), (2, 3, 8, 9), (4, 6, 10, 5)],
                         ids=str)
def test_transforms(shape, dtype):
    x, z = numbers(*shape, dtype=dtype), numbers(*shape, dtype=f"complex{2 * int(dtype[5:])}")
    for rank in range(1, min(3, len(shape)) + 1):
        axes = tuple(range(-rank, 0))
        n = shape[-rank:]
        for name, array in (("fftn", z), ("ifftn", z), ("rfftn", x)):
            out = on_gpu(partial(getattr(jnp.fft, name), axes=axes), array)
            close(out, getattr(np.fft, name)(array, axes=axes), dtype)
        half = z[..., :n[-1] // 2 + 1]  # a spectrum of no real numbers
        close(on_gpu(partial(jnp.fft.irfftn, s=n, axes=axes), half),
              np.fft.irfftn(half, n, axes), dtype)


def test_transforms_between_kernels_and_their_gradients():
    x = numbers(5, 300, dtype="float32")
    power = lambda x: (abs(jnp.fft.rfft(jnp.sin(x))) ** 2).sum(-1)
    close(on_gpu(power, x), on_cpu(power, x), "float32")
    gradient = ft.grad(lambda x: jnp.log(power(x)).sum())
    close(on_gpu(gradient, x), on_cpu(gradient, x), "float32")
    loop = lambda z: lax.fori_loop(0, 5, lambda _, z: jnp.fft.ifft(jnp.fft.fft(z) * 1j), z)
    z = numbers(64, dtype="complex64")
    for _ in range(3):
        close(on_gpu(loop, z), z * 1j, "complex64")


def definite(n, stack, dtype):
    a = numbers(*stack, n, n, dtype=dtype)
    return (a @ a.conj().mT + n * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stack", STACKS, ids=str)
@pytest.mark.parametrize("n", [1, 5, 33])
def test_factors(n, stack, dtype):
    a, b = definite(n, stack, dtype), numbers(*stack, n, 3, dtype=dtype)
    close(on_gpu(lax.linalg.cholesky, a), np.linalg.cholesky(a), dtype)
    close(on_gpu(jnp.linalg.solve, a, b), np.linalg.solve(a, b), dtype)
    general = numbers(*stack, n, n, dtype=dtype)
    close(on_gpu(jnp.linalg.det, general), np.linalg.det(general), dtype)
    for out, expected in zip(on_gpu(jnp.linalg.slogdet, general), np.linalg.slogdet(general)):
        np.testing.assert_allclose(out, expected, 1e-3, 1e-3)
    factors, pivots, order = on_gpu(lax.linalg.lu, general)
    # of complex numbers LAPACK compares the sums of the sizes of their parts
    if dtype.startswith("float"):
        for out, expected in zip((factors, pivots, order), on_cpu(lax.linalg.lu, general)):
            close(out, expected, dtype)
    lower = np.tril(factors, -1) + np.eye(n, dtype=dtype)
    close(lower @ np.triu(factors), np.take_along_axis(general, order[..., None], -2), dtype)
    w, v = on_gpu(jnp.linalg.eigh, a)
    close(w, np.linalg.eigvalsh(a), dtype)
    close((v * w[..., None, :]) @ v.conj().mT, a, dtype)
    close(on_gpu(jnp.linalg.eigvalsh, a), np.linalg.eigvalsh(a), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (9, 4), (4, 9), (2, 40, 37), (2, 5, 40)], ids=str)
def test_orthogonal_factors(shape, dtype):
    a = numbers(*shape, dtype=dtype)
    identity = lambda q: close(q.conj().mT @ q, np.broadcast_to(
        np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])).astype(dtype), dtype)
    for mode in ("reduced", "complete"):
        q, r = on_gpu(lambda a, mode=mode: jnp.linalg.qr(a, mode), a)
        close(q @ r, a, dtype)
        identity(q)
        np.testing.assert_array_equal(r, np.triu(r))
    k = min(shape[-2:])
    for whole in (False, True):
        u, s, vh = on_gpu(lambda a, whole=whole: jnp.linalg.svd(a, whole), a)
        assert u.shape == np.linalg.svd(a, whole)[0].shape
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, dtype)
        identity(u)
        identity(vh.mT)
    close(on_gpu(lambda a: jnp.linalg.svd(a, compute_uv=False), a),
          np.linalg.svd(a, compute_uv=False), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_triangular_solves(stack, dtype):
    a = numbers(*stack, 6, 6, dtype=dtype) + 4 * np.eye(6, dtype=dtype)
    for left in (True, False):
        b = numbers(*stack, *((6, 3) if left else (3, 6)), dtype=dtype)
        for flags in np.ndindex(2, 2, 2, 2):
            lower, transposed, conjugated, unit = map(bool, flags)
            fun = partial(lax.linalg.triangular_solve, left_side=left, lower=lower,
                          transpose_a=transposed, conjugate_a=conjugated, unit_diagonal=unit)
            close(on_gpu(fun, a, b), on_cpu(fun, a, b), dtype)


def test_matrices_without_factors():
    a = definite(5, (3,), "float64")
    a[1, 2, 2] = -1
    for x in (a, a[1]):
        np.testing.assert_allclose(on_gpu(lax.linalg.cholesky, x), on_cpu(lax.linalg.cholesky, x))
    a[2, 0, 3] = a[2, 3, 0] = np.nan
    for fun in (jnp.linalg.eigvalsh, lambda a: jnp.linalg.svd(a, compute_uv=False)):
        out = on_gpu(fun, a)
        assert np.isnan(out[2]).all() and np.isfinite(out[:2]).all()
    assert not np.isfinite(on_gpu(jnp.linalg.inv, np.zeros((3, 3)))).all()


CASES = [case for case in all_cases() if any(np.iscomplexobj(a) for a in case.args)
         and case.primitive.name not in ("eig", "svd", "eigh", "qr")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_complex_primitives(case):
    with ft.config.host_steps("allow"):  # Schur forms and what is made of them
        outs = on_gpu(case.outs, *case.args)
    for out, expected in zip(outs, on_cpu(case.outs, *case.args)):
        np.testing.assert_allclose(out, expected, 1e-4, 1e-5)


def test_derivatives_of_factors():
    a = definite(6, (2,), "float64")

    def loss(a):
        factor = lax.linalg.cholesky(a)
        values, vectors = jnp.linalg.eigh(a)
        logs = jnp.linalg.slogdet(a)[1]
        return factor.sum() + (vectors ** 2 * values[:, None]).sum() + logs.sum()

    close(on_gpu(ft.grad(loss), a), on_cpu(ft.grad(loss), a), "float64")


def test_operations_by_themselves():
    z = ft.device_put(numbers(8, dtype="complex64"), "gpu")
    close(np.asarray(jnp.fft.fft(z)), np.fft.fft(np.asarray(z)), "complex64")
