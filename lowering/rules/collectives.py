"""Collectives of programs of devices: steps that the runtime does, without Python in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

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

__all__ = ["KINDS", "REDUCTIONS", "RULES", "Numbers", "numbers_of"]

SIGNATURE: Final = "i64, i64, i64, i64, i64, i64, const i64 *, const void *, void *"
KINDS: Final[dict[Primitive, int]] = {
    psum_p: 0, pmax_p: 0, pmin_p: 0, all_gather_p: 1, psum_scatter_p: 2, all_to_all_p: 3,
    ppermute_p: 4}
"""How the steps of the runtime name them (csrc/collective_step.cpp, csrc/cuda/steps.h)."""
REDUCTIONS: Final = (psum_p, pmax_p, pmin_p, psum_scatter_p)


class Numbers(NamedTuple):
    """What a step says of a collective: `elements` are those of a part."""

    kind: int
    key: int
    op: int
    dtype: int
    elements: int
    ends: tuple[int, ...]  # of the pairs of a permutation


def numbers_of(eqn: Equation) -> Numbers | None:
    """The numbers of a collective whose parts are along the first axis; None of others.

    Nobody looks at dtypes that are moved: those without a number are bytes.
    """
    params, aval, out_aval = eqn.params, eqn.invars[0].aval, eqn.outvars[0].aval
    places = [params.get(name, 0) for name in ("dimension", "split", "concat")]
    if any(places) or not (aval.is_static and out_aval.is_static):
        return None
    code = TYPES.get(aval.dtype)
    count = int(min(math.prod(aval.shape), math.prod(out_aval.shape)))
    if code is None:
        if eqn.primitive in REDUCTIONS:
            return None
        code, count = TYPES[np.dtype(np.uint8)], count * aval.dtype.itemsize
    if eqn.primitive is all_to_all_p:
        count //= params["axis_size"]
    return Numbers(KINDS[eqn.primitive], key_of(axis_names(params["axis_name"])),
                   OPS[getattr(eqn.primitive, "op", "sum")], code, count,
                   tuple([end for pair in params.get("perm", ()) for end in pair]))


def _collective(eqn: Equation, xs: list[Tensor]) -> tuple[Call, Sequence[Tensor]] | None:
    """The step, where parts are along the first axis; other programs call Python."""
    (x,), numbers = xs, numbers_of(eqn)
    if numbers is None:
        return None
    out = Stored(eqn.outvars[0].aval.shape, x.dtype, (), eqn.source)
    *first, ends = numbers
    arguments: list[Any] = [*first, len(ends) // 2, list(ends) or [0], x, out]
    return CLibraryCall("collective", SIGNATURE, [x], [out], arguments, eqn.source), [out]


RULES: Final[dict[Primitive, Callable[..., Any]]] = dict.fromkeys(KINDS, _collective)
