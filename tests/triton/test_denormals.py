"""Functions in kernels keep numbers that are denormal, as arithmetic does."""

import re

import numpy as np
import pytest

import functrans as ft
from functrans import lax

NEAR_ZERO = ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p",
             "cbrt", "rsqrt", "log", "exp2", "erf")
MOST = 16  # where a function flushes what it has scaled before


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NEAR_ZERO)
def test_functions_of_the_library_flush_nothing(name):
    """CUDA's library with flushing has it in all of its operations, 40 to 800."""
    x = ft.ShapeDtypeStruct((4096,), np.float32)
    compiled = ft.jit(lambda x: getattr(lax, name)(x)).lower(x, target="cuda:90").compile()
    (kernel,) = compiled.kernels
    assert len(re.findall(r"\.ftz\b", kernel.ptx)) <= MOST
