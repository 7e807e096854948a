"""Products and convolutions of dtypes that tensor cores do not take are kernels all the same."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import HostStep

RNG = np.random.default_rng(0)
DTYPES = ["float64", "int32", "int64", "int8", "uint8", "bool"]


def draw(shape, dtype):
    values = RNG.normal(size=shape) * 3 if dtype == "float64" else RNG.integers(0, 5, shape)
    return values.astype(dtype)


def on_kernels(f, *args):
    """The result by kernels alone, beside that of NumPy."""
    with ft.config.use_backend("triton"):
        found = ft.jit(f)(*args)
        jaxpr = ft.make_jaxpr(f)(*args).jaxpr.hoist_consts()
        program = write_program(simplify(jaxpr))
    assert not any(isinstance(s, HostStep) for s in program.steps)
    with ft.config.disable_jit():
        expected = f(*args)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_matrices(dtype):
    on_kernels(lambda x, y: x @ y, draw((37, 19), dtype), draw((19, 21), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_batched_products(dtype):
    on_kernels(lambda x, y: jnp.einsum("ibk,kjb->bij", x, y), draw((5, 3, 9), dtype),
               draw((9, 4, 3), dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_products_that_are_added_up_in_more_bits(dtype):
    on_kernels(lambda x, y: lax.dot(x, y, preferred_element_type="int32"),
               RNG.integers(0, 127, (8, 300)).astype(dtype),
               RNG.integers(0, 127, (300, 5)).astype(dtype))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("options", [
    {"window_strides": (1, 1), "padding": "SAME"},
    {"window_strides": (2, 1), "padding": [(1, 2), (0, 1)], "lhs_dilation": (1, 2),
     "rhs_dilation": (2, 1)},
    {"window_strides": (1, 1), "padding": "VALID", "feature_group_count": 2},
])
def test_convolutions(dtype, options):
    groups = options.get("feature_group_count", 1)
    on_kernels(lambda x, w: lax.conv_general_dilated(x, w, **options),
               draw((2, 4, 5, 4), dtype), draw((4, 4 // groups, 3, 2), dtype))
