"""Derivatives at a point as values: functions that are pytrees, whose leaves are the residuals.

`vjp` and `linearize` return them. They leave `jit`, and go through loops, branches and `vmap`, as
any pytree does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.cells import RefCell
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Jaxpr
from functrans.core.keypath import SequenceKey
from functrans.core.prune import prune_jaxpr, used_inputs
from functrans.core.record import Record
from functrans.core.staging import stage
from functrans.core.trace import Tracer
from functrans.core.tree_registry import register_pytree_with_keys
from functrans.primitives.convert import convert_element_type
from functrans.transforms.linear import transpose_flat
from functrans.transforms.linearize import LinearMap, end_states

__all__ = ["LinearFunction", "StagedMap", "register_linear_function"]


class StagedMap(Record, eq=False):
    """A linear map as a jaxpr from residuals and tangents to the tangents of outputs."""

    jaxpr: Jaxpr
    residuals: tuple[Any, ...]
    nonzero: tuple[bool, ...]
    cells: tuple[RefCell, ...] = ()

    def forwards(self, tangents: Sequence[Any]) -> list[Any]:
        """Output tangents, None for zero."""
        tangents = [*tangents, *[np.zeros(a.shape, a.dtype) for a in self._state_avals()]]
        outs = iter(eval_jaxpr(self.jaxpr, (), *self.residuals, *tangents))
        return [next(outs) if nz else None for nz in self.nonzero]

    def backwards(self, cotangents: Sequence[Any]) -> list[Any]:
        """Cotangents of the inputs, None for zero."""
        avals = self.jaxpr.in_avals[len(self.residuals):]
        cts = [ct for ct, nz in zip(cotangents, self.nonzero, strict=True) if nz]
        cts += [convert_element_type(c.value, a.dtype)
                for c, a in zip(self.cells, self._state_avals(), strict=True)]
        found = transpose_flat(lambda *ts: eval_jaxpr(self.jaxpr, (), *self.residuals, *ts), avals,
                               cts)
        count = len(found) - len(self.cells)
        end_states(self.cells, found[count:])
        return found[:count]

    def _state_avals(self) -> tuple[ShapedArray, ...]:
        """The types of the last inputs, which stand for cells."""
        return self.jaxpr.in_avals[len(self.jaxpr.invars) - len(self.cells):]


def staged(linear: LinearMap, name: str) -> StagedMap:
    """A recorded map as a jaxpr; the values that it was recorded with are the residuals."""
    trace = linear.trace
    residuals = list({id(a): a for eqn in trace.tape for a in eqn.args if not trace.is_mine(a)
                      and isinstance(a, (ArrayBase, Tracer, np.ndarray, np.generic))}.values())
    inputs = [*[x for x in linear.inputs if x is not None], *linear.states.inputs]
    all_outs = [*linear.outs, *linear.states.outs]

    def fun(*given: Any) -> list[Any]:
        values = {id(r): v for r, v in zip(residuals, given, strict=False)}
        outs = trace.forwards(inputs, given[len(residuals):], all_outs, values)
        return [o for o in outs if o is not None]

    closed = stage(fun, [*map(get_aval, residuals), *(x.aval for x in inputs)], name=name)
    jaxpr = prune_jaxpr(closed.jaxpr.hoist_consts())
    residuals = [*closed.consts, *residuals]
    used = used_inputs(jaxpr)[:len(residuals)]
    invars = [v for v, u in zip(jaxpr.invars, used, strict=False) if u]
    jaxpr = Jaxpr((), (*invars, *jaxpr.invars[len(residuals):]), jaxpr.eqns, jaxpr.outvars,
                  name=name)
    return StagedMap(jaxpr, tuple([r for r, u in zip(residuals, used, strict=True) if u]),
                     tuple([o is not None for o in linear.outs]), linear.states.cells)


class _Structure(Record, eq=False):
    """The static part of a linear function: compared by identity, as its program is."""

    jaxpr: Jaxpr
    nonzero: tuple[bool, ...]
    types: Any
    cells: tuple[RefCell, ...]


_Function = TypeVar("_Function", bound="LinearFunction")


class LinearFunction:
    """A derivative at a point; `_types` holds what is known of it without the residuals."""

    __slots__ = ("_derivative", "_structure", "_types")

    def __init__(self, derivative: LinearMap | StagedMap, types: Any,
                 structure: _Structure | None = None) -> None:
        self._derivative = derivative
        self._types = types
        self._structure = structure

    def __copy__(self: _Function) -> _Function:
        return self

    def __deepcopy__(self: _Function, memo: Any) -> _Function:
        return self  # its residuals are immutable


def register_linear_function(cls: type[_Function]) -> type[_Function]:
    """Class decorator: instances are nodes, and their children the residuals.

    An instance is staged when it is flattened for the first time.
    """
    def flatten(function: _Function) -> tuple[tuple[tuple[Any, Any], ...], _Structure]:
        if isinstance(function._derivative, LinearMap):
            function._derivative = staged(function._derivative, cls.__name__.lower())
        found = function._derivative
        if function._structure is None:
            function._structure = _Structure(found.jaxpr, found.nonzero, function._types,
                                             found.cells)
        children = tuple([(SequenceKey(i), r) for i, r in enumerate(found.residuals)])
        return children, function._structure

    def unflatten(structure: _Structure, children: Iterable[Any]) -> _Function:
        found = StagedMap(structure.jaxpr, tuple(children), structure.nonzero, structure.cells)
        return cls(found, structure.types, structure)

    register_pytree_with_keys(cls, flatten, unflatten)
    return cls
