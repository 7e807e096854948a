"""The parts of steps of jax.experimental.ode: orders, ends, sizes."""

import numpy as np

import functrans as ft
from functrans import numpy as jnp
from functrans.experimental import ode
from functrans.flatten_util import ravel_pytree


def swing(y, t):
    return jnp.stack([y[1], -jnp.sin(y[0]) + 0.1 * t])


Y0 = np.array([1.0, 0.2])


def test_a_step_has_the_fifth_order_and_its_middle_the_fourth():
    errors = []
    for dt in (0.2, 0.1):
        f0 = swing(Y0, 0.3)
        y1, f1, error, k = ode.runge_kutta_step(swing, Y0, f0, 0.3, dt)
        exact = ode.odeint(swing, Y0, np.array([0.3, 0.3 + dt / 2, 0.3 + dt]), rtol=1e-13,
                           atol=1e-13)
        np.testing.assert_allclose(f1, swing(y1, 0.3 + dt), rtol=1e-12)
        terms = ode.interp_fit_dopri(Y0, y1, k, dt)
        values = [np.polyval(np.asarray(terms), x) for x in (0.0, 0.5, 1.0)]
        np.testing.assert_allclose(values[0], Y0)
        np.testing.assert_allclose(values[2], y1)
        slopes = [np.polyval(np.polyder(np.asarray(terms)[:, 0]), x) / dt for x in (0, 1)]
        np.testing.assert_allclose(slopes, [f0[0], f1[0]])
        errors.append([np.abs(np.asarray(exact[2] - y1)).max(),
                       np.abs(np.asarray(exact[1]) - values[1]).max(),
                       np.abs(np.asarray(error)).max()])
    orders = np.log2(np.array(errors[0]) / np.array(errors[1]))
    assert orders[0] > 5.5 and orders[1] > 4.5 and orders[2] > 4.5


def test_sizes_of_steps():
    first = ode.initial_step_size(swing, 0.0, Y0, 4, 1e-6, 1e-6, swing(Y0, 0.0))
    assert 1e-4 < float(first) < 1
    np.testing.assert_allclose(ode.optimal_step_size(0.1, 32.0), 0.045, rtol=1e-6)
    assert float(ode.optimal_step_size(1.0, 1e9)) == np.float32(0.2)
    assert float(ode.optimal_step_size(1.0, 0.99)) == 1.0  # accepted: not less
    ratio = ode.mean_error_ratio(np.array([3.0, 4.0]), 0.0, 1.0, Y0, Y0)
    np.testing.assert_allclose(ratio, np.sqrt(12.5))
    flat, unravel = ravel_pytree({"y": Y0})
    same = ode.ravel_first_arg(lambda tree, t: {"y": swing(tree["y"], t)}, unravel)
    np.testing.assert_allclose(ft.jit(same)(flat, 0.3), swing(Y0, 0.3))
