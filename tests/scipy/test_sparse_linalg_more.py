"""Eigenvalues, least squares, operators and exponentials of large matrices, beside SciPy's."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg as theirs

import functrans as ft
from functrans.core.errors import ArgumentError, ShapeError
from functrans.experimental import sparse
from functrans.scipy.sparse import linalg
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)
N = 60
A = rng.normal(size=(N, N))
H = A + A.T
KEYS = {"LM": np.abs, "LR": np.real, "SR": lambda w: -w.real, "LI": lambda w: abs(w.imag)}


@pytest.mark.parametrize("which", ["LM", "LA", "SA", "BE"])
def test_hermitian_eigenvalues(which):
    w, v = linalg.eigsh(H, 4, which=which)
    same(w, np.sort(theirs.eigsh(H, 4, which=which)[0]), 1e-9, 1e-9)
    same(H @ np.asarray(v), np.asarray(v) * np.asarray(w), 1e-8, 1e-8)


def test_eigenvalues_near_a_number_and_of_maps():
    near = np.sort(theirs.eigsh(H, 4, sigma=0.5)[0])
    same(linalg.eigsh(H, 4, sigma=0.5, return_eigenvectors=False), near, 1e-9, 1e-9)
    same(linalg.eigsh(sparse.BCOO.fromdense(H), 3)[0], linalg.eigsh(H, 3)[0], 1e-9, 1e-9)
    inverse = linalg.aslinearoperator(np.linalg.inv(H - 0.5 * np.eye(N)))
    operator = linalg.LinearOperator(H.shape, lambda x: H @ x, dtype=np.float64)
    same(linalg.eigsh(operator, 4, sigma=0.5, OPinv=inverse)[0], near, 1e-9, 1e-9)
    w, v = linalg.eigs(A, 4, sigma=0.5 + 0.1j)
    every = np.linalg.eigvals(A)
    same(np.sort(abs(w - 0.5 - 0.1j)), np.sort(abs(every - 0.5 - 0.1j))[:4], 1e-8, 1e-8)
    same(A @ np.asarray(v), np.asarray(v) * np.asarray(w), 1e-7, 1e-7)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("which", KEYS)
def test_any_eigenvalues(which):
    w, v = linalg.eigs(A, 5, which=which)
    every = np.linalg.eigvals(A)
    want = np.sort(KEYS[which](every))[::-1][:5]
    same(np.sort(KEYS[which](np.asarray(w)))[::-1], want, 1e-8, 1e-8)
    same(A @ np.asarray(v), np.asarray(v) * np.asarray(w), 1e-7, 1e-7)


def test_singular_values_and_columns():
    for matrix in (A[:, :40], A[:40]):
        u, s, vh = linalg.svds(matrix, 3)
        same(s, np.sort(np.linalg.svd(matrix, compute_uv=False)[:3]), 1e-8, 1e-8)
        same(matrix @ np.asarray(vh).T, np.asarray(u) * np.asarray(s), 1e-6, 1e-6)
    start = rng.normal(size=(N, 2))
    every = np.linalg.eigvalsh(H)
    same(linalg.lobpcg(H + 20 * np.eye(N), start, maxiter=300)[0], every[[-1, -2]] + 20, 1e-7, 1e-7)
    same(linalg.lobpcg(H, start, maxiter=300, largest=False)[0], every[:2], 1e-7, 1e-7)


def test_eigenvalues_have_derivatives():
    check_grads(lambda a: linalg.eigsh(a + a.T, 2, which="LA")[0], (A[:24, :24],), 1, modes=["rev"])
    check_grads(lambda a: linalg.svds(a, 2)[1], (A[:24, :22],), 1, modes=["fwd"])
    both = ft.vmap(lambda a: linalg.eigsh(a, 2)[0])(np.stack([H, 2 * H]))
    same(both[1], 2 * both[0], 1e-8, 1e-8)


def test_least_squares():
    tall, b = rng.normal(size=(30, 8)), rng.normal(size=30)
    for damp in (0.0, 0.7):
        ours = linalg.lsqr(tall, b, damp, atol=1e-12, btol=1e-12)
        golden = theirs.lsqr(tall, b, damp, atol=1e-12, btol=1e-12)
        same(ours[0], golden[0], 1e-8, 1e-8)
        assert int(ours[1]) == golden[1] == 2
        for i in (3, 4, 5, 8):
            same(ours[i], golden[i], 1e-4, 1e-6, i)
        same(linalg.lsmr(tall, b, damp, atol=1e-12, btol=1e-12)[0], golden[0], 1e-8, 1e-8)
    exact = linalg.lsqr(sparse.BCOO.fromdense(tall), tall @ np.ones(8), atol=1e-10, btol=1e-10)
    same(exact[0], np.ones(8), 1e-7, 1e-7)
    assert int(exact[1]) == 1
    check_grads(lambda a, b, d: linalg.lsqr(a, b, d, 1e-13, 1e-13)[0],
                (tall[:9, :3], b[:9], np.float64(0.4)), 1, rtol=1e-5, atol=1e-5)


def test_minres():
    b = rng.normal(size=N)
    found, info = linalg.minres(H, b, rtol=1e-10, maxiter=2000)
    same(H @ np.asarray(found), b, 1e-6, 1e-6)
    assert int(info) == 0 and int(linalg.minres(H, b, rtol=1e-10, maxiter=3)[1]) == 3
    scaled = np.diag(1 / (np.arange(N) + 1.0))
    hard = np.diag(np.arange(N) + 1.0) + 0.01 * H
    same(hard @ np.asarray(linalg.minres(hard, b, rtol=1e-12, M=scaled)[0]), b, 1e-8, 1e-8)
    same((H - 0.3 * np.eye(N)) @ np.asarray(linalg.minres(H, b, shift=0.3, rtol=1e-10,
                                                           maxiter=2000)[0]), b, 1e-6, 1e-6)
    check_grads(lambda a, b: linalg.minres(a + a.T, b, rtol=1e-13)[0], (A[:5, :5], b[:5]), 1,
                rtol=1e-4, atol=1e-4)
    z = np.diag(np.arange(1.0, 6)) + 0.3j * (A[:5, :5] - A[:5, :5].T)
    same(z @ np.asarray(linalg.minres(z, b[:5] + 1j, rtol=1e-12)[0]), b[:5] + 1j, 1e-8, 1e-8)


def test_exponentials():
    b = rng.normal(size=(8, 2))
    small = A[:8, :8]
    same(linalg.expm_multiply(small, b), scipy.linalg.expm(small) @ b, 1e-9, 1e-9)
    same(linalg.expm_multiply(sparse.BCOO.fromdense(5 * small), b[:, 0]),
         scipy.linalg.expm(5 * small) @ b[:, 0], 1e-8, 1e-8)
    same(linalg.expm_multiply(small, b, 0.5, 2.0, 4), theirs.expm_multiply(small, b, 0.5, 2.0, 4),
         1e-9, 1e-9)
    check_grads(linalg.expm_multiply, (small[:3, :3], b[:3]), 1)


def test_norms_and_triangles():
    matrix = np.where(rng.random((6, 5)) < 0.5, rng.normal(size=(6, 5)), 0)
    ours, golden = sparse.BCOO.fromdense(matrix), scipy.sparse.csr_matrix(matrix)
    for order in (None, "fro", 1, np.inf, -1, -np.inf):
        same(linalg.norm(ours, order), theirs.norm(golden, order))
    for axis in (0, 1):
        same(linalg.norm(ours, axis=axis), theirs.norm(golden, axis=axis))
        same(linalg.norm(ours, 1, axis), theirs.norm(golden, 1, axis))
    same(linalg.onenormest(ours), np.linalg.norm(matrix, 1))
    lower = sparse.BCOO.fromdense(np.tril(A[:6, :6]))
    same(linalg.spsolve_triangular(lower, A[:6, 7]),
         scipy.linalg.solve_triangular(np.tril(A[:6, :6]), A[:6, 7], lower=True))
    same(linalg.factorized(sparse.BCOO.fromdense(A[:6, :6]))(A[:6, 7]),
         np.linalg.solve(A[:6, :6], A[:6, 7]))


def test_operators():
    complex_ = A[:3, :4] + 1j * A[3:6, :4]
    ours = linalg.LinearOperator((3, 4), lambda x: complex_ @ x, dtype=np.complex128)
    x, y, columns = A[0, :4], A[0, :3], A[:4, :2]
    same(ours.rmatvec(y), complex_.conj().T @ y)
    same(ours.T @ y, complex_.T @ y)
    same(y @ ours, y @ complex_)
    same((2j * ours + ours - 0.5 * ours) @ columns, (2j + 0.5) * complex_ @ columns)
    same((ours.H.dot(ours)).rmatmat(columns), complex_.conj().T @ complex_ @ columns)
    square = linalg.aslinearoperator(A[:3, :3])
    same((square**2).todense(), A[:3, :3] @ A[:3, :3])
    same(linalg.cg(linalg.aslinearoperator(H @ H), H[0], rtol=1e-12, maxiter=500)[0],
         np.linalg.solve(H @ H, H[0]), 1e-5, 1e-5)
    assert x.shape == ours.rmatvec(y).shape


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="at most"):
        linalg.eigsh(H[:3, :3], 3)
    with pytest.raises(ArgumentError, match="OPinv"):
        linalg.eigsh(linalg.aslinearoperator(H), 2, sigma=1.0)
    with pytest.raises(ArgumentError, match="shape is not known"):
        linalg.eigsh(lambda x: x, 2)
    with pytest.raises(ShapeError, match="square"):
        linalg.eigs(A[:3], 1)
    with pytest.raises(ShapeError, match="rows of A"):
        linalg.lsqr(A[:3], np.ones(4))
    with pytest.raises(ShapeError, match="3 by 60"):
        linalg.aslinearoperator(A[:3]) @ np.ones(3)
    with pytest.raises(ArgumentError, match="sparse"):
        linalg.norm(A)
    with pytest.raises(ArgumentError, match="M, Minv"):
        linalg.eigsh(H, 2, M=H)
