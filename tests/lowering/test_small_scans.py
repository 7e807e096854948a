"""Running sums and extrema that are written out are those of the primitive."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.core.evaluate import interpret
from functrans.lowering.passes.small_scans import write_out_scans

X = np.random.default_rng(0).normal(size=(3, 6)).astype("f")
SPECIAL = np.where(np.arange(6) == [[1], [3], [9]], np.float32([[np.nan], [-np.inf], [0]]), X)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("x", [X, SPECIAL, (X * 4).astype("i4"), X[:, :1]])
@pytest.mark.parametrize("fun", [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin])
def test_values(fun, x, reverse):
    jaxpr = ft.make_jaxpr(lambda x: fun(x, axis=1, reverse=reverse))(x).jaxpr.hoist_consts()
    written = write_out_scans(jaxpr)
    assert not any(eqn.primitive.name.startswith("cum") for eqn in written.eqns)
    np.testing.assert_array_equal(*interpret(written, [x]), *interpret(jaxpr, [x]))


def test_long_ones_stay():
    x = np.zeros((2, 64), "f")
    jaxpr = ft.make_jaxpr(lambda x: lax.cumsum(x, axis=1))(x).jaxpr.hoist_consts()
    assert write_out_scans(jaxpr) is jaxpr
