"""Loops as programs of one lane: a call that a backend writes as one kernel."""

from __future__ import annotations

from collections.abc import Mapping

from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.primitive import Primitive
from functrans.lowering.loops.tensor import DTYPES, NARROW, Call, Tensor, dtype_name
from functrans.lowering.passes.lanes import (
    IN_VECTORS,
    LaneLimits,
    LaneProgram,
    lane_program_or_reason,
)
from functrans.lowering.rules.elementwise import ELEMENTWISE
from functrans.lowering.rules.graph import CALLS, RULES, CallRule, results_of
from functrans.lowering.rules.reduce import summed_dot_general
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.random import philox4x32_p, threefry2x32_p

__all__ = ["CALLS_OF_LANES", "LaneKernels", "LaneLoop", "has_rule", "is_function",
           "kernel_of_lanes"]


class LaneLoop(Call):
    """A loop over lanes that know nothing of each other."""

    name = "lanes"
    over_lanes = True

    def __init__(self, eqn: Equation, program: LaneProgram, operands: list[Tensor],
                 results: list[Tensor]) -> None:
        super().__init__(operands, results, eqn.source)
        self.eqn = eqn
        self.program = program


def _product(eqn: Equation, xs: list[Tensor]) -> Tensor:
    return summed_dot_general(eqn, xs, written_out=1 << 20)


RANDOM = (threefry2x32_p, philox4x32_p)
OF_ARITHMETIC = 8
LOOPS = (scan_p, while_p, cond_p)
CALLS_OF_LANES: Mapping[Primitive, CallRule] = {
    **{p: CALLS[p] for p in LOOPS}, dot_general_p: _product}
"""The calls in the program of a lane: loops, branches, and products that are written out."""


def kernel_of_lanes(eqn: Equation, limits: LaneLimits) -> LaneProgram | None:
    """The program of a lane of a loop, if all that the lane does can be in one kernel."""
    program = _kernel_or_reason(eqn, limits)
    return program if isinstance(program, LaneProgram) else None


def _kernel_or_reason(eqn: Equation, limits: LaneLimits = IN_VECTORS) -> LaneProgram | str:
    program = lane_program_or_reason(eqn, limits)
    if isinstance(program, LaneProgram) and not _has_rules(program.body):
        return "a lane has an operation, or a dtype, that is no scalar's"
    return program


class LaneKernels:
    """Which loops of a program are kernels of lanes: each is looked at once."""

    def __init__(self) -> None:
        self._known: dict[Equation, LaneProgram | str] = {}
        self.rules: Mapping[Primitive, CallRule] = {
            **CALLS, scan_p: self._loop, while_p: self._loop, cond_p: self._loop}
        """The rules of calls where loops over lanes are kernels."""

    def program_of(self, eqn: Equation) -> LaneProgram | None:
        """The program of a lane of a loop, if all that the lane does can be in one kernel."""
        program = self._program_or_reason(eqn)
        return program if isinstance(program, LaneProgram) else None

    def __contains__(self, eqn: Equation) -> bool:
        return self.program_of(eqn) is not None

    def _program_or_reason(self, eqn: Equation) -> LaneProgram | str:
        program = self._known.get(eqn)
        if program is None:
            program = self._known[eqn] = _kernel_or_reason(eqn)
        return program

    def _loop(self, eqn: Equation, xs: list[Tensor]) -> Call | None:
        program = self._program_or_reason(eqn)
        if isinstance(program, str):
            plain = CALLS[eqn.primitive](eqn, xs)
            assert isinstance(plain, Call)
            plain.not_of_lanes = program
            return plain
        tensors = {a: x for a, x in zip(eqn.invars, xs, strict=True) if isinstance(a, Var)}
        return LaneLoop(eqn, program, [tensors[v] for v in program.operands], [*results_of(eqn)])


def is_function(eqn: Equation) -> bool:
    """Whether an element takes many instructions: an elementary function, a random number."""
    p = eqn.primitive
    return p in RANDOM or (p in ELEMENTWISE and ELEMENTWISE.weight(p.name) > OF_ARITHMETIC)


def _has_rules(body: Jaxpr) -> bool:
    """Whether all that a lane does is loops, products and what has the rule of a tensor."""
    return all(has_rule(eqn) for eqn in body.eqns)


def has_rule(eqn: Equation) -> bool:
    """Whether an equation can be in the kernel of a lane."""
    p, params = eqn.primitive, eqn.params
    if any(dtype_name(v.aval.dtype) not in DTYPES.values() or dtype_name(v.aval.dtype) in NARROW
           for v in (*eqn.invars, *eqn.outvars)):
        return False
    if p is scan_p:
        return isinstance(params["length"], int) and _has_rules(params["jaxpr"])
    if p is while_p:
        return params.get("record") is None and _has_rules(params["cond_jaxpr"]) \
            and _has_rules(params["body_jaxpr"])
    if p is cond_p:
        return all(map(_has_rules, params["branches"]))
    return p is dot_general_p or p in RULES
