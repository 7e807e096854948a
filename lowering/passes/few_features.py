"""Convolutions with few results of a place as products of matrices, for GPUs.

A tile of the tensor cores has 16 columns or more, and each tap reads all features of a place again,
from the second-level cache. Taps as columns are read once: where the result has few features the
product of all taps comes first and is added up along the taps, and of the gradient of such a filter
the few features are copied for each tap first. The gradient of 256 x 64 x 64 x 64 of float32 to 3
features of 5 x 5 taps took 1.28 ms on an H100, at 8 % of its bandwidth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from functrans.core import dtypes
from functrans.core.jaxpr import Equation, Jaxpr
from functrans.lowering.passes.rewrite import with_functions
from functrans.primitives.arithmetic import add
from functrans.primitives.broadcast import transpose
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import convert_element_type
from functrans.primitives.dot import dot_general
from functrans.primitives.shape import concatenate, pad, reshape, slice_in_dim

__all__ = ["few_features_as_products"]

MOST_RESULTS = 4
"""Features of a result, or of what a filter is learned from."""
MOST_TAPS = 49
LEAST_FEATURES = 16
LEAST_PLACES = 1 << 16
WORTH = 0.7
"""Of the time of the convolution."""


def few_features_as_products(jaxpr: Jaxpr, bandwidth: float, again: float,
                             launch: float) -> Jaxpr:
    """The program with such convolutions as products, where that is estimated to be faster.

    In a nanosecond memory gives so many bytes, and the second-level cache what tiles read `again`;
    `launch`: the nanoseconds of one.
    """
    return with_functions(jaxpr, partial(_as_product, bandwidth, again, launch))


def _as_product(bandwidth: float, again: float, launch: float,
                eqn: Equation) -> Callable[..., Sequence[Any]] | None:
    """What computes the results of an equation instead, if it is such a convolution."""
    if eqn.primitive is not conv_general_dilated_p or eqn.params.get("group_axes") is not None:
        return None
    p, (x, w), (out,) = eqn.params, [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    if not all(isinstance(n, int) and n > 0 for n in (*x.shape, *w.shape, *out.shape)):
        return None
    if x.dtype != np.float32 and not dtypes.is_half(x.dtype):
        return None
    xs, ws, os = p["dimension_numbers"]
    if any(n != 1 for n in (*p["window_strides"], *p["lhs_dilation"])):
        return None
    window = [w.shape[d] for d in ws[2:]]
    results = [out.shape[d] for d in os[2:]]
    features = x.shape[xs[1]]
    if w.shape[ws[0]] > MOST_RESULTS:
        return None
    if xs[1] == x.ndim - 1 and features >= LEAST_FEATURES and 1 < math.prod(window) <= MOST_TAPS:
        taps, places, wide = math.prod(window), x.shape[xs[0]] * math.prod(results), features
        made, item = _taps_added_up, 4  # sums of taps are added in float32
    elif xs[0] == x.ndim - 1 and x.shape[xs[0]] >= LEAST_FEATURES \
            and 1 < math.prod(results) <= MOST_TAPS and all(n == 1 for n in p["rhs_dilation"]):
        taps, places, wide = math.prod(results), features * math.prod(window), x.shape[xs[0]]
        made, item = _taps_copied, x.dtype.itemsize
    else:
        return None
    if places < LEAST_PLACES:
        return None
    size, few = x.dtype.itemsize, w.shape[ws[0]]
    as_it_is = places * taps * wide * size / again
    moved = places * (wide * size + 2 * taps * few * item)
    if moved / bandwidth + launch > WORTH * as_it_is:
        return None
    return partial(made, eqn)


def _taps_added_up(eqn: Equation, x: Any, w: Any) -> list[Any]:
    """The products of all places with all taps, and their sums along the window."""
    p, (out,) = eqn.params, eqn.outvars
    xs, ws, os = p["dimension_numbers"]
    rank = len(xs) - 2
    window, few = [w.shape[d] for d in ws[2:]], w.shape[ws[0]]
    taps = transpose(w, (*ws[2:], ws[0], ws[1]))
    taps = reshape(taps, (math.prod(window) * few, w.shape[ws[1]]))
    rows = (xs[0], *xs[2:])
    y = dot_general(taps, x, (((1,), (xs[1],)), ((), ())), p.get("precision"), np.float32)
    # the free axes of x follow in its order
    y = transpose(y, (0, *[1 + sorted(rows).index(d) for d in rows]))
    zero = np.zeros((), np.float32)
    total = None
    for k, tap in enumerate(itertools.product(*map(range, window))):
        part = slice_in_dim(y, k * few, (k + 1) * few)
        config = [(0, 0, 0), (0, 0, 0)]
        for i in range(rank):
            low = p["padding"][i][0] - tap[i] * p["rhs_dilation"][i]
            config.append((low, out.aval.shape[os[2 + i]] - x.shape[xs[2 + i]] - low, 0))
        part = pad(part, zero, config)
        total = part if total is None else add(total, part)
    return [_placed(total, (os[1], os[0], *os[2:]), out.aval.dtype)]


def _taps_copied(eqn: Equation, x: Any, w: Any) -> list[Any]:
    """The product of an image with the few features of a cotangent, moved by each tap."""
    p, (out,) = eqn.params, eqn.outvars
    xs, ws, os = p["dimension_numbers"]
    rank = len(xs) - 2
    results, few = [out.aval.shape[d] for d in os[2:]], w.shape[ws[0]]
    moved = transpose(w, (ws[0], ws[1], *ws[2:]))
    zero, parts = np.zeros((), w.dtype), []
    for tap in itertools.product(*map(range, results)):
        config = [(0, 0, 0), (0, 0, 0)]
        for i in range(rank):
            low = tap[i] - p["padding"][i][0]
            config.append((low, x.shape[xs[2 + i]] - w.shape[ws[2 + i]] - low, 0))
        parts.append(pad(moved, zero, config))
    copies = concatenate(parts, 0)  # (taps and features, summed batch, places)
    summed = (xs[1], *xs[2:])
    y = dot_general(copies, x, ((tuple(range(1, rank + 2)), summed), ((), ())), p.get("precision"),
                    np.float32)
    y = reshape(y, (*results, few, x.shape[xs[0]]))
    return [_placed(y, (*os[2:], os[1], os[0]), out.aval.dtype)]


def _placed(y: Any, axes: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """An array whose axes stand for these of the result."""
    y = transpose(y, [axes.index(d) for d in range(len(axes))])
    return convert_element_type(y, dtype)
