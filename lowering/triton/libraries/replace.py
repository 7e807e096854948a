"""Operations that a library computes are equations with its functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var, subjaxprs
from functrans.core.primitive import Primitive
from functrans.core.prune import prune_jaxpr
from functrans.core.table import Table, merged
from functrans.lowering.passes.rewrite import with_bodies, with_functions
from functrans.lowering.schedule.target import HOPPER, Target
from functrans.lowering.triton.libraries import matrices, transforms
from functrans.lowering.triton.libraries.complex_systems import is_real_and_fast, solve_as_real
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
    def function_of(eqn: Equation) -> Callable[..., Sequence[Any]] | None:
        if is_real_and_fast(eqn, target):
            return solve_as_real
        known = eqn.primitive in FUNCTIONS and is_known(eqn) and not is_small_and_fast(eqn, target)
        return _flat(FUNCTIONS[eqn.primitive], eqn) \
            if known and _has_libraries(eqn.primitive, is_there) else None

    replaced = with_bodies(
        with_functions(jaxpr, function_of),
        lambda body: _replaced(body, is_there, target) if _concerns(body) else body)
    return Jaxpr(replaced.constvars, replaced.invars, tuple(_without_copies(replaced.eqns)),
                 replaced.outvars, name=replaced.name)


def _without_copies(eqns: Sequence[Equation]) -> Iterator[Equation]:
    """Operands as they are before a reshape: the numbers of a function say what is where."""
    shaped: dict[Atom, Atom] = {}
    for eqn in eqns:
        if eqn.primitive is library_p:
            eqn = eqn.replace(invars=tuple([shaped.get(x, x) for x in eqn.invars]))
        elif eqn.primitive is reshape_p:
            shaped[eqn.outvars[0]] = shaped.get(eqn.invars[0], eqn.invars[0])
        yield eqn


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
