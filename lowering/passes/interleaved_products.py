"""Products of many small matrices that are interleaved in memory: the batch is the last axis.

Tensor cores read matrices whose rows or columns are near in memory: such operands would be copied
first, and complex products be four, of copies of their own. As sums of products in registers, one
batch to a lane, they read their operands once, where they are. So do three factors: what weighs the
terms of the sum, as in `einsum("tf,ctf,dtf->fcd", mask, x, x.conj())`, is a factor of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive
from functrans.core.prune import prune_jaxpr
from functrans.core.record import Record
from functrans.lowering.passes.rewrite import inlined
from functrans.primitives.arithmetic import complex, conj_p, imag, mul_p, real
from functrans.primitives.broadcast import (
    broadcast_in_dim_p,
    reduce_sum,
    transpose,
    transpose_p,
)
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.shape import reshape

__all__ = ["Factor", "InterleavedLayout", "InterleavedSizes", "factor_of",
           "interleave_products", "interleaved_product_p"]

WARP: Final = 32
MOST_ROWS: Final = 16
"""Of a matrix, and columns: beyond them tensor cores are worth copies of the operands."""
LEAST_TERMS: Final = 9
"""Shorter sums are written out, and fused with what is around them."""
LEAST_BATCH: Final = 256
"""Matrices from which on the lanes of a GPU have something to do."""
MOST_SUMS: Final = 128
"""That a thread holds: other results are those of other programs."""
REGISTERS: Final = 1 << 16
"""Of a multiprocessor."""
IN_FLIGHT: Final = 20 << 10
"""Bytes that a multiprocessor waits for at one time where memory is busy: an estimate."""
MOST_SPLITS: Final = 32
"""Parts of a sum."""

Names = tuple[int, ...]


class InterleavedSizes:
    """The sizes of axes by name, and the parts of a number, of interleaved operands."""

    sizes: tuple[int, ...]
    is_complex: bool

    def size(self, names: Names) -> int:
        return math.prod([self.sizes[n] for n in names])

    @property
    def parts(self) -> int:
        return 2 if self.is_complex else 1


class InterleavedLayout(Record, InterleavedSizes):
    """What the axes of the operands are: the same number is the same axis.

    Operands are the parts of x and y, real and imaginary ones if they are complex, and what weighs
    the terms, if anything does. Results have the parts of the sum first, then `batch`, `rows`,
    `columns` and the lane. A symmetric product, whose matrices have x as both factors, is its own
    transpose, or conjugate transpose.
    """

    x: Names
    y: Names
    weight: Names | None
    sizes: tuple[int, ...]
    batch: Names
    lane: int
    contracted: Names
    rows: Names
    columns: Names
    is_complex: bool
    conjugates: tuple[bool, bool]
    is_symmetric: bool
    splits: int = 1

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of which a program has the sums."""
        m, n = self.size(self.rows), self.size(self.columns)
        if self.is_symmetric and self.parts * m * (m + 1) // 2 <= MOST_SUMS:
            return m, n
        while m * n * self.parts > MOST_SUMS:
            m, n = (-(-m // 2), n) if m >= n else (m, -(-n // 2))
        return m, n

    @property
    def has_half(self) -> bool:
        """Whether a program computes one triangle of each matrix, and stores both."""
        return self.is_symmetric and self.block == (self.size(self.rows), self.size(self.columns))

    @property
    def blocks(self) -> tuple[int, int]:
        """How many blocks of rows and of columns the matrices have."""
        m, n = self.block
        return -(-self.size(self.rows) // m), -(-self.size(self.columns) // n)

    @property
    def programs(self) -> int:
        """Programs of a warp for each part of the sum."""
        across, along = self.blocks
        return self.size(self.batch) * -(-self.sizes[self.lane] // WARP) * across * along

    @property
    def registers(self) -> int:
        """About as many as a thread takes."""
        m, n = self.block
        sums = m * (m + 1) // 2 if self.has_half else m * n
        return self.parts * (sums + m + n) + 40


class InterleavedProduct(Primitive, abstract=True):
    """Products of interleaved matrices, in parts of their sums. A part of programs for GPUs."""

    name = "interleaved_product"
    multiple_results = True

    def type(self, *operands: ShapedArray, layout: InterleavedLayout) -> list[ShapedArray]:
        names = (*layout.batch, *layout.rows, *layout.columns, layout.lane)
        shape = (layout.splits, *[layout.sizes[n] for n in names])
        return [ShapedArray(shape, operands[0].dtype)] * layout.parts


interleaved_product_p = InterleavedProduct()


# --------------------------------------------------------------------------- the pass


def interleave_products(jaxpr: Jaxpr, multiprocessors: int) -> Jaxpr:
    """A program whose products of interleaved matrices are sums in registers."""
    if not any(eqn.primitive is dot_general_p for eqn in jaxpr.eqns):
        return jaxpr
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        found = _interleaved(eqn, makers) if eqn.primitive is dot_general_p else None
        if found is None:
            eqns.append(eqn)
            continue
        layout, operands = found
        (out,) = inlined(_product(replace(layout, splits=_splits(layout, multiprocessors)), eqn),
                         operands, eqns, "interleaved", eqn.source)
        assert eqns[-1].outvars == (out,)
        eqns[-1] = eqns[-1].replace(outvars=eqn.outvars)
    if len(eqns) == len(jaxpr.eqns):
        return jaxpr
    return prune_jaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars,
                             name=jaxpr.name))


def _product(layout: InterleavedLayout, eqn: Equation) -> Callable[..., list[Any]]:
    """A function of the operands that gives what the equation does."""
    names = (*layout.batch, *layout.rows, *layout.columns, layout.lane)
    shared = range(len(eqn.params["dimension_numbers"][1][0]))
    order = tuple([names.index(n) for n in (*shared, *layout.rows, *layout.columns)])

    def function(x: Any, y: Any, *weight: Any) -> list[Any]:
        parts = [part(a) for a in (x, y) for part in (real, imag)] if layout.is_complex else [x, y]
        sums = interleaved_product_p.bind(*parts, *weight, layout=layout)
        found = [transpose(reduce_sum(s, (0,)) if layout.splits > 1 else
                           reshape(s, s.shape[1:]), order) for s in sums]
        return [complex(*found) if layout.is_complex else found[0]]

    return function


def _splits(layout: InterleavedLayout, multiprocessors: int) -> int:
    """Into how many parts the sums are divided: so that warps fill the GPU in whole turns."""
    numbers = layout.parts * (layout.block[0] if layout.has_half else sum(layout.block))
    busy = -(-IN_FLIGHT // (4 * WARP * numbers))
    room = multiprocessors * min(32, busy, REGISTERS // (WARP * min(255, layout.registers)))
    moved = layout.parts * (layout.size(layout.x)
                            + (0 if layout.is_symmetric else layout.size(layout.y)))
    result = layout.parts * layout.size((*layout.batch, *layout.rows, *layout.columns,
                                         layout.lane))

    def cost(splits: int) -> float:
        programs = layout.programs * splits
        return moved * -(-programs // room) * room / programs \
            + 2 * result * (splits if splits > 1 else 0.5)

    most = min(MOST_SPLITS, max(1, layout.size(layout.contracted) // 8))
    return min(range(1, most + 1), key=cost)


# --------------------------------------------------------------------------- what it is


class Factor(Record):
    """A value whose axes have names, its conjugate maybe, with what weighs it."""

    value: Atom
    names: Names
    is_conjugate: bool = False
    weight: tuple[Atom, Names] | None = None


def _interleaved(eqn: Equation, makers: Mapping[Var, Equation]
                 ) -> tuple[InterleavedLayout, list[Atom]] | None:
    """The layout and the operands of a product of interleaved matrices."""
    x, y = eqn.invars
    dtype, shapes = eqn.outvars[0].aval.dtype, (x.aval.shape, y.aval.shape)
    if dtype not in (dtypes.float32, dtypes.complex64) or x.aval.dtype != dtype \
            or isinstance(x, Literal) or isinstance(y, Literal) \
            or not all(isinstance(n, int) and n > 0 for shape in shapes for n in shape):
        return None
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    if not bx or not cx:
        return None
    # names: shared axes, contracted ones, free ones of x, free ones of y
    of_x = dict(zip((*bx, *cx), range(len(bx) + len(cx)), strict=True))
    of_y = dict(zip((*by, *cy), range(len(by) + len(cy)), strict=True))
    sizes = [shapes[0][a] for a in (*bx, *cx)]
    for shape, of in ((shapes[0], of_x), (shapes[1], of_y)):
        for axis, size in enumerate(shape):
            if axis not in of:
                of[axis] = len(sizes)
                sizes.append(size)
    shared, contracted = tuple(range(len(bx))), tuple(range(len(bx), len(bx) + len(cx)))
    inner = frozenset(shared + contracted)
    first = factor_of(Factor(x, _in_order(of_x)), makers, inner, True)
    second = factor_of(Factor(y, _in_order(of_y)), makers, inner, first.weight is None)
    lane = first.names[-1]
    rows = tuple([n for n in _in_order(of_x) if n not in inner])
    columns = tuple([n for n in _in_order(of_y) if n not in inner])
    weight = first.weight or second.weight
    layout = InterleavedLayout(
        first.names, second.names, weight[1] if weight else None, tuple(sizes),
        tuple([n for n in shared if n != lane]), lane, contracted, rows, columns,
        dtype == dtypes.complex64, (first.is_conjugate, second.is_conjugate),
        _is_symmetric(first, second, rows, columns, dtype == dtypes.complex64))
    if lane not in shared or second.names[-1] != lane or not _is_worthwhile(layout):
        return None
    return layout, [first.value, second.value, *([weight[0]] if weight else [])]


def _in_order(names: Mapping[int, int]) -> Names:
    return tuple([names[axis] for axis in range(len(names))])


def _is_symmetric(x: Factor, y: Factor, rows: Names, columns: Names, is_complex: bool) -> bool:
    """Whether both factors are one value, whose rows are its columns."""
    to_columns = dict(zip(rows, columns, strict=False))
    return x.value is y.value and len(rows) == len(columns) \
        and tuple([to_columns.get(n, n) for n in x.names]) == y.names \
        and (not is_complex or x.is_conjugate != y.is_conjugate)


def _is_worthwhile(layout: InterleavedLayout) -> bool:
    """Whether the matrices are small, and the sums long enough for a kernel of their own."""
    sides = (layout.size(layout.rows), layout.size(layout.columns))
    lanes = layout.sizes[layout.lane]
    if layout.blocks != (1, 1) and (len(layout.rows), len(layout.columns)) != (1, 1):
        return False
    return min(sides) > 1 and max(sides) <= MOST_ROWS and lanes >= WARP \
        and lanes * layout.size(layout.batch) >= LEAST_BATCH \
        and layout.size(layout.contracted) >= LEAST_TERMS \
        and max(map(layout.size, (layout.x, layout.y))) < 2**31 \
        and MOST_SPLITS * lanes * layout.size(layout.batch) * math.prod(sides) < 2**31


def factor_of(found: Factor, makers: Mapping[Var, Equation],
              inner: frozenset[int] = frozenset(), may_have_weight: bool = False) -> Factor:
    """What a factor is made from by transposes, conjugates and a weight of the terms of the sum.

    The weight has `inner` axes alone.
    """
    while isinstance(found.value, Var) and (eqn := makers.get(found.value)) is not None:
        if eqn.primitive is transpose_p:
            names = [0] * len(found.names)
            for name, axis in zip(found.names, eqn.params["permutation"], strict=True):
                names[axis] = name
            found = replace(found, value=eqn.invars[0], names=tuple(names))
        elif eqn.primitive is conj_p:
            found = replace(found, value=eqn.invars[0], is_conjugate=not found.is_conjugate)
        elif eqn.primitive is mul_p and may_have_weight and found.weight is None \
                and (weighed := _weighed(found, eqn.invars, inner, makers)) is not None:
            found = weighed
        else:
            break
    return found


def _weighed(found: Factor, factors: Sequence[Atom], inner: frozenset[int],
             makers: Mapping[Var, Equation]) -> Factor | None:
    """A product of a weight, real numbers without axes of the matrices, and of another factor."""
    for value, other in (factors, factors[::-1]):
        made = makers.get(value) if isinstance(value, Var) else None
        if made is None or made.primitive is not broadcast_in_dim_p \
                or other.aval.shape != value.aval.shape:
            continue
        source, dims = made.invars[0], made.params["broadcast_dimensions"]
        names = tuple([found.names[d] for d in dims])
        sizes = tuple([value.aval.shape[d] for d in dims])
        before = makers.get(source) if isinstance(source, Var) else None
        if before is not None and before.primitive is convert_element_type_p:
            source = before.invars[0]
        if names and isinstance(source, Var) and source.aval.dtype == dtypes.float32 \
                and source.aval.shape == sizes and inner.issuperset(names):
            return replace(found, value=other, weight=(source, names))
    return None
