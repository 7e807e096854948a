"""Names that programs written for JAX import, where only the import is changed."""

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans.example_libraries import optimizers, stax
from functrans.experimental import checkify, disable_x64, enable_x64, io_callback, multihost_utils
from functrans.experimental.mesh_utils import create_device_mesh
from functrans.experimental.pjit import pjit
from functrans.experimental.shard_map import shard_map
from functrans.sharding import Mesh, PartitionSpec


def test_shard_map_with_its_old_arguments():
    mesh = Mesh(create_device_mesh((1,)), ("x",))
    spec = PartitionSpec("x")
    double = shard_map(lambda x: 2 * x, mesh=mesh, in_specs=(spec,), out_specs=spec,
                       check_rep=False)
    assert double(jnp.arange(3)).tolist() == [0, 2, 4]
    assert pjit(double)(jnp.arange(3)).tolist() == [0, 2, 4]


def test_a_network_of_stax_is_trained():
    init, apply = stax.serial(stax.Dense(8), stax.Tanh, stax.Dense(1))
    _, params = init(ft.random.key(0), (-1, 2))
    start, update, get = optimizers.adam(0.05)
    x = ft.random.normal(ft.random.key(1), (32, 2))

    def loss(params):
        return jnp.mean((apply(params, x)[:, 0] - x[:, 0] * x[:, 1]) ** 2)

    state = start(params)
    before = loss(params)
    step = ft.jit(lambda i, state: update(i, ft.grad(loss)(get(state)), state))
    for i in range(60):
        state = step(i, state)
    assert loss(get(state)) < before / 4


def test_callbacks_scopes_and_processes():
    seen = []
    shape = ft.ShapeDtypeStruct((), jnp.float32)
    ft.jit(lambda x: io_callback(lambda v: seen.append(v) or v, shape, x))(1.0)
    assert seen == [1]
    with enable_x64():
        assert jnp.ones(1).dtype == "float64"
        with disable_x64():
            assert jnp.ones(1).dtype == "float32"
    assert np.shape(multihost_utils.process_allgather(jnp.ones(2))) == (1, 2)
    checks: frozenset[checkify.ErrorCategory] = checkify.nan_checks
    assert checks <= checkify.all_checks
