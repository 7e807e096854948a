"""functrans.scipy.linalg: definitions, and derivatives."""

import math

import numpy as np
import pytest

import functrans as ft
from functrans.scipy import linalg
from functrans.test_util import check_grads
from tests.linalg.matrices import assert_close, matrix, positive, square


def test_triangles_and_cholesky():
    a, b = positive(complex=True), matrix(4, 2, complex=True)
    for lower in (False, True):
        factor = linalg.cho_factor(a, lower)
        assert_close(linalg.cho_solve(factor, b), np.linalg.solve(a, b))
        assert_close(linalg.cho_solve(factor, b[:, 0]), np.linalg.solve(a, b[:, 0]))
        triangle = np.tril(a) if lower else np.triu(a)
        for trans, op in ((0, triangle), ("T", triangle.T), (2, triangle.conj().T)):
            assert_close(linalg.solve_triangular(a, b, trans, lower), np.linalg.solve(op, b))
    assert_close(linalg.solve(a, b, assume_a="pos"), np.linalg.solve(a, b))
    assert_close(linalg.solve(a, b), np.linalg.solve(a, b))
    stack = square(3)
    assert linalg.solve_triangular(stack, b.real).shape == (3, 4, 2)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 3, 4)])
def test_lu(shape):
    a = matrix(*shape)
    p, low, up = map(np.asarray, linalg.lu(a))
    assert_close(p @ low @ up, a)
    left, up = map(np.asarray, linalg.lu(a, permute_l=True))
    assert_close(left @ up, a)


def test_lu_solve():
    a, b = square(complex=True), matrix(4, 2, complex=True)
    factor = linalg.lu_factor(a)
    for trans, op in ((0, a), (1, a.T), (2, a.conj().T)):
        assert_close(linalg.lu_solve(factor, b, trans), np.linalg.solve(op, b))
        assert_close(linalg.lu_solve(factor, b[:, 0], trans), np.linalg.solve(op, b[:, 0]))
    check_grads(lambda x, y: linalg.lu_solve(linalg.lu_factor(x), y), (a.real, b.real), 2,
                atol=1e-4, rtol=1e-4)


def test_generalized_eigenvalues():
    a, b = positive(complex=True), positive(seed=1, complex=True)
    w, v = map(np.asarray, linalg.eigh(a, b))
    assert_close(a @ v, b @ v * w)
    assert_close(v.conj().T @ b @ v, np.eye(4))
    assert_close(linalg.eigh(a, b, eigvals_only=True), w)


def test_decompositions():
    a = matrix(4, 3)
    for mode in ("full", "economic"):
        q, r = map(np.asarray, linalg.qr(a, mode=mode))
        assert_close(q @ r, a)
    assert linalg.qr(a, mode="r")[0].shape == (4, 3)
    u, p = map(np.asarray, linalg.polar(a))
    assert_close(u @ p, a)
    assert_close(u.T @ u, np.eye(3))
    u, p = map(np.asarray, linalg.polar(a.T, "left"))
    assert_close(p @ u, a.T)
    assert_close(linalg.svd(a, compute_uv=False), np.linalg.svd(a, compute_uv=False))
    assert_close(linalg.det(a[:3]), np.linalg.det(a[:3]))
    assert_close(linalg.inv(a[:3]), np.linalg.inv(a[:3]))


@pytest.mark.parametrize("size", [1e-3, 0.5, 3.0, 20.0, 300.0])
@pytest.mark.parametrize("complex", [False, True])
def test_expm(size, complex):
    x = matrix(4, 4, complex=complex)
    x = x - x.conj().T  # normal, so that the exponential is well-conditioned
    x = x * size / np.linalg.norm(x)
    w, v = np.linalg.eig(x)
    expected = v * np.exp(w) @ np.linalg.inv(v)
    assert_close(linalg.expm(x), expected if complex else expected.real, 1e-9)
    single = linalg.expm(x.astype(np.complex64 if complex else np.float32))
    assert np.abs(np.asarray(single) - expected).max() < 1e-5 * (10 + size)


def test_expm_differentiates_and_maps():
    x = matrix(3, 3)
    check_grads(linalg.expm, (x,), 2, atol=1e-4, rtol=1e-4)
    check_grads(linalg.expm, (4 * x,), 1, atol=1e-3, rtol=1e-3)
    stack = np.stack([0.1 * x, x, 10 * x])
    loop = np.stack([np.asarray(linalg.expm(s)) for s in stack])
    for mapped in (linalg.expm(stack), ft.vmap(linalg.expm)(stack), ft.jit(linalg.expm)(stack)):
        np.testing.assert_allclose(mapped, loop, rtol=1e-9)
    gradient = ft.grad(lambda a: linalg.expm(a)[0, 1])
    np.testing.assert_allclose(ft.vmap(gradient)(stack), np.stack([np.asarray(gradient(s))
                                                                  for s in stack]), rtol=1e-8)
    value, tangent = linalg.expm_frechet(x, np.eye(3))
    assert_close(tangent, value)
    assert np.isnan(np.asarray(linalg.expm(1e9 * x))).all()
    assert_close(linalg.expm(np.diag([0.0, 1.0])), np.diag([1.0, math.e]))


def test_special_matrices():
    blocks = [matrix(1, 2), matrix(2, 1), matrix(3)]
    out = np.zeros((4, 6))
    out[0, :2], out[1:3, 2:3], out[3, 3:] = blocks[0], blocks[1], blocks[2]
    assert_close(linalg.block_diag(*blocks), out)
    assert linalg.toeplitz(np.array([1, 2, 3]), np.array([9, 5])).tolist() == [
        [1, 5], [2, 1], [3, 2]]
    assert linalg.toeplitz(np.array([1, 2j])).tolist() == [[1, -2j], [2j, 1]]


@pytest.mark.parametrize("call, text", [
    (lambda a: linalg.solve_triangular(a, a, trans=5), "trans=5"),
    (lambda a: linalg.solve(a, a, assume_a="odd"), "assume_a"),
    (lambda a: linalg.qr(a, mode="thin"), "no mode"),
    (lambda a: linalg.polar(a, "up"), "side"),
    (lambda a: linalg.expm(a[:1]), "square"),
])
def test_errors(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call(ft.numpy.eye(2))
