"""Minima by all methods on ten functions, under constraints, assignments, names of SciPy."""

import numpy as np
import pytest
import scipy.optimize

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import optimize
from functrans.scipy.optimize.quadratic import quadratic_program
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair, same

rng = np.random.default_rng(0)


def beale(x):
    return ((1.5 - x[0] + x[0] * x[1]) ** 2 + (2.25 - x[0] + x[0] * x[1] ** 2) ** 2
            + (2.625 - x[0] + x[0] * x[1] ** 3) ** 2)


def powell(x):
    return ((x[0] + 10 * x[1]) ** 2 + 5 * (x[2] - x[3]) ** 2 + (x[1] - 2 * x[2]) ** 4
            + 10 * (x[0] - x[3]) ** 4)


def wood(x):
    return (100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + 90 * (x[3] - x[2] ** 2) ** 2
            + (1 - x[2]) ** 2 + 10.1 * ((x[1] - 1) ** 2 + (x[3] - 1) ** 2)
            + 19.8 * (x[1] - 1) * (x[3] - 1))


def zakharov(x):
    return (x**2).sum() + (0.5 * x @ np.arange(1, 4)) ** 2 + (0.5 * x @ np.arange(1, 4)) ** 4


FUNCTIONS = {  # a function, a start, and the values at its minima
    "rosenbrock": (optimize.rosen, [1.3, 0.7, 0.8, 1.2], (0, 3.7014)),
    "beale": (beale, [1.0, 1.0], (0,)),
    "booth": (lambda x: (x[0] + 2 * x[1] - 7) ** 2 + (2 * x[0] + x[1] - 5) ** 2, [0.0, 0.0], (0,)),
    "himmelblau": (lambda x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2,
                   [2.5, 2.5], (0,)),
    "matyas": (lambda x: 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1], [3.0, -2.0], (0,)),
    "powell": (powell, [3.0, -1.0, 0.0, 1.0], (0,)),
    "wood": (wood, [1.1, 1.3, 0.9, 1.2], (0,)),
    "styblinski": (lambda x: 0.5 * (x**4 - 16 * x**2 + 5 * x).sum(), [-2.5, -2.5, -3.0],
                   (-117.49850,)),
    "zakharov": (zakharov, [1.0, 1.0, 1.0], (0,)),
    "trid": (lambda x: ((x - 1) ** 2).sum() - (x[1:] * x[:-1]).sum(), [0.0] * 5, (-30,))}
METHODS = ["BFGS", "L-BFGS-B", "CG", "Newton-CG", "trust-ncg", "trust-krylov", "trust-exact",
           "dogleg", "TNC", "SLSQP", "Powell", "Nelder-Mead"]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("method", METHODS)
def test_ten_functions(method, name):
    fun, start, values = FUNCTIONS[name]
    start = np.array(start)
    found = optimize.minimize(fun, start, method=method)
    assert found.success
    assert min(abs(float(found.fun) - v) for v in values) < 2e-4
    if method not in ("Powell", "trust-krylov"):  # whose first steps are others than SciPy's
        derivatives = {"jac": lambda x: np.asarray(ft.grad(fun)(x)),
                       "hess": lambda x: np.asarray(ft.hessian(fun)(x))}
        given = derivatives if method in METHODS[3:8] else {}
        if method != "dogleg":  # whose Hessian is positive definite in SciPy
            theirs = scipy.optimize.minimize(lambda x: float(fun(x)), start, method=method, **given)
            assert float(found.fun) < theirs.fun + 1e-4


def bowl(x, a):
    return ((x - a) ** 2).sum() + (x**4).sum()


NEW = ["SLSQP", "trust-ncg", "trust-exact", "dogleg", "trust-krylov", "TNC"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("method", NEW)
def test_derivatives_of_minima(method):
    def lowest(a):
        found = optimize.minimize(bowl, np.zeros(3), (a,), method=method, tol=1e-12)
        return found.x, found.fun

    check_grads(lowest, (np.array([0.5, 1.0, -2.0]),), 2 if method == "trust-exact" else 1,
                atol=1e-4, rtol=1e-4)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("method", [*NEW, "Powell"])
def test_under_vmap_and_jit(method):
    starts = np.array([[1.3, 0.7], [0.2, 1.4]])

    def of(x):
        return optimize.minimize(optimize.rosen, x, method=method)

    many = ft.jit(ft.vmap(of))(starts)
    for i, start in enumerate(starts):
        same(many.x[i], of(start).x, atol=1e-5)


def test_a_saddle_is_left():
    """The gradient has no part along the direction that descends."""
    def saddle(x):
        return x[0] ** 2 - x[1] ** 2 + 0.25 * x[1] ** 4

    for method in ("trust-exact",):
        found = optimize.minimize(saddle, np.array([1.0, 0.0]), method=method)
        same(abs(found.x[1]), np.sqrt(2), atol=1e-5)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("method", ["TNC", "L-BFGS-B", "SLSQP", "Nelder-Mead", "Powell"])
def test_bounds(method):
    bounds = optimize.Bounds(np.array([-1.0, -1, 0.2]), np.array([0.5, 2.0, np.inf]))
    start = np.array([0.1, -0.2, 0.6])
    found = optimize.minimize(optimize.rosen, start, method=method, bounds=bounds)
    theirs = scipy.optimize.minimize(scipy.optimize.rosen, start, method="L-BFGS-B",
                                     bounds=scipy.optimize.Bounds(*bounds), tol=1e-10,
                                     jac=scipy.optimize.rosen_der)
    if method != "Powell":  # which ends at another point of the edge, in SciPy too
        assert found.success
        same(found.x, theirs.x, atol=1e-3 if method == "Nelder-Mead" else 1e-4)
    a = np.array([0.5, 1.0, -2.0])
    check_grads(lambda u: optimize.minimize(bowl, np.zeros(3), (a,), method=method, tol=1e-13,
                                            bounds=(-1, u)).x, (np.array([0.1, 0.9, 0.5]),), 1,
                atol=1e-4, rtol=1e-4, eps=1e-3) if method in ("TNC", "SLSQP") else None


def triangle(x, m=jnp):
    return m.stack([x[0] - 2 * x[1] + 2, -x[0] - 2 * x[1] + 6, -x[0] + 2 * x[1] + 2])


def hs71(x):
    return x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]


PROBLEMS = {
    "half planes": (lambda x: (x[0] - 1) ** 2 + (x[1] - 2.5) ** 2, [2.0, 0.0], [(0, None)] * 2,
                    lambda m: [{"type": "ineq", "fun": lambda x: triangle(x, m)}]),
    "hs71": (hs71, [1.0, 5.0, 5.0, 1.0], [(1, 5)] * 4, lambda m: [
        {"type": "ineq", "fun": lambda x: x[0] * x[1] * x[2] * x[3] - 25},
        {"type": "eq", "fun": lambda x: (x**2).sum() - 40}]),
    "an ellipse": (lambda x: x[0] + 2 * x[1] - x[2], [0.3, 0.2, 0.1], None, lambda m: [
        {"type": "eq", "fun": lambda x, r: x[0] ** 2 + 2 * x[1] ** 2 + x[2] ** 2 - r,
         "args": (3.0,)}]),
    "rosenbrock in a disc": (lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2,
                             [0.0, 0.0], None,
                             lambda m: {"type": "ineq", "fun": lambda x: 1.5 - (x**2).sum()}),
    "from outside": (lambda x: (x**2).sum(), [5.0, -7.0], None, lambda m: [
        {"type": "ineq", "fun": lambda x: x[0] * x[1] - 1}, {"type": "ineq",
                                                              "fun": lambda x: x[0] - 2}])}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PROBLEMS)
def test_constraints(name):
    fun, start, bounds, constraints = PROBLEMS[name]
    found = optimize.minimize(fun, np.array(start), method="SLSQP", bounds=bounds,
                              constraints=constraints(jnp))
    theirs = scipy.optimize.minimize(fun, start, method="SLSQP", bounds=bounds, tol=1e-12,
                                     constraints=constraints(np))
    assert found.success
    same(found.x, theirs.x, atol=2e-5)
    same(found.fun, theirs.fun, atol=1e-5)


def test_constraints_of_classes():
    start, matrix = np.array([0.2, 0.1, 0.4]), np.array([[1.0, 1, 1], [1, -1, 0]])
    for module in (optimize, scipy.optimize):
        m = jnp if module is optimize else np
        lines = module.LinearConstraint(matrix[:1], 1.0, 1.0)
        strip = module.LinearConstraint(matrix[1:], -0.1, 0.3)
        ball = module.NonlinearConstraint(lambda x, m=m: m.stack([(x**2).sum(), x[0]]),
                                          [-np.inf, 0.1], [0.5, np.inf])
        found = module.minimize(lambda x: (x * np.array([-1.0, 0.5, 0.2])).sum(), start,
                                method="SLSQP", constraints=[lines, strip, ball])
        if module is optimize:
            ours = found
    assert ours.success
    same(ours.x, found.x, atol=1e-5)
    with pytest.raises(ShapeError, match="there are 3 variables"):
        optimize.minimize(bowl, start, (0.0,),
                          constraints=optimize.LinearConstraint(np.ones((1, 2)), 0, 0))


def test_what_cannot_be_met():
    none = [{"type": "ineq", "fun": lambda x: x[0] - 1}, {"type": "ineq", "fun": lambda x: -x[0]}]
    assert not optimize.minimize(lambda x: (x**2).sum(), np.ones(2), constraints=none).success


def test_derivatives_under_constraints():
    def lowest(a, r):
        disc = {"type": "ineq", "fun": lambda x: r - (x**2).sum()}
        line = {"type": "eq", "fun": lambda x: x[0] + x[1] - a[1]}
        found = optimize.minimize(lambda x: ((x - a) ** 2).sum(), np.zeros(3), method="SLSQP",
                                  constraints=[disc, line], tol=1e-12)
        return found.x, found.fun

    args = np.array([1.0, 0.7, -2.0]), np.array(1.1)
    check_grads(lowest, args, 1, atol=1e-4, rtol=1e-4)


def test_more_short_names():
    start = np.array([-1.2, 1.0])
    same(optimize.fmin_powell(optimize.rosen, start), np.ones(2), atol=1e-3)
    same(optimize.fmin_ncg(optimize.rosen, start, scipy.optimize.rosen_der), np.ones(2), atol=1e-4)
    x, count, flag = optimize.fmin_tnc(optimize.rosen, start, approx_grad=1,
                                       bounds=[(None, 0.5), (None, None)])
    known, _, code = scipy.optimize.fmin_tnc(scipy.optimize.rosen, start, approx_grad=1,
                                             bounds=[(None, 0.5), (None, None)], disp=0)
    same(x, known, atol=1e-4)
    assert flag == code == 1 and count > 0
    for names in ({"eqcons": [lambda x, r: x[0] + x[1] - r], "ieqcons": [lambda x, r: x[0] - 1.2]},
                  {"f_ieqcons": lambda x, r: jnp.stack([x[0] - r, r - x[1]])}):
        theirs = {k: v if k != "f_ieqcons" else (lambda x, r: np.array([x[0] - r, r - x[1]]))
                  for k, v in names.items()}
        same(optimize.fmin_slsqp(lambda x, r: (x**2).sum(), start, args=(2.0,), **names),
             scipy.optimize.fmin_slsqp(lambda x, r: (x**2).sum(), start, args=(2.0,), iprint=0,
                                       **theirs), atol=1e-5)


def test_brute():
    def wells(x, a):
        return (x[0] ** 2 - 1) ** 2 + a * x[0] + (x[1] - 0.3) ** 2

    ranges = (-2.0, 2.0), slice(-1.0, 1.0, 0.25)
    with ft.default_dtypes("float64"):
        for finish in (None, "fmin"):
            found, known = (m.brute(wells, ranges, (0.3,), full_output=True,
                                    finish=finish and getattr(m, finish))
                            for m in (optimize, scipy.optimize))
            for ours, theirs in zip(found, known, strict=True):
                same(ours, np.asarray(theirs), atol=1e-4 if finish else 1e-12)
        same(optimize.brute(lambda x: (x - 0.4) ** 2, ((0, 1),)), np.array(0.4), atol=1e-4)
        slope = ft.grad(lambda a: optimize.brute(wells, ranges, (a,))[0])(0.3)
    same(slope, -1 / (12 * float(found[0][0]) ** 2 - 4), 1e-3)


@pytest.mark.one_in(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constraints_from_many_starts(dtype):
    """As many roundings of each step: none may stop the search, nor end it elsewhere."""
    fun, start, bounds, constraints = PROBLEMS["hs71"]

    def solve(x):
        return optimize.minimize(fun, x, bounds=bounds, constraints=constraints(jnp))

    near = 1 + 1e-3 * np.random.default_rng(0).standard_normal((32, 4))
    found = ft.jit(ft.vmap(solve))(np.clip(start * near, 1, 5).astype(dtype))
    assert np.asarray(found.success).all() and np.asarray(found.nit).max() <= 10
    known = np.array([1, 4.74299964, 3.82114998, 1.37940829])  # Hock and Schittkowski (1981)
    same(found.x, np.broadcast_to(known, (32, 4)).astype(dtype), 1e-8 if dtype is np.float64
         else 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quadratic_programs(dtype):
    """What is left of the conditions of a minimum, with constraints that meet in one corner."""
    rng, eps = np.random.default_rng(1), np.finfo(dtype).eps
    for size, count in ((2, 5), (6, 20), (12, 9)):
        root = rng.standard_normal((size, size))
        hessian, c = root @ root.T, 10 * rng.standard_normal(size)
        g = rng.standard_normal((count, size))
        h = np.where(np.arange(count) < size + 2, 0.0, 1.0) + 1e-3 * np.arange(count)
        args = [v.astype(dtype) for v in (hessian, c, g, h, np.zeros(size))]
        z, y = (np.asarray(v, float) for v in quadratic_program(*args))
        scale = 200 * eps * (1 + abs(c).max()) * max(1, y.max())
        assert abs(hessian @ z + c - g.T @ y).max() < scale and (g @ z + h).min() > -scale
        assert y.min() >= 0 and (y * (g @ z + h)).max() < scale


def test_in_float32():
    def far(x):
        return (x[0] - 1) ** 2 + (x[1] - 2.5) ** 2

    above = [{"type": "ineq", "fun": lambda x, a=a: jnp.dot(jnp.float32(a[:2]), x) + a[2]}
             for a in ([1, -2, 2], [-1, -2, 6], [-1, 2, 2])]
    found = optimize.minimize(far, np.array([2, 0], np.float32), bounds=[(0, None)] * 2,
                              constraints=above)
    same(found.x, np.float32([1.4, 1.7]), rtol=2e-3)
    assert found.x.dtype == np.float32 and found.success
    for method in ("trust-exact", "TNC"):
        found = optimize.minimize(optimize.rosen, np.array([1.3, 0.7], np.float32), method=method)
        same(found.x, np.float32([1, 1]), atol=1e-3)


def test_a_function_with_its_gradient():
    def both(x):
        return (x**2).sum(), 2 * x

    assert optimize.minimize(both, np.ones(2), jac=True).success
    x, value, info = optimize.fmin_l_bfgs_b(both, np.ones(2))
    same((x, value, info["grad"]), (np.zeros(2), 0.0, np.zeros(2)), atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 7), (7, 3), (20, 20)])
def test_assignments(shape):
    for draw in range(4):
        cost = np.random.default_rng(draw).integers(0, 9, shape) + 0.0
        if draw == 1 and min(shape) > 1:
            cost[0, 0] = cost[1, 1] = np.inf
        for maximize in (False, True):
            cost = np.where(np.isinf(cost) & maximize, -np.inf, cost)
            rows, columns = optimize.linear_sum_assignment(cost, maximize)
            theirs = scipy.optimize.linear_sum_assignment(cost, maximize)
            assert len(set(columns.tolist())) == min(shape) and rows.shape == theirs[0].shape
            assert (np.diff(np.asarray(rows)) > 0).all()
            same(cost[np.asarray(rows), np.asarray(columns)].sum(), cost[theirs].sum())


def test_assignments_under_vmap_and_jit():
    costs = rng.random((3, 5, 6))
    rows, columns = ft.jit(ft.vmap(optimize.linear_sum_assignment))(costs)
    for i, cost in enumerate(costs):
        same((rows[i], columns[i]), scipy.optimize.linear_sum_assignment(cost))
    cost = np.array([[np.inf, 1.0], [np.inf, 2.0]])
    assert sorted(ft.jit(optimize.linear_sum_assignment)(cost)[1].tolist()) == [-1, 1]
    with pytest.raises(ArgumentError, match="finite cost"):
        optimize.linear_sum_assignment(cost)
    with pytest.raises(ArgumentError, match="NaN"):
        optimize.linear_sum_assignment(cost * np.nan)
    with pytest.raises(ShapeError):
        optimize.linear_sum_assignment(costs)
    assert optimize.linear_sum_assignment(np.zeros((0, 3)))[0].shape == (0,)


def test_isotonic_regression():
    y = np.round(rng.standard_normal(40), 1)
    w = rng.random(40)
    for up in (True, False):
        same(optimize.isotonic_regression(y, weights=w, increasing=up).x,
             scipy.optimize.isotonic_regression(y, weights=w, increasing=up).x)
    same(ft.jit(ft.vmap(lambda y: optimize.isotonic_regression(y).x))(y.reshape(4, 10)),
         [scipy.optimize.isotonic_regression(v).x for v in y.reshape(4, 10)])
    check_grads(lambda y, w: optimize.isotonic_regression(y, weights=w).x,
                (rng.standard_normal(9), w[:9]), 1)


def test_short_names():
    call = Pair(optimize, scipy.optimize)
    x = np.array([1.3, 0.7, 0.8])
    for name in ("rosen", "rosen_der", "rosen_hess"):
        call(name, x)
    call("rosen_hess_prod", x, np.arange(3.0))
    call("approx_fprime", x, lambda x: np.array([1.0, 2.0]) * (x**2).sum(), 1e-3)
    assert optimize.check_grad(optimize.rosen, optimize.rosen_der, x) < 1e-3
    near = {"rtol": 1e-5, "atol": 1e-5}
    call("fsolve", lambda x: x**3 - 2, np.ones(2), **near)
    same(optimize.leastsq(lambda x: x**3 - 2, np.ones(2))[0], np.full(2, 2 ** (1 / 3)), **near)
    for name in ("fmin", "fmin_bfgs", "fmin_cg"):
        same(getattr(optimize, name)(lambda x: ((x - 2) ** 2).sum(), np.ones(2)), [2, 2], atol=1e-4)
    call("fminbound", lambda x: (x - 1) ** 4 + x, np.float64(-1), np.float64(3), **near)
    call("brent", lambda x: (x - 1) ** 4 + x, brack=(np.float64(-1), np.float64(3)), **near)
    call("golden", lambda x: (x - 1) ** 4 + x, brack=(np.float64(-1), np.float64(3)), **near)
    a, b = rng.standard_normal((6, 3)), rng.standard_normal(6)
    same(optimize.lsq_linear(a, b, (0, 1)).x, scipy.optimize.lsq_linear(a, b, (0, 1)).x, atol=1e-7)
