"""`check_shapes`: a function's contract on shapes, verified for all sizes without running it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core.bounds import Bound, provable
from functrans.core.dims import Dim, Shape, bounds_of
from functrans.core.errors import ArgumentError, ShapeError, TreeMismatchError, public, shown
from functrans.core.keypath import keystr
from functrans.core.size_text import parse_shape
from functrans.core.source import user_source
from functrans.core.tree import tree_flatten, tree_flatten_with_path, tree_map
from functrans.transforms.flat import check_callable, name_of
from functrans.transforms.staged import ShapeDtypeStruct, eval_shape

if TYPE_CHECKING:
    from functrans.typing import DTypeLike, PyTree

__all__ = ["check_shapes"]

_TYPED = re.compile(r"\s*(\w+)\s*\[(.*)\]\s*")


@public
def check_shapes(fun: Callable[..., Any], *specs: PyTree, result: PyTree = None,
                 dtype: DTypeLike = "float32") -> PyTree:
    """Verify the shapes of `fun` for all sizes: its outputs, as ShapeDtypeStructs of named sizes.

    `"B S D, D E -> B S E"` gives the shapes of the arguments and of the result. Where arguments are
    trees, give one tree of such texts for each, and the `result` by name. A size is an int, a name,
    or an expression without blanks (`2*B`); `int32[B S]` says a dtype, which is `dtype` otherwise,
    and a ShapeDtypeStruct stands for itself. Named sizes are two or more, and different names are
    different sizes: what holds here holds for all of them. Nothing runs.
    Raises ShapeError where an axis breaks the contract, at the user's line if an operation does,
    ConcretizationError where the function decides on a size, and ArgumentError for what is no spec.

    >>> import functrans as ft
    >>> ft.check_shapes(lambda x, w: x @ w, "B S D, D E -> B S E")
    ShapeDtypeStruct(shape=(B, S, E), dtype=float32)
    >>> ft.check_shapes(lambda p, x: x @ p["w"], {"w": "D E"}, "B D", result="B E").shape
    (B, E)
    """
    check_callable(fun, "check_shapes")
    if len(specs) == 1 and isinstance(specs[0], str):
        text, arrow, out = specs[0].partition("->")
        if arrow and result is not None:
            raise ArgumentError("check_shapes: the result is given twice.", where=user_source())
        result = out if arrow else result
        specs = tuple(text.split(","))
    known: dict[str, Dim] = {}
    arguments = tree_map(lambda spec: _struct(spec, dtype, known), specs)
    _check_count(fun, specs)
    found = eval_shape(fun, *arguments)
    if result is not None:
        wanted = tree_map(lambda spec: _struct(spec, None, known), _outputs(result))
        _compare(name_of(fun), found, wanted)
    return found


def _check_count(fun: Callable[..., Any], specs: tuple[Any, ...]) -> None:
    """Raise ArgumentError where a function cannot take as many arguments."""
    try:
        inspect.signature(fun).bind(*specs)
    except TypeError as error:
        told = ", ".join(str(spec).strip() for spec in specs)
        raise ArgumentError(
            f"check_shapes: the contract has {len(specs)} argument{'s' * (len(specs) != 1)} "
            f"({told}), and {name_of(fun)} takes others: {error}.", where=user_source(),
            why="commas stand between arguments, blanks between sizes.",
            fix='"B D, D E -> B E" for two matrices') from None
    except ValueError:  # a function without a signature
        pass


def _outputs(result: Any) -> Any:
    """`"B, S"` is a pair of results."""
    if isinstance(result, str) and "," in result:
        return tuple(result.split(","))
    return result


def _struct(spec: Any, dtype: Any, known: dict[str, Dim]) -> Any:
    if isinstance(spec, ShapeDtypeStruct):
        return spec
    if isinstance(spec, (ArrayBase, np.ndarray)):
        return ShapeDtypeStruct(spec.shape, spec.dtype)
    if not isinstance(spec, str):
        raise ArgumentError(f"check_shapes takes shapes as text, got {shown(spec)}.",
                            where=user_source(), fix='"B S D", "int32[B S]"')
    typed = _TYPED.fullmatch(spec)
    sizes = parse_shape(typed[2] if typed else spec)
    for name in {n for size in sizes if isinstance(size, Dim) for n in size.names()}:
        known.setdefault(name, Dim(name, bounds=((name, Bound(2)),)))
    shape = parse_shape(typed[2] if typed else spec, known)
    chosen = typed[1] if typed else dtype
    return shape if chosen is None else ShapeDtypeStruct(shape, chosen)


def _compare(name: str, found: Any, wanted: Any) -> None:
    paths, tree = tree_flatten_with_path(found)
    specs, wanted_tree = tree_flatten(wanted, is_leaf=_is_shape)
    if tree != wanted_tree:
        raise TreeMismatchError(f"check_shapes of {name}: it returns {tree}, and the contract says "
                                f"{wanted_tree}.", where=user_source())
    for (path, out), spec in zip(paths, specs, strict=True):
        what = f"the result{keystr(path)}"
        shape: Shape = spec.shape if isinstance(spec, ShapeDtypeStruct) else spec
        if isinstance(spec, ShapeDtypeStruct) and spec.dtype != out.dtype:
            raise ShapeError(f"check_shapes of {name}: {what} is {out.dtype}, and the contract "
                             f"says {spec.dtype}.", where=user_source())
        if len(shape) != len(out.shape):
            raise ShapeError(f"check_shapes of {name}: {what} has {len(out.shape)} axes, and the "
                             f"contract {len(shape)}.", where=user_source(),
                             why=f"its shape is {out.shape}, and {shape} is promised.")
        for axis, (size, promised) in enumerate(zip(out.shape, shape, strict=True)):
            if size != promised and provable("==", size, promised,
                                             bounds_of(size, promised)) is not True:
                raise ShapeError(f"check_shapes of {name}: axis {axis} of {what} is {size}, and "
                                 f"the contract says {promised}.", where=user_source(),
                                 why=f"its shape is {out.shape}, and {shape} is promised.")


def _is_shape(x: Any) -> bool:
    return isinstance(x, tuple) and all(isinstance(n, (int, Dim)) for n in x)
