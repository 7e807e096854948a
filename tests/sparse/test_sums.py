"""Sums of sparse arrays under jit: their primitive, its derivatives and lanes, beside NumPy."""

import numpy as np
import pytest
import scipy.sparse

import functrans as ft
import functrans.numpy as jnp
from functrans.experimental import sparse
from functrans.primitives.sparse_sums import sum_places_p, sums_of_places


def drawn(kind, seed, dtype="float64", n=300):
    """Matrices whose merges are foretold and not, with long rows and rows of nothing."""
    rng = np.random.default_rng(seed)
    if kind == "banded":
        m = scipy.sparse.diags([rng.normal(size=n) for _ in range(7)],
                               range(seed - 3, seed + 4), (n, n)).tocsr()
    else:
        weights = 1.0 / np.arange(1, n + 1) if kind == "power law" else np.ones(n)
        rows = rng.choice(n, 20 * n, p=weights / weights.sum())
        m = scipy.sparse.coo_array((rng.normal(size=rows.size), (
            rows, rng.integers(0, n, rows.size))), (n, n)).tocsr()
    m.sum_duplicates()
    return m.astype(dtype)


def same(got, expected, tolerance):
    """A result of more room than places: those in order, and zeros nowhere."""
    count, coo = expected.nnz, expected.tocoo()
    if isinstance(got, sparse.BCSR):
        assert np.array_equal(got.indptr, expected.indptr)
        assert np.array_equal(got.indices[:count], expected.indices)
        assert (np.asarray(got.indices[count:]) == got.shape[1]).all()
    else:
        assert np.array_equal(got.indices[:count], np.stack([coo.row, coo.col], 1))
        assert (np.asarray(got.indices[count:]) == np.asarray(got.shape)).all()
    np.testing.assert_allclose(got.data[:count], expected.data, tolerance, tolerance)
    assert got.indices_sorted and got.unique_indices and not np.any(got.data[count:])


@pytest.mark.parametrize("kind", ["banded", "uniform", "power law"])
@pytest.mark.parametrize("dtype, index", [("float32", "int32"), ("float64", "int64")])
def test_sums_are_those_of_scipy(kind, dtype, index):
    a, b = drawn(kind, 0, dtype), drawn(kind, 1, dtype)
    expected = (a + b).tocsr()
    expected.sort_indices()
    m, o = (sparse.BCSR.from_scipy_sparse(x, index_dtype=index) for x in (a, b))
    both = m.nse + o.nse
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    same(ft.jit(lambda m, o: m + o)(m, o), expected, tolerance)
    same(ft.jit(lambda m, o: (m.to_bcoo() + o.to_bcoo()).sum_duplicates(both))(m, o), expected,
         tolerance)
    same(ft.jit(lambda m, o: (m + o).sum_duplicates(both))(m.to_bcoo(), o.to_bcoo()), expected,
         tolerance)
    eager = m + o
    same(eager, expected, tolerance)
    assert eager.nse == expected.nnz


@pytest.mark.parametrize("sizes, nse", [((5,), 40), ((4, 6), 30), ((3, 2, 4), 60), ((50, 60), 9),
                                        ((2**30, 2**30), 20), ((2**22, 2**22, 2**22), 20)])
def test_duplicates_in_any_order(sizes, nse):
    """Of whole numbers NumPy computes, of others the runtime, of too many places a composition."""
    rng = np.random.default_rng(nse)
    at = np.stack([rng.choice([-1, 0, 1, n - 1, n], nse) for n in sizes], 1).astype(np.int64)
    whole = rng.integers(-9, 9, nse)
    found = []
    for dtype in ("int32", "float64", "float16"):
        m = sparse.BCOO((jnp.asarray(whole.astype(dtype)), jnp.asarray(at)), shape=sizes)
        for nse_kept in (nse, 3) if dtype == "float64" else (nse,):
            f = lambda m, n=nse_kept: m.sum_duplicates(n, remove_zeros=False)
            for got in (f(m), ft.jit(f)(m)):
                assert got.data.dtype == dtype
                found.append((nse_kept, np.asarray(got.data).real, np.asarray(got.indices)))
    for kept, data, indices in found:
        assert np.array_equal(data, found[0][1][:kept]), "sums do not depend on who computes them"
        assert np.array_equal(indices, found[0][2][:kept])
    inside = ((at >= 0) & (at < np.asarray(sizes))).all(1)
    assert found[0][1].sum() == whole[inside].sum()


def test_rows_in_any_order():
    """Columns that fall, that occur twice and that do not exist, and pointers that fall."""
    rng = np.random.default_rng(0)
    data, columns = jnp.asarray(rng.normal(size=200)), jnp.asarray(rng.integers(-1, 9, 200))
    pointers = jnp.asarray(np.array([3, 60, 40, 40, 130, 190]))
    m = sparse.BCSR((data, columns, pointers), shape=(5, 8))
    for f in (lambda m: m.sum_duplicates(64), lambda m: m + m,
              lambda m: m + 2 * m.sum_duplicates(64),
              lambda m: m.sum_duplicates(64, remove_zeros=False).to_bcoo()):
        got = ft.jit(f)(m)
        np.testing.assert_allclose(got.todense(), f(m).todense(), atol=1e-12)
        np.testing.assert_allclose(got.todense(), f(sparse.BCSR.fromdense(m.todense())).todense(),
                                   atol=1e-12)
    assert ft.jit(lambda m: m.sum_duplicates(4))(m).indptr.tolist() == [0, 4, 4, 4, 4, 4]


def test_derivatives_and_lanes():
    rng = np.random.default_rng(1)
    at, more = (jnp.asarray(rng.integers(-1, 5, (n, 2))) for n in (12, 7))
    x, y = jnp.asarray(rng.normal(size=12)), jnp.asarray(rng.normal(size=7))

    def sums(x, y, at=at):
        both = sparse.BCOO((x, at), shape=(4, 5)) + sparse.BCOO((y, more), shape=(4, 5))
        rows = sparse.BCSR.from_bcoo(both.sum_duplicates(9))
        return jnp.sin((rows + rows).data).sum() + both.sum_duplicates(9, remove_zeros=False).data

    ft.test_util.check_grads(sums, (x, y), order=2, modes=["fwd", "rev"])
    np.testing.assert_allclose(ft.jit(ft.grad(lambda x: sums(x, y).sum()))(x),
                               ft.grad(lambda x: sums(x, y).sum())(x), atol=1e-12)
    xs, ats = jnp.stack([x, 2 * x, -x]), jnp.stack([at, at[::-1], at + 1])
    for axes, args in (((0, None), (xs, y)), ((0, None, 0), (xs, y, ats)), ((None, None, 0),
                                                                           (x, y, ats))):
        each = [sums(*[v if a is None else v[k] for v, a in zip(args, axes, strict=True)])
                for k in range(3)]
        for f in (ft.vmap(sums, axes), ft.jit(ft.vmap(sums, axes))):
            np.testing.assert_allclose(f(*args), jnp.stack(each), atol=1e-12)
    m = sparse.BCSR.from_scipy_sparse(drawn("banded", 0, n=12))
    ft.test_util.check_grads(lambda d: (m.with_data(d) + m).data, (m.data,), order=1)
    rows = ft.vmap(ft.grad(lambda x, y, at: (sums(x, y, at) ** 2).sum()), (0, None, 0))(xs, y, ats)
    each = [ft.grad(lambda x, k=k: (sums(x, y, ats[k]) ** 2).sum())(xs[k]) for k in range(3)]
    np.testing.assert_allclose(rows, jnp.stack(each), atol=1e-12)


@pytest.mark.parametrize("number", range(7))
def test_what_other_targets_compute(number):
    """The composition of sorting and adding has the values of the primitive."""
    sample = list(sum_places_p.samples())[number]
    expected = sum_places_p.evaluate(*sample.args, **sample.params)
    got = sums_of_places(*map(jnp.asarray, sample.args), **sample.params)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_one_operation_reads_the_parts():
    """What a sum is made of is neither joined nor expanded: the program is one call."""
    m = sparse.BCSR.from_scipy_sparse(drawn("uniform", 0))
    for f, arg in ((lambda m: m + m, m),
                   (lambda m: (m.to_bcoo() + m.to_bcoo()).sum_duplicates(
                       2 * m.nse, remove_zeros=False), m),
                   (lambda m: (m + m).sum_duplicates(2 * m.nse, remove_zeros=False), m.to_bcoo())):
        explained = ft.explain(f, arg, target="cpu")
        assert [k.kind for k in explained.kernels] == ["library"]
    jaxpr = ft.make_jaxpr(lambda x: x @ jnp.ones(300))(m.to_bcoo())
    assert "coo_dot" in str(jaxpr) and "scatter" not in str(jaxpr)


def test_a_part_that_was_changed_is_not_read():
    m = sparse.BCSR.from_scipy_sparse(drawn("banded", 0))

    @ft.jit
    def f(m):
        c = m.to_bcoo()
        c.data = 2 * c.data
        return c.sum_duplicates(m.nse).data.sum(), c @ jnp.ones(300)

    total, product = f(m)
    assert np.isclose(total, 2 * m.data.sum()) and np.allclose(product, 2 * (m @ jnp.ones(300)))


def test_mistakes_are_explained():
    m = sparse.BCOO.fromdense(jnp.eye(3))
    with pytest.raises(ft.errors.ConcretizationError, match="nse"):
        ft.jit(lambda m: m.sum_duplicates().data)(m)
    with pytest.raises(ft.errors.ConcretizationError, match="nse"):
        ft.jit(lambda m: sparse.BCSR.from_bcoo(m).sum_duplicates().data)(m)
    for bad in (m, sparse.BCSR.from_bcoo(m)):
        with pytest.raises(ft.errors.ArgumentError, match="nse=-1"):
            ft.jit(lambda m: m.sum_duplicates(-1).data)(bad)


@pytest.mark.parametrize("order", ["rows", "columns", "none"])
@pytest.mark.parametrize("dtype, index", [("float32", "int32"), ("float64", "int64"),
                                          ("int32", "int32")])
def test_products_of_coordinates(order, dtype, index):
    """In order, in order of the transpose and in none; places out of bounds count for nothing."""
    rng = np.random.default_rng(2)
    at = np.stack([rng.integers(-1, 61, 3000), rng.integers(-1, 41, 3000)], 1).astype(index)
    if order != "none":
        at = at[np.argsort(at[:, int(order == "columns")], kind="stable")]
    if order == "rows":  # all inside, which is another loop
        at = at[(at >= 0).all(1) & (at < [60, 40]).all(1)]
    data = rng.integers(-5, 5, len(at)).astype(dtype)
    inside = (at >= 0).all(1) & (at < [60, 40]).all(1)
    dense = np.zeros((60, 40), dtype)
    np.add.at(dense, tuple(at[inside].T), data[inside])
    for is_sorted in {order == "rows", False}:
        m = sparse.BCOO((jnp.asarray(data), jnp.asarray(at)), shape=(60, 40),
                        indices_sorted=is_sorted)
        for x in (rng.integers(-5, 5, (40, n)).astype(dtype) for n in (1, 3, 32)):
            v, y = jnp.asarray(x), jnp.asarray(np.resize(x, (60,)))
            for f, expected in ((lambda m, v=v: m @ v, dense @ x),
                                (lambda m, v=v: m @ v[:, 0], dense @ x[:, 0]),
                                (lambda m, y=y: y @ m, np.resize(x, (60,)) @ dense)):
                np.testing.assert_array_equal(ft.jit(f)(m), expected)
                np.testing.assert_array_equal(f(m), expected)


@pytest.mark.parametrize("changed", [{"sizes": (3, -1)}, {"sizes": (-2, 4)}, {"room": -1}])
@pytest.mark.parametrize("number", range(7))
def test_no_array_has_fewer_places_than_none(number, changed):
    """Of -1 columns each place was inside, and that of (1, 0) was the place before the first."""
    sample = list(sum_places_p.samples())[number]
    if len(sample.params["sizes"]) != 2:
        changed = {"room": -1}
    with pytest.raises(ft.errors.ShapeError, match="sum_places cannot combine"):
        sum_places_p.bind(*sample.args, **{**sample.params, **changed})
