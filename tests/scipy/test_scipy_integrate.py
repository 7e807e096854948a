"""functrans.scipy.integrate and functrans.experimental.ode beside SciPy, and their derivatives."""

import numpy as np
import pytest
import scipy.integrate

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.experimental.ode import odeint
from functrans.scipy import integrate
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair, same

both = Pair(integrate, scipy.integrate)
rng = np.random.default_rng(0)
F = np.float64


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9])
def test_samples(n):
    y, x = rng.standard_normal((3, n)), np.sort(rng.random(n))
    for options in ({"x": x}, {"dx": 0.3}, {"x": np.sort(rng.random((3, n)), -1)}):
        for name in ("simpson", "cumulative_simpson", "cumulative_trapezoid", "trapezoid"):
            both(name, y, **options, rtol=1e-9)
            if name.startswith("cumulative"):
                both(name, y, **options, initial=0.0, rtol=1e-9)
    both("simpson", y.T, axis=0)
    if n in (2, 3, 5, 9):
        both("romb", y, 0.3)
    else:
        with pytest.raises(ArgumentError, match="samples"):
            integrate.romb(y)


INTEGRALS = {
    "smooth": (lambda x, m: m.exp(-x * x) * m.cos(3 * x), -1, 2),
    "root": (lambda x, m: 1 / m.sqrt(x), 0, 1),
    "line": (lambda x, m: m.exp(-x * x), -np.inf, np.inf),
    "half": (lambda x, m: m.exp(-x) / (1 + x), 0, np.inf),
    "left": (lambda x, m: m.exp(x), -np.inf, 1),
    "kink": (lambda x, m: m.abs(x - 0.3), 0, 1),
    "wave": (lambda x, m: m.sin(50 * x), 0, 3),
    "backwards": (lambda x, m: m.exp(-x), np.inf, 0),
}


@pytest.mark.parametrize("name", INTEGRALS)
def test_quad(name):
    f, a, b = INTEGRALS[name]
    value, error = integrate.quad(lambda x: f(x, jnp), F(a), F(b))
    exact, _ = scipy.integrate.quad(lambda x: f(x, np), a, b)
    assert abs(float(value) - exact) < 1e-8 and float(error) < 1e-7


def test_derivatives_of_integrals():
    def f(x, k):
        return jnp.exp(-k * x) * jnp.cos(x)

    args = F(0.2), F(1.5), F(0.7)
    check_grads(lambda a, b, k: integrate.quad(f, a, b, (k,))[0], args, 2)
    check_grads(lambda a, k: integrate.quad(f, a, np.inf, (k,))[0], (args[0], args[2]), 1)
    many = ft.jit(ft.vmap(lambda k: integrate.quad(lambda x: jnp.cos(k * x), F(0), F(2))[0]))
    k = np.array([1.0, 30.0])
    same(many(k), np.sin(2 * k) / k)


def test_quad_of_halves_and_points():
    value, error = integrate.quad(lambda x: jnp.exp(-x), 0.0, 1.0)
    assert value.dtype == np.float32 and abs(float(value) - (1 - np.exp(-1))) < 1e-6
    value, error = integrate.quad(lambda x: jnp.abs(x - 0.3), F(0), F(1), points=[0.3])
    assert abs(float(value) - 0.29) < 1e-15 and float(error) < 1e-13
    with pytest.raises(ShapeError, match="one real number"):
        integrate.quad(lambda x: jnp.stack([x, x]), 0.0, 1.0)
    same(integrate.fixed_quad(jnp.sin, F(0), F(1), n=4)[0],
         scipy.integrate.fixed_quad(np.sin, 0, 1, n=4)[0])


def prey(t, y, a=1.5, m=jnp):
    return m.stack([a * y[0] - y[0] * y[1], -3 * y[1] + y[0] * y[1]])


TIMES = np.linspace(0, 5, 11)
METHODS = ["RK23", "RK45", "DOP853", "Radau"]
FIRST = np.array([10.0, 5.0])


@pytest.mark.parametrize("method", METHODS)
def test_solve_ivp(method):
    loose = 1e-6 if method == "RK23" else 1e-8
    options = {"t_eval": TIMES, "rtol": loose, "atol": loose}
    found = integrate.solve_ivp(prey, (0.0, 5.0), FIRST, method, **options)
    theirs = scipy.integrate.solve_ivp(lambda t, y: prey(t, y, m=np), (0, 5), FIRST, method,
                                       **options)
    exact = scipy.integrate.solve_ivp(lambda t, y: prey(t, y, m=np), (0, 5), FIRST, "DOP853",
                                      t_eval=TIMES, rtol=1e-12, atol=1e-12)
    assert found.success
    assert np.abs(found.y - exact.y).max() < 2 * np.abs(theirs.y - exact.y).max()
    if method in ("RK23", "RK45"):  # the same steps
        same(found.y, theirs.y)
        assert found.nfev == theirs.nfev


def test_solve_ivp_backwards_and_stiff():
    options = {"t_eval": TIMES[::-1], "rtol": 1e-8, "atol": 1e-8}
    found = integrate.solve_ivp(prey, (5.0, 0.0), FIRST, **options)
    theirs = scipy.integrate.solve_ivp(lambda t, y: prey(t, y, m=np), (5, 0), FIRST, **options)
    same(found.y, theirs.y)

    def oscillator(t, y, m=jnp):
        return m.stack([y[1], 1000 * (1 - y[0] ** 2) * y[1] - y[0]])

    found = integrate.solve_ivp(oscillator, (0.0, 900.0), np.array([2.0, 0.0]), "Radau",
                                rtol=1e-5, atol=1e-7)
    exact = scipy.integrate.solve_ivp(lambda t, y: oscillator(t, y, np), (0, 900), [2.0, 0.0],
                                      "Radau", rtol=1e-9, atol=1e-10)
    assert found.success
    same(found.y[:, -1], exact.y[:, -1], rtol=1e-3)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("method", ["RK45", "Radau", "DOP853", "RK23"])
def test_derivatives_of_solutions(method):
    def end(y, a, t):
        return integrate.solve_ivp(prey, (0.0 * t, t), y, method, args=(a,), rtol=1e-9,
                                   atol=1e-9).y

    check_grads(end, (FIRST, np.array(1.5), np.array(0.3)), 1, atol=1e-4, rtol=1e-4)


def test_solve_ivp_says_where_it_did_not_arrive():
    found = integrate.solve_ivp(lambda t, y: y * y, (0.0, 2.0), np.ones(1), t_eval=[0.5, 1.5])
    assert not found.success and found.status == -1
    assert np.isfinite(found.y[0, 0]) and np.isnan(found.y[0, 1])
    with pytest.raises(ArgumentError, match="events are 3"):
        integrate.solve_ivp(lambda t, y: y, (0.0, 1.0), [1.0], events=3)


def pendulum(y, t, a):
    return {"p": y["q"], "q": -a * jnp.sin(y["p"]) * jnp.exp(-0.1 * t)}


def test_odeint():
    t = np.linspace(0, 2, 5)
    first = {"p": np.array([1.0, 0.5]), "q": np.array([0.3, -0.2])}
    found = odeint(pendulum, first, t, np.array(2.0))
    exact = scipy.integrate.solve_ivp(
        lambda t, y: np.concatenate([y[2:], -2 * np.sin(y[:2]) * np.exp(-0.1 * t)]), (0, 2),
        [1.0, 0.5, 0.3, -0.2], "DOP853", t, rtol=1e-12, atol=1e-12)
    same(found["p"].T, exact.y[:2], atol=1e-7)
    check_grads(lambda y, t, a: odeint(lambda y, t: -a * y + jnp.sin(t), y, t),
                (np.array([1.0, 2.0]), t, np.array(0.7)), 1, modes=("rev",), atol=1e-5, rtol=1e-5)
    slope = ft.grad(lambda a: odeint(lambda y, t, n: -a * y * n, np.ones(1), t, 3)[-1, 0])
    same(slope(F(0.4)), -6 * np.exp(-2.4), rtol=1e-6)
    lanes = ft.jit(ft.vmap(lambda a: odeint(lambda y, t: -a * y, np.ones(1), t)[:, 0]))
    a = np.array([0.1, 20.0])
    same(lanes(a), np.exp(-a[:, None] * t), atol=1e-7)
    assert odeint(lambda y, t: -y, 1.0, np.array([0.5])).tolist() == [1.0]


def test_odeint_of_scipy():
    t = np.linspace(0, 2, 5)
    both("odeint", lambda y, t, k: -k * y, [1.0, 2.0], t, (0.5,), atol=1e-6)
    same(integrate.odeint(lambda t, y: -y, 1.0, t, tfirst=True),
         np.exp(-t)[:, None], atol=1e-6)
    with pytest.raises(ArgumentError, match="of SciPy's options"):
        integrate.odeint(lambda y, t: -y, 1.0, t, h0=0.1)
