"""Transformations that scale gradients by what is known of earlier ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import functrans.numpy as jnp
from functrans import lax, tree
from functrans.optim.transforms import (
    EmptyState,
    GradientTransformation,
    Mask,
    Number,
    Schedule,
    masked,
    needs_params,
    squared,
    stateless,
)
from functrans.typing import Array, DTypeLike, PyTree

__all__ = ["AdamState", "EmaState", "LionState", "RmsState", "RmsWithCountState", "RssState",
           "ScheduleState", "StddevState", "StddevWithCountState", "TraceState",
           "add_decayed_weights", "ema", "scale", "scale_by_adam",
           "scale_by_adamax", "scale_by_learning_rate", "scale_by_lion",
           "scale_by_param_block_rms", "scale_by_rms", "scale_by_rss", "scale_by_schedule",
           "scale_by_sign", "scale_by_stddev", "scale_by_trust_ratio", "trace"]


def scale(step_size: Number) -> GradientTransformation:
    """Updates times a number.

    >>> import functrans as ft
    >>> ft.optim.scale(2.0).update(ft.numpy.ones(1), ft.optim.EmptyState())[0].tolist()
    [2.0]
    """
    return stateless(lambda updates, params: tree.map(lambda u: step_size * u, updates))


class ScheduleState(NamedTuple):
    """How many updates there were.

    >>> ft.optim.scale_by_schedule(lambda count: 0.5**count).init(jnp.zeros(2))
    ScheduleState(count=Array(0, dtype=int32))
    """

    count: Array  # type: ignore[assignment]  # not that of tuples: states are optax's


def _counter() -> Array:
    return jnp.zeros((), np.int32)


def next_count(count: Array) -> Array:
    """count + 1; it stays at the largest number that there is."""
    return jnp.where(count < np.iinfo(np.int32).max, count + 1, count)


def scale_by_schedule(step_size_fn: Schedule) -> GradientTransformation:
    """Updates times the schedule's number for this step.

    >>> rule = ft.optim.scale_by_schedule(lambda count: 0.5**count)
    >>> updates, state = rule.update(jnp.ones(1), rule.init(jnp.zeros(1)))
    >>> updates, rule.update(jnp.ones(1), state)[0]
    (Array([1.], dtype=float32), Array([0.5], dtype=float32))
    """
    def update(updates: PyTree, state: ScheduleState, params: PyTree = None,
               **_: Any) -> tuple[PyTree, ScheduleState]:
        size = step_size_fn(state.count)
        scaled = tree.map(lambda u: jnp.asarray(size, u.dtype) * u, updates)
        return scaled, ScheduleState(next_count(state.count))

    return GradientTransformation(lambda params: ScheduleState(_counter()), update)


def scale_by_learning_rate(learning_rate: Number | Schedule, *,
                           flip_sign: bool = True) -> GradientTransformation:
    """Updates times minus the learning rate, a number or a schedule.

    >>> import functrans as ft
    >>> step = ft.optim.scale_by_learning_rate(0.5)
    >>> step.update(ft.numpy.ones(1), step.init(None))[0].tolist()
    [-0.5]
    """
    sign = -1 if flip_sign else 1
    if callable(learning_rate):
        return scale_by_schedule(lambda count: sign * learning_rate(count))
    return scale(sign * learning_rate)


def add_decayed_weights(weight_decay: Number | Schedule = 0.0,
                        mask: Mask | None = None) -> GradientTransformation:
    """Updates plus `weight_decay` times the parameters (Loshchilov and Hutter 2017).

    >>> rule = ft.optim.add_decayed_weights(0.1)
    >>> params = jnp.array([1.0, 2.0])
    >>> rule.update(jnp.zeros(2), rule.init(params), params)[0]
    Array([0.1, 0.2], dtype=float32)
    """
    def update(updates: PyTree, state: Any, params: PyTree = None, **_: Any) -> tuple[PyTree, Any]:
        needs_params("add_decayed_weights", params)
        if callable(weight_decay):
            rate, state = weight_decay(state.count), ScheduleState(next_count(state.count))
        else:
            rate = weight_decay
        return tree.map(lambda u, p: u + rate * p, updates, params), state

    def init(params: PyTree) -> Any:
        return ScheduleState(_counter()) if callable(weight_decay) else EmptyState()

    decay = GradientTransformation(init, update)
    return decay if mask is None else masked(decay, mask)


# --------------------------------------------------------------------------- moments


def _moment(updates: PyTree, moments: PyTree, decay: Number, order: int) -> PyTree:
    def moved(u: Array, m: Array) -> Any:
        return (1 - decay) * (u if order == 1 else squared(u)) + decay * m

    return tree.map(moved, updates, moments)


def _corrected(moments: PyTree, decay: Number, count: Array) -> PyTree:
    """Moments as if they had begun at the first gradient, not at 0: over 1 - decay^count.

    In float32 1 - 0.999 is 6e-5 off, exp(log(0.999)) - 1 is not.
    """
    correction = -jnp.expm1(count * jnp.log(jnp.asarray(decay, "float64")).astype("float32"))
    return tree.map(lambda m: m / correction.astype(m.real.dtype), moments)


def _cast(values: PyTree, dtype: DTypeLike | None) -> PyTree:
    return values if dtype is None else tree.map(lambda v: v.astype(dtype), values)


def _zeros(params: PyTree, dtype: DTypeLike | None = None) -> PyTree:
    return tree.map(lambda p: jnp.zeros_like(p, dtype=dtype), params)


def _real_zeros(params: PyTree) -> PyTree:
    return tree.map(lambda p: jnp.zeros_like(jnp.real(p)), params)


class TraceState(NamedTuple):
    """The momentum.

    >>> ft.optim.trace(0.9).init(jnp.zeros(2))
    TraceState(trace=Array([0., 0.], dtype=float32))
    """

    trace: PyTree


def trace(decay: float, nesterov: bool = False,
          accumulator_dtype: DTypeLike | None = None) -> GradientTransformation:
    """Momentum: the sum of gradients, each `decay` times the next (Polyak 1964, Nesterov 1983).

    >>> import functrans as ft
    >>> momentum = ft.optim.trace(0.5)
    >>> u, state = momentum.update(ft.numpy.ones(1), momentum.init(ft.numpy.zeros(1)))
    >>> momentum.update(ft.numpy.ones(1), state)[0].tolist()
    [1.5]
    """
    def update(updates: PyTree, state: TraceState, params: PyTree = None,
               **_: Any) -> tuple[PyTree, TraceState]:
        moved = tree.map(lambda u, t: u + decay * t, updates, state.trace)
        out = tree.map(lambda u, t: u + decay * t, updates, moved) if nesterov else moved
        return out, TraceState(_cast(moved, accumulator_dtype))

    return GradientTransformation(lambda params: TraceState(_zeros(params, accumulator_dtype)),
                                  update)


class EmaState(NamedTuple):
    """A moving average and the number of updates in it.

    >>> ft.optim.ema(0.9).init(jnp.zeros(2))
    EmaState(count=Array(0, dtype=int32), ema=Array([0., 0.], dtype=float32))
    """

    count: Array  # type: ignore[assignment]  # not that of tuples: states are optax's
    ema: PyTree


def ema(decay: float, debias: bool = True,
        accumulator_dtype: DTypeLike | None = None) -> GradientTransformation:
    """The exponential moving average of updates.

    >>> rule = ft.optim.ema(0.9)
    >>> updates, state = rule.update(jnp.array([1.0]), rule.init(jnp.zeros(1)))
    >>> rule.update(jnp.array([3.0]), state)[0].round(4)
    Array([2.0526], dtype=float32)
    """
    def init(params: PyTree) -> EmaState:
        return EmaState(_counter(), _zeros(params, accumulator_dtype))

    def update(updates: PyTree, state: EmaState, params: PyTree = None,
               **_: Any) -> tuple[PyTree, EmaState]:
        moved = _moment(updates, state.ema, decay, 1)
        count = next_count(state.count)
        out = _corrected(moved, decay, count) if debias else moved
        return out, EmaState(count, _cast(moved, accumulator_dtype))

    return GradientTransformation(init, update)


class AdamState(NamedTuple):
    """Both moments of the gradients, and how many there were.

    >>> rule = ft.optim.scale_by_adam()
    >>> updates, state = rule.update(jnp.ones(2), rule.init(jnp.zeros(2)))
    >>> int(state.count), state.mu
    (1, Array([0.1, 0.1], dtype=float32))
    """

    count: Array  # type: ignore[assignment]  # not that of tuples: states are optax's
    mu: PyTree
    nu: PyTree


def scale_by_adam(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0,
                  mu_dtype: DTypeLike | None = None, *,
                  nesterov: bool = False) -> GradientTransformation:
    """The mean of gradients over the root of that of their squares (Kingma and Ba 2014).

    With `nesterov` the mean looks one gradient ahead (Dozat 2016).

    >>> rule = ft.optim.scale_by_adam()
    >>> rule.update(jnp.array([0.1, -5.0]), rule.init(jnp.zeros(2)))[0].round(4)
    Array([ 1., -1.], dtype=float32)
    """
    def init(params: PyTree) -> AdamState:
        return AdamState(_counter(), _zeros(params, mu_dtype), _real_zeros(params))

    def update(updates: PyTree, state: AdamState, params: PyTree = None,
               **_: Any) -> tuple[PyTree, AdamState]:
        mu, nu = _moment(updates, state.mu, b1, 1), _moment(updates, state.nu, b2, 2)
        count = next_count(state.count)
        if nesterov:
            ahead = _corrected(mu, b1, next_count(count))
            mean = tree.map(lambda m, u: b1 * m + (1 - b1) * u, ahead,
                            _corrected(updates, b1, count))
        else:
            mean = _corrected(mu, b1, count)
        out = tree.map(lambda m, v: m / (jnp.sqrt(v + eps_root) + eps), mean,
                       _corrected(nu, b2, count))
        return out, AdamState(count, _cast(mu, mu_dtype), nu)

    return GradientTransformation(init, update)


def scale_by_adamax(b1: float = 0.9, b2: float = 0.999,
                    eps: float = 1e-8) -> GradientTransformation:
    """The mean of gradients over their largest, which fades (Kingma and Ba 2014, section 7).

    >>> rule = ft.optim.scale_by_adamax()
    >>> rule.update(jnp.array([0.1, -5.0]), rule.init(jnp.zeros(2)))[0].round(4)
    Array([ 1., -1.], dtype=float32)
    """
    def init(params: PyTree) -> AdamState:
        return AdamState(_counter(), _zeros(params), _real_zeros(params))

    def update(updates: PyTree, state: AdamState, params: PyTree = None,
               **_: Any) -> tuple[PyTree, AdamState]:
        count, mu = next_count(state.count), _moment(updates, state.mu, b1, 1)
        nu = tree.map(lambda u, v: jnp.maximum(jnp.abs(u) + eps, b2 * v), updates, state.nu)
        out = tree.map(lambda m, v: m / v, _corrected(mu, b1, count), nu)
        return out, AdamState(count, mu, nu)

    return GradientTransformation(init, update)


class LionState(NamedTuple):
    """The momentum, and how many updates there were.

    >>> ft.optim.scale_by_lion().init(jnp.zeros(2))
    LionState(count=Array(0, dtype=int32), mu=Array([0., 0.], dtype=float32))
    """

    count: Array  # type: ignore[assignment]  # not that of tuples: states are optax's
    mu: PyTree


def scale_by_lion(b1: float = 0.9, b2: float = 0.99,
                  mu_dtype: DTypeLike | None = None) -> GradientTransformation:
    """The sign of gradients mixed with their momentum (Chen and others 2023).

    >>> rule = ft.optim.scale_by_lion()
    >>> rule.update(jnp.array([0.1, -5.0]), rule.init(jnp.zeros(2)))[0]
    Array([ 1., -1.], dtype=float32)
    """
    def init(params: PyTree) -> LionState:
        return LionState(_counter(), _zeros(params, mu_dtype))

    def update(updates: PyTree, state: LionState, params: PyTree = None,
               **_: Any) -> tuple[PyTree, LionState]:
        out = tree.map(lambda u, m: jnp.sign((1 - b1) * u + b1 * m), updates, state.mu)
        mu = _cast(_moment(updates, state.mu, b2, 1), mu_dtype)
        return out, LionState(next_count(state.count), mu)

    return GradientTransformation(init, update)


def scale_by_sign() -> GradientTransformation:
    """The signs of the updates.

    >>> rule = ft.optim.scale_by_sign()
    >>> rule.update(jnp.array([0.1, -5.0, 0.0]), rule.init(jnp.zeros(3)))[0]
    Array([ 1., -1.,  0.], dtype=float32)
    """
    return stateless(lambda updates, params: tree.map(jnp.sign, updates))


class RmsState(NamedTuple):
    """The mean of squares.

    >>> ft.optim.scale_by_rms().init(jnp.zeros(2))
    RmsState(nu=Array([0., 0.], dtype=float32))
    """

    nu: PyTree


class RmsWithCountState(NamedTuple):
    """The mean of squares, and how many there were.

    >>> ft.optim.scale_by_rms(bias_correction=True).init(jnp.zeros(2))
    RmsWithCountState(count=Array(0, dtype=int32), nu=Array([0., 0.], dtype=float32))
    """

    count: Array  # type: ignore[assignment]  # not that of tuples: states are optax's
    nu: PyTree


def _over_root(u: Array, v: Array, eps: float, in_sqrt: bool) -> Array:
    return u * lax.rsqrt(v + eps) if in_sqrt else u / (jnp.sqrt(v) + eps)


def scale_by_rms(decay: float = 0.9, eps: float = 1e-8, initial_scale: float = 0.0,
                 eps_in_sqrt: bool = True,
                 bias_correction: bool = False) -> GradientTransformation:
    """Gradients over the root of the mean of their squares (Hinton 2012).

    With `bias_correction` the mean is one of the gradients alone, as in Adam.

    >>> rule = ft.optim.scale_by_rms(0.9)
    >>> rule.update(jnp.array([0.1, -5.0]), rule.init(jnp.zeros(2)))[0].round(4)
    Array([ 3.1623, -3.1623], dtype=float32)
    """
    def init(params: PyTree) -> RmsState | RmsWithCountState:
        nu = tree.map(lambda p: jnp.full_like(jnp.real(p), initial_scale), params)
        return RmsWithCountState(_counter(), nu) if bias_correction else RmsState(nu)

    def update(updates: PyTree, state: Any, params: PyTree = None,
               **_: Any) -> tuple[PyTree, RmsState | RmsWithCountState]:
        nu = _moment(updates, state.nu, decay, 2)
        after: RmsState | RmsWithCountState = RmsState(nu)
        mean = nu
        if bias_correction:
            after = RmsWithCountState(next_count(state.count), nu)
            mean = _corrected(nu, decay, after.count)
        out = tree.map(lambda u, v: _over_root(u, v, eps, eps_in_sqrt), updates, mean)
        return out, after

    return GradientTransformation(init, update)


class StddevState(NamedTuple):
    """The means of gradients and of their squares.

    >>> ft.optim.scale_by_stddev().init(jnp.zeros(1))
    StddevState(mu=Array([0.], dtype=float32), nu=Array([0.], dtype=float32))
    """

    mu: PyTree
    nu: PyTree


class StddevWithCountState(NamedTuple):
    """The means of gradients and of their squares, and how many there were.

    >>> ft.optim.scale_by_stddev(bias_correction=True).init(jnp.zeros(1))._fields
    ('count', 'mu', 'nu')
    """

    count: Array  # type: ignore[assignment]  # not that of tuples: states are optax's
    mu: PyTree
    nu: PyTree


def scale_by_stddev(decay: float = 0.9, eps: float = 1e-8, initial_scale: float = 0.0,
                    eps_in_sqrt: bool = True,
                    bias_correction: bool = False) -> GradientTransformation:
    """Gradients over their standard deviation (Hinton 2012, centred).

    With `bias_correction` means are those of the gradients alone, as in Adam.

    >>> rule = ft.optim.scale_by_stddev(0.9)
    >>> rule.update(jnp.array([1.0, -1.0]), rule.init(jnp.zeros(2)))[0].round(3)
    Array([ 3.333, -3.333], dtype=float32)
    """
    def init(params: PyTree) -> StddevState | StddevWithCountState:
        mu = _zeros(params)
        nu = tree.map(lambda p: jnp.full_like(jnp.real(p), initial_scale), params)
        return StddevWithCountState(_counter(), mu, nu) if bias_correction else StddevState(mu, nu)

    def update(updates: PyTree, state: Any, params: PyTree = None,
               **_: Any) -> tuple[PyTree, StddevState | StddevWithCountState]:
        mu, nu = _moment(updates, state.mu, decay, 1), _moment(updates, state.nu, decay, 2)
        after: StddevState | StddevWithCountState = StddevState(mu, nu)
        means = mu, nu
        if bias_correction:
            after = StddevWithCountState(next_count(state.count), mu, nu)
            means = _corrected(mu, decay, after.count), _corrected(nu, decay, after.count)
        out = tree.map(lambda u, m, v: _over_root(u, v - squared(m), eps, eps_in_sqrt),
                       updates, *means)
        return out, after

    return GradientTransformation(init, update)


class RssState(NamedTuple):
    """The sum of squares.

    >>> ft.optim.scale_by_rss().init(jnp.zeros(2))
    RssState(sum_of_squares=Array([0.1, 0.1], dtype=float32))
    """

    sum_of_squares: PyTree


def scale_by_rss(initial_accumulator_value: float = 0.1,
                 eps: float = 1e-7) -> GradientTransformation:
    """Gradients over the root of the sum of their squares (Duchi and others 2011).

    >>> rule = ft.optim.scale_by_rss(initial_accumulator_value=0.0)
    >>> updates, state = rule.update(jnp.array([3.0]), rule.init(jnp.zeros(1)))
    >>> rule.update(jnp.array([4.0]), state)[0].round(4)
    Array([0.8], dtype=float32)
    """
    def init(params: PyTree) -> RssState:
        return RssState(tree.map(
            lambda p: jnp.full_like(jnp.real(p), initial_accumulator_value), params))

    def update(updates: PyTree, state: RssState, params: PyTree = None,
               **_: Any) -> tuple[PyTree, RssState]:
        total = tree.map(lambda u, s: squared(u) + s, updates, state.sum_of_squares)
        out = tree.map(lambda u, s: u * jnp.where(s > 0, lax.rsqrt(s + eps), 0.0), updates, total)
        return out, RssState(total)

    return GradientTransformation(init, update)


# --------------------------------------------------------------------------- by parameters


def norm(x: Array) -> Array:
    """The Euclidean norm of an array, with gradient 0 at 0."""
    total = jnp.sum(squared(x))
    return jnp.where(total == 0, 0, jnp.sqrt(jnp.where(total == 0, 1, total)))


def scale_by_trust_ratio(min_norm: float = 0.0, trust_coefficient: float = 1.0,
                         eps: float = 0.0) -> GradientTransformation:
    """Updates of each array times |parameter| / |update| (You and others 2017).

    >>> rule = ft.optim.scale_by_trust_ratio()
    >>> params = jnp.array([3.0, 4.0])
    >>> rule.update(jnp.array([0.6, 0.8]), rule.init(params), params)[0].round(4)
    Array([3., 4.], dtype=float32)
    """
    def scaled(u: Array, p: Array) -> Array:
        of_param, of_update = jnp.maximum(norm(p), min_norm), jnp.maximum(norm(u), min_norm)
        is_zero = (of_param == 0) | (of_update == 0)
        ratio = trust_coefficient * of_param / (jnp.where(is_zero, 1, of_update) + eps)
        return u * jnp.where(is_zero, 1, ratio).astype(u.dtype)

    def update(updates: PyTree, params: PyTree) -> PyTree:
        needs_params("scale_by_trust_ratio", params)
        return tree.map(scaled, updates, params)

    return stateless(update)


def scale_by_param_block_rms(min_scale: float = 1e-3) -> GradientTransformation:
    """Updates of each array times the root mean square of its parameter.

    >>> rule = ft.optim.scale_by_param_block_rms()
    >>> params = jnp.array([3.0, 3.0])
    >>> rule.update(jnp.array([0.1, 1.0]), rule.init(params), params)[0].round(4)
    Array([0.3, 3. ], dtype=float32)
    """
    def update(updates: PyTree, params: PyTree) -> PyTree:
        needs_params("scale_by_param_block_rms", params)
        return tree.map(lambda u, p: u * jnp.maximum(
            jnp.sqrt(jnp.mean(squared(p))), min_scale), updates, params)

    return stateless(update)
