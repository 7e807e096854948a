"""Boundary values, steps, events and integrals of arrays: beside SciPy's."""

import numpy as np
import pytest
import scipy.integrate

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import integrate

METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
AL = np.array([0.3, 1.0, 5.0])


@pytest.fixture(autouse=True)
def float64():
    with ft.default_dtypes("float64"):
        yield


def np_or_jnp(x):
    return np if isinstance(x, np.ndarray) else jnp


def bratu(x, y):
    m = np_or_jnp(y)
    return m.stack([y[1], -m.exp(y[0])])


def zero_ends(a, b):
    return np_or_jnp(a).stack([a[0], b[0]])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_boundary_values_have_the_mesh_of_scipy(tol):
    x, y, xs = np.linspace(0, 1, 5), np.zeros((2, 5)), np.linspace(0, 1, 33)
    ours = integrate.solve_bvp(bratu, zero_ends, x, y, tol=tol)
    theirs = scipy.integrate.solve_bvp(bratu, zero_ends, x, y, tol=tol)
    assert ours.x.size == theirs.x.size and int(ours.status) == theirs.status == 0
    np.testing.assert_allclose(ours.sol(xs), theirs.sol(xs), atol=2e-3 * tol)
    np.testing.assert_allclose(ours.sol(xs, 1), theirs.sol(xs, 1), atol=2e-2 * tol ** 0.75)
    np.testing.assert_allclose(ours.yp, theirs.yp, atol=1e-2 * tol)


def test_boundary_values_with_a_parameter_and_a_singular_term():
    x, y = np.linspace(0, 1, 5), np.zeros((2, 5))
    y[0, 1], y[0, 3] = 1, -1
    found = integrate.solve_bvp(lambda x, y, p: jnp.stack([y[1], -p[0] ** 2 * y[0]]),
                                lambda a, b, p: jnp.stack([a[0], b[0], a[1] - p[0]]), x, y, p=[6.0])
    np.testing.assert_allclose(found.p, [2 * np.pi], rtol=5e-5)
    emden = integrate.solve_bvp(
        lambda x, y: jnp.stack([y[1], -y[0] ** 5]),
        lambda a, b: jnp.stack([a[1], b[0] - np.sqrt(3) / 2]), x, np.ones((2, 5)),
        S=np.diag([0.0, -2.0]))
    np.testing.assert_allclose(emden.sol(x)[0], 1 / np.sqrt(1 + x**2 / 3), atol=1e-4)


def layer(e, max_nodes=32, tol=1e-5):
    """At 0.1, with the exact value sinh(0.9 / e) / sinh(1 / e)."""
    found = integrate.solve_bvp(
        lambda x, y: jnp.stack([y[1], y[0] / e**2]), lambda a, b: jnp.stack([a[0] - 1, b[0]]),
        np.linspace(0, 1, 9), np.zeros((2, 9)), tol=tol, max_nodes=max_nodes)
    return found.sol(jnp.array([0.1]))[0, 0]


def test_derivatives_of_boundary_values():
    def exact(e):
        return jnp.sinh(0.9 / e) / jnp.sinh(1 / e)

    slope = ft.grad(exact)(0.3)
    np.testing.assert_allclose(ft.grad(layer)(0.3), slope, rtol=1e-4)
    bend = ft.jacfwd(ft.jacfwd(exact))(0.3)
    np.testing.assert_allclose(ft.jacfwd(ft.jacfwd(layer))(0.3), bend, rtol=1e-3)
    lanes = ft.jit(ft.vmap(lambda e: ft.jvp(layer, (e,), (1.0,))))(jnp.array([0.3, 0.5]))
    np.testing.assert_allclose(lanes[0], [exact(0.3), exact(0.5)], rtol=1e-5)
    np.testing.assert_allclose(lanes[1][0], slope, rtol=1e-4)


def test_boundary_values_that_fail():
    x, y = np.linspace(0, 1, 5), np.zeros((2, 5))
    few = integrate.solve_bvp(lambda x, y: jnp.stack([y[1], 1e4 * y[0]]),
                              lambda a, b: jnp.stack([a[0] - 1, b[0]]), x, y, max_nodes=8)
    assert int(few.status) == 1 and not bool(few.success)
    with pytest.raises(ShapeError, match="bc returns"):
        integrate.solve_bvp(bratu, lambda a, b: a[:1], x, y)
    with pytest.raises(ArgumentError, match="do not rise"):
        integrate.solve_bvp(bratu, zero_ends, x[::-1], y)
    with pytest.raises(ShapeError, match="m nodes"):
        integrate.solve_bvp(bratu, zero_ends, x, y.T)


def prey(t, y):
    return np_or_jnp(y).stack([1.5 * y[0] - y[0] * y[1], -3 * y[1] + y[0] * y[1]])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("method", METHODS)
def test_dense_output(method):
    xs = np.linspace(0, 3, 20)
    options = {"method": method, "dense_output": True, "rtol": 1e-6, "atol": 1e-8}
    ours = integrate.solve_ivp(prey, (0.0, 3.0), [10.0, 5.0], **options)
    theirs = scipy.integrate.solve_ivp(prey, (0, 3), [10.0, 5.0], **options)
    exact = scipy.integrate.solve_ivp(prey, (0, 3), [10.0, 5.0], method="DOP853", rtol=1e-11,
                                      atol=1e-12, dense_output=True).sol(xs)
    off = abs(theirs.sol(xs) - exact).max()
    assert abs(np.asarray(ours.sol(xs)) - exact).max() < 4 * off
    if method == "DOP853":
        np.testing.assert_allclose(ft.jit(ours.sol)(xs[:3]), ours.sol(xs[:3]), rtol=1e-9)
    if method in ("RK23", "RK45", "DOP853"):
        np.testing.assert_allclose(ours.t, theirs.t, rtol=1e-9)
        assert int(ours.nfev) == theirs.nfev


def test_stiff_equations_by_bdf():
    def stiff(t, y):
        m = np_or_jnp(y)
        return m.stack([y[1], 100 * (1 - y[0] ** 2) * y[1] - y[0]])

    te = np.array([0.0, 1.0, 10.0])
    ours = integrate.solve_ivp(stiff, (0.0, 10.0), [2.0, 0.0], method="BDF", t_eval=te, rtol=1e-6)
    exact = scipy.integrate.solve_ivp(stiff, (0, 10), [2.0, 0.0], method="Radau", t_eval=te,
                                      rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.y[0], exact.y[0], rtol=1e-5)

    def end(a):
        return integrate.solve_ivp(lambda t, y: -a * y**2, (0.0, 1.0), jnp.ones(1), method="BDF",
                                   rtol=1e-8, atol=1e-10).y[0, -1]

    values, slopes = ft.jit(ft.vmap(lambda a: ft.jvp(end, (a,), (1.0,))))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(values, [1 / 2, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(slopes, [-1 / 4, -1 / 9], rtol=1e-5)
    np.testing.assert_allclose(ft.grad(end)(2.0), slopes[1], rtol=1e-6)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("method", ["BDF", "Radau"])
def test_implicit_steps_of_complex_values(method):
    found = integrate.solve_ivp(lambda t, y: 1j * y, (0.0, 1.0), jnp.ones(1, complex),
                                method=method, rtol=1e-6)
    np.testing.assert_allclose(found.y[:, -1], [np.exp(1j)], atol=1e-4)


def ground(t, y):
    return y[0]


ground.terminal, ground.direction = True, -1


def cannon(t, y):
    return np_or_jnp(y).stack([y[1], 0 * y[0] - 0.5])


def test_events():
    def apex(t, y):
        return y[1]

    events = (ground, apex)
    ours = integrate.solve_ivp(cannon, (0.0, 100.0), [0.0, 10.0], events=events)
    theirs = scipy.integrate.solve_ivp(cannon, (0, 100), [0.0, 10.0], events=events)
    for name in ("t_events", "y_events"):
        for u, v in zip(getattr(ours, name), getattr(theirs, name), strict=True):
            np.testing.assert_allclose(u, v, atol=1e-9)
    np.testing.assert_allclose(ours.t, theirs.t)
    assert int(ours.status) == 1 and bool(ours.success)

    def landing(v):
        return integrate.solve_ivp(cannon, (0.0, 100.0), jnp.stack([0.0, v]),
                                   events=ground).t_events[0][0]

    np.testing.assert_allclose([ft.grad(landing)(10.0), ft.jacfwd(landing)(10.0)], 4.0)
    with pytest.raises(ArgumentError, match="traced"):
        ft.jit(landing)(10.0)


def test_events_are_counted_and_times_are_chosen():
    def level(t, y):
        return y[0] - 1

    level.terminal = 3
    te = np.linspace(0, 50, 11)
    ours, theirs = (m.solve_ivp(lambda t, y: np_or_jnp(y).stack([y[1], -y[0]]), (0.0, 50.0),
                                [0.0, 2.0], events=level, t_eval=te)
                    for m in (integrate, scipy.integrate))
    np.testing.assert_allclose(ours.t_events[0], theirs.t_events[0], rtol=1e-9)
    np.testing.assert_allclose(ours.t, theirs.t)
    np.testing.assert_allclose(ours.y, theirs.y, atol=1e-10)
    with pytest.raises(ArgumentError, match="t_eval"):
        integrate.solve_ivp(prey, (0.0, 1.0), [1.0, 1.0], t_eval=[2.0], dense_output=True)


def test_steppers():
    ours, theirs = (m.RK45(prey, 0.0, np.array([10.0, 5.0]), -1.0)
                    for m in (integrate, scipy.integrate))
    for _ in range(3):
        assert ours.step() is None and theirs.step() is None
        np.testing.assert_allclose(ours.t, theirs.t, rtol=1e-12)
        np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-12)
    assert ours.status == "running" and ours.nfev == theirs.nfev
    with pytest.raises(ArgumentError, match="no step"):
        integrate.RK23(prey, 0.0, [1.0, 1.0], 1.0).dense_output()
    with pytest.raises(ArgumentError, match="max_step"):
        integrate.RK23(prey, 0.0, [1.0, 1.0], 1.0, max_step=-1.0)
    blown = integrate.RK45(lambda t, y: y**2, 0.0, jnp.ones(1), 2.0)
    while blown.status == "running":
        blown.step()
    assert blown.status == "failed"


def test_ode_objects():
    ours, theirs = (m.ode(lambda t, y, k: np_or_jnp(y).stack([y[1], -k * y[0]]))
                    for m in (integrate, scipy.integrate))
    for solver in (ours, theirs):
        solver.set_integrator("dop853", rtol=1e-9).set_f_params(2.0)
        solver.set_initial_value(np.array([0.0, 1.0]), 0.0)
    np.testing.assert_allclose(ours.integrate(1.0), theirs.integrate(1.0), rtol=1e-8)
    np.testing.assert_allclose(ours.integrate(3.0), theirs.integrate(3.0), rtol=1e-7)
    assert ours.successful() and float(ours.t) == 3.0
    with pytest.raises(ArgumentError, match="no option"):
        ours.set_integrator("vode", tolerance=1.0)


@pytest.mark.parametrize("f, a, b", [
    (lambda x, m: m.exp(-AL * x) * m.cos(9 * x), 0.0, 2.0),
    (lambda x, m: m.exp(-AL * x) / (1 + x), 0.0, np.inf),
    (lambda x, m: m.exp(-AL * x * x) * (1 + x), -np.inf, np.inf),
    (lambda x, m: m.exp(AL * x), -np.inf, 1.0)])
def test_quad_vec(f, a, b):
    ours = integrate.quad_vec(lambda x: f(x, jnp), a, b, full_output=True)
    theirs = scipy.integrate.quad_vec(lambda x: f(x, np), a, b)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9)
    assert bool(ours[2].success)


def test_derivatives_of_vector_integrals():
    def area(k):
        return integrate.quad_vec(lambda x: jnp.exp(-k * x), 0.0, np.inf)[0]

    np.testing.assert_allclose(ft.jit(ft.jacfwd(area))(AL), np.diag(-1 / AL**2), atol=1e-8)
    np.testing.assert_allclose(ft.grad(lambda k: area(k).sum())(AL), -1 / AL**2, rtol=1e-8)
    np.testing.assert_allclose(ft.vmap(area)(AL), 1 / AL, rtol=1e-9)
    with pytest.raises(ArgumentError, match="order"):
        integrate.quad_vec(lambda x: x, np.inf, 0.0)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rule", ["gk21", "gk15", "genz-malik"])
def test_cubature(rule):
    def f(x):
        m = np_or_jnp(x)
        return m.cos(x.sum(1))[:, None] * m.exp(-x[:, :1] ** 2) * AL

    ours, theirs = (m.cubature(f, np.zeros(2), np.ones(2), rule=rule, rtol=1e-6)
                    for m in (integrate, scipy.integrate))
    np.testing.assert_allclose(ours.estimate, theirs.estimate, rtol=1e-12)
    np.testing.assert_allclose(ours.error, theirs.error, rtol=1e-2, atol=1e-14)
    assert int(ours.subdivisions) == theirs.subdivisions and ours.status == "converged"


def test_cubature_over_a_quarter_of_the_plane():
    def bell(k):
        return integrate.cubature(lambda x: jnp.exp(-k * (x**2).sum(1)), [-np.inf, 0.0],
                                  [np.inf, np.inf], rtol=1e-7, rule="genz-malik").estimate

    np.testing.assert_allclose(bell(2.0), np.pi / 4, rtol=1e-6)
    np.testing.assert_allclose(ft.jit(ft.grad(bell))(2.0), -np.pi / 8, rtol=1e-5)
    with pytest.raises(ShapeError, match="first axis"):
        integrate.cubature(lambda x: x.sum(), [0.0], [1.0])


@pytest.mark.parametrize("f, a, b", [
    (lambda x, m: m.log(x), 0.0, 1.0), (lambda x, m: x**-0.7, 0.0, 1.0),
    (lambda x, m: m.exp(-x), 0.0, np.inf), (lambda x, m: m.exp(x), -np.inf, 0.0),
    (lambda x, m: m.sqrt(x), 1.0, 0.0), (lambda x, m: x, 2.0, 2.0),
    (lambda x, m: 1 / (1 + x * x), np.array([0.0, 1.0, -np.inf]), np.array([2.0, np.inf, np.inf]))])
def test_tanhsinh(f, a, b):
    ours = integrate.tanhsinh(lambda x: f(x, jnp), a, b)
    theirs = scipy.integrate.tanhsinh(lambda x: f(x, np), a, b)
    np.testing.assert_allclose(ours.integral, theirs.integral, rtol=1e-11, atol=1e-12)
    assert ours.success.all()


def test_derivatives_of_tanhsinh_and_sums():
    def area(k):
        return integrate.tanhsinh(lambda x, k: x**k, 0.0, 2.0, args=(k,)).integral

    exact = (2 ** (AL + 1) * np.log(2) * (AL + 1) - 2 ** (AL + 1)) / (AL + 1) ** 2
    np.testing.assert_allclose(ft.jit(ft.grad(lambda k: area(k).sum()))(AL), exact, rtol=1e-9)

    def zeta(p):
        return integrate.nsum(lambda k, p: k**-p, 1.0, np.inf, args=(p,)).sum

    values = ft.jit(ft.vmap(zeta))(jnp.array([2.0, 3.0]))
    np.testing.assert_allclose(values, [np.pi**2 / 6, 1.2020569031595942], rtol=1e-12)
    np.testing.assert_allclose(ft.grad(zeta)(2.0), -0.9375482543158437, rtol=1e-10)


@pytest.mark.parametrize("f, a, b", [
    (lambda k: 1 / k**2, 1.0, np.inf), (lambda k: 1 / k, 1.0, 1e7), (lambda k: 0.5**k, 0.0, 20.0),
    (lambda k: 0.9**k, 3.0, np.inf), (lambda k: k, 5.0, 2.0)])
def test_nsum(f, a, b):
    ours = integrate.nsum(f, a, b)
    with np.errstate(all="ignore"):
        theirs = scipy.integrate.nsum(f, a, b)
    np.testing.assert_allclose(ours.sum, theirs.sum, rtol=1e-9)
    assert bool(ours.success)


def test_points_on_the_sphere_and_in_boxes():
    for degree in (3, 17, 53):
        x, w = integrate.lebedev_rule(degree)
        xs, ws = scipy.integrate.lebedev_rule(degree)
        ours = np.round(np.vstack([x, w]).T, 9) + 0.0
        theirs = np.round(np.vstack([xs, ws]).T, 9) + 0.0
        assert sorted(map(tuple, ours)) == sorted(map(tuple, theirs))
    with pytest.raises(ArgumentError, match="degree 4"):
        integrate.lebedev_rule(4)
    found = integrate.qmc_quad(lambda x: jnp.exp(-(x**2).sum(0)), [0.0] * 3, [1.0] * 3)
    exact = (np.sqrt(np.pi) / 2 * 0.8427007929497149) ** 3
    assert abs(float(found.integral) - exact) < 4 * float(found.standard_error) < 4e-3

    class Lattice:
        def random(self, n):
            return (np.arange(n)[:, None] + 0.5) / n

    own = integrate.qmc_quad(lambda x: x[0], 0.0, 2.0, qrng=Lattice())
    assert abs(float(own.integral) - 2) < 1e-9
