"""Values of a tile of lanes: the components of a lane along the first axis, lanes along the second.

A component is an expression of the number of its lane and of its own, so that reshapes, slices and
stacks are arithmetic of indices, as they are in other kernels. Tiles differ from single elements
where components come together: a reduction folds them, a product with a matrix that lanes share
multiplies the tile, and a single component is taken out. These are operations of expressions, too:
`fold`, `product` of a `left` and a `right` side (tile and matrix), and `component`. What has more
components than registers hold is `wide`: a loop over blocks of them folds or multiplies it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from functrans.core.jaxpr import Equation
from functrans.core.precision import Precision
from functrans.core.record import Record
from functrans.lowering.defects import UnsupportedKernel
from functrans.lowering.loops.expr import Expr
from functrans.lowering.loops.index import ZERO, Index, LoopVar, unflatten
from functrans.lowering.loops.lane_reader import CrossesLanes, LaneReader, Place
from functrans.lowering.loops.tensor import Reduce, Tensor, compute_dtype, dtype_name
from functrans.primitives.precision import resolved_precision

__all__ = [
    "PART_COMPONENTS",
    "WRITTEN_OUT",
    "Fold",
    "HeldTile",
    "LaneTileReader",
    "Side",
    "WideProduct",
    "inner_sizes",
]

MOST_COMPONENTS: Final = 256
"""Of a tile; what is wider is never a tile as a whole."""
WRITTEN_OUT: Final = 4
"""Terms of a sum, or products, that are added up one by one."""
MOST_TERMS: Final = 32
"""Of a reduction of which a tile has the results in components."""
MOST_CHOICES: Final = 32
"""Components of which one is read at a place that is computed."""
MOST_APART, LEAST_APART = 64, 128
"""Components of a product that warps add up in parts, and its terms: of more components each warp
has some of its own."""
PART_COMPONENTS: Final = 128
"""Of all parts: 16 for each of 8 warps."""
PRODUCT_DTYPES: Final = frozenset(("f32", "bf16", "f16"))


class Fold(NamedTuple):
    """A reduction of components: its operation, the dtype of what is folded, and the components."""

    op: str
    dtype: str
    components: LoopVar


class Side(NamedTuple):
    """An operand of a product: its dtype in memory, the numbers along the sum, and the precision.

    `components` are those of the result, which a matrix has along its first axis.
    """

    dtype: str
    along: LoopVar
    components: LoopVar | None
    precision: Precision


class WideProduct(NamedTuple):
    """A product: the numbers along the sum, in the tile and in the matrix, and the precision.

    `components` are those of the result.
    """

    left: LoopVar
    right: LoopVar
    components: LoopVar
    precision: Precision


class HeldTile(Record, eq=False):
    """A value that is kept as a tile by a name; `lane_axis` is that of lanes, None without one.

    It changes with a loop. A value may vary over lanes that has no axis of them.
    """

    tensor: Tensor
    name: str
    lane_axis: int | None
    varies: bool
    loop: LoopVar | None

    @property
    def inner(self) -> tuple[int, ...]:
        """The sizes of what each lane has."""
        return inner_sizes(self.tensor.shape, self.lane_axis)

    def element(self, reader: LaneReader, index: Place) -> Expr:
        assert isinstance(reader, LaneTileReader)
        if self.lane_axis is not None:
            reader.check_own_lane(index[self.lane_axis])
        sizes = self.inner
        place = reader.flatten(tuple([i for k, i in enumerate(index) if k != self.lane_axis]),
                               sizes)
        n = math.prod(sizes)
        variables = {v for v in (self.loop, reader.lane if self.varies else None) if v is not None}
        key = (self.name, self.loop)
        if n == 1:
            return reader.held(key, self.tensor.compute, variables)
        component = reader.component(n)
        (v,) = component.terms
        assert isinstance(v, LoopVar)
        whole = reader.held(key, self.tensor.compute, {*variables, v})
        if place == component:
            return whole
        if place.is_const:
            return reader.taken(whole, v, int(place.const))
        if n > MOST_CHOICES:
            raise UnsupportedKernel(f"a tile is read at other ones of its {n} components")
        number = reader.index(place, "i64")
        found = reader.taken(whole, v, n - 1)
        for k in reversed(range(n - 1)):
            here = reader.op("eq", number, reader.const(np.int64(k), "i64"), dtype="bool")
            found = reader.op("select", here, reader.taken(whole, v, k), found, dtype=found.dtype)
        return found


def inner_sizes(shape: Sequence[object], lane_axis: int | None) -> tuple[int, ...]:
    """The sizes of a shape without that of lanes. Raises UnsupportedKernel for unknown ones."""
    found = []
    for k, n in enumerate(shape):
        if k == lane_axis:
            continue
        if not isinstance(n, int):
            raise UnsupportedKernel("a size that is not known")
        found.append(n)
    return tuple(found)


class LaneTileReader(LaneReader):
    """Makes the expressions of a tile of lanes."""

    def __init__(self, operands: Iterable[Tensor], lane: LoopVar) -> None:
        super().__init__(operands)
        self.lane = lane
        self.components: dict[int, LoopVar] = {}
        self.terms: dict[int, LoopVar] = {}
        self.wide: dict[LoopVar, LoopVar] = {}
        """Components that a loop over blocks goes through, and the same as terms of a sum."""

        self.parts: dict[LoopVar, LoopVar] = {}
        """Of components of wide products: the same as terms in parts, which warps add up."""
        self.parted: dict[tuple[int, int], LoopVar] = {}
        """Terms of other products in so many parts, by the number of both."""
        self.across: dict[int, LoopVar] = {}
        """Components of a matrix in such parts."""

    # --------------------------------------------------------------------------- places

    def component(self, n: int) -> Index:
        """The number of the component of a tile with n components. Raises UnsupportedKernel."""
        if n > MOST_COMPONENTS:
            raise UnsupportedKernel(f"a lane keeps {n} elements of a value")
        return ZERO if n == 1 else Index.of(self.components.setdefault(n, LoopVar(f"c{n}", n)))

    def along(self, n: int) -> tuple[LoopVar, LoopVar]:
        """Numbers of components that come together, and the same as terms of a sum."""
        if n > MOST_COMPONENTS:
            v = LoopVar(f"w{len(self.wide)}", n)
            self.wide[v] = LoopVar(f"{v.name}r", n)
            return v, self.wide[v]
        v = self.components.setdefault(n, LoopVar(f"c{n}", n))
        return v, self.terms.setdefault(n, LoopVar(f"r{n}", n))

    def inner_of(self, index: Iterable[Index]) -> set[LoopVar]:
        """The numbers of components and terms that places change with."""
        known = {*self.components.values(), *self.terms.values(), *self.wide, *self.wide.values(),
                 *self.parts.values(), *self.parted.values(), *self.across.values()}
        return known & {v for i in index for v in self.index(i, "i64").variables}

    def check_own_lane(self, at: Index) -> None:
        """Raise CrossesLanes unless a place along lanes is the own one."""
        if at != Index.of(self.lane):
            raise CrossesLanes("a lane reads what another one computes")

    # --------------------------------------------------------------------------- operations

    def held(self, key: object, dtype: str, variables: Iterable[LoopVar]) -> Expr:
        """What a variable of the kernel has."""
        return self._make("local", (), dtype, key, frozenset(variables))

    def taken(self, whole: Expr, components: LoopVar, k: int) -> Expr:
        """One component of a tile."""
        return self._make("component", (whole,), whole.dtype, (components, k),
                          whole.variables - {components})

    def _reduced(self, t: Reduce, index: Place) -> Expr:
        if not all(isinstance(n, int) for n in t.sizes):
            raise UnsupportedKernel("a size that is not known")
        sizes = tuple(map(_int, t.sizes))
        total = math.prod(sizes)
        if self.inner_of(index):
            if total > MOST_TERMS:
                raise UnsupportedKernel(f"each component of a tile is a reduction of {total}")
            return super()._reduced(t, index)
        if total <= WRITTEN_OUT:
            return super()._reduced(t, index)
        components, _ = self.along(total)
        e = t.element(self, (*index, *unflatten(Index.of(components), sizes)))
        found = self._make("fold", (e,), "i32" if t.op in ("argmax", "argmin") else t.value_dtype,
                           Fold(t.op, t.value_dtype, components), e.variables - {components})
        return found if found.dtype == t.compute else self.op("convert", found, dtype=t.compute)

    def product(self, eqn: Equation, xs: Sequence[Tensor], plain: Tensor, index: Place) -> Expr:
        """An element of a product, of which one side has lanes: by tensor cores where it pays."""
        (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
        sizes = tuple([_int(xs[0].shape[d]) for d in cx])
        total = math.prod(sizes)
        dtype = dtype_name(eqn.outvars[0].aval.dtype) or ""
        if total <= WRITTEN_OUT or {dtype, *[x.dtype for x in xs]} - PRODUCT_DTYPES:
            return self.read(plain, index)
        batch, free = index[:len(bx)], index[len(bx):]
        places = []
        for x, contracted, shared in zip(xs, (cx, cy), (bx, by), strict=True):
            own = [d for d in range(len(x.shape)) if d not in (*contracted, *shared)]
            places.append(dict(zip((*shared, *own), (*batch, *free[:len(own)]), strict=True)))
            free = free[len(own):]
        seen = [self.inner_of(p.values()) for p in places]
        if sorted(map(len, seen)) != [0, 1]:
            return self.read(plain, index)
        k = 0 if not seen[0] else 1  # the side that may have lanes
        left, right = self.along(total)
        (components,) = seen[1 - k]
        if components in self.terms.values() or components in self.wide.values():
            return self.read(plain, index)

        shown = components
        if total >= LEAST_APART and (apart := self._apart(places[1 - k], components)) is not None:
            right = self._terms_in_parts(left, components)
            places[1 - k], shown = apart

        def side(number: int, along: LoopVar) -> Expr:
            at = dict(zip((cx, cy)[number], unflatten(Index.of(along), sizes), strict=True))
            at |= places[number]
            return self.read(xs[number], tuple([at[d] for d in range(len(xs[number].shape))]))

        one, other = side(k, left), side(1 - k, right)
        if self.lane not in one.variables or self.lane in other.variables \
                or self.inner_of(map(Index.of, one.variables)) - {left} \
                or self.inner_of(map(Index.of, other.variables)) - {right, shown}:
            return self.read(plain, index)
        precision = resolved_precision(eqn.params.get("precision"))
        one = self._make("left", (one,), "f32", Side(xs[k].dtype, left, None, precision),
                         one.variables | {left})
        other = self._make("right", (other,), "f32",
                           Side(xs[1 - k].dtype, right, components, precision),
                           (other.variables - {shown}) | {right, components})
        found = self._make("product", (one, other), "f32",
                           WideProduct(left, right, components, precision),
                           (one.variables - {left}) | (other.variables - {right}))
        return found if compute_dtype(dtype) == dtype else self.op("round_to", found, aux=dtype)


    def _terms_in_parts(self, left: LoopVar, components: LoopVar) -> LoopVar:
        """The numbers of terms in parts, for a result with some components."""
        parts = PART_COMPONENTS // max(16, 1 << (_int(components.high) - 1).bit_length())
        if left not in self.wide:
            key = (_int(left.high), parts)
            return self.parted.setdefault(key, LoopVar(f"r{key[0]}p{parts}", left.high))
        self.parts[left] = LoopVar(f"{left.name}t", left.high)
        return self.parts[left]

    def _apart(self, place: Mapping[int, Index], components: LoopVar
               ) -> tuple[dict[int, Index], LoopVar] | None:
        """A place in a matrix with components of parts; None where these are computed."""
        if self.components.get(_int(components.high)) is not components \
                or _int(components.high) > MOST_APART or any(
                    type(v) is not LoopVar for i in place.values() for v in i.terms):
            return None
        n = _int(components.high)
        other = self.across.setdefault(n, LoopVar(f"{components.name}t", n))
        return {d: Index({other if v is components else v: c for v, c in i.terms.items()}, i.const)
                for d, i in place.items()}, other


def _int(n: object) -> int:
    assert isinstance(n, int)
    return n
