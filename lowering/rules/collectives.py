"""Collectives of programs of devices: steps that the runtime does, without Python in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from functrans.core.axes import axis_names
from functrans.core.communicator import OPS, TYPES, key_of
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive
from functrans.lowering.loops.tensor import Call, CLibraryCall, Stored, Tensor
from functrans.primitives.collective import (
    all_gather_p,
    all_to_all_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    psum_scatter_p,
)

__all__ = ["RULES"]

SIGNATURE: Final = "i64, i64, i64, i64, i64, i64, const i64 *, const void *, void *"
KINDS: Final[dict[Primitive, int]] = {
    psum_p: 0, pmax_p: 0, pmin_p: 0, all_gather_p: 1, psum_scatter_p: 2, all_to_all_p: 3,
    ppermute_p: 4}
"""How the function `collective` (csrc/rendezvous.cpp) names them."""


def _collective(eqn: Equation, xs: list[Tensor]) -> tuple[Call, Sequence[Tensor]] | None:
    """The step, where parts are along the first axis; other programs call Python."""
    (x,), params = xs, eqn.params
    aval, out_aval = eqn.invars[0].aval, eqn.outvars[0].aval
    code = TYPES.get(aval.dtype)
    places = [params.get(name, 0) for name in ("dimension", "split", "concat")]
    if code is None or any(places) or not (aval.is_static and out_aval.is_static):
        return None
    out = Stored(out_aval.shape, x.dtype, (), eqn.source)
    part = min(math.prod(aval.shape), math.prod(out_aval.shape))
    if eqn.primitive is all_to_all_p:
        part //= params["axis_size"]
    pairs = [end for pair in params.get("perm", ()) for end in pair]
    op = OPS[getattr(eqn.primitive, "op", "sum")]
    arguments: list[Any] = [KINDS[eqn.primitive], key_of(axis_names(params["axis_name"])), op, code,
                            part, len(pairs) // 2, pairs or [0], x, out]
    return CLibraryCall("collective", SIGNATURE, [x], [out], arguments, eqn.source), [out]


RULES: Final[dict[Primitive, Callable[..., Any]]] = dict.fromkeys(KINDS, _collective)
