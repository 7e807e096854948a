"""functrans.scipy.special against mpmath, with derivatives."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special

import functrans as ft
from functrans.scipy import special
from functrans.test_util import check_grads

ONE = {
    "erf": (mpmath.erf, [-3.0, -0.2, 0.0, 1e-5, 0.7, 4.0]),
    "erfc": (mpmath.erfc, [-3.0, 0.0, 0.7, 4.0, 12.0]),
    "erfinv": (mpmath.erfinv, [-0.9, -0.1, 0.0, 0.5, 0.99]),
    "gammaln": (lambda x: mpmath.log(abs(mpmath.gamma(x))), [0.1, 0.5, 3.3, 20.0, -0.5, -2.3]),
    "digamma": (mpmath.digamma, [0.1, 0.5, 3.3, 20.0, -0.5]),
    "gamma": (mpmath.gamma, [0.1, 0.5, 3.0, 7.5, -0.5, -1.5]),
    "factorial": (mpmath.factorial, [0.5, 1.0, 5.0, 2.5]),
    "expit": (lambda x: 1 / (1 + mpmath.exp(-x)), [-30.0, -1.0, 0.0, 2.0, 30.0]),
    "logit": (lambda x: mpmath.log(x / (1 - x)), [0.01, 0.3, 0.9]),
    "ndtr": (mpmath.ncdf, [-10.0, -1.0, 0.0, 0.3, 5.0]),
    "log_ndtr": (lambda x: mpmath.log(mpmath.ncdf(x)),
                 [-1000.0, -50.0, -20.1, -19.9, -8.0, -1.0, 0.0, 1.0, 3.9, 4.1, 9.0]),
    "i0": (lambda x: mpmath.besseli(0, x), [-2.0, 0.0, 0.5, 9.0]),
    "i1": (lambda x: mpmath.besseli(1, x), [-2.0, 0.0, 0.5, 9.0]),
    "i0e": (lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), [-2.0, 0.5, 90.0]),
    "i1e": (lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), [-2.0, 0.5, 90.0]),
    "entr": (lambda x: -x * mpmath.log(x), [0.1, 1.0, 3.0]),
    "zeta": (mpmath.zeta, [1.5, 2.0, 7.0]),
}
TWO = {
    "betaln": (lambda a, b: mpmath.log(mpmath.beta(a, b)), [(0.5, 2.0), (3.0, 4.0)]),
    "beta": (mpmath.beta, [(0.5, 2.0), (3.0, 4.0)]),
    "gammainc": (lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
                 [(0.5, 0.2), (2.0, 3.0), (30.0, 25.0)]),
    "gammaincc": (lambda a, x: mpmath.gammainc(a, x, regularized=True),
                  [(0.5, 0.2), (2.0, 3.0), (3.0, 40.0)]),
    "xlogy": (lambda x, y: x * mpmath.log(y), [(0.5, 2.0), (-3.0, 4.0)]),
    "xlog1py": (lambda x, y: x * mpmath.log(1 + y), [(0.5, 2.0), (-3.0, -0.5)]),
    "rel_entr": (lambda p, q: p * mpmath.log(p / q), [(0.5, 2.0), (3.0, 4.0)]),
    "kl_div": (lambda p, q: p * mpmath.log(p / q) - p + q, [(0.5, 2.0), (3.0, 4.0)]),
    "zeta": (mpmath.zeta, [(2.5, 0.5), (4.0, 3.0)]),
    "boxcox": (lambda x, y: (x**y - 1) / y, [(0.5, 2.0), (3.0, -1.5)]),
    "boxcox1p": (lambda x, y: ((1 + x) ** y - 1) / y, [(0.5, 2.0), (1e-5, -1.5)]),
    "comb": (mpmath.binomial, [(5.0, 2.0), (6.5, 3.0)]),
    "poch": (mpmath.rf, [(5.0, 2.0), (0.5, 3.5)]),
}


def close(actual, expected, tolerance):
    np.testing.assert_allclose(np.asarray(actual, np.float64), [float(e) for e in expected],
                               rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ONE)
def test_one_operand(name):
    reference, points = ONE[name]
    with mpmath.workdps(50):
        expected = [reference(mpmath.mpf(x)) for x in points]
    fun = getattr(special, name)
    close(fun(np.array(points)), expected, 1e-11)
    close(fun(np.array(points, np.float32)), expected, 3e-5)
    assert fun(np.array(points, np.float32)).dtype == np.float32
    check_grads(fun, (np.array(points),), 2, atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("name", TWO)
def test_two_operands(name):
    reference, points = TWO[name]
    with mpmath.workdps(50):
        expected = [reference(*map(mpmath.mpf, p)) for p in points]
    fun = getattr(special, name)
    x, y = np.array(points).T
    close(fun(x, y), expected, 1e-11)
    close(fun(x.astype("float32"), y.astype("float32")), expected, 3e-5)
    check_grads(fun, (x, y), 2, atol=2e-3, rtol=2e-3)


def test_quantiles_of_the_normal_distribution_far_out():
    p = np.array([1e-300, 1e-20, 1e-8, 0.01, 0.049, 0.051, 0.2, 0.5, 0.8, 0.999])
    x = special.ndtri(p)
    np.testing.assert_allclose(special.log_ndtr(x), np.log(p), rtol=1e-13, atol=1e-13)
    single = special.ndtri(p[1:].astype(np.float32))
    np.testing.assert_allclose(single, np.asarray(x)[1:], rtol=2e-5, atol=2e-6)
    assert special.ndtri(np.array([0.0, 1.0])).tolist() == [-np.inf, np.inf]
    assert np.isnan(np.asarray(special.ndtri(np.array([-0.1, 1.1, np.nan])))).all()
    check_grads(special.ndtri, (p[3:],), 2, atol=1e-3, rtol=1e-3, eps=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["ndtri", "logit"])
def test_quantiles_around_their_zero(name, dtype):
    """Relative to themselves, wherever the result is small."""
    powers = 10.0 ** np.linspace(-7 if dtype == "float32" else -12, -0.35, 40)
    p = np.concatenate([0.5 - powers, 0.5 + powers, [0.25, 0.75]]).astype(dtype)
    with mpmath.workdps(40):
        exact = [mpmath.mpf(float(x)) for x in p]
        expected = [mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1) if name == "ndtri"
                    else mpmath.log(x / (1 - x)) for x in exact]
    got = np.asarray(ft.jit(getattr(special, name))(p))
    ulp = np.spacing(np.abs(np.array(expected, dtype)))
    np.testing.assert_array_less(np.abs(got - np.array(expected, "float64")), 4 * ulp)


def test_log_ndtr_has_accurate_tails_and_finite_derivatives():
    x = np.array([-1e4, -300.0, -20.0, 0.0, 20.0, 300.0])
    for dtype in (np.float32, np.float64):
        slope = np.asarray(ft.vmap(ft.grad(special.log_ndtr))(x.astype(dtype)))
        with mpmath.workdps(50):
            expected = [float(mpmath.npdf(v) / mpmath.ncdf(v)) for v in map(mpmath.mpf, x)]
        np.testing.assert_allclose(slope, expected, rtol=1e-5 if dtype == np.float32 else 1e-11,
                                   atol=1e-30)


def test_edges():
    assert special.xlogy(0.0, 0.0) == 0
    assert np.isnan(float(special.xlogy(0.0, np.nan)))
    assert float(ft.grad(special.xlogy, 1)(0.0, 2.0)) == 0
    assert special.entr(np.array([0.0, -1.0])).tolist() == [0.0, -np.inf]
    assert special.rel_entr(0.0, 1.0) == 0
    assert special.rel_entr(1.0, 0.0) == np.inf
    assert special.comb(3, 5) == 0
    assert special.gammasgn(np.array([1.0, -0.5, -1.5, 0.0])).tolist() == [1, -1, 1, 1]
    assert abs(float(special.multigammaln(np.float64(3.0), 2))
               - (0.5 * math.log(math.pi) + math.lgamma(3) + math.lgamma(2.5))) < 1e-12
    assert float(special.polygamma(1, 1.0)) == pytest.approx(math.pi**2 / 6, rel=1e-6)
    with pytest.raises(ValueError, match="order"):
        special.polygamma(-1, 1.0)
    assert special.gammainc(np.ones((2, 1)), np.ones(3)).shape == (2, 3)
    assert special.logsumexp(np.zeros(4)) == pytest.approx(math.log(4))


def test_gamma_of_complex_numbers():
    z = np.array([1 + 1j, 0.5 + 0j, -1.5 + 0.3j, 5 - 2j, 0.2 + 7j, -3.2 - 4j, 10 + 1j, 3 + 0j])
    with mpmath.workdps(30):
        expected = np.array([complex(mpmath.gamma(complex(v))) for v in z])
        slopes = np.array([complex(mpmath.gamma(complex(v)) * mpmath.digamma(complex(v)))
                           for v in z])
    for fun in (special.gamma, ft.jit(special.gamma), ft.vmap(special.gamma)):
        np.testing.assert_allclose(fun(z), expected, rtol=1e-12)
        np.testing.assert_allclose(fun(z.astype(np.complex64)), expected, rtol=1e-4)
    slope = ft.vmap(ft.grad(special.gamma, holomorphic=True))(z)
    np.testing.assert_allclose(slope, slopes, rtol=1e-12)
    assert complex(special.gamma(1 + 1j)) == pytest.approx(expected[0], rel=1e-6)


@pytest.mark.parametrize("name", ["gammaln", "digamma", "gammasgn", "erf", "entr", "i0", "ndtri",
                                  "betaln", "zeta"])
def test_complex_arguments_are_refused_by_name(name):
    args = (1 + 1j, 2.0) if name in ("betaln", "zeta") else (1 + 1j,)
    with pytest.raises(TypeError, match=f"special.{name} does not take complex64"):
        getattr(special, name)(*args)


EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-8, 30.0, -30.0, 2.0,
                  -2.0, 3.0, 700.0, -700.0])


@pytest.mark.parametrize("name", ["beta", "betaln"])
def test_beta_beside_poles(name):
    a, b = np.meshgrid(EDGES[3:], EDGES[3:])
    got, expected = (np.asarray(getattr(of, name)(a, b)) for of in (special, scipy.special))
    np.testing.assert_allclose(got, expected, 1e-9, 1e-12)
    assert getattr(special, name)(2.0, np.inf) == getattr(scipy.special, name)(2.0, np.inf)
    assert np.isnan(getattr(special, name)(EDGES, np.nan)).all()
    assert np.isfinite(ft.grad(getattr(special, name))(np.float64(2.5), 1.5))


def test_not_a_number_stays_one():
    for name in ("beta", "betaln", "poch", "gammainc", "gammaincc", "kl_div", "rel_entr", "boxcox",
                 "owens_t", "zeta"):
        for args in ((EDGES, np.nan), (np.nan, EDGES)):
            assert np.isnan(getattr(special, name)(*args)).all(), name


def test_polygamma_of_arrays_of_orders():
    n, x = np.array([[0.0], [1.0], [2.0], [5.0]]), np.array([1.5, 0.1, 30.0, 1e-3])
    np.testing.assert_allclose(special.polygamma(n, x), scipy.special.polygamma(n.astype(int), x),
                               1e-11)
    assert np.isnan(special.polygamma(np.array([-1.0, 0.5]), 1.0)).all()
    check_grads(lambda x: special.polygamma(n, x).sum(), (x[:3],), order=1)
