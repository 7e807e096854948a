"""functrans.scipy.special against SciPy and mpmath, and derivatives against differences.

`data/special.json` holds, of each function, eight points and the values there of SciPy 1.17 or,
where that has fewer digits, of mpmath 1.3. A digit after a name is the place in a tuple of results.
"""

import json
from pathlib import Path

import mpmath
import numpy as np
import pytest

import functrans as ft
from functrans.scipy import special

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "special.json").read_text())["special"]
PAIRS = ("sici", "shichi", "fresnel", "airy", "airye", "ellipj")
# arguments that count: they have no derivative
COUNTS = dict.fromkeys((
    "expn", "yn", "kn", "jn", "spherical_jn", "factorial2", "gammasgn", "eval_chebyt",
    "eval_chebyu", "eval_gegenbauer", "eval_genlaguerre", "eval_hermite", "eval_hermitenorm",
    "eval_jacobi", "eval_laguerre", "eval_legendre", "pdtr", "pdtrc", "pdtri"), (0,)) \
    | dict.fromkeys(("lpmv", "comb", "perm", "bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc",
                     "nbdtri"), (0, 1))
# values that pass through 0: relative to the size of the terms
WAVES = {"j0", "j1", "jn", "jv", "y0", "y1", "yn", "spherical_jn", "betaln", "sici1", "owens_t",
         "airy0", "airy1", "airy2", "airy3", "ellipj0", "ellipj1"}


def function(name):
    if name[:-1] in PAIRS:
        return lambda *xs: getattr(special, name[:-1])(*xs)[int(name[-1])]
    return getattr(special, name)


def points(name):
    return [np.array(x) for x in GOLDEN[name]["args"]]


def tolerance(name):
    rtol = 2e-11 if name in ("gammainc", "gdtr", "chdtr", "pdtrc") else 1e-12  # of 1e-100
    return {"rtol": rtol, "atol": 1e-14 if name in WAVES else 1e-300}


@pytest.mark.parametrize("name", GOLDEN)
def test_values(name):
    expected = np.array(GOLDEN[name]["values"])
    np.testing.assert_allclose(function(name)(*points(name)), expected, **tolerance(name))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", GOLDEN)
def test_single_precision(name):
    """Against double precision at the rounded points: a few units in the last place."""
    fun = function(name)
    single = [x.astype(np.float32) for x in points(name)]
    got, expected = fun(*single), np.asarray(fun(*(x.astype(np.float64) for x in single)))
    assert got.dtype == np.float32
    fits = (np.abs(expected) < 3e38) & (np.abs(expected) > 1e-34)
    rtol = 1e-5 if name in ("ndtr", "log_ndtr") else 1e-6
    np.testing.assert_allclose(np.asarray(got)[fits], expected[fits], rtol=rtol, atol=1e-7)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", GOLDEN)
def test_derivatives_in_every_argument(name):
    fun, xs = function(name), [x[:3] for x in points(name)]
    size = np.abs(np.asarray(fun(*xs)))
    for i in range(len(xs)):
        if i in COUNTS.get(name, ()):
            continue
        direction = [np.ones_like(x) if j == i else np.zeros_like(x) for j, x in enumerate(xs)]
        slope = np.asarray(ft.jvp(fun, tuple(xs), tuple(direction))[1])
        step = 1e-5 * np.where(xs[i] == 0, 1e-3, np.abs(xs[i]))

        def at(k, i=i, step=step):
            return np.asarray(fun(*(x + k * step if j == i else x for j, x in enumerate(xs))))

        numeric = (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12.0 * step)
        noise = 1e-12 * size / step
        assert (np.abs(slope - numeric) <= 1e-6 * np.abs(numeric) + noise + 1e-12).all(), i


@pytest.mark.one_in(40)
@pytest.mark.parametrize("name", GOLDEN)
def test_compiled_and_mapped(name):
    fun, xs = function(name), [x[:4] for x in points(name)]
    expected = np.asarray(fun(*xs))
    mapped = ft.jit(ft.vmap(lambda *args: fun(*args)))
    np.testing.assert_allclose(mapped(*xs), expected, rtol=1e-11, atol=tolerance(name)["atol"])


SECOND = {"betainc": (2.0, 3.0, 0.4), "hyp2f1": (0.5, 1.5, 2.5, 0.8), "hyp1f1": (0.5, 1.5, 2.0),
          "kv": (1.3, 2.0), "jv": (1.3, 2.0), "owens_t": (0.7, 1.8), "ellipkinc": (1.0, 0.5),
          "lambertw": (2.0,), "dawsn": (1.3,), "spence": (1.0,), "rgamma": (-2.0,),
          "gammaincinv": (2.0, 0.3), "stdtr": (4.0, 0.7), "exprel": (0.0,), "cosdg": (30.0,),
          **dict.fromkeys(("erfcx", "erfi", "exp1", "exp10", "expi", "j0", "j1", "k0", "k0e", "k1",
                           "k1e", "log_expit", "wrightomega", "y0", "y1", "cosm1"), (1.3,)),
          **dict.fromkeys(("ellipe", "ellipk", "ellipkm1", "erfcinv"), (0.4,)),
          **dict.fromkeys(("cotdg", "sindg", "tandg"), (30.0,))}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name):
    fun, xs = getattr(special, name), np.array(SECOND[name])

    def along(x):
        return fun(*(x[i] for i in range(len(SECOND[name]))))

    def slope(x):
        return np.asarray(ft.jvp(along, (x,), (np.ones_like(x),))[1])

    h = 1e-4
    numeric = (slope(xs + h) - slope(xs - h)) / (2 * h)
    found = ft.jvp(lambda x: ft.jvp(along, (x,), (np.ones_like(x),))[1], (xs,),
                   (np.ones_like(xs),))[1]
    np.testing.assert_allclose(found, numeric, rtol=2e-6, atol=1e-8)
    reverse = ft.grad(lambda x: ft.jvp(along, (x,), (np.ones_like(x),))[1])(xs)
    np.testing.assert_allclose(np.sum(np.asarray(reverse)), numeric, rtol=2e-6, atol=1e-8)


def test_edges():
    inf, nan = np.inf, np.nan
    for name, argument, value in [
            ("expi", -inf, -0.0), ("expi", inf, inf), ("expi", 1e5, inf), ("expi", 0.0, -inf),
            ("exp1", 0.0, inf), ("erfcx", -inf, inf), ("erfcx", inf, 0.0),
            ("dawsn", inf, 0.0), ("dawsn", -0.0, -0.0),
            ("k0", 0.0, inf), ("k1", -1.0, nan), ("y0", 0.0, -inf), ("j0", inf, 0.0),
            ("lambertw", -1.0, nan), ("lambertw", 0.0, 0.0), ("lambertw", inf, inf),
            ("ellipk", 1.0, inf), ("ellipk", 2.0, nan), ("spence", 0.0, np.pi**2 / 6),
            ("rgamma", -2.0, 0.0), ("tandg", 90.0, inf), ("sindg", 180.0, 0.0),
            ("erfcinv", 0.0, inf), ("erfcinv", 2.0, -inf), ("factorial2", -1.0, 0.0),
            ("wrightomega", -inf, 0.0), ("wrightomega", inf, inf)]:
        got = np.asarray(getattr(special, name)(np.float64(argument)))
        np.testing.assert_allclose(got, value, rtol=1e-14, atol=1e-300, err_msg=name)
        assert value != 0 or np.signbit(got) == np.signbit(value), name
    assert float(special.hyp2f1(1.0, 2.0, 4.0, 1.0)) == pytest.approx(3.0)
    assert float(special.hyp2f1(1.0, 2.0, 3.0, 1.0)) == inf
    assert np.isnan(float(special.hyp2f1(1.0, 2.0, 3.0, 1.5)))
    assert special.betainc(np.ones((2, 0)), 2, 0.5).shape == (2, 0)
    assert special.jn(2, 3).dtype == np.float32  # integers are promoted
    with pytest.raises(ValueError, match="branch 1"):
        special.lambertw(1.0, 1)
    with pytest.raises(ValueError, match="no int"):
        special.bernoulli(-1)
    with pytest.raises(ValueError, match="no int"):
        special.bessel_jn(1.0, v=-1)


def test_lower_branch_of_lambertw():
    z = -np.array([0.3678, 0.3, 0.1, 1e-3, 1e-10, 1e-200])
    w = np.asarray(special.lambertw(z, -1))
    np.testing.assert_allclose(w, [float(mpmath.lambertw(v, -1).real) for v in z], rtol=1e-12)


def test_faddeeva_in_all_quadrants():
    rng = np.random.default_rng(0)
    z = 10 ** rng.uniform(-3, 2, 60) * np.exp(2j * np.pi * rng.uniform(0, 1, 60))
    z = z[(z.imag > 0) | (z.imag**2 - z.real**2 < 600)]
    expected = np.array([complex(mpmath.exp(-mpmath.mpc(v)**2) * mpmath.erfc(-1j * mpmath.mpc(v)))
                         for v in z])
    np.testing.assert_allclose(special.wofz(z), expected, rtol=2e-12)
    slope = ft.vmap(ft.grad(special.wofz, holomorphic=True))(z[:8])
    np.testing.assert_allclose(slope, 2j / np.sqrt(np.pi) - 2 * z[:8] * expected[:8], rtol=1e-8)


def test_spherical_harmonics_are_those_of_scipy():
    n, m = np.array([0, 1, 2, 3, 5, 4]), np.array([0, -1, 1, 3, -4, 5])
    theta, phi = np.linspace(0.1, 3.0, 6), np.linspace(-2.0, 3.0, 6)
    expected = [complex(mpmath.spherharm(int(a), int(b), float(t), float(p)))
                if abs(b) <= a else 0 for a, b, t, p in zip(n, m, theta, phi, strict=True)]
    np.testing.assert_allclose(special.sph_harm_y(n, m, theta, phi), expected, atol=1e-14)
    poles = ft.vmap(ft.grad(lambda t: special.sph_harm_y(2, 1, t, 0.0).real))(np.array([0.0]))
    assert np.isfinite(np.asarray(poles)).all()


def test_bernoulli_numbers_and_orders_together():
    with ft.default_dtypes("float64", "int64"):
        numbers = np.asarray(special.bernoulli(30))
    np.testing.assert_allclose(numbers, [-0.5 if k == 1 else float(mpmath.bernoulli(k))
                                         for k in range(31)], rtol=1e-15)
    z = np.array([0.0, 0.5, 7.0])
    orders = [special.jv(float(k), z) for k in range(4)]
    np.testing.assert_allclose(special.bessel_jn(z, v=3), orders)
