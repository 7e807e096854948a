"""Distributions that users state themselves, beside the same ones in SciPy."""

import numpy as np
import pytest
import scipy.stats as theirs

import functrans as ft
import functrans.numpy as jnp
from functrans.scipy import stats
from functrans.test_util import check_grads

Q = np.array([1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])


class ByDensity(stats.rv_continuous):
    def _pdf(self, x, c):
        return c * jnp.exp(-c * x)


class ByLogarithm(stats.rv_continuous):
    def _logpdf(self, x):
        return -0.5 * (x - 3.0) ** 2 - 0.5 * np.log(2 * np.pi)


class ByFunction(stats.rv_continuous):
    def _cdf(self, x, c):
        return -jnp.expm1(-c * x)


class ByProbability(stats.rv_discrete):
    def _pmf(self, k, mu):
        return jnp.exp(k * jnp.log(mu) - mu - ft.lax.lgamma(k + 1.0))


C = np.float64(1.7)
PLACE = (np.float64(0.3), np.float64(2.0))
CASES = {
    "function": (ByFunction(a=0.0, shapes="c"), (C,), theirs.expon(0.3, 2 / 1.7)),
    "logarithm": (ByLogarithm(name="far"), (), theirs.norm(0.3 + 6, 2)),
    "density": (ByDensity(a=0.0), (C,), theirs.expon(0.3, 2 / 1.7))}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", CASES)
def test_the_whole_interface_follows(case):
    family, shapes, golden = CASES[case]
    args = (*shapes, *PLACE)
    x = golden.ppf(Q)
    upper = 1e-8 if case == "function" else 1e-10
    for method in ("pdf", "logpdf", "cdf", "sf", "logcdf"):
        np.testing.assert_allclose(ft.jit(getattr(family, method))(x, *args),
                                   getattr(golden, method)(x), rtol=upper, err_msg=method)
    np.testing.assert_allclose(family.ppf(Q, *args), x, rtol=1e-9)
    np.testing.assert_allclose(family.isf(Q, *args), golden.isf(Q), rtol=1e-8)
    np.testing.assert_allclose(family.stats(*args, moments="mvsk"), golden.stats("mvsk"),
                               rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(family.entropy(*args), golden.entropy(), rtol=1e-8)
    check_grads(family.logpdf, (x[1:4], *args), 1, atol=1e-4, rtol=1e-4)
    check_grads(family.ppf, (Q[1:4], *args), 1, modes=["fwd"], atol=1e-4, rtol=1e-4)
    drawn = family.rvs(ft.random.key(0), *map(np.float32, args), shape=(2000,))
    np.testing.assert_allclose(np.mean(np.asarray(drawn)[:, None] <= x[1:4], 0), Q[1:4], atol=0.04)
    frozen = family(*args)
    np.testing.assert_allclose(frozen.cdf(x), golden.cdf(x), rtol=1e-9)


def test_probabilities():
    family = ByProbability(name="mine")
    k = np.arange(-1.0, 9)
    mu = np.float64(2.5)
    for method in ("pmf", "logpmf", "cdf", "sf"):
        np.testing.assert_allclose(getattr(family, method)(k, mu),
                                   getattr(theirs.poisson, method)(k, 2.5), rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(family.ppf(Q, mu), theirs.poisson.ppf(Q, 2.5))
    np.testing.assert_allclose(family.stats(mu), (2.5, 2.5))
    drawn = np.asarray(family.rvs(ft.random.key(0), np.float32(2.5), shape=(4000,)))
    assert drawn.mean() == pytest.approx(2.5, abs=0.1)


def test_tables_of_values():
    xk, pk = [1.0, 2.5, 4.0], [0.2, 0.3, 0.5]
    ours = stats.rv_discrete(values=(np.array(xk), np.array(pk)))
    golden = theirs.rv_discrete(values=(xk, pk))
    x = np.array([0.0, 1.0, 2.0, 2.5, 4.0, 5.0])
    for method in ("pmf", "cdf", "sf"):
        np.testing.assert_allclose(getattr(ours, method)(x), getattr(golden, method)(x), atol=1e-15)
    np.testing.assert_array_equal(ours.ppf(Q), golden.ppf(Q))
    for method in ("mean", "var", "entropy"):
        np.testing.assert_allclose(getattr(ours, method)(), getattr(golden, method)())
    np.testing.assert_allclose(ours.expect(lambda x: x**3), golden.expect(lambda x: x**3))
    drawn = np.asarray(ours.rvs(ft.random.key(1), shape=(4000,)))
    assert np.mean(drawn == 4.0) == pytest.approx(0.5, abs=0.04)
    with pytest.raises(ValueError, match="probability"):
        stats.rv_discrete(values=([1, 2], [1.0]))


def test_histograms():
    counts, edges = np.array([1.0, 4.0, 2.0, 0.0, 3.0]), np.array([0.0, 1.0, 1.5, 3.0, 4.0, 6.0])
    for density in (True, False):
        ours = stats.rv_histogram((counts, edges), density=density)
        golden = theirs.rv_histogram((counts, edges), density=density)
        x = np.array([-1.0, 0.3, 1.2, 2.0, 3.5, 5.0, 7.0])
        for method in ("pdf", "cdf", "sf"):
            np.testing.assert_allclose(getattr(ours, method)(x), getattr(golden, method)(x),
                                       atol=1e-15)
        np.testing.assert_allclose(ours.ppf(Q), golden.ppf(Q))
        for method in ("mean", "var"):
            np.testing.assert_allclose(getattr(ours, method)(), getattr(golden, method)())
    with pytest.raises(ValueError, match="one edge more"):
        stats.rv_histogram((counts, edges[1:]))


def test_what_newcomers_do_wrong():
    class Nothing(stats.rv_continuous):
        pass

    with pytest.raises(ValueError, match="_pdf"):
        Nothing()
    with pytest.raises(AttributeError, match="pdff"):
        print(CASES["density"][0].pdff)
    assert np.isnan(float(CASES["density"][0].pdf(1.0, -1.0)))
    assert CASES["density"][0].shapes == "c" and CASES["density"][0].numargs == 1


def test_draws_are_called_as_scipy_calls_them():
    key = ft.random.key(3)
    for drawn in (stats.norm.rvs(loc=1.0, size=4, random_state=key),
                  stats.norm(1.0).rvs(4, random_state=3),
                  stats.norm.rvs(1.0, random_state=3, shape=(4,)),
                  stats.norm(loc=1.0).rvs(key, 4)):
        np.testing.assert_array_equal(drawn, stats.norm.rvs(key, 1.0, shape=(4,)))
    np.testing.assert_array_equal(stats.dirichlet.rvs(np.ones(3), size=(2,), random_state=3),
                                  stats.dirichlet.rvs(key, np.ones(3), (2,)))
    with pytest.raises(ft.errors.ArgumentError, match="no key"):
        stats.norm.rvs(size=3)


def test_heavy_tails_have_all_digits_far_out():
    class Lorentz(stats.rv_continuous):
        def _pdf(self, x):
            return 1 / (np.pi * (1 + x * x))

    z = np.array([1e3, 1e10, 1e17, 1e20, 1e100])
    np.testing.assert_allclose(Lorentz(name="lorentz").sf(z), np.arctan(1 / z) / np.pi, rtol=1e-10)
    q = np.array([1e-10, 1e-30, 1e-100, 1e-300])
    far = stats.rel_breitwigner.isf(q, np.float64(2.0))
    np.testing.assert_allclose(far / far[0], (q / q[0]) ** (-1 / 3), rtol=1e-6)
    np.testing.assert_allclose(stats.rel_breitwigner.logsf(far, np.float64(2.0)), np.log(q))
