"""Gathers and dynamic slices: reads at places that the program computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.dims import Size
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.expr import Expr, ExprBuilder
from functrans.lowering.loops.index import ZERO, Index
from functrans.lowering.loops.tensor import Map, ScatterTensor, Tensor, compute_dtype, dtype_name
from functrans.lowering.rules.elementwise import Rule
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.index_layout import (
    GatherDimensionNumbers,
    GatherScatterMode,
    default_fill,
    window_sizes,
)
from functrans.primitives.scatter import scatter_max_p, scatter_min_p, scatter_mul_p, scatter_p

__all__ = ["RULES"]

INDEX_DTYPES = ("i32", "i64", "u32", "u64", "i16", "i8", "u8", "u16")


def _start(s: ExprBuilder, value: Expr, limit: Size) -> Index:
    """A start moved into `0 <= start <= limit`."""
    if isinstance(limit, int) and limit == 0:
        return ZERO
    top = s.index(Index.of(limit), "i64")
    inside = s.op("min", s.op("max", value, s.const(np.int64(0), "i64")), top)
    return s.computed(inside, limit + 1)


def _start_as_int64(s: ExprBuilder, x: Tensor, index: tuple[Index, ...]) -> Expr:
    """A start as the program gives it, in 64 bits; the largest one where it is larger."""
    value = s.read(x, index)
    if value.dtype == "u64":
        value = s.op("min", value, s.const(np.uint64(2**63 - 1), "u64"))
    return value if value.dtype == "i64" else s.op("convert", value, dtype="i64")


def _window_index(s: ExprBuilder, i: tuple[Index, ...], starts: list[Tensor], shape: Any,
                  sizes: Any) -> tuple[Index, ...]:
    """The place of element `i` of a window whose starts are scalars.

    What nothing depends on is not read.
    """
    place = []
    for k, start, n, size in zip(i, starts, shape, sizes):
        place.append(k if n == size else k + _start(s, _start_as_int64(s, start, ()), n - size))
    return tuple(place)


def _window(s: ExprBuilder, indices: Tensor, d: GatherDimensionNumbers, shape: Any, sizes: Any,
            i: tuple[Index, ...], checked: bool) -> tuple[tuple[Index, ...], Expr | None]:
    """The place in the operand that element `i` of a gather reads, and whether it is inside."""
    batch = [k for at, k in enumerate(i) if at not in d.offset_dims]
    unwindowed = (*d.collapsed_slice_dims, *d.operand_batching_dims)
    offsets = iter([i[at] for at in d.offset_dims])
    place = [ZERO if axis in unwindowed else next(offsets) for axis in range(len(shape))]
    inside: Expr | None = None
    for k, axis in enumerate(d.start_index_map):
        limit = shape[axis] - sizes[axis]
        if isinstance(limit, int) and limit == 0 and not checked:
            continue  # what nothing depends on is not read
        value = _start_as_int64(s, indices, (*batch, Index.of(k)))
        start = _start(s, value, limit)
        place[axis] = place[axis] + start
        if checked:
            here = s.op("eq", value, s.index(start, "i64"), dtype="bool")
            inside = here if inside is None else s.op("and", inside, here)
    for axis, at in zip(d.operand_batching_dims, d.start_indices_batching_dims):
        place[axis] = place[axis] + batch[at]
    return tuple(place), inside


def _is_empty(shape: tuple[Size, ...]) -> bool:
    return any(isinstance(n, int) and n == 0 for n in shape)


def _base(x: Tensor) -> Tensor:
    """What an update begins as. A constant is written anew for each update that begins as it.

    As one value it would be written once, and copied before all updates but the last.
    """
    if isinstance(x, Map) and _is_constant(x):
        return Map(x.shape, x.dtype, x.operands, x.define, weight=x.weight, source=x.source)
    return x


def _is_constant(x: Tensor) -> bool:
    return isinstance(x, Map) and all(_is_constant(y) for y in x.operands)


def _gather(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    x, indices = xs
    p, aval = eqn.params, eqn.outvars[0].aval
    if indices.dtype not in INDEX_DTYPES or _is_empty(x.shape):
        return None
    checked = p["mode"] is GatherScatterMode.FILL_OR_DROP
    fill = p.get("fill_value")
    fill = default_fill(aval.dtype) if fill is None else np.asarray(fill).astype(aval.dtype)
    dtype = dtype_name(aval.dtype)
    assert dtype is not None
    compute = compute_dtype(dtype)

    def define(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
        place, inside = _window(s, indices, p["dimension_numbers"], x.shape, p["slice_sizes"], i,
                                checked)
        value = s.read(x, place)
        if inside is None:
            return value
        filled = s.const(np.asarray(fill, np.float32) if compute != dtype else fill, compute)
        return s.op("select", inside, value, filled, dtype=value.dtype)

    return [Map(aval.shape, dtype, xs, define, weight=2, repeats=True, source=eqn.source)]


def _dynamic_slice(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    x, *starts = xs
    sizes = eqn.params["slice_sizes"]
    if any(s.dtype not in INDEX_DTYPES for s in starts):
        return None

    def define(s: ExprBuilder, i: tuple[Index, ...]) -> Expr:
        return s.read(x, _window_index(s, i, starts, x.shape, sizes))

    return [Map(eqn.outvars[0].aval.shape, x.dtype, xs, define, weight=0, source=eqn.source)]


def _dynamic_update_slice(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
    x, update, *starts = xs
    if any(s.dtype not in INDEX_DTYPES for s in starts):
        return None
    if _is_empty(update.shape):
        return [x]

    def place(s: ExprBuilder, i: tuple[Index, ...]) -> tuple[tuple[Index, ...], Expr | None]:
        return _window_index(s, i, starts, x.shape, update.shape), None

    base = _base(x)
    return [ScatterTensor("set", base, update.shape, (base, *xs[1:]), place,
                          lambda s, i: s.read(update, i), unique=True, source=eqn.source)]


def _scatter(op: str) -> Rule:
    def rule(eqn: Equation, xs: list[Tensor]) -> list[Tensor] | None:
        x, indices, updates = xs
        p = eqn.params
        numbers = p["dimension_numbers"]
        if indices.dtype not in INDEX_DTYPES:
            return None
        if _is_empty(x.shape) or _is_empty(updates.shape):
            return [x]
        sizes = window_sizes(numbers, eqn.invars[2].aval, len(x.shape))
        checked = p["mode"] is GatherScatterMode.FILL_OR_DROP

        def place(s: ExprBuilder, i: tuple[Index, ...]) -> tuple[tuple[Index, ...], Expr | None]:
            return _window(s, indices, numbers.gather, x.shape, sizes, i, checked)

        base = _base(x)
        return [ScatterTensor(op, base, updates.shape, (base, *xs[1:]), place,
                              lambda s, i: s.read(updates, i),
                              unique=bool(p.get("unique_indices")), source=eqn.source)]

    return rule


RULES: dict[Primitive, Rule] = {
    gather_p: _gather,
    dynamic_slice_p: _dynamic_slice,
    dynamic_update_slice_p: _dynamic_update_slice,
    scatter_p: _scatter("set"),
    scatter_add_p: _scatter("add"),
    scatter_mul_p: _scatter("mul"),
    scatter_min_p: _scatter("min"),
    scatter_max_p: _scatter("max"),
}
