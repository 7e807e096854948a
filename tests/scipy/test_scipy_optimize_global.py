"""The lowest of many minima, and minima by models of values alone."""

import numpy as np
import pytest
import scipy.optimize

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import optimize

BOX = [(-5.12, 5.12)] * 2
STRATEGIES = ["best1bin", "best1exp", "rand1bin", "rand2exp", "randtobest1bin", "best2bin",
              "currenttobest1exp"]


def rastrigin(x, a=0.0):
    return ((x - a) ** 2 - 10 * jnp.cos(2 * np.pi * (x - a))).sum() + 10 * x.size


@pytest.mark.one_in(3)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_strategies(strategy):
    found = optimize.differential_evolution(rastrigin, BOX, (np.float64(0.4),), strategy)
    np.testing.assert_allclose(found.x, 0.4, atol=1e-5)
    assert found.success and found.fun < 1e-8


def test_options_of_differential_evolution():
    with ft.default_dtypes("float64"):
        whole = optimize.differential_evolution(rastrigin, BOX, (0.4,), integrality=[True, False])
        np.testing.assert_allclose(whole.x, [0, 0.4], atol=1e-6)
        line = optimize.LinearConstraint([[1.0, 1.0]], 1.5, np.inf)
        found = optimize.differential_evolution(rastrigin, BOX, constraints=line)
        theirs = scipy.optimize.LinearConstraint([[1.0, 1.0]], 1.5, np.inf)
        expected = scipy.optimize.differential_evolution(
            lambda x: (x**2 - 10 * np.cos(2 * np.pi * x)).sum() + 20, BOX, rng=0,
            constraints=theirs, polish=False, tol=1e-8)
        np.testing.assert_allclose(found.fun, expected.fun, rtol=1e-6)
        many = optimize.differential_evolution(
            lambda x: ((x - 1) ** 2).sum(0), BOX, vectorized=True, polish=False, rng=3, x0=[1, 1])
        np.testing.assert_allclose(many.x, 1, atol=0.05)
    points = np.random.default_rng(0).uniform(-5, 5, (12, 2)).astype("float32")
    again = [optimize.differential_evolution(rastrigin, BOX, init=points, rng=key).nit
             for key in (5, ft.random.key(5))]
    assert again[0] == again[1] > 0


SEARCHES = {
    "differential_evolution": lambda f: optimize.differential_evolution(f, BOX),
    "dual_annealing": lambda f: optimize.dual_annealing(f, BOX, maxiter=100),
    "basinhopping": lambda f: optimize.basinhopping(f, np.array([3.0, 2.0]), 60, stepsize=1.0)}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", SEARCHES)
def test_searches_have_the_derivatives_of_the_minimum(name):
    def lowest(a):
        return SEARCHES[name](lambda x: rastrigin(x, a)).x

    with ft.default_dtypes("float64"):
        np.testing.assert_allclose(lowest(0.3), 0.3, atol=1e-6)
        np.testing.assert_allclose(ft.jacfwd(lowest)(0.3), 1, atol=1e-6)
        lanes = ft.jit(ft.vmap(lowest))(np.array([-0.5, 0.7]))
        np.testing.assert_allclose(lanes, [[-0.5] * 2, [0.7] * 2], atol=1e-6)


def test_options_of_hops_and_annealing():
    with ft.default_dtypes("float64"):
        far = optimize.basinhopping(
            rastrigin, np.array([2.0]), 20, take_step=lambda x, key: -x, niter_success=3,
            accept_test=lambda f_new, x_new, f_old, x_old: x_new[0] > -10)
        assert far.nit == 3
        cold = optimize.basinhopping(rastrigin, np.array([2.0, 1.0]), 40, T=0, interval=5,
                                     minimizer_kwargs={"method": "L-BFGS-B", "bounds": BOX})
        assert cold.fun < 4
        plain = optimize.dual_annealing(rastrigin, BOX, maxiter=300, no_local_search=True,
                                        x0=[3, 3])
        assert plain.fun < 2 and plain.nit == 300


@pytest.mark.one_in(2)
@pytest.mark.parametrize("method", ["COBYLA", "COBYQA"])
def test_models_of_values(method):
    def f(x):
        return (x[0] - 1) ** 2 + (x[1] - 2.5) ** 2

    sides = [{"type": "ineq", "fun": g} for g in (
        lambda x: x[0] - 2 * x[1] + 2, lambda x: -x[0] - 2 * x[1] + 6)]
    with ft.default_dtypes("float64"):
        found = optimize.minimize(f, np.array([2.0, 0]), method=method, constraints=sides,
                                  bounds=((0, None), (0, None)), tol=1e-6)
        np.testing.assert_allclose(found.x, [1.4, 1.7], atol=1e-4)
        assert found.success

        def on_line(a):
            line = {"type": "eq", "fun": lambda x: x.sum() - a}
            return optimize.minimize(f, np.array([2.0, 0.0]), method=method, constraints=line).x

        np.testing.assert_allclose(on_line(1.0), [-0.25, 1.25], atol=1e-4)
        np.testing.assert_allclose(ft.jacfwd(on_line)(1.0), [0.5, 0.5], atol=1e-6)

@pytest.mark.one_in(2)
@pytest.mark.parametrize("method", ["COBYLA", "COBYQA"])
def test_models_under_curved_constraints(method):
    with ft.default_dtypes("float64"):
        hs71 = optimize.minimize(
            lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2], np.array([1.0, 5, 5, 1]),
            method=method, bounds=[(1, 5)] * 4, tol=1e-7, constraints=[
                {"type": "ineq", "fun": lambda x: jnp.prod(x) - 25},
                {"type": "eq", "fun": lambda x: (x**2).sum() - 40}])
        np.testing.assert_allclose(hs71.fun, 17.0140173, rtol=1e-6)
        booth = optimize.minimize(lambda x: (x[0] + 2 * x[1] - 7) ** 2 + (
            2 * x[0] + x[1] - 5) ** 2, np.zeros(2), method=method)
        np.testing.assert_allclose(booth.x, [1, 3], atol=1e-4)


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="strategy"):
        optimize.differential_evolution(rastrigin, BOX, strategy="best")
    with pytest.raises(ArgumentError, match="finite"):
        optimize.differential_evolution(rastrigin, [(0, None)])
    for bounds in ((0, 1), 3, [(1, 0)], [(0, np.inf)]):
        with pytest.raises(ArgumentError, match="bounds"):
            optimize.dual_annealing(rastrigin, bounds)
    with pytest.raises(ArgumentError, match="key"):
        optimize.dual_annealing(rastrigin, BOX, rng=np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="visit"):
        optimize.dual_annealing(rastrigin, BOX, visit=4.0)
    with pytest.raises(ShapeError, match="init"):
        optimize.differential_evolution(rastrigin, BOX, init=np.zeros((4, 3)))
    with pytest.raises(ArgumentError, match="option"):
        optimize.minimize(rastrigin, np.zeros(2), method="COBYLA", options={"gtol": 1})


def test_whole_variables():
    a, b = np.array([[3.0, 4.0, 1.0], [1.0, -1.0, 2.0]]), np.array([10.3, 4.2])
    c, kinds = np.array([-2.0, -3.0, -1.0]), [1, 1, 0]
    golden = scipy.optimize.milp(c, integrality=kinds, constraints=(a, -np.inf, b),
                                 bounds=scipy.optimize.Bounds(0, 3))

    def lowest(c, upper):
        return optimize.milp(c, integrality=kinds, bounds=optimize.Bounds(0, 3),
                             constraints=optimize.LinearConstraint(a, -np.inf, upper))

    found = lowest(c, b)
    np.testing.assert_allclose(found.x, golden.x, atol=1e-9)
    np.testing.assert_allclose(found.fun, golden.fun)
    np.testing.assert_allclose(ft.grad(lambda c: lowest(c, b).fun)(c), golden.x, atol=1e-9)
    lanes = ft.jit(ft.vmap(lambda b: lowest(c, b).x))(np.stack([b, b + 1]))
    np.testing.assert_allclose(lanes[0], golden.x, atol=1e-9)
    none = optimize.milp(c, bounds=(0, 1), constraints=[(a, 100.0, np.inf)])
    assert not none.success and int(none.status) == 2 and np.isnan(none.x).all()
    with pytest.raises(ShapeError, match="3 variables"):
        optimize.milp(c, constraints=(np.eye(2), 0, 1))
    with pytest.raises(ArgumentError, match="integrality"):
        optimize.milp(c, integrality=5)
