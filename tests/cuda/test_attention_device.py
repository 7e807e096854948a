"""Attention, and what nearly is, on a real GPU: `pytest -m gpu tests/cuda`."""

import numpy as np
import pytest

import functrans as ft
from tests.triton.test_attention_near_misses import CT, EDGES, NEAR_MISSES, K, Q, V, gradient

pytestmark = pytest.mark.gpu

CASES = {**NEAR_MISSES, **EDGES}


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_those_of_the_cpu(name):
    fun, *more = CASES[name]
    args = CT, Q, K, V, *map(np.asarray, more)
    with ft.config.default_device("cpu"):
        expected = [np.asarray(x) for x in ft.jit(gradient(fun))(*args)]
    with ft.config.matmul_precision("highest"):
        found = ft.jit(gradient(fun))(*[ft.device_put(x, "gpu") for x in args])
    for x, y in zip(found, expected, strict=True):
        scale = np.abs(y[np.isfinite(y)]).max(initial=1e-3)
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-2, atol=1e-2 * scale)
