"""Products of few elements are parts of kernels along runs in memory, else the library's."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.c.lower import lower
from functrans.lowering.loops.tensor import Gemm

RNG = np.random.default_rng(0)


def products(fun, *args):
    """How many products the library computes."""
    text = lower(ft.lower(fun, *args).jaxpr, frozenset()).text
    return sum(isinstance(step, Gemm) for schedule in text.schedules for step in schedule.steps)


def array(*shape):
    return RNG.normal(size=shape).astype(np.float32)


KERNELS = {
    "a gate": (lambda g, s: jnp.tensordot(g, s, [[1], [1]]), array(2, 2), array(4, 2, 8)),
    "two axes": (lambda g, s: jnp.tensordot(g, s, [[2, 3], [0, 1]]), array(2, 2, 2, 2),
                 array(2, 2, 32)),
    "its gradient": (lambda x, y: x @ y.T, array(2, 500), array(3, 500)),
    "a batch of rows": (lambda x, y: x @ y, array(9, 4, 4), array(9, 4, 33)),
}
OF_THE_LIBRARY = {
    "short rows": (lambda x, y: x @ y, array(9, 3, 3), array(9, 3, 3)),
    "tall matrices": (lambda x, y: x.T @ y, array(500, 2), array(500, 3)),
    "many terms": (lambda x, y: x @ y, array(2, 5), array(5, 64)),
    "many elements": (lambda x, y: x @ y.T, array(5, 64), array(2, 64)),
}


@pytest.mark.parametrize(("cases", "count"), [(KERNELS, 0), (OF_THE_LIBRARY, 1)])
def test_where_products_are_computed(cases, count):
    for name, (fun, *args) in cases.items():
        assert products(fun, *args) == count, name
        np.testing.assert_allclose(ft.jit(fun)(*args), fun(*args), rtol=2e-5, atol=2e-5)


def test_gates_of_a_circuit_are_right():
    def amplitudes(angles):
        state = jnp.zeros((2,) * 5, "complex64").at[(0,) * 5].set(1)
        for q in range(5):
            c, s = jnp.cos(angles[q]), jnp.sin(angles[q])
            gate = jnp.array([[c, -1j * s], [-1j * s, c]])
            state = jnp.moveaxis(jnp.tensordot(gate, state, [[1], [q]]), 0, q)
        return state

    def odds(angles):
        return (jnp.abs(amplitudes(angles)[1]) ** 2).sum()

    angles = np.linspace(0.1, 1.3, 5).astype(np.float32)
    np.testing.assert_allclose(ft.jit(odds)(angles), np.sin(angles[0]) ** 2, rtol=1e-5)
    slopes = ft.jit(ft.grad(odds))(angles)
    np.testing.assert_allclose(slopes, [np.sin(2 * angles[0]), 0, 0, 0, 0], atol=1e-6)


def test_factors_that_are_put_together_are_computed_once():
    """A kernel of a product would choose among the parts of its factor at each element."""
    def fun(angle, state):
        gate = jnp.array([[jnp.cos(angle), -jnp.sin(angle)], [jnp.sin(angle), jnp.cos(angle)]])
        return jnp.tensordot(gate, state, [[1], [1]])

    state = array(4, 2, 64)
    text = lower(ft.lower(fun, np.float32(1), state).jaxpr, frozenset()).text
    *_, gate, product = text.schedules[0].steps
    assert [m.tensor.shape for m in (*gate.members, *product.members)] == [(2, 2), (2, 4, 64)]
    np.testing.assert_allclose(ft.jit(fun)(np.float32(1), state), fun(np.float32(1), state), 1e-5,
                               1e-6)
