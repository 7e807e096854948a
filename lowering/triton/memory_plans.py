"""What a program for a GPU keeps for later and computes again, and programs within a limit.

Without a limit a plan is taken where it takes less memory and, by estimate, no more time: values
that a product writes besides its result cost next to nothing, a kernel that computes them again
a launch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

from functrans.core import config
from functrans.core.dims import Size
from functrans.core.jaxpr import Jaxpr
from functrans.core.record import Record
from functrans.lowering.analysis import memory_of
from functrans.lowering.defects import UnsupportedKernel, is_defect, warn_of_fallback
from functrans.lowering.memory.limit import LimitedPlan, LoweredProgram, within_limit
from functrans.lowering.passes.batch_chunks import with_chunks
from functrans.lowering.passes.rematerialize import Prices, Residual, rematerialize
from functrans.lowering.report import Value
from functrans.lowering.report_parts import peak_of, timeline_of
from functrans.lowering.schedule.recomputation_prices import cheaper_memory, gpu_prices
from functrans.lowering.schedule.target import Target
from functrans.lowering.triton.products.choosing import Chooser
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.records import program_seconds
from functrans.lowering.triton.steps.spec import GPUProgram

__all__ = ["KeptForLater", "memory_of_program", "plan_memory_of"]

SLOWER: Final = 1.015
"""Times the estimate of a program that a plan for less memory may take."""
LESS: Final = 0.9
"""Of the temporaries of a program, what it saves at least."""


class KeptForLater(Record, eq=False):
    """A program as planned, what was decided on its values, and what was done for a limit.

    `written` is how it is written with the choices of a model, where that was tried.
    """

    jaxpr: Jaxpr
    residuals: Sequence[Residual] = ()
    said: str = ""
    written: GPUProgram | None = None


def plan_memory_of(jaxpr: Jaxpr, donated: Collection[int], any_size: bool, target: Target
                   ) -> KeptForLater:
    """The program that needs less memory in the same time, or as little as the settings allow.

    Raises MemoryLimitError where that cannot be.
    """
    write = partial(write_program, any_size=any_size, donated=donated, choose=Chooser(target))
    limit = config.current().memory_limit
    if limit is not None:
        return _within(limit, jaxpr, target, write)
    told: list[Residual] = []
    try:
        found = rematerialize(jaxpr, gpu_prices(target), told)
        if found is jaxpr:
            return KeptForLater(jaxpr)
        before, after = write(jaxpr), write(found)
    except UnsupportedKernel:
        return KeptForLater(jaxpr)
    except Exception as error:
        if not is_defect(error):
            raise
        warn_of_fallback(jaxpr.name, "it keeps what linearization kept", error, None)
        return KeptForLater(jaxpr)
    pays = after.arena_bytes <= LESS * before.arena_bytes and (
        program_seconds(after, target) <= SLOWER * program_seconds(before, target))
    return KeptForLater(found, told, written=after) if pays else KeptForLater(
        jaxpr, written=before)


def _within(limit: int, jaxpr: Jaxpr, target: Target,
            write: partial[GPUProgram]) -> KeptForLater:
    """The first plan whose arguments, results and temporaries fit."""
    def lowered(plan: LimitedPlan) -> LoweredProgram[KeptForLater]:
        told: list[Residual] = []
        # the first plan changes nothing
        found = plan.program if plan.prices is plain else _kept(plan.program, plan.prices, told)
        program = write(found)
        return LoweredProgram(
            KeptForLater(found, told), memory_of_program(found, program),
            lambda: _largest(program))

    usual, *cheaper = cheaper_memory(gpu_prices(target))
    plain = Prices(usual.time, usual.byte, usual.step, usual.least_bytes, usual.least_saved,
                   usual.inlined)
    found, said = within_limit(jaxpr, limit, [plain, usual, *cheaper], lowered,
                               config.current().chunks_batches)
    return KeptForLater(found.jaxpr, found.residuals, said)


def _kept(jaxpr: Jaxpr, prices: Prices, told: list[Residual]) -> Jaxpr:
    """A program with what it keeps planned, and what bodies of loops over chunks keep."""
    return rematerialize(with_chunks(jaxpr, lambda body: rematerialize(body, prices, told)),
                         prices, told)


def memory_of_program(jaxpr: Jaxpr, program: GPUProgram) -> dict[str, Size]:
    """Bytes of arguments, results, temporaries, and at the peak."""
    known = memory_of(jaxpr)
    args, outs = known["arguments"], known["outputs"]
    temporaries = program.arena_bytes
    shared = sum([program.outputs[j].nbytes for j in program.aliases.inputs], start=0)
    return {"arguments": args, "outputs": outs, "temporaries": temporaries, "donated": shared,
            "peak": args + outs + temporaries - shared}


def _largest(program: GPUProgram) -> Value | None:
    """The largest temporary at the peak of a program."""
    peak = peak_of(timeline_of(program.blocks, (), ()), ())
    return peak.values[0] if peak is not None and peak.values else None
