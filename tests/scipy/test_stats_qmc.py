"""Sequences of low discrepancy beside scipy.stats.qmc, and what their scrambles keep."""

import warnings

import numpy as np
import pytest
from scipy.stats import qmc as known_qmc

import functrans as ft
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy.stats import qmc
from functrans.test_util import check_grads

rng = np.random.default_rng(2)
X = rng.random((20, 3))


@pytest.fixture(autouse=True)
def in_float64():
    with ft.default_dtypes("float64"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("d, bits", [(1, None), (5, None), (40, 20), (3, 64), (21201, 30)])
def test_sobol_is_scipys(d, bits):
    ours, theirs = (m.Sobol(d, scramble=False, bits=bits) for m in (qmc, known_qmc))
    assert (np.asarray(ours.random(16)) == theirs.random(16)).all()
    if bits != 64:  # which SciPy cannot skip
        ours.fast_forward(37), theirs.fast_forward(37)
    assert (np.asarray(ours.random(8)) == theirs.random(8)).all()


def test_halton_is_scipys():
    for d in (1, 4, 12):
        ours, theirs = (m.Halton(d, scramble=False) for m in (qmc, known_qmc))
        assert (np.asarray(ours.random(100)) == theirs.random(100)).all()
        ours.fast_forward(1000), theirs.fast_forward(1000)
        assert (np.asarray(ours.random(9)) == theirs.random(9)).all()


def cells(x, n):
    return sorted(np.floor(np.asarray(x) * n).astype(int).tolist())


def test_scrambles_keep_the_points_even():
    for engine in (qmc.Sobol(3, rng=1), qmc.LatinHypercube(3, rng=1)):
        x = engine.random(64)
        assert all(cells(x[:, i], 64) == list(range(64)) for i in range(3))
        assert (x.min() >= 0) & (x.max() < 1)
    x = qmc.Sobol(2, rng=5).random(64)
    # every box of 1/8 by 1/8 has one point
    assert len(set(zip(*(np.floor(np.asarray(x[:, i]) * 8).astype(int) for i in (0, 1))))) == 64
    for make in (qmc.Sobol, qmc.Halton):
        even, chance = qmc.discrepancy(make(3, rng=2).random(128)), qmc.discrepancy(
            rng.random((128, 3)))
        assert even < chance / 10
        first, second, other = (make(3, rng=k).random(4) for k in (7, 7, 8))
        assert (first == second).all() and (first != other).any()
    x = qmc.LatinHypercube(4, strength=2, rng=0).random(25)
    assert all(cells(x[:, i], 25) == list(range(25)) for i in range(4))
    for i in range(3):
        pairs = np.floor(np.asarray(x)[:, [i, i + 1]] * 5).astype(int)
        assert len(set(map(tuple, pairs.tolist()))) == 25


def test_engines_under_jit():
    for make in (qmc.Sobol, qmc.Halton, qmc.LatinHypercube):
        jitted = ft.jit(lambda key, make=make: make(2, rng=key).random(8))(ft.random.key(3))
        np.testing.assert_allclose(jitted, make(2, rng=3).random(8), rtol=1e-15)
    with pytest.raises(ArgumentError, match="the key is traced"):
        ft.jit(lambda key: qmc.PoissonDisk(2, rng=key).random(3))(ft.random.key(0))
    with ft.default_dtypes("float32"):
        x = qmc.Sobol(2, scramble=False).fast_forward(1).random(2**10)
    assert x.dtype == np.float32 and x.max() < 1


def test_state():
    engine = qmc.Halton(2, rng=0)
    first = engine.random(3)
    assert engine.num_generated == 3 and (engine.reset().random(3) == first).all()
    later = qmc.Halton(2, rng=0).fast_forward(2).random(1)
    assert (later[0] == first[2]).all()
    assert set(np.asarray(qmc.Sobol(2, rng=0).integers(2, u_bounds=5, n=32)).ravel()) == {2, 3, 4}
    assert np.asarray(qmc.Sobol(2, rng=0).integers(2, n=32, endpoint=True)).max() == 2
    with pytest.raises(ArgumentError, match="power of 2"):
        qmc.Sobol(2).fast_forward(3).random_base2(2)
    with pytest.raises(ArgumentError, match="no more"):
        qmc.Sobol(1, bits=3).random(16)
    with pytest.raises(ArgumentError, match=r"random\(25\)"):
        qmc.LatinHypercube(2, strength=2).random(24)
    with pytest.raises(ArgumentError, match="random-cd"):
        qmc.Sobol(2, optimization="lloyd")
    with pytest.raises(ArgumentError, match="rng is"):
        qmc.Sobol(2, rng=np.random.default_rng(0))
    with pytest.warns(UserWarning, match="power of 2"):
        qmc.Sobol(2).random(3)


def test_discrepancies():
    for method in ("CD", "WD", "MD", "L2-star"):
        for iterative in (False, True):
            np.testing.assert_allclose(
                qmc.discrepancy(X, method=method, iterative=iterative),
                known_qmc.discrepancy(X, method=method, iterative=iterative), rtol=1e-10)
        check_grads(lambda x, m=method: qmc.discrepancy(x, method=m), (X[:4],), 1, modes=["rev"])
    first = known_qmc.discrepancy(X[1:], iterative=True)
    np.testing.assert_allclose(qmc.update_discrepancy(X[0], X[1:], first),
                               known_qmc.update_discrepancy(X[0], X[1:], first), rtol=1e-12)
    for method in ("mindist", "mst"):
        np.testing.assert_allclose(qmc.geometric_discrepancy(X, method, "cityblock"),
                                   known_qmc.geometric_discrepancy(X, method, "cityblock"))
    box = [-1, 2, 3], [4, 5, 6]
    np.testing.assert_allclose(qmc.scale(X, *box), known_qmc.scale(X, *box))
    np.testing.assert_allclose(qmc.scale(qmc.scale(X, *box), *box, reverse=True), X)
    plain, better = (qmc.LatinHypercube(2, rng=0, optimization=o).random(16)
                     for o in (None, "random-cd"))
    assert qmc.discrepancy(better) < qmc.discrepancy(plain)
    assert all(cells(better[:, i], 16) == list(range(16)) for i in (0, 1))
    with pytest.raises(ArgumentError, match="outside of the unit cube"):
        qmc.discrepancy(X + 1)
    with pytest.raises(ShapeError):
        qmc.scale(X, [0, 0], [1, 1])


def test_other_laws():
    for inverse in (True, False):
        for d in (2, 3):
            covariance = np.cov(rng.normal(size=(d, 10)))
            size = d if inverse else 2 * -(-d // 2)
            found, known = (m.MultivariateNormalQMC(
                np.arange(d), covariance, inv_transform=inverse, engine=m.Sobol(
                    size, scramble=False).fast_forward(5)).random(8) for m in (qmc, known_qmc))
            np.testing.assert_allclose(found, known, rtol=1e-7, atol=1e-9)
    found, known = (m.MultinomialQMC([0.2, 0.3, 0.5], 16, engine=m.Sobol(
        1, scramble=False)).random(3) for m in (qmc, known_qmc))
    assert (np.asarray(found) == known).all()
    points = qmc.PoissonDisk(2, radius=0.2, rng=0)
    x = points.fill_space()
    assert 15 < x.shape[0] < 30 and qmc.geometric_discrepancy(x) >= 0.2
    assert (points.reset().random(5) == x[:5]).all() and points.num_generated == 5
    flat = qmc.PoissonDisk(2, radius=0.5, hypersphere="surface", l_bounds=[-1, -1], rng=1)
    assert np.asarray(flat.random(9)).min() < 0
    with pytest.raises(ArgumentError, match="add up to 1"):
        qmc.MultinomialQMC([0.2, 0.3], 4)
    with pytest.raises(ArgumentError, match="negative eigenvalue"):
        qmc.MultivariateNormalQMC([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])
