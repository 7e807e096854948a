"""Optimizers and schedules by name, as functions of a module that has them: optax or ours.

What both do is ten steps on a small tree of several dtypes. The gradients depend on where the
parameters are, so that an error in one step is one in all that follow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STEPS = 10
REAL = ["w", "b", "v", "h"]
RNG = np.random.default_rng(0)


def draw() -> dict[str, Any]:
    return {"w": RNG.standard_normal((3, 4)).astype(np.float32), "b": RNG.standard_normal(4),
            "v": np.asarray(RNG.standard_normal()),
            "h": RNG.standard_normal((2, 1)).astype(np.float16),
            "z": (RNG.standard_normal(2) + 1j * RNG.standard_normal(2)).astype(np.complex64)}


PARAMS = draw()
NOISE = [draw() for _ in range(STEPS)]
MATRICES = {"w": True, "b": False, "v": False, "h": True}


def gradients(step: int, params: dict[str, Any]) -> dict[str, Any]:
    """Those of half a square, with noise, in the dtypes of the parameters."""
    return {name: np.asarray(np.asarray(p) + NOISE[step][name], p.dtype)
            for name, p in params.items()}


def with_nans(o: Any) -> Any:
    """A part that turns some updates into NaN, in a way that both modules can say."""
    def update(updates: Any, state: Any, params: Any = None, **_: Any) -> Any:
        return {n: u * np.asarray(np.nan if n == "b" else 1.0, u.dtype)
                for n, u in updates.items()}, state

    return o.GradientTransformation(lambda params: o.EmptyState(), update)


OPTIMIZERS = {
    "sgd": lambda o: o.sgd(0.1),
    "sgd schedule": lambda o: o.sgd(o.warmup_cosine_decay_schedule(0.0, 0.3, 4, 9, 0.01)),
    "momentum": lambda o: o.sgd(0.1, momentum=0.9),
    "momentum dtype": lambda o: o.sgd(0.1, 0.9, True, "float32"),
    "nesterov": lambda o: o.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda o: o.adam(0.1, eps=1e-4),
    "adam root": lambda o: o.adam(0.1, 0.8, 0.9, 1e-3, 1e-4),
    "adam dtype": lambda o: o.adam(0.1, eps=1e-4, mu_dtype="bfloat16"),
    "nadam": lambda o: o.nadam(0.1, eps=1e-4),
    "adamw": lambda o: o.adamw(0.1, eps=1e-4, weight_decay=0.1),
    "adamw mask": lambda o: o.adamw(0.1, eps=1e-4, weight_decay=0.1, mask=MATRICES),
    "adamw schedule": lambda o: o.adamw(0.1, eps=1e-4,
                                        weight_decay=o.linear_schedule(0.0, 0.3, 8)),
    "nadamw": lambda o: o.nadamw(0.1, eps=1e-4),
    "nadamw function": lambda o: o.nadamw(
        0.1, eps=1e-4, weight_decay=0.2, mask=lambda p: {n: a.ndim == 2 for n, a in p.items()}),
    "adamax": lambda o: o.adamax(0.1, eps=1e-4),
    "adagrad": lambda o: o.adagrad(0.1, eps=1e-4),
    "lion": lambda o: o.lion(0.1, weight_decay=0.1),
    "lion dtype": lambda o: o.lion(0.1, 0.8, 0.9, "float32", 0.2, MATRICES),
    "sign_sgd": lambda o: o.sign_sgd(0.1),
    "rmsprop": lambda o: o.rmsprop(0.1, eps=1e-4),
    "rmsprop out": lambda o: o.rmsprop(0.1, eps=1e-4, eps_in_sqrt=False, initial_scale=0.5),
    "rmsprop centered": lambda o: o.rmsprop(0.1, centered=True, initial_scale=1.0, momentum=0.9),
    "rmsprop nesterov": lambda o: o.rmsprop(0.1, eps=1e-4, momentum=0.9, nesterov=True),
    "rmsprop corrected": lambda o: o.rmsprop(0.1, eps=1e-4, bias_correction=True),
    "stddev corrected": lambda o: o.chain(
        o.scale_by_stddev(0.8, 0.1, 0.5, bias_correction=True), o.scale(-0.05)),
    "lamb": lambda o: o.lamb(0.1, eps=1e-4, weight_decay=0.1),
    "lamb mask": lambda o: o.lamb(0.1, eps=1e-4, weight_decay=0.1, mask=MATRICES),
    "lars": lambda o: o.lars(0.1, weight_decay=0.1),
    "lars masks": lambda o: o.lars(0.1, 0.1, MATRICES, 0.01, 1e-3, MATRICES, 0.8, True),
    "adafactor": lambda o: o.adafactor(0.1, min_dim_size_to_factor=2, eps=1e-6),
    "adafactor whole": lambda o: o.adafactor(0.1, factored=False, momentum=0.9,
                                             weight_decay_rate=0.01, dtype_momentum="float64",
                                             eps=1e-6),
    "adafactor plain": lambda o: o.adafactor(
        min_dim_size_to_factor=2, decay_rate=0.6, multiply_by_parameter_scale=False,
        clipping_threshold=None, weight_decay_rate=0.1, weight_decay_mask=MATRICES, eps=1e-6),
    "factored own": lambda o: o.chain(o.scale_by_factored_rms(
        min_dim_size_to_factor=2, epsilon=1e-6,
        decay_rate_fn=lambda k, e: 0.9 - 0.8 * e ** (k + 1)), o.scale(-0.05)),
    "param rms": lambda o: o.chain(o.scale_by_param_block_rms(0.3), o.scale(-0.1)),
    "clip": lambda o: o.chain(o.clip(0.5), o.adam(0.1, eps=1e-4)),
    "clip norm": lambda o: o.chain(o.clip_by_global_norm(0.7), o.sgd(0.1)),
    "clip rms": lambda o: o.chain(o.clip_by_block_rms(0.4), o.sgd(0.1)),
    "adaptive clip": lambda o: o.chain(o.adaptive_grad_clip(0.1), o.sgd(0.1)),
    "adaptive clip axis": lambda o: o.chain(
        o.masked(o.adaptive_grad_clip(0.1, 0.01, axis=(1,)), MATRICES), o.sgd(0.1)),
    "zero nans": lambda o: o.chain(with_nans(o), o.zero_nans(), o.adam(0.1, eps=1e-4)),
    "if finite": lambda o: o.apply_if_finite(o.chain(with_nans(o), o.sgd(0.1)), 3),
    "skipped": lambda o: o.MultiSteps(
        o.sgd(0.1), 2, should_skip_update_fn=lambda u, step, p: o.skip_large_updates(
            {"v": u["v"]}, step, p, 0.5)),
    "multi steps": lambda o: o.MultiSteps(o.adam(0.1, eps=1e-4), 2),
    "multi steps sum": lambda o: o.MultiSteps(o.sgd(0.1, 0.9), 3, use_grad_mean=False),
    "multi steps more": lambda o: o.MultiSteps(o.sgd(0.1), lambda step: step + 1,
                                               accumulator_dtype="float64"),
    "ema": lambda o: o.chain(o.ema(0.9), o.sgd(0.1)),
    "ema biased": lambda o: o.chain(o.ema(0.9, debias=False), o.sgd(0.1)),
    "partition": lambda o: o.partition({"a": o.adam(0.1, eps=1e-4), "s": o.sgd(0.5),
                                        "n": o.set_to_zero()},
                                       {"w": "a", "b": "s", "v": "a", "h": "n"}),
    "decay schedule": lambda o: o.chain(o.add_decayed_weights(0.1),
                                        o.scale_by_schedule(o.exponential_decay(0.5, 2, 0.5)),
                                        o.scale(-1.0)),
}
# those that say what a step is for complex numbers
COMPLEX = ["sgd", "momentum", "adam", "nadam", "adamax", "adagrad", "rmsprop", "rmsprop centered",
           "clip norm", "clip rms", "adaptive clip", "lamb", "ema"]
SCHEDULES = {
    "constant": lambda o: o.constant_schedule(0.3),
    "polynomial": lambda o: o.polynomial_schedule(1.0, 0.1, 3, 10, 2),
    "linear": lambda o: o.linear_schedule(0.0, 1.0, 5, 1),
    "exponential": lambda o: o.exponential_decay(1.0, 3, 0.5, 2),
    "staircase": lambda o: o.exponential_decay(1.0, 3, 0.5, 0, True, 0.2),
    "growth": lambda o: o.exponential_decay(1.0, 3, 1.5, end_value=2.0),
    "cosine": lambda o: o.cosine_decay_schedule(1.0, 9, 0.1, 2.0),
    "warmup cosine": lambda o: o.warmup_cosine_decay_schedule(0.1, 1.0, 3, 11, 0.2),
    "warmup cosine power": lambda o: o.warmup_cosine_decay_schedule(0.1, 1.0, 3, 11, 0.2, 1.5),
    "warmup constant": lambda o: o.warmup_constant_schedule(0.0, 1.0, 4),
    "warmup exponential": lambda o: o.warmup_exponential_decay_schedule(0.0, 1.0, 3, 4, 0.5),
    "warmup staircase": lambda o: o.warmup_exponential_decay_schedule(
        0.1, 1.0, 3, 4, 0.5, 2, True, 0.3),
    "piecewise": lambda o: o.piecewise_constant_schedule(1.0, {3: 0.5, 6: 0.1}),
    "piecewise linear": lambda o: o.piecewise_interpolate_schedule("linear", 1.0,
                                                                   {3: 0.5, 6: 0.1}),
    "piecewise cosine": lambda o: o.piecewise_interpolate_schedule("cosine", 1.0,
                                                                   {3: 0.5, 6: 0.1}),
    "onecycle": lambda o: o.linear_onecycle_schedule(12, 1.0),
    "onecycle all": lambda o: o.linear_onecycle_schedule(12, 1.0, 0.2, 0.7, 10.0, 100.0),
    "cosine onecycle": lambda o: o.cosine_onecycle_schedule(12, 1.0),
    "cosine onecycle all": lambda o: o.cosine_onecycle_schedule(12, 1.0, 0.4, 10.0, 100.0),
    "sgdr": lambda o: o.sgdr_schedule([
        {"init_value": 0.0, "peak_value": 1.0, "decay_steps": 5, "warmup_steps": 2},
        {"init_value": 0.0, "peak_value": 0.5, "decay_steps": 8, "warmup_steps": 2}]),
    "joined": lambda o: o.join_schedules(
        [o.constant_schedule(0.5), o.linear_schedule(1.0, 0.0, 4), o.constant_schedule(0.1)],
        [3, 9]),
}
COUNTS = range(15)
CASES = [(name, REAL) for name in OPTIMIZERS] + [(name, ["z", "w"]) for name in COMPLEX]


def case_id(name: str, leaves: list[str]) -> str:
    return name if leaves is REAL else f"{name} complex"
