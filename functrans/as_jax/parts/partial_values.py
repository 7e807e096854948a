"""`PartialVal` of jax.interpreters.partial_eval: a value, or a type where it is not known.

`trace_to_jaxpr_nounits` gives the program of what depends on unknown values; known arguments are
constants of it, which operations among themselves are evaluated on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from functrans.core.avals import ShapedArray
from functrans.core.convert import to_arrays
from functrans.core.staging import StageTracer, stage
from functrans.extend.linear_util import WrappedFun

__all__ = ["PartialVal", "trace_to_jaxpr_nounits"]


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
    avals = iter(closed.out_avals)
    outs = [PartialVal.unknown(next(avals)) if instantiate or isinstance(x, StageTracer)
            else PartialVal.known(x) for x in outs_seen]
    return closed.jaxpr, outs, list(closed.consts)
