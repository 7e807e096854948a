"""Derivatives of functrans.numpy.linalg: both modes, second order, vmap, degenerate matrices."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.test_util import check_grads
from tests.linalg.matrices import assert_close, matrix, positive, square

la = jnp.linalg


def hermitian(x):
    return (x + jnp.conj(jnp.swapaxes(x, -1, -2))) / 2


def outer_of_first(v):
    """What of eigenvectors does not depend on their phases."""
    return jnp.abs(v) ** 2


FUNCTIONS = {
    "cholesky": (lambda x: la.cholesky(hermitian(x)), positive()),
    "cholesky upper": (lambda x: la.cholesky(x, upper=True), positive(complex=True)),
    "inv": (la.inv, square(2)),
    "inv complex": (la.inv, square(complex=True)),
    "det": (la.det, square(2)),
    "det complex": (la.det, square(complex=True)),
    "slogdet": (la.slogdet, square(2)),
    "slogdet complex": (la.slogdet, square(complex=True)),
    "solve": (lambda a, b: la.solve(a, b), square(2), matrix(4, 3, seed=1)),
    "solve one matrix": (lambda a, b: la.solve(a, b), square(), matrix(2, 4, 3, seed=1)),
    "pinv tall": (la.pinv, matrix(5, 3)),
    "pinv wide": (la.pinv, matrix(2, 3, 5)),
    "pinv complex": (la.pinv, matrix(4, 2, complex=True)),
    "lstsq": (lambda a, b: la.lstsq(a, b)[:2], matrix(5, 3), matrix(5, 2, seed=1)),
    "eigvalsh": (la.eigvalsh, positive(2)),
    "eigvalsh complex": (la.eigvalsh, positive(complex=True)),
    "eigh": (lambda x: outer_of_first(la.eigh(x).eigenvectors), positive(complex=True)),
    "eigvals": (la.eigvals, matrix(4, 4)),
    "eig": (lambda x: outer_of_first(la.eig(x).eigenvectors), matrix(4, 4)),
    "svd": (lambda x: [jnp.abs(o) ** 2 for o in la.svd(x, full_matrices=False)],
            matrix(4, 3, complex=True)),
    "svd full": (lambda x: [jnp.abs(o) ** 2 for o in la.svd(x)], matrix(3, 4, complex=True)),
    "svdvals": (la.svdvals, matrix(2, 3, 5)),
    "svd hermitian": (lambda x: la.svd(hermitian(x), hermitian=True, compute_uv=False),
                      positive() - 4 * np.eye(4)),
    "qr": (lambda x: la.qr(x), matrix(5, 3)),
    "qr complex": (lambda x: la.qr(x), matrix(3, 3, complex=True)),
    "qr wide": (lambda x: la.qr(x), matrix(2, 3, 5)),
    "qr complete": (lambda x: la.qr(x, "complete"), matrix(4, 3)),
    "lu": (lambda x: lax.linalg.lu(x)[0], matrix(4, 4)),
    "matrix_power": (lambda x: la.matrix_power(x, -3), square()),
    "multi_dot": (lambda *xs: la.multi_dot(xs), matrix(3, 2), matrix(2, 4), matrix(4, 2)),
    "cond": (la.cond, square()),
    "cond 1": (lambda x: la.cond(x, 1), square()),
    "norm": (la.norm, matrix(3, 4)),
    "norm complex": (lambda x: la.norm(x, axis=0), matrix(3, 4, complex=True)),
    "norm 1": (lambda x: la.norm(x, 1, axis=1), matrix(3, 4)),
    "norm 3": (lambda x: la.norm(x, 3, axis=1), matrix(3, 4)),
    "norm inf": (lambda x: la.norm(x, np.inf, axis=1), matrix(3, 4)),
    "matrix norm 1": (lambda x: la.norm(x, 1), matrix(3, 4)),
    "matrix norm 2": (lambda x: la.norm(x, 2), matrix(3, 4)),
    "matrix norm nuc": (lambda x: la.norm(x, "nuc"), matrix(3, 4)),
    "tensorsolve": (la.tensorsolve, matrix(2, 3, 6), matrix(2, 3, seed=1)),
    "tridiagonal": (lax.linalg.tridiagonal_solve, matrix(4), 4 + matrix(4, seed=1) ** 2,
                    matrix(4, seed=2), matrix(4, 2, seed=3)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    fun, *args = FUNCTIONS[name]
    check_grads(lambda *xs: [o for o in ft.tree.leaves(fun(*xs)) if o.dtype.kind in "fc"],
                args, order=2, atol=1e-4, rtol=1e-4)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_of_jvp_and_jit(name):
    fun, *args = FUNCTIONS[name]
    stacked = [np.stack([a, a * 1.1, a * 0.9]) for a in args]
    tangents = [np.stack([a * 0 + 1, a, a * a]) for a in args]

    def push(xs, ts):
        return ft.tree.leaves(ft.jvp(lambda *x: ft.tree.leaves(fun(*x)), xs, ts))

    loop = [push([a[i] for a in stacked], [t[i] for t in tangents]) for i in range(3)]
    for mapped in (ft.vmap(push)(stacked, tangents), ft.jit(ft.vmap(push))(stacked, tangents)):
        for i in range(3):
            for got, expected in zip(mapped, loop[i], strict=True):
                if np.asarray(expected).dtype.kind in "fc":
                    assert_close(got[i], expected, 1e-7)


def test_one_matrix_for_all_lanes_is_factored_once():
    a, b = square(), matrix(5, 4, seed=1)
    jaxpr = str(ft.make_jaxpr(ft.vmap(la.solve, (None, 0)))(a, b))
    assert "f64[4,5]" in jaxpr
    assert "f64[5,4,4]" not in jaxpr
    assert_close(ft.vmap(la.solve, (None, 0))(a, b), np.linalg.solve(a, b.T).T)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_gradient_of_det_of_singular_matrices(n):
    x = matrix(n, n)
    x[:, 0] = 0 if n == 3 else x[:, 1]
    gradient = ft.grad(la.det)(x)
    cofactors = np.array([[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1))
                           for j in range(n)] for i in range(n)])
    assert_close(gradient, cofactors, 1e-9)
    assert_close(ft.grad(la.det)(np.zeros((n, n))), np.zeros((n, n)))
    if n < 4:
        check_grads(la.det, (x,), 3, atol=1e-5)


def test_norm_at_zero_has_the_subgradient_zero():
    for ord in (None, 1, 2, 3, np.inf):
        assert_close(ft.grad(lambda x: la.norm(x, ord))(np.zeros(3)), np.zeros(3))  # noqa: B023
    assert_close(ft.hessian(la.norm)(np.zeros(2)), np.zeros((2, 2)))
    rows = ft.grad(lambda x: jnp.sum(la.norm(x, axis=1)))(np.array([[0.0, 0.0], [3.0, 4.0]]))
    assert_close(rows, [[0, 0], [0.6, 0.8]])


def test_repeated_eigenvalues():
    """Values are differentiable in symmetric functions; vectors are not, and say so by NaN."""
    gradient = ft.grad(lambda x: jnp.sum(la.eigvalsh(x) ** 2))(2 * np.eye(3))
    assert_close(gradient, 4 * np.eye(3))
    assert_close(ft.grad(lambda x: jnp.sum(la.svdvals(x)))(np.eye(3)), np.eye(3))
    assert not np.isfinite(ft.grad(lambda x: la.eigh(x).eigenvectors[0, 0])(np.eye(3))).all()


def test_pinv_of_deficient_matrices():
    x = matrix(4, 2) @ matrix(2, 3, seed=1)
    t = x @ matrix(3, 3, seed=2) + matrix(4, 4, seed=3) @ x  # keeps the rank, to first order
    left, right = matrix(4, 4, seed=3), matrix(3, 3, seed=2)

    def curve(e):
        """A matrix of the same rank for every e."""
        return (np.eye(4) + e * left) @ x @ (np.eye(3) + e * right)

    h = 1e-6
    numeric = (np.linalg.pinv(curve(h), 1e-10) - np.linalg.pinv(curve(-h), 1e-10)) / (2 * h)
    _, tangent = ft.jvp(lambda a: la.pinv(a, 1e-10), (x,), (t,))
    assert_close(tangent, numeric, 1e-5 * np.abs(numeric).max())


def test_gradient_of_logdet_is_the_inverse():
    x = positive(3)
    gradients = ft.vmap(ft.grad(lambda a: la.slogdet(a).logabsdet))(x)
    assert_close(gradients, np.swapaxes(np.linalg.inv(x), -1, -2))
    hessian = ft.hessian(lambda a: la.slogdet(a).logabsdet)(x[0])
    inverse = np.linalg.inv(x[0])
    assert_close(hessian, -np.einsum("jk,li->ijkl", inverse, inverse))
