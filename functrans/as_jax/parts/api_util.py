"""`jax.api_util`: flat functions for transformations of a library's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from functrans.core.avals import ShapedArray, get_aval
from functrans.core.tree import PyTreeDef, broadcast_prefix, tree_flatten, tree_unflatten
from functrans.extend.linear_util import (
    WrappedFun,
    transformation2,
    transformation_with_aux2,
)

__all__ = ["argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun",
           "flatten_fun_nokwargs", "infer_argnums_and_argnames", "rebase_donate_argnums",
           "safe_map", "shaped_abstractify"]


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: Any, in_tree: PyTreeDef, *leaves: Any) -> list[Any]:
    """A function of leaves, of which the tree is `(args, kwargs)`, and the tree of its results."""
    args, kwargs = tree_unflatten(in_tree, leaves)
    outs, tree = tree_flatten(f(*args, **kwargs))
    store.put(tree)
    return outs


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable[..., Any], store: Any, in_tree: PyTreeDef,
                         *leaves: Any) -> list[Any]:
    """The same where the tree is `args`."""
    outs, tree = tree_flatten(f(*tree_unflatten(in_tree, leaves)))
    store.put(tree)
    return outs


def argnums_partial(f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any],
                    require_static_args_hashable: bool = True) -> tuple[WrappedFun, list[Any]]:
    """A function of some positions, with the other arguments fixed, and the arguments left."""
    wanted = [dyn_argnums] if isinstance(dyn_argnums, int) else list(dyn_argnums)
    positions = sorted(i % len(args) for i in wanted)

    def call(inner: Callable[..., Any], *given: Any, **kwargs: Any) -> Any:
        whole = list(args)
        for i, x in zip(positions, given, strict=True):
            whole[i] = x
        return inner(*whole, **kwargs)

    return transformation2(call)(f), [args[i] for i in positions]


def infer_argnums_and_argnames(
        sig: inspect.Signature, argnums: int | Iterable[int] | None,
        argnames: str | Iterable[str] | None) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the same parameters, where one of both is given."""
    numbers = None if argnums is None else (
        (argnums,) if isinstance(argnums, int) else tuple(argnums))
    names = None if argnames is None else (
        (argnames,) if isinstance(argnames, str) else tuple(argnames))
    both = [(i, name) for i, (name, parameter) in enumerate(sig.parameters.items())
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    if numbers is None:
        return tuple(i for i, name in both if name in (names or ())), names or ()
    return numbers, tuple(name for i, name in both if i in numbers) if names is None else names


def debug_info(traced_for: str, fun: Callable[..., Any], args: Any, kwargs: Any,
               **more: Any) -> str:
    """What a function is called, which is all that is kept of it here."""
    return f"{traced_for} of {getattr(fun, '__name__', fun)}"


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: Any, *,
                 kws: bool = False) -> list[Any]:
    """An axis for each leaf of a tree, where those given are a prefix of it."""
    whole = tree_unflatten(treedef, [0] * treedef.num_leaves)
    found: list[Any] = broadcast_prefix(axis_tree, whole, is_leaf=lambda x: x is None)
    return found


def donation_vector(donate_argnums: Sequence[int], donate_argnames: Sequence[str],
                    in_tree: PyTreeDef, kws: bool = True) -> tuple[bool, ...]:
    """Whether each leaf is donated, of a tree of `(args, kwargs)`, or of `args`."""
    children = in_tree.children()
    args, kwargs = children if kws else (in_tree, None)
    found = [i in donate_argnums for i, arg in enumerate(args.children())
             for _ in range(arg.num_leaves)]
    if kwargs is not None:
        found += [name in donate_argnames
                  for name, value in zip(kwargs.entries(), kwargs.children(), strict=True)
                  for _ in range(value.num_leaves)]
    return tuple(found)


def rebase_donate_argnums(donate_argnums: Sequence[int], static_argnums: Sequence[int]
                          ) -> tuple[int, ...]:
    """The positions of donated arguments among those that are not static."""
    return tuple(sorted(i - sum(s < i for s in static_argnums) for i in donate_argnums
                        if i not in static_argnums))


def safe_map(f: Callable[..., Any], *lists: Sequence[Any]) -> list[Any]:
    """`list(map(f, *lists))` of lists of one length; raises ValueError for others."""
    return [f(*xs) for xs in zip(*lists, strict=True)]


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of an array or a number."""
    return get_aval(x)
