"""What a loop takes as launches of a product or a reduction each, and what goes with it."""

from __future__ import annotations

import math
from typing import Any

from functrans.core.jaxpr import Equation, Jaxpr
from functrans.lowering.loops.tensor import ScanLoop
from functrans.lowering.schedule.target import Measurements, Target
from functrans.primitives.base import full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.compare import select_n_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.shape import concatenate_p, iota_p, pad_p, reshape_p, rev_p, slice_p

__all__ = ["fused_seconds"]

FUSED = frozenset({broadcast_in_dim_p, transpose_p, select_n_p, convert_element_type_p, add_any_p,
                   concatenate_p, iota_p, pad_p, reshape_p, rev_p, slice_p, full_p})


def fused_seconds(call: ScanLoop, target: Target) -> float:
    """Seconds of a loop if elementwise work goes with what it is computed for."""
    length = call.length if isinstance(call.length, int) else 1
    return 1e-9 * length * _of_body(call.body, target.measured)


def _of_body(body: Jaxpr, figures: Measurements) -> float:
    return max(sum([_of(eqn, figures) for eqn in body.eqns]), figures.launch)


def _of(eqn: Equation, figures: Measurements) -> float:
    p = eqn.primitive
    if isinstance(p, Elementwise) or p in FUSED:
        return 0.0
    if p is scan_p:
        length: Any = eqn.params["length"]
        return (length if isinstance(length, int) else 1) * _of_body(eqn.params["jaxpr"], figures)
    if p is while_p:
        return math.inf  # nobody knows
    sizes = [v.aval.nbytes for v in (*eqn.invars, *eqn.outvars)]
    moved = sum([n for n in sizes if isinstance(n, int)])
    return figures.launch + moved * figures.byte
