"""Operations outside of compiled programs, in the scope of `debug_nans`: each is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans._runtime import place_array, wrap
from functrans.core import config
from functrans.core.avals import operand_avals
from functrans.core.cuda import gpu_of
from functrans.core.eager import evaluate
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive
from functrans.core.scope import current_scope
from functrans.core.source import operation_source
from functrans.core.trace import Params, Trace, run_in
from functrans.primitives.check import check_p
from functrans.transforms.checks.exact import EagerReplay, is_wrong, not_finite
from functrans.transforms.checks.nonfinite_propagation import bits_of, moves
from functrans.transforms.checks.plan import searched

__all__ = ["CheckTrace"]


class CheckTrace(Trace):
    """Evaluates every operation, and raises the error of one that gives a NaN or an infinity."""

    __slots__ = ()
    kind = "debug_nans"
    watches = True

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        if primitive.compiles:
            return run_in(None, evaluate, primitive, args, params)
        if primitive.higher_order or primitive is check_p:
            return self._exactly(primitive, args, params)
        outs = run_in(None, evaluate, primitive, args, params)
        many = outs if primitive.multiple_results else [outs]
        bits = searched(config.current().checks)
        for out in many:
            has = bits_of(_as_is(out)) & bits
            if has:
                self._found(primitive, args, params, out, has)
        return outs

    def _found(self, primitive: Primitive, args: Sequence[Any], params: Params, out: Any,
               has: int) -> None:
        eqn = _equation(primitive, args, params)
        if moves(eqn):
            return
        values = [_as_is(a) for a in args]
        wrong = is_wrong(eqn, has, [bits_of(v) for v in values], intended=False)
        if wrong:
            jaxpr = Jaxpr((), tuple([a for a in eqn.invars if isinstance(a, Var)]), (eqn,),
                          eqn.outvars)
            raise not_finite(jaxpr, eqn, values, _as_is(out), wrong, ())

    def _exactly(self, primitive: Primitive, args: Sequence[Any], params: Params) -> list[Any]:
        """A loop or branch, which NumPy evaluates anyway, one equation after the other."""
        eqn = _equation(primitive, args, params)
        invars = tuple([Var(a.aval) for a in eqn.invars])
        eqn = eqn.replace(invars=invars)
        jaxpr = Jaxpr((), invars, (eqn,), eqn.outvars)
        gpu = gpu_of(args)
        values = [_as_is(x) for x in args]
        outs, _ = run_in(None, EagerReplay(None).run, jaxpr, values,
                         [False] * len(values), searched(config.current().checks))
        arrays = [wrap(o, v.aval.weak_type) for o, v in zip(outs, eqn.outvars, strict=True)]
        return arrays if gpu is None else [place_array(a, gpu + 1) for a in arrays]


def _as_is(x: Any) -> np.ndarray[Any, Any]:
    """The values in the dtype that the program has: `np.asarray` makes complex64 of complex32."""
    return np.asarray(x, getattr(x, "dtype", None))


def _equation(primitive: Primitive, args: Sequence[Any], params: Params) -> Equation:
    avals = operand_avals(args, primitive.name)
    outs = primitive.type(*avals, **params)
    outvars = tuple(map(Var, outs if primitive.multiple_results else [outs]))
    operands = tuple([Literal(x, a) if type(x) in (bool, int, float, complex) else Var(a)
                      for x, a in zip(args, avals, strict=True)])
    return Equation(primitive, operands, outvars, dict(params),
                    operation_source(current_scope()))
