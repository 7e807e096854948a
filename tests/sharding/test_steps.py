"""Collectives as steps of compiled programs: of the runtime, and of the groups of other engines."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.core.communicator import MeshMember
from functrans.distributed.local import ThreadsMember
from functrans.sharding import P
from tests.sharding.meshes import mesh_of


def everything(x):
    """Each kind of step, in one program, also in a loop."""
    total = lax.psum(x, "a")
    largest = lax.pmax(x, "a") - lax.pmin(x, "a")
    ring = lax.ppermute(x, "a", [(0, 1), (1, 3)])
    parts = lax.psum_scatter(x, "a", scatter_dimension=1, tiled=True)
    everyone = lax.all_gather(parts, "a", axis=1, tiled=True)
    swapped = lax.all_to_all(x, "a", 1, 0, tiled=True).reshape(x.shape)
    looped = lax.fori_loop(0, 3, lambda i, c: lax.ppermute(
        c, "a", [(k, (k + 1) % 4) for k in range(4)]) + x, x)
    return jnp.stack([total, largest, ring, everyone, swapped, looped])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "float64"])
@pytest.mark.parametrize("engine", ["runtime", "python"])
def test_every_kind_of_step(engine, dtype, monkeypatch):
    if engine == "python":
        monkeypatch.setattr(ThreadsMember, "step_group", MeshMember.step_group)
    x = jnp.asarray(np.random.default_rng(0).integers(-3, 4, (4, 2, 8))).astype(dtype)
    f = ft.jit(ft.shard_map(lambda v: everything(v[0])[None], mesh_of(4), P("a"), P("a")))
    expected = ft.vmap(everything, axis_name="a")(x)
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(f(x).astype("float64")),
                                      np.asarray(expected.astype("float64")))
    explained = str(ft.explain(f, x))
    assert "host call" not in explained
    assert "ppermute over 'a'" in explained


def test_an_error_in_a_group_of_python_comes_through(monkeypatch):
    monkeypatch.setattr(ThreadsMember, "step_group", MeshMember.step_group)
    mesh = mesh_of(2)

    def fail(i):
        if i == 1:
            raise OverflowError("too much")
        return np.float32(0)

    f = ft.shard_map(lambda x: lax.psum(x + ft.pure_callback(
        fail, ft.ShapeDtypeStruct((), np.float32), lax.axis_index("a")), "a"), mesh, P("a"), P())
    with pytest.raises(Exception, match="too much"):
        f(np.ones(2, np.float32))
