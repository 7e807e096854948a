"""Roots by approximate Jacobians, boxes, graphs, elementwise problems: beside SciPy's."""

import numpy as np
import pytest
import scipy.optimize
import scipy.optimize.elementwise

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import optimize
from functrans.scipy.optimize import elementwise

rng = np.random.default_rng(0)
MIXED = ("broyden1", "broyden2", "anderson", "diagbroyden")


@pytest.fixture(autouse=True)
def float64():
    with ft.default_dtypes("float64"):
        yield


def coupled(x, a=1.0):
    return jnp.stack([x[0] + 0.5 * (x[0] - x[1]) ** 3 - a, 0.5 * (x[1] - x[0]) ** 3 + x[1]])


def known(f):
    return lambda x: np.asarray(f(jnp.asarray(x)))


@pytest.mark.parametrize("name", [*MIXED, "linearmixing", "excitingmixing"])
def test_steps_are_those_of_scipy(name):
    options = {"alpha": -0.3} if name == "linearmixing" else {}
    for count in (1, 4, 7):
        ours = getattr(optimize, name)(coupled, [0.0, 0.0], iter=count, **options)
        theirs = getattr(scipy.optimize, name)(known(coupled), [0.0, 0.0], iter=count, **options)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [*MIXED, "newton_krylov"])
def test_roots_of_approximate_jacobians(name):
    def found(a):
        return getattr(optimize, name)(lambda x: coupled(x, a), [0.0, 0.0], f_tol=1e-12)

    expected = optimize.root(lambda x: coupled(x, 1.3), [0.0, 0.0], method="lm").x
    np.testing.assert_allclose(found(1.3), expected, atol=1e-9)
    np.testing.assert_allclose(ft.jit(found)(1.3), expected, atol=1e-9)
    np.testing.assert_allclose(ft.vmap(found)(jnp.array([1.3, 0.4]))[1], found(0.4), atol=1e-12)
    slope = ft.jacfwd(lambda a: optimize.root(lambda x: coupled(x, a), [0.0, 0.0]).x)(1.3)
    np.testing.assert_allclose(ft.jacrev(ft.jit(found))(1.3), slope, rtol=1e-8)


@pytest.mark.parametrize("method", [*MIXED[1:], "linearmixing", "krylov", "df-sane"])
def test_root_by_method(method):
    options = {"fatol": 1e-9}
    if method == "linearmixing":
        options["jac_options"] = {"alpha": -0.3}
    found = optimize.root(coupled, [0.0, 0.0], method=method, options=options)
    assert bool(found.success) and float(jnp.max(jnp.abs(found.fun))) < 1e-7
    if method not in ("krylov", "linearmixing"):
        theirs = scipy.optimize.root(known(coupled), [0.0, 0.0], method=method, options=options)
        assert abs(int(found.nit) - theirs.nit) <= 1


def test_no_convergence():
    with pytest.raises(optimize.NoConvergence) as raised:
        optimize.broyden1(lambda x: x**2 + 1, jnp.ones(2), maxiter=4)
    assert raised.value.args[0].shape == (2,)
    traced = ft.jit(lambda x: optimize.broyden1(lambda x: x**2 + 1, x, maxiter=4))(jnp.ones(2))
    assert np.isnan(traced).all()
    with pytest.raises(ShapeError, match="as many equations"):
        optimize.anderson(lambda x: x[:1], jnp.ones(2))
    with pytest.raises(ArgumentError, match="reduction_method"):
        optimize.broyden1(coupled, [0.0, 0.0], reduction_method="svd")


def test_approximate_jacobians_are_operators():
    ours, theirs = optimize.BroydenFirst(alpha=0.4), scipy.optimize.BroydenFirst(alpha=0.4)
    x = np.array([0.3, 0.1])
    for approximation in (ours, theirs):
        approximation.setup(x, known(coupled)(x), known(coupled))
        approximation.update(x + 0.1, known(coupled)(x + 0.1))
    v = np.array([1.0, 2.0])
    np.testing.assert_allclose(ours.solve(v), theirs.solve(v))
    np.testing.assert_allclose(ours.matvec(v), theirs.matvec(v))
    np.testing.assert_allclose(optimize.InverseJacobian(ours).matvec(v), theirs.solve(v))
    krylov = optimize.KrylovJacobian()
    krylov.setup(x, coupled(jnp.asarray(x)), coupled)
    np.testing.assert_allclose(krylov.matvec(krylov.solve(v, tol=1e-12)), v)
    with pytest.raises(ArgumentError, match="not set up"):
        optimize.KrylovJacobian().matvec(v)


@pytest.mark.parametrize("kind, options", [
    ("BFGS", {}), ("BFGS", {"exception_strategy": "damp_update"}), ("BFGS", {"init_scale": 2.0}),
    ("SR1", {}), ("SR1", {"init_scale": 0.5})])
@pytest.mark.parametrize("of", ["hess", "inv_hess"])
def test_hessian_updates(kind, options, of):
    ours, theirs = (getattr(m, kind)(**options) for m in (optimize, scipy.optimize))
    for strategy in (ours, theirs):
        strategy.initialize(3, of)
    for _ in range(5):
        step, change = rng.normal(size=(2, 3))
        for strategy in (ours, theirs):
            strategy.update(step, change + step)
    np.testing.assert_allclose(ours.get_matrix(), theirs.get_matrix(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.dot(step), theirs.dot(step), rtol=1e-7, atol=1e-9)


def test_products_with_inverse_hessians():
    sk = rng.normal(size=(3, 4))
    yk = sk + 0.1 * rng.normal(size=(3, 4))
    ours, theirs = (m.LbfgsInvHessProduct(sk, yk) for m in (optimize, scipy.optimize))
    np.testing.assert_allclose(ours.todense(), theirs.todense(), rtol=1e-10)
    np.testing.assert_allclose(ours @ sk.T, theirs @ sk.T, rtol=1e-10)


@pytest.mark.parametrize("f, a, b", [
    (lambda x: x**3 - 2 * x - 5, 2.0, 3.0), (lambda x: jnp.cos(x) - x**3, 0.0, 2.0),
    (lambda x: jnp.exp(-x) - 0.01, 0.0, 40.0)])
def test_brackets_of_roots(f, a, b):
    def host(x):
        return float(f(jnp.asarray(x)))

    for name, options in (("brenth", {}), ("toms748", {"k": 1}), ("toms748", {"k": 2})):
        x, found = getattr(optimize, name)(f, a, b, full_output=True, **options)
        theirs = getattr(scipy.optimize, name)(host, a, b, **options)
        assert bool(found.converged) and abs(float(x) - theirs) < 1e-10
    with pytest.raises(ArgumentError, match="one sign"):
        optimize.toms748(f, b, b + 1)


def test_toms748_has_derivatives_and_lanes():
    def found(a):
        return optimize.toms748(lambda x: x**3 - a, 0.0, 4.0)

    values, slopes = ft.jit(ft.vmap(ft.value_and_grad(found)))(jnp.array([1.0, 8.0, 27.0]))
    np.testing.assert_allclose(values, [1, 2, 3])
    np.testing.assert_allclose(slopes, 1 / (3 * values**2))


@pytest.mark.parametrize("f, a, b", [
    (lambda x: (x - 4) ** 2, 0.0, 1.0), (lambda x: -jnp.sin(x), 0.0, 0.1),
    (lambda x: x**4 - 3 * x, 5.0, 4.0), (lambda x: jnp.exp(x) - 5 * x, -3.0, -2.9)])
def test_bracket(f, a, b):
    ours = optimize.bracket(f, a, b)
    theirs = scipy.optimize.bracket(lambda x: float(f(jnp.asarray(x))), a, b)
    np.testing.assert_allclose(np.array(ours, float), np.array(theirs), rtol=1e-9)


def test_bracket_that_there_is_not():
    with pytest.raises(ArgumentError, match="no bracket"):
        optimize.bracket(lambda x: -x, maxiter=50)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("biased", [True, False])
def test_direct(biased):
    def styblinski(x):
        return 0.5 * (x**4 - 16 * x**2 + 5 * x).sum()

    box = [(-4.0, 4.0)] * 2
    few = {"locally_biased": biased, "maxfun": 500}
    ours = optimize.direct(styblinski, box, **few)
    theirs = scipy.optimize.direct(styblinski, box, **few)
    np.testing.assert_allclose(ours.fun, theirs.fun, rtol=2e-4)
    assert ours.nfev <= 520 and int(ours.status) == theirs.status == 1
    near = optimize.direct(styblinski, box, f_min=-78.33, f_min_rtol=1e-3)
    assert int(near.status) == 3 and bool(near.success)

    def of(a):
        return optimize.direct(lambda x: ((x**2 - a) ** 2).sum() + 0.1 * x.sum(), box, **few).x

    x, slope = ft.jit(lambda a: ft.jvp(of, (a,), (1.0,)))(1.3)
    np.testing.assert_allclose(4 * x**3 - 4 * 1.3 * x + 0.1, 0, atol=5e-3)
    np.testing.assert_allclose(slope, 4 * x / (12 * x**2 - 4 * 1.3), rtol=1e-3)


def test_direct_refuses_what_is_no_box():
    with pytest.raises(ArgumentError, match="finite"):
        optimize.direct(lambda x: x.sum(), [(0.0, np.inf)])
    with pytest.raises(ArgumentError, match="len_tol"):
        optimize.direct(lambda x: x.sum(), [(0.0, 1.0)], len_tol=2.0)


@pytest.mark.parametrize("sampling", ["simplicial", "halton", lambda n, d: rng.random((n, d))])
def test_shgo_finds_all_minima(sampling):
    def himmelblau(x):
        return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2

    found = optimize.shgo(himmelblau, [(-5.0, 5.0)] * 2, sampling_method=sampling)
    minima = {tuple(x) for x in np.asarray(found.xl).round(2).tolist()}
    assert minima == {(3.0, 2.0), (-2.81, 3.13), (-3.78, -3.28), (3.58, -1.85)}
    assert float(found.fun) < 1e-12 and bool(found.success)


def test_shgo_under_constraints_and_transforms():
    disc = {"type": "ineq", "fun": lambda x: 1 - (x**2).sum()}
    found = optimize.shgo(lambda x: -x[0] * x[1], [(-2.0, 2.0)] * 2, constraints=disc)
    np.testing.assert_allclose(np.abs(found.xl), np.sqrt(0.5) * np.ones((2, 2)), rtol=1e-6)

    def lowest(a):
        return optimize.shgo(lambda x: ((x**2 - a) ** 2).sum() + 0.1 * x.sum(), [(-2.0, 2.0)],
                             n=20).x

    values, slopes = ft.jit(ft.vmap(lambda a: ft.jvp(lowest, (a,), (1.0,))))(jnp.array([1.3, 0.5]))
    np.testing.assert_allclose(values[1], lowest(0.5), rtol=1e-9)
    np.testing.assert_allclose(slopes[0], (lowest(1.301) - lowest(1.299)) / 0.002, rtol=1e-5)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("maximize", [False, True])
def test_quadratic_assignment(maximize):
    A, B = rng.random((2, 7, 7))
    pairs = np.array([[0, 2], [3, 1]])
    guess = np.stack([np.arange(7), rng.permutation(7)], axis=1)
    for method, options in (("faq", {}), ("faq", {"partial_match": pairs}),
                            ("2opt", {"partial_guess": guess}),
                            ("2opt", {"partial_guess": guess[1:4],
                                      "partial_match": guess[[0, 4, 5, 6]]})):
        given = options | {"maximize": maximize}
        ours = optimize.quadratic_assignment(A, B, method, given)
        theirs = scipy.optimize.quadratic_assignment(
            A, B, method, given | {"rng": np.random.default_rng(0)})
        assert ours.col_ind.tolist() == theirs.col_ind.tolist(), (method, options)
        np.testing.assert_allclose(ours.fun, theirs.fun)
    traced = ft.jit(lambda a: optimize.quadratic_assignment(a, B).col_ind)(A)
    assert traced.tolist() == optimize.quadratic_assignment(A, B).col_ind.tolist()
    swaps = optimize.quadratic_assignment(A, B, "2opt", {"rng": 3, "maximize": maximize})
    assert sorted(swaps.col_ind.tolist()) == list(range(7))
    with pytest.raises(ArgumentError, match="pairs"):
        optimize.quadratic_assignment(A, B, options={"partial_match": [[0, 9]]})
    with pytest.raises(ShapeError, match="square"):
        optimize.quadratic_assignment(A, B[:3])


C = np.array([2.0, 5.0, 9.0])
ROOTS = [(lambda x, c: x**3 - c, (0.0, 10.0)), (lambda x, c: jnp.exp(x / 3) - c, (-3.0, 20.0)),
         (lambda x, c: jnp.cos(x) + 0.01 * c, (3.0, 0.0)), (lambda x, c: x**2 + c, (0.0, 1.0))]


@pytest.mark.parametrize("f, init", ROOTS)
def test_find_root(f, init):
    ours = elementwise.find_root(f, init, args=(C,))
    theirs = scipy.optimize.elementwise.find_root(lambda x, c: np.asarray(f(jnp.asarray(x), c)),
                                                  init, args=(C,))
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-14)
    assert ours.nfev.tolist() == theirs.nfev.tolist()
    assert ours.status.tolist() == theirs.status.tolist()


@pytest.mark.parametrize("f, init", [
    (lambda x, c: (x - c) ** 2, (-5.0, 1.0, 15.0)),
    (lambda x, c: jnp.cos(x + c / 30), (1.0, 3.0, 5.0)),
    (lambda x, c: jnp.exp(x / 3) - c * x, (-3.0, 5.0, 20.0))])
def test_find_minimum(f, init):
    ours = elementwise.find_minimum(f, init, args=(C,))
    theirs = scipy.optimize.elementwise.find_minimum(
        lambda x, c: np.asarray(f(jnp.asarray(x), c)), init, args=(C,))
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-9)
    assert ours.nit.tolist() == theirs.nit.tolist()
    assert ours.status.tolist() == theirs.status.tolist()


@pytest.mark.parametrize("options", [
    {"xl0": 0.0}, {"xl0": C * 10}, {"xl0": -5.0, "xr0": -4.0},
    {"xl0": 30.0, "xr0": 40.0, "xmin": 0.0},
    {"xl0": 1.0, "xr0": 2.0, "xmin": 0.0, "xmax": 50.0}, {"xl0": 2.0, "xr0": 1.0}])
def test_bracket_root(options):
    ours = elementwise.bracket_root(lambda x, c: x - 3 * c, args=(C,), **options)
    theirs = scipy.optimize.elementwise.bracket_root(lambda x, c: x - 3 * c, args=(C,), **options)
    assert ours.status.tolist() == theirs.status.tolist()
    if ours.success.all():
        np.testing.assert_allclose(ours.bracket, theirs.bracket)
        np.testing.assert_allclose(ours.f_bracket, theirs.f_bracket)
        assert ours.nit.tolist() == theirs.nit.tolist()


@pytest.mark.parametrize("options", [
    {"xm0": 0.0}, {"xm0": C * 10}, {"xm0": -5.0, "xr0": -4.0}, {"xm0": 30.0, "xmin": 0.0},
    {"xm0": 1.0, "xmin": 0.0, "xmax": 50.0}, {"xm0": 60.0, "xmin": 50.0}])
def test_bracket_minimum(options):
    def f(x, c):
        return (x - 3 * c) ** 2

    ours = elementwise.bracket_minimum(f, args=(C,), **options)
    theirs = scipy.optimize.elementwise.bracket_minimum(f, args=(C,), **options)
    np.testing.assert_allclose(ours.bracket, theirs.bracket)
    assert ours.status.tolist() == theirs.status.tolist()
    assert ours.nit.tolist() == theirs.nit.tolist()


def test_elementwise_problems_have_derivatives():
    def root(c):
        return elementwise.find_root(lambda x, c: x**3 - c, (0.0, 10.0), args=(c,)).x

    def lowest(c):
        return elementwise.find_minimum(lambda x, c: jnp.exp(x / 3) - c * x, (-3., 5., 20.),
                                        args=(c,)).x

    np.testing.assert_allclose(ft.jit(ft.grad(lambda c: root(c).sum()))(C), C ** (-2 / 3) / 3)
    np.testing.assert_allclose(ft.jit(ft.grad(lambda c: lowest(c).sum()))(C), 3 / C, rtol=1e-7)
    np.testing.assert_allclose(ft.vmap(root)(C), root(C))
    with pytest.raises(ShapeError, match="problem of its own"):
        elementwise.find_root(lambda x: x.sum(), (jnp.zeros(2), jnp.ones(2)))
    with pytest.raises(ArgumentError, match="tolerance"):
        elementwise.find_root(lambda x: x, (-1.0, 1.0), tolerances={"tol": 1.0})


def test_full_outputs(capsys):
    def f(x):
        return ((x - 2) ** 2).sum()

    for name, sizes in (("fmin", 5), ("fmin_bfgs", 7), ("fmin_cg", 5), ("fmin_powell", 6),
                        ("fmin_ncg", 6), ("fmin_slsqp", 5)):
        found = getattr(optimize, name)(f, jnp.ones(2), full_output=True, disp=1)
        assert len(found) == sizes and abs(float(found[1])) < 1e-3, name
        assert "terminated successfully" in capsys.readouterr().out
    x, info, flag, message = optimize.fsolve(lambda x: x**2 - jnp.array([1.0, 4.0]),
                                             jnp.array([3.0, 3.0]), full_output=True)
    assert int(flag) == 1 and "converged" in message
    r = np.zeros((2, 2))
    r[np.triu_indices(2)] = info["r"]
    np.testing.assert_allclose(info["fjac"].T @ r, np.diag(2 * x), atol=1e-12)
    _, covariance, info, _, _ = optimize.leastsq(lambda x: jnp.outer(C, x).ravel() - 1.0,
                                                 jnp.zeros(2), full_output=True)
    np.testing.assert_allclose(covariance, np.eye(2) / (C @ C), atol=1e-12)
    assert len(optimize.brent(f, full_output=True)) == 4
    assert len(optimize.golden(f, full_output=True)) == 3
    assert int(optimize.fminbound(f, 0.0, 3.0, full_output=True)[2]) == 0
    with pytest.raises(ArgumentError, match="retall"):
        optimize.fmin(f, jnp.ones(2), retall=True)
    corners = jnp.array([[3.0, 1.0], [1.0, 1.0], [1.0, 3.0]])
    ours = optimize.fmin(f, jnp.ones(2), initial_simplex=corners, full_output=True)
    theirs = scipy.optimize.fmin(f, np.ones(2), initial_simplex=corners, full_output=True, disp=0)
    np.testing.assert_allclose(ours[0], theirs[0], atol=1e-8)


def test_results_by_name():
    found = optimize.OptimizeResult(x=jnp.ones(2), message="well", nit=3)
    assert found.x is found["x"] and len(ft.tree.leaves(found)) == 2
    doubled = ft.jit(lambda r: ft.tree.map(lambda v: 2 * v, r))(found)
    assert doubled.message == "well" and int(doubled.nit) == 6 and "nit: " in repr(doubled)
    with pytest.raises(AttributeError, match="it has x"):
        found.y  # noqa: B018
    assert "gtol" in optimize.show_options("minimize", "BFGS", disp=False)
    assert optimize.show_options(disp=False).count("method=") > 30
    with pytest.raises(ArgumentError, match="method"):
        optimize.show_options("minimize", "newton")
