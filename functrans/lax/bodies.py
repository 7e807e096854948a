"""From the functions that users pass to loops and branches to the programs of primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.convert import to_array, to_arrays
from functrans.core.errors import CarryTypeError, FunctransError
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from functrans.core.keypath import KeyPath, keystr
from functrans.core.record import Record
from functrans.core.source import user_source
from functrans.core.staging import stage
from functrans.core.tree import (
    PyTreeDef,
    describe_difference,
    tree_flatten,
    tree_paths,
    tree_unflatten,
)
from functrans.core.varying import vary
from functrans.primitives.convert import convert_element_type
from functrans.transforms.flat import name_of

__all__ = ["Carry", "common_consts", "convert_to", "leaves_of", "retyped",
           "stage_carrying"]


def leaves_of(tree: Any, what: str) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree as arrays, and its structure; `what` names it in errors."""
    leaves, treedef = tree_flatten(tree)
    try:
        return [to_array(x) for x in leaves], treedef
    except FunctransError:
        return to_arrays(leaves, what, tree_paths(treedef)), treedef


def convert_to(values: Sequence[Any], new_dtypes: Sequence[Any]) -> list[Any]:
    """The values converted where a dtype is given."""
    return [x if d is None else convert_element_type(x, d)
            for x, d in zip(values, new_dtypes, strict=True)]


def common_consts(programs: Sequence[ClosedJaxpr]) -> tuple[list[Any], tuple[Jaxpr, ...]]:
    """The constants of all programs together, and the programs with these as leading inputs."""
    consts: dict[int, Any] = {}
    for closed in programs:
        consts.update((id(c), c) for c in closed.consts)
    jaxprs = []
    for closed in programs:
        mine = dict(zip(map(id, closed.consts), closed.jaxpr.constvars, strict=True))
        leading = tuple(mine.get(key) or Var(get_aval(c)) for key, c in consts.items())
        jaxpr = closed.jaxpr
        jaxprs.append(Jaxpr((), leading + jaxpr.invars, jaxpr.eqns, jaxpr.outvars,
                            name=jaxpr.name))
    return list(consts.values()), tuple(jaxprs)


def retyped(closed: ClosedJaxpr, avals: Sequence[ShapedArray], axes: frozenset[Any],
            out_axes: Sequence[frozenset[Any]]) -> ClosedJaxpr:
    """A program of `shard_map` for inputs of other types, whose constants vary along `axes`.

    Output i varies along `out_axes[i]`, besides those along which it does.
    """
    jaxpr, n = closed.jaxpr.hoist_consts(), len(closed.consts)
    consts = [vary(c, axes) for c in closed.consts]
    again = stage(lambda *xs: [vary(o, a) for o, a in
                               zip(eval_jaxpr(jaxpr, (), *xs), out_axes, strict=True)],
                  [*map(get_aval, consts), *avals], name=jaxpr.name).jaxpr
    return ClosedJaxpr(Jaxpr(again.invars[:n], again.invars[n:], again.eqns, again.outvars,
                             name=again.name), tuple(consts))


class Carry(Record, frozen=False):
    """The carried values of a loop; `where(path)` names one of them in messages."""

    what: str
    leaves: list[Any]
    tree: PyTreeDef
    hidden: int = 0  # keys at the start of each path that the user did not write

    @property
    def avals(self) -> list[ShapedArray]:
        return [get_aval(x) for x in self.leaves]

    def where(self, path: KeyPath) -> str:
        name = keystr(path[self.hidden:])
        return f"at {name}" if name else "itself"


Body = Callable[[Any, Any], tuple[Any, Any]]


def stage_carrying(fun: Callable[..., Any], body: Body, carry: Carry, xs: Sequence[Any],
                   xs_tree: PyTreeDef) -> tuple[ClosedJaxpr, PyTreeDef]:
    """The program of a loop body (carry, x) -> (carry, y) and the structure of y.

    Types must not change from one iteration to the next. Weak types give way: an initial value
    that is weakly typed (a Python scalar) takes the dtype that the body gives it, and `carry` is
    updated; a weakly typed result takes the dtype of what came in. Raises CarryTypeError.
    """
    count = len(carry.leaves)
    results: list[Any] = [None] * count
    trees: list[PyTreeDef] = []

    def flat(*args: Any) -> list[Any]:
        new, y = body(tree_unflatten(carry.tree, args[:count]),
                      tree_unflatten(xs_tree, args[count:]))
        leaves, tree = leaves_of(new, f"{carry.what}: the carry")
        ys, y_tree = leaves_of(y, f"{carry.what}: the output")
        trees[:] = [tree, y_tree]
        if tree != carry.tree:
            raise CarryTypeError(
                f"{carry.what}: {name_of(fun)} returns a carry of another structure: "
                f"{describe_difference(carry.tree, tree)}.", where=user_source(),
                why="every iteration takes what the one before returned.",
                fix="return the structure that is given as the initial value")
        return convert_to(leaves, results) + ys

    while True:
        closed = stage(flat, [*carry.avals, *xs], name=name_of(fun))
        if not _settle(carry, closed.out_avals[:count], results, fun):
            return closed, trees[1]


def _settle(carry: Carry, outs: Sequence[ShapedArray], results: list[Any], fun: Any) -> bool:
    """Let weak types give way; True when that changed something. Raises CarryTypeError."""
    changed = False
    wrong = []
    for i, (before, after) in enumerate(zip(carry.avals, outs, strict=True)):
        if before.matches(after):
            if after.varying - before.varying:  # the body makes it differ between devices
                carry.leaves[i] = vary(carry.leaves[i], after.varying)
                changed = True
            continue
        common = dtypes.result_type(before, after)
        if before.shape != after.shape:
            wrong.append(i)
        elif before.weak_type and common == after.dtype:
            carry.leaves[i] = convert_element_type(carry.leaves[i], common)
            changed = True
        elif after.weak_type and common == before.dtype:
            results[i] = common
            changed = True
        else:
            wrong.append(i)
    if wrong:
        raise _changed_types(carry, outs, wrong, fun)
    return changed


def _changed_types(carry: Carry, outs: Sequence[ShapedArray], wrong: Sequence[int],
                   fun: Any) -> CarryTypeError:
    paths = tree_paths(carry.tree)
    changes = [f"the carry {carry.where(paths[i])} is {carry.avals[i]} before and {outs[i]} after"
               for i in wrong]
    first = wrong[0]
    before, after = carry.avals[first], outs[first]
    if before.shape != after.shape:
        fix = "return arrays of the shape of the initial value, or broadcast the initial value"
    else:
        fix = (f"start from x.astype({after.dtype.name!r}), or return "
               f"x.astype({before.dtype.name!r})")
    return CarryTypeError(
        f"{carry.what}: {name_of(fun)} changes the type of what it carries: "
        f"{'; '.join(changes)}.", where=user_source(),
        why="every iteration takes what the one before returned.", fix=fix)
