"""Several gradients for one update, and updates that are not finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import functrans.numpy as jnp
from functrans import lax, tree
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.optim.transforms import GradientTransformation, Number, Schedule, squared
from functrans.typing import Array, ArrayLike, DTypeLike, PyTree

__all__ = ["ApplyIfFiniteState", "MultiSteps", "MultiStepsState", "apply_if_finite",
           "skip_large_updates", "skip_not_finite"]

SkipFunction: TypeAlias = Callable[[PyTree, Array, PyTree], tuple[Any, PyTree]]


class MultiStepsState(NamedTuple):
    """Where in a round the accumulation is, and the mean of the gradients so far.

    >>> state = ft.optim.MultiSteps(ft.optim.sgd(0.1), 4).init(jnp.zeros(2))
    >>> int(state.mini_step), int(state.gradient_step), state.acc_grads
    (0, 0, Array([0., 0.], dtype=float32))
    """

    mini_step: Array
    gradient_step: Array
    inner_opt_state: Any
    acc_grads: PyTree
    skip_state: PyTree = ()


def skip_not_finite(updates: PyTree, gradient_step: ArrayLike,
                    params: PyTree) -> tuple[Array, dict[str, Array]]:
    """Whether there is NaN or infinity in the updates, and how often: for `MultiSteps`.

    >>> import functrans as ft
    >>> skip, state = ft.optim.skip_not_finite(ft.numpy.array([1.0, float("inf")]), 0, None)
    >>> bool(skip), int(state["num_not_finite"])
    (True, 1)
    """
    count = sum((jnp.sum(~jnp.isfinite(u)) for u in tree.leaves(updates)),
                start=jnp.zeros((), np.int32))
    return count > 0, {"should_skip": count > 0, "num_not_finite": count}


def skip_large_updates(updates: PyTree, gradient_step: ArrayLike, params: PyTree,
                       max_squared_norm: Number) -> tuple[Array, dict[str, Array]]:
    """Whether the squared norm of the updates is not below a bound (NaN is not): for `MultiSteps`.

    >>> import functrans as ft
    >>> skip, state = ft.optim.skip_large_updates(ft.numpy.array([3.0, 4.0]), 0, None, 20.0)
    >>> bool(skip), float(state["norm_squared"])
    (True, 25.0)
    """
    total = sum((jnp.sum(squared(u)) for u in tree.leaves(updates)), start=jnp.zeros(()))
    skip = ~(total < max_squared_norm)
    return skip, {"should_skip": skip, "norm_squared": total}


class MultiSteps:
    """An optimizer that takes a step for the mean of every k gradients, else updates of zero.

    `every_k_schedule` is k, or a function of the number of steps that were taken; without
    `use_grad_mean` the step is for the sum. The optimizer's own step stands in a branch: steps in
    between cost the mean alone. `should_skip_update_fn(updates, gradient_step, params)` returns
    whether a gradient is left out, and a tree that the state shows as `skip_state`. Means are kept
    in `accumulator_dtype`; without one in the gradient's, and float32 for halves.

    >>> import functrans as ft
    >>> steps = ft.optim.MultiSteps(ft.optim.sgd(1.0), every_k_schedule=2)
    >>> state = steps.init(ft.numpy.zeros(1))
    >>> first, state = steps.update(ft.numpy.array([2.0]), state)
    >>> second, state = steps.update(ft.numpy.array([4.0]), state)
    >>> first.tolist(), second.tolist(), bool(steps.has_updated(state))
    ([0.0], [-3.0], True)
    >>> step = steps.gradient_transformation()
    >>> step.update(jnp.array([2.0]), step.init(jnp.zeros(1)))[0]
    Array([0.], dtype=float32)
    """

    def __init__(self, opt: GradientTransformation, every_k_schedule: int | Schedule,
                 use_grad_mean: bool = True, should_skip_update_fn: SkipFunction | None = None,
                 accumulator_dtype: DTypeLike | None = None) -> None:
        if not callable(every_k_schedule) and every_k_schedule < 1:
            raise ArgumentError(f"every_k_schedule must be at least 1, got {every_k_schedule}.",
                                where=user_source())
        self._opt = opt
        self._every = every_k_schedule if callable(every_k_schedule) else \
            lambda count: every_k_schedule
        self._mean = use_grad_mean
        self._skip = should_skip_update_fn or (lambda updates, step, params: (False, ()))
        self._dtype = accumulator_dtype

    def _accumulator(self, p: Array) -> Array:
        dtype = self._dtype
        return jnp.zeros_like(p, dtype=jnp.promote_types(p.dtype, "float32") if dtype is None
                              else dtype)

    def init(self, params: PyTree) -> MultiStepsState:
        """The state before the first gradient."""
        zero = jnp.zeros((), np.int32)
        _, skipped = self._skip(tree.map(jnp.zeros_like, params), zero, params)
        return MultiStepsState(zero, zero, self._opt.init(params),
                               tree.map(self._accumulator, params), skipped)

    def update(self, updates: PyTree, state: MultiStepsState, params: PyTree = None,
               **extra: Any) -> tuple[PyTree, MultiStepsState]:
        """The updates of a step at the end of a round, zeros before; and the next state."""
        k = self._every(state.gradient_step)
        skip, skipped = self._skip(updates, state.gradient_step, params)

        def added(g: Array, m: Array) -> Array:
            if not self._mean:
                return (m + g).astype(m.dtype)
            count = (state.mini_step + 1).astype(m.real.dtype)
            return (m + (g - m) / count).astype(m.dtype)

        total = tree.map(added, updates, state.acc_grads)
        like = tree.map(lambda m, g: m.astype(g.dtype), total, updates)

        def step() -> tuple[PyTree, MultiStepsState]:
            out, inner = self._opt.update(like, state.inner_opt_state, params, **extra)
            return out, MultiStepsState(jnp.zeros_like(state.mini_step), state.gradient_step + 1,
                                        inner, tree.map(jnp.zeros_like, total), skipped)

        def wait() -> tuple[PyTree, MultiStepsState]:
            return tree.map(jnp.zeros_like, like), MultiStepsState(
                state.mini_step + 1, state.gradient_step, state.inner_opt_state, total, skipped)

        def leave() -> tuple[PyTree, MultiStepsState]:
            return tree.map(jnp.zeros_like, like), state._replace(skip_state=skipped)

        which = jnp.where(skip, 2, jnp.where(state.mini_step >= k - 1, 0, 1))
        found: tuple[PyTree, MultiStepsState] = lax.switch(which, (step, wait, leave))
        return found

    def has_updated(self, state: MultiStepsState) -> Array:
        """Whether the last update was a step."""
        return (state.mini_step == 0) & (state.gradient_step > 0)

    def gradient_transformation(self) -> GradientTransformation:
        """The same as a pair of functions."""
        return GradientTransformation(self.init, self.update)


class ApplyIfFiniteState(NamedTuple):
    """How many updates in a row, and in all, were not finite.

    >>> rule = ft.optim.apply_if_finite(ft.optim.sgd(0.1), max_consecutive_errors=3)
    >>> params = jnp.zeros(1)
    >>> _, state = rule.update(jnp.array([jnp.nan]), rule.init(params), params)
    >>> int(state.notfinite_count), bool(state.last_finite)
    (1, False)
    """

    notfinite_count: Array
    last_finite: Array
    total_notfinite: Array
    inner_state: Any


def apply_if_finite(inner: GradientTransformation,
                    max_consecutive_errors: int) -> GradientTransformation:
    """Updates of zero, and no new state, for gradients with NaN or infinity.

    After more than `max_consecutive_errors` of them in a row they are let through.

    >>> rule = ft.optim.apply_if_finite(ft.optim.sgd(1.0), max_consecutive_errors=3)
    >>> rule.update(jnp.array([jnp.nan]), rule.init(jnp.zeros(1)), jnp.zeros(1))[0]
    Array([0.], dtype=float32)
    """
    def init(params: PyTree) -> ApplyIfFiniteState:
        zero = jnp.zeros((), np.int32)
        return ApplyIfFiniteState(zero, jnp.array(True), zero, inner.init(params))

    def update(updates: PyTree, state: ApplyIfFiniteState, params: PyTree = None,
               **extra: Any) -> tuple[PyTree, ApplyIfFiniteState]:
        finite = jnp.array(True)
        for u in tree.leaves(updates):
            finite = finite & jnp.all(jnp.isfinite(u))
        count = jnp.where(finite, 0, state.notfinite_count + 1)
        out, moved = lax.cond(
            finite | (count > max_consecutive_errors),
            lambda: inner.update(updates, state.inner_state, params, **extra),
            lambda: (tree.map(jnp.zeros_like, updates), state.inner_state))
        total = jnp.where(finite, state.total_notfinite, state.total_notfinite + 1)
        return out, ApplyIfFiniteState(count, finite, total, moved)

    return GradientTransformation(init, update)
