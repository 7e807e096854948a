"""functrans.numpy.linalg against numpy.linalg: values, dtypes, stacks, degenerate matrices."""

import math

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from tests.linalg.matrices import assert_close, matrix, positive, square

SHAPES = [(3, 3), (4, 3), (3, 4), (2, 3, 3), (2, 4, 2), (0, 3, 3)]
DTYPES = ["float32", "float64", "complex64", "complex128"]
la = jnp.linalg


def as_dtype(x, dtype):
    return x.astype(dtype) if np.dtype(dtype).kind == "c" else x.real.astype(dtype)


def tolerance(dtype):
    return 1e-4 if dtype in ("float32", "complex64") else 1e-10


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["inv", "det", "eigvalsh", "cholesky", "pinv"])
def test_one_result(name, dtype):
    x = as_dtype(positive(2, n=4, complex=True), dtype)
    out, expected = getattr(la, name)(x), getattr(np.linalg, name)(x)
    assert out.dtype == expected.dtype
    assert_close(out, expected, 20 * tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_svd(shape, dtype):
    x = as_dtype(matrix(*shape, complex=True), dtype)
    for full in (True, False):
        u, s, vh = la.svd(x, full_matrices=full)
        eu, es, evh = np.linalg.svd(x, full_matrices=full)
        assert (u.shape, vh.shape, u.dtype, s.dtype) == (eu.shape, evh.shape, eu.dtype, es.dtype)
        assert_close(s, es, tolerance(dtype))
        k = es.shape[-1]
        u, vh = np.asarray(u)[..., :k], np.asarray(vh)[..., :k, :]
        assert_close(u * np.asarray(s)[..., None, :] @ vh, x, 10 * tolerance(dtype))
    assert_close(la.svdvals(x), es, tolerance(dtype))


def test_svd_of_hermitian_matrices():
    x = positive(2, complex=True) - 4 * np.eye(4)
    u, s, vh = la.svd(x, hermitian=True)
    assert_close(s, np.linalg.svd(x, compute_uv=False))
    assert_close((u * s[:, None, :]) @ vh, x)
    assert_close(la.svd(x, hermitian=True, compute_uv=False), s)
    for ties in (np.eye(3), np.diag([2.0, -1.0, 1.0])):
        for ours, theirs in zip(la.svd(ties, hermitian=True), np.linalg.svd(ties, hermitian=True),
                                strict=True):
            assert_close(ours, theirs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr(shape, mode):
    x = matrix(*shape, complex=True)
    out, expected = la.qr(x, mode), np.linalg.qr(x, mode)
    if mode == "r":
        return assert_close(out, expected)
    assert_close(out.Q, expected.Q)
    assert_close(out.R, expected.R)
    return None


@pytest.mark.parametrize("complex", [False, True])
def test_eigh(complex):
    x = positive(2, complex=complex)
    w, v = la.eigh(x)
    assert_close(w, np.linalg.eigh(x)[0])
    assert_close(x @ np.asarray(v), np.asarray(v) * np.asarray(w)[..., None, :])
    other = np.tril(x) + 7 * np.triu(matrix(4, 4), 1)
    assert_close(la.eigvalsh(other, "L", symmetrize_input=False), w)
    assert_close(la.eigvalsh(np.swapaxes(other.conj(), -1, -2), "U", symmetrize_input=False), w)
    assert_close(la.cholesky(other, symmetrize_input=False), np.linalg.cholesky(x))
    upper = la.cholesky(x, upper=True)
    assert_close(np.swapaxes(np.asarray(upper).conj(), -1, -2) @ np.asarray(upper), x)


def test_eig():
    x = matrix(2, 4, 4)
    w, v = la.eig(x)
    assert w.dtype == v.dtype == np.complex128
    assert_close(x @ np.asarray(v), np.asarray(v) * np.asarray(w)[..., None, :])
    assert_close(la.eigvals(x), np.linalg.eigvals(x))
    w, left, right = lax.linalg.eig(x)
    assert_close(np.swapaxes(np.asarray(left).conj(), -1, -2) @ x,
                 np.asarray(w)[..., None] * np.swapaxes(np.asarray(left).conj(), -1, -2))
    assert_close(np.linalg.norm(left, axis=-2), np.ones((2, 4)))
    assert_close(right, v)


@pytest.mark.parametrize("a, b", [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3, 2)),
                                  ((3, 3), (5, 3, 2)), ((2, 1, 3, 3), (4, 3, 2)),
                                  ((0, 3, 3), (0, 3, 1)), ((3, 3), (0, 3, 2))])
def test_solve(a, b):
    x, y = matrix(*a), matrix(*b, seed=1)
    assert_close(la.solve(x, y), np.linalg.solve(x, y))


@pytest.mark.parametrize("complex", [False, True])
def test_determinants(complex):
    for n in (0, 1, 2, 3, 5):
        x = matrix(2, n, n, complex=complex)
        sign, logabsdet = la.slogdet(x)
        assert_close(sign, np.linalg.slogdet(x)[0])
        assert_close(logabsdet, np.linalg.slogdet(x)[1])
        assert_close(la.det(x), np.linalg.det(x))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_least_squares(shape):
    a = matrix(*shape)
    for b in (matrix(shape[0], seed=1), matrix(shape[0], 2, seed=1)):
        x, residuals, rank, s = la.lstsq(a, b, numpy_resid=True)
        ex, er, erank, es = np.linalg.lstsq(a, b)
        assert_close(x, ex)
        assert_close(residuals, er)
        assert int(rank) == erank
        assert_close(s, es)
    deficient = a.copy()
    deficient[:, 1] = deficient[:, 0]
    assert_close(la.lstsq(deficient, b)[0], np.linalg.lstsq(deficient, b)[0])


@pytest.mark.parametrize("ord", [None, 2, np.inf, -np.inf, 0, 1, -1, 3, 0.5, -2])
def test_vector_norms(ord):
    x = matrix(3, 4, complex=True)
    for keepdims in (False, True):
        assert_close(la.norm(x, ord, axis=1, keepdims=keepdims),
                     np.linalg.norm(x, ord, axis=1, keepdims=keepdims))
    assert_close(la.norm(x.real[0], ord), np.linalg.norm(x.real[0], ord))
    if ord is not None:
        assert_close(la.vector_norm(x, ord=ord), np.linalg.vector_norm(x, ord=ord))


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_matrix_norms(ord):
    x = matrix(3, 4, 2, complex=True)
    for axis in ((0, 1), (2, 0), (-1, 1)):
        for keepdims in (False, True):
            assert_close(la.norm(x, ord, axis, keepdims), np.linalg.norm(x, ord, axis, keepdims))
    if ord is not None:
        assert_close(la.matrix_norm(x, ord=ord), np.linalg.matrix_norm(x, ord=ord))
    y = square(2, n=3)
    if ord != "nuc":
        assert_close(la.cond(y, ord), np.linalg.cond(y, ord))


def test_products():
    x = matrix(2, 3, 3)
    for n in (-2, -1, 0, 1, 5):
        assert_close(la.matrix_power(x, n), np.linalg.matrix_power(x, n), 1e-8)
    chain = [matrix(5, seed=1), matrix(5, 2), matrix(2, 7), matrix(7, 3), matrix(3, seed=2)]
    assert_close(la.multi_dot(chain), np.linalg.multi_dot(chain))
    assert_close(la.multi_dot(chain[1:4]), np.linalg.multi_dot(chain[1:4]))
    assert_close(la.trace(x, offset=1), np.linalg.trace(x, offset=1))
    assert_close(la.diagonal(x, offset=-1), np.linalg.diagonal(x, offset=-1))
    assert_close(la.outer(chain[0], chain[-1]), np.linalg.outer(chain[0], chain[-1]))
    assert_close(la.cross(x[0], x[1]), np.linalg.cross(x[0], x[1]))
    for ind in (1, 2):
        t = matrix(6, 2, 3) if ind == 1 else matrix(2, 3, 6)
        assert_close(la.tensorinv(t, ind), np.linalg.tensorinv(t, ind))
    t, y = matrix(2, 3, 6), matrix(2, 3, seed=4)
    assert_close(la.tensorsolve(t, y), np.linalg.tensorsolve(t, y))
    t = matrix(2, 6, 3)
    assert_close(la.tensorsolve(t, y, (1,)), np.linalg.tensorsolve(t, y, (1,)))


def test_rank():
    x = np.stack([np.ones((3, 3)), np.eye(3), np.zeros((3, 3)), np.diag([1, 1e-20, 0])])
    assert la.matrix_rank(x).tolist() == np.linalg.matrix_rank(x).tolist() == [1, 3, 0, 1]
    assert la.matrix_rank(x, hermitian=True).tolist() == [1, 3, 0, 1]
    assert la.matrix_rank(x, rtol=1e-30).tolist()[-1] == 2
    assert int(la.matrix_rank(np.zeros(3))) == 0
    assert int(la.matrix_rank(np.arange(3.0))) == 1


@pytest.mark.parametrize("n", [1, 5, 64, 65, 200])
@pytest.mark.parametrize("lower", [True, False])
def test_triangular_solve(n, lower):
    for complex in (False, True):
        a = square(n=n, complex=complex) + 3 * n**0.5 * np.eye(n)
        triangle = np.tril(a) if lower else np.triu(a)
        for transpose, conjugate, unit in [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 1)]:
            op = triangle + np.diag(1 - np.diag(a)) if unit else triangle
            op = op.conj() if conjugate else op
            op = op.T if transpose else op
            if unit:
                a = a / n
                op = (op - np.eye(n)) / n + np.eye(n)
                triangle = np.tril(a) if lower else np.triu(a)
            b = matrix(n, 3, seed=1, complex=complex)
            flags = {"lower": lower, "transpose_a": bool(transpose),
                     "conjugate_a": bool(conjugate), "unit_diagonal": bool(unit)}
            x = lax.linalg.triangular_solve(a, b, left_side=True, **flags)
            assert_close(op @ np.asarray(x), b)
            x = lax.linalg.triangular_solve(a, b.T, left_side=False, **flags)
            assert_close(np.asarray(x) @ op, b.T)
            x = lax.linalg.triangular_solve(a, b[:, 0], left_side=True, **flags)
            assert_close(op @ np.asarray(x), b[:, 0])


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (33, 33), (70, 40), (40, 70), (3, 70, 70),
                                   (2, 2, 4, 3), (0, 3, 3), (3, 0)])
def test_lu(shape):
    for complex in (False, True):
        x = matrix(*shape, complex=complex)
        factors, pivots, order = map(np.asarray, lax.linalg.lu(x))
        m, n = shape[-2:]
        k = min(m, n)
        low = np.tril(factors[..., :k], -1) + np.eye(m, k)
        up = np.triu(factors[..., :k, :])
        assert_close(low @ up, np.take_along_axis(x, order[..., None].astype(int), -2))
        # of complex numbers the sums of the sizes of their parts are compared
        assert np.abs(low).max(initial=0) <= (math.sqrt(2) if complex else 1) + 1e-12
        assert pivots.dtype == order.dtype == np.int32
        again = lax.linalg.lu_pivots_to_permutation(jnp.asarray(pivots), m)
        assert np.array_equal(again, order)


def test_matrices_that_cannot_be_factored_give_nan_or_infinity():
    good = positive(n=2)
    stack = np.stack([-np.eye(2), good])
    out = np.asarray(la.cholesky(stack))
    assert np.isnan(out[0][np.tril_indices(2)]).all()
    assert out[0, 0, 1] == 0
    assert_close(out[1], np.linalg.cholesky(good))
    assert np.isinf(np.asarray(la.solve(np.ones((2, 2)), np.array([1.0, 2.0])))).all()
    mixed = np.asarray(la.inv(np.stack([np.ones((2, 2)), good])))
    assert not np.isfinite(mixed[0]).any()
    assert_close(mixed[1], np.linalg.inv(good))
    broken = np.stack([np.full((2, 2), np.nan), good])
    for name in ("eigh", "svd", "eig"):
        assert np.isnan(np.asarray(getattr(la, name)(broken)[1])[0]).all()
        assert np.isfinite(np.asarray(getattr(la, name)(broken)[1])[1]).all()
    assert la.slogdet(np.zeros((3, 3))).logabsdet == -np.inf
    zero = lax.linalg.triangular_solve(np.diag([1.0, 0.0]), np.ones((2, 1)), left_side=True)
    assert zero.tolist() == [[1.0], [np.inf]] or np.isnan(np.asarray(zero)).any()


def test_integers_and_halves():
    assert la.inv(jnp.array([[2, 0], [0, 4]])).dtype == np.float32
    assert_close(la.norm(jnp.array([3, 4])), 5.0)
    half = jnp.eye(2, dtype="bfloat16")
    assert la.inv(half).dtype == half.dtype
    assert la.svdvals(half).tolist() == [1, 1]


def test_numpy_functions_on_arrays():
    x = jnp.asarray(square())
    assert_close(np.linalg.norm(x), np.linalg.norm(np.asarray(x)))
    gradient = ft.grad(lambda a: np.linalg.slogdet(a)[1])(x)
    assert_close(gradient, np.linalg.inv(np.asarray(x)).T)


@pytest.mark.parametrize("call, text", [
    (lambda: la.inv(jnp.ones((2, 3))), "square matrices"),
    (lambda: la.cholesky(jnp.ones(3)), "square matrices"),
    (lambda: la.solve(jnp.ones((2, 2)), jnp.ones((3, 1))), "2 rows"),
    (lambda: la.norm(jnp.ones((2, 2)), "abc"), "'abc' is no norm of matrices"),
    (lambda: la.norm(jnp.ones(2), "fro", axis=0), "no norm of vectors"),
    (lambda: la.qr(jnp.ones((2, 2)), "thin"), "no mode 'thin'"),
    (lambda: la.matrix_power(jnp.ones((2, 2)), 1.5), "n must be an int"),
    (lambda: la.multi_dot([jnp.ones((2, 2))]), "at least two"),
    (lambda: la.lstsq(jnp.ones((2, 2)), jnp.ones(3)), "as many rows"),
    (lambda: la.eigh(jnp.ones((2, 2)), UPLO="X"), "UPLO"),
    (lambda: lax.linalg.lu(jnp.ones((2, 2), "int32")), "does not take int32"),
    (lambda: lax.linalg.triangular_solve(jnp.ones((2, 2)), jnp.ones((3, 1)), left_side=True),
     "rows"),
])
def test_errors(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call()


def test_householder_and_tridiagonal():
    x = matrix(5, 3)
    raw, taus = np.linalg.qr(x, mode="raw")
    assert_close(lax.linalg.householder_product(jnp.asarray(raw.T.copy()), jnp.asarray(taus)),
                 np.linalg.qr(x)[0])
    d, low, up = 4 + matrix(2, 5) ** 2, matrix(2, 5, seed=1), matrix(2, 5, seed=2)
    b = matrix(2, 5, 3, seed=3)
    full = np.stack([np.diag(d[i]) + np.diag(low[i, 1:], -1) + np.diag(up[i, :-1], 1)
                     for i in range(2)])
    solved = lax.linalg.tridiagonal_solve(*map(jnp.asarray, (low, d, up, b)))
    assert_close(full @ np.asarray(solved), b)
