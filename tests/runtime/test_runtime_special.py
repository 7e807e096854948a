"""Special functions against mpmath, threefry against its published vectors."""

import math

import mpmath
import numpy as np
import pytest

import functrans  # noqa: F401  (registers the array type and the operators' fallbacks)
from functrans import _runtime as rt

_ERF = np.concatenate(
    [np.linspace(-0.999, 0.999, 41), 1 - 10.0 ** -np.arange(1, 16), [1e-300, 1e-12]]
)
_POSITIVE = np.concatenate([np.linspace(0.05, 12, 60), 10.0 ** np.arange(-20, 12, 2)])


def assert_close_to(reference, function, *args, tolerance=2e-15, absolute=0.0):
    got = function(*args)
    for i, values in enumerate(zip(*args)):
        exact = reference(*(mpmath.mpf(float(v)) for v in values))
        error = abs(mpmath.mpf(float(got[i])) - exact)
        assert error <= tolerance * abs(exact) + absolute, (values, float(got[i]), exact)


@pytest.mark.parametrize(
    ("name", "reference", "points"),
    [
        ("erf", mpmath.erf, np.linspace(-5, 5, 50)),
        ("erfc", mpmath.erfc, np.linspace(-5, 20, 50)),
        ("erf_inv", mpmath.erfinv, _ERF),
        ("lgamma", lambda x: mpmath.loggamma(x).real, _POSITIVE),
        ("digamma", mpmath.digamma, _POSITIVE),
        ("bessel_i0e", lambda x: mpmath.exp(-x) * mpmath.besseli(0, x), np.linspace(0, 40, 60)),
        ("bessel_i1e", lambda x: mpmath.exp(-x) * mpmath.besseli(1, x), np.linspace(0, 40, 60)),
    ],
)
def test_special_functions_of_one_argument(name, reference, points):
    function = getattr(rt, name)
    assert isinstance(function, np.ufunc)
    with mpmath.workdps(40):
        assert_close_to(reference, function, points)
        single = points.astype(np.float32)
        single = single[np.abs(single) < 1] if name == "erf_inv" else single
        got = function(single)
        assert got.dtype == np.float32
        for x, y in zip(single, got):
            exact = reference(mpmath.mpf(float(x)))
            # float32 erf_inv follows the polynomials that jax.random.normal is defined by
            bound = 2.0**-16 if name == "erf_inv" else 2.0**-23
            assert abs(mpmath.mpf(float(y)) - exact) <= bound * abs(exact) + 1e-44


def test_special_functions_of_two_arguments():
    rng = np.random.default_rng(0)
    with mpmath.workdps(40):
        for low, high in ((-2, 0), (0, 1), (1, 2.5)):
            a = 10 ** rng.uniform(low, high, 30)
            x = a * 10 ** rng.uniform(-0.4, 0.4, 30)
            assert_close_to(
                lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
                rt.igamma,
                a,
                x,
                tolerance=1e-13,
            )
            assert_close_to(
                lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
                rt.igammac,
                a,
                x,
                tolerance=1e-13,
            )
        x, q = 1 + 10 ** rng.uniform(-1, 1.5, 40), 10 ** rng.uniform(-2, 2, 40)
        assert_close_to(mpmath.zeta, rt.zeta, x, q, tolerance=1e-14)
        a = 10 ** rng.uniform(-1.5, 1.5, 12)
        z = np.maximum(rng.gamma(a), 1e-12)

        def gradient(a, z):
            lower = mpmath.diff(lambda t: mpmath.gammainc(t, 0, z, regularized=True), a)
            return -lower * mpmath.gamma(a) / (z ** (a - 1) * mpmath.exp(-z))

        assert_close_to(gradient, rt.random_gamma_grad, a, z, tolerance=1e-12)


def test_special_functions_at_their_edges():
    inf, nan = np.inf, np.nan

    def check(function, *cases):
        for *args, want in cases:
            got = function(*map(np.float64, args))
            np.testing.assert_equal(float(got), want, err_msg=f"{function.__name__}{tuple(args)}")

    check(rt.erf_inv, (0.0, 0.0), (-0.0, -0.0), (1, inf), (-1, -inf), (1.5, nan), (nan, nan))
    check(rt.lgamma, (1, 0), (0, inf), (-2, inf), (inf, inf), (-inf, inf), (nan, nan))
    check(rt.digamma, (0, nan), (-1, nan), (inf, inf), (-inf, nan), (nan, nan))
    check(rt.bessel_i0e, (0, 1), (inf, 0), (nan, nan))
    check(rt.bessel_i1e, (0, 0), (-inf, -0.0), (inf, 0), (nan, nan))
    check(
        rt.igamma,
        (1, 0, 0),
        (1, inf, 1),
        (0, 1, 1),
        (-1, 1, nan),
        (1, -1, nan),
        (inf, 1, 0),
        (nan, 1, nan),
        (1e300, 1.0, 0),
        (1e-300, 1.0, 1),
    )
    check(rt.igammac, (1, 0, 1), (1, inf, 0), (0, 1, 0), (inf, 1, 1), (1, nan, nan))
    check(
        rt.zeta, (1, 2, inf), (0.5, 2, nan), (2, 0, inf), (2.5, -0.5, nan), (1e6, 1, 1), (3, inf, 0)
    )
    check(rt.random_gamma_grad, (1, 0, 0), (0, 1, nan), (-1, 1, nan), (1, nan, nan))
    with mpmath.workdps(30):
        for a, x in ((3e7, 3.0001e7), (1e9, 1e9)):
            total = float(rt.igamma(a, x)) + float(rt.igammac(a, x))
            assert abs(total - 1) < 1e-15
        assert abs(float(rt.random_gamma_grad(2e7, 2e7)) - 1) < 1e-7
    for x in (-0.5, -1.25, -7.75):
        assert math.isclose(float(rt.digamma(x)), float(mpmath.digamma(x)), rel_tol=1e-13)


def test_threefry_equals_the_published_vectors():
    """The known answers of the Random123 distribution for threefry2x32 with 20 rounds."""
    vectors = [
        ((0, 0, 0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 4, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]
    for words, want in vectors:
        got = rt.threefry2x32(*(np.uint32(w) for w in words))
        assert tuple(int(g) for g in got) == want
    n = 1000
    counters = np.arange(n, dtype=np.uint32)
    key = np.uint32(7)
    high, low = rt.threefry2x32(key, key, counters, counters[::-1])
    for i in (0, 1, 63, 64, 65, 127, 999):
        one = rt.threefry2x32(key, key, counters[i], counters[n - 1 - i])
        assert (high[i], low[i]) == one
    strided = rt.threefry2x32(key, key, counters[::3], counters[::-3])
    np.testing.assert_array_equal(strided[0], high[::3])


def test_philox_is_the_same_in_lanes_and_alone():
    n = 200
    counters = np.arange(n, dtype=np.uint32)
    key, zero = np.uint32(7), np.uint32(0)
    words = rt.philox4x32(key, zero, counters, counters[::-1], zero, key)
    for i in (0, 1, 63, 64, 65, 127, 199):
        one = rt.philox4x32(key, zero, counters[i], counters[n - 1 - i], zero, key)
        assert tuple(w[i] for w in words) == one
    strided = rt.philox4x32(key, zero, counters[::3], counters[::-3], zero, key)
    np.testing.assert_array_equal(strided[3], words[3][::3])
