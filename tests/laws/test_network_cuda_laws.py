"""Random networks at real sizes, compiled for an H100 that need not be here."""

import pytest

from functrans.lowering.schedule.target import target_named
from functrans.lowering.triton.machine.compile import compile_unit
from tests.laws.network_checks import cuda_units, to_triton_ir
from tests.laws.networks import draw_network

TARGET = "cuda:90"


def check(seed, machine_code=False):
    """All kernels pass the first stage of Triton; with `machine_code` all stages."""
    network = draw_network(seed)
    try:
        units = cuda_units(network, TARGET)
        assert units
        for unit in units:
            try:
                if machine_code:
                    binary = compile_unit(unit)
                    assert binary.shared <= target_named(TARGET).shared
                else:
                    to_triton_ir(unit)
            except Exception as error:
                error.add_note(f"{unit.name} of\n{unit.source}")
                raise
    except Exception as error:
        error.add_note(network.source)
        raise


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(20_000, 20_016))
def test_networks_have_kernels(seed):
    check(seed)


@pytest.mark.parametrize("seed", [20_101])
def test_networks_have_machine_code(seed):
    check(seed, machine_code=True)


@pytest.mark.thorough
@pytest.mark.parametrize("ten", range(2_010, 2_110))
def test_many_networks_have_kernels(ten):
    for seed in range(10 * ten, 10 * ten + 10):
        check(seed)


@pytest.mark.thorough
@pytest.mark.parametrize("ten", range(2_110, 2_120))
def test_many_networks_have_machine_code(ten):
    for seed in range(10 * ten, 10 * ten + 10):
        check(seed, machine_code=True)
