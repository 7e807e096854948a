"""Programs of symbolic sizes are simplified by the same laws."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.avals import ShapedArray
from functrans.core.check import check_jaxpr
from functrans.core.dims import Dim, substitute_shape
from functrans.core.staging import stage
from functrans.lowering.passes.pipeline import simplify
from tests.lowering.test_passes import assert_same_values

B = Dim("B")
ROWS, WEIGHT, SQUARE = (B, 8), (8, 4), (8, 8)


def layer(w, x):
    return (jnp.tanh(x @ w) ** 2).sum()


def network(x, w):
    return lax.scan(lambda c, e: (jnp.tanh(c @ w + e), c), x[0], x)[1].sum()


PROGRAMS = {
    "softmax": (lambda x: ft.nn.softmax(x * 2.0 / 2.0), [ROWS]),
    "softmax_gradient": (ft.grad(lambda x: (ft.nn.softmax(x) ** 3).sum()), [ROWS]),
    "transposes": (lambda x, w: jnp.tanh((x @ w).T).T.sum(0), [ROWS, WEIGHT]),
    "gradient": (ft.grad(layer), [WEIGHT, ROWS]),
    "gradient_by_sample": (ft.vmap(ft.grad(layer), (None, 0)), [WEIGHT, ROWS]),
    "network": (network, [ROWS, SQUARE]),
    "network_gradient": (ft.grad(network, (0, 1)), [ROWS, SQUARE]),
    "movement": (lambda x: (jnp.concatenate([x, x])[:3], jnp.pad(x, ((1, 1), (0, 0))),
                            x.reshape(-1), jnp.broadcast_to(x, (2, *x.shape)).sum(0)), [ROWS]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_symbolic_sizes(name):
    fun, shapes = PROGRAMS[name]
    closed = stage(lambda *xs: ft.tree.leaves(fun(*xs)),
                   [ShapedArray(s, np.dtype(np.float32)) for s in shapes])
    before = closed.jaxpr.hoist_consts()
    after = simplify(before)
    check_jaxpr(after)
    assert simplify(after) is after
    rng = np.random.default_rng(0)
    for size in (4, 12):
        arrays = [rng.standard_normal(substitute_shape(s, {"B": size})).astype(np.float32)
                  for s in shapes]
        assert_same_values(before, after, [*map(np.asarray, closed.consts), *arrays], 1e-4, 1e-4)
