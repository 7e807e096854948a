"""The steps of a compiled program, spelled in short lines."""

from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.rules.graph import graph_of
from functrans.lowering.schedule import plans
from functrans.lowering.schedule.chains import Chain
from functrans.lowering.schedule.epilogues import FusedGemm
from functrans.lowering.schedule.kernel import Kernel
from tests.lowering.test_passes import program_of


def plan(f, *args):
    """The schedule of a function of arrays."""
    program, _ = program_of(f, *args)
    return plans.CPU.schedule(graph_of(simplify(program)))[1]


def steps(f, *args):
    """The steps of the program of a function: kernels by the roles of their members."""
    return [spelled(step) for step in plan(f, *args).steps]


def spelled(step):
    if isinstance(step, Kernel):
        return " ".join(m.role for m in step.members)
    if isinstance(step, FusedGemm):
        kept = " kept" if step.product in step.results else ""
        return f"gemm({spelled(step.kernel)}){kept}"
    if isinstance(step, Chain):
        return f"chain {step.count}: {'; '.join(map(spelled, step.steps))}"
    return step.name


def reasons(f, *args):
    """Why values were not computed with others."""
    return {note.reason for note in plan(f, *args).notes}
