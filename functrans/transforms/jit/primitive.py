"""The primitive of a call of a jitted function inside another program, with its rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core import config
from functrans.core.axes import MappedAxis
from functrans.core.compiling import for_compiler
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import Linear
from functrans.transforms.jit.executables import (
    executable_of,
    takes_arrays,
    to_machine_code,
    wrapped,
)
from functrans.transforms.program_call import ProgramCall

__all__ = ["checked_p", "jit_p"]


class Jit(ProgramCall):
    """A program compiled as a unit."""

    compiles = True

    def evaluate(self, *arrays: Any, jaxpr: Jaxpr, **params: Any) -> list[Any]:
        return executable_of(jaxpr).run([np.asarray(a) for a in arrays])

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        jaxpr = params["jaxpr"]
        run = executable_of(jaxpr, values=args).at([np.shape(x) for x in args]).run
        if takes_arrays(run):  # on arrays where they are
            outs = run(list(args))
            return [wrapped(o, a.weak_type) for o, a in zip(outs, jaxpr.out_avals, strict=True)]
        return super().evaluate_eagerly(args, params)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  jaxpr: Jaxpr, **params: Any) -> tuple[list[Any], list[Any]]:
        split = linearize_jaxpr(jaxpr, [t is not None for t in tangents])
        n = len(jaxpr.outvars)
        outs = self.bind(*primals, jaxpr=split.primal, **params)
        residuals = split.residuals(primals, outs[n:])
        results = iter(self.bind(*residuals, *[t for t in tangents if t is not None],
                                 jaxpr=split.linear, **params))
        return outs[:n], [next(results) if nz else None for nz in split.nonzero]

    def transpose(self, cts: Sequence[Any], *operands: Any, transpose_jaxpr: Any, jaxpr: Jaxpr,
                  **params: Any) -> list[Any]:
        linear = [isinstance(x, Linear) for x in operands]
        back = transpose_jaxpr(jaxpr, linear, [ct is not None for ct in cts])
        results = iter(self.bind(*[x for x in operands if not isinstance(x, Linear)],
                                 *[ct for ct in cts if ct is not None], jaxpr=back, **params))
        return [next(results) if lin else None for lin in linear]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: MappedAxis,
              batch_jaxpr: Any, jaxpr: Jaxpr, **params: Any) -> tuple[list[Any], list[int | None]]:
        def batch_for_compiler(*args: Any) -> Any:
            with for_compiler(to_machine_code()):
                return batch_jaxpr(*args)

        return super().batch(operands, axes, axis=axis, batch_jaxpr=batch_for_compiler,
                             jaxpr=jaxpr, **params)


class Checked(Jit):
    """A program that looks for `checks` while it runs, whatever the program around it does."""

    def evaluate(self, *arrays: Any, jaxpr: Jaxpr, **params: Any) -> list[Any]:
        with config.scope(checks=params["checks"]):
            return super().evaluate(*arrays, jaxpr=jaxpr, **params)

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        with config.scope(checks=params["checks"]):
            return super().evaluate_eagerly(args, params)


jit_p, checked_p = Jit(), Checked()
