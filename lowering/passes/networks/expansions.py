"""Expansions: values that are larger than the arrays that one operation computes them from.

Outer products (of two broadcast arrays), batched products of matrices, grouped convolutions (the
gradient of a kernel for every sample) and scatters into zeros (of an embedding, for every sample).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from functrans.core import dtypes
from functrans.core.jaxpr import Atom, Equation, Literal, Var
from functrans.core.table import Table
from functrans.lowering.passes.networks.convolutions import GroupedConvolution, convolution
from functrans.lowering.passes.networks.cost_estimate import magnitude
from functrans.lowering.passes.networks.network import (
    Factor,
    Group,
    NetworkArray,
    NetworkTerm,
    OneHot,
    StridedSlice,
    groups_of,
)
from functrans.lowering.passes.networks.one_hots import (
    Makers,
    before_broadcast,
    has_one_hots,
    selection_factors,
    selection_of,
)
from functrans.primitives.arithmetic import mul_p
from functrans.primitives.broadcast import broadcast_in_dim_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.index import scatter_add_p
from functrans.primitives.index_layout import GatherScatterMode
from functrans.primitives.precision import Precision

__all__ = ["Expansion", "broadcast_expansion", "expansion_of", "one_hot_expansion",
           "product_of_matrices"]


class Expansion(NamedTuple):
    """A value and the network that it equals: `term`, with result `axes`.

    `operands` are the arrays that it is computed from, `flops` what it costs as a product of
    matrices. A convolution can also be summed over its groups.
    """

    var: Var
    axes: tuple[Group, ...]
    term: NetworkTerm | None
    operands: tuple[Atom, ...]
    conv: GroupedConvolution | None = None
    precision: Precision | None = None
    is_elementwise: bool = False
    flops: float = 0.0

    @property
    def is_product(self) -> bool:
        """Whether each element is one product, which kernels compute wherever they need it."""
        return self.is_elementwise or (self.term is not None \
            and all(isinstance(f, NetworkArray) for f in self.term.factors) \
            and not {i for f in self.term.factors for i in f.indices} \
            - {i for g in self.axes for i in g})


def expansion_of(eqn: Equation, makers: Makers, least_bytes: int) -> Expansion | None:
    """The expansion that an equation computes, if it is one of at least so many bytes."""
    make = _EXPANSIONS.get(eqn.primitive)
    if make is None:
        return None
    out = eqn.outvars[0].aval
    if dtypes.kind(out.dtype) != "f" or magnitude(out.shape) * out.dtype.itemsize < least_bytes:
        return None
    return make(eqn, makers)


def _product(eqn: Equation, makers: Makers) -> Expansion | None:
    out = eqn.outvars[0]
    axes = groups_of(out.aval.shape)
    x, y = [before_broadcast(a, out.aval.shape, axes, makers) for a in eqn.invars]
    everywhere = {i for g in axes for i in g}
    mine, others = set(x.indices), set(y.indices)
    if isinstance(x.source, Literal) or isinstance(y.source, Literal) \
            or mine == everywhere or others == everywhere or mine | others != everywhere:
        return None
    factors = (*selection_of(x, makers), *selection_of(y, makers))
    return Expansion(out, axes, NetworkTerm(1.0, factors), _atoms(*factors), is_elementwise=True)


def _atoms(*factors: Factor) -> tuple[Atom, ...]:
    sources = [f.source if isinstance(f, NetworkArray) else f.places for f in factors
               if not isinstance(f, StridedSlice)]
    return tuple([x for x in sources if isinstance(x, (Var, Literal))])


def one_hot_expansion(x: Atom, makers: Makers, least_bytes: int) -> Expansion | None:
    """x as an expansion, if it is a one-hot array, or its product with another."""
    if not isinstance(x, Var) or dtypes.kind(x.aval.dtype) != "f" \
            or magnitude(x.aval.shape) * x.aval.dtype.itemsize < least_bytes:
        return None
    axes = groups_of(x.aval.shape)
    factors = selection_factors(x, axes, makers)
    if factors is None or not has_one_hots(factors):
        return None
    return Expansion(x, axes, NetworkTerm(1.0, factors), _atoms(*factors))


def broadcast_expansion(x: Atom, makers: Makers, least_bytes: int) -> Expansion | None:
    """x as an expansion, if it is a broadcast; kernels of its readers compute most broadcasts."""
    eqn = makers.get(x)
    if eqn is None or eqn.primitive is not broadcast_in_dim_p or not isinstance(x, Var) \
            or not eqn.invars[0].aval.shape or dtypes.kind(x.aval.dtype) != "f" \
            or magnitude(x.aval.shape) * x.aval.dtype.itemsize < least_bytes:
        return None
    axes = groups_of(x.aval.shape)
    source = before_broadcast(x, x.aval.shape, axes, makers)
    return None if source.source is x else Expansion(x, axes, NetworkTerm(1.0, (source,)),
                                                     _atoms(source))


def _batched_dot(eqn: Equation, makers: Makers) -> Expansion | None:
    return product_of_matrices(eqn, makers) if eqn.params["dimension_numbers"][1][0] else None


def product_of_matrices(eqn: Equation, makers: Makers) -> Expansion | None:
    """A product whose operands both have axes of their own."""
    out = eqn.outvars[0]
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    x, y = eqn.invars
    free_x = [d for d in range(len(x.aval.shape)) if d not in (*cx, *bx)]
    free_y = [d for d in range(len(y.aval.shape)) if d not in (*cy, *by)]
    if not free_x or not free_y:
        return None
    axes = groups_of(out.aval.shape)
    names_x: dict[int, Group] = {}
    names_y: dict[int, Group] = {}
    for a, b, g in zip(bx, by, axes, strict=False):
        names_x[a] = names_y[b] = g
    for a, b in zip(cx, cy, strict=True):
        names_x[a] = names_y[b] = groups_of((x.aval.shape[a],))[0]
    names_x.update(zip(free_x, axes[len(bx):], strict=False))
    names_y.update(zip(free_y, axes[len(bx) + len(free_x):], strict=True))
    left = before_broadcast(x, x.aval.shape, tuple([names_x[d] for d in range(len(names_x))]),
                            makers)
    right = before_broadcast(y, y.aval.shape, tuple([names_y[d] for d in range(len(names_y))]),
                             makers)
    factors = (*selection_of(left, makers), *selection_of(right, makers))
    whole = magnitude([i.size for i in {*left.indices, *right.indices}])
    return Expansion(out, axes, NetworkTerm(1.0, factors), _atoms(*factors),
                     precision=eqn.params.get("precision"), flops=2 * whole)


def _grouped_conv(eqn: Equation, makers: Makers) -> Expansion | None:
    if eqn.params.get("group_axes") is None:
        return None
    out = eqn.outvars[0]
    axes = groups_of(out.aval.shape)
    conv = convolution(eqn, axes)
    return Expansion(out, axes, conv.as_product(), eqn.invars, conv, eqn.params.get("precision"))


def _batched_scatter(eqn: Equation, makers: Makers) -> Expansion | None:
    """Rows added into zeros: sum over where of choice[where, row] * updates[where]."""
    base, indices, updates = eqn.invars
    numbers = eqn.params["dimension_numbers"]
    zero = makers.get(base)
    if zero is None or zero.primitive is not broadcast_in_dim_p \
            or not isinstance(zero.invars[0], Literal) or zero.invars[0].value != 0 \
            or len(numbers.scatter_dims_to_operand_dims) != 1 \
            or numbers.inserted_window_dims != numbers.scatter_dims_to_operand_dims:
        return None
    out, row = eqn.outvars[0], numbers.scatter_dims_to_operand_dims[0]
    shape = out.aval.shape
    window = [d for d in range(len(shape))
              if d != row and d not in numbers.operand_batching_dims]
    full = all(updates.aval.shape[u] == shape[d]
               for u, d in zip(numbers.update_window_dims, window, strict=True))
    size = shape[row]
    if not full or (isinstance(size, int) and size <= 1):
        return None
    axes = groups_of(shape)
    where: list[Group] = []
    for d, n in enumerate(indices.aval.shape[:-1]):
        if d in numbers.scatter_indices_batching_dims:
            at = numbers.scatter_indices_batching_dims.index(d)
            where.append(axes[numbers.operand_batching_dims[at]])
        else:
            where.append(groups_of((n,))[0])
    rest, inside = iter(where), dict(zip(numbers.update_window_dims, window, strict=True))
    names = tuple([axes[inside[u]] if u in inside else next(rest)
                   for u in range(len(updates.aval.shape))])
    chosen = OneHot(indices, tuple([i for g in where for i in g]), axes[row][0],
                    eqn.params["mode"] is not GatherScatterMode.FILL_OR_DROP)
    rows = before_broadcast(updates, updates.aval.shape, names, makers)
    return Expansion(out, axes, NetworkTerm(1.0, (rows, chosen)), (indices, *_atoms(rows)))


_EXPANSIONS: Table[Callable[[Equation, Makers], Expansion | None]] = Table({
    mul_p: _product, dot_general_p: _batched_dot, conv_general_dilated_p: _grouped_conv,
    scatter_add_p: _batched_scatter}, otherwise="no network begins with it")
