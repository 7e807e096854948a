"""Loops over lanes with what is around them: regions that one kernel computes, a lane a thread."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.lowering.loops.tensor import Call, Tensor
from functrans.lowering.passes.blocks_of_lanes import without_blocks
from functrans.lowering.passes.carried_reductions import carry_reductions
from functrans.lowering.passes.lane_groups import group_loops
from functrans.lowering.passes.lane_regions import grow_loops, with_tests
from functrans.lowering.passes.lanes import IN_VECTORS, LaneProgram, is_region
from functrans.lowering.rules.graph import results_of
from functrans.lowering.rules.lanes import LaneLoop, has_rule, is_function, kernel_of_lanes

__all__ = ["region_rule", "with_thread_regions"]

LEAST_LANES: Final = 1024
"""Fewer do not fill the GPU: their loops have other forms."""
IN_REGIONS: Final = replace(IN_VECTORS, fewest=2, repeated=(math.inf, 1.25))
"""What a lane may be: each axis is one of lanes, unless they would compute much of what they share.
Two lanes in a thread would wait for each other, and leave half of the threads idle."""


def with_thread_regions(jaxpr: Jaxpr) -> Jaxpr:
    """The program with regions of lanes, each a branch that is always taken."""
    known: dict[Equation, LaneProgram | None] = {}

    def program_of(eqn: Equation) -> LaneProgram | None:
        if eqn not in known:
            found = kernel_of_lanes(eqn, IN_REGIONS)
            known[eqn] = found if found is not None \
                and math.prod(found.sizes) >= LEAST_LANES else None
        return known[eqn]

    def is_kernel(eqn: Equation) -> bool:
        return program_of(eqn) is not None

    grouped = group_loops(carry_reductions(without_blocks(
        with_tests(jaxpr, is_kernel), is_kernel), is_kernel), is_kernel)
    return grow_loops(grouped, program_of, has_rule, is_function)


def region_rule(eqn: Equation, xs: list[Tensor]) -> Call | None:
    """The rule of branches: of those that are regions of lanes. The host has the others."""
    program = kernel_of_lanes(eqn, IN_REGIONS) if is_region(eqn) else None
    if program is None:
        return None
    tensors = {a: x for a, x in zip(eqn.invars, xs, strict=True) if isinstance(a, Var)}
    return LaneLoop(eqn, program, [tensors[v] for v in program.operands], [*results_of(eqn)])
