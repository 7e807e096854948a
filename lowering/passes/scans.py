"""A scan taken apart and put together again, for the laws that move work out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.lowering.passes.rewrite import Rewriter, count_uses
from functrans.primitives.control_flow.bodies import counted
from functrans.primitives.control_flow.scan import scan_p

__all__ = ["FEW", "SHORTEST", "ScanParts", "nbytes", "rebuilt", "stack_of"]

FEW = 1 << 20  # bytes
SHORTEST = 8  # iterations
TYPICAL = 64  # what a size is taken to be that is not known


def nbytes(x: Atom) -> int:
    """The bytes of an array, or about how many where sizes are not known."""
    size: int = x.aval.dtype.itemsize
    for n in x.aval.shape:
        size *= n if isinstance(n, int) else TYPICAL
    return size


class ScanParts(NamedTuple):
    """A scan taken apart."""

    consts: list[Atom]
    carry: list[Atom]
    xs: list[Atom]
    v_consts: list[Var]
    v_carry: list[Var]
    v_xs: list[Var]
    out_carry: list[Atom]
    out_ys: list[Atom]
    makers: dict[Atom, Equation]
    uses: dict[Atom, int]

    @staticmethod
    def of(eqn: Equation) -> ScanParts:
        p = eqn.params
        nc, nk, body = p["num_consts"], p["num_carry"], p["jaxpr"]
        consts, carry, xs = counted(eqn.invars, nc, nk)
        v_consts, v_carry, v_xs = counted(body.invars, nc, nk)
        out_carry, out_ys = counted(body.outvars, nk)
        makers: dict[Atom, Equation] = {v: e for e in body.eqns for v in e.outvars}
        return ScanParts(consts, carry, xs, v_consts, v_carry, v_xs, out_carry, out_ys, makers,
                         count_uses(body))

    def has_room(self, eqn: Equation, stacked: Sequence[Atom], carried: int = 0) -> bool:
        """Whether to stack such values, one for each iteration.

        `carried` is the number of bytes that the loop need no longer carry for it. What is smaller
        than that costs less to write down than to add up.
        """
        length = eqn.params["length"]
        length = length if isinstance(length, int) else TYPICAL
        new = sum([nbytes(x) for x in stacked])
        if length < (2 if new < carried else SHORTEST):
            return False
        there = sum([nbytes(x) for x in (*self.xs, *eqn.outvars[len(self.carry):])])
        return new * length <= max(FEW, there, 2 * carried)


def rebuilt(r: Rewriter, eqn: Equation, loop: ScanParts, eqns: Sequence[Equation],
            outvars: Sequence[Var]) -> tuple[Atom, ...]:
    """The scan with the parts of `loop`."""
    body = eqn.params["jaxpr"]
    jaxpr = Jaxpr((), (*loop.v_consts, *loop.v_carry, *loop.v_xs), tuple(eqns),
                  (*loop.out_carry, *loop.out_ys), name=body.name)
    params = {**eqn.params, "jaxpr": jaxpr, "num_consts": len(loop.consts),
              "num_carry": len(loop.carry)}
    return r.emit(Equation(scan_p, (*loop.consts, *loop.carry, *loop.xs), tuple(outvars), params,
                           eqn.source))


def stack_of(eqn: Equation, x: Atom) -> Var:
    """A variable for the values of x in all iterations."""
    return Var(ShapedArray((eqn.params["length"], *x.aval.shape), x.aval.dtype))
