"""The solution of a linear system by a function of the user's, as a primitive.

Its derivative solves the same system again, and its transpose the transposed one: how the system is
solved is never differentiated.
Source: Christianson, Reverse accumulation and implicit functions, OMS 9 (1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.axes import MappedAxis
from functrans.core.errors import NotDifferentiableError
from functrans.core.evaluate import eval_jaxpr, interpret
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import HigherOrder
from functrans.primitives.arithmetic import neg
from functrans.primitives.broadcast import broadcast_batch
from functrans.transforms.batching import front
from functrans.transforms.custom_call import plus
from functrans.transforms.custom_jvp import closure_tangents
from functrans.transforms.tangents import instantiate, instantiate_aval

__all__ = ["PROGRAMS", "linear_solve_p"]


class LinearSolve(HigherOrder):
    """x with `matvec(x) = b`, as `solve(b)` gives it; what `solve` returns after x is auxiliary.

    Operands are what `matvec`, `solve`, `vecmat` (the transpose of `matvec`) and `transpose_solve`
    close over, `num_consts` of each, and then b. The last two are absent where nobody can tell.
    """

    def type(self, *avals: ShapedArray, solve: Jaxpr, **params: Any) -> list[ShapedArray]:
        return list(solve.out_avals)

    def called(self, operands: Sequence[Any], *, solve: Jaxpr, num_consts: tuple[int, ...],
               **params: Any) -> tuple[Jaxpr, Sequence[Any]]:
        _, of_solve, _, _, b = _groups(operands, num_consts)
        return solve, [*of_solve, *b]

    def evaluate(self, *arrays: Any, **params: Any) -> list[Any]:
        jaxpr, operands = self.called(arrays, **params)
        return interpret(jaxpr, operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp_jaxpr: Any,
            matvec: Jaxpr, num_consts: tuple[int, ...], **params: Any) -> Any:
        def pushed(constants: Sequence[Any], x: Sequence[Any]) -> list[Any]:
            moved, flags = jvp_jaxpr(matvec, [t is not None for t in constants] + [False] * len(x))
            of_matvec = _groups(primals, num_consts)[0]
            outs = eval_jaxpr(moved, (), *of_matvec, *x, *[t for t in constants if t is not None])
            rest = iter(outs[len(x):])
            return [next(rest) if f else None for f in flags]

        return self._derivative(primals, tangents, pushed, matvec=matvec, num_consts=num_consts,
                                **params)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  matvec: Jaxpr, num_consts: tuple[int, ...], **params: Any) -> Any:
        def pushed(constants: Sequence[Any], x: Sequence[Any]) -> list[Any]:
            return closure_tangents(matvec, [*_groups(primals, num_consts)[0], *x], constants,
                                    linearize_jaxpr)

        return self._derivative(primals, tangents, pushed, matvec=matvec, num_consts=num_consts,
                                **params)

    def _derivative(self, primals: Sequence[Any], tangents: Sequence[Any], pushed: Any,
                    **params: Any) -> Any:
        """x and its tangent t: matvec(t) = (tangent of b) - (tangent of matvec)(x)."""
        of_matvec, _, _, _, b_tangents = _groups(tangents, params["num_consts"])
        n, m = len(primals) - len(b_tangents), len(b_tangents)
        outs = self.bind(*primals, **params)
        rest = [None] * (len(outs) - m)
        change = [None] * m if all(t is None for t in of_matvec) else pushed(of_matvec, outs[:m])
        right = [plus(t, None if c is None else neg(c))
                 for t, c in zip(b_tangents, change, strict=True)]
        if all(r is None for r in right):
            return outs, [None] * len(outs)
        right = [instantiate(r, x) for r, x in zip(right, primals[n:], strict=True)]
        return outs, self.bind(*primals[:n], *right, **params)[:m] + rest

    def transpose(self, cts: Sequence[Any], *operands: Any, transpose_jaxpr: Any, matvec: Jaxpr,
                  solve: Jaxpr, num_consts: tuple[int, ...], vecmat: Jaxpr | None = None,
                  transpose_solve: Jaxpr | None = None) -> list[Any]:
        if vecmat is None or transpose_solve is None:
            raise NotDifferentiableError(
                "reverse mode through custom_linear_solve without transpose_solve.",
                why="the gradient solves the transposed system.",
                fix="transpose_solve=..., or symmetric=True where the matrix is")
        groups = _groups(operands, num_consts)
        b = groups[4]
        given = [instantiate_aval(ct, x.aval) for ct, x in zip(cts[:len(b)], b, strict=True)]
        found = self.bind(
            *groups[2], *groups[3], *groups[0], *groups[1], *given, matvec=vecmat,
            solve=transpose_solve, vecmat=matvec, transpose_solve=solve,
            num_consts=(*num_consts[2:], *num_consts[:2]))
        return [None] * sum(num_consts) + list(found[:len(b)])

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: MappedAxis,
              batch_jaxpr: Any, num_consts: tuple[int, ...], **params: Any
              ) -> tuple[list[Any], list[int | None]]:
        *constants, b = _groups([a is not None for a in axes], num_consts)
        mapped = {name: batch_jaxpr(params[name], axis, [*flags, *[True] * len(b)], True)[0]
                  for name, flags in zip(PROGRAMS, constants, strict=True) if name in params}
        n = sum(num_consts)
        moved = front(operands, axes)
        whole = [broadcast_batch(x, axis.size) if a is None else x
                 for x, a in zip(moved[n:], axes[n:], strict=True)]
        outs = self.bind(*moved[:n], *whole, **mapped, num_consts=num_consts)
        return outs, [0] * len(outs)


PROGRAMS = ("matvec", "solve", "vecmat", "transpose_solve")
"""The parameters that are programs, in the order of what they close over."""


def _groups(items: Sequence[Any], num_consts: Sequence[int]) -> list[Sequence[Any]]:
    """What belongs to each of the four programs, and then b."""
    groups, start = [], 0
    for count in num_consts:
        groups.append(items[start:start + count])
        start += count
    return [*groups, items[start:]]


linear_solve_p = LinearSolve()
