"""Operations that a library computes are equations with its functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.primitive import Primitive
from functrans.core.prune import prune_jaxpr
from functrans.core.table import Table, merged
from functrans.lowering.passes.rewrite import inlined
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.triton.libraries import matrices, transforms
from functrans.lowering.triton.libraries.functions import TYPES, library_p
from functrans.lowering.triton.libraries.small_systems import is_small_and_fast
from functrans.primitives.convert import convert_element_type
from functrans.primitives.shape import reshape_p

__all__ = ["FUNCTIONS", "LIBRARIES", "is_known", "replace_by_library_calls"]

FUNCTIONS: Table[Callable[..., Any]] = Table(
    merged(transforms.FUNCTIONS, matrices.FUNCTIONS), otherwise="no library computes it")
NARROW = frozenset(("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"))
LIBRARIES: Table[tuple[str, ...]] = Table(
    {p: ("cufft",) if p in transforms.FUNCTIONS else ("cublas", "cusolver") for p in FUNCTIONS},
    otherwise="it needs no library")


def replace_by_library_calls(jaxpr: Jaxpr, is_there: Callable[[str], bool],
                             target: Target = HOPPER) -> Jaxpr:
    """The program with functions of the libraries that are there, but for what kernels do as fast.

    The host computes what has neither.
    """
    return prune_jaxpr(_replaced(jaxpr, is_there, target)) if _concerns(jaxpr) else jaxpr


def _concerns(jaxpr: Jaxpr) -> bool:
    return any(eqn.primitive in FUNCTIONS or any(map(_concerns, subjaxprs(eqn)))
               for eqn in jaxpr.eqns)


def _replaced(jaxpr: Jaxpr, is_there: Callable[[str], bool], target: Target) -> Jaxpr:
    env: dict[Var, Atom] = {}
    eqns: list[Equation] = []

    def read(x: Atom) -> Atom:
        return x if isinstance(x, Literal) else env.get(x, x)

    for eqn in jaxpr.eqns:
        eqn = eqn.replace(invars=tuple(map(read, eqn.invars)))
        primitive = eqn.primitive
        if primitive in FUNCTIONS and is_known(eqn) and not is_small_and_fast(eqn, target) \
                and _has_libraries(primitive, is_there):
            function = _flat(FUNCTIONS[primitive], eqn)
            outs = inlined(function, eqn.invars, eqns, primitive.name, eqn.source)
            env.update(zip(eqn.outvars, outs, strict=True))
        else:
            params = {k: _in_bodies(v, is_there, target) for k, v in eqn.params.items()}
            eqns.append(eqn.replace(params=params))
    return Jaxpr(jaxpr.constvars, jaxpr.invars, tuple(_without_copies(eqns)),
                 tuple(map(read, jaxpr.outvars)), name=jaxpr.name)


def _without_copies(eqns: list[Equation]) -> Iterator[Equation]:
    """Operands as they are before a reshape: the numbers of a function say what is where."""
    shaped: dict[Atom, Atom] = {}
    for eqn in eqns:
        if eqn.primitive is library_p:
            eqn = eqn.replace(invars=tuple([shaped.get(x, x) for x in eqn.invars]))
        elif eqn.primitive is reshape_p:
            shaped[eqn.outvars[0]] = shaped.get(eqn.invars[0], eqn.invars[0])
        yield eqn


def _in_bodies(value: Any, is_there: Callable[[str], bool], target: Target) -> Any:
    if isinstance(value, Jaxpr):
        return _replaced(value, is_there, target) if _concerns(value) else value
    if type(value) is tuple and any(isinstance(x, Jaxpr) for x in value):
        return tuple([_in_bodies(x, is_there, target) for x in value])
    return value


def _flat(function: Callable[..., Any], eqn: Equation) -> Callable[..., list[Any]]:
    def call(*operands: Any) -> list[Any]:
        outs = function(*map(_widened, operands), **eqn.params)
        return [_as(o, v) for o, v in zip(outs if eqn.primitive.multiple_results else [outs],
                                          eqn.outvars, strict=True)]

    return call


def _widened(x: Any) -> Any:
    """An operand as the libraries take it: floats of 8 and 16 bits in float32."""
    return convert_element_type(x, np.dtype(np.float32)) if x.dtype.name in NARROW else x


def _as(x: Any, v: Var) -> Any:
    return x if x.dtype == v.aval.dtype else convert_element_type(x, v.aval.dtype)


def is_known(eqn: Equation) -> bool:
    """Whether the libraries have the dtypes and sizes of an operation of theirs."""
    avals = [v.aval for v in (*eqn.invars, *eqn.outvars)]
    if not all(isinstance(n, int) and n > 0 for a in avals for n in a.shape):
        return False
    return all(a.dtype.name in {*TYPES, *NARROW} for a in avals[:len(eqn.invars)]) \
        and len(eqn.params.get("fft_lengths", ())) <= transforms.MOST_AXES


def _has_libraries(primitive: Primitive, is_there: Callable[[str], bool]) -> bool:
    return all(map(is_there, LIBRARIES[primitive]))
