"""Operations on dtypes that kernels have by way of others, beside NumPy's results."""

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.libraries.replace import replace_by_library_calls
from functrans.lowering.triton.program import write_program

X = np.arange(10, dtype="f")
AT = np.array([3, 2**64 - 1, 2**63 + 2, 9], np.uint64)
FLOAT8 = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
ODD = [1, -2, np.nan, 0, -0.0, 3, -0.5, np.nan]


def compiled(fun, *args):
    with ft.config.use_backend("triton"), ft.config.host_steps("error"):
        return ft.jit(fun)(*args)


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_indices_in_uint64(mode):
    fun = lambda x, i: x.at[i].get(mode=mode)
    np.testing.assert_array_equal(compiled(fun, X, AT), fun(jnp.asarray(X), jnp.asarray(AT)))


def test_slices_and_updates_at_uint64():
    def fun(x, i):
        return lax.dynamic_update_slice(lax.dynamic_slice(x, (i[1],), (5,)), x[:2], (i[0],)), \
            x.at[i].add(1, mode="drop"), x.at[i[:1]].set(7)

    for a, e in zip(compiled(fun, X, AT), fun(jnp.asarray(X), jnp.asarray(AT)), strict=True):
        np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize("dtype", FLOAT8)
def test_order_of_floats_of_8_bits(dtype):
    x = np.array(ODD, dtype)

    def fun(x):
        return jnp.argmax(x), jnp.argmin(x[:2]), lax.sort(x), *lax.top_k(x[3:7], 2), lax.cummax(x)

    for a, e in zip(compiled(fun, x), fun(jnp.asarray(x)), strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_array_equal(np.asarray(a, "f"), np.asarray(e, "f"))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "uint8", "uint16", "uint32", "uint64"])
def test_places_of_extremes_of_integers(dtype):
    top = 1 if dtype == "bool" else np.iinfo(dtype).max
    x = np.array([[0, 1, top, top - 1], [1, 0, 1, top]], object).astype(dtype)

    def fun(x):
        return jnp.argmax(x, 1), jnp.argmin(x, 1)

    for a, e in zip(compiled(fun, x), fun(jnp.asarray(x)), strict=True):
        np.testing.assert_array_equal(a, e)


def test_every_float16_has_its_bits():
    bits = np.arange(65536, dtype=np.uint16)
    halves = bits.view(np.float16)
    is_number = ~np.isnan(halves)
    found = compiled(lambda h: lax.bitcast_convert_type(h, np.uint16), halves)
    back = np.asarray(compiled(lambda b: lax.bitcast_convert_type(b, np.float16), bits))
    np.testing.assert_array_equal(np.asarray(found)[is_number], bits[is_number])
    np.testing.assert_array_equal(back.view(np.uint16)[is_number], bits[is_number])
    assert np.isnan(back[~is_number]).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("fun", [lax.linalg.cholesky, jnp.linalg.det, jnp.linalg.inv],
                         ids=lambda f: f.__name__)
def test_factors_of_halves(fun, dtype):
    a = (np.eye(4) * 4 + np.ones((4, 4))).astype(dtype)
    jaxpr = simplify(ft.make_jaxpr(fun)(a).jaxpr)
    program = write_program(replace_by_library_calls(jaxpr, lambda name: True))
    (found,) = InterpretedProgram(program)([a])
    expected = np.asarray(fun(jnp.asarray(a)))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.astype("f"), expected.astype("f"), 2e-2)
