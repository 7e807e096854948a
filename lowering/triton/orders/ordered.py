"""Scatters that combine: updates sorted by their places, and those of one place folded in order.

Atomic operations add in the order in which programs happen to run, and there are none that
multiply, or that compare with NaN. Sorting gives the same bits in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from functrans.core import config
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.primitive import Primitive
from functrans.core.staging import stage
from functrans.lowering.loops.tensor import Tensor, dtype_name
from functrans.lowering.rules import indexing
from functrans.lowering.triton.choices import inlined
from functrans.lowering.triton.orders.segments import Segments
from functrans.primitives.arithmetic import add, max_p, min_p, mul
from functrans.primitives.broadcast import broadcast_in_dim
from functrans.primitives.compare import ge, le, select_n_p
from functrans.primitives.convert import convert_element_type
from functrans.primitives.index import scatter_add_p
from functrans.primitives.index_layout import GatherScatterMode, window_sizes
from functrans.primitives.scatter import scatter_max_p, scatter_min_p, scatter_mul_p
from functrans.primitives.shape import broadcasted_iota, iota, reshape, slice_in_dim
from functrans.primitives.sort import sort

__all__ = ["COMBINING", "FOLDS", "ordered_scatters"]

OPS = {scatter_add_p: "add", scatter_mul_p: "mul", scatter_min_p: "min", scatter_max_p: "max"}
EXACT = frozenset(("i32", "i64", "u32", "u64"))
ATOMIC = {"add": EXACT | {"f32", "f64", "f16", "bf16"}, "max": EXACT, "min": EXACT, "mul": ()}
"""What atomic operations do; the order changes nothing where they are exact."""


class FoldSorted(Primitive, abstract=True):
    """Rows of updates folded into rows of a base: those of update order[p] into row keys[p].

    Keys are ascending; one that is no row of the base is of none. A part of programs for GPUs.
    """

    name = "fold_sorted"

    def type(self, base: ShapedArray, keys: ShapedArray, order: ShapedArray, updates: ShapedArray,
             *, op: str) -> ShapedArray:
        return base


fold_sorted_p = FoldSorted()


# --------------------------------------------------------------------------- programs


def ordered_scatters(jaxpr: Jaxpr) -> Jaxpr:
    """A program whose scatters that combine are atomic operations that do, or sorted ones."""
    if not any(map(_is_ordered, jaxpr.eqns)):
        return jaxpr
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        if not _is_ordered(eqn):
            eqns.append(eqn)
            continue
        staged = stage(partial(_sorted, eqn), [x.aval for x in eqn.invars], name=jaxpr.name)
        (out,) = inlined(staged.jaxpr, eqn.invars, eqns)
        assert eqns[-1].outvars == (out,)
        eqns[-1] = eqns[-1].replace(outvars=eqn.outvars)
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars, name=jaxpr.name)


def _is_ordered(eqn: Equation) -> bool:
    op = OPS.get(eqn.primitive)
    dtype = dtype_name(eqn.outvars[0].aval.dtype)
    if op is None or dtype is None or dtype == "bool":
        return False
    sizes = [n for x in eqn.invars for n in x.aval.shape]
    if not all(isinstance(n, int) for n in sizes) or 0 in sizes \
            or max(x.aval.size for x in eqn.invars) >= 2**31:
        return False
    return not _is_atomic(eqn)


def _is_atomic(eqn: Equation) -> bool:
    """Whether atomic operations compute a scatter, and in deterministic programs in any order."""
    dtype = dtype_name(eqn.outvars[0].aval.dtype)
    return dtype in ATOMIC[OPS[eqn.primitive]] and (
        not config.current().deterministic or dtype in EXACT or bool(eqn.params["unique_indices"]))


def _sorted(eqn: Equation, base: Any, indices: Any, updates: Any) -> list[Any]:
    """The scatter of an equation by its updates in the order of their places.

    Trailing dimensions that windows cover are columns; all others together are rows.
    """
    columns = _covered(eqn)
    shape, lead = base.shape, updates.ndim - columns
    rows = base.ndim - columns
    width = int(np.prod(shape[rows:], dtype=int))
    keys = reshape(_rows_of(eqn, indices, rows, updates.shape[:lead]), (-1,))
    count = keys.shape[0]
    keys, order = sort((keys, iota(np.int32, count)), num_keys=1)
    out = fold_sorted_p.bind(reshape(base, (base.size // width, width)), keys, order,
                             reshape(updates, (count, width)), op=OPS[eqn.primitive])
    return [reshape(out, shape)]


def _covered(eqn: Equation) -> int:
    """How many trailing dimensions of the operand are the same ones of the updates."""
    numbers = eqn.params["dimension_numbers"]
    shape, updates = eqn.invars[0].aval.shape, eqn.invars[2].aval.shape
    other = {*numbers.inserted_window_dims, *numbers.operand_batching_dims,
             *numbers.scatter_dims_to_operand_dims}
    count = 0
    while count < min(len(shape), len(updates)) and len(shape) - 1 - count not in other \
            and len(updates) - 1 - count in numbers.update_window_dims \
            and shape[-1 - count] == updates[-1 - count]:
        count += 1
    return count


def _rows_of(eqn: Equation, indices: Any, rank: int, lead: Sequence[int]) -> Any:
    """The row of every update, over its first `rank` dimensions; their number where it is none."""
    numbers, shape = eqn.params["dimension_numbers"], eqn.invars[0].aval.shape
    windows = window_sizes(numbers, eqn.invars[2].aval, len(shape))
    batch = [d for d in range(eqn.invars[2].aval.ndim) if d not in numbers.update_window_dims]
    unwindowed = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    inside = dict(zip([d for d in range(len(shape)) if d not in unwindowed],
                      numbers.update_window_dims, strict=True))
    row: Any = broadcast_in_dim(np.int32(0), lead, ())
    valid: Any = None
    for d in range(rank):
        place: Any = broadcast_in_dim(np.int32(0), lead, ())
        if d in inside:
            place = broadcasted_iota(np.int32, lead, inside[d])
        elif d in numbers.operand_batching_dims:
            at = numbers.scatter_indices_batching_dims[numbers.operand_batching_dims.index(d)]
            place = broadcasted_iota(np.int32, lead, batch[at])
        if d in numbers.scatter_dims_to_operand_dims:
            k = numbers.scatter_dims_to_operand_dims.index(d)
            start = slice_in_dim(indices, k, k + 1, axis=indices.ndim - 1)
            start = convert_element_type(reshape(start, indices.shape[:-1]), np.int64)
            last = shape[d] - windows[d]
            if eqn.params["mode"] is GatherScatterMode.FILL_OR_DROP:
                here = ge(start, np.int64(0)) & le(start, np.int64(last))
                valid = here if valid is None else valid & here
            start = max_p.bind(min_p.bind(start, np.int64(last)), np.int64(0))
            start = convert_element_type(start, np.int32)
            place = add(place, broadcast_in_dim(start, lead, batch))
        row = add(mul(row, np.int32(shape[d])), place)
    if valid is None:
        return row
    outside = np.int32(np.prod(shape[:rank], dtype=int))
    return select_n_p.bind(broadcast_in_dim(valid, lead, batch),
                           broadcast_in_dim(outside, lead, ()), row)


def _combining(name: str) -> Callable[[Equation, list[Tensor]], Tensor | None]:
    def rule(eqn: Equation, xs: list[Tensor]) -> Tensor | None:
        found = indexing.RULES[name](eqn, xs) if _is_atomic(eqn) else None
        return None if found is None else found[0]
    return rule


COMBINING = frozenset(p.name for p in OPS)
FOLDS = {"fold_sorted": Segments, **{name: _combining(name) for name in COMBINING}}
