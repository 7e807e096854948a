"""Factors, pencils, interpolative decompositions and dendrograms beside SciPy's."""

import numpy as np
import pytest
import scipy.cluster.hierarchy
import scipy.linalg
import scipy.linalg.interpolative

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, MissingNameError, ShapeError
from functrans.scipy import linalg
from functrans.scipy.cluster import hierarchy
from functrans.scipy.linalg import interpolative

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def float64():
    with ft.default_dtypes("float64"):
        yield


def drawn(n, is_complex):
    return rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if is_complex else 0)


def near(x, y, tol=1e-11):
    np.testing.assert_allclose(x, y, atol=tol)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("hermitian", [True, False])
@pytest.mark.parametrize("lower", [True, False])
def test_ldl(is_complex, hermitian, lower):
    for n in (1, 2, 6):
        a = drawn(n, is_complex)
        a = a + (a.conj().T if hermitian else a.T)
        for b in (a, a - np.diag(np.diag(a))):
            ours = linalg.ldl(b, lower, hermitian)
            theirs = scipy.linalg.ldl(b, lower, hermitian)
            for u, v in zip(ours, theirs, strict=True):
                near(u, v, 1e-9)


@pytest.mark.one_in(3)
def test_derivatives_of_ldl():
    a = drawn(4, False)

    def size(t):
        x = a + a.T + t * jnp.eye(4)
        l, d, _ = linalg.ldl(x)
        return (jnp.abs(d) ** 1.5).sum() + (l**2).sum()

    _, slope = ft.jit(lambda t: ft.jvp(size, (t,), (1.0,)))(0.3)
    near(slope, (size(0.3 + 1e-5) - size(0.3 - 1e-5)) / 2e-5, 1e-5)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("m, p, q", [
    (2, 1, 1), (6, 3, 3), (6, 2, 4), (7, 5, 4), (7, 5, 6), (8, 1, 7)])
def test_cossin(m, p, q):
    for is_complex in (False, True):
        x = np.linalg.qr(drawn(m, is_complex))[0]
        for swap in (False, True):
            u, cs, vh = linalg.cossin(x, p, q, swap_sign=swap)
            near(u @ cs @ vh, x)
            near(cs, scipy.linalg.cossin(x, p, q, swap_sign=swap)[1], 1e-9)
            for v in (u, vh):
                near(v @ v.conj().T, np.eye(m))
    blocks = (x[:p, :q], x[:p, q:], x[p:, :q], x[p:, q:])
    near(linalg.cossin(blocks, separate=True)[1], linalg.cossin(x, p, q, separate=True)[1])
    with pytest.raises(ShapeError, match="p and q"):
        linalg.cossin(x)


def defective(n):
    return np.diag(np.repeat([1.0, 2.0], n)[:n]) + np.diag(np.ones(n - 1), 1), np.eye(n)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("output", ["real", "complex"])
@pytest.mark.parametrize("case", ["real", "complex", "singular", "defective"])
def test_qz(case, output):
    for n in (1, 2, 3, 6):
        a, b = drawn(n, case == "complex"), drawn(n, case == "complex")
        if case == "singular":
            b[:, 0] = 0
        if case == "defective":
            a, b = defective(n)
        s, t, q, z = map(np.asarray, linalg.qz(a, b, output))
        near(q @ s @ z.conj().T, a)
        near(q @ t @ z.conj().T, b)
        near(q @ q.conj().T, np.eye(n))
        near(z @ z.conj().T, np.eye(n))
        assert not np.tril(t, -1).any() and (np.diag(t).real >= 0).all()
        quasi = case != "complex" and output == "real"
        assert not np.tril(s, -2 if quasi else -1).any()
        below = np.diag(s, -1) != 0
        assert not (below[1:] & below[:-1]).any()


@pytest.mark.parametrize("sort", ["lhp", "rhp", "iuc", "ouc", lambda a, b: a.real > 0.5 * b])
def test_ordqz(sort):
    for is_complex in (False, True):
        a, b = drawn(6, is_complex), drawn(6, is_complex)
        s, _, alpha, beta, q, z = map(np.asarray, linalg.ordqz(a, b, sort))
        near(q @ s @ z.conj().T, a)
        found = alpha / beta
        theirs = scipy.linalg.eigvals(a, b)
        assert max(abs(theirs[:, None] - found).min(0)) < 1e-8
        chosen = {"lhp": found.real < 0, "rhp": found.real > 0, "iuc": abs(found) < 1,
                  "ouc": abs(found) > 1}[sort] if isinstance(sort, str) else found.real > 0.5
        assert not (np.diff(chosen.astype(int)) > 0).any()


def test_pencils_under_jit_and_mistakes():
    a = rng.normal(size=(2, 3, 3))
    lanes = ft.jit(ft.vmap(lambda a: linalg.qz(a, a.T)[0]))(a)
    near(lanes[1], linalg.qz(a[1], a[1].T)[0])
    with pytest.raises(ArgumentError, match="ordqz"):
        linalg.qz(a[0], a[1], sort="lhp")
    with pytest.raises(ShapeError, match="one size"):
        linalg.ordqz(a[0], np.eye(2))


def test_matrix_balance():
    for options in ({}, {"permute": False}, {"scale": False}):
        for _ in range(4):
            a = rng.normal(size=(6, 6)) * 10.0 ** rng.integers(-4, 4, (6, 1))
            a = a * (rng.random((6, 6)) < 0.4)
            ours, theirs = (m.matrix_balance(a, **options) for m in (linalg, scipy.linalg))
            for u, v in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(u, v, rtol=1e-12)
    b, (scaling, order) = linalg.matrix_balance(a, separate=True)
    theirs = scipy.linalg.matrix_balance(a, separate=True)[1]
    np.testing.assert_allclose(scaling, theirs[0])
    assert order.tolist() == theirs[1].tolist() and b.shape == a.shape


@pytest.mark.parametrize("mode", ["full", "economic"])
def test_factors_that_are_updated(mode):
    a = rng.normal(size=(5, 3))
    u, c = rng.normal(size=3), rng.normal(size=5)
    Q, R = linalg.qr(a, mode=mode)
    for (q, r), expected in (
            (linalg.qr_insert(Q, R, u, 2), np.insert(a, 2, u, 0)),
            (linalg.qr_insert(Q, R, c, -1, which="col"), np.insert(a, 2, c, 1)),
            (linalg.qr_delete(Q, R, 1), np.delete(a, 1, 0)),
            (linalg.qr_delete(Q, R, 0, 2, "col"), a[:, 2:]),
            (linalg.qr_update(Q, R, c, u), a + np.outer(c, u))):
        near(q @ r, expected)
        near(q.T @ q, np.eye(q.shape[1]))
        near(np.tril(r, -1), 0)
        assert (q.shape[0] == q.shape[1]) == (mode == "full" or q.shape[0] == expected.shape[1])
    with pytest.raises(ShapeError, match="u is a row"):
        linalg.qr_insert(Q, R, c, 0)


def test_interpolative_decompositions():
    a = rng.normal(size=(8, 3)) @ rng.normal(size=(3, 6))
    k, idx, proj = interpolative.interp_decomp(a, 1e-8)
    assert k == scipy.linalg.interpolative.interp_decomp(a, 1e-8, rand=False)[0] == 3
    skeleton = interpolative.reconstruct_skel_matrix(a, k, idx)
    near(interpolative.reconstruct_matrix_from_id(skeleton, idx, proj), a)
    u, s, v = interpolative.id_to_svd(skeleton, idx, proj)
    near(u * s @ v.T, a)
    near(interpolative.svd(a, 2)[1], np.linalg.svd(a)[1][:2])
    assert interpolative.estimate_rank(a, 1e-8) == 3
    near(interpolative.estimate_spectral_norm(a, 60), np.linalg.norm(a, 2), 1e-6)
    near(interpolative.estimate_spectral_norm_diff(a, 0 * a, 60), np.linalg.norm(a, 2), 1e-6)
    traced = ft.jit(lambda a: interpolative.interp_decomp(a, 3)[1])(a)
    order = ft.jit(lambda a: interpolative.interp_decomp(a, 3)[0])(a)
    near(interpolative.reconstruct_matrix_from_id(a[:, order[:3]], order, traced), a)
    with pytest.raises(ArgumentError, match="traced"):
        ft.jit(lambda a: interpolative.interp_decomp(a, 1e-3)[1])(a)


def test_routines_of_lapack_are_refused():
    with pytest.raises(MissingNameError, match="write into memory"):
        linalg.get_lapack_funcs  # noqa: B018
    assert linalg.LinAlgError is np.linalg.LinAlgError


@pytest.mark.one_in(2)
@pytest.mark.parametrize("options", [
    {}, {"count_sort": True}, {"distance_sort": "descending"}, {"color_threshold": 0.5},
    {"truncate_mode": "lastp", "p": 4}, {"count_sort": "descending", "color_threshold": 1.0},
    {"color_threshold": 0}, {"link_color_func": lambda k: f"c{k}"},
    {"truncate_mode": "lastp", "p": 3, "show_leaf_counts": False}])
def test_dendrogram(options):
    for n in (2, 7, 14):
        Z = scipy.cluster.hierarchy.linkage(rng.normal(size=(n, 2)), "average")
        ours, theirs = (m.dendrogram(Z, no_plot=True, **options)
                        for m in (hierarchy, scipy.cluster.hierarchy))
        assert list(ours) == list(theirs)
        for key in ("icoord", "dcoord"):
            near(ours[key], theirs[key])
        for key in ("ivl", "leaves", "color_list", "leaves_color_list"):
            assert list(map(str, ours[key])) == list(map(str, theirs[key])), key


def test_dendrograms_are_drawn():
    class Axis:
        def set_ticks(self, ticks):
            self.ticks = list(ticks)

        def set_ticklabels(self, labels, **_):
            self.labels = labels

    class Axes:
        def __init__(self):
            self.lines, self.xaxis, self.yaxis = [], Axis(), Axis()

        def plot(self, xs, ys, *_, color, **__):
            self.lines.append((xs, ys, color))

        def set(self, **limits):
            self.limits = limits

    Z = hierarchy.linkage([[0.0], [1.0], [5.0]])
    axes = Axes()
    found = hierarchy.dendrogram(Z, orientation="left", ax=axes, labels=["a", "b", "c"])
    assert len(axes.lines) == 2 and axes.lines[0][1] == found["icoord"][0]
    assert axes.yaxis.labels == ["c", "a", "b"] and axes.limits["ylim"] == (0, 30)
    hierarchy.set_link_color_palette(["r"])
    assert hierarchy.dendrogram(Z, no_plot=True)["color_list"][0] == "r"
    hierarchy.set_link_color_palette(None)
    with pytest.raises(ArgumentError, match="list of colours"):
        hierarchy.set_link_color_palette("r")
    with pytest.raises(ShapeError, match="labels"):
        hierarchy.dendrogram(Z, labels=["a"], no_plot=True)


def test_order_of_leaves():
    for n in (2, 6, 12):
        x = rng.normal(size=(n, 2))
        apart = np.linalg.norm(x[:, None] - x[None], axis=-1)

        def length(Z, apart=apart):
            leaves = np.asarray(hierarchy.leaves_list(Z))
            return apart[leaves[:-1], leaves[1:]].sum()

        Z = hierarchy.linkage(x, "average")
        ours = hierarchy.optimal_leaf_ordering(Z, x)
        assert length(ours) <= length(scipy.cluster.hierarchy.optimal_leaf_ordering(
            np.asarray(Z), x)) + 1e-9
        assert np.sort(ours[:, :2]).tolist() == np.sort(Z[:, :2]).tolist()
        if n == 6:  # each join the one way or the other
            flips = np.array(np.meshgrid(*[[0, 1]] * (n - 1))).reshape(n - 1, -1).T
            table = np.asarray(Z)
            best = min(length(np.where(f[:, None] == 1, table[:, [1, 0, 2, 3]], table))
                       for f in flips)
            near(length(ours), best)
        assert hierarchy.linkage(x, "average", optimal_ordering=True).tolist() == ours.tolist()
        near(hierarchy.from_mlab_linkage(hierarchy.to_mlab_linkage(Z)), Z)


def test_disjoint_sets():
    ours, theirs = (m.DisjointSet(range(9)) for m in (hierarchy, scipy.cluster.hierarchy))
    for u, v in ((1, 2), (3, 4), (2, 4), (7, 8), (1, 3)):
        assert ours.merge(u, v) == theirs.merge(u, v)
    assert ours.subsets() == theirs.subsets() and ours.n_subsets == theirs.n_subsets
    assert [ours[x] for x in ours] == [theirs[x] for x in theirs]
    assert ours.subset_size(4) == 4 and ours.subset(7) == {7, 8} and ours.connected(1, 3)
    with pytest.raises(ArgumentError, match="in no set"):
        ours.merge(1, 99)
