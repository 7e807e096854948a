"""Laws of contractions: what surrounds a `dot_general` goes into it, and it does what it can least.

Products and sums are exchanged, so results differ by roundings of the order of those of the
products themselves. Where that order is large, in 8 and 16 bits, only laws that do not round
more often are used; float16, whose range is small, is never scaled later than it was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from functrans.core import dtypes
from functrans.core.dims import Size
from functrans.core.jaxpr import Atom, Equation
from functrans.core.record import Record
from functrans.lowering.passes.movement import broadcast, reshape, transpose, without_units
from functrans.lowering.passes.reductions import reduce_sum
from functrans.lowering.passes.rewrite import Results, Rewriter, RewriteTable
from functrans.primitives.arithmetic import div_p, mul_p, neg_p
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.shape import reshape_p

__all__ = ["CONTRACTIONS", "Dims", "dot"]

CONTRACTIONS = RewriteTable("contractions")
rule = CONTRACTIONS.rule

Axes = tuple[int, ...]


class Dims(Record):
    """Which axes of x and y are contracted (cx, cy), shared (bx, by) and free (fx, fy).

    The result has the shared axes, then fx, then fy.
    """

    cx: Axes
    cy: Axes
    bx: Axes
    by: Axes
    fx: Axes
    fy: Axes

    @staticmethod
    def of(eqn: Equation) -> Dims:
        (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
        x, y = eqn.invars
        return Dims(cx, cy, bx, by, _free(x, cx + bx), _free(y, cy + by))


def _free(x: Atom, axes: Axes) -> Axes:
    return tuple([d for d in range(len(x.aval.shape)) if d not in axes])


def dot(r: Rewriter, like: Equation, x: Atom, y: Atom, cx: Sequence[int], cy: Sequence[int],
        bx: Sequence[int], by: Sequence[int]) -> Atom:
    """A product of x and y with the dtypes of another one; contracted axes in the order of x."""
    order = sorted(range(len(cx)), key=cx.__getitem__)
    contracted = tuple([cx[i] for i in order]), tuple([cy[i] for i in order])
    params = {**like.params, "dimension_numbers": (contracted, (tuple(bx), tuple(by)))}
    return r(dot_general_p, x, y, **params)


def is_narrow(x: Atom) -> bool:
    """A dtype with so few digits that every further rounding is seen."""
    return dtypes.computed_dtype(x.aval.dtype) != x.aval.dtype


def size_of(x: Atom) -> Size:
    return math.prod(x.aval.shape)


def smaller(a: Size, b: Size) -> bool:
    """Whether a is known to be less than b."""
    return isinstance(a, int) and isinstance(b, int) and a < b


# ------------------------------------------------------------------------------- axes


@rule(dot_general_p, law="axes of size 1 take no part")
def unit_axes(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if 1 not in x.aval.shape and 1 not in y.aval.shape:
        return None
    d = Dims.of(eqn)
    px, py = _places_without_units(x), _places_without_units(y)
    out = dot(r, eqn, reshape(r, x, without_units(x.aval.shape)),
              reshape(r, y, without_units(y.aval.shape)),
              [px[a] for a in d.cx if a in px], [py[a] for a in d.cy if a in py],
              [px[a] for a in d.bx if a in px], [py[a] for a in d.by if a in py])
    return reshape(r, out, eqn.outvars[0].aval.shape)


def _places_without_units(x: Atom) -> dict[int, int]:
    axes = [d for d, s in enumerate(x.aval.shape) if s != 1]
    return {d: i for i, d in enumerate(axes)}


@rule(dot_general_p, law="contracted axes in the order of x")
def ordered_pairs(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    first = eqn.params["dimension_numbers"][0][0]
    if len(first) < 2 or list(first) == sorted(first):
        return None
    d = Dims.of(eqn)
    return dot(r, eqn, x, y, d.cx, d.cy, d.bx, d.by)


@rule(dot_general_p, of=transpose_p, law="transpose(x) . y = x . y over other axes")
def transposed_operand(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    d = Dims.of(eqn)
    left, right = r.made(x, transpose_p), r.made(y, transpose_p)
    if left and _in_order(left, d.fx):
        order = left.params["permutation"]
        return dot(r, eqn, left.invars[0], y, [order[a] for a in d.cx], d.cy,
                   [order[a] for a in d.bx], d.by)
    if right and _in_order(right, d.fy):
        order = right.params["permutation"]
        return dot(r, eqn, x, right.invars[0], d.cx, [order[a] for a in d.cy], d.bx,
                   [order[a] for a in d.by])
    return None


def _in_order(eqn: Equation, free: Axes) -> bool:
    """Whether the free axes of a transposed operand have the order that they had before."""
    before = [eqn.params["permutation"][a] for a in free]
    return before == sorted(before)


@rule(transpose_p, of=dot_general_p, law="transpose(x . y) = y . x")
def transposed_product(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, dot_general_p)
    if inner is None or not r.once(x):
        return None
    d = Dims.of(inner)
    nb, nx, ny = len(d.bx), len(d.fx), len(d.fy)
    batch, rest = eqn.params["permutation"][:nb], list(eqn.params["permutation"][nb:])
    if sorted(batch) != list(range(nb)):
        return None
    rows, cols = list(range(nb, nb + nx)), list(range(nb + nx, nb + nx + ny))
    bx, by = [d.bx[i] for i in batch], [d.by[i] for i in batch]
    a, b = inner.invars
    if rest == rows + cols:
        return dot(r, inner, a, b, d.cx, d.cy, bx, by)
    if rest == cols + rows:
        return dot(r, inner, b, a, d.cy, d.cx, by, bx)
    return None


@rule(dot_general_p, of=reshape_p,
      law="reshape(x) . y = reshape(x . y) where x has fewer free axes")
def split_free_axes(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    d = Dims.of(eqn)
    left, right = r.made(x, reshape_p), r.made(y, reshape_p)
    out = eqn.outvars[0].aval.shape
    if left and (place := _unsplit(left.invars[0], x, d.cx + d.bx)) is not None:
        return reshape(r, dot(r, eqn, left.invars[0], y, [place[a] for a in d.cx], d.cy,
                              [place[a] for a in d.bx], d.by), out)
    if right and (place := _unsplit(right.invars[0], y, d.cy + d.by)) is not None:
        return reshape(r, dot(r, eqn, x, right.invars[0], d.cx, [place[a] for a in d.cy], d.bx,
                              [place[a] for a in d.by]), out)
    return None


def _unsplit(source: Atom, x: Atom, kept: Axes) -> dict[int, int] | None:
    """Where the `kept` axes of x are in `source`, of which a reshape split or kept the others."""
    before, after = source.aval.shape, x.aval.shape
    if len(before) >= len(after) or not all(isinstance(s, int) for s in before + after):
        return None
    place = {}
    j = 0
    for i, size in enumerate(before):
        if j < len(after) and after[j] == size and (j in kept or size == 1):
            if j in kept:
                place[j] = i
            j += 1
            continue
        product: Size = 1
        while j < len(after) and product < size and j not in kept:
            product *= after[j]
            j += 1
        if product != size:
            return None
    return place if j == len(after) and len(place) == len(kept) else None


# ------------------------------------------------------------------------------- what is no product


@rule(dot_general_p, law="an outer product is a product of broadcasts")
def outer_product(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if eqn.params["dimension_numbers"][0][0]:
        return None
    d = Dims.of(eqn)
    aval = eqn.outvars[0].aval
    nb, nx = len(d.bx), len(d.fx)
    factors = []
    for a, order, places in ((x, d.bx + d.fx, range(nb + nx)),
                             (y, d.by + d.fy, [*range(nb), *range(nb + nx, len(aval.shape))])):
        if a.aval.dtype != aval.dtype:
            a = r(convert_element_type_p, a, new_dtype=aval.dtype, weak_type=False)
        factors.append(broadcast(r, transpose(r, a, order), aval.shape, places))
    return r(mul_p, *factors)


@rule(dot_general_p, law="x . y without free axes = sum(x * y)")
def inner_product(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    aval = eqn.outvars[0].aval
    if len(aval.shape) > len(eqn.params["dimension_numbers"][1][0]):
        return None
    d = Dims.of(eqn)
    if is_narrow(x) or x.aval.dtype != aval.dtype:
        return None
    order = d.bx + d.cx
    y = transpose(r, y, _inverse(order, d.by + d.cy))
    total = reduce_sum(r, r(mul_p, x, y), tuple(sorted(d.cx)))
    kept = sorted(d.bx)
    return transpose(r, total, [kept.index(a) for a in d.bx])


def _inverse(order: Axes, axes: Axes) -> list[int]:
    """The axis of y for each axis of x, where axes[i] of y goes with order[i] of x."""
    return [axes[order.index(a)] for a in range(len(order))]


# ------------------------------------------------------------------------------- less to do


@rule(dot_general_p, of=broadcast_in_dim_p, law="broadcast(x) . y = broadcast(x . sum(y))")
def repeated_operand(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    d = Dims.of(eqn)
    if r.made(x, broadcast_in_dim_p):
        return _repeated(r, eqn, d, True)
    return _repeated(r, eqn, d, False) if r.made(y, broadcast_in_dim_p) else None


def _repeated(r: Rewriter, eqn: Equation, d: Dims, left: bool) -> Results:
    """One operand is repeated: along contracted axes the other is summed, along free axes the
    result is repeated. Along shared axes nothing is gained."""
    x, y = eqn.invars if left else eqn.invars[::-1]
    cx, cy, bx, by, fx = ((d.cx, d.cy, d.bx, d.by, d.fx) if left else
                          (d.cy, d.cx, d.by, d.bx, d.fy))
    inner = r.made(x, broadcast_in_dim_p)
    assert inner is not None
    source, dims = inner.invars[0], inner.params["broadcast_dimensions"]
    summed = [a for a in cx if a not in dims]
    free = [a for a in fx if a not in dims]
    if (not summed and not free) or (summed and is_narrow(y)) or 0 in x.aval.shape:
        return None  # nothing is summed: 0, where infinity times the sum of nothing is NaN
    kept = [a for a in range(len(x.aval.shape)) if a in dims or a in bx]
    x = broadcast(r, source, tuple([x.aval.shape[a] for a in kept]),
                  [kept.index(a) for a in dims])
    gone = tuple(sorted(cy[cx.index(a)] for a in summed))
    y = reduce_sum(r, y, gone)
    pairs = [(kept.index(a), _after(b, gone)) for a, b in zip(cx, cy, strict=True)
             if a not in summed]
    new_cx, new_cy = [a for a, _ in pairs], [b for _, b in pairs]
    new_bx, new_by = [kept.index(a) for a in bx], [_after(b, gone) for b in by]
    if left:
        out = dot(r, eqn, x, y, new_cx, new_cy, new_bx, new_by)
        start = len(bx)
    else:
        out = dot(r, eqn, y, x, new_cy, new_cx, new_by, new_bx)
        start = len(bx) + len(d.fx)
    shape = eqn.outvars[0].aval.shape
    repeated = [start + fx.index(a) for a in free]
    return broadcast(r, out, shape, [a for a in range(len(shape)) if a not in repeated])


def _after(axis: int, gone: Axes) -> int:
    """The place of an axis once others are gone."""
    return axis - sum(g < axis for g in gone)


@rule(reduce_sum_p, of=dot_general_p,
      law="sum(x . y) = sum(x) . y, and over a shared axis a contraction")
def sum_of_product(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    inner = r.made(x, dot_general_p)
    if inner is None or not r.once(x) or 0 in x.aval.shape:
        return None
    d = Dims.of(inner)
    nb, nx = len(d.bx), len(d.fx)
    axes = eqn.params["axes"]
    shared = [a for a in axes if a < nb]
    gone_x = tuple(sorted(d.fx[a - nb] for a in axes if nb <= a < nb + nx))
    gone_y = tuple(sorted(d.fy[a - nb - nx] for a in axes if a >= nb + nx))
    if (gone_x or gone_y) and is_narrow(x):
        return None
    a, b = inner.invars
    kept = [i for i in range(nb) if i not in shared]
    return dot(r, inner, reduce_sum(r, a, gone_x), reduce_sum(r, b, gone_y),
               [_after(i, gone_x) for i in (*d.cx, *(d.bx[s] for s in shared))],
               [_after(i, gone_y) for i in (*d.cy, *(d.by[s] for s in shared))],
               [_after(d.bx[i], gone_x) for i in kept], [_after(d.by[i], gone_y) for i in kept])


@rule(dot_general_p, of=(mul_p, div_p, neg_p),
      law="(x * c) . y = (x . y) * c where the result is smaller than x")
def scaled_operand(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    if x.aval.dtype == dtypes.float16 or eqn.outvars[0].aval.dtype != x.aval.dtype:
        return None
    out = size_of(eqn.outvars[0])
    d = Dims.of(eqn)
    for i, operand in enumerate((x, y)):
        inner = r.made(operand, mul_p, div_p, neg_p)
        if inner is None or not r.once(operand) or (is_narrow(x) and inner.primitive is not neg_p):
            continue
        source, scale = _scaling(inner)
        other = eqn.invars[1 - i]
        if source is None or not smaller(min(out, size_of(other), key=_known), size_of(operand)):
            continue
        to_other = smaller(size_of(other), out)
        if to_other:
            other = r(inner.primitive, other, *scale)
        a, b = (source, other) if i == 0 else (other, source)
        product = dot(r, eqn, a, b, d.cx, d.cy, d.bx, d.by)
        if to_other:
            return product
        return r.shaped(r(inner.primitive, product, *scale), eqn.outvars[0].aval)
    return None


def _known(size: Size) -> float:
    return size if isinstance(size, int) else math.inf


def _scaling(eqn: Equation) -> tuple[Atom | None, tuple[Atom, ...]]:
    """The operand and the scalar of `x * c`, `c * x`, `x / c` or `-x`."""
    x, *rest = eqn.invars
    if not rest:
        return x, ()
    if not rest[0].aval.shape:
        return x, (rest[0],)
    if eqn.primitive is mul_p and not x.aval.shape:
        return rest[0], (x,)
    return None, ()


@rule(reduce_sum_p, of=mul_p, law="sum(broadcast(x) * broadcast(y)) = x . y")
def sum_of_products(r: Rewriter, eqn: Equation, x: Atom) -> Results:
    """Where both factors have axes of their own, so that their product is larger than both."""
    inner = r.made(x, mul_p)
    if inner is None or not r.once(x) or is_narrow(x) \
            or dtypes.kind(x.aval.dtype) not in "fc":
        return None
    axes, shape = eqn.params["axes"], x.aval.shape
    factors = []
    for a in inner.invars:
        if not a.aval.shape:
            return None
        made = r.made(a, broadcast_in_dim_p)
        factors.append((made.invars[0], list(made.params["broadcast_dimensions"])) if made else
                       (a, list(range(len(shape)))))
    (a, da), (b, db) = factors
    both = [d for d in range(len(shape)) if d in da and d in db]
    rows = [d for d in da if d not in db and d not in axes]
    cols = [d for d in db if d not in da and d not in axes]
    contracted = [d for d in both if d in axes]
    if not rows or not cols or not contracted:
        return None
    # along axes that one factor has alone and that are summed, it is summed first
    gone_a = tuple([i for i, d in enumerate(da) if d in axes and d not in db])
    gone_b = tuple([i for i, d in enumerate(db) if d in axes and d not in da])
    a, b = reduce_sum(r, a, gone_a), reduce_sum(r, b, gone_b)
    da = [d for i, d in enumerate(da) if i not in gone_a]
    db = [d for i, d in enumerate(db) if i not in gone_b]
    shared = [d for d in both if d not in axes]
    dims = (tuple(map(da.index, contracted)), tuple(map(db.index, contracted)))
    batch = (tuple(map(da.index, shared)), tuple(map(db.index, shared)))
    out = r(dot_general_p, a, b, dimension_numbers=(dims, batch))
    order = shared + rows + cols
    return transpose(r, out, [order.index(d) for d in sorted(order)])


# ------------------------------------------------------------------------------- types


@rule(dot_general_p, law="a product in the dtype of its operands")
def same_type(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    preferred = eqn.params.get("preferred_element_type")
    if preferred is None or preferred != x.aval.dtype:  # None equals float64 to NumPy
        return None
    kept = {k: v for k, v in eqn.params.items() if k != "preferred_element_type"}
    return r(dot_general_p, x, y, **kept)


@rule(dot_general_p, of=convert_element_type_p, law="f32(x) . f32(y) = x . y accumulated in f32")
def converted_operands(r: Rewriter, eqn: Equation, x: Atom, y: Atom) -> Results:
    left, right = r.made(x, convert_element_type_p), r.made(y, convert_element_type_p)
    if left is None or right is None or x.aval.dtype != dtypes.float32 \
            or eqn.outvars[0].aval.dtype != x.aval.dtype:
        return None
    a, b = left.invars[0], right.invars[0]
    if a.aval.dtype != b.aval.dtype or a.aval.dtype not in (dtypes.bfloat16, dtypes.float16):
        return None
    return r(dot_general_p, a, b, **{**eqn.params, "preferred_element_type": x.aval.dtype})
