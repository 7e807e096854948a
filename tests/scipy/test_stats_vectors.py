"""Distributions of vectors, tables and matrices beside SciPy's, and their random numbers."""

import numpy as np
import pytest
import scipy.stats as theirs

import functrans as ft
from functrans.scipy import stats
from functrans.test_util import check_grads

RNG = np.random.default_rng(0)
KEY = ft.random.key(0)


def positive(n):
    a = RNG.normal(size=(n, n))
    return a @ a.T + n * np.eye(n)


def test_counts_of_several_kinds():
    x, alpha, m = np.array([2.0, 1.0, 3.0]), np.array([0.5, 2.0, 1.5]), np.array([5.0, 4.0, 7.0])
    for ours, golden, args in ((stats.dirichlet_multinomial, theirs.dirichlet_multinomial, alpha),
                               (stats.multivariate_hypergeom, theirs.multivariate_hypergeom, m)):
        whole = args if args is alpha else args.astype(int)
        np.testing.assert_allclose(ours.logpmf(x, args, 6), golden.logpmf(x.astype(int), whole, 6),
                                   rtol=1e-12)
        assert float(ours.pmf(x, args, 7)) == 0
        for method in ("mean", "var", "cov"):
            np.testing.assert_allclose(getattr(ours, method)(args, 6),
                                       getattr(golden, method)(whole, 6), rtol=1e-12)
        drawn = np.asarray(ours.rvs(KEY, args.astype(np.float32), 6, (4000,)))
        assert (drawn.sum(-1) == 6).all()
        np.testing.assert_allclose(drawn.mean(0), golden.mean(whole, 6), atol=0.12)
        np.testing.assert_allclose(np.cov(drawn.T), golden.cov(whole, 6), atol=0.25)
    check_grads(lambda a: stats.dirichlet_multinomial.logpmf(x, a, 6.0), (alpha,), 1)


def test_matrices():
    x, scale, columns = positive(3), positive(3), positive(2)
    df = np.float64(6.5)
    ours, golden = stats.invwishart, theirs.invwishart
    np.testing.assert_allclose(ours.logpdf(x, df, scale), golden.logpdf(x, 6.5, scale))
    np.testing.assert_allclose(ours.mean(df, scale), golden.mean(6.5, scale))
    np.testing.assert_allclose(ours.mode(df, scale), golden.mode(6.5, scale))
    np.testing.assert_allclose(ours.var(df, scale), golden.var(6.5, scale))
    drawn = np.asarray(ours.rvs(KEY, 12.0, scale.astype(np.float32), 4000))
    np.testing.assert_allclose(drawn.mean(0), golden.mean(12, scale), atol=0.05)
    check_grads(lambda s: ours.logpdf(x, df, s @ s.T + np.eye(3)), (scale,), 1)

    at, mean = RNG.normal(size=(3, 2)), RNG.normal(size=(3, 2))
    np.testing.assert_allclose(stats.matrix_t.logpdf(at, mean, scale, columns, df),
                               theirs.matrix_t.logpdf(at, mean, scale, columns, 6.5))
    drawn = np.asarray(stats.matrix_t.rvs(KEY, mean, scale, columns, 9.0, 4000))
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.3)
    np.testing.assert_allclose(np.cov(drawn[:, :, 0].T), scale * columns[0, 0] / 7, rtol=0.3,
                               atol=0.6)


def test_normal_inverse_gamma():
    ours, golden = stats.normal_inverse_gamma, theirs.normal_inverse_gamma
    args = tuple(map(np.float64, (0.3, 1.7, 2.5, 3.1)))
    x, s2 = np.array([0.2, -1.0]), np.array([0.5, 2.0])
    np.testing.assert_allclose(ours.logpdf(x, s2, *args), golden.logpdf(x, s2, *args))
    np.testing.assert_allclose(ours.mean(*args), golden.mean(*args))
    np.testing.assert_allclose(ours.var(*args), golden.var(*args))
    drawn = ours.rvs(KEY, *map(np.float32, args), shape=(20000,))
    np.testing.assert_allclose([np.mean(v) for v in drawn], ours.mean(*args), rtol=0.1)
    assert np.isnan(float(ours.logpdf(0.0, 1.0, 0.0, -1.0)))
    check_grads(ours.logpdf, (np.float64(0.2), np.float64(0.5), *args), 1)


def test_correlations_and_tables():
    eigs = np.array([0.3, 0.8, 1.2, 1.7])
    c = np.asarray(stats.random_correlation.rvs(KEY, eigs))
    np.testing.assert_allclose(np.linalg.eigvalsh(c), eigs, atol=1e-6)
    np.testing.assert_array_equal(np.diagonal(c), 1)
    assert np.asarray(ft.jit(lambda e: stats.random_correlation.rvs(KEY, e))(eigs)) == \
        pytest.approx(c, abs=1e-6)
    row, col = [3, 5], [2, 4, 2]
    x = np.array([[1, 2, 0], [1, 2, 2]])
    np.testing.assert_allclose(stats.random_table.logpmf(x.astype(float), row, col),
                               theirs.random_table.logpmf(x, row, col))
    np.testing.assert_allclose(stats.random_table.mean(row, col),
                               theirs.random_table.mean(row, col))
    drawn = np.asarray(stats.random_table.rvs(KEY, row, col, (4000,)))
    assert (drawn.sum(-1) == row).all() and (drawn.sum(-2) == col).all()
    np.testing.assert_allclose(drawn.mean(0), theirs.random_table.mean(row, col), atol=0.06)
    with pytest.raises(ValueError, match="observations"):
        stats.random_table.rvs(KEY, [1, 2], [4])


def test_directions():
    mu = np.array([0.6, 0.0, 0.8])
    x = np.asarray(stats.uniform_direction.rvs(KEY, 3, (2000,)), np.float64)
    np.testing.assert_allclose((x**2).sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(x.mean(0), 0, atol=0.06)
    ours = stats.vonmises_fisher
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    for kappa in (0.5, 30.0):
        golden = theirs.vonmises_fisher(mu, kappa)
        np.testing.assert_allclose(ours.logpdf(unit[:9], mu, np.float64(kappa)),
                                   golden.logpdf(unit[:9]), rtol=1e-9)
        np.testing.assert_allclose(ours.entropy(mu, np.float64(kappa)), golden.entropy())
    drawn = np.asarray(ours.rvs(KEY, mu, 30.0, (4000,)), np.float64)
    found, kappa = ours.fit(drawn)
    np.testing.assert_allclose(found, mu, atol=0.02)
    assert float(kappa) == pytest.approx(30, rel=0.06)
    golden = theirs.vonmises_fisher.fit(drawn / np.linalg.norm(drawn, axis=-1, keepdims=True))
    assert float(kappa) == pytest.approx(golden[1], rel=1e-3)


def test_covariances():
    matrix, x, mean = positive(3), RNG.normal(size=(4, 3)), RNG.normal(size=3)
    values, vectors = np.linalg.eigh(matrix)
    made = {"precision": stats.Covariance.from_precision(np.linalg.inv(matrix)),
            "cholesky": stats.Covariance.from_cholesky(np.linalg.cholesky(matrix)),
            "eigen": stats.Covariance.from_eigendecomposition((values, vectors))}
    for cov in made.values():
        np.testing.assert_allclose(cov.covariance, matrix, rtol=1e-9)
        np.testing.assert_allclose(cov.log_pdet, np.linalg.slogdet(matrix)[1])
        np.testing.assert_allclose(ft.jit(stats.multivariate_normal.logpdf)(x, mean, cov),
                                   theirs.multivariate_normal.logpdf(x, mean, matrix))
        np.testing.assert_allclose(cov.colorize(cov.whiten(x)), x, rtol=1e-9)
        assert cov.shape == (3, 3) and int(cov.rank) == 3
    flat = stats.Covariance.from_diagonal(np.array([1.0, 0.0, 4.0]))
    golden = theirs.Covariance.from_diagonal([1.0, 0.0, 4.0])
    np.testing.assert_allclose(flat.log_pdet, golden.log_pdet)
    np.testing.assert_allclose(flat.covariance, golden.covariance)
    np.testing.assert_allclose(stats.multivariate_normal.entropy(mean, flat),
                               theirs.multivariate_normal.entropy(mean, golden))
    drawn = np.asarray(stats.multivariate_normal.rvs(KEY, mean, made["cholesky"], (8000,)))
    np.testing.assert_allclose(np.cov(drawn.T), matrix, rtol=0.15, atol=0.3)
    with pytest.raises(ValueError, match="shape"):
        stats.Covariance.from_cholesky(np.zeros((2, 3)))
