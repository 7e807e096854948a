"""Gradient transformations: a pair of functions, and how pairs are put together.

`init(params)` makes the state; `update(updates, state, params)` gives the updates to add to the
parameters, and the next state. This is the protocol of optax (github.com/google-deepmind/optax):
states and transformations of either library do for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

import functrans.numpy as jnp
from functrans import tree
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.tree import map_leaves
from functrans.typing import Array, PyTree

__all__ = ["EmptyState", "GradientTransformation", "MaskedNode", "MaskedState", "Number",
           "PartitionState", "Schedule", "apply_updates", "chain", "global_norm", "identity",
           "incremental_update", "masked", "needs_params", "partition", "set_to_zero", "stateless"]

T = TypeVar("T")

Number: TypeAlias = Array | np.ndarray | float
"""A number of Python's, or a scalar array."""
Schedule: TypeAlias = Callable[[Any], Number]
"""A number as a function of how many updates there were."""


OptState: TypeAlias = PyTree
"""The state of a transformation: what its `init` returned, or its last `update`."""


class UpdateFunction(Protocol):
    """What turns updates into others of the same structure."""

    def __call__(self, updates: T, state: OptState, params: PyTree = None,
                 **extra: Any) -> tuple[T, OptState]: ...


class GradientTransformation(NamedTuple):
    """What turns gradients into updates.

    `init(params)` returns the state, `update(updates, state, params=None)` the updates and the next
    state; updates have the structure, shapes and dtypes of the parameters.

    >>> import functrans as ft
    >>> transform = ft.optim.scale(-0.5)
    >>> state = transform.init(ft.numpy.ones(2))
    >>> transform.update(ft.numpy.ones(2), state)[0].tolist()
    [-0.5, -0.5]
    """

    init: Callable[[PyTree], OptState]
    update: UpdateFunction


class EmptyState(NamedTuple):
    """The state of transformations that remember nothing.

    >>> ft.optim.sgd(0.1).init(jnp.zeros(2))
    (EmptyState(), EmptyState())
    """


def needs_params(name: str, params: PyTree) -> None:
    """Raise ArgumentError where a transformation was not given the parameters that it needs."""
    if params is None:
        raise ArgumentError(f"{name} needs the parameters.", where=user_source(),
                            why="its updates depend on what they are added to.",
                            fix="optimizer.update(gradients, state, params)")


def stateless(function: Callable[[PyTree, PyTree], PyTree]) -> GradientTransformation:
    """The transformation whose updates are `function(updates, params)`.

    >>> import functrans as ft
    >>> halved = ft.optim.stateless(lambda updates, params: ft.tree.map(lambda u: u / 2, updates))
    >>> halved.update(ft.numpy.ones(1), halved.init(None))[0].tolist()
    [0.5]
    """
    def update(updates: PyTree, state: EmptyState, params: PyTree = None,
               **_: Any) -> tuple[PyTree, EmptyState]:
        return function(updates, params), state

    return GradientTransformation(lambda params: EmptyState(), update)


def identity() -> GradientTransformation:
    """Updates as they are.

    >>> rule = ft.optim.identity()
    >>> rule.update(jnp.array([2.0]), rule.init(jnp.zeros(1)))[0]
    Array([2.], dtype=float32)
    """
    return stateless(lambda updates, params: updates)


def set_to_zero() -> GradientTransformation:
    """No updates: for parameters that are not trained, say in `partition`.

    >>> rule = ft.optim.set_to_zero()
    >>> rule.update(jnp.array([2.0]), rule.init(jnp.zeros(1)))[0]
    Array([0.], dtype=float32)
    """
    return stateless(lambda updates, params: tree.map(jnp.zeros_like, updates))


def chain(*transforms: GradientTransformation) -> GradientTransformation:
    """One transformation after the other; the state is a tuple of theirs.

    >>> import functrans as ft
    >>> clipped = ft.optim.chain(ft.optim.clip(1.0), ft.optim.scale(-0.1))
    >>> updates, _ = clipped.update(ft.numpy.array([5.0]), clipped.init(ft.numpy.zeros(1)))
    >>> [round(float(u), 3) for u in updates]
    [-0.1]
    """
    def init(params: PyTree) -> tuple[Any, ...]:
        return tuple([transform.init(params) for transform in transforms])

    def update(updates: PyTree, state: tuple[Any, ...], params: PyTree = None,
               **extra: Any) -> tuple[PyTree, tuple[Any, ...]]:
        if len(state) != len(transforms):
            raise ArgumentError(
                f"chain of {len(transforms)} transformations got a state of {len(state)}.",
                where=user_source(), fix="the state that its `init` and `update` returned")
        states = []
        for transform, own in zip(transforms, state, strict=True):
            updates, own = transform.update(updates, own, params, **extra)
            states.append(own)
        return updates, tuple(states)

    return GradientTransformation(init, update)


# --------------------------------------------------------------------------- parts of a tree


class MaskedNode(NamedTuple):
    """In place of leaves that a transformation does not see.

    >>> rule = ft.optim.masked(ft.optim.trace(0.9), {"w": True, "b": False})
    >>> rule.init({"w": jnp.zeros(1), "b": jnp.zeros(1)}).inner_state.trace["b"]
    MaskedNode()
    """


class MaskedState(NamedTuple):
    """The state of the transformation of some leaves.

    >>> ft.optim.masked(ft.optim.trace(0.9), {"w": True}).init({"w": jnp.zeros(1)})
    MaskedState(inner_state=TraceState(trace={'w': Array([0.], dtype=float32)}))
    """

    inner_state: Any


Mask: TypeAlias = PyTree | Callable[[PyTree], PyTree]


def masked(inner: GradientTransformation, mask: Mask) -> GradientTransformation:
    """`inner` for the leaves where the mask is true; the updates of others stay.

    `mask` is a tree of bool, a prefix of the parameters, or a function of them that returns one.

    >>> import functrans as ft
    >>> no_bias = ft.optim.masked(ft.optim.scale(0.0), {"w": True, "b": False})
    >>> g = {"w": ft.numpy.ones(1), "b": ft.numpy.ones(1)}
    >>> u, _ = no_bias.update(g, no_bias.init(g))
    >>> u["w"].tolist(), u["b"].tolist()
    ([0.0], [1.0])
    """
    def seen(values: PyTree, params: PyTree) -> PyTree:
        held = _as_tree(mask, values if params is None else params)
        return tree.map(lambda keep, part: part if keep else tree.map(
            lambda _: MaskedNode(), part), held, values)

    def init(params: PyTree) -> MaskedState:
        return MaskedState(inner.init(seen(params, params)))

    def update(updates: PyTree, state: MaskedState, params: PyTree = None,
               **extra: Any) -> tuple[PyTree, MaskedState]:
        given = None if params is None else seen(params, params)
        found, own = inner.update(seen(updates, params), state.inner_state, given, **extra)
        merged = tree.map(lambda new, old: old if isinstance(new, MaskedNode) else new,
                          found, updates, is_leaf=lambda x: isinstance(x, MaskedNode))
        return merged, MaskedState(own)

    return GradientTransformation(init, update)


def _as_tree(mask: Mask, params: PyTree) -> PyTree:
    return mask(params) if callable(mask) else mask


class PartitionState(NamedTuple):
    """The states of the transformations of a partition, by label.

    >>> rules = {"train": ft.optim.sgd(0.1), "keep": ft.optim.set_to_zero()}
    >>> state = ft.optim.partition(rules, {"w": "train", "b": "keep"}).init({"w": 1.0, "b": 2.0})
    >>> sorted(state.inner_states)
    ['keep', 'train']
    """

    inner_states: dict[Hashable, Any]


def partition(transforms: Mapping[Hashable, GradientTransformation],
              param_labels: PyTree | Callable[[PyTree], PyTree]) -> GradientTransformation:
    """Each leaf by the transformation of its label.

    `param_labels` is a tree of labels, a prefix of the parameters, or a function of them that
    returns one. Raises ArgumentError for a label without a transformation.

    >>> import functrans as ft
    >>> frozen = ft.optim.partition({"on": ft.optim.sgd(1.0), "off": ft.optim.set_to_zero()},
    ...                             {"w": "on", "b": "off"})
    >>> g = {"w": ft.numpy.ones(1), "b": ft.numpy.ones(1)}
    >>> u, _ = frozen.update(g, frozen.init(g))
    >>> u["w"].tolist(), u["b"].tolist()
    ([-1.0], [0.0])
    """
    def parts(params: PyTree) -> dict[Hashable, GradientTransformation]:
        labels = _as_tree(param_labels, params)
        unknown = sorted({str(x) for x in tree.leaves(labels) if x not in transforms})
        if unknown:
            raise ArgumentError(f"partition has no transformation for {', '.join(unknown)}.",
                                where=user_source(), why=f"it has {sorted(map(str, transforms))}.",
                                fix="an entry for each label")
        return {label: masked(transform, tree.map(lambda x, label=label: x == label, labels))
                for label, transform in transforms.items()}

    def init(params: PyTree) -> PartitionState:
        return PartitionState({label: part.init(params) for label, part in parts(params).items()})

    def update(updates: PyTree, state: PartitionState, params: PyTree = None,
               **extra: Any) -> tuple[PyTree, PartitionState]:
        states = {}
        for label, part in parts(updates if params is None else params).items():
            updates, states[label] = part.update(updates, state.inner_states[label], params,
                                                 **extra)
        return updates, PartitionState(states)

    return GradientTransformation(init, update)


# --------------------------------------------------------------------------- trees of numbers


def apply_updates(params: T, updates: PyTree) -> T:
    """params + updates, in the dtypes of the parameters; None stays None.

    >>> import functrans as ft
    >>> ft.optim.apply_updates({"w": ft.numpy.ones(2)}, {"w": ft.numpy.full(2, -0.5)})["w"].tolist()
    [0.5, 0.5]
    """
    def add(p: Any, u: Any) -> Any:
        if p is None or u is None:
            return p
        p = jnp.asarray(p)
        return (p + u).astype(p.dtype)

    return map_leaves(add, params, updates, is_leaf=lambda x: x is None)


def incremental_update(new_tensors: T, old_tensors: T, step_size: Number) -> T:
    """old + step_size (new - old), as averages of parameters are kept.

    >>> import functrans as ft
    >>> ft.optim.incremental_update(ft.numpy.ones(1), ft.numpy.zeros(1), 0.25).tolist()
    [0.25]
    """
    return map_leaves(lambda new, old: step_size * new + (1 - step_size) * old, new_tensors,
                    old_tensors)


def global_norm(updates: PyTree) -> Array:
    """The Euclidean norm of all numbers in a tree together.

    >>> import functrans as ft
    >>> float(ft.optim.global_norm({"a": ft.numpy.array([3.0]), "b": ft.numpy.array([4.0])}))
    5.0
    """
    squares = [jnp.sum(squared(u)) for u in tree.leaves(updates)]
    return jnp.sqrt(sum(squares, start=jnp.zeros(())))


def squared(x: Any) -> Array:
    """|x|^2, real."""
    return jnp.real(x * jnp.conj(x)) if jnp.iscomplexobj(x) else jnp.square(x)
