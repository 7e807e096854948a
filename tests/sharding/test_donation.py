"""Arrays in shards that are donated: their memory is that of the results, and they are gone."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.errors import DonatedArrayError
from functrans.sharding import NamedSharding, P
from tests.sharding.meshes import mesh_of

X = np.arange(4096, dtype=np.float32).reshape(64, 64)


def fresh(spec, mesh=None):
    """An array in shards whose parts are nobody else's."""
    return ft.jit(lambda v: v * 1.5)(ft.device_put(X, NamedSharding(mesh or mesh_of(4), spec)))


def places(x):
    return [np.asarray(s.data).ctypes.data for s in x.addressable_shards]


step = ft.jit(lambda x, y: x + y, donate_argnums=0)


def test_results_have_the_memory_of_arguments():
    x, y = fresh(P("a")), fresh(P("a"))
    before = places(x)
    z = step(x, y)
    assert places(z) == before
    np.testing.assert_array_equal(z, X * 3)
    np.testing.assert_array_equal(y, X * 1.5)
    with pytest.raises(DonatedArrayError, match="donate_argnums"):
        np.asarray(x)
    with pytest.raises(DonatedArrayError):
        x + 1
    with pytest.raises(DonatedArrayError):
        step(x, y)
    assert "donated" in repr(x)


def test_what_others_hold_they_keep():
    x, y = fresh(P("a")), fresh(P("a"))
    held = x.addressable_shards[1].data
    same = ft.device_put(x, x.sharding)
    view = np.asarray(x.addressable_shards[2].data)
    z = step(x, y)
    np.testing.assert_array_equal(z, X * 3)
    np.testing.assert_array_equal(held, X[16:32] * 1.5)
    np.testing.assert_array_equal(view, X[32:48] * 1.5)
    if same is not x:
        np.testing.assert_array_equal(same, X * 1.5)
    x = fresh(P("a"))
    np.testing.assert_array_equal(step(x, x), X * 3)


@pytest.mark.parametrize("spec", [P(), P(None, "a"), P("b")])
def test_arrays_that_devices_share(spec):
    x = fresh(spec, mesh_of(2, 2))
    for k in range(3):
        y = step(x, X)
        with pytest.raises(DonatedArrayError):
            float(x[0, 0])
        np.testing.assert_array_equal(y, X * (1.5 + k + 1))
        x = y


def test_whole_arrays_that_a_program_divides():
    mesh = mesh_of(4)
    rows = NamedSharding(mesh, P("a"))
    f = ft.jit(lambda x: x * 2, in_shardings=rows, donate_argnums=0)
    x = ft.numpy.asarray(X) + 0
    np.testing.assert_array_equal(f(x), X * 2)
    with pytest.raises(DonatedArrayError):
        np.asarray(x)
    np.testing.assert_array_equal(f(X), X * 2)  # what is NumPy's is nobody's to give


def test_a_loop_with_collectives():
    mesh = mesh_of(4)
    total = ft.shard_map(lambda v: v - 0.1 * lax.psum(v, "a"), mesh, P("a"), P("a"))
    f, g = ft.jit(total, donate_argnums=0), ft.jit(total)
    x, y = fresh(P("a")), fresh(P("a"))
    for _ in range(3):
        x, y = f(x), g(y)
    np.testing.assert_array_equal(x, y)
