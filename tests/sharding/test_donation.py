"""Arrays in shards that are donated: their memory is that of the results, and they are gone."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.errors import ArgumentError, DonatedArrayError
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


def test_arguments_of_pmap():
    with ft.config.cpu_devices(4):
        four = ft.devices("cpu")
    f = ft.pmap(lambda n, x, y: {"sum": x["w"] + n * lax.psum(y, "i")}, axis_name="i",
                in_axes=(None, 0, 1), devices=four, static_broadcasted_argnums=0,
                donate_argnums=(1,))
    rows = X.reshape(4, 1024)
    columns = rows.T + 1
    x = {"w": ft.pmap(lambda v: v * 2, devices=four)(rows)}
    before = places(x["w"])
    out = f(3, x, columns)
    np.testing.assert_array_equal(out["sum"], 2 * rows + 3 * columns.sum(1))
    assert places(out["sum"]) == before
    with pytest.raises(DonatedArrayError):
        np.asarray(x["w"])
    alone = ft.pmap(lambda v: v * 2, devices=four[:1], donate_argnums=-1)
    y = ft.numpy.asarray(X) + 0
    np.testing.assert_array_equal(alone(y), X * 2)
    with pytest.raises(DonatedArrayError):
        np.asarray(y)
    with pytest.raises(ArgumentError, match="argument 1 is static and donated"):
        ft.pmap(lambda x, n: x, static_broadcasted_argnums=1, donate_argnums=(0, 1))
    with pytest.raises(ArgumentError, match="argument 3 is donated, of 1"):
        ft.pmap(lambda v: v, devices=four, donate_argnums=3)(rows)
