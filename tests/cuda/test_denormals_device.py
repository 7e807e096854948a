"""On a GPU: functions of denormal numbers, and with denormal results, are those of the CPU."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax

pytestmark = pytest.mark.gpu

SMALL = np.float32([1e-45, -1e-45, 3e-42, -2e-40, 1.1e-38, -1.1e-38, 0.0, -0.0, 1e-30])
OPERANDS = dict.fromkeys(("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1",
                          "log1p", "cbrt", "cos", "erf"), SMALL)
OPERANDS |= {name: np.abs(SMALL) for name in ("log", "rsqrt", "sqrt")}
OPERANDS |= {"exp": np.float32([-88, -90, -95, -103]), "exp2": np.float32([-126.5, -130, -149]),
             "logistic": np.float32([-88, -90, -95, -103])}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OPERANDS)
def test_denormals(name, dtype):
    def fun(x):
        return getattr(lax, name)(x)

    x = OPERANDS[name].astype(dtype)
    found = np.asarray(ft.jit(fun)(ft.device_put(x, ft.devices("gpu")[0])))
    expected = np.asarray(fun(x.astype(np.float64))).astype(dtype)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    np.testing.assert_array_almost_equal_nulp(found[finite], expected[finite], 4)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
