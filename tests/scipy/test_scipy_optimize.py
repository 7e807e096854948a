"""functrans.scipy.optimize: minima, roots and fits beside SciPy's, and their derivatives."""

import numpy as np
import pytest
import scipy.optimize

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import optimize
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)
START = np.array([1.3, 0.7, 0.8, 1.2])


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def bowl(x, a):
    return ((x - a) ** 2).sum() + (x**4).sum()


SMOOTH = ["BFGS", "L-BFGS-B", "CG", "Newton-CG"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", [*SMOOTH, "Nelder-Mead",
                                    "l-bfgs-experimental-do-not-rely-on-this"])
def test_minimize(method, dtype):
    found = optimize.minimize(rosenbrock, START.astype(dtype), method=method)
    assert found.x.dtype == dtype
    same(found.x, np.ones(4), atol=5e-3 if dtype is np.float32 else 3e-4)
    if dtype is np.float64:
        assert found.success and found.status == 0 and found.nfev < 500


@pytest.mark.parametrize("method", SMOOTH)
def test_derivatives_of_minima(method):
    def lowest(a):
        found = optimize.minimize(bowl, np.zeros(3), (a,), method=method, tol=1e-9)
        return found.x, found.fun

    check_grads(lowest, (np.array([0.5, 1.0, -2.0]),), 2 if method == "BFGS" else 1, atol=1e-4,
                rtol=1e-4)


def test_minimize_in_bounds():
    start = np.array([0.1, -0.2, 0.6, 0.5])
    bounds = [(None, 0.5), (-1, 2), (0.2, None), (0, 1)]
    found = optimize.minimize(rosenbrock, start, method="L-BFGS-B", bounds=bounds)
    theirs = scipy.optimize.minimize(scipy.optimize.rosen, start, method="L-BFGS-B",
                                     bounds=bounds, jac=scipy.optimize.rosen_der)
    same(found.x, theirs.x, atol=1e-5)
    a = np.array([0.5, 1.0, -2.0])
    check_grads(lambda u: optimize.minimize(bowl, np.zeros(3), (a,), method="L-BFGS-B", tol=1e-10,
                                            bounds=(-1, u)).x, (np.array([0.1, 0.9, 0.5]),), 1)


def test_minimize_under_vmap_and_jit():
    starts = START + 0.3 * rng.standard_normal((2, 4))
    many = ft.jit(ft.vmap(lambda x: optimize.minimize(rosenbrock, x, method="BFGS")))(starts)
    for i, start in enumerate(starts):
        one = optimize.minimize(rosenbrock, start, method="BFGS")
        same(many.x[i], one.x, atol=1e-6)
        assert many.nit[i] == one.nit


def test_minimize_of_any_shape():
    found = optimize.minimize(lambda x: ((x - 2) ** 2).sum(), np.zeros((2, 2)), method="BFGS")
    assert found.x.shape == found.jac.shape == (2, 2) and found.hess_inv.shape == (4, 4)
    one = optimize.minimize(lambda x: (x - 2) ** 2, 0.0, method="BFGS")
    assert one.x.shape == () and abs(float(one.x) - 2) < 1e-4


def test_minimize_refuses():
    with pytest.raises(ArgumentError, match="method"):
        optimize.minimize(bowl, START, (1.0,), method="SLQP")
    with pytest.raises(ArgumentError, match="takes no constraints"):
        optimize.minimize(bowl, START, (1.0,), method="BFGS",
                          constraints={"type": "eq", "fun": jnp.sum})
    with pytest.raises(ArgumentError, match="a constraint has the keys"):
        optimize.minimize(bowl, START, (1.0,), constraints={"fun": jnp.sum})
    with pytest.raises(ArgumentError, match="no option 'gtoll'"):
        optimize.minimize(bowl, START, (1.0,), method="BFGS", options={"gtoll": 1})
    with pytest.raises(ArgumentError, match="takes no bounds"):
        optimize.minimize(bowl, START, (1.0,), method="BFGS", bounds=(0, 1))
    with pytest.raises(ShapeError, match="one real number"):
        optimize.minimize(lambda x: x, START, method="BFGS")
    with pytest.raises(ArgumentError, match="args"):
        optimize.minimize(bowl, START, [1.0], method="BFGS")


def quartic(x, m=jnp):
    return (x - 1.7) ** 4 + m.cos(x)


@pytest.mark.parametrize("method", ["brent", "golden", "bounded"])
def test_minimize_scalar(method):
    options = {"bounds": (np.float64(0), np.float64(5))} if method == "bounded" else \
        {"bracket": (np.float64(0), np.float64(1))}
    found = optimize.minimize_scalar(quartic, method=method, **options)
    theirs = scipy.optimize.minimize_scalar(lambda x: quartic(x, np), method=method, **{
        k: v for k, v in options.items() if k == "bounds"})
    same(found.x, theirs.x, atol=1e-6)
    assert found.success and found.nfev < theirs.nfev + 10

    def lowest(a):
        best = optimize.minimize_scalar(lambda x: (x - a) ** 4 + jnp.cos(x), method=method,
                                        **options)
        return best.x, best.fun

    # the minimum itself is found to the root of roundoff, so that differences are wide
    check_grads(lowest, (np.array(1.7),), 1, atol=1e-4, rtol=1e-4, eps=1e-3)


def cubic(x, a=2.0):
    return x**3 - a * x - 5


def test_roots_of_one_number():
    exact = scipy.optimize.brentq(cubic, 0, 3)
    for dtype, atol in ((np.float64, 1e-11), (np.float32, 1e-6)):
        for method in ("bisect", "brentq", "ridder"):
            found = optimize.root_scalar(cubic, method=method, bracket=(dtype(0), dtype(3)))
            assert found.converged and found.root.dtype == dtype
            same(found.root, exact, atol=atol)
        for method in ("newton", "halley", "secant"):
            found = optimize.root_scalar(cubic, method=method, x0=dtype(3))
            assert found.converged
            same(found.root, exact, atol=atol)
    for method in ("bisect", "brentq", "ridder"):
        assert abs(getattr(optimize, method)(cubic, np.float64(0), np.float64(3)) - exact) < 1e-11
        zero = optimize.root_scalar(lambda x: x - 1, method=method, bracket=(0.0, 1.0))
        assert zero.root == 1 and zero.converged  # an end of the bracket
    many = ft.vmap(lambda a: optimize.brentq(lambda x: cubic(x, a), np.float64(0), np.float64(4)))
    same(many(np.arange(1.0, 4)), [scipy.optimize.brentq(cubic, 0, 4, (a,)) for a in (1, 2, 3)])


def test_derivatives_of_roots():
    a = np.array(2.0)
    for method in ("brentq", "ridder"):
        check_grads(lambda a: optimize.root_scalar(lambda x: cubic(x, a), method=method, bracket=(  # noqa: B023
            np.float64(0), np.float64(3))).root, (a,), 1)
    check_grads(lambda a: optimize.newton(lambda x: cubic(x, a), np.float64(3)), (a,), 2)


def test_a_bracket_without_a_root():
    with pytest.raises(ArgumentError, match="one sign"):
        optimize.brentq(lambda x: x * x + 1, 0.0, 1.0)
    assert np.isnan(ft.jit(lambda a: optimize.brentq(lambda x: x * x + a, 0.0, 1.0))(1.0))
    assert np.isnan(optimize.newton(lambda x: x * x + 1, 0.3))


def system(x, a, m=jnp):
    return m.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - a, 0.5 * (x[1] - x[0]) ** 3 + x[1]])


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1"])
def test_root(method):
    found = optimize.root(system, np.zeros(2), (1.0,), method=method)
    theirs = scipy.optimize.root(lambda x: system(x, 1.0, np), [0, 0], tol=1e-13)
    assert found.success
    same(found.x, theirs.x, atol=1e-8)
    check_grads(lambda a: optimize.root(system, np.zeros(2), (a,), method=method).x,
                (np.array(1.0),), 1)
    assert not optimize.root(lambda x: x * x + 1, np.ones(2), method=method).success
    with pytest.raises(ShapeError, match="as many equations"):
        optimize.root(lambda x: x[:1], np.ones(2), method=method)


def test_fixed_points():
    for method in ("del2", "iteration"):
        found = optimize.fixed_point(jnp.cos, np.float64(1), method=method)
        same(found, scipy.optimize.fixed_point(np.cos, 1.0), atol=1e-7)
    check_grads(lambda a: optimize.fixed_point(lambda x: jnp.cos(a * x), np.float64(1)),
                (np.array(0.9),), 2)
    assert np.isnan(optimize.fixed_point(lambda x: x + 1, 0.0))


T = np.linspace(0, 3, 40)
DATA = 2.5 * np.exp(-1.3 * T) + 0.5 + 0.05 * rng.standard_normal(40)
DATA[5] += 2


def decay(t, a, b, c, m=jnp):
    return a * m.exp(-b * t) + c


FITS = [{}, {"method": "lm"}, {"loss": "soft_l1", "f_scale": 0.1}, {"loss": "huber",
        "f_scale": 0.1}, {"loss": "cauchy", "f_scale": 0.1}, {"loss": "arctan", "f_scale": 0.5},
        {"bounds": ([0, 0, 0.6], [2, np.inf, 3])}, {"x_scale": "jac"},
        {"bounds": (0, np.array([5, 1.0, 5]))}]


@pytest.mark.parametrize("options", FITS, ids=range(len(FITS)))
def test_least_squares(options):
    start = np.array([1.0, 0.9, 1.0])
    found = optimize.least_squares(lambda x: decay(T, *x) - DATA, start, **options)
    theirs = scipy.optimize.least_squares(lambda x: decay(T, *x, np) - DATA, start, **options)
    same(found.x, theirs.x, atol=1e-4)
    same(found.cost, theirs.cost, atol=1e-7)
    same(found.active_mask, theirs.active_mask)
    assert found.success


def test_curve_fit():
    sigma = 1 + T
    for options in ({}, {"sigma": sigma}, {"sigma": sigma, "absolute_sigma": True},
                    {"sigma": np.diag(sigma) + 0.1}):
        found = optimize.curve_fit(decay, T, DATA, p0=[1.0, 1.0, 1.0], **options)
        theirs = scipy.optimize.curve_fit(lambda *a: decay(*a, np), T, DATA, [1, 1, 1], **options)
        same(found, theirs, rtol=1e-3, atol=1e-4)
    fitted = optimize.curve_fit(lambda t, a, b: a * t + b, T, 2 * T + 1)[0]
    same(fitted, [2, 1], atol=1e-5)
    with pytest.raises(ArgumentError, match="how many parameters"):
        optimize.curve_fit(lambda t, *p: p[0] * t, T, DATA)


def test_derivatives_of_fits():
    def fit(y, u):
        return optimize.least_squares(lambda x: decay(T, *x) - y, np.array([1.0, 0.9, 1.0]),
                                      bounds=(0, u), ftol=0.0).x

    check_grads(fit, (DATA, np.array([5.0, 1.0, 5.0])), 1, eps=1e-3, atol=1e-4, rtol=1e-3)


def test_linprog():
    bounds = [(0, 3)] * 3 + [(None, 2), (-1, None), (-2, 2)]
    draw = np.random.default_rng(1)
    for _ in range(3):
        a, x = draw.standard_normal((4, 6)), draw.random(6)
        b, c, e = a @ x + 0.1, draw.standard_normal(6), draw.standard_normal((1, 6))
        found = optimize.linprog(c, a, b, e, e @ x, bounds=bounds)
        theirs = scipy.optimize.linprog(c, a, b, e, e @ x, bounds=bounds)
        assert found.success and theirs.status == 0
        same((found.x, found.fun, found.slack, found.con),
             (theirs.x, theirs.fun, theirs.slack, theirs.con), atol=1e-7)

    def solve(c, b):
        return optimize.linprog(c, a, b, e, e @ x, bounds=bounds).x

    check_grads(solve, (c, b), 1, atol=1e-4, rtol=1e-4)
    assert not optimize.linprog([1.0, 1.0], [[1.0, 1.0], [-1.0, -1.0]], [1.0, -2.0]).success
    assert not optimize.linprog([-1.0, -1.0]).success


def test_nnls():
    for seed in range(4):
        draw = np.random.default_rng(seed)
        a, b = draw.standard_normal((8, 5)), draw.standard_normal(8)
        same(optimize.nnls(a, b), scipy.optimize.nnls(a, b))
    check_grads(optimize.nnls, (a, b), 1)
