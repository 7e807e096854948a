"""Krylov methods, factors, functions of matrices and Laplacians beside SciPy's."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg as theirs

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, BackendError, ConcretizationError, ShapeError
from functrans.scipy import sparse
from functrans.scipy.sparse import linalg
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)
N = 40
SPARSE = scipy.sparse.random_array((N, N), density=0.1, rng=rng)
A = (SPARSE + 3 * scipy.sparse.eye_array(N)).tocsc()
COMPLEX = A + 1j * scipy.sparse.random_array((N, N), density=0.1, rng=rng)
B = rng.normal(size=N)
METHODS = ("bicg", "cgs", "qmr", "tfqmr", "lgmres", "gcrotmk")


@pytest.mark.parametrize("name", METHODS)
def test_systems(name):
    method = getattr(linalg, name)
    for matrix, b in ((A, B), (COMPLEX, B + 1j), (A.toarray(), B[:, None])):
        given = sparse.csc_array(matrix) if scipy.sparse.issparse(matrix) else matrix
        x, info = method(given, b, rtol=1e-11)
        assert int(info) == 0 and x.shape == b.shape
        dense = matrix.toarray() if scipy.sparse.issparse(matrix) else matrix
        same(x, np.linalg.solve(dense, b), 1e-8, 1e-9)
    x, info = method(sparse.csc_array(A), B, rtol=1e-14, maxiter=1)
    assert int(info) >= 1 or name in ("lgmres", "gcrotmk")
    same(method(sparse.csc_array(A), 0 * B)[0], 0 * B)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", METHODS)
def test_derivatives_preconditioners_and_transforms_of_systems(name):
    method = getattr(linalg, name)
    small, b = rng.normal(size=(4, 4)) + 5 * np.eye(4), rng.normal(size=4)
    solve = lambda a, b: method(a, b, rtol=1e-13)[0]
    check_grads(solve, (small, b), order=1, modes=("fwd", "rev"))
    lu = linalg.spilu(sparse.csc_array(A), drop_tol=0.1)
    near = linalg.LinearOperator(A.shape, lu.solve, lambda x: lu.solve(x, "H"), dtype=np.float64)
    options = {"M1": near} if name == "qmr" else {"M": near}
    start = rng.normal(size=N)
    x, info = ft.jit(lambda b: method(sparse.csc_array(A), b, x0=start, rtol=1e-11, **options))(B)
    assert int(info) == 0
    same(x, np.linalg.solve(A.toarray(), B), 1e-8, 1e-8)
    lanes = ft.vmap(lambda b: solve(small, b))(np.stack([b, 2 * b]))
    same(lanes[1], 2 * np.linalg.solve(small, b), 1e-9, 1e-9)
    with pytest.raises(ArgumentError, match="callback"):
        method(small, b, callback=print)
    with pytest.raises(ShapeError):
        method(small, b[:3])


def test_directions_that_are_kept():
    for truncate in ("oldest", "smallest"):
        x, info = linalg.gcrotmk(A.toarray(), B, rtol=1e-11, m=4, k=3, truncate=truncate)
        assert int(info) == 0
        same(x, np.linalg.solve(A.toarray(), B), 1e-7, 1e-8)
    known = np.linalg.solve(A.toarray(), B)
    _, info = linalg.gcrotmk(A.toarray(), B, rtol=1e-10, maxiter=1, m=1, CU=[(None, known)])
    assert int(info) == 0
    for prepend in (False, True):
        x, info = linalg.lgmres(A.toarray(), B, rtol=1e-11, inner_m=4, prepend_outer_v=prepend)
        assert int(info) == 0
        same(x, known, 1e-7, 1e-8)
    few = [int(linalg.lgmres(A.toarray(), B, rtol=1e-10, inner_m=2, outer_k=1, maxiter=1,
                             outer_v=v)[1]) for v in ([(known, None)], None)]
    assert few == [0, 1]


def test_factors():
    for matrix in (A, COMPLEX.tocsc()):
        lu, want = linalg.splu(sparse.csc_array(matrix)), theirs.splu(matrix)
        same(lu.L.toarray(), want.L.toarray())
        same(lu.U.toarray(), want.U.toarray())
        same((lu.perm_r, lu.perm_c), (want.perm_r, want.perm_c))
        assert lu.nnz == want.nnz and lu.shape == want.shape
        b = (B + matrix.dtype.type(0)).astype(matrix.dtype)
        for trans in "NTH":
            for right in (b, np.stack([b, 2 * b], -1)):
                same(lu.solve(right, trans), want.solve(right, trans))
            if matrix is A:
                same(ft.jit(lambda x, t=trans, lu=lu: lu.solve(x, t))(b), want.solve(b, trans))
    for lu in (linalg.spilu(sparse.csc_array(A), drop_tol=0.3), linalg.splu(sparse.csc_array(A))):
        for trans in "NT":
            check_grads(lambda x, t=trans, lu=lu: lu.solve(x, t), (B,), order=1,
                        modes=("fwd", "rev"))
    same(linalg.spilu(sparse.csc_array(A), drop_tol=0.3).solve(B),
         theirs.spilu(A, drop_tol=0.3).solve(B))
    held = sparse.csc_array(A[:5, :5])
    of_values = lambda x, b: linalg.splu(held.with_data(x)).solve(b, "T")
    check_grads(of_values, (held.data, B[:5]), order=1, modes=("fwd", "rev"))
    same(ft.jit(of_values)(held.data, B[:5]), np.linalg.solve(A[:5, :5].toarray().T, B[:5]))
    with pytest.raises(BackendError, match="singular"):
        linalg.splu(sparse.csc_array((2, 2), dtype="f8"))
    with pytest.raises(ArgumentError, match="traced"):
        ft.jit(lambda x: linalg.splu(held.with_data(x)).L.data)(held.data)
    with pytest.raises(ShapeError):
        linalg.splu(sparse.csc_array(np.ones((2, 3))))


def test_functions_of_matrices():
    mine = sparse.csr_array(A)
    for scale in (0.01, 1.0, 3.0):
        same(linalg.expm(mine * scale).toarray(), scipy.linalg.expm(A.toarray() * scale), 1e-11,
             1e-11)
    block = sparse.block_diag([[[0.0, 1.0], [0.0, 0.0]]] * 50, format="csr", dtype="f8")
    assert linalg.expm(block).nnz == 150
    same(ft.jit(lambda a: linalg.expm(a).toarray())(mine), scipy.linalg.expm(A.toarray()), 1e-10,
         1e-10)
    same(linalg.inv(mine).toarray(), np.linalg.inv(A.toarray()))
    same(linalg.matrix_power(mine, 5).toarray(), np.linalg.matrix_power(A.toarray(), 5), 1e-12)
    same(linalg.matrix_power(mine, 0).toarray(), np.eye(N))
    for matrix in (A, scipy.sparse.tril(A), scipy.sparse.triu(A, 1)):
        held = sparse.csr_array(matrix)
        assert linalg.is_sptriangular(held) == tuple(map(bool, theirs.is_sptriangular(
            matrix.tocsr())))
        assert linalg.spbandwidth(held) == tuple(map(int, theirs.spbandwidth(matrix.tocsr())))
    assert linalg.spbandwidth(sparse.csr_array((3, 3))) == (0, 0)
    with pytest.raises(ConcretizationError):
        ft.jit(lambda a: jnp.asarray(linalg.spbandwidth(a)))(mine)
    small = sparse.csr_array(A[:4, :4])
    for fun in (lambda x: linalg.inv(small.with_data(x)).toarray(),
                lambda x: linalg.expm(small.with_data(x)).toarray()):
        check_grads(fun, (small.data,), order=1, modes=("rev",))


def test_functions_by_krylov_spaces():
    expm, wide = ft.scipy.linalg.expm, scipy.linalg.expm
    for every in (None, 6):
        for t in (0.5, -1.0):
            same(linalg.funm_multiply_krylov(expm, sparse.csr_array(A), B, t=t, rtol=1e-12,
                                             restart_every_m=every), wide(t * A.toarray()) @ B,
                 1e-8, 1e-8)
    same(linalg.funm_multiply_krylov(ft.scipy.linalg.cosm, COMPLEX.toarray() / 3, B, rtol=1e-12),
         scipy.linalg.cosm(COMPLEX.toarray() / 3) @ B, 1e-9, 1e-9)
    start = np.eye(N)[0]
    same(linalg.funm_multiply_krylov(expm, np.diag(np.arange(N) / N), start, restart_every_m=3),
         start, 1e-12, 1e-12)
    jitted = ft.jit(lambda b: linalg.funm_multiply_krylov(expm, A.toarray(), b, max_restarts=3))
    same(jitted(B), wide(A.toarray()) @ B, 1e-6, 1e-6)


@pytest.mark.parametrize("kind", ["neumann", "dirichlet", "periodic"])
def test_laplacians(kind):
    for shape in ((5,), (4, 3), (2, 3, 2), (2,)):
        mine = linalg.LaplacianNd(shape, boundary_conditions=kind)
        other = theirs.LaplacianNd(shape, boundary_conditions=kind)
        n, matrix = int(np.prod(shape)), other.toarray()
        same(mine.toarray(), matrix)
        assert mine.toarray().dtype == np.int8
        same(mine.tosparse().toarray(), other.tosparse().toarray())
        x = rng.normal(size=n)
        same(mine @ x, other @ x)
        same(mine.matmat(np.eye(n)), matrix)
        with ft.default_dtypes("float64"):
            same(mine.eigenvalues(), other.eigenvalues(), 1e-12, 1e-12)
            m = max(n // 2, 1)
            values, vectors = mine.eigenvalues(m), np.asarray(mine.eigenvectors(m))
        same(values, other.eigenvalues(m), 1e-12, 1e-12)
        same(matrix @ vectors, vectors * np.asarray(values), 1e-12, 1e-12)
        same(vectors.T @ vectors, np.eye(m), 1e-12, 1e-12)
    with pytest.raises(ArgumentError, match="neumann"):
        linalg.LaplacianNd((3,), boundary_conditions="open")


def test_norms_add_up_duplicates():
    m = sparse.coo_array((np.array([1.0, 2.0]), ([0, 0], [1, 1])), shape=(2, 2))
    assert float(linalg.norm(m)) == 3.0 and float(linalg.norm(m, 1)) == 3.0
    d = sparse.dia_array((np.ones((2, 3)), [0, 2]), shape=(3, 3))
    assert abs(float(ft.jit(linalg.norm)(d)) - 2.0) < 1e-12


def test_names_that_do_nothing():
    assert linalg.use_solver(useUmfpack=True) is None
    with pytest.raises(ArgumentError, match="useUmfpack"):
        linalg.use_solver(fast=True)
    error = linalg.ArpackNoConvergence("no", jnp.ones(1), jnp.ones((1, 1)))
    assert isinstance(error, linalg.ArpackError) and error.eigenvalues.shape == (1,)


def test_matrices_and_right_sides_of_two_dtypes():
    """SciPy computes in the wider one."""
    a = np.diag([1.0, 2.0, 4.0])
    for A in (a, sparse.csr_array(a), lambda x: jnp.asarray(a) @ x):
        for solve in (linalg.cg, linalg.bicgstab, linalg.gmres):
            x, _ = solve(A, np.ones(3, "float32"), tol=1e-12)
            assert x.dtype == np.float64
            np.testing.assert_allclose(x, [1.0, 0.5, 0.25], rtol=1e-10)
    np.testing.assert_allclose(linalg.cg(a.astype(int), np.ones(3, int))[0], [1.0, 0.5, 0.25],
                               rtol=1e-4)
