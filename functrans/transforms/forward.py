"""`jvp` for users: pytrees in, pytrees out, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.cells import RefCell
from functrans.core.convert import to_array
from functrans.core.errors import (
    ArgumentError,
    DTypeError,
    ShapeError,
    TreeMismatchError,
)
from functrans.core.keypath import keystr
from functrans.core.source import user_source
from functrans.core.tree import check_same_structure, tree_flatten, tree_paths, tree_unflatten
from functrans.primitives.convert import convert_element_type
from functrans.transforms.cells import CellArguments, cell_arguments, refuse_twice, write_all
from functrans.transforms.flat import FlatFunction, check_callable, flatten_args
from functrans.transforms.jvp import jvp_flat, strip_tangents
from functrans.transforms.tangents import instantiate, tangent_aval

if TYPE_CHECKING:
    from functrans.typing import PyTree

R = TypeVar("R")
A = TypeVar("A")

__all__ = ["check_tangent_cells", "check_tangents", "jvp", "public_tangent"]


@overload
def jvp(fun: Callable[..., R], primals: Sequence[PyTree], tangents: Sequence[PyTree],
        has_aux: Literal[False] = False) -> tuple[R, R]: ...


@overload
def jvp(fun: Callable[..., tuple[R, A]], primals: Sequence[PyTree], tangents: Sequence[PyTree],
        has_aux: Literal[True]) -> tuple[R, R, A]: ...


def jvp(fun: Callable[..., Any], primals: Sequence[PyTree], tangents: Sequence[PyTree],
        has_aux: bool = False) -> tuple[PyTree, ...]:
    """The value of `fun` at `primals` and its derivative in the direction `tangents`.

    `primals` and `tangents` are sequences of one structure, shapes and dtypes; tangents of integer
    and boolean values have dtype float0. Returns (out, tangent of out), and the auxiliary output
    when `fun` returns a pair and `has_aux` is set.
    Raises TreeMismatchError, ShapeError or DTypeError where tangents do not fit.

    >>> import functrans as ft
    >>> out, tangent = ft.jvp(lambda x: x ** 2, (3.0,), (1.0,))
    >>> float(out), float(tangent)
    (9.0, 6.0)
    """
    check_callable(fun, "jvp")
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, (tuple, list)):
            raise ArgumentError(f"jvp: {name} must be a tuple of arguments, got "
                                f"{type(value).__name__}.", fix="jvp(fun, (x,), (t,))")
    cells = cell_arguments(tuple(primals), "jvp")
    if cells is not None:
        return _jvp_of_cells(fun, cells, tuple(tangents), has_aux)
    leaves, tree = flatten_args(primals, "jvp")
    given, given_tree = tree_flatten(tuple(tangents))
    if tree != given_tree:
        check_same_structure(tree, given_tree, "jvp: the tangents (compared with the primals)")
        raise TreeMismatchError("jvp: primals and tangents differ in structure.")
    flat_tangents = check_tangents(leaves, given, tree, "jvp: the tangent")
    flat = FlatFunction(fun, tree, {}, "jvp", has_aux)
    outs, out_tangents = jvp_flat(flat, leaves, flat_tangents)
    out = tree_unflatten(flat.out_tree, outs)
    tangent = tree_unflatten(flat.out_tree, [public_tangent(t, o) for t, o in
                                             zip(out_tangents, outs, strict=True)])
    return (out, tangent, strip_tangents(flat.aux)) if has_aux else (out, tangent)


def _jvp_of_cells(fun: Callable[..., Any], given: CellArguments, tangents: tuple[Any, ...],
                  has_aux: bool) -> tuple[Any, ...]:
    """The tangents of what is in cells are in cells, too; the function writes into both."""
    directions = CellArguments(tangents, "jvp")
    if given.tree == directions.tree:
        refuse_twice([*given.cells, *directions.cells], "jvp")
        check_tangent_cells(given.places, directions.leaves, given.tree, "jvp")
    of_values: Any = jvp  # with an auxiliary output, or without
    result = of_values(given.pure(fun, "jvp", has_aux), given.values, directions.values, has_aux)
    (out, last), (tangent, last_tangents) = result[:2]
    write_all(given.cells, last)
    moved = [(directions.leaves[i], t) for i, t in zip(given.places, last_tangents, strict=True)
             if isinstance(directions.leaves[i], RefCell)]
    write_all([c for c, _ in moved], [t for _, t in moved])
    return (out, tangent, *result[2:])


def check_tangent_cells(places: Sequence[int], tangents: Sequence[Any], tree: Any,
                        what: str) -> None:
    """Raise ArgumentError where the tangent of what is in a cell is in none."""
    for i in places:
        t = tangents[i]
        if not isinstance(t, RefCell) and getattr(t, "dtype", None) != dtypes.float0:
            raise ArgumentError(
                f"{what}: the value{_at(tree, i)} is a reference, its tangent a "
                f"{type(t).__name__}.", where=user_source(),
                why="the function writes into it, and the tangent of what it writes has a place "
                    "then.", fix="a reference to the tangent: functrans.new_ref(t)")


def check_tangents(primals: Sequence[Any], tangents: Sequence[Any], tree: Any,
                   what: str) -> list[Any]:
    """Tangents as arrays of the types that the primals ask for; None for those of integers."""
    result: list[Any] = []
    for i, (p, t) in enumerate(zip(primals, tangents, strict=True)):
        expected = tangent_aval(get_aval(p))
        if expected.dtype == dtypes.float0:
            if getattr(t, "dtype", None) != dtypes.float0:
                raise DTypeError(f"{what}{_at(tree, i)} belongs to a value of dtype {p.dtype}.",
                                 where=user_source(),
                                 why="integers and booleans have tangents of dtype float0.",
                                 fix="numpy.zeros(x.shape, functrans.float0)")
            result.append(None)
            continue
        t = to_array(t, f"{what}{_at(tree, i)}")
        aval = get_aval(t)
        if aval.shape != expected.shape:
            raise ShapeError(f"{what}{_at(tree, i)} is {aval}, the value {expected}.",
                             where=user_source(), why="a tangent has the shape of its value.")
        if aval.dtype != expected.dtype:
            if not aval.weak_type:
                raise DTypeError(f"{what}{_at(tree, i)} is {aval}, the value {expected}.",
                                 where=user_source(), why="a tangent has the dtype of its value.",
                                 fix=f"tangent.astype({expected.dtype.name!r})")
            t = t.astype(expected.dtype)
        result.append(t)
    return result


def _at(tree: Any, index: int) -> str:
    return f" at {keystr(tree_paths(tree)[index])}"


def public_tangent(tangent: Any, like: Any) -> Any:
    """A tangent as users see it: zeros where symbolic, float0 for integers.

    It is as weak as its value.
    """
    if tangent is not None:
        weak = get_aval(like).weak_type
        if weak != get_aval(tangent).weak_type and not isinstance(tangent, RefCell):
            return convert_element_type(tangent, tangent.dtype, weak)
        return tangent
    aval = tangent_aval(get_aval(like))
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return instantiate(None, like)
