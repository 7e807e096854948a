"""cond and switch: one of several functions, chosen by a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core import config, dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.cells import cells_in_use
from functrans.core.convert import to_array
from functrans.core.errors import (
    ArgumentError,
    BranchTypeError,
    DTypeError,
    ShapeError,
    hide_internal_frames,
)
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import ClosedJaxpr
from functrans.core.keypath import keystr
from functrans.core.source import user_source
from functrans.core.staging import stage
from functrans.core.tree import PyTreeDef, describe_difference, tree_paths, tree_unflatten
from functrans.core.varying import vary, varying_of
from functrans.lax.bodies import common_consts, convert_to, leaves_of, retyped
from functrans.lax.lifted import chosen
from functrans.primitives.compare import clamp, ne
from functrans.primitives.control_flow import cond_p
from functrans.primitives.convert import convert_element_type
from functrans.transforms.cells import closing_over, holds_cells
from functrans.transforms.flat import FlatFunction, check_callable, name_of
from functrans.typing import ArrayLike, PyTree

T = TypeVar("T")

__all__ = ["cond", "switch"]

_MISSING = object()


@overload
def cond(pred: ArrayLike, true_fun: Callable[..., T], false_fun: Callable[..., T],
         *operands: PyTree, operand: PyTree = ..., linear: object = None) -> T: ...


@overload
def cond(pred: ArrayLike, true_fun: PyTree, false_fun: PyTree, *operands: PyTree,
         operand: PyTree = ..., linear: object = None) -> PyTree: ...


def cond(pred: ArrayLike, true_fun: PyTree, false_fun: PyTree, *operands: PyTree,
         operand: PyTree = _MISSING, linear: object = None) -> PyTree:
    """`true_fun(*operands)` if the scalar `pred` holds, else `false_fun(*operands)`.

    Both functions return one structure of arrays with the same shapes and dtypes. The form
    `cond(pred, true_operand, true_fun, false_operand, false_fun)` is taken too. Only the chosen
    branch runs; where `vmap` makes `pred` an array, both do, and each element is selected.
    Raises BranchTypeError when the outputs differ, ShapeError or DTypeError for another `pred`.

    >>> import functrans as ft
    >>> float(ft.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 3.0))
    4.0
    """
    if len(operands) == 2 and callable(false_fun) and callable(operands[1]):
        return _two_operands(pred, true_fun, false_fun, *operands)
    if operand is not _MISSING:
        if operands:
            raise ArgumentError("cond: give the operands by position or as `operand`, not both.")
        operands = (operand,)
    check_callable(true_fun, "cond: true_fun")
    check_callable(false_fun, "cond: false_fun")
    try:
        return _choose("cond", _predicate(pred), (false_fun, true_fun), operands)
    except Exception as error:
        raise hide_internal_frames(error) from error.__cause__


def _two_operands(pred: Any, true_operand: Any, true_fun: Any, false_operand: Any,
                  false_fun: Any) -> Any:
    """The form of `cond` in which each branch has an operand of its own."""
    return cond(pred, lambda ops: true_fun(ops[0]), lambda ops: false_fun(ops[1]),
                (true_operand, false_operand))


def switch(index: ArrayLike, branches: Sequence[Callable[..., T]], *operands: PyTree,
           operand: PyTree = _MISSING) -> T:
    """`branches[index](*operands)`; an integer scalar `index` out of range is clamped into it.

    All branches return one structure of arrays with the same shapes and dtypes. Raises
    BranchTypeError when the outputs differ, ShapeError or DTypeError for another `index`.

    >>> import functrans as ft
    >>> float(ft.lax.switch(1, [lambda x: x, lambda x: x * 10, lambda x: -x], 2.0))
    20.0
    """
    branches = tuple(branches)
    if not branches:
        raise ArgumentError("switch: there are no branches to choose from.", where=user_source())
    for i, branch in enumerate(branches):
        check_callable(branch, f"switch: branch {i}")
    if operand is not _MISSING:
        if operands:
            raise ArgumentError("switch: give the operands by position or as `operand`, not both.")
        operands = (operand,)
    try:
        index = to_array(index, "switch: the index")
        _check_scalar("switch: the index", index)
        if dtypes.kind(index.dtype) not in "iu":
            raise DTypeError(f"switch: the index is {get_aval(index)}.", where=user_source(),
                             why="it counts branches.", fix='index.astype("int32")')
        if len(branches) == 1:
            return branches[0](*operands)
        index = clamp(np.int32(0), convert_element_type(index, np.int32),
                      np.int32(len(branches) - 1))
        chosen: T = _choose("switch", index, branches, operands)
        return chosen
    except Exception as error:
        raise hide_internal_frames(error) from error.__cause__


def _predicate(pred: Any) -> Any:
    """The predicate as a boolean scalar; a number holds unless it is zero."""
    pred = to_array(pred, "cond: the predicate")
    _check_scalar("cond: the predicate", pred)
    letter = dtypes.kind(pred.dtype)
    if letter == "b":
        return pred
    if letter not in "iuf":
        raise DTypeError(f"cond: the predicate is {get_aval(pred)}.", where=user_source(),
                         why="it must be a boolean or a number.", fix="cond(x != 0, ...)")
    return ne(pred, convert_element_type(0, pred.dtype))


def _check_scalar(what: str, x: Any) -> None:
    if x.ndim:
        raise ShapeError(f"{what} is {get_aval(x)}, not a scalar.", where=user_source(),
                         why="one branch is taken for all operands.",
                         fix="vmap over it, or select elements: functrans.numpy.where(pred, x, y)")


def _choose(what: str, index: Any, branches: Sequence[Callable[..., Any]],
            operands: Sequence[Any]) -> Any:
    if cells_in_use():
        if holds_cells(operands):
            of_rest, operands = closing_over(operands, what)
            # a function that is several of the branches stays one
            of = {id(b): of_rest(b) for b in branches}
            branches = [of[id(b)] for b in branches]
        return chosen(lambda lifted: _pure_choice(what, index, lifted, operands), branches, what)
    return _pure_choice(what, index, branches, operands)


def _pure_choice(what: str, index: Any, branches: Sequence[Callable[..., Any]],
                 operands: Sequence[Any]) -> Any:
    if config.current().disable_jit and isinstance(index, ArrayBase):
        return branches[int(index)](*operands)
    leaves, tree = leaves_of(tuple(operands), f"{what}: operand ")
    axes = varying_of(index)
    if axes:  # each device takes a branch of its own
        leaves = [vary(x, axes) for x in leaves]
    avals = [get_aval(x) for x in leaves]
    # A function that is several of the branches is traced once, and what is done where a condition
    # holds before what is done otherwise, as by JAX: libraries count while they trace.
    traced: dict[int, tuple[ClosedJaxpr, PyTreeDef]] = {}
    for branch in reversed(branches) if what == "cond" else branches:
        if id(branch) not in traced:
            flat = FlatFunction(branch, tree, {}, what)
            closed = stage(flat, avals, name=name_of(branch))
            traced[id(branch)] = closed, flat.out_tree
    programs = [traced[id(b)][0] for b in branches]
    trees = [traced[id(b)][1] for b in branches]
    names = [name_of(b) for b in branches]
    for name, other in zip(names[1:], trees[1:], strict=True):
        if other != trees[0]:
            raise BranchTypeError(
                f"{what} branch outputs must have the same pytree structure: those of {names[0]} "
                f"and {name} return different structures: "
                f"{describe_difference(trees[0], other)}.", where=user_source(),
                why="the result must have one type whichever branch is taken.",
                fix="return the same containers from every branch")
    programs = _with_common_types(what, programs, names, trees[0])
    if axes or len({a.varying for p in programs for a in p.out_avals}) > 1:
        out_axes = [axes.union(*[a.varying for a in outs])
                    for outs in zip(*[p.out_avals for p in programs], strict=True)]
        programs = [retyped(p, avals, axes, out_axes) for p in programs]
    consts, jaxprs = common_consts(programs)
    return tree_unflatten(trees[0], cond_p.bind(index, *consts, *leaves, branches=jaxprs))


def _with_common_types(what: str, programs: Sequence[ClosedJaxpr], names: Sequence[str],
                       tree: PyTreeDef) -> list[ClosedJaxpr]:
    """The programs with outputs of the same types: weakly typed ones take the dtype of others."""
    targets: list[Any] = []
    for i, avals in enumerate(zip(*(p.out_avals for p in programs), strict=True)):
        targets.append(_common_dtype(avals))
        if targets[-1] is None:
            raise _different_types(what, avals, names, keystr(tree_paths(tree)[i]))
    result = []
    for closed in programs:
        wanted = [None if a.dtype == t else t
                  for a, t in zip(closed.out_avals, targets, strict=True)]
        if any(w is not None for w in wanted):
            jaxpr, n = closed.jaxpr.hoist_consts(), len(closed.consts)

            def converted(*args: Any, jaxpr: Any = jaxpr, wanted: Any = wanted) -> list[Any]:
                return convert_to(eval_jaxpr(jaxpr, (), *args), wanted)

            again = stage(converted, jaxpr.in_avals, name=jaxpr.name).jaxpr
            again = type(again)(again.invars[:n], again.invars[n:], again.eqns, again.outvars,
                                name=again.name)
            closed = ClosedJaxpr(again, closed.consts)
        result.append(closed)
    return result


def _common_dtype(avals: Sequence[ShapedArray]) -> Any:
    """The one dtype of an output of all branches; None where types differ."""
    if any(a.shape != avals[0].shape for a in avals):
        return None
    common = dtypes.result_type(*avals)
    return common if all(a.weak_type or a.dtype == common for a in avals) else None


def _different_types(what: str, avals: Sequence[ShapedArray], names: Sequence[str],
                     path: str) -> BranchTypeError:
    types = ", ".join(f"{a} from {name}" for a, name in zip(avals, names, strict=True))
    at = f"at {path} " if path else ""
    fix = "make the shapes equal, by broadcasting or padding"
    if all(a.shape == avals[0].shape for a in avals):
        fix = f"return x.astype({avals[0].dtype.name!r}) from every branch"
    return BranchTypeError(f"{what}: the branches return different types {at}({types}).",
                           where=user_source(),
                           why="the result must have one type whichever branch is taken.", fix=fix)
