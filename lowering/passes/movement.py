"""Laws of the operations that move elements: all hold exactly.

Normal forms, so that one meaning has one spelling: `reshape` adds and removes axes of size 1, and a
`broadcast_in_dim` has none, neither before nor after; what repeats a scalar is a
`broadcast_in_dim` of it. Elements are moved before a broadcast repeats them, when there are fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from functrans.core.dims import Shape, Size, is_static
from functrans.core.jaxpr import Atom, Equation, Literal
from functrans.core.primitive import Primitive
from functrans.lowering.passes.rewrite import Results, Rewriter, RewriteTable
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.compare import select_n_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.index import Scatter, gather_p
from functrans.primitives.index_layout import (
    GatherDimensionNumbers,
    GatherScatterMode,
    scatter_numbers,
    window_sizes,
)
from functrans.primitives.shape import concatenate_p, pad_p, reshape_p, rev_p, slice_p

__all__ = ["MOVEMENT", "MOVEMENT_SINKING", "broadcast", "reshape", "transpose", "without_units"]


MOVEMENT = RewriteTable("movement")
rule = MOVEMENT.rule


def reshape(r: Rewriter, x: Atom, shape: Shape) -> Atom:
    return x if x.aval.shape == shape else r(reshape_p, x, new_sizes=shape)


def transpose(r: Rewriter, x: Atom, permutation: Sequence[int]) -> Atom:
    if tuple(permutation) == tuple(range(len(permutation))):
        return x
    return r(transpose_p, x, permutation=tuple(permutation))


def broadcast(r: Rewriter, x: Atom, shape: Shape, dims: Sequence[int]) -> Atom:
    return x if x.aval.shape == shape else \
        r(broadcast_in_dim_p, x, shape=shape, broadcast_dimensions=tuple(dims))


def without_units(shape: Shape) -> Shape:
    """A shape without its sizes 1."""
    return tuple([s for s in shape if s != 1])


def axes_of_size(shape: Shape) -> list[int]:
    """The axes that are not of size 1."""
    return [d for d, s in enumerate(shape) if s != 1]


# ------------------------------------------------------------------------------- reshape


@rule(reshape_p, law="reshape to the shape at hand")
def same_shape(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    return x if x.aval.shape == eqn.params["new_sizes"] else None


@rule(reshape_p, of=reshape_p, law="reshape(reshape(x)) = reshape(x)")
def two_reshapes(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, reshape_p)
    return reshape(r, inner.invars[0], eqn.params["new_sizes"]) if inner else None


@rule(reshape_p, law="reshape(broadcast(scalar)) = broadcast(scalar)")
def reshaped_scalar(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, broadcast_in_dim_p)
    if inner and not inner.invars[0].aval.shape:
        x = inner.invars[0]
    return None if x.aval.shape else r.shaped(x, eqn.outvars[0].aval)


# ------------------------------------------------------------------------------- broadcast


@rule(broadcast_in_dim_p, law="broadcast to the shape at hand")
def same_shape_repeated(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    return x if x.aval.shape == eqn.params["shape"] else None


@rule(broadcast_in_dim_p, law="new axes of size 1 are a reshape")
def nothing_repeated(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    shape = eqn.params["shape"]
    if without_units(shape) != without_units(x.aval.shape):
        return None
    if not x.aval.shape:  # repeated, though once, unless it was an array before
        inner = r.made(x, reshape_p)
        return reshape(r, inner.invars[0], shape) if inner else None
    return reshape(r, x, shape)


@rule(broadcast_in_dim_p, law="an operand has no axes of size 1")
def stretched_axes(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    sizes = x.aval.shape
    if 1 not in sizes:
        return None
    dims = [d for s, d in zip(sizes, eqn.params["broadcast_dimensions"], strict=True) if s != 1]
    return broadcast(r, reshape(r, x, without_units(sizes)), eqn.params["shape"], dims)


@rule(broadcast_in_dim_p, law="axes of size 1 come after a broadcast")
def new_units(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    shape = eqn.params["shape"]
    if 1 not in shape or not x.aval.shape:
        return None
    place = {d: i for i, d in enumerate(axes_of_size(shape))}
    dims = [place[d] for d in eqn.params["broadcast_dimensions"]]
    return reshape(r, broadcast(r, x, without_units(shape), dims), shape)


@rule(broadcast_in_dim_p, of=broadcast_in_dim_p, law="broadcast(broadcast(x)) = broadcast(x)")
def two_broadcasts(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, broadcast_in_dim_p)
    if inner is None:
        return None
    outer = eqn.params["broadcast_dimensions"]
    dims = [outer[d] for d in inner.params["broadcast_dimensions"]]
    return broadcast(r, inner.invars[0], eqn.params["shape"], dims)


# ------------------------------------------------------------------------------- transpose


@rule(transpose_p, law="axes left in order")
def identity_permutation(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    permutation = eqn.params["permutation"]
    return x if permutation == tuple(range(len(permutation))) else None


@rule(transpose_p, of=transpose_p, law="transpose(transpose(x)) = transpose(x)")
def two_transposes(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, transpose_p)
    if inner is None:
        return None
    order = inner.params["permutation"]
    return transpose(r, inner.invars[0], [order[p] for p in eqn.params["permutation"]])


@rule(transpose_p, law="moving axes of size 1 is a reshape")
def moved_units(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    moved = [p for p in eqn.params["permutation"] if x.aval.shape[p] != 1]
    return reshape(r, x, eqn.outvars[0].aval.shape) if moved == sorted(moved) else None


@rule(transpose_p, of=broadcast_in_dim_p, law="transpose(broadcast(x)) = broadcast(transpose(x))")
def transposed_broadcast(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, broadcast_in_dim_p)
    if inner is None:
        return None
    permutation = eqn.params["permutation"]
    places = [permutation.index(d) for d in inner.params["broadcast_dimensions"]]
    order = sorted(range(len(places)), key=places.__getitem__)
    return broadcast(r, transpose(r, inner.invars[0], order), eqn.outvars[0].aval.shape,
                     sorted(places))


@rule(transpose_p, of=reshape_p,
      law="transpose(reshape(x)) = reshape(transpose(x)) for axes of size 1")
def transposed_units(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, reshape_p)
    if inner is None:
        return None
    source = inner.invars[0]
    if without_units(source.aval.shape) != without_units(x.aval.shape):
        return None
    place = dict(zip(axes_of_size(x.aval.shape), axes_of_size(source.aval.shape), strict=True))
    units = [d for d, s in enumerate(source.aval.shape) if s == 1]
    order = [place[p] for p in eqn.params["permutation"] if p in place]
    return reshape(r, transpose(r, source, units + order), eqn.outvars[0].aval.shape)


# ------------------------------------------------------------------------------- rev, slice, pad


@rule(rev_p, law="rev(rev(x)) = x; axes of size 1 have no order")
def reversed_axes(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    dims = eqn.params["dimensions"]
    inner = r.made(x, rev_p)
    source, undone = (inner.invars[0], inner.params["dimensions"]) if inner else (x, ())
    kept = tuple(sorted(d for d in {*dims} ^ {*undone} if x.aval.shape[d] != 1))
    if not kept:
        return source
    return r(rev_p, source, dimensions=kept) if inner or len(kept) < len(dims) else None


@rule(rev_p, of=broadcast_in_dim_p, law="rev(broadcast(x)) = broadcast(rev(x))")
def reversed_broadcast(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, broadcast_in_dim_p)
    if inner is None:
        return None
    dims = inner.params["broadcast_dimensions"]
    own = tuple(i for i, d in enumerate(dims) if d in eqn.params["dimensions"])
    source = inner.invars[0]
    return broadcast(r, r(rev_p, source, dimensions=own) if own else source, x.aval.shape, dims)


def _slice(r: Rewriter, x: Atom, starts: Sequence[Size], limits: Sequence[Size],
           strides: Sequence[int]) -> Atom:
    return r(slice_p, x, start_indices=tuple(starts), limit_indices=tuple(limits),
             strides=tuple(strides))


@rule(slice_p, law="x[:] = x")
def slice_of_all(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    return x if eqn.outvars[0].aval.shape == x.aval.shape \
        and not any(eqn.params["start_indices"]) else None


@rule(slice_p, of=slice_p, law="x[a:][b:] = x[a + b:]")
def two_slices(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, slice_p)
    if inner is None or not is_static(inner.invars[0].aval.shape):
        return None
    p, q = inner.params, eqn.params
    ranges = [(a + b * s, a + (n - 1) * s + 1) if n > b else (a, a) for a, b, n, s in zip(
        p["start_indices"], q["start_indices"], q["limit_indices"], p["strides"], strict=True)]
    starts, limits = zip(*ranges, strict=True)
    strides = [s * t for s, t in zip(p["strides"], q["strides"], strict=True)]
    return _slice(r, inner.invars[0], starts, limits, strides)


@rule(slice_p, of=broadcast_in_dim_p, law="broadcast(x)[a:b] = broadcast(x[a:b])")
def slice_of_broadcast(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, broadcast_in_dim_p)
    if inner is None:
        return None
    dims = inner.params["broadcast_dimensions"]
    source = inner.invars[0]
    if dims:
        source = _slice(r, source, *([eqn.params[k][d] for d in dims] for k in (
            "start_indices", "limit_indices", "strides")))
    return broadcast(r, source, eqn.outvars[0].aval.shape, dims)


@rule(slice_p, of=concatenate_p, law="concatenate(x, y)[:len(x)] = x")
def slice_of_joined(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, concatenate_p)
    if inner is None or not is_static(x.aval.shape):
        return None
    axis = inner.params["dimension"]
    starts, limits = list(eqn.params["start_indices"]), list(eqn.params["limit_indices"])
    begin = 0
    for piece in inner.invars:
        end = begin + piece.aval.shape[axis]
        if begin <= starts[axis] and limits[axis] <= end and starts[axis] < end:
            starts[axis] -= begin
            limits[axis] -= begin
            return _slice(r, piece, starts, limits, eqn.params["strides"])
        begin = end
    return None


@rule(pad_p, law="pad by nothing, pad(full(c), c) = full(c)")
def pad_by_nothing(r: Rewriter, eqn: Equation, x: Atom, value: Atom) -> Results:
    if all(widths == (0, 0, 0) for widths in eqn.params["padding_config"]):
        return x
    inner = r.made(x, broadcast_in_dim_p)
    if inner and inner.invars[0] is value:
        return r.shaped(value, eqn.outvars[0].aval)
    return None


@rule(concatenate_p, law="concatenate(x) = x; empty pieces, pieces of pieces")
def joined_pieces(r: Rewriter, eqn: Equation, *pieces: Atom) -> Results:
    axis = eqn.params["dimension"]
    flat: list[Atom] = []
    for x in pieces:
        inner = r.made(x, concatenate_p)
        if inner and inner.params["dimension"] == axis and r.once(x):
            flat.extend(inner.invars)
        else:
            flat.append(x)
    kept = [x for x in flat if x.aval.shape[axis] != 0] or flat[:1]
    if len(kept) == 1:
        return kept[0]
    return r(concatenate_p, *kept, dimension=axis) if kept != list(pieces) else None


@rule(concatenate_p, of=broadcast_in_dim_p, law="concatenate(full(c), full(c)) = full(c)")
def joined_scalars(r: Rewriter, eqn: Equation, *pieces: Atom) -> Results:
    inners = [r.made(x, broadcast_in_dim_p) for x in pieces]
    scalars = {inner.invars[0] if inner else None for inner in inners}
    first = inners[0].invars[0] if inners[0] else None
    if len(scalars) > 1 or first is None or first.aval.shape:
        return None
    return r.shaped(first, eqn.outvars[0].aval)


@rule(concatenate_p, of=slice_p, law="concatenate(x[:n], x[n:]) = x")
def joined_slices(r: Rewriter, eqn: Equation, *pieces: Atom) -> Results:
    axis = eqn.params["dimension"]
    news = [pieces[0]]
    for piece in pieces[1:]:
        a, b = r.made(news[-1], slice_p), r.made(piece, slice_p)
        if a and b and a.invars[0] is b.invars[0] and _adjacent(a, b, axis):
            limits = list(a.params["limit_indices"])
            limits[axis] = b.params["limit_indices"][axis]
            news[-1] = _slice(r, a.invars[0], a.params["start_indices"], limits,
                              a.params["strides"])
        else:
            news.append(piece)
    if len(news) == len(pieces):
        return None
    return r(concatenate_p, *news, dimension=axis) if len(news) > 1 else news[0]


def _adjacent(a: Equation, b: Equation, axis: int) -> bool:
    """Whether slice b begins where a ends along `axis`, both alike along the others."""
    p, q = a.params, b.params
    if set(p["strides"]) != {1} or p["strides"] != q["strides"]:
        return False
    return all(p["limit_indices"][d] == start if d == axis else
               start == p["start_indices"][d] and limit == p["limit_indices"][d]
               for d, (start, limit) in enumerate(zip(q["start_indices"], q["limit_indices"],
                                                      strict=True)))


# ------------------------------------------------------------------------------- dynamic slices


@rule(dynamic_slice_p, law="a dynamic slice at literal places is a slice")
def static_places(r: Rewriter, eqn: Equation, x: Atom, *starts: Atom) -> Results:
    sizes, shape = eqn.params["slice_sizes"], x.aval.shape
    if sizes == shape:
        return x
    if not is_static(shape) or not all(type(s) is Literal or n == size for s, n, size in zip(
            starts, sizes, shape, strict=True)):
        return None
    begins = [min(max(int(s.value), 0), size - n) if isinstance(s, Literal) else 0
              for s, n, size in zip(starts, sizes, shape, strict=True)]
    return _slice(r, x, begins, [b + n for b, n in zip(begins, sizes, strict=True)],
                  [1] * len(sizes))


@rule(dynamic_update_slice_p, law="an update of everything is the update")
def update_of_all(r: Rewriter, eqn: Equation, x: Atom, update: Atom, *starts: Atom) -> Results:
    return update if update.aval.shape == x.aval.shape else None


# ------------------------------------------------------------------------------- windows


@rule(gather_p, Scatter, of=concatenate_p, law="a window that covers an axis needs no index there")
def covering_windows(r: Rewriter, eqn: Equation, x: Atom, indices: Atom, *updates: Atom) -> Results:
    parts = r.made(indices, concatenate_p)
    last = len(indices.aval.shape) - 1
    if parts is None or parts.params["dimension"] != last \
            or any(p.aval.shape[last] != 1 for p in parts.invars):
        return None
    windows, numbers = _windows(eqn)
    clips = eqn.params["mode"] is GatherScatterMode.CLIP
    kept = [k for k, (d, p) in enumerate(zip(numbers.start_index_map, parts.invars, strict=True))
            if windows[d] != x.aval.shape[d] or not (clips or r.constant(p) == 0)]
    if not kept or len(kept) == len(parts.invars):
        return None
    vectors = [parts.invars[k] for k in kept]
    indices = r(concatenate_p, *vectors, dimension=last) if len(vectors) > 1 else vectors[0]
    numbers = replace(numbers, start_index_map=tuple([numbers.start_index_map[k] for k in kept]))
    return r(eqn.primitive, x, indices, *updates, **_with_numbers(eqn, numbers))


@rule(gather_p, Scatter, law="windows of one element have no axis")
def windows_of_one(r: Rewriter, eqn: Equation, x: Atom, indices: Atom, *updates: Atom) -> Results:
    windows, numbers = _windows(eqn)
    without = numbers.collapsed_slice_dims + numbers.operand_batching_dims
    windowed = [d for d in range(len(windows)) if d not in without]
    ones = [d for d in windowed if windows[d] == 1 and d in numbers.start_index_map]
    if not ones:
        return None
    gone = [numbers.offset_dims[windowed.index(d)] for d in ones]
    numbers = replace(
        numbers, collapsed_slice_dims=tuple(sorted([*numbers.collapsed_slice_dims, *ones])),
        offset_dims=tuple([d - sum(g < d for g in gone) for d in numbers.offset_dims
                           if d not in gone]))
    params = _with_numbers(eqn, numbers)
    if updates:
        shape = tuple([n for d, n in enumerate(updates[0].aval.shape) if d not in gone])
        return r(eqn.primitive, x, indices, reshape(r, updates[0], shape), **params)
    return reshape(r, r(eqn.primitive, x, indices, **params), eqn.outvars[0].aval.shape)


def _windows(eqn: Equation) -> tuple[Shape, GatherDimensionNumbers]:
    """The sizes of the windows of a gather or scatter, and its numbers as those of a gather."""
    numbers = eqn.params["dimension_numbers"]
    if eqn.primitive is gather_p:
        return eqn.params["slice_sizes"], numbers
    x, _, updates = eqn.invars
    return window_sizes(numbers, updates.aval, len(x.aval.shape)), numbers.gather


def _with_numbers(eqn: Equation, numbers: GatherDimensionNumbers) -> dict[str, Any]:
    given = numbers if eqn.primitive is gather_p else scatter_numbers(numbers)
    return {**eqn.params, "dimension_numbers": given}


# --- Movement sinking: movements go behind elementwise operations, f(M x) = M f(x), exactly
#
# f is then computed on the small array before a broadcast, movements that follow each other cancel,
# and they reach the contractions and reductions that absorb them.

MOVEMENT_SINKING = RewriteTable("outwards")

POINTWISE: tuple[Primitive | type, ...] = (Elementwise, convert_element_type_p, select_n_p,
                                           add_any_p)


def _scalar(r: Rewriter, x: Atom) -> Atom | None:
    """The scalar that x is or repeats."""
    if not x.aval.shape:
        return x
    inner = r.made(x, broadcast_in_dim_p)
    return inner.invars[0] if inner and not inner.invars[0].aval.shape else None


@MOVEMENT_SINKING.rule(Elementwise, of=broadcast_in_dim_p, law="a scalar stands for any shape")
def scalar_operands(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    if len(operands) < 2 or not eqn.outvars[0].aval.shape:
        return None
    scalars = [_scalar(r, x) for x in operands]
    if None not in scalars:  # all of them: the movements after them sink further
        return None
    news = [x if s is None else s for x, s in zip(operands, scalars, strict=True)]
    if all(a is b for a, b in zip(news, operands, strict=True)):
        return None
    return r(eqn.primitive, *news, **eqn.params)


@MOVEMENT_SINKING.rule(select_n_p, of=broadcast_in_dim_p, law="a repeated selector is a scalar")
def scalar_selector(r: Rewriter, eqn: Equation, which: Atom, *cases: Atom) -> Results:
    scalar = _scalar(r, which)
    if scalar is None or scalar is which:
        return None
    return r(select_n_p, scalar, *cases)


@MOVEMENT_SINKING.rule(*POINTWISE, of=broadcast_in_dim_p,
                       law="f(broadcast(x), broadcast(y)) = broadcast(f(x, y))")
def repeated_operands(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    shape = eqn.outvars[0].aval.shape
    if not shape:
        return None
    makers = []
    used: set[int] = set()  # the axes along which some operand varies
    for x in operands:
        inner = r.made(x, broadcast_in_dim_p)
        if inner is None and x.aval.shape:
            return None
        makers.append(inner)
        if inner:
            used.update(inner.params["broadcast_dimensions"])
    if len(used) == len(shape):
        return None
    axes = sorted(used)
    small = tuple([shape[d] for d in axes])
    news = [x if inner is None else
            broadcast(r, inner.invars[0], small,
                      [axes.index(d) for d in inner.params["broadcast_dimensions"]])
            for x, inner in zip(operands, makers, strict=True)]
    return broadcast(r, _applied(r, eqn, news), shape, axes)


@MOVEMENT_SINKING.rule(*POINTWISE, of=reshape_p, law="f(reshape(x), reshape(y)) = reshape(f(x, y))")
def reshaped_operands(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    return _moved(r, eqn, operands, reshape_p)


@MOVEMENT_SINKING.rule(*POINTWISE, of=transpose_p,
                       law="f(transpose(x), transpose(y)) = transpose(f(x, y))")
def transposed_operands(r: Rewriter, eqn: Equation, *operands: Atom) -> Results:
    if any(x.aval.shape and not r.once(x) and _scalar(r, x) is None for x in operands):
        return None  # x would be transposed besides
    return _moved(r, eqn, operands, transpose_p)


def _moved(r: Rewriter, eqn: Equation, operands: tuple[Atom, ...], movement: Primitive) -> Results:
    """f(x, y) moved, where all operands that are no scalars are moved alike."""
    source: Any = None
    params: Any = None
    for x in operands:
        inner = r.made(x, movement)
        if inner is None:
            if _scalar(r, x) is None:
                return None
        elif source is None:
            source, params = inner.invars[0].aval, inner.params
        elif inner.invars[0].aval.shape != source.shape or inner.params != params:
            return None
    if source is None:
        return None
    news = []
    for x in operands:
        inner = r.made(x, movement)
        scalar = x if inner else _scalar(r, x)
        assert scalar is not None
        news.append(inner.invars[0] if inner else scalar)
    result = _applied(r, eqn, news)
    return r(movement, r.shaped(result, eqn.outvars[0].aval.with_shape(source.shape)), **params)


def _applied(r: Rewriter, eqn: Equation, operands: list[Atom]) -> Atom:
    """f on operands of one shape and scalars; the cases of a choice must be of one shape."""
    if eqn.primitive in (select_n_p, add_any_p):
        first = 1 if eqn.primitive is select_n_p else 0
        like = max(operands, key=lambda x: len(x.aval.shape)).aval
        operands = [*operands[:first], *(r.shaped(x, x.aval.with_shape(like.shape))
                                         for x in operands[first:])]
    return r(eqn.primitive, *operands, **eqn.params)
