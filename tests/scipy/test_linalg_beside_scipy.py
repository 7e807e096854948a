"""functrans.scipy.linalg and functrans.lax.linalg beside SciPy: values, dtypes, sizes, strides."""

import warnings

import numpy as np
import pytest
import scipy.linalg

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.scipy import linalg
from tests.linalg.matrices import matrix, positive, square

DTYPES = ("float32", "float64", "complex64", "complex128")
SIZES = (1, 2, 5, 20)


def close(actual, expected, dtype, factor=1.0):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    eps = np.finfo(dtype).eps
    largest = np.abs(expected).max(initial=1e-30)
    assert np.abs(actual - expected).max(initial=0) <= factor * 200 * eps * largest


def cast(x, dtype):
    return np.asarray(x if np.dtype(dtype).kind == "c" else x.real, dtype)


def beside(name, dtype, *args, factor=1.0, **keywords):
    """The function of that name agrees with SciPy's of the same numbers in double precision."""
    wide = "complex128" if np.dtype(dtype).kind == "c" else "float64"
    doubles = [a.astype(wide) if isinstance(a, np.ndarray) else a for a in args]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = getattr(scipy.linalg, name)(*doubles, **keywords)
    found = getattr(linalg, name)(*args, **keywords)
    for x, y in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        assert np.asarray(x).real.dtype.itemsize == np.dtype(dtype).type(0).real.itemsize \
            or np.asarray(x).dtype.kind in "ib"
        close(x, y, dtype, factor)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_forms_are_similar_to_the_matrix(n, dtype):
    a = cast(matrix(n, n, complex=True), dtype)
    complex = a.dtype.kind == "c"
    for output in ("real", "complex"):
        t, z = map(np.asarray, linalg.schur(a, output))
        assert t.dtype == (dtype if output == "real" else np.result_type(dtype, "complex64"))
        close(z @ t @ z.conj().T, a, dtype)
        close(z.conj().T @ z, np.eye(n), dtype)
        assert not np.tril(t, -1 if complex or output == "complex" else -2).any()
    t, z = map(np.asarray, linalg.rsf2csf(*linalg.schur(a)))
    close(z @ t @ z.conj().T, a, dtype)
    close(z.conj().T @ z, np.eye(n), dtype)
    assert not np.tril(t, -1).any()
    h, q = map(np.asarray, linalg.hessenberg(a, calc_q=True))
    close(q @ h @ q.conj().T, a, dtype)
    close(h, scipy.linalg.hessenberg(a.astype("c16" if complex else "f8")) if n > 2 else h, dtype,
          50)


def test_blocks_of_the_real_form_are_standard():
    """Complex pairs alone have a block, with equal diagonals and off-diagonals of other signs."""
    for seed in range(6):
        a = matrix(9, 9, seed=seed)
        t, _ = map(np.asarray, linalg.schur(a))
        below = np.flatnonzero(np.diag(t, -1))
        for i in below:
            assert t[i, i] == t[i + 1, i + 1] and t[i, i + 1] * t[i + 1, i] < 0
        assert 2 * len(below) == (np.abs(np.linalg.eigvals(a).imag) > 1e-8).sum()


@pytest.mark.parametrize("a", [
    np.zeros((4, 4)), np.eye(4), np.ones((5, 5)), np.diag(np.ones(5), 1), np.diag(np.ones(5), -1),
    np.eye(6)[[1, 2, 3, 4, 5, 0]], np.array([[0.0, 1], [-1, 0]]), 1e300 * matrix(4, 4),
    1e-300 * matrix(4, 4), np.diag(np.ones(4), -1) + 1e-14 * matrix(5, 5),
    np.array([[3.0, 2, 1], [0, 3, 4], [0, 0, 3]])[::-1, ::-1],
    np.block([[np.zeros((3, 3)), np.eye(3)], [-np.eye(3), np.zeros((3, 3))]])],
    ids=lambda a: str(a.shape))
def test_schur_of_hard_matrices(a):
    for x in (a, a + 0j):
        t, z = map(np.asarray, linalg.schur(x))
        close(z @ t @ z.conj().T, x, "f8")
        close(z.conj().T @ z, np.eye(len(a)), "f8")


def test_what_has_no_form_is_nan():
    x = jnp.asarray([[1.0, np.nan], [0.0, 1.0]])
    for out in (linalg.schur(x), ft.jit(linalg.schur)(x), ft.vmap(linalg.schur)(x[None])):
        assert np.isnan(out[0]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_tridiagonal_form(lower, dtype):
    x = cast(matrix(7, 7, complex=True), dtype)
    x = x + x.conj().T
    other = np.tril(x) if lower else np.triu(x)  # the other triangle is not read
    _, d, e, taus = map(np.asarray, lax.linalg.tridiagonal(jnp.asarray(other), lower=lower))
    assert d.dtype == e.dtype == x.real.dtype and taus.dtype == x.dtype
    whole = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    close(np.linalg.eigvalsh(whole), np.linalg.eigvalsh(x), dtype)
    function = scipy.linalg.get_lapack_funcs("hetrd" if x.dtype.kind == "c" else "sytrd", (x,))
    packed, ed, ee, etaus, _ = function(x, lower=int(lower))
    for got, expected in ((d, ed), (e, ee), (taus, etaus)):
        close(got, expected, dtype, 20)
    mine = np.asarray(lax.linalg.tridiagonal(jnp.asarray(x), lower=lower)[0])
    part = np.tril if lower else np.triu
    close(part(mine), part(packed), dtype, 20)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_functions_of_matrices(n, dtype):
    a, p = cast(matrix(n, n, complex=True), dtype) / n**0.5, cast(positive(n=n), dtype)
    if np.dtype(dtype).kind == "c":
        p = cast(positive(n=n, complex=True), dtype)
    beside("expm", dtype, a)
    beside("expm_frechet", dtype, a, a @ a)
    for name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm"):
        beside(name, dtype, a, factor=20)
    beside("signm", dtype, p - (1.3 * np.trace(p).real / n * np.eye(n)).astype(dtype), factor=50)
    for name in ("sqrtm", "logm"):
        beside(name, dtype, p)
        close(linalg.sqrtm(a) @ linalg.sqrtm(a), a, dtype, 20)
        close(linalg.expm(linalg.logm(a)), a, dtype, 50)
    beside("fractional_matrix_power", dtype, p, 2.3, factor=10)
    beside("fractional_matrix_power", dtype, p, -0.5, factor=10)
    close(linalg.funm(a, jnp.exp), linalg.expm(a), dtype, 1e3)


@pytest.mark.parametrize("a", [np.zeros((3, 3)), np.eye(3), np.diag([1.0, 1, 2]), 1e8 * positive(),
                               1e-8 * positive(), np.array([[4.0, 1], [0, 4]])])
def test_roots_and_logarithms_of_special_matrices(a):
    close(linalg.sqrtm(a) @ linalg.sqrtm(a), a, "f8")
    if np.linalg.det(a):
        close(linalg.expm(linalg.logm(a)), a, "f8", 50)
    log, error = linalg.logm(np.eye(2), disp=False)
    assert not np.asarray(log).any() and float(error) < 1e-15
    assert float(linalg.funm(np.diag([1.0, 2.0]), jnp.exp, disp=False)[1]) < 1e-14


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_equations(n, dtype):
    a, b = (cast(square(n=m, complex=True, seed=m), dtype) for m in (n, 3))
    q = cast(matrix(n, 3, seed=2, complex=True), dtype)
    beside("solve_sylvester", dtype, a, b, q, factor=5)
    p = cast(positive(n=n), dtype)
    beside("solve_continuous_lyapunov", dtype, a, p, factor=5)
    beside("solve_discrete_lyapunov", dtype, a / (4 * n), p, "bilinear", factor=5)
    if n < 10:
        beside("solve_discrete_lyapunov", dtype, a / (4 * n), p, "direct", factor=5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower, upper", [(1, 1), (0, 2), (2, 0), (3, 1), (0, 0), (1, 4)])
def test_bands(lower, upper, dtype):
    for n in (1, 3, 9):
        ab = cast(matrix(lower + upper + 1, n, complex=True), dtype)
        ab[upper] += 4
        for b in (cast(matrix(n, 2, complex=True), dtype), cast(matrix(n, complex=True), dtype)):
            beside("solve_banded", dtype, (lower, upper), ab, b, factor=10)


def test_bands_pivot():
    """A zero on the diagonal is no obstacle, and rows are exchanged as far as the band goes."""
    ab = np.array([[0.0, 1, 2, 3], [0.0, 0, 1, 1], [1.0, 5, 7, 0], [9.0, 1, 0, 0]])
    b = np.arange(4.0)
    close(linalg.solve_banded((2, 1), ab, b), scipy.linalg.solve_banded((2, 1), ab, b), "f8")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_hermitian_bands(lower, dtype):
    for width, n in ((1, 3), (2, 5), (3, 9), (3, 3)):
        ab = 0.3 * cast(matrix(width, n, complex=True), dtype)
        ab[0 if lower else -1] = 4
        for k in range(width):  # SciPy leaves what is outside of the matrix as it is
            ab[(k if lower else width - 1 - k), slice(n - k, n) if lower else slice(0, k)] = 0
        b = cast(matrix(n, 2, complex=True), dtype)
        beside("solveh_banded", dtype, ab, b, lower=lower)
        beside("cholesky_banded", dtype, ab, lower=lower)
        factor = linalg.cholesky_banded(ab, lower=lower)
        close(linalg.cho_solve_banded((factor, lower), b), linalg.solveh_banded(ab, b, lower=lower),
              dtype)
        beside("eigvals_banded", dtype, ab, lower=lower)
        w, v = map(np.asarray, linalg.eig_banded(ab, lower, select="i", select_range=(1, 2)))
        close(w, scipy.linalg.eigvals_banded(ab, lower, select="i", select_range=(1, 2)), dtype)
        assert v.shape == (n, 2)


def test_tridiagonal_eigenvalues():
    d, e = matrix(7), matrix(6, seed=1)
    beside("eigh_tridiagonal", "f8", d, e, eigvals_only=True)
    w, v = map(np.asarray, linalg.eigh_tridiagonal(d, e, select="i", select_range=(2, 4)))
    close(w, scipy.linalg.eigh_tridiagonal(d, e, True, "i", (2, 4)), "f8")
    a = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    close(a @ v, v * w, "f8")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
def test_decompositions(shape, dtype):
    a = cast(matrix(*shape, complex=True), dtype)
    for side in ("left", "right"):
        beside("polar", dtype, a, side, factor=10)
    if shape[0] >= shape[1]:
        u, h, steps, converged = lax.linalg.qdwh(jnp.asarray(a))
        assert bool(converged) and int(steps) <= 8
        for got, expected in zip((u, h), scipy.linalg.polar(a), strict=True):
            close(got, expected, dtype, 10)
    beside("pinv", dtype, a, return_rank=True, factor=10)
    beside("pinvh", dtype, cast(positive(complex=True), dtype), return_rank=True)
    k = min(shape)
    q, _ = map(np.asarray, linalg.qr(a, mode="economic"))
    left, right = cast(matrix(k, 2, complex=True), dtype), cast(matrix(2, shape[0]), dtype)
    for conjugate in (False, True):
        turned = q.conj() if conjugate else q
        close(linalg.qr_multiply(a, left, "left", conjugate=conjugate)[0], turned @ left, dtype)
        close(linalg.qr_multiply(a, right, conjugate=conjugate)[0], right @ turned, dtype)
    product, _, order = map(np.asarray, linalg.qr_multiply(a, right[0], pivoting=True))
    close(np.abs(product), np.abs(scipy.linalg.qr_multiply(a, right[0], pivoting=True)[0]), dtype,
          50)
    assert (order == scipy.linalg.qr(a, pivoting=True)[2]).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_reflectors(dtype):
    a = cast(matrix(2, 6, 4, complex=True), dtype)
    for shape in ((6, 4), (4, 6), (5, 5), (1, 1)):
        x = cast(matrix(*shape, complex=True), dtype)
        (packed, taus), r = scipy.linalg.qr(x, mode="raw")
        mine, mine_taus = map(np.asarray, jnp.linalg.qr(jnp.asarray(x), mode="raw"))
        close(mine.T, packed, dtype, 10)
        close(mine_taus, taus, dtype, 10)
        m, k = shape[0], min(shape)
        q = np.asarray(lax.linalg.householder_product(jnp.asarray(packed[:, :k]), taus))
        close(q @ r[:k], x, dtype)
        whole = np.asarray(lax.linalg.ormqr(jnp.asarray(packed), taus, np.eye(m, dtype=dtype)))
        close(whole[:, :k], q, dtype)
        c = cast(matrix(m, 3, complex=True, seed=1), dtype)
        for transpose, operator in ((False, whole), (True, whole.conj().T)):
            close(lax.linalg.ormqr(packed, taus, c, transpose=transpose), operator @ c, dtype)
            close(lax.linalg.ormqr(packed, taus, c.T, left=False, transpose=transpose),
                  c.T @ operator, dtype)
    stack = np.asarray(linalg.orth(a))
    close(stack.conj().mT @ stack, np.broadcast_to(np.eye(4), (2, 4, 4)), dtype)


def test_bases_and_angles():
    low = matrix(6, 2) @ matrix(2, 5)
    for mine, theirs in ((linalg.orth, scipy.linalg.orth),
                         (linalg.null_space, scipy.linalg.null_space)):
        x, y = np.asarray(mine(low)), theirs(low)
        close(x @ x.T, y @ y.T, "f8")
    a, b = matrix(6, 3), matrix(6, 2, seed=1)
    for x, y in ((a, b), (b, a), (a, a[:, :2] + 1e-9 * b)):
        close(linalg.subspace_angles(x, y), scipy.linalg.subspace_angles(x, y), "f8")
    beside("orthogonal_procrustes", "f8", a, a[::-1] + 0.1)
    beside("khatri_rao", "f8", a, matrix(2, 3))
    beside("diagsvd", "f8", matrix(3), 3, 5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_structured_systems(dtype):
    c, r, b = (cast(matrix(6, seed=s, complex=True), dtype) for s in range(3))
    c[0] += 9
    beside("solve_toeplitz", dtype, (c, r), b)
    beside("solve_toeplitz", dtype, c, b)
    beside("matmul_toeplitz", dtype, (c, r[:4]), b[:4])
    beside("solve_circulant", dtype, c, b)
    ones = np.ones(4, dtype)
    beside("solve_circulant", dtype, ones, ones, singular="lstsq")


@pytest.mark.parametrize("complex", [False, True])
def test_general_eigenvalues(complex):
    a, b = matrix(5, 5, complex=complex), square(n=5, seed=1, complex=complex)
    # by digits that rounding leaves alone: conjugates have the same real part
    found, wanted = (np.asarray(v)[np.lexsort((v.imag, np.round(v.real, 9)))]
                     for v in map(np.asarray, (linalg.eigvals(a, b), scipy.linalg.eigvals(a, b))))
    close(found, wanted, "f8", 50)
    w, left, right = map(np.asarray, linalg.eig(a, b, left=True))
    close(a @ right, b @ right * w, "f8", 50)
    close(left.conj().T @ a, w[:, None] * (left.conj().T @ b), "f8", 50)
    close(np.linalg.norm(left, axis=0), np.ones(5), "f8")
    beside("eigvalsh", "c16", positive(complex=True), positive(seed=1, complex=True))


@pytest.mark.parametrize("complex", [False, True])
def test_updates(complex):
    r, w = np.triu(matrix(2, 5, 5, complex=complex)), matrix(2, 5, seed=1, complex=complex)
    s = np.asarray(lax.linalg.cholesky_update(jnp.asarray(r), jnp.asarray(w)))
    outer = w[..., :, None] * w.conj()[..., None, :]
    close(s.conj().mT @ s, r.conj().mT @ r + outer, "f8")
    assert not np.tril(s, -1).any()
    c = matrix(2, 5, 5, seed=2, complex=complex)
    c = c + c.mT
    a = w[..., None]
    for symmetrize in (False, True):
        out = lax.linalg.symmetric_product(a, c, alpha=2.0, beta=-1.0, symmetrize_output=symmetrize)
        close(out, 2 * a @ a.mT - c, "f8")


FAMILIES = {
    **{name: [(n,) for n in range(1, 7)] for name in ("hilbert", "invhilbert", "helmert")},
    "pascal": [(n, kind) for n in (0, 1, 5) for kind in ("symmetric", "lower", "upper")],
    "invpascal": [(n, kind) for n in (1, 5) for kind in ("symmetric", "lower", "upper")],
    "dft": [(5,), (4, "n"), (3, "sqrtn")], "hadamard": [(1,), (8,)], "helmert ": [(4, True)],
    **{name: [(matrix(n),) for n in (2, 3, 4, 6, 7)] + [(matrix(2, 3),)]
       for name in ("circulant", "companion", "fiedler", "fiedler_companion", "toeplitz")},
    "hankel": [(matrix(3), matrix(5)), (matrix(4),)],
    "toeplitz ": [(matrix(3), matrix(5))], "leslie": [(matrix(5), matrix(4))],
    "convolution_matrix": [(matrix(m), n, mode) for m, n in ((5, 2), (2, 5), (4, 4))
                           for mode in ("full", "same", "valid")],
}


@pytest.mark.parametrize("name", FAMILIES)
def test_families(name):
    with ft.default_dtypes("float64", "int64"):
        for args in FAMILIES[name]:
            expected = getattr(scipy.linalg, name.strip())(*args)
            found = np.asarray(getattr(linalg, name.strip())(*args))
            close(found, expected.astype(found.dtype), "f8")
    pair = matrix(2, 3), matrix(2, 4)
    close(linalg.hankel(*pair), [scipy.linalg.hankel(c, r) for c, r in zip(*pair, strict=True)],
          "f8")
    assert linalg.invhilbert(14, exact=True).tolist() == \
        scipy.linalg.invhilbert(14, exact=True).tolist()


FUNCTIONS = {
    "schur": linalg.schur, "hessenberg": linalg.hessenberg, "expm": linalg.expm,
    "sqrtm": linalg.sqrtm, "logm": linalg.logm, "signm": linalg.signm, "polar": linalg.polar,
    "funm": lambda x: linalg.funm(x, jnp.exp), "rsf2csf": lambda x: linalg.rsf2csf(x, x),
    "sylvester": lambda x: linalg.solve_sylvester(x, x, x), "eig": linalg.eig,
    "lyapunov": lambda x: linalg.solve_discrete_lyapunov(x / 20, x),
    "qr_multiply": lambda x: linalg.qr_multiply(x, x, pivoting=True),
    "householder": lambda x: lax.linalg.householder_product(x, x[..., 0]),
    "ormqr": lambda x: lax.linalg.ormqr(x, x[..., 0], x),
    "banded": lambda x: linalg.solve_banded((1, max(x.shape[-1] - 2, 0)), x, x),
    "tridiagonal": lambda x: lax.linalg.tridiagonal(x, lower=False),
    "cholesky_update": lambda x: lax.linalg.cholesky_update(x, x[..., 0]),
    "cholesky_banded": lambda x: linalg.cholesky_banded(x * x / 30 + np.eye(4)[:, :1] * 9
                                                        if x.size else x, lower=True),
    "raw": lambda x: jnp.linalg.qr(x, mode="raw"),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_stacks_strides_and_compiled_programs(name):
    """Stacks, vmap and jit are loops; memory that is not contiguous and empty matrices are fine."""
    f = FUNCTIONS[name]
    x = np.asarray(square(3, n=4))
    loop = [ft.tree.leaves(f(jnp.asarray(a))) for a in x]
    strided = np.asfortranarray(np.repeat(x, 2, 1))[:, ::2]
    for outs in (f(jnp.asarray(strided)), ft.vmap(f)(jnp.asarray(x)), ft.jit(f)(x),
                 ft.jit(ft.vmap(f))(x)):
        for k, out in enumerate(ft.tree.leaves(outs)):
            close(out, np.stack([np.asarray(one[k]) for one in loop]), "f8", 5)
    if name not in ("banded", "cholesky_update", "householder", "ormqr", "eig"):
        empty = ft.tree.leaves(f(np.zeros((0, 0))))
        assert [o.shape for o in ft.tree.leaves(ft.jit(f)(np.zeros((0, 0))))] == \
            [o.shape for o in empty]
        assert all(o.size == 0 or name == "raw" for o in empty)
    assert all(o.shape[0] == 0 for o in ft.tree.leaves(f(np.zeros((0, 4, 4)))))
