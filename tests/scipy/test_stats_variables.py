"""Random variables as objects, beside SciPy's."""

import numpy as np
import pytest
import scipy.stats as theirs

import functrans as ft
from functrans.scipy import stats
from functrans.test_util import check_grads

P = np.array([1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])
F = np.float64


def pairs(s):
    """The same variables of a module with SciPy's names."""
    normal = s.Normal(mu=F(0.3), sigma=F(1.7))
    return {"normal": normal, "placed": -2.0 * normal + F(1.0),
            "truncated": s.truncate(normal, F(-1.0), F(2.5)), "far": s.truncate(normal, F(9.0)),
            "order": s.order_statistic(normal, r=2, n=5), "exp": s.exp(s.Normal(sigma=F(0.5))),
            "log": s.log(s.Uniform(a=F(0.5), b=F(2.0))), "abs": s.abs(normal),
            "logistic": s.Logistic() * F(2.0),
            "mixture": s.Mixture([normal, s.Normal(mu=F(5.0), sigma=F(0.5))],
                                 weights=np.array([0.3, 0.7]))}


OURS = pairs(stats)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", OURS)
def test_beside_scipy(name):
    ours, golden = OURS[name], pairs(theirs)[name]
    x = np.asarray(ours.icdf(P))
    if name == "far":  # where SciPy's root is that of a difference
        golden = theirs.truncnorm(8.7 / 1.7, np.inf, 0.3, 1.7)
        np.testing.assert_allclose(x, golden.ppf(P), rtol=1e-9)
        np.testing.assert_allclose(ours.iccdf(P), golden.isf(P), rtol=1e-9)
        return
    np.testing.assert_allclose(x, golden.icdf(P), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.iccdf(P), golden.iccdf(P), rtol=1e-8, atol=1e-8)
    for method in ("pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf"):
        np.testing.assert_allclose(getattr(ours, method)(x), getattr(golden, method)(x), rtol=1e-7,
                                   atol=1e-12, err_msg=method)
    for method in ("mean", "variance", "skewness", "kurtosis", "median", "entropy"):
        np.testing.assert_allclose(getattr(ours, method)(), getattr(golden, method)(), rtol=1e-6,
                                   atol=1e-7, err_msg=method)
    np.testing.assert_allclose(ours.support(), golden.support())
    np.testing.assert_allclose(ours.cdf(x[1], x[3]), golden.cdf(x[1], x[3]), rtol=1e-7)
    np.testing.assert_allclose(ft.jit(lambda v, at: v.logpdf(at))(ours, x), ours.logpdf(x),
                               rtol=1e-10)
    drawn = np.asarray(ours.sample(2000, rng=0))
    np.testing.assert_allclose(np.mean(drawn[:, None] <= x[1:4], 0), P[1:4], atol=0.04)


def test_derivatives_in_parameters():
    def density(mu, sigma, at):
        normal = stats.Normal(mu=mu, sigma=sigma)
        both = stats.Mixture([normal, stats.abs(normal)])
        return both.logpdf(at) + stats.truncate(normal, ub=2.0).logcdf(at)

    check_grads(density, (F(0.3), F(1.7), np.array([0.2, 1.1])), 1)
    check_grads(lambda p: OURS["mixture"].icdf(p), (P[1:4],), 1, modes=["fwd"])


def test_families_and_mistakes():
    Gamma = stats.make_distribution(stats.gamma)
    np.testing.assert_allclose(Gamma(a=F(2.5)).cdf(F(1.0)), theirs.gamma.cdf(1.0, 2.5))
    binomial = stats.Binomial(n=5, p=F(0.3))
    np.testing.assert_allclose(binomial.pmf(np.arange(6.0)), theirs.binom.pmf(np.arange(6), 5, 0.3))
    assert float(OURS["normal"].mode()) == pytest.approx(0.3, abs=1e-6)
    with pytest.raises(ValueError, match="by name"):
        Gamma(b=2.0)
    with pytest.raises(ValueError, match="key"):
        OURS["normal"].sample(3)
    with pytest.raises(ValueError, match="random variable"):
        stats.exp(2.0)
    with pytest.raises(ValueError, match="weight"):
        stats.Mixture([OURS["normal"]], weights=[0.5, 0.5])
