"""How each family of operations is applied to parts of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.core.table import merged
from functrans.lowering.spmd.factors import Axes, Factors, by_factors
from functrans.lowering.spmd.layout import Local, Placement
from functrans.primitives.barrier import (
    checkpoint_name_p,
    optimization_barrier_p,
    stop_gradient_p,
)
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.compare import clamp_p, select_n_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import bitcast_convert_type_p, convert_element_type_p
from functrans.primitives.cumulative import (
    cumlogsumexp_p,
    cummax_p,
    cummin_p,
    cumprod_p,
    cumsum_p,
)
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.fft import fft_p
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.masked import masked_div_p, masked_mul_p
from functrans.primitives.matrix import MatrixPrimitive
from functrans.primitives.random import philox4x32_p, threefry2x32_p
from functrans.primitives.reduce import (
    argmax_p,
    argmin_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
)
from functrans.primitives.scatter import scatter_max_p, scatter_min_p, scatter_mul_p, scatter_p
from functrans.primitives.shape import concatenate_p, copy_p, pad_p, reshape_p, rev_p, slice_p
from functrans.primitives.sort import sort_p, top_k_p

__all__ = ["RULES", "Rule", "rule_of"]

Rule = Callable[[Placement, Equation, Sequence[Local]], list[Local]]


def _elementwise(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    """Axes at the same place go together; scalars stand for arrays of any shape."""
    ndim = eqn.outvars[0].aval.ndim
    return by_factors(p, eqn, xs, Factors(
        [range(ndim) if x.aval.ndim == ndim else () for x in xs],
        [range(ndim)] * len(eqn.outvars)))


def _each_alone(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    """Operands are results, whatever their parts."""
    outs = eqn.primitive.bind(*[x.value for x in xs], **eqn.params)
    return [Local(o, x.dims, x.aval) for o, x in zip(outs, xs, strict=True)]


def _broadcast(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    (x,), out = xs, eqn.outvars[0].aval
    at = eqn.params["broadcast_dimensions"]
    dims = [d if x.aval.shape[k] == out.shape[d] else None for k, d in enumerate(at)]

    def run(values: Sequence[Any], assigned: Mapping[int, Axes]) -> Any:
        shape = _cut(p, out.shape, range(out.ndim), assigned)
        return broadcast_in_dim_p.bind(*values, shape=shape, broadcast_dimensions=at)

    outs = [d if d in dims else None for d in range(out.ndim)]
    return by_factors(p, eqn, xs, Factors([dims], [outs]), run)


def _cut(p: Placement, shape: Sequence[Any], dims: Sequence[int | None],
         assigned: Mapping[int, Axes]) -> tuple[Any, ...]:
    """The shape of the parts of an array of that shape."""
    return tuple([n if f is None or not assigned.get(f) else n // p.mesh.size_of(assigned[f])
                  for n, f in zip(shape, dims, strict=True)])


def _transpose(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    return by_factors(p, eqn, xs, Factors([range(xs[0].aval.ndim)], [eqn.params["permutation"]]))


def _reshape(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    """Axes that are merged or split go together by the slowest of each group."""
    old, new = xs[0].aval.shape, eqn.outvars[0].aval.shape
    ins: list[int | None] = [None] * len(old)
    outs: list[int | None] = [None] * len(new)
    for factor, (i, j) in enumerate(_groups(old, new)):
        ins[i], outs[j] = factor, factor

    def run(values: Sequence[Any], assigned: Mapping[int, Axes]) -> Any:
        return reshape_p.bind(*values, new_sizes=_cut(p, new, outs, assigned))

    return by_factors(p, eqn, xs, Factors([ins], [outs]), run)


def _groups(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[int, int]]:
    """The slowest axes of the groups of axes that a reshape merges or splits into each other."""
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if not isinstance(old[i], int) or not isinstance(new[j], int):
            return found
        if old[i] == 1 and new[j] != 1:
            i += 1
            continue
        if new[j] == 1 and old[i] != 1:
            j += 1
            continue
        found.append((i, j))
        a, b = old[i], new[j]
        i, j = i + 1, j + 1
        while a != b:
            if a < b and i < len(old):
                a *= old[i]
                i += 1
            elif a > b and j < len(new):
                b *= new[j]
                j += 1
            else:
                return found[:-1]
    return found


def _slice(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    """Axes that are taken whole are divided."""
    shape = xs[0].aval.shape
    starts, limits = eqn.params["start_indices"], eqn.params["limit_indices"]
    strides = eqn.params["strides"] or (1,) * len(shape)
    dims = [k if (a, b, s) == (0, n, 1) else None
            for k, (a, b, s, n) in enumerate(zip(starts, limits, strides, shape, strict=True))]

    def run(values: Sequence[Any], assigned: Mapping[int, Axes]) -> Any:
        return slice_p.bind(*values, start_indices=starts, strides=eqn.params["strides"],
                            limit_indices=_cut(p, limits, dims, assigned))

    return by_factors(p, eqn, xs, Factors([dims], [dims]), run)


def _dynamic_slice(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    sizes = eqn.params["slice_sizes"]
    dims = [k if a == n else None for k, (a, n) in enumerate(zip(sizes, xs[0].aval.shape,
                                                                 strict=True))]

    def run(values: Sequence[Any], assigned: Mapping[int, Axes]) -> Any:
        return dynamic_slice_p.bind(*values, slice_sizes=_cut(p, sizes, dims, assigned))

    return by_factors(p, eqn, xs, Factors([dims, *[()] * (len(xs) - 1)], [dims]), run)


def _dynamic_update(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    x, update = xs[:2]
    dims = [k if a == b else None
            for k, (a, b) in enumerate(zip(x.aval.shape, update.aval.shape, strict=True))]
    return by_factors(p, eqn, xs, Factors([dims, dims, *[()] * (len(xs) - 2)], [dims]))


def _pad(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    dims = [k if tuple(c) == (0, 0, 0) else None
            for k, c in enumerate(eqn.params["padding_config"])]
    return by_factors(p, eqn, xs, Factors([dims, ()], [dims]))


def _concatenate(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    dims = _all_but(xs[0].aval.ndim, (eqn.params["dimension"],))
    return by_factors(p, eqn, xs, Factors([dims] * len(xs), [dims]))


def _all_but(ndim: int, whole: Sequence[int]) -> list[int | None]:
    return [None if k in whole else k for k in range(ndim)]


def _rev(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    dims = _all_but(xs[0].aval.ndim, eqn.params["dimensions"])
    return by_factors(p, eqn, xs, Factors([dims], [dims]))


def _reduce(of_parts: str | None, of_booleans: bool = False) -> Rule:
    """A reduction: parts are reduced, and then their results (`of_parts`), or axes are whole."""
    def rule(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
        axes, ndim = eqn.params["axes"], xs[0].aval.ndim
        op = None if of_booleans and xs[0].aval.dtype.kind != "b" else of_parts
        kept = [k for k in range(ndim) if k not in axes]
        ins = range(ndim) if op is not None else _all_but(ndim, axes)
        return by_factors(p, eqn, xs, Factors(
            [ins], [kept] * len(eqn.outvars), {} if op is None else dict.fromkeys(axes, op)))

    return rule


def _along(parameter: str, trailing: bool = False) -> Rule:
    """An operation along one axis, or along the last ones, that keeps the others apart."""
    def rule(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
        ndim, value = xs[0].aval.ndim, eqn.params[parameter]
        whole = range(ndim - len(value), ndim) if trailing else (value,)
        dims = _all_but(ndim, whole)
        return by_factors(p, eqn, xs, Factors([dims] * len(xs), [dims] * len(eqn.outvars)))

    return rule


def _dot(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    """Batch axes, then rows and columns; the axes of the sum make partial sums."""
    x, y = xs
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    left: list[int | None] = [None] * x.aval.ndim
    right: list[int | None] = [None] * y.aval.ndim
    count = 0
    out = []
    for i, j in zip(bx, by, strict=True):
        left[i], right[j] = count, count
        out.append(count)
        count += 1
    summed = {}
    for i, j in zip(cx, cy, strict=True):
        left[i], right[j] = count, count
        summed[count] = "sum"
        count += 1
    for side in (left, right):
        for k, factor in enumerate(side):
            if factor is None:
                side[k] = count
                out.append(count)
                count += 1
    return by_factors(p, eqn, xs, Factors([left, right], [out], summed))


def _conv(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    """The batch, the features of the result, the sum over features; space is whole."""
    numbers, groups = eqn.params["dimension_numbers"], eqn.params.get("group_axes")
    dims = [[None] * v.aval.ndim for v in (*eqn.invars, *eqn.outvars)]
    batch, features, summed, group = range(4)
    for k, spec, places in ((0, numbers[0], (batch, summed)), (1, numbers[1], (features, summed)),
                            (2, numbers[2], (batch, features))):
        for at, factor in zip(spec, places, strict=False):
            dims[k][at] = factor  # type: ignore[call-overload]
    if groups is not None:
        for k, at in enumerate(groups):
            dims[k][at] = group  # type: ignore[call-overload]
    return by_factors(p, eqn, xs, Factors(dims[:2], dims[2:], {summed: "sum"}))


def _gather(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    """Axes of the operand that are taken whole, and axes of the indices."""
    operand, indices = xs
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    out_ndim = eqn.outvars[0].aval.ndim
    special = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = [d for d in range(operand.aval.ndim) if d not in special]
    ins: list[int | None] = [None] * operand.aval.ndim
    outs: list[int | None] = [None] * out_ndim
    for at, d in zip(numbers.offset_dims, window, strict=True):
        if sizes[d] == operand.aval.shape[d] and d not in numbers.start_index_map:
            ins[d] = outs[at] = d
    rest = [at for at in range(out_ndim) if at not in numbers.offset_dims]
    of_indices: list[int | None] = [None] * indices.aval.ndim
    for k, at in enumerate(rest):  # the last axis of the indices is their vectors
        if k not in numbers.start_indices_batching_dims:
            of_indices[k] = outs[at] = operand.aval.ndim + k

    def run(values: Sequence[Any], assigned: Mapping[int, Axes]) -> Any:
        cut = _cut(p, sizes, ins, assigned)
        return gather_p.bind(*values, **{**eqn.params, "slice_sizes": cut})

    return by_factors(p, eqn, xs, Factors([ins, of_indices], [outs]), run)


def _scatter(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    """Axes of the operand that updates fill; what the indices address is whole."""
    operand, indices, updates = xs
    numbers = eqn.params["dimension_numbers"]
    special = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    window = [d for d in range(operand.aval.ndim) if d not in special]
    ins: list[int | None] = [None] * operand.aval.ndim
    given: list[int | None] = [None] * updates.aval.ndim
    for at, d in zip(numbers.update_window_dims, window, strict=True):
        if updates.aval.shape[at] == operand.aval.shape[d] \
                and d not in numbers.scatter_dims_to_operand_dims:
            ins[d] = given[at] = d
    return by_factors(p, eqn, xs, Factors([ins, [None] * indices.aval.ndim, given], [ins]))


def _matrices(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    """Stacks of matrices: the axes before the last two are problems of their own."""
    count = min([max(x.aval.ndim - 2, 0) for x in xs])
    def dims(ndim: int) -> list[int | None]:
        return [k if k < count else None for k in range(ndim)]

    return by_factors(p, eqn, xs, Factors([dims(x.aval.ndim) for x in xs],
                                          [dims(v.aval.ndim) for v in eqn.outvars]))


def _bitcast(p: Placement, eqn: Equation, xs: Sequence[Local]) -> list[Local]:
    ndim = min(xs[0].aval.ndim, eqn.outvars[0].aval.ndim)
    dims = [[k if k < ndim else None for k in range(a.ndim)]
            for a in (xs[0].aval, eqn.outvars[0].aval)]
    return by_factors(p, eqn, xs, Factors(dims[:1], dims[1:]))


RULES: Final[Mapping[Primitive, Rule]] = merged(
    dict.fromkeys((select_n_p, clamp_p, convert_element_type_p, add_any_p, copy_p, masked_mul_p,
                   masked_div_p, checkpoint_name_p, stop_gradient_p, threefry2x32_p,
                   philox4x32_p), _elementwise),
    {optimization_barrier_p: _each_alone, broadcast_in_dim_p: _broadcast, transpose_p: _transpose,
     reshape_p: _reshape, slice_p: _slice, dynamic_slice_p: _dynamic_slice, pad_p: _pad,
     dynamic_update_slice_p: _dynamic_update, concatenate_p: _concatenate, rev_p: _rev,
     bitcast_convert_type_p: _bitcast, dot_general_p: _dot, conv_general_dilated_p: _conv,
     gather_p: _gather},
    {reduce_sum_p: _reduce("sum"), reduce_max_p: _reduce("max"), reduce_min_p: _reduce("min"),
     reduce_or_p: _reduce("max", of_booleans=True),
     reduce_and_p: _reduce("min", of_booleans=True)},
    dict.fromkeys((reduce_prod_p, reduce_xor_p, argmax_p, argmin_p), _reduce(None)),
    dict.fromkeys((cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p, top_k_p),
                  _along("axis")),
    {sort_p: _along("dimension"), fft_p: _along("fft_lengths", trailing=True)},
    dict.fromkeys((scatter_p, scatter_add_p, scatter_mul_p, scatter_min_p, scatter_max_p),
                  _scatter),
)
"""Of the families; `rule_of` has those of elementwise operations and of stacks of matrices too."""


def rule_of(primitive: Primitive) -> Rule | None:
    """The rule of a primitive; None where its operands have to be whole."""
    found = RULES.get(primitive)
    if found is not None:
        return found
    if isinstance(primitive, Elementwise):
        return _elementwise
    return _matrices if isinstance(primitive, MatrixPrimitive) else None
