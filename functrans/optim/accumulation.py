"""Several gradients for one update, and updates that are not finite."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import functrans.numpy as fnp
from functrans import lax, tree
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.optim.transforms import GradientTransformation, Schedule
from functrans.typing import Array, PyTree

__all__ = ["ApplyIfFiniteState", "MultiSteps", "MultiStepsState", "apply_if_finite"]


class MultiStepsState(NamedTuple):
    """Where in a round the accumulation is, and the mean of the gradients so far."""

    mini_step: Array
    gradient_step: Array
    inner_opt_state: Any
    acc_grads: PyTree


class MultiSteps:
    """An optimizer that takes a step for the mean of every k gradients, else updates of zero.

    `every_k_schedule` is k, or a function of the number of steps that were taken. The optimizer's
    own step stands in a branch: steps in between cost the mean alone.

    >>> import functrans as ft
    >>> steps = ft.optim.MultiSteps(ft.optim.sgd(1.0), every_k_schedule=2)
    >>> state = steps.init(ft.numpy.zeros(1))
    >>> first, state = steps.update(ft.numpy.array([2.0]), state)
    >>> second, state = steps.update(ft.numpy.array([4.0]), state)
    >>> first.tolist(), second.tolist(), bool(steps.has_updated(state))
    ([0.0], [-3.0], True)
    """

    def __init__(self, opt: GradientTransformation, every_k_schedule: int | Schedule) -> None:
        if not callable(every_k_schedule) and every_k_schedule < 1:
            raise ArgumentError(f"every_k_schedule must be at least 1, got {every_k_schedule}.",
                                where=user_source())
        self._opt = opt
        self._every = every_k_schedule if callable(every_k_schedule) else \
            lambda count: every_k_schedule

    def init(self, params: PyTree) -> MultiStepsState:
        """The state before the first gradient."""
        zero = fnp.zeros((), np.int32)
        return MultiStepsState(zero, zero, self._opt.init(params),
                               tree.map(fnp.zeros_like, params))

    def update(self, updates: PyTree, state: MultiStepsState, params: PyTree = None,
               **extra: Any) -> tuple[PyTree, MultiStepsState]:
        """The updates of a step at the end of a round, zeros before; and the next state."""
        k = self._every(state.gradient_step)
        mean = tree.map(lambda g, m: m + (g - m) / (state.mini_step + 1).astype(g.real.dtype),
                        updates, state.acc_grads)

        def step() -> tuple[PyTree, MultiStepsState]:
            out, inner = self._opt.update(mean, state.inner_opt_state, params, **extra)
            return out, MultiStepsState(fnp.zeros_like(state.mini_step), state.gradient_step + 1,
                                        inner, tree.map(fnp.zeros_like, mean))

        def wait() -> tuple[PyTree, MultiStepsState]:
            return tree.map(fnp.zeros_like, mean), MultiStepsState(
                state.mini_step + 1, state.gradient_step, state.inner_opt_state, mean)

        found: tuple[PyTree, MultiStepsState] = lax.cond(state.mini_step >= k - 1, step, wait)
        return found

    def has_updated(self, state: MultiStepsState) -> Array:
        """Whether the last update was a step."""
        return (state.mini_step == 0) & (state.gradient_step > 0)

    def gradient_transformation(self) -> GradientTransformation:
        """The same as a pair of functions."""
        return GradientTransformation(self.init, self.update)


class ApplyIfFiniteState(NamedTuple):
    """How many updates in a row, and in all, were not finite."""

    notfinite_count: Array
    last_finite: Array
    total_notfinite: Array
    inner_state: Any


def apply_if_finite(inner: GradientTransformation,
                    max_consecutive_errors: int) -> GradientTransformation:
    """Updates of zero, and no new state, for gradients with NaN or infinity.

    After more than `max_consecutive_errors` of them in a row they are let through.
    """
    def init(params: PyTree) -> ApplyIfFiniteState:
        zero = fnp.zeros((), np.int32)
        return ApplyIfFiniteState(zero, fnp.array(True), zero, inner.init(params))

    def update(updates: PyTree, state: ApplyIfFiniteState, params: PyTree = None,
               **extra: Any) -> tuple[PyTree, ApplyIfFiniteState]:
        finite = fnp.array(True)
        for u in tree.leaves(updates):
            finite = finite & fnp.all(fnp.isfinite(u))
        count = fnp.where(finite, 0, state.notfinite_count + 1)
        out, moved = lax.cond(
            finite | (count > max_consecutive_errors),
            lambda: inner.update(updates, state.inner_state, params, **extra),
            lambda: (tree.map(fnp.zeros_like, updates), state.inner_state))
        total = fnp.where(finite, state.total_notfinite, state.total_notfinite + 1)
        return out, ApplyIfFiniteState(count, finite, total, moved)

    return GradientTransformation(init, update)
