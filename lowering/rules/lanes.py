"""Loops as programs of one lane: a call that a backend writes as one kernel."""

from __future__ import annotations

from collections.abc import Mapping

from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.primitive import Primitive
from functrans.lowering.loops.tensor import DTYPES, NARROW, Call, Tensor, dtype_name
from functrans.lowering.passes.lanes import LaneProgram, lane_program_or_reason
from functrans.lowering.rules.graph import CALLS, RULES, CallRule, results_of
from functrans.lowering.rules.reduce import summed_dot_general
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.dot import dot_general_p

__all__ = ["CALLS_OF_LANES", "WITH_LANES", "LaneLoop", "has_rule", "kernel_of_lanes"]


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


LOOPS = (scan_p, while_p, cond_p)
CALLS_OF_LANES: Mapping[Primitive, CallRule] = {
    **{p: CALLS[p] for p in LOOPS}, dot_general_p: _product}
"""The calls in the program of a lane: loops, branches, and products that are written out."""


def kernel_of_lanes(eqn: Equation) -> LaneProgram | None:
    """The program of a lane of a loop, if all that the lane does can be in one kernel."""
    program = _kernel_or_reason(eqn)
    return program if isinstance(program, LaneProgram) else None


def _kernel_or_reason(eqn: Equation) -> LaneProgram | str:
    program = lane_program_or_reason(eqn)
    if isinstance(program, LaneProgram) and not _has_rules(program.body):
        return "a lane has an operation, or a dtype, that is no scalar's"
    return program


def _loop(eqn: Equation, xs: list[Tensor]) -> Call | None:
    program = _kernel_or_reason(eqn)
    if isinstance(program, str):
        plain = CALLS[eqn.primitive](eqn, xs)
        assert isinstance(plain, Call)
        plain.not_of_lanes = program
        return plain
    tensors = {a: x for a, x in zip(eqn.invars, xs, strict=True) if isinstance(a, Var)}
    return LaneLoop(eqn, program, [tensors[v] for v in program.operands], [*results_of(eqn)])


WITH_LANES: Mapping[Primitive, CallRule] = {**CALLS, scan_p: _loop, while_p: _loop, cond_p: _loop}
"""The rules of calls where loops over lanes are kernels."""


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
