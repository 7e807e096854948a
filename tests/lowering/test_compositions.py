"""Primitives that are programs of others, and dtypes that no library takes: nothing on the host."""

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.evaluate import interpret
from functrans.lowering.c.lower import lower
from functrans.lowering.passes.compositions import composed
from functrans.primitives.solve import adjugate

RNG = np.random.default_rng(0)


def assert_compiled(fun, *args, tolerance=0.0):
    """No equation is left to Python, and results are those of NumPy."""
    program = lower(ft.lower(fun, *args).jaxpr, frozenset())
    assert program is None or not program.text.hosts  # None: it computes nothing
    pairs = zip(ft.tree.leaves(fun(*args)), ft.tree.leaves(ft.jit(fun)(*args)), strict=True)
    for expected, found in pairs:
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        wide = "c16" if found.dtype.kind == "c" else "f8"
        np.testing.assert_allclose(np.asarray(found).astype(wide),
                                   np.asarray(expected).astype(wide), tolerance, tolerance)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_adjugates(dtype):
    a = RNG.standard_normal((3, 4, 4)).astype(dtype)
    if dtype[0] == "c":
        a += 1j * RNG.standard_normal(a.shape).astype(dtype)
    a[0, 0] = a[0, 1]  # a singular matrix has one, too
    assert_compiled(adjugate, a, tolerance=3e-5 if dtype in ("f4", "c8") else 1e-13)


@pytest.mark.parametrize("strides, pads, base, spread", [
    ((1, 1), ((4, 4), (4, 4)), (1, 1), (1, 1)), ((1, 2), ((3, 2), (-1, 4)), (2, 1), (1, 2))])
def test_gradients_of_extremes_over_many_windows(strides, pads, base, spread):
    def pooled(x):
        return lax.reduce_window(x, -np.inf, lax.max, (9, 9), strides, pads, base, spread)

    x = RNG.standard_normal((20, 20))
    assert_compiled(ft.grad(lambda x: (pooled(x) ** 2).sum()), x, tolerance=1e-13)


@pytest.mark.parametrize("shape", [(2, 3, 0), (2, 0, 3), (2, 0, 0)])
def test_factors_of_matrices_without_elements(shape):
    a = np.zeros(shape)
    for fun in (lambda a: jnp.linalg.qr(a, mode="complete"), jnp.linalg.qr, lax.linalg.lu,
                jnp.linalg.svd, lambda a: jnp.linalg.svd(a, full_matrices=False)):
        assert_compiled(fun, a)
    if shape[1] == shape[2]:
        assert_compiled(lambda a: (jnp.linalg.det(a), jnp.linalg.slogdet(a), jnp.linalg.inv(a)), a)


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_factors_of_matrices_of_halves(dtype):
    a = RNG.standard_normal((6, 6))
    a = (a @ a.T + 6 * np.eye(6)).astype(dtype)
    assert_compiled(lambda a: (jnp.linalg.cholesky(a), jnp.linalg.det(a), jnp.linalg.inv(a),
                               lax.linalg.lu(a)), a, tolerance=2e-2)


def test_products_of_booleans():
    x, y = RNG.random((30, 50)) < 0.1, RNG.random((50, 20)) < 0.1
    assert_compiled(lambda x, y: x @ y, x, y)
    assert_compiled(lambda x, y: x @ y, x[:, :0], y[:0])
    assert_compiled(lambda x, y: jnp.einsum("bij,bjk->bik", x, y),
                    RNG.random((3, 4, 5)) < 0.3, RNG.random((3, 5, 6)) < 0.3)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "u4", "u8"])
@pytest.mark.parametrize("shape", [(5, 33), (200, 40)])
def test_places_of_extremes(dtype, shape):
    if dtype == "?":
        x = RNG.random(shape) < 0.1
    else:
        ends = np.iinfo(dtype)
        x = RNG.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    assert_compiled(lambda x: [f(x, axis) for f in (jnp.argmax, jnp.argmin) for axis in (0, 1)], x)


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_indices_without_a_sign_in_64_bits(mode):
    i = np.array([0, 3, 9, 10, 2**63, 2**64 - 1], np.uint64)
    assert_compiled(lambda x, i: x.at[i].get(mode=mode, fill_value=-1), jnp.arange(10.0), i)
    assert_compiled(lambda x, i: x.at[i].add(1.0, mode="drop"), jnp.arange(10.0), jnp.array(i))
    assert_compiled(lambda x, i: lax.dynamic_slice(x, (i,), (3,)), jnp.arange(10.0), i[-1])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8"])
def test_exchanges_of_rows(dtype):
    def order(pivots):
        return lax.linalg.lu_pivots_to_permutation(pivots, 7)

    assert_compiled(order, RNG.integers(0, 7, (300, 5)).astype(dtype))
    assert_compiled(order, np.array([-3 if dtype[0] == "i" else 2, 100, 2], dtype))
    assert np.asarray(order(np.array([0, 100, 2], dtype))).tolist() == [0, 6, 2, 3, 4, 5, 1]


def test_a_setting_of_dtypes_does_not_change_what_is_composed():
    """With 32 bits for 64, float64 that a program has stays what it is while it is rounded."""
    rounded = ft.jit(lambda x: lax.convert_element_type(x, "bfloat16"))
    x = np.array([1.0, 1.00390625, 1 + 2.0**-8 + 2.0**-40])
    closed = ft.make_jaxpr(rounded)(x)
    with ft.config.narrow_64bit():
        made = composed(closed.jaxpr.hoist_consts())
    np.testing.assert_array_equal(np.asarray(interpret(made, [x])[0]), np.asarray(rounded(x)))
