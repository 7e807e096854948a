"""Aliasing on a real GPU: `pytest -m gpu tests/cuda`."""

import numpy as np
import pytest

import functrans as ft
from tests.lowering.test_memory import ARGUMENTS, arguments, loop, program

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("seed", range(48))
def test_donation_changes_no_result(seed):
    """Random programs and loops, of which each writes what it can into donated memory."""
    fun = (loop if seed % 3 == 0 else program)(seed)
    with ft.config.default_device("cpu"):
        expected = [np.asarray(x) for x in ft.jit(fun)(*arguments(seed))]
    donated = tuple(k for k in range(ARGUMENTS) if (seed >> k) & 1 or seed % 4 == 0)
    with ft.config.matmul_precision("highest"):
        found = ft.jit(fun, donate_argnums=donated)(
            *[ft.device_put(x, "gpu") for x in arguments(seed)])
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-3, atol=1e-3)
