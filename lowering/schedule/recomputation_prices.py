"""What it costs to keep a value, and to compute it again: on a CPU, and on GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from functrans.core import dtypes
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.passes.chained_values import chained_values
from functrans.lowering.passes.hidden_values import hidden_values
from functrans.lowering.passes.rematerialize import Prices
from functrans.lowering.rules.elementwise import CHEAP, ELEMENTWISE
from functrans.lowering.schedule.cpu_target import SERVER
from functrans.lowering.schedule.target import Target
from functrans.primitives.barrier import checkpoint_name_p, optimization_barrier_p, stop_gradient_p
from functrans.primitives.base import constant_p, full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.compare import clamp_p, select_n_p
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.random import philox4x32_p, threefry2x32_p
from functrans.primitives.shape import (
    concatenate_p,
    copy_p,
    iota_p,
    pad_p,
    reshape_p,
    rev_p,
    slice_p,
)

__all__ = ["CPU_PRICES", "cheaper_memory", "gpu_prices"]

ADDITION: Final = 0.03
"""Nanoseconds of an addition of one element among others of a kernel, on two cores."""
MULTIPLICATION: Final = 1 / 150
"""... and of a multiplication or addition of a product of matrices."""
BYTE: Final = 0.4
"""... and of a byte that is kept: to write and read it takes 0.13, and pages that a program touches
for the first time three times as long."""

EXPANSION: Final = 4
"""A product is computed again where it has so many times the bytes of its factors: scores of
attention are, layers are not, which would be computed again one from the other."""

PRODUCTS: Final = frozenset({dot_general_p, conv_general_dilated_p})
VIEWS: Final = frozenset({
    reshape_p, transpose_p, broadcast_in_dim_p, slice_p, rev_p, iota_p, full_p, constant_p, copy_p,
    stop_gradient_p, checkpoint_name_p})
FUSED: Final[dict[Primitive, int]] = {
    select_n_p: CHEAP, convert_element_type_p: CHEAP, clamp_p: 2 * CHEAP, add_any_p: CHEAP,
    concatenate_p: 2 * CHEAP, pad_p: 2 * CHEAP, threefry2x32_p: 80, philox4x32_p: 80}


LEAST_BYTES: Final = 1 << 25
"""Of values that cross a position: fewer stay in the last-level cache, where a gradient of 64
features with 7 MB of temporaries takes 1.7 times as long when half of them are computed again."""
LEAST_SAVED: Final = 0.4
"""Of the bytes that cross a position. A network of 64 features that saves a tenth of its memory
takes 1.1 times as long; a U-Net that saves 0.6 and a flow that saves 0.4 1.0."""
SPARE: Final = 1 / 64
"""Of the time of a program, for products that are computed again: two of 156 in the gradient of six
layers of attention, whose memory is 59 MB for 63."""
INLINED: Final = 2
"""Additions from values that are kept too: such a value is computed by its readers anyway."""
MOST_CHAINED: Final = 4
"""Blocks of a chain have so many times the bytes that it is split for at most: 8 MB."""
SEGMENTS: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32)


def _time(eqn: Equation) -> float:
    """Of an equation that costs no more than to keep what it makes, or is likely to."""
    if eqn.primitive is dot_general_p:
        operands = sum([float(a.aval.nbytes) for a in eqn.invars])
        if EXPANSION * operands > float(eqn.outvars[0].aval.nbytes):
            return math.inf
    elif eqn.primitive is conv_general_dilated_p:
        return math.inf
    return _any_time(eqn)


def _any_time(eqn: Equation) -> float:
    """Of an equation that may be computed again at all: the same bits, and nothing else happens."""
    primitive = eqn.primitive
    if primitive in VIEWS or (primitive is optimization_barrier_p
                              and eqn.params.get("last_first")):
        return 0.0
    # what is not stored of halves is not rounded: other numbers
    known = None
    for a in (*eqn.invars, *eqn.outvars):
        dtype = a.aval.dtype
        if dtype is not known and (dtypes.is_half(dtype) or dtypes.kind(dtype) == "c"):
            return math.inf
        known = dtype
    if primitive in PRODUCTS:
        cost = primitive.cost(*[a.aval for a in eqn.invars], **eqn.params)
        return float(cost.flops) * MULTIPLICATION
    entry = ELEMENTWISE.get(primitive)
    weight = FUSED.get(primitive) if entry is None else entry.weight
    return math.inf if weight is None else float(eqn.outvars[0].aval.size) * weight * ADDITION


def _is_step(eqn: Equation) -> bool:
    return eqn.primitive in PRODUCTS or _any_time(eqn) == math.inf


CPU_PRICES: Final = Prices(
    _time, BYTE, _is_step, LEAST_BYTES, LEAST_SAVED, INLINED * ADDITION, any_time=_any_time,
    hidden=partial(chained_values, least_blocks=SERVER.least_blocks,
                   most_bytes=MOST_CHAINED * SERVER.block_bytes), spare=SPARE)


def gpu_prices(target: Target) -> Prices:
    """Of a GPU: elementwise operations are hidden behind memory, attention keeps its scores."""
    known = target.measured

    def time(eqn: Equation, products: bool = False) -> float:
        if eqn.primitive in PRODUCTS:
            if not products:
                return math.inf
            rate = known.rates["tf32"] * target.multiprocessors
            return _any_time(eqn) / MULTIPLICATION * 2 / rate + known.launch
        return _any_time(eqn) / ADDITION * known.addition * known.byte

    return Prices(time, 6 * known.byte, _is_step, LEAST_BYTES, LEAST_SAVED,
                  INLINED * known.addition * known.byte, any_time=partial(time, products=True),
                  hidden=hidden_values)


def cheaper_memory(prices: Prices) -> Iterator[Prices]:
    """Prices of a target under which programs take less and less memory, and more time."""
    frugal = replace(prices, byte=100 * prices.byte, least_bytes=1 << 16, least_saved=0.0,
                     inlined=0.0)
    if prices is CPU_PRICES:  # a chain is likely, and not certain
        frugal = replace(frugal, hidden=lambda _: frozenset())
    yield prices
    yield frugal
    for count in SEGMENTS:
        yield replace(frugal, then=replace(
            frugal, time=prices.any_time or prices.time, byte=1e6, segments=count))
