"""Gathers of one element of each row as one-hot selections, and scatters sorted by rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from functrans.core import config
from functrans.core.avals import ShapedArray
from functrans.core.dims import Shape, Size, static_shape
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal
from functrans.core.primitive import Primitive
from functrans.core.record import Record
from functrans.core.table import Table
from functrans.lowering.loops.tensor import dtype_name
from functrans.lowering.passes.rewrite import inlined
from functrans.primitives.arithmetic import add, add_p, max_p, min_p, mul
from functrans.primitives.broadcast import (
    broadcast_in_dim,
    broadcast_in_dim_p,
    reduce_sum,
    reduce_sum_p,
)
from functrans.primitives.compare import eq, ge, gt, le, lt, lt_p, select_n, select_n_p
from functrans.primitives.convert import convert_element_type
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.index_layout import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    default_fill,
    window_sizes,
)
from functrans.primitives.scatter import scatter_max_p, scatter_min_p, scatter_mul_p
from functrans.primitives.shape import (
    broadcasted_iota,
    concatenate_p,
    iota,
    iota_p,
    reshape,
    reshape_p,
    slice_in_dim,
)
from functrans.primitives.sort import sort

__all__ = ["COMBINING_SCATTERS", "is_atomic", "rewrite_row_gather_as_one_hot", "rows_of_updates",
           "sort_combining_scatters", "sorted_segment_reduce_p", "sum_scatters_to_few_rows"]


# --- Gathers of one element of each row become one-hot selections, which are elementwise
#
# The loss of a classifier gathers one score of each sample, and its gradient scatters one. As
# comparisons with the column index both fuse with the kernel of the rows.

MOST_READ = 1024
"""The longest row that is compared whole: reading it takes as long as a gather of one element."""

Makers = Mapping[Atom, Equation]


def rewrite_row_gather_as_one_hot(jaxpr: Jaxpr) -> Jaxpr:
    """A program in which gathers and scatters of one element of each row are comparisons."""
    if not any(eqn.primitive in (gather_p, scatter_add_p) for eqn in jaxpr.eqns):
        return jaxpr
    makers: Makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    eqns: list[Equation] = []
    puts: set[Atom] = set()
    for eqn in jaxpr.eqns:
        function: Callable[..., list[Any]] | None = None
        of = eqn
        if eqn.primitive is gather_p and _is_row_gather(eqn, makers):
            function = _gather_by_one_hot
        elif eqn.primitive is scatter_add_p and _is_row_scatter(eqn, makers):
            function = _scatter_by_one_hot
            puts.add(eqn.outvars[0])
        elif eqn.primitive is reduce_sum_p and eqn.invars[0] in puts \
                and eqn.params["axes"] == (len(eqn.invars[0].aval.shape) - 1,):
            of = makers[eqn.invars[0]]
            function = _row_sums_of_scatter
        if function is None:
            eqns.append(eqn)
            continue
        places, wraps = _places(of, makers)
        x, _, *updates = of.invars
        rows = _RowSelection(static_shape(x.aval.shape), of.params["mode"], wraps)
        (out,) = inlined(partial(function, of, rows), [x, places, *updates], eqns, jaxpr.name,
                         eqn.source)
        assert eqns[-1].outvars == (out,)
        eqns[-1] = eqns[-1].replace(outvars=eqn.outvars)
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars, name=jaxpr.name)


def _is_row_gather(eqn: Equation, makers: Makers) -> bool:
    """Whether rows are computed, so that nothing is read, and are short."""
    x, indices = eqn.invars
    row = x.aval.shape[-1] if x.aval.shape else 0
    return (isinstance(row, int) and row <= MOST_READ and x.aval.dtype.kind != "b"
            and x in makers and isinstance(makers[x].primitive, Elementwise)
            and set(eqn.params["slice_sizes"]) == {1}
            and _is_of_rows(x, indices, eqn.outvars[0], eqn.params["dimension_numbers"], makers))


def _is_row_scatter(eqn: Equation, makers: Makers) -> bool:
    """Whether each row of zeros gets one update."""
    x, indices, updates = eqn.invars
    numbers = eqn.params["dimension_numbers"]
    return (not numbers.update_window_dims and x.aval.dtype.kind != "b" and _is_zero(x, makers)
            and _is_of_rows(x, indices, updates, numbers.gather, makers))


def _is_zero(x: Atom, makers: Makers) -> bool:
    made = makers.get(x)
    return made is not None and made.primitive is broadcast_in_dim_p \
        and isinstance(made.invars[0], Literal) and not np.any(made.invars[0].value)


def _is_of_rows(x: Atom, indices: Atom, elements: Atom, numbers: GatherDimensionNumbers,
                makers: Makers) -> bool:
    """Whether indices are the rows in order, each with one place along it."""
    *lead, row = x.aval.shape if x.aval.shape else (0,)
    sizes = (*lead, row, *indices.aval.shape)
    batch = numbers.operand_batching_dims
    rows = [axis for axis in range(len(lead)) if axis not in batch]
    if not lead or not all(isinstance(n, int) and n > 0 for n in sizes) \
            or elements.aval.size != math.prod(lead) or numbers.offset_dims \
            or indices.aval.shape[:len(lead)] != tuple(lead) \
            or numbers.start_index_map != (*rows, len(lead)) \
            or batch != numbers.start_indices_batching_dims or row >= 2**31:
        return False
    if not rows:
        return True
    made = makers.get(indices)
    if made is None or made.primitive is not concatenate_p \
            or made.params["dimension"] != len(indices.aval.shape) - 1 \
            or len(made.invars) != len(rows) + 1:
        return False
    return all(_is_row_number(part, axis, lead, makers) for part, axis in zip(made.invars, rows,
                                                                              strict=False))


def _is_row_number(part: Atom, axis: int, lead: Sequence[Size], makers: Makers) -> bool:
    """Whether a part of indices is the place along one axis of the rows."""
    made = makers.get(part)
    while made is not None and made.primitive is reshape_p:
        made = makers.get(made.invars[0])
    if made is None or made.primitive is not iota_p or made.params["dimension"] != axis:
        return False
    shape = made.outvars[0].aval.shape
    return shape[:len(lead)] == tuple(lead) and all(n == 1 for n in shape[len(lead):])


def _places(eqn: Equation, makers: Makers) -> tuple[Atom, bool]:
    """The places along rows, and whether those below 0 count from the end.

    Where that is computed as `select(p < 0, p + n, p)`, it is p.
    """
    x, places = eqn.invars[:2]
    made = makers.get(places)
    if made is not None and made.primitive is concatenate_p:
        places = made.invars[-1]
    if eqn.params["mode"] is not GatherScatterMode.FILL_OR_DROP:
        return places, False
    made = makers.get(places)
    while made is not None and made.primitive is reshape_p:
        made = makers.get(made.invars[0])
    if made is None or made.primitive is not select_n_p or len(made.invars) != 3:
        return places, False
    below, given, moved = made.invars
    test, sum_ = makers.get(below), makers.get(moved)
    if test is None or sum_ is None or test.primitive is not lt_p or sum_.primitive is not add_p \
            or test.invars[0] is not given or sum_.invars[0] is not given \
            or not _is_number(test.invars[1], 0) or not _is_number(sum_.invars[1],
                                                                   x.aval.shape[-1]):
        return places, False
    return given, True


def _is_number(x: Atom, number: Size) -> bool:
    return isinstance(x, Literal) and bool(np.all(x.value == number))


class _RowSelection(Record):
    """Rows of a shape, and one place in each."""

    shape: tuple[int, ...]
    mode: GatherScatterMode
    wraps: bool

    def normalized(self, places: Any) -> Any:
        """Places as numbers that count all of a row and more."""
        places = reshape(places, self.shape[:-1])
        if places.dtype != np.int32:
            places = convert_element_type(places, np.int64)
        if self.mode is GatherScatterMode.FILL_OR_DROP:
            return places
        low, high = self._numbers(places, 0), self._numbers(places, self.shape[-1] - 1)
        places = select_n(lt(places, low), places, low)
        return select_n(gt(places, high), places, high)

    def _numbers(self, places: Any, n: int) -> Any:
        return broadcast_in_dim(places.dtype.type(n), places.shape, ())

    def one_hot(self, places: Any) -> Any:
        """Which elements are at these places."""
        axes = tuple(range(len(self.shape) - 1))
        along = convert_element_type(broadcasted_iota(np.int32, self.shape, len(axes)),
                                     places.dtype)
        every = broadcast_in_dim(places, self.shape, axes)
        found = eq(along, every)
        return found | eq(along, every + self._numbers(every, self.shape[-1])) if self.wraps \
            else found

    def in_bounds(self, places: Any) -> Any:
        """The rows whose place is in bounds, as booleans."""
        n = self.shape[-1]
        least = self._numbers(places, -n if self.wraps else 0)
        return ge(places, least) & lt(places, self._numbers(places, n))


def _gather_by_one_hot(eqn: Equation, rows: _RowSelection, x: Any, places: Any) -> list[Any]:
    places = rows.normalized(places)
    zero = broadcast_in_dim(np.zeros((), x.dtype), x.shape, ())
    found = reduce_sum(select_n(rows.one_hot(places), zero, x), (x.ndim - 1,))
    if rows.mode is GatherScatterMode.FILL_OR_DROP:
        fill = eqn.params.get("fill_value")
        fill = default_fill(x.dtype) if fill is None else np.asarray(fill).astype(x.dtype)
        found = select_n(rows.in_bounds(places), broadcast_in_dim(fill, found.shape, ()), found)
    return [reshape(found, eqn.outvars[0].aval.shape)]


def _scatter_by_one_hot(eqn: Equation, rows: _RowSelection, x: Any, places: Any,
                        updates: Any) -> list[Any]:
    lead = x.shape[:-1]
    every = broadcast_in_dim(reshape(updates, lead), x.shape, tuple(range(len(lead))))
    return [select_n(rows.one_hot(rows.normalized(places)), x, every)]


def _row_sums_of_scatter(eqn: Equation, rows: _RowSelection, x: Any, places: Any,
                         updates: Any) -> list[Any]:
    """The sums of rows that get one update: the updates, where they go anywhere."""
    updates = reshape(updates, x.shape[:-1])
    zero = broadcast_in_dim(np.zeros((), x.dtype), updates.shape, ())
    return [select_n(rows.in_bounds(rows.normalized(places)), zero, updates)]


# --- Combining scatters: updates are sorted by row, and those of a row reduced in order
#
# Atomic operations add in the order in which programs happen to run, and there are none that
# multiply, or that compare with NaN. Sorting gives the same bits in every run.

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
        (out,) = inlined(partial(_sorted, eqn), eqn.invars, eqns, jaxpr.name, eqn.source)
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


# --- Scatters of many updates to few rows: sums over all updates for each row
#
# Atomic additions to one place wait for each other; comparing with each row takes registers only.

MOST_COMPARED = 64
"""Rows with which the row of each update is compared."""


def sum_scatters_to_few_rows(jaxpr: Jaxpr, atomic: float, addition: float,
                             launch: float) -> Jaxpr:
    """A program whose scatters that add much to few rows are sums, where these are faster.

    Nanoseconds: an atomic addition to one place, an addition among many, a launch.
    """
    if not any(eqn.primitive is scatter_add_p for eqn in jaxpr.eqns):
        return jaxpr
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is not scatter_add_p or not _is_faster_as_sums(eqn, atomic, addition,
                                                                        launch):
            eqns.append(eqn)
            continue
        (out,) = inlined(partial(_as_sums, eqn), eqn.invars, eqns, jaxpr.name, eqn.source)
        assert eqns[-1].outvars == (out,)
        eqns[-1] = eqns[-1].replace(outvars=eqn.outvars)
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars, name=jaxpr.name)


def _is_faster_as_sums(eqn: Equation, atomic: float, addition: float, launch: float) -> bool:
    base, _, updates = [x.aval for x in eqn.invars]
    if not all(isinstance(n, int) and n for x in eqn.invars for n in x.aval.shape) \
            or eqn.params["unique_indices"] or not is_atomic(eqn):
        return False
    columns = _covered(eqn.params, base.shape, updates.shape)
    width = math.prod(static_shape(base.shape[len(base.shape) - columns:]))
    rows, count = base.size // width, updates.size // width
    return rows <= MOST_COMPARED and count * width * rows < 2**31 and \
        count * width * rows * addition + launch < atomic * count / rows


def _as_sums(eqn: Equation, base: Any, indices: Any, updates: Any) -> list[Any]:
    """What is added to each row, as a sum over all updates."""
    keys, width = rows_of_updates(indices, base.shape, updates.shape, eqn.params)
    count, rows = keys.shape[0], base.size // width
    space = (count, rows, width)
    found = eq(broadcast_in_dim(keys, space, (0,)), broadcasted_iota(np.int32, space, 1))
    zero = broadcast_in_dim(np.zeros((), base.dtype), space, ())
    each = broadcast_in_dim(reshape(updates, (count, width)), space, (0, 2))
    sums = reduce_sum(select_n(found, zero, each), (0,))
    return [add(base, reshape(sums, base.shape))]


# --- Where a scatter puts its updates, as numbers of rows

def rows_of_updates(indices: Any, shape: Shape, updates: Shape,
                    params: Mapping[str, Any]) -> tuple[Any, int]:
    """The row of the operand that each row of updates goes to, and how wide rows are.

    Trailing dimensions that windows cover are columns; all others together are rows. Where an
    update goes nowhere its row is their number.
    """
    numbers = params["dimension_numbers"]
    columns = _covered(params, shape, updates)
    rows = len(shape) - columns
    found = _rows_of(indices, shape, updates, rows, updates[:len(updates) - columns], numbers,
                     params["mode"])
    return reshape(found, (-1,)), math.prod(static_shape(shape[rows:]))


def _covered(params: Mapping[str, Any], shape: Shape, updates: Shape) -> int:
    """How many trailing dimensions of the operand are the same ones of the updates.

    A window that covers a dimension can only begin at 0, where it is not left out otherwise.
    """
    numbers: ScatterDimensionNumbers = params["dimension_numbers"]
    other = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    if params["mode"] is GatherScatterMode.FILL_OR_DROP:
        other |= {*numbers.scatter_dims_to_operand_dims}
    count = 0
    while count < min(len(shape), len(updates)) and len(shape) - 1 - count not in other \
            and len(updates) - 1 - count in numbers.update_window_dims \
            and shape[-1 - count] == updates[-1 - count]:
        count += 1
    return count


def _rows_of(indices: Any, shape: Shape, updates: Shape, rank: int, lead: Shape,
             numbers: ScatterDimensionNumbers, mode: GatherScatterMode) -> Any:
    """The row of every update, over its first `rank` dimensions; their number where it is none."""
    windows = window_sizes(numbers, ShapedArray(updates, indices.dtype), len(shape))
    batch = [d for d in range(len(updates)) if d not in numbers.update_window_dims]
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
            if mode is GatherScatterMode.FILL_OR_DROP:
                here = ge(start, np.int64(0)) & le(start, np.int64(last))
                valid = here if valid is None else valid & here
            start = max_p.bind(min_p.bind(start, np.int64(last)), np.int64(0))
            start = convert_element_type(start, np.int32)
            place = add(place, broadcast_in_dim(start, lead, batch))
        row = add(mul(row, np.int32(shape[d])), place)
    if valid is None:
        return row
    outside = np.int32(math.prod(static_shape(shape[:rank])))
    return select_n_p.bind(broadcast_in_dim(valid, lead, batch),
                           broadcast_in_dim(outside, lead, ()), row)
