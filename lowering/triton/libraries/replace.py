"""Operations that a library computes are equations with its functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator
from typing import Any

from functrans.core.errors import HostStepWarning
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.primitive import Primitive
from functrans.core.prune import prune_jaxpr
from functrans.core.table import Table, merged
from functrans.lowering.passes.rewrite import inlined
from functrans.lowering.triton.libraries import matrices, transforms
from functrans.lowering.triton.libraries.functions import TYPES, library_p
from functrans.primitives.shape import reshape_p

__all__ = ["FUNCTIONS", "LIBRARIES", "replace_by_library_calls"]

FUNCTIONS: Table[Callable[..., Any]] = Table(
    merged(transforms.FUNCTIONS, matrices.FUNCTIONS), otherwise="no library computes it")
LIBRARIES: Table[tuple[str, ...]] = Table(
    {p: ("cufft",) if p in transforms.FUNCTIONS else ("cublas", "cusolver") for p in FUNCTIONS},
    otherwise="it needs no library")

_warned: set[Primitive] = set()


def replace_by_library_calls(jaxpr: Jaxpr, is_there: Callable[[str], bool]) -> Jaxpr:
    """The program with functions of the libraries that are there.

    Of an operation whose library is missing a warning says, once, that the host computes it.
    """
    return prune_jaxpr(_replaced(jaxpr, is_there)) if _concerns(jaxpr) else jaxpr


def _concerns(jaxpr: Jaxpr) -> bool:
    return any(eqn.primitive in FUNCTIONS or any(map(_concerns, subjaxprs(eqn)))
               for eqn in jaxpr.eqns)


def _replaced(jaxpr: Jaxpr, is_there: Callable[[str], bool]) -> Jaxpr:
    env: dict[Var, Atom] = {}
    eqns: list[Equation] = []

    def read(x: Atom) -> Atom:
        return x if isinstance(x, Literal) else env.get(x, x)

    for eqn in jaxpr.eqns:
        eqn = eqn.replace(invars=tuple(map(read, eqn.invars)))
        primitive = eqn.primitive
        if primitive in FUNCTIONS and _is_known(eqn) and _has_libraries(primitive, is_there):
            function = _flat(FUNCTIONS[primitive], eqn)
            outs = inlined(function, eqn.invars, eqns, primitive.name, eqn.source)
            env.update(zip(eqn.outvars, outs, strict=True))
        else:
            params = {k: _in_bodies(v, is_there) for k, v in eqn.params.items()}
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


def _in_bodies(value: Any, is_there: Callable[[str], bool]) -> Any:
    if isinstance(value, Jaxpr):
        return _replaced(value, is_there) if _concerns(value) else value
    if type(value) is tuple and any(isinstance(x, Jaxpr) for x in value):
        return tuple([_in_bodies(x, is_there) for x in value])
    return value


def _flat(function: Callable[..., Any], eqn: Equation) -> Callable[..., list[Any]]:
    def call(*operands: Any) -> list[Any]:
        outs = function(*operands, **eqn.params)
        return outs if eqn.primitive.multiple_results else [outs]

    return call


def _is_known(eqn: Equation) -> bool:
    """Whether the libraries have its dtypes and sizes."""
    avals = [v.aval for v in (*eqn.invars, *eqn.outvars)]
    if not all(isinstance(n, int) and n > 0 for a in avals for n in a.shape):
        return False
    return all(a.dtype.name in TYPES for a in avals[:len(eqn.invars)]) \
        and len(eqn.params.get("fft_lengths", ())) <= transforms.MOST_AXES


def _has_libraries(primitive: Primitive, is_there: Callable[[str], bool]) -> bool:
    missing = [library for library in LIBRARIES[primitive] if not is_there(library)]
    if missing and primitive not in _warned:
        _warned.add(primitive)
        warnings.warn(_note(primitive, missing), HostStepWarning, stacklevel=2)
    return not missing


def _note(primitive: Primitive, missing: Collection[str]) -> str:
    names = " and ".join({"cufft": "cuFFT", "cublas": "cuBLAS", "cusolver": "cuSOLVER"}[x]
                         for x in missing)
    packages = " ".join(f"nvidia-{x}" for x in LIBRARIES[primitive])
    return (f"functrans: {primitive.name} runs on the host, between copies: {names} cannot be "
            f"loaded. `pip install {packages}` (or \"functrans[gpu-libraries]\") brings it to the "
            "GPU.")
