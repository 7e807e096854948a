"""Random networks at real sizes on a GPU, at every precision: `pytest -m gpu tests/laws`."""

import numpy as np
import pytest

import functrans as ft
from tests.laws.network_checks import assert_near, results
from tests.laws.networks import networks

pytestmark = pytest.mark.gpu

PRECISIONS = {"highest": 1e-4, "high": 1e-3, "default": 1e-2}
"""How far results may be from float64 (TOLERANCES for other dtypes than float32)."""
ROUNDED = {"default": 2.0**-11}
"""By how much operands of products are rounded, relative to them, at a precision."""
MOST_OPERATIONS = 2e10  # NumPy computes them, too


def check(network, precision):
    is_float32 = network.dtype == "float32"
    tolerance = PRECISIONS[precision] if is_float32 else None
    noise = ROUNDED.get(precision) if is_float32 else None
    with np.errstate(all="ignore"), ft.config.matmul_precision(precision):
        assert_near(network, results(network, "auto"), tolerance, noise)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("network", networks(range(30_000, 30_040), most_work=MOST_OPERATIONS),
                         ids=str)
def test_networks_on_the_device(network, precision):
    check(network, precision)


@pytest.mark.thorough
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("ten", range(3_010, 3_110))
def test_many_networks_on_the_device(ten, precision):
    for network in networks(range(10 * ten, 10 * ten + 10), most_work=MOST_OPERATIONS):
        check(network, precision)
