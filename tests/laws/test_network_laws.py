"""Random networks at real sizes, compiled for CPUs: no error, and the results of NumPy."""

import numpy as np
import pytest

from tests.laws.network_checks import assert_near, c_program, results
from tests.laws.networks import draw_network, networks

FEW_ELEMENTS, FEW_OPERATIONS = 1 << 19, 2e9
"""Of networks that run in `make test`."""


def check_text(seed):
    network = draw_network(seed)
    try:
        assert c_program(network)
    except Exception as error:
        error.add_note(network.source)
        raise


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(60))
def test_networks_have_c_programs(seed):
    check_text(seed)


@pytest.mark.thorough
@pytest.mark.parametrize("hundred", range(1, 50))
def test_thousands_of_networks_have_c_programs(hundred):
    for seed in range(100 * hundred, 100 * hundred + 100):
        check_text(seed)


def check_results(network):
    with np.errstate(all="ignore"):
        assert_near(network, results(network, "c"))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("network", networks(range(10_000, 10_014), FEW_ELEMENTS, FEW_OPERATIONS),
                         ids=str)
def test_networks_compute_what_numpy_computes(network):
    check_results(network)


@pytest.mark.thorough
@pytest.mark.parametrize("hundred", range(101, 111))
def test_many_networks_compute_what_numpy_computes(hundred):
    for network in networks(range(100 * hundred, 100 * hundred + 100), most_work=2e10):
        check_results(network)


def test_a_seed_is_one_program():
    for seed in range(5):
        first, second = draw_network(seed), draw_network(seed)
        assert first == second
        for a, t in zip(first.arguments()[0], first.types()[0], strict=True):
            assert (a.shape, a.dtype) == (t.shape, t.dtype)
        for a, t in zip(first.arguments()[1:], first.types()[1:], strict=True):
            assert (a.shape, a.dtype) == (t.shape, t.dtype)
