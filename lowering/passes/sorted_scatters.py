"""Combining scatters: updates are sorted by row, and those of a row reduced in order.

Atomic operations add in the order in which programs happen to run, and there are none that
multiply, or that compare with NaN. Sorting gives the same bits in every run.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from functrans.core import config
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.primitive import Primitive
from functrans.core.staging import stage
from functrans.core.table import Table
from functrans.lowering.loops.tensor import dtype_name
from functrans.lowering.passes.inline import inlined_jaxpr
from functrans.lowering.passes.scatter_rows import rows_of_updates
from functrans.primitives.index import scatter_add_p
from functrans.primitives.scatter import scatter_max_p, scatter_min_p, scatter_mul_p
from functrans.primitives.shape import iota, reshape
from functrans.primitives.sort import sort

__all__ = ["COMBINING_SCATTERS", "is_atomic", "sort_combining_scatters", "sorted_segment_reduce_p"]

OPS: Table[str] = Table(
    {scatter_add_p: "add", scatter_mul_p: "mul", scatter_min_p: "min", scatter_max_p: "max"},
    otherwise="it combines no updates")
EXACT = frozenset(("i32", "i64", "u32", "u64"))
ATOMIC = {"add": EXACT | {"f32", "f64", "f16", "bf16"}, "max": EXACT, "min": EXACT, "mul": ()}
"""What atomic operations do; the order changes nothing where they are exact."""


class SortedSegmentReduce(Primitive, abstract=True):
    """Rows of updates reduced into rows of a base: those of update order[p] into row keys[p].

    Keys are ascending; one that is no row of the base is of none. A part of programs for GPUs.
    """

    name = "sorted_segment_reduce"

    def type(self, base: ShapedArray, keys: ShapedArray, order: ShapedArray, updates: ShapedArray,
             *, op: str) -> ShapedArray:
        return base


sorted_segment_reduce_p = SortedSegmentReduce()


# --------------------------------------------------------------------------- programs


def sort_combining_scatters(jaxpr: Jaxpr) -> Jaxpr:
    """A program whose scatters that combine are atomic operations that do, or sorted ones."""
    if not any(map(_is_ordered, jaxpr.eqns)):
        return jaxpr
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        if not _is_ordered(eqn):
            eqns.append(eqn)
            continue
        staged = stage(partial(_sorted, eqn), [x.aval for x in eqn.invars], name=jaxpr.name)
        (out,) = inlined_jaxpr(staged.jaxpr, eqn.invars, eqns)
        assert eqns[-1].outvars == (out,)
        eqns[-1] = eqns[-1].replace(outvars=eqn.outvars)
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars, name=jaxpr.name)


def _is_ordered(eqn: Equation) -> bool:
    if eqn.primitive not in OPS:
        return False
    dtype = dtype_name(eqn.outvars[0].aval.dtype)
    if dtype is None or dtype == "bool":
        return False
    sizes = [n for x in eqn.invars for n in x.aval.shape]
    if not all(isinstance(n, int) for n in sizes) or 0 in sizes \
            or max(x.aval.size for x in eqn.invars) >= 2**31:
        return False
    return not is_atomic(eqn)


def is_atomic(eqn: Equation) -> bool:
    """Whether atomic operations compute a scatter, and in deterministic programs in any order."""
    dtype = dtype_name(eqn.outvars[0].aval.dtype)
    return dtype in ATOMIC[OPS[eqn.primitive]] and (
        not config.current().deterministic or dtype in EXACT or bool(eqn.params["unique_indices"]))


def _sorted(eqn: Equation, base: Any, indices: Any, updates: Any) -> list[Any]:
    """The scatter of an equation by its updates in the order of their rows."""
    shape = base.shape
    keys, width = rows_of_updates(indices, shape, updates.shape, eqn.params)
    count = keys.shape[0]
    keys, order = sort((keys, iota(np.int32, count)), num_keys=1)
    out = sorted_segment_reduce_p.bind(reshape(base, (base.size // width, width)), keys, order,
                                       reshape(updates, (count, width)), op=OPS[eqn.primitive])
    return [reshape(out, shape)]


COMBINING_SCATTERS = frozenset(OPS)
