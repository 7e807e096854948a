"""Kernels compiled for a GPU that is not here, as far as most defects show: to tiles, not to PTX.

That takes 50 ms where machine code takes seconds. Types, shapes and shared memory are known then.
"""

from functools import lru_cache

from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.triton.machine.compile import TritonStages, stages_of
from functrans.lowering.triton.machine.device import unit_of
from functrans.lowering.triton.steps.spec import launch_key, launches_in


@lru_cache(maxsize=4096)
def shared_of(unit):
    """Bytes of shared memory of a kernel, with as few stages as it takes to fit."""
    found = [0]
    for stages in stages_of(unit):
        found.append(TritonStages(unit, stages).shared())
        if found[-1] <= unit.shared:
            break
    assert found[-1] <= unit.shared, f"{unit.name} takes {found[1:]} bytes of shared memory"
    return found[-1]


def compile_kernels(program, target=HOPPER):
    """Compile all kernels of a program to tiles; those that take too much memory are an error."""
    launches = {launch_key(step): step for step in launches_in(program.steps)}
    for step in launches.values():
        shared_of(unit_of(program, step, target))
