"""Kernels compiled as far as it takes to know that Triton takes them, and their shared memory."""

import pytest

from functrans.lowering.schedule.target import HOPPER
from functrans.lowering.triton.machine.unit import Unit
from tests.triton.compiled import shared_of


@pytest.fixture
def shared_bytes():
    """The bytes of shared memory that a kernel of a template takes on Hopper."""
    def measured(kernel):
        return shared_of(Unit(
            kernel.text, kernel.name, tuple(a.type for a in kernel.arguments),
            tuple(a.divisible for a in kernel.arguments), kernel.warps, kernel.stages,
            kernel.fuses, HOPPER.capability, HOPPER.shared))

    return measured
