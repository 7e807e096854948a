"""Convolutions in groups as networks, and summed over their groups.

With `x[g,n,c,p]` the images, `w[g,o,c,q]` the kernels and k the places of the result, a convolution
in groups is `out[g,n,o,k] = sum over c, q of patches[g,n,c,k,q] * w[g,o,c,q]`. Its sum over the
groups is a convolution without groups whose features are those of all groups.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from functrans.core.avals import ShapedArray
from functrans.core.dims import Size
from functrans.core.jaxpr import Atom, Equation, Literal
from functrans.lowering.passes.movement import broadcast, reshape, transpose
from functrans.lowering.passes.networks.cost_estimate import magnitude
from functrans.lowering.passes.networks.network import (
    Derived,
    Group,
    NetworkArray,
    NetworkTerm,
    flat,
    groups_of,
)
from functrans.lowering.passes.rewrite import Rewriter
from functrans.primitives.arithmetic import mul_p
from functrans.primitives.conv import ConvDimensionNumbers, conv_general_dilated_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.shape import concatenate_p, pad_p, slice_p

__all__ = ["GroupedConvolution", "convolution"]

MOST_TAPS = 49  # slices that make an array of patches


class GroupedConvolution(NamedTuple):
    """A convolution in groups: its equation, and names for the axes of its result."""

    eqn: Equation
    axes: tuple[Group, ...]

    @property
    def group(self) -> Group:
        """The name of the axis of the groups."""
        return self.axes[self.eqn.params["group_axes"][2]]

    @property
    def flops(self) -> float:
        """Operations of the products."""
        spec = self.eqn.params["dimension_numbers"].rhs_spec
        kernel = [self.eqn.invars[1].aval.shape[d] for d in spec[1:]]
        return 2.0 * magnitude((*self.eqn.outvars[0].aval.shape, *kernel))

    # --------------------------------------------------------------------------- as a network

    def as_product(self) -> NetworkTerm | None:
        """The network of patches and kernels; None where there are too many patches to cut out."""
        p = self.eqn.params
        x, w = self.eqn.invars
        xs, ws, os = p["dimension_numbers"]
        gx, gw, go = p["group_axes"]
        taps = [w.aval.shape[d] for d in ws[2:]]
        places = [self.eqn.outvars[0].aval.shape[d] for d in os[2:]]
        if not all(isinstance(n, int) for n in (*taps, *places, *x.aval.shape)):
            return None
        by_place = math.prod(places) <= math.prod(taps)
        if min(math.prod(places), math.prod(taps)) > MOST_TAPS or 0 in (*taps, *places):
            return None
        inside = groups_of((x.aval.shape[xs[1]], *taps))
        outside = [self.axes[d] for d in os[2:]]
        first, last = (outside, inside[1:]) if by_place else (inside[1:], outside)
        names = (*first, self.axes[go], self.axes[os[0]], inside[0], *last)
        shape = (*(places if by_place else taps), x.aval.shape[gx], x.aval.shape[xs[0]],
                 x.aval.shape[xs[1]], *(taps if by_place else places))
        aval = ShapedArray(shape, x.aval.dtype)
        size = magnitude(shape)
        patches = Derived(aval, size, 0.0, x.aval.dtype.itemsize * (magnitude(x.aval.shape) + size),
                          lambda r: self._patches(r, by_place, shape))
        kernel: list[Group] = [()] * len(w.aval.shape)
        for d, g in zip((gw, *ws), (self.axes[go], self.axes[os[1]], *inside), strict=True):
            kernel[d] = g
        return NetworkTerm(1.0, (NetworkArray(patches, names), NetworkArray(w, tuple(kernel))))

    def _patches(self, r: Rewriter, by_place: bool, shape: tuple[Size, ...]) -> Atom:
        """Slices of the padded images, one for each place (or tap), stacked in front."""
        p = self.eqn.params
        x, w = self.eqn.invars
        xs, ws, os = p["dimension_numbers"]
        order = (p["group_axes"][0], *xs)
        x = transpose(r, x, order)
        padding = ((0, 0, 0),) * 3 + tuple(
            (low, high, hole - 1) for (low, high), hole in
            zip(p["padding"], p["lhs_dilation"], strict=True))
        if any(any(t) for t in padding):
            zero = Literal(x.aval.dtype.type(0), ShapedArray((), x.aval.dtype))
            x = r(pad_p, x, zero, padding_config=padding)
        taps = [w.aval.shape[d] for d in ws[2:]]
        places = [self.eqn.outvars[0].aval.shape[d] for d in os[2:]]
        strides, spread = p["window_strides"], p["rhs_dilation"]
        outer, jumps = (places, strides) if by_place else (taps, spread)
        inner, steps = (taps, spread) if by_place else (places, strides)
        lead = x.aval.shape[:3]
        pieces = []
        for at in itertools.product(*map(range, outer)):
            starts = [a * jump for a, jump in zip(at, jumps, strict=True)]
            limits = [s + (n - 1) * step + 1
                      for s, n, step in zip(starts, inner, steps, strict=True)]
            piece = r(slice_p, x, start_indices=(0, 0, 0, *starts),
                      limit_indices=(*lead, *limits), strides=(1, 1, 1, *steps))
            pieces.append(reshape(r, piece, (1, *piece.aval.shape)))
        stack = pieces[0] if len(pieces) == 1 else r(concatenate_p, *pieces, dimension=0)
        return reshape(r, stack, shape)

    # --------------------------------------------------------------------------- summed

    def summed(self, scales: Sequence[NetworkArray],
               axes: tuple[Group, ...]) -> NetworkArray | None:
        """The sum over the groups of this convolution times `scales`, which vary over the groups.

        `axes` names the axes of the result of this convolution where it is summed.
        """
        p = self.eqn.params
        group = axes[p["group_axes"][2]]
        if any(not set(s.indices) <= set(group) for s in scales):
            return None
        kept = tuple([g for d, g in enumerate(axes) if d != p["group_axes"][2]])
        out = self.eqn.outvars[0].aval
        aval = ShapedArray(tuple([n for d, n in enumerate(out.shape)
                                  if d != p["group_axes"][2]]), out.dtype)
        inputs = sum(magnitude(a.aval.shape) for a in self.eqn.invars)
        smaller = min(magnitude(a.aval.shape) for a in self.eqn.invars)
        moved = out.dtype.itemsize * (inputs + smaller * len(scales) + magnitude(aval.shape))
        return NetworkArray(Derived(aval, smaller * len(scales), self.flops, moved,
                                    lambda r: self._summed(r, scales, group)), kept)

    def _summed(self, r: Rewriter, scales: Sequence[NetworkArray], group: Group) -> Atom:
        p = self.eqn.params
        gx, gw, go = p["group_axes"]
        xs, ws, os = p["dimension_numbers"]
        x, w = self.eqn.invars
        total: Atom | None = None
        for s in scales:
            scale = _along(r, s, group, x.aval.shape[gx])
            total = scale if total is None else r(mul_p, total, scale)
        if total is not None:
            if magnitude(x.aval.shape) < magnitude(w.aval.shape):
                x = _scaled(r, x, total, gx)
            else:
                w = _scaled(r, w, total, gw)
        x, xs = _merged(r, x, gx, xs)
        w, ws = _merged(r, w, gw, ws)
        params: dict[str, Any] = {**p, "group_axes": None, "dimension_numbers":
                                  ConvDimensionNumbers(xs, ws, tuple([d - (d > go) for d in os]))}
        return r(conv_general_dilated_p, x, w, **params)


def convolution(eqn: Equation, axes: tuple[Group, ...]) -> GroupedConvolution:
    """The grouped convolution that an equation is."""
    return GroupedConvolution(eqn, axes)


def _along(r: Rewriter, s: NetworkArray, group: Group, size: Size) -> Atom:
    """A scale as a vector over the groups."""
    atom = s.source.make(r) if isinstance(s.source, Derived) else s.source
    if not s.indices:
        return reshape(r, atom, ())
    own = flat(s.axes)
    if own == group:
        return reshape(r, atom, (size,))
    at = [group.index(i) for i in own]
    atom = reshape(r, atom, tuple([i.size for i in own]))
    atom = transpose(r, atom, sorted(range(len(own)), key=at.__getitem__))
    atom = broadcast(r, atom, tuple([i.size for i in group]), sorted(at))
    return reshape(r, atom, (size,))


def _scaled(r: Rewriter, x: Atom, scale: Atom, axis: int) -> Atom:
    if scale.aval.dtype != x.aval.dtype:
        scale = r(convert_element_type_p, scale, new_dtype=x.aval.dtype)
    dims = (axis,) if scale.aval.shape else ()
    return r(mul_p, x, broadcast(r, scale, x.aval.shape, dims))


def _merged(r: Rewriter, x: Atom, group: int, spec: tuple[int, ...]
            ) -> tuple[Atom, tuple[int, ...]]:
    """x without its axis of groups, which goes into the features, and where its axes are then."""
    feature = spec[1]
    shape = x.aval.shape
    if isinstance(shape[feature], int) and shape[feature] == 1:
        x = reshape(r, x, tuple([n for d, n in enumerate(shape) if d != feature]))
        places = [group if d == feature else d for d in spec]
        return x, tuple([d - (d > feature) for d in places])
    order = [d for d in range(len(shape)) if d != group]
    order.insert(order.index(feature), group)
    x = transpose(r, x, order)
    at = order.index(group)
    shape = x.aval.shape
    x = reshape(r, x, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2:]))
    return x, tuple([order.index(d) - (order.index(d) > at) for d in spec])
