"""Staging: running a Python function on typed stand-ins to get its jaxpr.

Values that the function closes over, arrays and tracers of enclosing transforms alike, become
constants of the jaxpr; whoever binds it passes them as operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval, scalar_aval
from functrans.core.axes import manual_axes
from functrans.core.cells import CellScope, FrameKind, cells_in_use, framed
from functrans.core.custom import CustomCall
from functrans.core.dims import Dim, deciding
from functrans.core.errors import DTypeError
from functrans.core.guards import UNDECIDED, sizes_decided
from functrans.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive
from functrans.core.scope import current_scope
from functrans.core.source import Source, operation_source
from functrans.core.trace import Params, Trace, Tracer, get_trace, leaked
from functrans.core.tree import known_leaf
from functrans.core.varying import with_varying

__all__ = ["StageTrace", "StageTracer", "stage", "stage_in"]


@known_leaf
class StageTracer(Tracer):
    """A variable of the jaxpr being built."""

    __slots__ = ("_aval", "_var", "eqn")
    _trace: StageTrace

    def __init__(self, trace: StageTrace, var: Var, eqn: Equation | None = None) -> None:
        self._trace = trace
        self._var = var
        self._aval = var.aval
        self.eqn = eqn

    @property
    def aval(self) -> ShapedArray:
        return self._aval

    @property
    def concrete(self) -> Any:
        self._trace.asked_for_values = True
        return None

    @property
    def origin(self) -> Source | None:
        return self.eqn.source if self.eqn is not None else None


class StageTrace(Trace):
    """Writes every operation down as an equation.

    Scalars are literals; with `keeps_arrays` those of functrans are constants, as all arrays are.
    `asked_for_values` says whether the function looked for a value that Python may know outside of
    a trace: there it may do something else.
    """

    __slots__ = ("_const_vars", "_consts", "_keeps_arrays", "asked_for_values", "eqns", "name")
    kind = "staging (jit, scan, cond, make_jaxpr, ...)"

    def __init__(self, parent: Trace | None, name: str, keeps_arrays: bool = False) -> None:
        super().__init__(parent)
        self._keeps_arrays = keeps_arrays
        self.is_manual = manual_axes() is not None
        self.name = name
        self.eqns: list[Equation] = []
        self._const_vars: dict[int, Var] = {}
        self._consts: list[Any] = []
        self.asked_for_values = False

    def describe(self) -> str:
        return super().describe().replace("staging", f"staging of {self.name}", 1)

    def new_arg(self, aval: ShapedArray) -> StageTracer:
        return StageTracer(self, Var(aval))

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        atoms: list[Any] = [a._var if type(a) is StageTracer and a._trace is self
                            else self._lift(a, primitive) for a in args]
        if None in atoms:
            _fill_scalars(atoms, args, primitive)
        avals = primitive.type(*[a.aval for a in atoms], **params)
        if self.is_manual:
            avals = with_varying(primitive, [a.aval for a in atoms], avals)
        source = operation_source(current_scope())
        if primitive.multiple_results:
            outvars = tuple([Var(a) for a in avals])
            eqn = Equation(primitive, tuple(atoms), outvars, params, source)
            self.eqns.append(eqn)
            return [StageTracer(self, v, eqn) for v in outvars]
        outvar = Var(avals)
        eqn = Equation(primitive, tuple(atoms), (outvar,), params, source)
        self.eqns.append(eqn)
        return StageTracer(self, outvar, eqn)

    def process_custom(self, call: CustomCall, args: Sequence[Any]) -> list[Any]:
        return list(self.run(call.stage, self, args))

    def _lift(self, x: Any, primitive: Primitive) -> Atom | None:
        """The atom of a value from outside; None for a Python scalar, typed by its neighbours."""
        if isinstance(x, Tracer):
            if not x._trace.alive:
                raise leaked(x, primitive.name)
            return self.const_var(x)
        if isinstance(x, (ArrayBase, np.ndarray, np.generic)):
            aval = get_aval(x)
            if not aval.shape and aval.dtype not in dtypes.KEY_DTYPES \
                    and not (self._keeps_arrays and isinstance(x, ArrayBase)):
                return Literal(np.asarray(x, aval.dtype)[()], aval)
            return self.const_var(x)
        if isinstance(x, Dim):
            raise DTypeError(f"{primitive.name} received the symbolic size {x} as an operand.",
                             fix=f"functrans.numpy.asarray({x})")
        return None

    def const_var(self, x: Any) -> Var:
        var = self._const_vars.get(id(x))
        if var is None:
            var = self._const_vars[id(x)] = Var(get_aval(x))
            self._consts.append(x)
        return var

    def atom(self, x: Any) -> Atom:
        """The atom of an output of the function."""
        if type(x) is StageTracer and x._trace is self:
            return x._var
        lifted = self._lift(x, _RETURN)
        if lifted is None:
            aval = get_aval(x)
            return Literal(aval.dtype.type(x), aval)
        return lifted

    def close(self, args: Sequence[StageTracer], outs: Sequence[Any]) -> ClosedJaxpr:
        outvars = tuple(self.atom(x) for x in outs)
        self.alive = False
        invars = tuple(a._var for a in args)
        constvars = tuple(self._const_vars[id(c)] for c in self._consts)
        # a value of NumPy may be wider than its type here
        consts = tuple([np.asarray(c, v.aval.dtype) if isinstance(c, np.ndarray) else c
                        for c, v in zip(self._consts, constvars, strict=True)])
        jaxpr = Jaxpr(constvars, invars, tuple(self.eqns), outvars, name=self.name)
        return ClosedJaxpr(jaxpr, consts)


class _Return(Primitive, abstract=True):
    name = "return"


_RETURN = _Return()


def _fill_scalars(atoms: list[Any], args: Sequence[Any], primitive: Primitive) -> None:
    """Type Python scalars by the last array operand, as every backend does."""
    dtype = next((a.aval.dtype for a in reversed(atoms) if a is not None), None)
    for i, atom in enumerate(atoms):
        if atom is None:
            aval = scalar_aval(args[i], dtype, primitive.name)
            atoms[i] = Literal(aval.dtype.type(args[i]), aval)


def stage(fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray], *,
          name: str = "fn", keeps_arrays: bool = False) -> ClosedJaxpr:
    """The jaxpr of `fun`, which takes and returns flat sequences of arrays.

    Its constants are the arrays and outer tracers that `fun` closes over, scalars of functrans
    among them with `keeps_arrays`.
    """
    return stage_in(StageTrace(get_trace(), name, keeps_arrays), fun, in_avals)


def stage_in(trace: StageTrace, fun: Callable[..., Sequence[Any]],
             in_avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The same in a trace that was made for it."""
    args = [trace.new_arg(aval) for aval in in_avals]
    sealed = framed(FrameKind.SEALED, trace, trace.name) if cells_in_use() else nullcontext()
    try:
        # `run_scoped`, without its frame: functions in functions take as few as can be
        with sizes_decided(deciding.scope or UNDECIDED), sealed, CellScope(trace) as scope:
            outs = scope.ended(trace.run(fun, *args))
        return trace.close(args, outs)
    finally:
        trace.alive = False
