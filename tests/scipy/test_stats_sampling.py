"""Generators of scipy.stats.sampling: quantiles to the resolution, draws and errors."""

import math

import numpy as np
import pytest
import scipy.stats
import scipy.stats.sampling

import functrans as ft
from functrans import numpy as jnp
from functrans.scipy.stats import sampling


class Normal:
    """Not normalized, of arrays."""

    def pdf(self, x):
        return np.exp(-0.5 * x * x)

    def dpdf(self, x):
        return -x * self.pdf(x)


class FloatsAlone(Normal):
    def pdf(self, x):
        return math.exp(-0.5 * x * x)


class Full:
    """A distribution of SciPy with the derivative of its density by differences."""

    def __init__(self, family):
        self.pdf, self.cdf, self.logpdf = family.pdf, family.cdf, family.logpdf

    def dpdf(self, x):
        return (self.pdf(x + 1e-6) - self.pdf(x - 1e-6)) / 2e-6


FAMILIES = {"normal": scipy.stats.norm(), "far": scipy.stats.norm(50, 0.5),
            "cauchy": scipy.stats.cauchy(), "gamma": scipy.stats.gamma(2.5),
            "logistic": scipy.stats.logistic()}
U = np.linspace(1e-8, 1 - 1e-8, 5001)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("order", "resolution"), [(3, 1e-7), (5, 1e-10), (9, 1e-12)])
def test_polynomials_keep_the_resolution(name, order, resolution):
    family = FAMILIES[name]
    made = sampling.NumericalInversePolynomial(Full(family), order=order, u_resolution=resolution)
    x = np.asarray(made.ppf(U))
    assert np.max(np.abs(family.cdf(x) - U)) <= resolution
    assert np.all(np.diff(x) >= 0)
    assert np.max(np.abs(np.asarray(made.cdf(x)) - U)) <= 2 * resolution
    assert float(made.u_error(1000).max_error) <= resolution


@pytest.mark.parametrize(("order", "resolution"), [(1, 1e-6), (3, 1e-12), (5, 1e-9)])
@pytest.mark.parametrize("name", ["normal", "logistic"])
def test_hermite_polynomials_keep_the_resolution(name, order, resolution):
    family = FAMILIES[name]
    made = sampling.NumericalInverseHermite(Full(family), order=order, u_resolution=resolution)
    assert np.max(np.abs(family.cdf(np.asarray(made.ppf(U))) - U)) <= resolution
    assert made.midpoint_error <= resolution


def test_domains_cut():
    true = scipy.stats.truncnorm(0, 2)
    for made in (sampling.NumericalInversePolynomial(Normal(), domain=(0, 2)),
                 sampling.NumericalInverseHermite(Full(scipy.stats.norm()), domain=(0, 2))):
        np.testing.assert_allclose(made.ppf(U), true.ppf(U), atol=1e-9)
        np.testing.assert_array_equal(made.ppf([-0.5, 0.0, 1.0, 2.0]), [np.nan, 0, 2, np.nan])


GENERATORS = {
    "polynomial": lambda **k: sampling.NumericalInversePolynomial(Normal(), **k),
    "hermite": lambda **k: sampling.NumericalInverseHermite(Full(scipy.stats.norm()), **k),
    "squares": lambda **k: sampling.TransformedDensityRejection(Normal(), **k),
    "logarithm": lambda **k: sampling.TransformedDensityRejection(Normal(), c=0.0, **k),
    "few points": lambda **k: sampling.TransformedDensityRejection(
        Normal(), construction_points=[-1, 0.5], use_dars=False, **k),
    "floats": lambda **k: sampling.TransformedDensityRejection(FloatsAlone(), **k),
    "simple": lambda **k: sampling.SimpleRatioUniforms(Normal(), pdf_area=2.5067, **k),
    "cdf at mode": lambda **k: sampling.SimpleRatioUniforms(
        Normal(), mode=0, pdf_area=2.5067, cdf_at_mode=0.5, **k),
    "ratios": lambda **k: sampling.RatioUniforms(
        Normal().pdf, umax=1, vmin=-0.858, vmax=0.858, **k),
    "family": lambda **k: sampling.FastGeneratorInversion(ft.scipy.stats.norm(), **k),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_draws_are_of_the_distribution(name):
    made = GENERATORS[name](random_state=3)
    x = np.asarray(made.rvs((100, 100)), np.float64)
    # the distance of Kolmogorov is above 1.95 / sqrt(n) once in 1000
    assert scipy.stats.kstest(x.ravel(), "norm").statistic < 1.95 / 100
    assert abs(x.mean()) < 0.035 and abs(x.var() - 1) < 0.05
    assert not np.array_equal(made.rvs((100, 100)), x)
    made.set_random_state(3)
    np.testing.assert_array_equal(made.rvs((100, 100)), x.astype(np.float32))


@pytest.mark.parametrize("name", ["polynomial", "squares", "floats", "ratios"])
def test_generators_are_trees(name):
    made, key = GENERATORS[name](random_state=0), ft.random.key(5)
    alone = made.rvs(4, random_state=key)
    np.testing.assert_allclose(ft.jit(lambda g, k: g.rvs(4, random_state=k))(made, key), alone,
                               rtol=1e-6)
    keys = ft.random.split(key, 3)
    np.testing.assert_allclose(ft.vmap(lambda k: made.rvs(4, random_state=k))(keys),
                               [made.rvs(4, random_state=k) for k in keys], rtol=1e-6)


def test_hats_are_above_and_areas_are_theirs():
    for c in (0.0, -0.5):
        made = sampling.TransformedDensityRejection(Normal(), c=c)
        beside = scipy.stats.sampling.TransformedDensityRejection(Normal(), c=c)
        assert made.squeeze_area < math.sqrt(2 * math.pi) < made.hat_area
        assert made.squeeze_hat_ratio >= 0.99
        np.testing.assert_allclose(made.ppf_hat([0.1, 0.5, 0.9]),
                                   beside.ppf_hat([0.1, 0.5, 0.9]), atol=0.02)


def test_tables_of_whole_numbers():
    p = np.array([0.1, 0.0, 0.2, 0.7])
    for made in (sampling.DiscreteAliasUrn(p, domain=(3, 7), random_state=1),
                 sampling.DiscreteAliasUrn(p * 5, domain=(3, 7), urn_factor=2.5),
                 sampling.DiscreteGuideTable(p, domain=(3, 7))):
        k = np.asarray(ft.jit(lambda g: g.rvs(20000))(made)) - 3
        np.testing.assert_allclose(np.bincount(k, minlength=4) / 20000, p, atol=0.012)
        assert not np.any(k == 1)
    beside = scipy.stats.sampling.DiscreteGuideTable(p, domain=(3, 7))
    u = np.array([-1, 0, 0.05, 0.2, 0.31, 1, 2])
    np.testing.assert_array_equal(made.ppf(u), beside.ppf(u))
    binomial = scipy.stats.binom(9, 0.3)
    made = sampling.DiscreteGuideTable(binomial)
    np.testing.assert_array_equal(made.ppf([0.1, 0.5, 0.9]), binomial.ppf([0.1, 0.5, 0.9]))


def test_families_with_places():
    made = sampling.FastGeneratorInversion(ft.scipy.stats.gamma(2.5, loc=1.0, scale=2.0))
    np.testing.assert_allclose(made.ppf(U), scipy.stats.gamma(2.5, 1, 2).ppf(U), rtol=1e-5)
    assert float(made.evaluate_error(1000)[0]) < 1e-10
    made.loc = 0.0
    assert [float(x) for x in made.support()] == [0.0, math.inf]
    cut = sampling.FastGeneratorInversion(ft.scipy.stats.norm(), domain=(0, 1))
    assert max(float(x) for x in cut.evaluate_error(1000, x_error=True)) < 1e-9
    assert float(cut.u_error(1000).max_error) < 1e-10


def test_quasi_random_quantiles():
    made = GENERATORS["polynomial"]()
    assert made.qrvs().shape == () and made.qrvs((2, 3), d=2).shape == (2, 3, 2)
    x = made.qrvs(512, qmc_engine=ft.scipy.stats.qmc.Sobol(1, rng=0))
    assert abs(float(jnp.mean(x))) < 0.02


class Two(Normal):
    def pdf(self, x):
        return np.exp(-0.5 * (x - 3) ** 2) + np.exp(-0.5 * (x + 3) ** 2)

    def dpdf(self, x):
        return -(x - 3) * np.exp(-0.5 * (x - 3) ** 2) - (x + 3) * np.exp(-0.5 * (x + 3) ** 2)


def test_what_is_refused():
    for make in (lambda: sampling.TransformedDensityRejection(Two()),
                 lambda: sampling.TransformedDensityRejection(Normal(), construction_points=[1.0]),
                 lambda: sampling.SimpleRatioUniforms(Normal(), pdf_area=0.5),
                 lambda: sampling.NumericalInversePolynomial(Normal(), domain=(3, 1)),
                 lambda: sampling.NumericalInversePolynomial(Full(scipy.stats.uniform(5, -1))),
                 lambda: sampling.DiscreteAliasUrn([-1.0, 2.0])):
        with pytest.raises(sampling.UNURANError):
            make()
    for make in (lambda: sampling.TransformedDensityRejection(Normal(), c=0.3),
                 lambda: sampling.NumericalInversePolynomial(Normal(), order=2),
                 lambda: sampling.NumericalInversePolynomial(Normal(), u_resolution=1.0),
                 lambda: sampling.NumericalInversePolynomial(object()),
                 lambda: sampling.NumericalInversePolynomial(Normal()).u_error(),
                 lambda: sampling.NumericalInverseHermite(Normal()),
                 lambda: sampling.DiscreteGuideTable([0.0, 0.0]),
                 lambda: sampling.FastGeneratorInversion(scipy.stats.norm()),
                 lambda: sampling.RatioUniforms(Normal().pdf, umax=1, vmin=1, vmax=0)):
        with pytest.raises(ft.errors.ArgumentError):
            make()
