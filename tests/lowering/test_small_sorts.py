"""Sorts that are written out order as the primitive does."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.core.evaluate import interpret
from functrans.lowering.passes.small_sorts import write_out_sorts

RNG = np.random.default_rng(0)
SPECIAL = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, np.nan])


def operands(shape, dtype):
    if dtype == "special":
        return RNG.permuted(np.broadcast_to(SPECIAL[:shape[-1]], shape), axis=-1)
    return RNG.integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("num_keys", [1, 2])
@pytest.mark.parametrize("dtype", ["f4", "i4", "f2", "special"])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_orders(n, dtype, num_keys):
    xs = [operands((7, n), dtype) for _ in range(2)] + [np.tile(np.arange(n, dtype="i4"), (7, 1))]
    jaxpr = ft.make_jaxpr(lambda *xs: lax.sort(xs, dimension=1, num_keys=num_keys))(*xs).jaxpr
    written = write_out_sorts(jaxpr.hoist_consts())
    assert "sort" not in {eqn.primitive.name for eqn in written.eqns}
    for a, b in zip(interpret(written, xs), interpret(jaxpr.hoist_consts(), xs), strict=True):
        np.testing.assert_array_equal(a, b)


def test_long_sorts_stay():
    x = np.zeros((2, 64), "f")
    jaxpr = ft.make_jaxpr(lambda x: lax.sort(x))(x).jaxpr.hoist_consts()
    assert [e.primitive.name for e in write_out_sorts(jaxpr).eqns] == ["sort"]
