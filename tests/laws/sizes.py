"""Cases of primitives with every size from 2 on named, and arguments of other sizes for them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import functrans as ft


def named(args: Sequence[Any]) -> Any:
    """A name for each size from 2 on, the same name for equal sizes, as `dynamic_shapes` takes it.
    """
    return ft.tree.map(lambda a: {k: f"d{n}" for k, n in enumerate(np.shape(a)) if n > 1},
                       list(args))


def larger(args: Sequence[Any]) -> list[Any]:
    """The arguments with one more element along every axis of two or more, repeated from their
    beginning: indices stay in bounds, equal sizes equal, and definite matrices definite."""
    def grow(a: Any) -> Any:
        a = np.asarray(a)
        for axis, size in enumerate(a.shape):
            if size > 1:
                a = np.concatenate([a, np.take(a, [0], axis)], axis)
        if a.ndim > 1 and a.shape[-1] == a.shape[-2] > 2 and a.dtype.kind in "fc":
            a[..., -1, :] = a[..., :, -1] = 0
            a[..., -1, -1] = 2
        return a

    return ft.tree.map(grow, list(args))


def outcome(fun: Callable[..., Any], args: Sequence[Any]) -> Any:
    """What a function gives, or the type of what it raises."""
    try:
        return ft.tree.leaves(fun(*args))
    except Exception as error:
        return type(error)


def distinct(args: Sequence[Any]) -> list[Any]:
    """The arguments with floats that differ where they did not: ties have many derivatives."""
    rng = np.random.default_rng(0)
    return [a * rng.uniform(0.97, 1, np.shape(a)) if np.asarray(a).dtype.kind in "fc" else a
            for a in args]
