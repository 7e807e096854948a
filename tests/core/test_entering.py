"""Arrays that enter: masks are not lost, copies are apart, bytes are read as NumPy reads them."""

import copy

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import NonArrayError

X = jnp.ones(3, "float64")
ENTRANCES = {
    "asarray": jnp.asarray, "array": jnp.array, "a list": lambda m: jnp.array([m, m]),
    "a number": lambda m: jnp.asarray(np.ma.masked), "full": lambda m: jnp.full((2, 3), m),
    "a function": jnp.sin, "a reduction": jnp.sum, "where": lambda m: jnp.where(m, 1, 2),
    "stack": lambda m: jnp.stack([m, m]), "clip": lambda m: jnp.clip(X, m, m),
    "isin": lambda m: jnp.isin(X, m),
    "searchsorted": lambda m: jnp.searchsorted(jnp.arange(3.0), m),
    "an operator": lambda m: X + m, "a comparison": X.__lt__,
    "matmul": lambda m: jnp.ones((3, 3), "float64") @ m,
    "lax": lax.sin, "lax, two operands": lambda m: lax.add(X, m),
    "values": lambda m: X.at[:].set(m), "values to add": lambda m: X.at[0:3].add(m),
    "an index": lambda m: X[m.astype(int) % 2],
    "an index to set": lambda m: X.at[m.astype(int)].set(1),
    "take": lambda m: jnp.take(X, m.astype(int)),
    "jit": lambda m: ft.jit(lambda x: x)(m), "a keyword": lambda m: ft.jit(lambda x: x)(x=m),
    "a closure": lambda m: ft.jit(lambda x: x + m)(X),
    "lowered": lambda m: ft.jit(lambda x: x).lower(m),
    "grad": ft.grad(lambda x: x.sum()), "vmap": ft.vmap(lambda x: x),
    "jvp": lambda m: ft.jvp(jnp.sin, (m,), (m,)), "vjp": lambda m: ft.vjp(jnp.sin, X)[1](m),
    "eval_shape": lambda m: ft.eval_shape(lambda x: x, m),
    "scan": lambda m: lax.scan(lambda c, a: (c, a), 0.0, m),
    "cond": lambda m: lax.cond(True, lambda x: x, lambda x: x, m),
    "fori_loop": lambda m: lax.fori_loop(0, 2, lambda i, c: c, m),
    "device_put": ft.device_put,
    "random": lambda m: ft.random.permutation(ft.random.key(0), m),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_masked_arrays_are_refused(entrance):
    with pytest.raises(NonArrayError, match=r"masked array(.*\n)*.*filled"):
        ENTRANCES[entrance](np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]))


@pytest.mark.parametrize("again", [
    jnp.array, jnp.copy, lambda x: x.copy(), lambda x: jnp.asarray(x, copy=True), copy.copy,
    copy.deepcopy, lambda x: jnp.array(x, dtype=x.dtype)])
def test_donating_an_array_leaves_its_copies(again):
    take = ft.jit(lambda x: x.at[0].set(7), donate_argnums=0)
    for given in (0, 1):
        x = jnp.asarray(np.arange(4096.0, dtype="f"))
        pair = [x, again(x)]
        assert pair[0] is not pair[1] and pair[1].weak_type == x.weak_type
        take(pair[given])
        assert pair[given]._donated
        np.testing.assert_array_equal(pair[1 - given], np.arange(4096))


def test_asarray_passes_arrays():
    x = jnp.ones(3)
    assert jnp.asarray(x) is x and jnp.asarray(x, "float32") is x


@pytest.mark.parametrize("dtype", [None, float, int, "f4", ">f4", "<i2", "?", "c16", np.uint8])
def test_frombuffer_reads_what_numpy_reads(dtype):
    data = np.arange(32, dtype="u1").tobytes()
    options = {} if dtype is None else {"dtype": dtype}
    expected = np.frombuffer(data, **options)
    found = jnp.frombuffer(data, **options)
    assert found.dtype == expected.dtype.newbyteorder("=")
    np.testing.assert_array_equal(found, expected)
