"""Arrays in shards: where they are, what they are to NumPy and Python, and how they are made."""

import copy
import pickle

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.errors import ArgumentError, AxisNameError, ShapeError, ShardingError
from functrans.sharding import Mesh, NamedSharding, P, SingleDeviceSharding
from tests.sharding.meshes import mesh_of

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def on(spec, x=X, mesh=None):
    return ft.device_put(x, NamedSharding(mesh or mesh_of(2, 2), spec))


def test_an_array_in_shards_is_an_array():
    x = on(P("a", "b"))
    assert isinstance(x, ft.Array)
    assert x.shape == (8, 4)
    assert x.dtype == np.float32
    assert not x.is_fully_replicated
    assert x.is_fully_addressable
    assert x.committed
    assert len(x.devices()) == 4
    assert x.sharding == NamedSharding(mesh_of(2, 2), P("a", "b"))
    np.testing.assert_array_equal(np.asarray(x), X)
    assert repr(x) == repr(jnp.asarray(X))
    assert float(x[3, 2]) == X[3, 2]
    assert x.tolist() == X.tolist()
    np.testing.assert_array_equal(np.from_dlpack(x), X)


def test_shards_have_their_parts():
    x = on(P("b", "a"))
    shards = x.addressable_shards
    assert [s.device.id for s in shards] == [0, 1, 2, 3]
    for s in shards:
        np.testing.assert_array_equal(np.asarray(s.data), X[s.index])
        assert s.data.shape == (4, 2)
        assert s.data.device == s.device
        assert s.replica_id == 0
    np.testing.assert_array_equal(x.addressable_data(1), shards[1].data)
    halves = on(P("a"))
    assert [s.replica_id for s in halves.addressable_shards] == [0, 1, 0, 1]
    assert on(P()).is_fully_replicated
    assert jnp.ones(3).sharding == SingleDeviceSharding(ft.devices("cpu")[0])
    assert jnp.ones(3).addressable_shards[0].data.shape == (3,)


def test_what_is_contiguous_is_not_copied():
    x = jnp.asarray(X)
    parts = on(P(("a", "b")), x).addressable_shards
    assert all(np.shares_memory(np.asarray(x), np.asarray(p.data)) for p in parts)


def test_copies_and_files():
    x = on(P("a"))
    for y in (copy.copy(x), copy.deepcopy(x)):
        assert y.sharding == x.sharding
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), X)
    assert pickle.loads(pickle.dumps(x.sharding)) == x.sharding


def test_arrays_move_between_shardings():
    for first in (P(), P("a"), P("b", "a"), P(("a", "b"))):
        for second in (P(), P("b"), P("a", "b"), P(None, ("b", "a"))):
            y = ft.device_put(on(first), NamedSharding(mesh_of(2, 2), second))
            assert y.sharding.spec == second
            np.testing.assert_array_equal(y, X)
    y = ft.device_put(on(P("a")), ft.devices("cpu")[0])
    assert y.sharding == SingleDeviceSharding(ft.devices("cpu")[0])
    other = NamedSharding(mesh_of(4), P("a"))
    assert ft.device_put(on(P("b")), other).sharding == other
    tree = ft.device_put({"w": X, "b": X[0]}, {"w": other, "b": NamedSharding(mesh_of(4), P())})
    assert tree["w"].sharding == other
    assert tree["b"].is_fully_replicated


def test_arrays_from_parts():
    sharding = NamedSharding(mesh_of(2, 2), P("a"))
    asked = []
    x = ft.make_array_from_callback((8, 4), sharding, lambda i: (asked.append(i), X[i])[1])
    assert len(asked) == 2
    np.testing.assert_array_equal(x, X)
    parts = [s.data for s in x.addressable_shards]
    y = ft.make_array_from_single_device_arrays((8, 4), sharding, parts[::-1])
    np.testing.assert_array_equal(y, X)
    np.testing.assert_array_equal(ft.make_array_from_process_local_data(sharding, X), X)
    with pytest.raises(ArgumentError, match="3 arrays for 4 devices"):
        ft.make_array_from_single_device_arrays((8, 4), sharding, parts[:3])
    with pytest.raises(ArgumentError, match=r"parts of shape \(4, 4\)"):
        ft.make_array_from_single_device_arrays((8, 4), sharding, [parts[0][:2], *parts[1:]])


def test_operations_follow_their_operands():
    x = on(P("a", "b"))
    assert (x + 1).sharding == x.sharding
    assert jnp.tanh(x).sharding == x.sharding
    assert x.T.sharding.spec == P("b", "a")
    assert x.sum(0).sharding.spec == P("b")
    assert x.sum().is_fully_replicated
    assert (x @ on(P("b"), X.T @ X)).sharding.spec == P("a")
    assert x[:, :2].sharding.spec == P("a")
    assert x[1].sharding.spec == P("b")
    assert x.reshape(2, 4, 4).sharding.spec == P("a", None, "b")
    assert (x > 3).any()
    np.testing.assert_allclose(ft.grad(lambda v: (v ** 2).sum())(x), 2 * X)
    assert ft.grad(lambda v: (v ** 2).sum())(x).sharding == x.sharding
    assert x.at[0].set(1.0).sharding.spec == P(None, "b")
    y = ft.device_put(X, ft.devices("cpu")[0]) + x
    assert y.sharding == x.sharding


def test_an_array_on_one_virtual_device():
    with ft.config.cpu_devices(3):
        device = ft.devices("cpu")[2]
        x = ft.device_put(X, device)
        assert x.device == device
        assert (x * 2).device == device
        assert ft.jit(jnp.sin)(x).sharding == SingleDeviceSharding(device)
        np.testing.assert_array_equal(x * 2, 2 * X)
        assert ft.device_put(x, "cpu:1").device.id == 1
        assert ft.device_put(x, "cpu").device.id == 0


@pytest.mark.parametrize(("make", "error", "words"), [
    (lambda m: Mesh(m.devices, ("a",)), ShardingError, "1 names"),
    (lambda m: Mesh(m.devices, ("a", "a")), ShardingError, "distinct"),
    (lambda m: Mesh([m.ranks[0]] * 2, ("a",)), ShardingError, "twice"),
    (lambda m: NamedSharding(m, P("q")), AxisNameError, "'a', 'b'"),
    (lambda m: NamedSharding(m, P("a", "a")), ShardingError, "twice"),
    (lambda m: NamedSharding(m, "a"), ArgumentError, "PartitionSpec"),
    (lambda m: on(P("a", None, None)), ShardingError, "3 entries"),
    (lambda m: on(P("a"), X[:3]), ShardingError, "does not divide by 2"),
    (lambda m: ft.make_mesh((64, 64), ("a", "b")), ShapeError, "4096 devices"),
    (lambda m: ft.make_mesh((0,), ("a",)), ArgumentError, "at least one"),
    (lambda m: ft.device_put(X, P("a")), ShardingError, "no mesh"),
    (lambda m: ft.config.cpu_devices(0), ArgumentError, "1 to 256"),
    (lambda m: on(P("a")) + on(P("a"), X, mesh_of(8)),
     ShardingError, "different devices"),
])
def test_errors_say_what_and_why(make, error, words):
    with pytest.raises(error, match=words):
        make(mesh_of(2, 2))


def test_meshes_compare_and_print():
    mesh = mesh_of(2, 3)
    assert mesh == Mesh(np.array(mesh.devices), ("a", "b"))
    assert hash(mesh) == hash(Mesh(np.array(mesh.devices), ("a", "b")))
    assert mesh != mesh_of(3, 2)
    assert dict(mesh.shape) == {"a": 2, "b": 3}
    assert mesh.group(4, ("b",)) == (3, 4, 5)
    assert mesh.group(4, ("b", "a")) == (0, 3, 1, 4, 2, 5)
    assert repr(mesh) == "Mesh('a': 2, 'b': 3)"
    with mesh:
        assert ft.sharding.get_mesh() is mesh
        with ft.set_mesh(mesh_of(4)):
            assert ft.sharding.get_abstract_mesh().axis_sizes == (4,)
        assert ft.sharding.get_mesh() is mesh
    assert ft.sharding.get_abstract_mesh().empty
    assert NamedSharding(mesh, P("a")).is_equivalent_to(NamedSharding(mesh, P("a", None)), 2)
    assert NamedSharding(mesh, P(("a", "b"), None)).shard_shape((12, 5)) == (2, 5)


def test_pictures(capsys):
    ft.debug.visualize_array_sharding(on(P("a", "b")))
    assert capsys.readouterr().out.splitlines()[1] == "| cpu:0 | cpu:1 |"
    ft.debug.visualize_array_sharding(on(P(None), X[0]))
    assert "cpu:0, cpu:1, cpu:2, cpu:3" in capsys.readouterr().out
    with pytest.raises(ArgumentError, match="one or two axes"):
        ft.debug.visualize_sharding((2, 2, 2), on(P()).sharding)


@pytest.mark.parametrize("spec", [P("a", None), P(("a",)), P("a")])
def test_parts_are_taken_as_they_are_by_specs_that_say_the_same(spec):
    """And from meshes of the same devices whose axes have other names."""
    mesh = mesh_of(4)
    renamed = ft.make_mesh((4,), ("r",), devices=list(mesh.ranks))
    f = ft.jit(lambda x: x * 2, donate_argnums=0)
    g = ft.jit(ft.shard_map(lambda x: x + lax.axis_index("a"), mesh, P("a"), P("a")),
               donate_argnums=0)
    for run, sharding in ((f, NamedSharding(mesh, spec)), (g, NamedSharding(mesh, spec)),
                          (g, NamedSharding(renamed, P("r")))):
        x = ft.jit(lambda x: x + 1, out_shardings=sharding)(np.ones((8, 512), np.float32))
        before = [np.asarray(s.data).ctypes.data for s in x.addressable_shards]
        y = run(x)
        assert [np.asarray(s.data).ctypes.data for s in y.addressable_shards] == before
