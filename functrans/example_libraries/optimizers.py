"""`jax.example_libraries.optimizers`: an optimizer is three functions.

`init(params)` gives a state, `update(i, grads, state)` the next one after step i, and
`get_params(state)` the parameters in it. A step size is a number or a function of i.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import functrans.numpy as jnp
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from functrans.tree_util import register_pytree_node
from functrans.typing import Array

__all__ = ["JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads",
           "constant", "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule",
           "momentum", "nesterov", "optimizer", "pack_optimizer_state", "piecewise_constant",
           "polynomial_decay", "rmsprop", "rmsprop_momentum", "sgd", "sm3",
           "unpack_optimizer_state"]

Schedule = Callable[[Any], Any]
Rules = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]


class OptimizerState(NamedTuple):
    """The states of all parameters: leaves, the tree of parameters, and the tree of each state."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(OptimizerState,
                     lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
                     lambda trees, children: OptimizerState(children[0], *trees))


class Optimizer(NamedTuple):
    """`init`, `update` and `get_params`, of trees of parameters."""

    init_fn: Callable[..., Any]
    update_fn: Callable[..., Any]
    params_fn: Callable[..., Any]


class JoinPoint:
    """The state of one parameter inside of a tree, where `unpack_optimizer_state` puts it."""

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def optimizer(opt_maker: Callable[..., Rules]) -> Callable[..., Optimizer]:
    """An optimizer of trees, where `opt_maker` gives the three functions for one array.

    >>> init, update, get_params = sgd(0.5)
    >>> get_params(update(0, {"x": 2.0}, init({"x": 1.0})))["x"]
    0.0
    """
    @functools.wraps(opt_maker)
    def made(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_tree(params: Any) -> OptimizerState:
            leaves, tree = tree_flatten(params)
            return _packed([init(x) for x in leaves], tree)

        def update_tree(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, tree = tree_flatten(grads)
            if tree != state.tree_def:
                raise ArgumentError("the gradients are not of the tree of the parameters: "
                                    f"{tree} and {state.tree_def}.", where=user_source())
            return _packed([update(i, g, s) for g, s in zip(leaves, _states(state), strict=True)],
                           tree)

        def params_of(state: OptimizerState) -> Any:
            return tree_unflatten(state.tree_def, [get_params(s) for s in _states(state)])

        return Optimizer(init_tree, update_tree, params_of)

    return made


def _packed(states: Sequence[Any], tree: Any) -> OptimizerState:
    flat = [tree_flatten(s) for s in states]
    return OptimizerState(tuple([tuple(leaves) for leaves, _ in flat]), tree,
                          tuple([inner for _, inner in flat]))


def _states(state: OptimizerState) -> list[Any]:
    return [tree_unflatten(inner, leaves)
            for inner, leaves in zip(state.subtree_defs, state.packed_state, strict=True)]


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The tree of parameters with a `JoinPoint` of each state in its place."""
    return tree_unflatten(opt_state.tree_def, [JoinPoint(s) for s in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state of which `unpack_optimizer_state` gave the tree."""
    points, tree = tree_flatten(marked_pytree, is_leaf=lambda x: isinstance(x, JoinPoint))
    return _packed([p.subtree for p in points], tree)


# step sizes ------------------------------------------------------------------------------------


def constant(step_size: float) -> Schedule:
    """The same step size always."""
    return lambda i: step_size


def exponential_decay(step_size: float, decay_steps: float, decay_rate: float) -> Schedule:
    """step_size * decay_rate ** (i / decay_steps)."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: float, decay_steps: float, decay_rate: float,
                       staircase: bool = False) -> Schedule:
    """step_size / (1 + decay_rate * i / decay_steps); a `staircase` rounds the quotient down."""
    def schedule(i: Any) -> Any:
        steps = i / decay_steps
        return step_size / (1 + decay_rate * (jnp.floor(steps) if staircase else steps))

    return schedule


def polynomial_decay(step_size: float, decay_steps: float, final_step_size: float,
                     power: float = 1.0) -> Schedule:
    """From `step_size` to `final_step_size` in `decay_steps` steps."""
    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left ** power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """`values[k]` after the first k of `boundaries`."""
    at, steps = jnp.array(boundaries), jnp.array(values)
    if at.ndim != 1 or steps.ndim != 1 or at.shape[0] != steps.shape[0] - 1:
        raise ArgumentError(f"boundaries of shape {at.shape} and values of shape {steps.shape}.",
                            where=user_source(), why="there is one value more than boundaries.")
    return lambda i: steps[jnp.sum(i > at)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A function of i, of a number as well."""
    if callable(scalar_or_schedule):
        schedule: Schedule = scalar_or_schedule
        return schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise ArgumentError("a step size is a number or a function of the step, and this is "
                        f"{type(scalar_or_schedule).__name__}.", where=user_source())


# optimizers ------------------------------------------------------------------------------------


@optimizer
def sgd(step_size: Any) -> Rules:
    """x - step * g."""
    step = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - step(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: Any, mass: float) -> Rules:
    """Gradient descent with momentum (Polyak 1964)."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, v = state
        v = mass * v + g
        return x - step(i) * v, v

    return _with(jnp.zeros_like), update, _first


@optimizer
def nesterov(step_size: Any, mass: float) -> Rules:
    """Momentum in the form of Nesterov (1983)."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, v = state
        v = mass * v + g
        return x - step(i) * (mass * v + g), v

    return _with(jnp.zeros_like), update, _first


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Rules:
    """Adagrad (Duchi et al. 2011) with momentum."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, m = state
        squares = squares + g * g
        scaled = jnp.where(squares > 0, g / jnp.sqrt(squares), 0.0)
        m = (1 - momentum) * scaled + momentum * m
        return x - step(i) * m, squares, m

    return _with(jnp.zeros_like, jnp.zeros_like), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Rules:
    """Gradients over the root of a running mean of their squares (Tieleman and Hinton 2012)."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares = state
        squares = squares * gamma + g * g * (1 - gamma)
        return x - step(i) * g / jnp.sqrt(squares + eps), squares

    return _with(jnp.zeros_like), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8,
                     momentum: float = 0.9) -> Rules:
    """`rmsprop` with momentum."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, m = state
        squares = squares * gamma + g * g * (1 - gamma)
        m = momentum * m + step(i) * g / jnp.sqrt(squares + eps)
        return x - m, squares, m

    return _with(jnp.zeros_like, jnp.zeros_like), update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Rules:
    """Adam (Kingma and Ba 2015)."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * g * g + b2 * v
        m_hat = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        v_hat = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - step(i) * m_hat / (jnp.sqrt(v_hat) + eps), m, v

    return _with(jnp.zeros_like, jnp.zeros_like), update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Rules:
    """Adam with the largest gradient in place of the mean of squares (Kingma and Ba 2015)."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        scale = step(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        return x - scale * m / (u + eps), m, u

    return _with(jnp.zeros_like, jnp.zeros_like), update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Rules:
    """SM3 (Anil et al. 2019): squares are kept by row and by column."""
    step = make_schedule(step_size)

    def init(x: Any) -> Any:
        x = jnp.asarray(x)
        return x, jnp.zeros_like(x), [jnp.zeros(n, x.dtype) for n in x.shape]

    def along(v: Any, axis: int, ndim: int) -> Any:
        return v[tuple([slice(None) if d == axis else None for d in range(ndim)])]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, per_axis = state
        spread = [along(v, d, g.ndim) for d, v in enumerate(per_axis)]
        total = (functools.reduce(jnp.minimum, spread) if spread else 0.0) + g * g
        scale = jnp.where(total > 0, 1 / jnp.sqrt(total), 0.0)
        m = (1 - momentum) * (g * scale) + momentum * m
        kept = [total.max(tuple(a for a in range(g.ndim) if a != d)) for d in range(g.ndim)]
        return x - step(i) * m, m, kept

    return init, update, _first


def _with(*slots: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A state of the parameter and one array of each kind."""
    return lambda x: (x, *[slot(x) for slot in slots])


def _first(state: Any) -> Any:
    return state[0]


# gradients -------------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Array:
    """The norm of all leaves together."""
    return jnp.sqrt(sum([jnp.vdot(x, x) for x in tree_leaves(tree)], jnp.zeros(())))


def clip_grads(grad_tree: Any, max_norm: float) -> Any:
    """The gradients, scaled down where their norm is larger than `max_norm`."""
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
