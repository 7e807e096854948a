"""Operations outside of jit on a real GPU: `pytest -m gpu tests/cuda`."""

import warnings

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.avals import ShapedArray
from functrans.core.dims import Dim
from functrans.core.errors import HostStepWarning
from functrans.core.staging import stage
from functrans.lowering.backend import get_backend
from tests.laws.primitives import all_cases
from tests.laws.test_primitive_laws import assert_same

pytestmark = pytest.mark.gpu
RNG = np.random.default_rng(0)


UP_TO_SIGNS = {"eigh", "svd", "qr"}
NAMES = sorted({c.primitive.name for c in all_cases() if c.args})


@pytest.mark.parametrize("name", NAMES)
def test_every_primitive(name):
    for case in [c for c in all_cases() if c.args and c.primitive.name == name]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HostStepWarning)
            outs = case.outs(*[ft.device_put(a, "gpu") for a in case.args])
        assert {o.device.platform for o in outs} == {"gpu"}
        expected = case.outs(*case.args)
        if name in UP_TO_SIGNS:
            outs, expected = list(map(abs, outs)), list(map(abs, expected))
        tolerance = 2e-2 if name in ("dot_general", "conv_general_dilated") else 1e-5
        assert_same(outs, expected, tolerance)


@pytest.mark.parametrize("shape", [(3, 5), (64, 128), (1, 7000), (513, 1025), (0, 4), (5, 40000)])
def test_many_shapes(shape):
    x = RNG.normal(size=shape).astype("f")
    y = ft.device_put(x, "gpu")
    for fun in (lambda v: v * 2 + v[:, :1], lambda v: v.sum(0), lambda v: v.sum(1),
                lambda v: jnp.exp(v - 2).sum(), lambda v: v.T, lambda v: v[1:, ::2]):
        np.testing.assert_allclose(np.asarray(fun(y)), np.asarray(fun(jnp.asarray(x))), 1e-4, 1e-3)


def test_programs_of_named_sizes():
    n = Dim("n")
    closed = stage(lambda x, w: [ft.nn.softmax(x @ w), (x @ w).sum(0)],
                   [ShapedArray((n, 40), np.dtype("f")), ShapedArray((40, 33), np.dtype("f"))])
    run = get_backend("triton").compile(closed.jaxpr).run
    for size in (0, 1, 5, 128, 1000):
        x, w = RNG.normal(size=(size, 40)).astype("f"), RNG.normal(size=(40, 33)).astype("f")
        e = np.exp(x @ w)
        for a, b in zip(run([x, w]), (e / e.sum(1, keepdims=True), (x @ w).sum(0)), strict=True):
            np.testing.assert_allclose(np.asarray(a), b, 1e-2, 0.3)


def test_loops_and_branches_stay_on_the_device():
    x = ft.device_put(np.arange(4, dtype="f"), "gpu")
    outs = [ft.lax.scan(lambda c, v: (c + v, c * v), jnp.float32(0), x)[1],
            ft.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1],
            ft.lax.cond(x.sum() > 0, lambda v: v + 1, lambda v: v, x)]
    expected = [[0, 0, 2, 9], [0, 8, 16, 24], [1, 2, 3, 4]]
    for out, values in zip(outs, expected, strict=True):
        assert out.device.platform == "gpu"
        np.testing.assert_array_equal(np.asarray(out), values)
