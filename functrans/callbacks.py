"""`pure_callback` and `io_callback`: Python functions on concrete values, from inside programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from functrans.core.avals import ShapedArray
from functrans.core.errors import ArgumentError, CallbackError
from functrans.core.source import user_source
from functrans.core.tree import describe_difference, tree_flatten, tree_unflatten
from functrans.primitives.callback import (
    HostFunction,
    debug_callback_p,
    io_callback_p,
    pure_callback_p,
)
from functrans.transforms.flat import check_callable, flatten_args, name_of
from functrans.transforms.staged import aval_of

if TYPE_CHECKING:
    from functrans.transforms.staged import ShapeDtypeStruct
    from functrans.typing import Array, PyTree

__all__ = ["debug_callback", "io_callback", "pure_callback"]

_VMAP_METHODS = (None, "sequential", "expand_dims", "broadcast_all")


@overload
def pure_callback(callback: Callable[..., Any], result_shape_dtypes: ShapeDtypeStruct,
                  *args: PyTree, vmap_method: str | None = None, **kwargs: PyTree) -> Array: ...


@overload
def pure_callback(callback: Callable[..., Any], result_shape_dtypes: PyTree, *args: PyTree,
                  vmap_method: str | None = None, **kwargs: PyTree) -> PyTree: ...


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: PyTree, *args: PyTree,
                  vmap_method: str | None = None, **kwargs: PyTree) -> PyTree:
    """The result of `callback(*args, **kwargs)` on NumPy arrays, inside any transform.

    `result_shape_dtypes` is a pytree of ShapeDtypeStructs (or arrays) of the structure that the
    callback returns. It must have no side effects: it may be called more than once, or not at all.
    `vmap_method` says how it is mapped: "sequential", "expand_dims" or "broadcast_all".
    Raises CallbackError when the result is of another type than declared.

    >>> import functrans as ft, numpy as np
    >>> f = lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((), "float32"), x)
    >>> float(ft.jit(f)(0.0))
    0.0
    """
    if vmap_method not in _VMAP_METHODS:
        raise ArgumentError(f"pure_callback: vmap_method={vmap_method!r} is none of "
                            f"{', '.join(map(repr, _VMAP_METHODS))}.")
    leaves, flat, avals, tree = _prepare(callback, result_shape_dtypes, args, kwargs)
    outs = pure_callback_p.bind(*leaves, callback=flat, out_avals=avals, vmap_method=vmap_method)
    return tree_unflatten(tree, outs)


@overload
def io_callback(callback: Callable[..., Any], result_shape_dtypes: ShapeDtypeStruct,
                *args: PyTree, ordered: bool = False, **kwargs: PyTree) -> Array: ...


@overload
def io_callback(callback: Callable[..., Any], result_shape_dtypes: PyTree, *args: PyTree,
                ordered: bool = False, **kwargs: PyTree) -> PyTree: ...


def io_callback(callback: Callable[..., Any], result_shape_dtypes: PyTree, *args: PyTree,
                ordered: bool = False, **kwargs: PyTree) -> PyTree:
    """The result of a callback with side effects, called each time the program gets there.

    With `ordered` calls keep their order, and it cannot be mapped.

    >>> import functrans as ft
    >>> seen = []
    >>> ft.io_callback(lambda x: seen.append(float(x)), None, 1.5)
    >>> seen
    [1.5]
    """
    leaves, flat, avals, tree = _prepare(callback, result_shape_dtypes, args, kwargs)
    outs = io_callback_p.bind(*leaves, callback=flat, out_avals=avals, ordered=ordered)
    return tree_unflatten(tree, outs)


def debug_callback(callback: Callable[..., Any], *args: PyTree, ordered: bool = False,
                   **kwargs: PyTree) -> None:
    """Call a function on the values that `args` have when the program runs; for looking only.

    Under vmap it is called for each element, under grad on the primal values.

    >>> import functrans as ft
    >>> seen = []
    >>> _ = ft.jit(lambda x: (ft.debug.callback(lambda v: seen.append(int(v)), x), x)[1])(3)
    >>> seen
    [3]
    """
    leaves, flat, _, _ = _prepare(lambda *a, **k: (callback(*a, **k), None)[1], None, args, kwargs)
    debug_callback_p.bind(*leaves, callback=flat, out_avals=(), ordered=ordered)


def _prepare(callback: Callable[..., Any], result_shape_dtypes: Any, args: tuple[Any, ...],
             kwargs: dict[str, Any]) -> tuple[list[Any], Any, tuple[ShapedArray, ...], Any]:
    """Leaves of the arguments, the callback on such leaves, and the types of its results."""
    check_callable(callback, "callback")
    leaves, in_tree = flatten_args((args, kwargs), "callback", keywords=True)
    specs, out_tree = tree_flatten(result_shape_dtypes)
    avals = tuple(aval_of(s).strong() for s in specs)
    place = user_source()

    def flat(*arrays: Any) -> list[Any]:
        given, keywords = tree_unflatten(in_tree, arrays)
        results, tree = tree_flatten(callback(*given, **keywords))
        if tree != out_tree:
            raise CallbackError(
                f"the callback {name_of(callback)} returned another structure than it declared: "
                f"{describe_difference(out_tree, tree)}.", where=place,
                fix="correct result_shape_dtypes, or what the callback returns")
        return results

    return leaves, HostFunction(flat, name_of(callback), place), avals, out_tree
