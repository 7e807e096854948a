"""Derivatives of functrans.scipy.linalg and functrans.lax.linalg, against finite differences."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import NotDifferentiableError
from functrans.scipy import linalg
from functrans.test_util import check_grads
from tests.linalg.matrices import assert_close, matrix, positive, square

FACTOR = np.triu(square(n=3))

FUNCTIONS = {
    "sqrtm": (linalg.sqrtm, positive(n=3)),
    "sqrtm complex": (linalg.sqrtm, square(n=3, complex=True)),
    "sqrtm of equal eigenvalues": (linalg.sqrtm, 2 * np.eye(3)),
    "logm": (linalg.logm, positive(n=3)),
    "logm of equal eigenvalues": (linalg.logm, 2 * np.eye(2)),
    "signm": (linalg.signm, square(n=3) - 3 * np.eye(3) + np.diag([4.0, -4, 5])),
    "expm": (linalg.expm, matrix(3, 3, complex=True)),
    "expm_frechet": (lambda a, e: linalg.expm_frechet(a, e)[1], matrix(3, 3), matrix(3, 3, seed=1)),
    "cosm": (linalg.cosm, matrix(2, 2)),
    "tanhm": (linalg.tanhm, matrix(2, 2)),
    "power": (lambda x: linalg.fractional_matrix_power(x, 1.3), positive(n=2)),
    "funm": (lambda x: linalg.funm(x, jnp.sin), matrix(3, 3)),
    "sylvester": (linalg.solve_sylvester, square(n=3), square(n=2, seed=1), matrix(3, 2, seed=2)),
    "sylvester complex": (linalg.solve_sylvester, square(n=2, complex=True),
                          square(n=2, seed=1, complex=True), matrix(2, 2, seed=2, complex=True)),
    "lyapunov": (linalg.solve_continuous_lyapunov, square(n=3), matrix(3, 3, seed=1)),
    "discrete lyapunov": (lambda a, q: linalg.solve_discrete_lyapunov(a, q, "bilinear"),
                          matrix(3, 3) / 5, matrix(3, 3, seed=1)),
    "polar": (linalg.polar, matrix(4, 3)),
    "polar left": (lambda x: linalg.polar(x, "left"), matrix(2, 3, complex=True)),
    "polar of equal singular values": (linalg.polar, np.eye(3)),
    "qdwh": (lambda x: lax.linalg.qdwh(x)[:2], matrix(3, 2)),
    "eigh_tridiagonal": (lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True), matrix(4),
                         matrix(3, seed=1)),
    "eigenvectors": (lambda x: jnp.abs(linalg.eig(x, left=True)[1]) ** 2, matrix(3, 3)),
    "eigenvalues": (lambda a, b: jnp.sum(linalg.eigvals(a, b) ** 3), matrix(3, 3),
                    square(n=3, seed=1)),
    "solve_banded": (lambda ab, b: linalg.solve_banded((1, 2), ab, b),
                     matrix(4, 5) + np.array([[0], [0], [4], [0]]), matrix(5, 2, seed=1)),
    "solveh_banded": (linalg.solveh_banded, 0.3 * matrix(2, 4) + np.array([[0], [3]]),
                      matrix(4, seed=1)),
    "cholesky_banded": (linalg.cholesky_banded, 0.3 * matrix(2, 4) + np.array([[0], [3]])),
    "tridiagonal_solve": (lax.linalg.tridiagonal_solve, matrix(4), matrix(4, seed=1) / 9,
                          matrix(4, seed=2), matrix(4, 2, seed=3)),
    "cholesky_update": (lax.linalg.cholesky_update, FACTOR, matrix(3)),
    "symmetric_product": (lax.linalg.symmetric_product, matrix(3, 2), positive(n=3)),
    "householder_product": (lax.linalg.householder_product, matrix(4, 3), matrix(3, seed=1)),
    "ormqr": (lambda a, t, c: lax.linalg.ormqr(a, t, c, transpose=True), matrix(4, 2, complex=True),
              matrix(2, seed=1, complex=True), matrix(4, 2, seed=2, complex=True)),
    "qr pivoting": (lambda x: linalg.qr(x, mode="economic", pivoting=True)[:2], matrix(4, 3)),
    "qr_multiply": (lambda a, c: linalg.qr_multiply(a, c, pivoting=True)[:2], matrix(4, 3),
                    matrix(2, 4, seed=1)),
    "solve_circulant": (linalg.solve_circulant, matrix(4) + np.array([5, 0, 0, 0]),
                        matrix(4, seed=1)),
    "toeplitz": (lambda c, r, b: linalg.solve_toeplitz((c, r), b), 1 + matrix(3), matrix(3, seed=1),
                 matrix(3, seed=2)),
    "pinvh": (linalg.pinvh, positive(n=3)),
    "subspace_angles": (linalg.subspace_angles, matrix(5, 2), matrix(5, 2, seed=1)),
    "procrustes": (linalg.orthogonal_procrustes, matrix(4, 3), matrix(4, 3, seed=1)),
}
ONCE = ("polar left", "logm", "logm of equal eigenvalues", "power", "expm", "expm_frechet", "qdwh",
        "funm", "subspace_angles", "signm")
"""Their second derivatives take long, or are those of a part that another case has."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    fun, *args = FUNCTIONS[name]
    check_grads(lambda *xs: [o for o in ft.tree.leaves(fun(*xs)) if o.dtype.kind in "fc"],
                args, order=1 if name in ONCE else 2, atol=2e-4, rtol=2e-4)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_gradients_of_stacks(name):
    fun, *args = FUNCTIONS[name]

    def gradient(*xs):
        def total(*ys):
            return sum(jnp.sum(jnp.abs(o) ** 2) for o in ft.tree.leaves(fun(*ys))
                       if o.dtype.kind in "fc")

        return ft.grad(total, tuple(range(len(xs))))(*xs)

    stacked = [np.stack([a, 1.1 * a]) for a in args]
    mapped = ft.jit(ft.vmap(gradient))(*stacked)
    for i in range(2):
        for got, expected in zip(mapped, gradient(*[a[i] for a in stacked]), strict=True):
            assert_close(got[i], expected, 1e-7)


def test_complex_schur_form():
    """Of what does not depend on the phases of the vectors."""
    def invariant(a):
        t, z = linalg.schur(a, "complex")
        return jnp.diag(t), jnp.abs(t) ** 2, jnp.abs(z) ** 2

    for a in (matrix(4, 4), matrix(3, 3, complex=True)):
        check_grads(invariant, (a,), order=1, atol=1e-5, rtol=1e-5)
        _, (dt, dz) = ft.jvp(lambda x: linalg.schur(x, "complex"), (a,), (np.ones_like(a),))
        t, z = linalg.schur(a, "complex")
        assert not np.tril(dt, -1).any()
        moved = dz @ t @ z.conj().T + z @ dt @ z.conj().T + z @ t @ dz.conj().T
        assert_close(moved, np.ones_like(a))


@pytest.mark.parametrize("function, fix", [
    (linalg.schur, "complex"), (lambda a: linalg.hessenberg(a), "stop_gradient"),
    (lambda a: lax.linalg.tridiagonal(a)[1], "eigh"),
    (lambda a: jnp.linalg.qr(a, mode="raw")[1], "qr")])
def test_what_has_no_derivative_says_so(function, fix):
    for transform in (ft.jacfwd, ft.jacrev):
        with pytest.raises(NotDifferentiableError, match=fix):
            transform(function)(matrix(3, 3))


def test_singular_tridiagonal_systems_are_perturbed():
    off = jnp.ones(4)
    d = jnp.asarray([1.0, 1.0, 0.0, 1.0])
    whole = np.diag(d) + np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    assert abs(np.linalg.det(whole - np.linalg.eigvalsh(whole)[0] * np.eye(4))) < 1e-10
    shifted = d - np.linalg.eigvalsh(whole)[0]
    x = np.asarray(lax.linalg.tridiagonal_solve(*(jnp.asarray(v, "f8") for v in (
        off, shifted, off, np.ones((4, 1)))), perturb_singular=True))
    vector = np.linalg.eigh(whole)[1][:, 0]
    assert_close(np.abs(x[:, 0] @ vector) / np.linalg.norm(x), 1.0, 1e-6)
    zero = jnp.zeros(3)
    assert np.isfinite(lax.linalg.tridiagonal_solve(zero, zero, zero, jnp.ones((3, 1)),
                                                    perturb_singular=True)).all()
    assert not np.isfinite(lax.linalg.tridiagonal_solve(zero, zero, zero, jnp.ones((3, 1)))).any()


@pytest.mark.parametrize("call, text", [
    (lambda a: linalg.schur(a, "triangular"), "output"),
    (lambda a: linalg.solve_sylvester(a, a, a[:1]), "rows of a"),
    (lambda a: linalg.solve_sylvester(a, a, a, method="kron"), "method"),
    (lambda a: linalg.solve_banded((1, 2), a, a), "l \\+ u \\+ 1"),
    (lambda a: linalg.solve_banded((1, 0), a, jnp.ones(3)), "n rows"),
    (lambda a: linalg.eigh_tridiagonal(a[0], a[0]), "n - 1"),
    (lambda a: linalg.eigh_tridiagonal(a[0], a[0, :1], select="v"), "select"),
    (lambda a: linalg.polar(a, method="newton"), "method"),
    (lambda a: linalg.hadamard(6), "power of two"),
    (lambda a: linalg.dft(3, "m"), "scale"),
    (lambda a: linalg.hilbert(-1), "at least 0"),
    (lambda a: linalg.pascal(3, "odd"), "kind"),
    (lambda a: linalg.leslie(a[0], a[0]), "n - 1"),
    (lambda a: linalg.companion(jnp.ones(1)), "two coefficients"),
    (lambda a: linalg.funm(a, jnp.sum), "func"),
    (lambda a: linalg.khatri_rao(a, a[:, :1]), "columns"),
    (lambda a: lax.linalg.ormqr(a, a[0], jnp.ones((3, 1))), "rows"),
    (lambda a: lax.linalg.householder_product(a, jnp.ones(3)), "at most as many"),
    (lambda a: lax.linalg.cholesky_update(a, jnp.ones(3)), "n, n"),
    (lambda a: lax.linalg.qdwh(a[:1]), "as many rows"),
    (lambda a: lax.linalg.schur(a, sort_eig_vals=True), "sort"),
    (lambda a: lax.linalg.svd(a, algorithm="qr"), "SvdAlgorithm"),
    (lambda a: lax.linalg.tridiagonal_solve(a[0], a[0], a[0], a.astype("float32")), "dtype"),
    (lambda a: ft.jit(linalg.null_space)(a), "int"),
])
def test_errors(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call(jnp.eye(2, dtype="float64"))
