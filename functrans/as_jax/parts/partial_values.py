"""`PartialVal` of jax.interpreters.partial_eval: a value, or a type where it is not known.

`trace_to_jaxpr_nounits` gives the program of what depends on unknown values; what depends on known
ones alone is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from functrans.core.avals import ShapedArray
from functrans.core.convert import to_arrays
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.core.prune import prune_jaxpr
from functrans.core.staging import StageTracer, stage
from functrans.extend.linear_util import WrappedFun
from functrans.transforms.program_call import ProgramCall

__all__ = ["PartialVal", "trace_to_jaxpr_nounits"]

_UNKNOWN: Final = object()


class PartialVal(NamedTuple):
    """A pair: a type where the value is not known, else None; and the value, if it is known."""

    aval: ShapedArray | None
    const: Any

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        return cls(aval, None)

    def is_known(self) -> bool:
        return self.aval is None

    def get_known(self) -> Any:
        """The value, or None where it is not known."""
        return self.const if self.is_known() else None


def trace_to_jaxpr_nounits(fun: WrappedFun, pvals: Sequence[PartialVal],
                           instantiate: bool = False) -> tuple[Any, list[PartialVal], list[Any]]:
    """The program of a flat function in its unknown arguments, its results, and its constants.

    A result that no unknown argument reaches is known, unless `instantiate`.
    """
    outs_seen: list[Any] = []

    def flat(*unknown: Any) -> list[Any]:
        given = iter(unknown)
        outs_seen[:] = list(fun.call_wrapped(
            *[p.const if p.is_known() else next(given) for p in pvals]))
        return [x for x in to_arrays(outs_seen, "a result")
                if instantiate or isinstance(x, StageTracer)]

    closed = stage(flat, [p.aval for p in pvals if p.aval is not None], name=fun.__name__)
    jaxpr = closed.jaxpr
    unknown = [_UNKNOWN] * len(jaxpr.invars)
    values = iter([_UNKNOWN] * len(jaxpr.outvars) if instantiate
                  else _evaluated(jaxpr, [*closed.consts, *unknown]))
    avals = iter(closed.out_avals)
    outs = []
    for x in outs_seen:
        if not instantiate and not isinstance(x, StageTracer):
            outs.append(PartialVal.known(x))
            continue
        value, aval = next(values), next(avals)
        outs.append(PartialVal.unknown(aval) if value is _UNKNOWN else PartialVal.known(value))
    of_program = [p for p, x in zip(outs, outs_seen, strict=True)
                  if instantiate or isinstance(x, StageTracer)]
    left = tuple([v for v, p in zip(jaxpr.outvars, of_program, strict=True) if not p.is_known()])
    return prune_jaxpr(jaxpr.replace(outvars=left)), outs, list(closed.consts)


def _evaluated(jaxpr: Jaxpr, inputs: Sequence[Any]) -> list[Any]:
    """The results of a program, as far as they do not depend on inputs that are _UNKNOWN.

    They are found before they are computed, so that nothing is that no such result needs.
    """
    known = _interpreted(jaxpr, inputs, lambda eqn, ins: [None] * len(eqn.outvars))
    wanted = tuple([v for v, x in zip(jaxpr.outvars, known, strict=True) if x is not _UNKNOWN])
    values = iter(_interpreted(prune_jaxpr(jaxpr.replace(outvars=wanted)), inputs, _applied)
                  if wanted else [])
    return [x if x is _UNKNOWN else next(values) for x in known]


def _interpreted(jaxpr: Jaxpr, inputs: Sequence[Any],
                 apply: Callable[[Equation, list[Any]], list[Any]]) -> list[Any]:
    env: dict[Var, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), inputs, strict=True))
    for eqn in jaxpr.eqns:
        ins = [a.operand if isinstance(a, Literal) else env[a] for a in eqn.invars]
        if all(x is not _UNKNOWN for x in ins):
            outs = apply(eqn, ins)
        elif isinstance(eqn.primitive, ProgramCall):  # of its results some may be known
            outs = _interpreted(eqn.params["jaxpr"], ins, apply)
        else:
            outs = [_UNKNOWN] * len(eqn.outvars)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [a.operand if isinstance(a, Literal) else env[a] for a in jaxpr.outvars]


def _applied(eqn: Equation, ins: list[Any]) -> list[Any]:
    outs = eqn.primitive.bind(*ins, **eqn.params)
    return list(outs) if eqn.primitive.multiple_results else [outs]
