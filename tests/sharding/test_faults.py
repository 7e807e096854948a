"""Programs of several devices that fail: all devices stop, and the error names the one at fault."""

import threading

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.core.communicator import acting_as
from functrans.distributed.engines import engine_for
from functrans.errors import AxisNameError, CollectiveError, ShardingError
from functrans.sharding import P
from tests.forks import holds_in_child
from tests.sharding.meshes import mesh_of

X = np.arange(8, dtype=np.float32)


def test_an_error_on_one_device_wakes_the_others():
    def fail(i):
        if i == 2:
            raise OverflowError("too much")
        return np.float32(i)

    def f(x):
        i = lax.axis_index("a")
        y = ft.pure_callback(fail, ft.ShapeDtypeStruct((), np.float32), i)
        return lax.psum(x * y, "a")

    mapped = ft.shard_map(f, mesh_of(4), P("a"), P())
    for _ in range(2):
        with pytest.raises(Exception, match="too much") as error:
            mapped(X)
        assert "On cpu:2, rank 2 of" in "".join(error.value.__notes__)
    np.testing.assert_allclose(ft.shard_map(lambda x: lax.psum(x, "a"), mesh_of(4), P("a"),
                                            P())(X), X.reshape(4, 2).sum(0))


def test_a_device_that_does_not_come_is_named():
    def f(x):
        alone = lax.axis_index("a") == 1
        return lax.while_loop(lambda c: c[1] < jnp.where(alone, 1, 2),
                              lambda c: (c[0] + ft.lax.psum(c[0], "a"), c[1] + 1), (x, 0))[0]

    with pytest.raises(CollectiveError, match="waits for cpu:1"):
        ft.shard_map(f, mesh_of(2), P("a"), P("a"))(X)


def test_programs_run_side_by_side_and_within_each_other():
    mesh = mesh_of(2)
    total = ft.shard_map(lambda x: lax.psum(x.sum(), "a"), mesh, P("a"), P())

    def inside(x):
        return np.float32(float(total(np.asarray(x))) + 1)

    def f(x):
        return x + ft.pure_callback(inside, ft.ShapeDtypeStruct((), np.float32), x)

    expected = X + np.repeat(X.reshape(2, 4).sum(1) + 1, 4)
    np.testing.assert_allclose(ft.shard_map(f, mesh, P("a"), P("a"))(X), expected)
    found = [None] * 8

    def work(i):
        found[i] = [float(total(X + i)) for _ in range(10)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [[float(X.sum() + 8 * i)] * 10 for i in range(8)]


def test_groups_of_the_protocol():
    mesh = mesh_of(2, 2)

    def program(member):
        with acting_as(member):
            group = member.group(("b",))
            x = np.full((2, 3), member.rank, np.float32)
            out = np.empty_like(x)
            group.broadcast(x, out, 1)
            group.barrier()
            product = np.empty_like(x)
            group.all_reduce(x + 1, product, "product")
            return group.index, group.size, out[0, 0], product[0, 0]

    found = engine_for(mesh).connect(mesh).run(program)
    assert found == [(0, 2, 1.0, 2.0), (1, 2, 1.0, 2.0), (0, 2, 3.0, 12.0), (1, 2, 3.0, 12.0)]


@pytest.mark.parametrize(("f", "error", "words"), [
    (lambda m: ft.shard_map(lambda x: x, m, P("a"), P())(X), ShardingError, "may differ along 'a'"),
    (lambda m: ft.shard_map(lambda x: x, m, P("z"), P())(X), AxisNameError, "'a', 'b'"),
    (lambda m: ft.shard_map(lambda x: x, m, P("a"), P("a"))(X[:3]), ShardingError,
     "does not divide by 2"),
    (lambda m: ft.shard_map(lambda x: x, m, (P("a"), P()), P("a"))(X), ValueError,
     "2 entries, for 1 arguments"),
    (lambda m: ft.shard_map(lambda x: x.sum(), m, P("a"), P("a"))(X), ShardingError, "1 entries"),
    (lambda m: ft.shard_map(lambda x: lax.psum(x, "q"), m, P("a"), P())(X), AxisNameError, "'q'"),
    (lambda m: ft.shard_map(lambda x: x, None, P("a"), P("a"))(X), ShardingError, "no mesh"),
    (lambda m: ft.shard_map(lambda x: x, m, P("a"), P("a"), axis_names={"b"})(X), ShardingError,
     "not in axis_names"),
    (lambda m: ft.shard_map(lambda x: x, m, P("a"), P("a"), axis_names={"q"})(X), AxisNameError,
     "axis_names"),
    (lambda m: ft.shard_map(lambda x: x, m, out_specs=P("a"))(X), ShardingError, "no in_specs"),
    (lambda m: ft.shard_map(lambda x: x, m, P("a")), ValueError, "no out_specs"),
    (lambda m: lax.psum(X, "a"), AxisNameError, "no axis is called 'a'"),
    (lambda m: lax.psum(X, "a", axis_index_groups=[[0], [1]]), AxisNameError, "no axis is called"),
    (lambda m: ft.shard_map(lambda x: lax.psum(x, "a", axis_index_groups=[[0]]), m, P("a"),
                            P("a"))(X), ValueError, "each position is in one group"),
    (lambda m: ft.shard_map(lambda x: lax.psum(x, ("a", "b"), axis_index_groups=[[0]]), m, P("a"),
                            P("a"))(X), ValueError, "positions of one axis"),
    (lambda m: ft.vmap(lambda x: lax.all_gather(x, "v", axis_index_groups=[[0], [1, 2]]),
                       axis_name="v")(X[:3]), ValueError, r"groups of \[1, 2\] members"),
    (lambda m: ft.vmap(lambda x: lax.psum(x, "v", axis_index_groups=3),
                       axis_name="v")(X[:3]), ValueError, "list of lists"),
    (lambda m: ft.jit(lambda x: x, in_shardings=(None, None))(X), ValueError, "2 entries"),
    (lambda m: ft.jit(lambda x: x, in_shardings=3)(X), ValueError, "in_shardings is 3"),
    (lambda m: ft.jit(lambda x: x, out_shardings=ft.NamedSharding(m, P("a")))(X[:3]),
     ShardingError, "does not divide by 2"),
])
def test_errors_say_what_and_why(f, error, words):
    with pytest.raises(error, match=words):
        f(mesh_of(2, 2))


def test_a_forked_child_has_devices_of_its_own():
    total = ft.shard_map(lambda x: lax.psum(x.sum(), "a"), mesh_of(2), P("a"), P())
    assert float(total(X)) == 28.0
    assert holds_in_child(lambda: float(total(X + 1)) == 36.0)
