"""Optimizers and schedules: ten steps of each beside the figures of optax 0.2.8.

`python -m tests.optim.write_figures` makes the figures, and says where it runs.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError
from tests.optim.optimizer_table import (
    CASES,
    COMPLEX,
    COUNTS,
    OPTIMIZERS,
    PARAMS,
    SCHEDULES,
    STEPS,
    case_id,
    gradients,
)

FIGURES = json.loads((Path(__file__).parent / "optax_figures.json").read_text())
o = ft.optim
# optax takes decay**count in float32, which is 1e-6 off for 0.999; halves add up ten roundings
TOLERANCE = {"float64": (3e-6, 1e-6), "float32": (3e-6, 1e-6), "complex64": (3e-6, 1e-6),
             "float16": (4e-3, 4e-3)}
# a kernel does not round the product with a bfloat16, as eager operations do
ROUNDED = {"adam dtype": (8e-3, 2e-3)}
# what no table of optimizers is about, and has laws of its own
OTHERS = {"apply_updates", "global_norm", "incremental_update", "stateless", "identity"}


def numbers(x):
    flat = np.asarray(x).reshape(-1)
    return (flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat).astype(np.float64)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name, leaves", CASES, ids=[case_id(*case) for case in CASES])
def test_optimizers(name, leaves, jitted):
    optimizer = OPTIMIZERS[name](o)
    update = ft.jit(optimizer.update) if jitted else optimizer.update
    params = {key: jnp.asarray(PARAMS[key]) for key in leaves}
    state = optimizer.init(params)
    before = [(leaf.shape, leaf.dtype) for leaf in map(jnp.asarray, ft.tree.leaves(state))]
    for step in range(STEPS):
        updates, state = update(gradients(step, params), state, params)
        params = o.apply_updates(params, updates)
    # a state that changes its dtypes could not be carried by a loop, and would be traced again
    assert [(leaf.shape, leaf.dtype) for leaf in map(jnp.asarray, ft.tree.leaves(state))] == before
    for key, expected in FIGURES["optimizers"][case_id(name, leaves)].items():
        assert params[key].dtype == PARAMS[key].dtype
        tolerance = ROUNDED.get(name, TOLERANCE[PARAMS[key].dtype.name])
        np.testing.assert_allclose(numbers(params[key]), expected, *tolerance, err_msg=key)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    schedule = SCHEDULES[name](o)
    for value in (schedule, ft.jit(schedule)):
        np.testing.assert_allclose([float(value(k)) for k in COUNTS],
                                   FIGURES["schedules"][name], 1e-5, 1e-7)


def test_every_optimizer_and_schedule_has_figures():
    made = set()

    class Recorded:
        def __getattr__(self, name):
            made.add(name)
            return getattr(o, name)

    for make in (*OPTIMIZERS.values(), *SCHEDULES.values()):
        make(Recorded())
    # sgd, adam and their kin are chains of these
    inside = {name for name in o.__all__ if name.startswith("scale_by_")} | {"trace", "chain"}
    public = {name for name in o.__all__ if not name[0].isupper()}
    assert public - made - inside - OTHERS == {"skip_large_updates", "skip_not_finite"}
    assert set(COMPLEX) <= set(OPTIMIZERS)


def test_multi_steps_leave_out_what_is_not_finite():
    steps = o.MultiSteps(o.sgd(1.0), 2, should_skip_update_fn=o.skip_not_finite)
    x = jnp.zeros(2, "float16")
    state = steps.init(x)
    assert state.acc_grads.dtype == np.float32
    seen = []
    for gradient in (1.0, np.inf, np.nan, 3.0):
        updates, state = ft.jit(steps.update)(jnp.full(2, gradient, "float16"), state, x)
        seen.append((float(updates[0]), int(state.mini_step),
                     int(state.skip_state["num_not_finite"])))
    assert seen == [(0, 1, 0), (0, 1, 2), (0, 1, 2), (-2, 0, 0)]


def test_bad_arguments_say_what_is_wrong():
    with pytest.raises(ArgumentError, match="needs the parameters"):
        o.adamw(0.1).update(PARAMS, o.adamw(0.1).init(PARAMS))
    with pytest.raises(ArgumentError, match=r"\(2, 2, 1, 1, 1, 1\)"):
        o.adaptive_grad_clip(0.1).update(jnp.ones((2, 2, 1, 1, 1, 1)), o.EmptyState(),
                                         jnp.ones((2, 2, 1, 1, 1, 1)))
    with pytest.raises(ArgumentError, match="no transformation for other"):
        o.partition({"a": o.sgd(0.1)},
                    {"w": "a", "b": "other", "v": "a", "h": "a", "z": "a"}).init(PARAMS)
    with pytest.raises(ArgumentError, match="2 schedules have 1 boundaries"):
        o.join_schedules([o.constant_schedule(1.0)] * 2, [])
    with pytest.raises(ArgumentError, match="a state of 1"):
        o.chain(o.clip(1.0), o.scale(1.0)).update(PARAMS, (o.EmptyState(),))
    with pytest.raises(ArgumentError, match="at least 1"):
        o.MultiSteps(o.sgd(0.1), 0)


def test_updates_that_are_not_finite_are_left_out():
    optimizer = o.apply_if_finite(o.sgd(1.0), 1)
    state, x = optimizer.init(jnp.zeros(1)), jnp.zeros(1)
    seen = []
    for gradient in (1.0, np.nan, 2.0, np.nan, np.nan):
        updates, state = optimizer.update(jnp.full(1, gradient), state, x)
        seen.append(float(updates[0]))
    assert seen[:4] == [-1.0, 0.0, -2.0, 0.0]
    assert np.isnan(seen[4])
    assert int(state.total_notfinite) == 3


def test_clipped_complex_and_zeroed_gradients():
    z = jnp.array([3 + 4j])
    updates, _ = o.clip_by_global_norm(1.0).update(z, o.EmptyState())
    np.testing.assert_allclose(np.asarray(updates), [0.6 + 0.8j], 1e-6)
    adam = o.adam(0.1)
    updates, state = adam.update(z, adam.init(z))
    assert state[0].nu.dtype == np.float32
    np.testing.assert_allclose(np.asarray(updates), [-0.06 - 0.08j], 1e-5)
    assert o.zero_nans().update(jnp.array([np.nan, 2.0]), o.EmptyState())[0].tolist() == [0, 2]


def test_an_optimizer_is_differentiated():
    """The gradient of a loss after two steps to the learning rate, which a schedule may hold."""
    def after(rate):
        optimizer = o.adam(rate)
        x, state = jnp.array([2.0]), optimizer.init(jnp.zeros(1))
        for _ in range(2):
            updates, state = optimizer.update(2 * x, state)
            x = o.apply_updates(x, updates)
        return (x**2).sum()

    step = 1e-3
    expected = (after(0.1 + step) - after(0.1 - step)) / (2 * step)
    np.testing.assert_allclose(float(ft.grad(after)(0.1)), float(expected), 1e-2)
