"""Sparse arrays of functrans.scipy.sparse beside SciPy's: one expression, read with both."""

import io
import warnings

import numpy as np
import pytest
import scipy.sparse as theirs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, ConcretizationError, ShapeError
from functrans.experimental import sparse as experimental
from functrans.scipy import sparse as ours
from functrans.sparse import grad
from tests.scipy.comparing import same

rng = np.random.default_rng(0)
A = theirs.random_array((4, 6), density=0.4, rng=rng, format="csr")
B = theirs.random_array((3, 3), density=0.4, rng=rng, format="csr")
CUBE = np.arange(24.0).reshape(2, 3, 4) % 5
DOUBLE = (np.array([1.0, 2.0, 3.0, 0.0]), (np.array([0, 0, 1, 0]), np.array([1, 1, 0, 2])))
FORMATS = ("coo", "csr", "csc", "dia", "bsr")

# what has one meaning in every format
OF_ALL = """
A.toarray() | A.T | A.tocsr() | A.tocsc() | A.tocoo() | A.todia() | A.tobsr() | A + A | A - 2 * A
A.multiply(A) | A * 2 | A / 2 | -A | abs(A) | A @ A.T | A @ np.ones(6) | A @ np.ones((6, 2))
np.ones(4) @ A | np.ones((2, 4)) @ A | A * np.arange(6.0) | A / np.arange(1.0, 7.0) | A.sum()
A.sum(axis=0) | A.sum(axis=1) | A.mean(axis=1) | A.mean() | A.diagonal() | A.diagonal(-1)
A.diagonal(2) | A.trace(1) | A.maximum(A.T.T * 0.5) | A.minimum(A * 2) | A.sqrt()
A.sin() | A.rint() | A.power(2) | A > 0.5 | A != A * 2
A.reshape(6, 4) | A.reshape((2, 12), order="F") | A.conj()
A + np.ones((4, 6)) | A.maximum(0.5) | A.count_nonzero() | A.tolil() | A.todok() | A.astype("f4")
A.nnz | A < 0.5 | A == A | A.multiply(A.tocsr()[0:1]) | A.T @ np.ones(4)
S.kron(B, A) | S.hstack([A, A]) | S.vstack([A, A]) | S.tril(A, 1) | S.triu(A, -1) | S.find(A)[2]
"""
# what rows, columns and coordinates have
INDEXED = """
A[0] | A[:, 0] | A[0, 1] | A[1:3] | A[[0, 1], [1, 0]] | A[:, [0, 2, 2]] | A[[2, 0]] | A[::-2, 1:]
A[[[0], [2]], [1, 3, 1]] | A[A > 0.5] | A[..., 0] | A[None, 0] | A[np.array([1, 0, 0, 1], bool)]
A[1:0] | A[-1, -1] | A.max() | A.min() | A.max(axis=0) | A.min(axis=1) | A.argmax(axis=0)
A.argmin() | A.argmax()
A.argmin(axis=1) | A.max(axis=0, explicit=True) | A.nanmax(axis=1) | A.nonzero()[1]
A.count_nonzero(axis=0) | A.multiply(B[[0]].T.sum() * np.ones((4, 1)))
"""
OTHERS = """
S.coo_array(C).sum(axis=1) | S.coo_array(C).transpose((1, 0, 2)) | S.coo_array(C) @ np.ones(4)
S.coo_array(C).tensordot(S.coo_array(C.reshape(4, 3, 2)), axes=([2, 1], [0, 1]))
(S.coo_array(C) + S.coo_array(C)).sum(axis=0) | S.coo_array(C).max(axis=2)
S.expand_dims(A, axis=-1)
S.swapaxes(S.coo_array(C), 0, 2) | S.permute_dims(A) | S.csr_array(np.arange(4.0))
S.csr_array(np.arange(4.0)) @ np.ones(4)
S.csr_array(np.arange(4.0)) + S.csr_array(np.arange(4.0))
S.csr_array(np.arange(4.0))[1:3] | S.coo_array(np.arange(4.0)) * 2
S.csr_matrix(A) * S.csr_matrix(A).T | S.csr_matrix(B) ** 3 | S.csr_matrix(A).sum(axis=1)
S.csr_matrix(A).max(axis=1) | S.csr_matrix(A)[:, 1] | S.csr_matrix(A)[1] | S.csr_matrix(A).getrow(2)
S.csc_matrix(A).getcol(2) | S.csr_matrix(A).getH() | S.csr_matrix(A) * np.ones(6) | B ** 2
S.coo_array(D) | S.coo_array(D).sqrt() | S.coo_array(D).tocsr() | S.coo_array(D).todia()
S.coo_array(D) * 2 | S.coo_array(D).max() | S.csr_array(D).multiply(S.csr_array(D))
S.csr_array((2, 3), dtype="i4") | S.csr_array(B, dtype="f4") | S.coo_array((3, 0)).sum(axis=1)
E @ np.ones(3) | E.T | E + E | E.sum(axis=0) | E.T @ E | E.tocoo().argmax(axis=1)
S.block_diag([A, B, [[1.0, 2.0]]]) | S.bmat([[A, None], [None, B]])
S.block_array([[A, None], [None, B]], format="csr") | S.kronsum(B, B) | S.kron(S.eye_array(2), B)
S.diags_array([[1.0, 2], [3.0]], offsets=[0, 1], dtype="f8")
S.diags([1.0, -2.0], [0, 2], shape=(3, 5), dtype="f8")
S.spdiags(np.ones((2, 3)), [0, 1], 3, 3) | S.eye_array(3, 4, k=-1, dtype=np.float64)
S.identity(3) | S.eye(2, 3, 1, dtype="f4", format="csr") | S.dia_array(B) + S.dia_array(B)
S.dia_array(B) @ S.dia_array(B) | S.bsr_array(A, blocksize=(2, 3)) @ np.ones(6)
S.bsr_array(A, blocksize=(2, 3)).T | S.bsr_array(A, blocksize=(2, 3)) + A.tobsr(blocksize=(2, 3))
S.bsr_array((np.ones((2, 1, 2)), [0, 1], [0, 1, 2])) | S.csc_array((np.ones(2), [0, 1], [0, 1, 2]))
S.csr_array((np.ones(3), [1, 0, 1], [0, 2, 3])).sorted_indices().indices
S.issparse(A) | S.isspmatrix(A) | S.isspmatrix_csr(S.csr_matrix(A))
S.safely_cast_index_arrays(A, "int64")[1] | S.coo_array(A).coords[1] | S.lil_array(A)[1:3]
S.dok_array(A)[2, 3] | S.lil_array(A) + A | S.lil_array(A) @ np.ones(6)
"""


def cases(text):
    return [e.strip() for line in text.strip().splitlines() for e in line.split(" | ")]


def agree(expression, a, mine, form="csr", **names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", theirs.SparseEfficiencyWarning)
        warnings.simplefilter("ignore", ours.SparseEfficiencyWarning)
        want = eval(expression, {"S": theirs, "A": a, "np": np, **names})
        got = eval(expression, {"S": ours, "A": mine, "np": np, **{
            k: ours.csr_array(v) if theirs.issparse(v) else v for k, v in names.items()}})
    if theirs.issparse(want):
        assert ours.issparse(got), expression
        if form in ("csr", "csc", "coo"):  # results of blocks and diagonals may store less
            assert repr(got) == repr(want), expression
        same(got.toarray(), want.toarray(), 1e-12, 1e-12)
    else:
        assert not ours.issparse(got), expression
        same(np.asarray(got), np.asarray(want), 1e-12, 1e-12)


@pytest.mark.one_in(7)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("expression", cases(OF_ALL))
def test_expressions_of_every_format(expression, form):
    agree(expression, A.asformat(form), ours.csr_array(A).asformat(form), form, B=B)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("expression", cases(INDEXED))
def test_indices_and_extremes(expression, form):
    agree(expression, A.asformat(form), ours.csr_array(A).asformat(form), form, B=B)


@pytest.mark.parametrize("expression", cases(OTHERS))
def test_other_expressions(expression):
    agree(expression, A, ours.csr_array(A), B=B, C=CUBE, D=DOUBLE, E=theirs.csr_array((0, 3)))


@st.composite
def matrices(draw, shape):
    """Coordinates with duplicates, explicit zeros and empty rows."""
    count = draw(st.integers(0, 12 if min(shape) else 0))
    at = [np.array(draw(st.lists(st.integers(0, n - 1), min_size=count, max_size=count)), int)
          if n else np.zeros(0, int) for n in shape]
    values = draw(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0]), min_size=count,
                           max_size=count))
    return theirs.coo_array((np.array(values, float), tuple(at)), shape=shape)


LAWS = """
A.toarray() | A.tocsr() | A.tocsc() | A + B | A - B | A.multiply(B)
A @ B.T | A.max(axis=0) | A.argmax(axis=1) | A.argmin(axis=0) | A.maximum(B) | A > B | A != B
A.count_nonzero(axis=1) | A.diagonal() | A.T @ np.ones(A.shape[0]) | A.tocsr()[::2] | A.sum(axis=1)
A.tocsc()[:, [0, 0]] | S.vstack([A, B]) | S.kron(A, B, "coo") | A.min() | A.sign() | A.tocsr()[0]
"""


@st.composite
def pairs(draw):
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 5)))
    return draw(matrices(shape)), draw(matrices(shape))


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(pairs(), st.lists(st.sampled_from(cases(LAWS)), min_size=4, max_size=6, unique=True))
def test_random_matrices(pair, expressions):
    a, b = pair
    for expression in expressions:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = eval(expression, {"S": theirs, "A": a.copy(), "B": b.copy(), "np": np})
            got = eval(expression, {"S": ours, "A": ours.coo_array(a), "B": ours.coo_array(b),
                                    "np": np})
        dense = [np.asarray(x.toarray() if hasattr(x, "toarray") else x) for x in (got, want)]
        np.testing.assert_allclose(*dense, err_msg=expression)


TRANSFORMED = {
    "@": lambda a, b: a @ np.ones(6), "left": lambda a, b: np.ones(4) @ a,
    "+": lambda a, b: (a + b).toarray(), "*": lambda a, b: (a * b).toarray(),
    "sparse @": lambda a, b: (a @ b.T).toarray(), "T": lambda a, b: a.T.toarray(),
    "csr": lambda a, b: a.tocsr().toarray(), "csc": lambda a, b: a.tocsc().toarray(),
    "sum": lambda a, b: a.sum(0), "max": lambda a, b: a.max(1).toarray(),
    "diagonal": lambda a, b: a.diagonal(1), "setdiag": lambda a, b: a.setdiag(3.0, 1).toarray(),
    "slice": lambda a, b: a.tocsr()[1:3, ::2].toarray(), "row": lambda a, b: a.tocsr()[1].toarray(),
    "places": lambda a, b: a.tocsr()[[0, 1], [2, 3]], "rows": lambda a, b: a.tocsr()[[2, 0]].sum(0),
    "reshape": lambda a, b: a.reshape(6, 4).toarray(), "sin": lambda a, b: a.sin().toarray(),
    "maximum": lambda a, b: a.maximum(b).toarray(), "argmax": lambda a, b: a.argmax(1),
    "kron": lambda a, b: ours.kron(a, b[0:1], "coo").toarray(), "mean": lambda a, b: a.mean(1),
    "vstack": lambda a, b: ours.vstack([a, b]).toarray(), "-": lambda a, b: (b - a).toarray(),
    "tril": lambda a, b: ours.tril(a).toarray(), "compare": lambda a, b: (a > 0.3).toarray(),
    "dense": lambda a, b: (a * np.arange(6.0)).toarray(), "power": lambda a, b: (a**2).toarray(),
    "duplicates": lambda a, b: a.sum_duplicates().toarray(),
}


@pytest.mark.one_in(11)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms(name, form):
    """jit with places traced and known, vmap over values, and gradients beside differences."""
    a = ours.csr_array(A).asformat(form)
    b = ours.csr_array(theirs.random_array((4, 6), density=0.4, rng=1, format="csr"))
    fun = lambda a: TRANSFORMED[name](a, b)
    of_values = lambda x: fun(a.with_data(x))
    want = fun(a)
    same(ft.jit(fun)(a), want, 1e-12, 1e-12)
    same(ft.jit(of_values)(a.data), want, 1e-12, 1e-12)
    lanes = ft.vmap(of_values)(jnp.stack([a.data, 2 * a.data]))
    same(lanes[0], want, 1e-12, 1e-12)
    same(lanes[1], fun(a.with_data(2 * a.data)), 1e-12, 1e-12)
    if np.asarray(want).dtype.kind == "f":
        w, t, h = rng.normal(size=want.shape), rng.normal(size=a.data.shape), 1e-6
        g = ft.grad(lambda x: (w * of_values(x)).sum())(a.data)
        slope = (w * (np.asarray(of_values(a.data + h * t) - of_values(a.data - h * t)))).sum()
        same((g * t).sum(), slope / 2 / h, 1e-5, 1e-7)
        if form != "dia":
            same(ft.jit(grad(lambda a: (w * fun(a)).sum()))(a).data, g, 1e-12, 1e-12)


def test_arrays_on_the_host():
    for mine, other in ((ours.lil_array((3, 4), dtype="f8"), theirs.lil_array((3, 4))),
                        (ours.dok_array((3, 4), dtype="f8"), theirs.dok_array((3, 4)))):
        for m in (mine, other):
            m[0, 1] = 4.0
            m[1, :] = [1.0, 0.0, 2.0, 0.0]
            m[-1, 3] = 5.0
            m[0, 1] = 0.0
            m[np.array([0, 2]), np.array([0, 0])] = [7.0, 8.0]
            m.setdiag(9.0, 1)
        same(mine.toarray(), other.toarray(), 0, 0)
        assert repr(mine) == repr(other) and mine.nnz == other.nnz
        assert mine[1, 0] == 1.0 and mine.copy()[1, 0] == 1.0
        with pytest.raises(IndexError):
            mine[3, 0] = 1.0
        with pytest.raises(ConcretizationError, match="coo_array"):
            ft.jit(lambda x, m=mine: m.__setitem__((0, 0), x))(1.0)
    assert list(ours.lil_array(B).rows) == list(theirs.lil_array(B).rows)
    assert ours.get_index_dtype(maxval=2**33) == theirs.get_index_dtype(maxval=2**33)
    assert dict(ours.dok_array(B).items()).keys() == dict(theirs.dok_array(B).items()).keys()


def test_files():
    for form in FORMATS:
        for write, read in ((ours, theirs), (theirs, ours), (ours, ours)):
            file = io.BytesIO()
            matrix = ours.csr_array(A) if write is ours else A
            write.save_npz(file, matrix.asformat(form))
            found = read.load_npz(io.BytesIO(file.getvalue()))
            assert type(found).__name__ == f"{form}_array"
            same(found.toarray(), A.toarray(), 0, 0)
    empty = io.BytesIO()
    np.savez(empty, x=1)
    with pytest.raises(ArgumentError, match="no sparse array"):
        ours.load_npz(io.BytesIO(empty.getvalue()))


def test_random_arrays():
    for key in (ft.random.key(3), 3):
        m = ours.random_array((30, 20), density=0.1, rng=key, format="csr")
        assert m.nnz == 60 and m.has_canonical_format and float(m.min()) >= 0 and float(m.max()) < 1
    assert ours.random(10**6, 10**6, 1e-10, rng=0).nnz == 100
    assert ours.random_array((4, 4), density=1.0, data_sampler=lambda size: np.ones(size),
                             rng=0).sum() == 16
    other = ours.random_array((30, 20), density=0.1, rng=4, format="csr")
    assert not np.array_equal(m.indices, other.indices)
    jitted = ft.jit(lambda k: ours.random_array((30, 20), density=0.1, rng=k).toarray())
    same(jitted(ft.random.key(3)), m.toarray(), 1e-7, 0)


def test_solvers_take_them():
    full = A.toarray() @ A.toarray().T + 4 * np.eye(4)
    for form in FORMATS:
        for cls in (ours.csr_array, ours.csr_matrix):
            m, b = cls(theirs.csr_array(full)).asformat(form), np.arange(4.0)
            want = np.linalg.solve(full, b)
            same(ours.linalg.spsolve(m, b), want, 1e-10, 1e-10)
            same(ours.linalg.cg(m, b, rtol=1e-12)[0], want, 1e-9, 1e-9)
            same(ours.linalg.norm(m, axis=1), np.linalg.norm(full, axis=1), 1e-12, 0)


def test_arrays_beside_those_of_jax():
    """Operands of functrans.experimental.sparse on both sides, and its functions."""
    dense = A.toarray()
    for form in (experimental.BCOO, experimental.BCSR, experimental.CSR, experimental.CSC):
        other = form.fromdense(dense.T)
        for mine in (ours.csr_array(A), ours.coo_array(A), ours.csc_matrix(A)):
            for found, want in ((mine @ other, dense @ dense.T), (other @ mine, dense.T @ dense),
                                (mine + other.T, 2 * dense), (other.T + mine, 2 * dense),
                                (mine.multiply(other.T), dense**2)):
                same(found.todense(), want, 1e-12, 1e-12)
    same(ft.jit(lambda a, b: (b @ a).todense())(mine, other), dense.T @ dense, 1e-12, 1e-12)
    same(experimental.todense(ours.csr_array(A)), dense)
    assert ours.csr_array(other).shape == (6, 4) and ours.issparse(other)


WRONG = {
    "indices out of bounds": (lambda: ours.coo_array(([1.0], ([3], [0])), shape=(2, 2)),
                              ArgumentError),
    "lengths": (lambda: ours.csr_array(([1.0, 2.0], ([0], [1]))), ShapeError),
    "pointers": (lambda: ours.csr_array(([1.0], [0], [0, 2])), ShapeError),
    "three axes": (lambda: ours.csr_array(np.ones((2, 2, 2))), ShapeError),
    "a number": (lambda: ours.csr_array(3.0), ShapeError),
    "added number": (lambda: ours.csr_array(A) + 1, ArgumentError),
    "divided by": (lambda: 1 / ours.csr_array(A), ArgumentError),
    "product": (lambda: ours.csr_array(A) @ np.ones(3), ShapeError),
    "sparse product": (lambda: ours.csr_array(A) @ ours.csr_array(A), ShapeError),
    "sum": (lambda: ours.csr_array(A) + ours.csr_array(B), ShapeError),
    "assignment": (lambda: ours.csr_array(A).__setitem__((0, 0), 1.0), TypeError),
    "length": (lambda: len(ours.csr_array(A)), ArgumentError),
    "truth": (lambda: bool(ours.csr_array(A)), ArgumentError),
    "index": (lambda: ours.csr_array(A)[7], IndexError),
    "name": (lambda: ours.csr_array(A)["a"], IndexError),
    "no blocks": (lambda: ours.vstack([]), ShapeError),
    "indices": (lambda: ours.csr_array(A)[[0, 9]], IndexError),
    "floats": (lambda: ours.csr_array(A)[[0.5]], IndexError),
    "format": (lambda: ours.csr_array(A).asformat("xyz"), ArgumentError),
    "reshape": (lambda: ours.csr_array(A).reshape(5, 5), ShapeError),
    "blocks": (lambda: ours.bsr_array(A, blocksize=(3, 4)), ShapeError),
    "block table": (lambda: ours.block_array([[A, B]]), ShapeError),
    "dense values in jit": (lambda: ft.jit(lambda x: ours.csr_array(x).sum())(np.eye(2)),
                            ConcretizationError),
    "nonzero in jit": (lambda: ft.jit(lambda m: m.nonzero()[0])(ours.csr_array(A)),
                       ConcretizationError),
    "density": (lambda: ours.random_array((2, 2), density=2), ArgumentError),
    "power": (lambda: ours.csr_array(A) ** -1, ArgumentError),
    "diagonal": (lambda: ours.csr_array(A).setdiag(1.0, 9), ArgumentError),
    "long diagonal": (lambda: ours.diags_array([[1.0, 2.0, 3.0]], offsets=[0], shape=(2, 2)),
                      ShapeError),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name):
    fun, error = WRONG[name]
    with pytest.raises(error) as found:
        fun()
    assert "Where" in str(found.value) or isinstance(found.value, IndexError)


def test_room_for_dense_values_in_jit():
    dense = A.toarray()
    same(ft.jit(lambda x: (ours.csr_array(x, nse=12) @ np.ones(6)))(dense), dense.sum(1), 1e-12, 0)


def test_conversions_that_do_not_keep_sums():
    m = ours.coo_array((np.array([0.6, 0.7, 1.0, -1.0]), ([0, 0, 1, 1], [0, 0, 1, 1])))
    assert m.astype(np.int32).toarray().tolist() == [[1, 0], [0, 0]]
    assert m.astype(bool).toarray().tolist() == [[True, False], [False, False]]
    same(m.astype(np.float32).toarray(), [[1.3, 0], [0, 0]], 1e-6)


def test_comparisons_that_store_most_warn():
    with pytest.warns(ours.SparseEfficiencyWarning):
        assert (ours.csr_array(A) < 1.0).nnz == 24
