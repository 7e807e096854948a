"""Optimizers and schedules: four steps of each beside the figures of optax 0.2.8 in float64."""

import json
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.core.errors import ArgumentError

FIGURES = json.loads((Path(__file__).parent / "optax_figures.json").read_text())
RNG = np.random.default_rng(0)


def draw():
    return {"w": RNG.standard_normal((3, 4)), "b": RNG.standard_normal(4),
            "v": np.asarray(RNG.standard_normal(()))}


PARAMS = draw()
GRADIENTS = [draw() for _ in range(4)]
o = ft.optim
OPTIMIZERS = {
    "sgd": lambda: o.sgd(0.1),
    "sgd schedule": lambda: o.sgd(o.warmup_cosine_decay_schedule(0.0, 0.3, 2, 6, 0.01)),
    "momentum": lambda: o.sgd(0.1, momentum=0.9),
    "nesterov": lambda: o.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: o.adam(0.1),
    "adam root": lambda: o.adam(0.1, 0.8, 0.9, 1e-3, 1e-4),
    "nadam": lambda: o.nadam(0.1),
    "adamw": lambda: o.adamw(0.1, weight_decay=0.1),
    "adamw mask": lambda: o.adamw(0.1, weight_decay=0.1, mask={"w": True, "b": False, "v": False}),
    "nadamw": lambda: o.nadamw(0.1),
    "adamax": lambda: o.adamax(0.1),
    "adagrad": lambda: o.adagrad(0.1),
    "lion": lambda: o.lion(0.1, weight_decay=0.1),
    "sign_sgd": lambda: o.sign_sgd(0.1),
    "rmsprop": lambda: o.rmsprop(0.1),
    "rmsprop out": lambda: o.rmsprop(0.1, eps_in_sqrt=False, initial_scale=0.5),
    "rmsprop centered": lambda: o.rmsprop(0.1, centered=True, initial_scale=1.0, momentum=0.9),
    "rmsprop nesterov": lambda: o.rmsprop(0.1, momentum=0.9, nesterov=True),
    "lamb": lambda: o.lamb(0.1, weight_decay=0.1),
    "lars": lambda: o.lars(0.1, weight_decay=0.1),
    "adafactor": lambda: o.adafactor(0.1, min_dim_size_to_factor=2),
    "adafactor whole": lambda: o.adafactor(0.1, factored=False, momentum=0.9,
                                           weight_decay_rate=0.01, dtype_momentum="float64"),
    "clip": lambda: o.chain(o.clip(0.5), o.adam(0.1)),
    "clip norm": lambda: o.chain(o.clip_by_global_norm(0.7), o.sgd(0.1)),
    "clip rms": lambda: o.chain(o.clip_by_block_rms(0.4), o.sgd(0.1)),
    "adaptive clip": lambda: o.chain(o.adaptive_grad_clip(0.1), o.sgd(0.1)),
    "multi steps": lambda: o.MultiSteps(o.adam(0.1), 2),
    "ema": lambda: o.chain(o.ema(0.9), o.sgd(0.1)),
    "ema biased": lambda: o.chain(o.ema(0.9, debias=False), o.sgd(0.1)),
    "partition": lambda: o.partition({"a": o.adam(0.1), "s": o.sgd(0.5)},
                                     {"w": "a", "b": "s", "v": "a"}),
    "decay schedule": lambda: o.chain(o.add_decayed_weights(0.1),
                                      o.scale_by_schedule(o.exponential_decay(0.5, 2, 0.5))),
}
SCHEDULES = {
    "polynomial": lambda: o.polynomial_schedule(1.0, 0.1, 3, 10, 2),
    "linear": lambda: o.linear_schedule(0.0, 1.0, 5, 1),
    "exponential": lambda: o.exponential_decay(1.0, 3, 0.5, 2),
    "staircase": lambda: o.exponential_decay(1.0, 3, 0.5, 0, True, 0.2),
    "growth": lambda: o.exponential_decay(1.0, 3, 1.5, end_value=2.0),
    "cosine": lambda: o.cosine_decay_schedule(1.0, 9, 0.1, 2.0),
    "warmup cosine": lambda: o.warmup_cosine_decay_schedule(0.1, 1.0, 3, 11, 0.2),
    "warmup constant": lambda: o.warmup_constant_schedule(0.0, 1.0, 4),
    "warmup exponential": lambda: o.warmup_exponential_decay_schedule(0.0, 1.0, 3, 4, 0.5),
    "piecewise": lambda: o.piecewise_constant_schedule(1.0, {3: 0.5, 6: 0.1}),
    "piecewise linear": lambda: o.piecewise_interpolate_schedule("linear", 1.0, {3: 0.5, 6: 0.1}),
    "piecewise cosine": lambda: o.piecewise_interpolate_schedule("cosine", 1.0, {3: 0.5, 6: 0.1}),
    "onecycle": lambda: o.linear_onecycle_schedule(12, 1.0),
    "cosine onecycle": lambda: o.cosine_onecycle_schedule(12, 1.0),
    "sgdr": lambda: o.sgdr_schedule([
        {"init_value": 0.0, "peak_value": 1.0, "decay_steps": 5, "warmup_steps": 2},
        {"init_value": 0.0, "peak_value": 0.5, "decay_steps": 8, "warmup_steps": 2}]),
}




def train(optimizer, update):
    params, state = ft.tree.map(fnp.asarray, PARAMS), optimizer.init(PARAMS)
    for gradients in GRADIENTS:
        updates, state = update(gradients, state, params)
        params = ft.optim.apply_updates(params, updates)
    return params


@pytest.mark.one_in(2)
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, jitted):
    optimizer = OPTIMIZERS[name]()
    found = train(optimizer, ft.jit(optimizer.update) if jitted else optimizer.update)
    for key, expected in FIGURES["optimizers"][name].items():
        assert found[key].dtype == np.float64
        np.testing.assert_allclose(np.asarray(found[key]), expected, 2e-6, 2e-7)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    schedule = SCHEDULES[name]()
    for value in (schedule, ft.jit(schedule)):
        np.testing.assert_allclose([float(value(k)) for k in range(15)],
                                   FIGURES["schedules"][name], 1e-5, 1e-7)


def test_bad_arguments_say_what_is_wrong():
    with pytest.raises(ArgumentError, match="needs the parameters"):
        o.adamw(0.1).update(PARAMS, o.adamw(0.1).init(PARAMS))
    with pytest.raises(ArgumentError, match="no transformation for other"):
        o.partition({"a": o.sgd(0.1)}, {"w": "a", "b": "other", "v": "a"}).init(PARAMS)
    with pytest.raises(ArgumentError, match="2 schedules have 1 boundaries"):
        o.join_schedules([o.constant_schedule(1.0)] * 2, [])
    with pytest.raises(ArgumentError, match="a state of 1"):
        o.chain(o.clip(1.0), o.scale(1.0)).update(PARAMS, (o.EmptyState(),))
    with pytest.raises(ArgumentError, match="at least 1"):
        o.MultiSteps(o.sgd(0.1), 0)


def test_updates_that_are_not_finite_are_left_out():
    optimizer = o.apply_if_finite(o.sgd(1.0), 1)
    state, x = optimizer.init(fnp.zeros(1)), fnp.zeros(1)
    seen = []
    for gradient in (1.0, np.nan, 2.0, np.nan, np.nan):
        updates, state = optimizer.update(fnp.full(1, gradient), state, x)
        seen.append(float(updates[0]))
    assert seen[:4] == [-1.0, 0.0, -2.0, 0.0]
    assert np.isnan(seen[4])
    assert int(state.total_notfinite) == 3


def test_clipped_complex_and_zeroed_gradients():
    z = fnp.array([3 + 4j])
    updates, _ = o.clip_by_global_norm(1.0).update(z, o.EmptyState())
    np.testing.assert_allclose(np.asarray(updates), [0.6 + 0.8j], 1e-6)
    adam = o.adam(0.1)
    updates, state = adam.update(z, adam.init(z))
    assert state[0].nu.dtype == np.float32
    np.testing.assert_allclose(np.asarray(updates), [-0.06 - 0.08j], 1e-5)
    assert o.zero_nans().update(fnp.array([np.nan, 2.0]), o.EmptyState())[0].tolist() == [0, 2]


def test_an_optimizer_is_differentiated():
    """The gradient of a loss after two steps to the learning rate, which a schedule may hold."""
    def after(rate):
        optimizer = o.adam(rate)
        x, state = fnp.array([2.0]), optimizer.init(fnp.zeros(1))
        for _ in range(2):
            updates, state = optimizer.update(2 * x, state)
            x = o.apply_updates(x, updates)
        return (x**2).sum()

    step = 1e-3
    expected = (after(0.1 + step) - after(0.1 - step)) / (2 * step)
    np.testing.assert_allclose(float(ft.grad(after)(0.1)), float(expected), 1e-2)
