"""Functions with batching rules of their own, as in `jax.custom_batching`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from functrans.core.errors import publish
from functrans.lax import map as lax_map
from functrans.transforms.custom_vmap import custom_vmap
from functrans.tree import flatten, map, unflatten

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["custom_vmap", "sequential_vmap"]


def sequential_vmap(f: Callable[P, R]) -> custom_vmap[P, R]:
    """A function that `vmap` calls for one element after the other, in a loop (`lax.map`).

    >>> import functrans as ft
    >>> from functrans.custom_batching import sequential_vmap
    >>> @sequential_vmap
    ... def f(x):
    ...     return x * 2
    >>> ft.vmap(f)(ft.numpy.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    mapped = custom_vmap(f)
    function: Callable[..., Any] = f

    @mapped.def_vmap
    def rule(axis_size: Any, in_batched: Any, *args: Any) -> Any:
        leaves, tree = flatten(args)
        flags = flatten(in_batched)[0]
        given = [x for x, b in zip(leaves, flags, strict=True) if b]

        def call(elements: list[Any]) -> Any:
            rest = iter(elements)
            return function(*unflatten(tree, [next(rest) if b else x
                                              for x, b in zip(leaves, flags, strict=True)]))

        out = lax_map(call, given)
        return out, map(lambda _: True, out)

    return mapped


publish(globals(), __all__)
