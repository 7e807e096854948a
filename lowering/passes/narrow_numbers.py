"""Programs in which narrow numbers are bytes: floats of 4 and 8 bits, integers of 2 and 4.

What moves numbers moves their bytes. Anything else computes in float32, or in bytes with or without
a sign, and rounds its results, each operation for itself, as NumPy does with those of ml_dtypes.
Conversions are arithmetic on the bits of a float (`narrow_formats.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive
from functrans.core.table import Table
from functrans.lowering.passes.narrow_formats import NARROW, narrowed, widened
from functrans.lowering.passes.rewrite import inlined
from functrans.primitives.arithmetic import sub
from functrans.primitives.barrier import optimization_barrier_p
from functrans.primitives.base import Constant, constant_p, full, full_p
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.callback import (
    check_result,
    debug_callback_p,
    io_callback_p,
    pure_callback_p,
)
from functrans.primitives.compare import OfAllBits, clz_p, select_n_p
from functrans.primitives.convert import (
    bitcast_convert_type,
    bitcast_convert_type_p,
    convert_element_type,
    convert_element_type_p,
)
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.index import gather_p
from functrans.primitives.index_layout import default_fill
from functrans.primitives.scatter import scatter_p
from functrans.primitives.shape import concatenate_p, pad_p, reshape_p, rev_p, slice_p

__all__ = ["NARROW", "in_bytes"]

BYTE: Final = np.dtype(np.uint8)
MOVES: Final[frozenset[Primitive]] = frozenset((
    broadcast_in_dim_p, concatenate_p, optimization_barrier_p, pad_p, reshape_p, rev_p, select_n_p,
    slice_p, transpose_p))
"""What does not look at the numbers that it moves."""


def in_bytes(jaxpr: Jaxpr, names: Collection[str] = NARROW) -> Jaxpr:
    """The program with bytes in place of numbers of these dtypes, inputs and outputs included;
    itself where it has none."""
    return _Bytes(jaxpr, names).retyped() if _has_narrow(jaxpr, names) else jaxpr


def _has_narrow(jaxpr: Jaxpr, names: Collection[str]) -> bool:
    return any(dtype.name in names for dtype in jaxpr.dtypes) \
        or any(_has_narrow(body, names) for eqn in jaxpr.calls for body in _bodies(eqn))


def _bodies(eqn: Equation) -> list[Jaxpr]:
    return [body for value in eqn.params.values()
            for body in (value if isinstance(value, tuple) else (value,))
            if isinstance(body, Jaxpr)]


class _Bytes:
    def __init__(self, jaxpr: Jaxpr, names: Collection[str]) -> None:
        self.jaxpr = jaxpr
        self.names = names
        self.eqns: list[Equation] = []
        self.atoms: dict[Atom, Atom] = {}

    def retyped(self) -> Jaxpr:
        invars = [self.enter(v) for v in self.jaxpr.invars]
        for eqn in self.jaxpr.eqns:
            if eqn.primitive.higher_order and _bodies(eqn):
                self.keep(eqn, {key: self.of_bodies(value) for key, value in eqn.params.items()})
            elif any(map(self.is_narrow, (*eqn.invars, *eqn.outvars))):
                self.equation(eqn)
            else:
                self.keep(eqn, eqn.params)
        return Jaxpr((), tuple(invars), tuple(self.eqns),
                     tuple(map(self.atom, self.jaxpr.outvars)), name=self.jaxpr.name)

    def is_narrow(self, x: Atom) -> bool:
        return x.aval.dtype.name in self.names

    def enter(self, v: Var) -> Var:
        """The variable that stands for one of the given program."""
        new = Var(ShapedArray(v.aval.shape, BYTE)) if self.is_narrow(v) else v
        self.atoms[v] = new
        return new

    def atom(self, x: Atom) -> Atom:
        if not isinstance(x, Literal):
            return self.atoms[x]
        if not self.is_narrow(x):
            return x
        return Literal(_byte_of(x.value, x.aval.dtype), ShapedArray((), BYTE))

    def of_bodies(self, value: Any) -> Any:
        if isinstance(value, Jaxpr):
            return in_bytes(value, self.names)
        return tuple(map(self.of_bodies, value)) if isinstance(value, tuple) else value

    def keep(self, eqn: Equation, params: Mapping[str, Any]) -> None:
        self.eqns.append(eqn.replace(invars=tuple(map(self.atom, eqn.invars)), params=dict(params),
                                     outvars=tuple(map(self.enter, eqn.outvars))))

    def equation(self, eqn: Equation) -> None:
        if eqn.primitive in MOVES:
            self.keep(eqn, eqn.params)
            return
        rule = RULES.get(eqn.primitive, _computed)
        narrow = [x.aval.dtype if self.is_narrow(x) else None for x in eqn.invars]
        outs = inlined(partial(rule, eqn, narrow, self.names), [self.atom(x) for x in eqn.invars],
                       self.eqns, eqn.primitive.name, eqn.source)
        self.atoms.update(zip(eqn.outvars, outs, strict=True))


def _byte_of(value: Any, dtype: np.dtype[Any]) -> Any:
    return np.asarray(value).astype(dtype).view(BYTE)[()]


# --- What takes the place of an equation: operands are bytes where a dtype is given, and so are the
#     results where those of the equation are of such dtypes

Dtypes = Sequence[np.dtype[Any] | None]


def _computed(eqn: Equation, narrow: Dtypes, names: Collection[str], *xs: Any) -> list[Any]:
    """In wider numbers, each result rounded."""
    unsigned = isinstance(eqn.primitive, OfAllBits)
    wide = [x if dtype is None else widened(x, dtype, unsigned)
            for x, dtype in zip(xs, narrow, strict=True)]
    params = {key: dtypes.wide_dtype(value) if isinstance(value, np.dtype) and value.name in names
              else value for key, value in eqn.params.items()}
    found: Any = eqn.primitive.bind(*wide, **params)
    outs = found if eqn.primitive.multiple_results else [found]
    if eqn.primitive is clz_p:
        missing = 8 - dtypes.iinfo(eqn.outvars[0].aval.dtype).bits
        outs = [sub(outs[0], full(outs[0].shape, missing, outs[0].dtype))]
    return [narrowed(out, v.aval.dtype) if v.aval.dtype.name in names else out
            for out, v in zip(outs, eqn.outvars, strict=True)]


def _moved(first_index: int, last_index: int | None) -> Callable[..., list[Any]]:
    """Bytes to or from places, which are numbers."""
    def rule(eqn: Equation, narrow: Dtypes, names: Collection[str], *xs: Any) -> list[Any]:
        places = range(len(xs))[first_index:last_index]
        return [eqn.primitive.bind(*[
            widened(x, dtype) if dtype is not None and k in places else x
            for k, (x, dtype) in enumerate(zip(xs, narrow, strict=True))], **eqn.params)]

    return rule


def _convert(eqn: Equation, narrow: Dtypes, names: Collection[str], x: Any) -> list[Any]:
    old, new = narrow[0], eqn.params["new_dtype"]
    if old is not None:
        x = widened(x, old)
    return [narrowed(x, new) if new.name in names else convert_element_type(x, new)]


def _bitcast(eqn: Equation, narrow: Dtypes, names: Collection[str], x: Any) -> list[Any]:
    new = eqn.params["new_dtype"]
    new = BYTE if new.name in names else new
    return [x if x.dtype == new else bitcast_convert_type(x, new)]


def _full(eqn: Equation, narrow: Dtypes, names: Collection[str]) -> list[Any]:
    p = eqn.params
    return [full_p.bind(shape=p["shape"], dtype=BYTE, value=int(_byte_of(p["value"], p["dtype"])))]


def _constant(eqn: Equation, narrow: Dtypes, names: Collection[str]) -> list[Any]:
    return [constant_p.bind(value=Constant(eqn.params["value"].value.view(BYTE)))]


def _gather(eqn: Equation, narrow: Dtypes, names: Collection[str], x: Any,
            indices: Any) -> list[Any]:
    if narrow[1] is not None:
        indices = widened(indices, narrow[1])
    dtype, fill = eqn.outvars[0].aval.dtype, eqn.params["fill_value"]
    if narrow[0] is not None:
        fill = int(_byte_of(default_fill(dtype) if fill is None else fill, dtype))
    return [gather_p.bind(x, indices, **{**eqn.params, "fill_value": fill})]


def _called(eqn: Equation, narrow: Dtypes, names: Collection[str], *xs: Any) -> list[Any]:
    """Python is given, and gives, what it was promised."""
    callback, out_avals = eqn.params["callback"], eqn.params["out_avals"]
    are_bytes = [aval.dtype.name in names for aval in out_avals]

    def call(*arrays: Any) -> list[Any]:
        found = callback(*[x if dtype is None else x.view(dtype)
                           for x, dtype in zip(arrays, narrow, strict=True)])
        return [check_result(out, aval, callback).view(BYTE) if as_bytes else out
                for out, aval, as_bytes in zip(found, out_avals, are_bytes, strict=True)]

    typed = tuple([ShapedArray(aval.shape, BYTE) if as_bytes else aval
                   for aval, as_bytes in zip(out_avals, are_bytes, strict=True)])
    found: Any = eqn.primitive.bind(*xs, **{
        **eqn.params, "callback": replace(callback, fun=call), "out_avals": typed})
    return list(found)


RULES: Final[Table[Callable[..., list[Any]]]] = Table({
    convert_element_type_p: _convert, bitcast_convert_type_p: _bitcast, full_p: _full,
    constant_p: _constant, gather_p: _gather, dynamic_slice_p: _moved(1, None),
    dynamic_update_slice_p: _moved(2, None), scatter_p: _moved(1, 2),
    **dict.fromkeys((pure_callback_p, io_callback_p, debug_callback_p), _called),
}, otherwise="it is computed in wider numbers")
