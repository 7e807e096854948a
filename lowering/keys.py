"""Programs with random keys, for backends that know none: inside, a key is 64 bits of a uint64.

Passes and kernels then move and select keys as any number, by arithmetic too where that is faster.
The inputs and outputs of a program stay keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dtypes import KEY_DTYPES
from functrans.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.primitives.base import Constant
from functrans.primitives.convert import bitcast_convert_type_p

__all__ = ["has_keys", "without_keys"]

BITS = np.dtype(np.uint64)


def has_keys(jaxpr: Jaxpr) -> bool:
    """Whether a value of a program, or of a body in it, is a key."""
    return (any(v.aval.dtype in KEY_DTYPES for v in (*jaxpr.constvars, *jaxpr.invars))
            or any(v.aval.dtype in KEY_DTYPES for eqn in jaxpr.eqns for v in eqn.outvars)
            or any(has_keys(body) for eqn in jaxpr.eqns if eqn.primitive.higher_order
                   for body in subjaxprs(eqn)))


def without_keys(jaxpr: Jaxpr) -> Jaxpr:
    """The same program whose inner values are bits in place of keys."""
    inner = _KeylessBody(jaxpr)
    before = [_cast(outer, var) for outer, var in zip(jaxpr.invars, inner.invars, strict=True)
              if outer is not var]
    after: list[Equation] = []
    outvars: list[Atom] = []
    for outer, var in zip(jaxpr.outvars, inner.outvars, strict=True):
        if outer is not var and outer.aval.dtype in KEY_DTYPES:
            key = Var(outer.aval)
            after.append(_cast(var, key))
            var = key
        outvars.append(var)
    return replace(jaxpr, eqns=(*before, *inner.eqns, *after), outvars=tuple(outvars))


def _cast(source: Atom, target: Var) -> Equation:
    return Equation(bitcast_convert_type_p, (source,), (target,),
                    {"new_dtype": target.aval.dtype})


class _KeylessBody:
    """The parts of a jaxpr, all of whose keys are bits."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self._vars: dict[Var, Var] = {}
        self.invars = tuple(map(self._var, jaxpr.invars))
        self.eqns = tuple(map(self._equation, jaxpr.eqns))
        self.outvars = tuple(map(self._atom, jaxpr.outvars))

    def _var(self, var: Var) -> Var:
        if var.aval.dtype not in KEY_DTYPES:
            return var
        found = self._vars.get(var)
        if found is None:
            found = self._vars[var] = Var(_bits(var.aval))
        return found

    def _atom(self, atom: Atom) -> Atom:
        if isinstance(atom, Var):
            return self._var(atom)
        if atom.aval.dtype not in KEY_DTYPES:
            return atom
        return Literal(_words(atom.value), _bits(atom.aval))

    def _equation(self, eqn: Equation) -> Equation:
        return eqn.replace(invars=tuple(map(self._atom, eqn.invars)),
                           outvars=tuple(map(self._var, eqn.outvars)),
                           params=_params(eqn.params))


def _params(params: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: _param(value) for name, value in params.items()}


def _param(value: Any) -> Any:
    """A parameter of an equation that says the types of values, or holds some."""
    if isinstance(value, Jaxpr):
        return _body(value)
    if isinstance(value, ClosedJaxpr):
        return ClosedJaxpr(_body(value.jaxpr), value.consts)
    if type(value) in (tuple, list):
        return type(value)(map(_param, value))
    if isinstance(value, ShapedArray) and value.dtype in KEY_DTYPES:
        return _bits(value)
    if isinstance(value, np.dtype) and value in KEY_DTYPES:
        return BITS
    if isinstance(value, Constant) and value.value.dtype in KEY_DTYPES:
        return Constant(_words(value.value))
    if isinstance(value, np.generic) and value.dtype in KEY_DTYPES:
        return _words(value)
    return value


_bodies: WeakKeyDictionary[Jaxpr, Jaxpr] = WeakKeyDictionary()


def _body(jaxpr: Jaxpr) -> Jaxpr:
    """A body without keys, its inputs and outputs too; itself where it has none.

    Made once: bodies are looked up by their identity.
    """
    found = _bodies.get(jaxpr)
    if found is None:
        inner = _KeylessBody(jaxpr)
        found = replace(jaxpr, invars=inner.invars, eqns=inner.eqns, outvars=inner.outvars) \
            if has_keys(jaxpr) else jaxpr
        if found is not jaxpr:
            _bodies[jaxpr] = found
    return found


def _bits(aval: ShapedArray) -> ShapedArray:
    return ShapedArray(aval.shape, BITS)


def _words(value: Any) -> Any:
    return np.ascontiguousarray(value).view(BITS).reshape(np.shape(value))[()]
