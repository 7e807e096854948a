"""Operations in the dtypes that kernels of GPUs have for them: exactly the same values.

Floats of 8 bits are ordered, sorted and accumulated as float32, extremes of integers are found in
int32 or int64; indices in uint64 are int64, where those that are too large are beyond every end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from functrans.core.jaxpr import Equation, Jaxpr
from functrans.core.primitive import Primitive
from functrans.core.table import Table
from functrans.lowering.passes.rewrite import with_functions
from functrans.primitives.arithmetic import min
from functrans.primitives.collective import pmax_p, pmin_p, psum_p, psum_scatter_p
from functrans.primitives.compare import bitwise_xor
from functrans.primitives.convert import bitcast_convert_type, convert_element_type
from functrans.primitives.cumulative import (
    cumlogsumexp_p,
    cummax_p,
    cummin_p,
    cumprod_p,
    cumsum_p,
)
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.reduce import argmax_p, argmin_p
from functrans.primitives.scatter import scatter_p
from functrans.primitives.sort import sort_p, top_k_p
from functrans.primitives.window import window_argmax_p, window_argmin_p

__all__ = ["FLOAT8", "KNOWN", "with_known_dtypes"]

FLOAT8: Final = ("float8_e4m3fn", "float8_e5m2")
WIDE: Final = {**dict.fromkeys(("bool", "int8", "int16", "uint8", "uint16"), "int32"),
               "uint32": "int64"}
SIGN: Final = np.uint64(2**63)
MOST: Final = np.uint64(2**63 - 1)


def _of_float32(x: Any) -> Any:
    return convert_element_type(x, np.dtype(np.float32)) if x.dtype.name in FLOAT8 else x


def _ordered(x: Any) -> Any:
    """Numbers of a dtype in whose kernels extremes are found, in the same order."""
    if x.dtype.name == "uint64":
        return bitcast_convert_type(bitwise_xor(x, SIGN), np.dtype(np.int64))
    wide = WIDE.get(x.dtype.name)
    return _of_float32(x) if wide is None else convert_element_type(x, np.dtype(wide))


def _of_int64(x: Any) -> Any:
    return convert_element_type(min(x, MOST), np.dtype(np.int64)) \
        if x.dtype.name == "uint64" else x


def _every(change: Callable[[Any], Any]) -> Callable[[Sequence[Any]], list[Any]]:
    return lambda operands: list(map(change, operands))


def _behind(first: int) -> Callable[[Sequence[Any]], list[Any]]:
    """Indices are the operands from a number on."""
    return lambda operands: [*operands[:first], *map(_of_int64, operands[first:])]


def _second(operands: Sequence[Any]) -> list[Any]:
    return [operands[0], _of_int64(operands[1]), *operands[2:]]


def _of_nccl(x: Any) -> Any:
    """Numbers of a dtype that NCCL adds up, and finds the extremes of."""
    if x.dtype.name in ("int16", "uint16"):
        return convert_element_type(x, np.dtype(x.dtype.name.replace("16", "32")))
    return _of_float32(x)


OVER_DEVICES: Final = (psum_p, pmax_p, pmin_p, psum_scatter_p)
EXTREMES: Final = (argmax_p, argmin_p, window_argmax_p, window_argmin_p)
NARROW: Final = (sort_p, top_k_p, cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p)
KNOWN: Final[Table[Callable[[Sequence[Any]], list[Any]]]] = Table({
    **dict.fromkeys(EXTREMES, _every(_ordered)),
    **dict.fromkeys(NARROW, _every(_of_float32)),
    **dict.fromkeys(OVER_DEVICES, _every(_of_nccl)),
    dynamic_slice_p: _behind(1), dynamic_update_slice_p: _behind(2),
    **dict.fromkeys((gather_p, scatter_p, scatter_add_p), _second),
}, otherwise="kernels have it for all their dtypes, or none")


def with_known_dtypes(jaxpr: Jaxpr) -> Jaxpr:
    """The program with conversions around what kernels have for other dtypes alone."""
    if not any(map(_changes, jaxpr.eqns)):
        return jaxpr
    return with_functions(jaxpr, lambda eqn: _converted(eqn) if _changes(eqn) else None)


def _changes(eqn: Equation) -> bool:
    names = {x.aval.dtype.name for x in eqn.invars}
    if eqn.primitive in EXTREMES:
        return not names.isdisjoint((*FLOAT8, *WIDE, "uint64"))
    if eqn.primitive in OVER_DEVICES:
        return not names.isdisjoint((*FLOAT8, "int16", "uint16"))
    return eqn.primitive in KNOWN and not names.isdisjoint(
        FLOAT8 if eqn.primitive in NARROW else ("uint64",))


def _converted(eqn: Equation) -> Callable[..., list[Any]]:
    primitive: Primitive = eqn.primitive

    def call(*operands: Any) -> list[Any]:
        typed = [x if hasattr(x, "dtype") else np.asarray(x, v.aval.dtype)  # of a literal
                 for x, v in zip(operands, eqn.invars, strict=True)]
        outs = primitive.bind(*KNOWN[primitive](typed), **eqn.params)
        return [o if o.dtype == v.aval.dtype else convert_element_type(o, v.aval.dtype)
                for o, v in zip(outs if primitive.multiple_results else [outs], eqn.outvars,
                                strict=True)]

    return call
