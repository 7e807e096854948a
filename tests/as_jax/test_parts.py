"""What stands for names of JAX that functrans has no name of its own for."""

import inspect

import numpy as np
import pytest


def test_pmap_is_over_one_device(jax):
    import jax.numpy as jnp

    x = jnp.arange(3.0)[None]
    total = jax.pmap(lambda v, w: jax.lax.psum(v * w, "d"), axis_name="d", in_axes=(0, None))
    assert total(x, 2.0).tolist() == [[0.0, 2.0, 4.0]]
    power = jax.pmap(lambda v, n: v ** n, static_broadcasted_argnums=1)
    assert power(x, 2).tolist() == [[0.0, 1.0, 4.0]]
    with pytest.raises(ValueError, match="devices"):
        jax.pmap(jnp.sin)(jnp.ones((jax.device_count() + 1, 2)))


def test_shard_map_sees_the_axes_of_the_mesh(jax):
    mesh = jax.make_mesh((1,), ("i",))
    spec = jax.sharding.PartitionSpec("i")

    def f(x):
        return x + jax.lax.axis_index("i") + jax.lax.psum(1, "i")

    assert jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)(
        jax.numpy.zeros(2)).tolist() == [1.0, 1.0]


def test_arrays_are_where_they_are_put(jax):
    mesh = jax.make_mesh((1,), ("i",))
    sharding = jax.sharding.NamedSharding(mesh, jax.P("i"))
    x = jax.device_put({"a": np.ones(2, "float32")}, sharding)["a"]
    assert x.sharding.device_set == x.devices() and x.is_fully_addressable
    assert x.addressable_shards[0].data.tolist() == [1.0, 1.0]
    assert jax.jit(lambda v: v * 2, in_shardings=sharding, out_shardings=sharding)(x).sum() == 4
    assert jax.jit(backend="cpu")(lambda v: v + 1)(x).tolist() == [2.0, 2.0]
    assert jax.tree.leaves((sharding, jax.P("i"))) == [sharding, jax.P("i")]


def test_a_primitive_whose_lowering_is_mlir(jax):
    """What `def_impl` does to arrays is what compiled programs run."""
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    cube_p = Primitive("cube")
    cube_p.def_impl(lambda x: x * x * x)
    cube_p.def_abstract_eval(lambda x: x)
    ad.defjvp(cube_p, lambda t, x: t * 3 * x * x)
    batching.defvectorized(cube_p)
    mlir.register_lowering(cube_p, lambda ctx, x: [x], platform="tpu")
    mlir.register_lowering(cube_p, lambda ctx, x: [x])
    assert jax.jit(jax.vmap(jax.grad(cube_p.bind)))(jax.numpy.arange(3.0)).tolist() == [0, 3, 12]

    looks_p = Primitive("looks")  # at values, so that programs have to call it
    looks_p.def_impl(lambda x: x if x.item() > 0 else -x)
    looks_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(looks_p, lambda ctx, x: [x])
    assert jax.jit(looks_p.bind)(-2.0).item() == 2.0

    bare_p = Primitive("bare")
    bare_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(bare_p, lambda ctx, x: [x])
    with pytest.raises(Exception, match="lowered by MLIR alone"):
        jax.jit(bare_p.bind)(1.0)


def test_flat_functions(jax):
    from jax import api_util
    from jax.extend import linear_util

    leaves, tree = jax.tree.flatten(((1.0, {"a": 2.0}), {"b": 3.0}))
    flat, out_tree = api_util.flatten_fun(
        linear_util.wrap_init(lambda x, y, b: {"sum": x + y["a"] + b}), tree)
    assert flat.call_wrapped(*leaves) == [6.0]
    assert jax.tree.unflatten(out_tree(), [6.0]) == {"sum": 6.0}
    partial, given = api_util.argnums_partial(linear_util.wrap_init(lambda x, y: x - y), 1, (5, 3))
    assert given == [3] and partial.call_wrapped(1) == 4
    assert api_util.rebase_donate_argnums((1, 3), (0,)) == (0, 2)
    args = jax.tree.structure(((1, (2, 3)), {}))
    assert api_util.donation_vector((1,), (), args) == (False, True, True)
    assert api_util.flatten_axes("in_axes", jax.tree.structure({"a": 1, "b": (2, 3)}),
                                 {"a": 0, "b": None}) == [0, None, None]


def test_events(jax):
    from jax import monitoring

    seen = []
    monitoring.register_event_listener(lambda event, **kw: seen.append((event, kw)))
    monitoring.record_event("/a", n=1)
    monitoring.record_event_duration_secs("/b", 1.0)
    monitoring.clear_event_listeners()
    monitoring.record_event("/c")
    assert seen == [("/a", {"n": 1})]


@pytest.mark.parametrize("name, arguments", [
    ("sgd", (0.1,)), ("momentum", (0.05, 0.5)), ("nesterov", (0.05, 0.5)), ("adagrad", (0.5,)),
    ("rmsprop", (0.05,)), ("rmsprop_momentum", (0.02,)), ("adam", (0.2,)), ("adamax", (0.2,)),
    ("sm3", (0.5,))])
def test_optimizers_go_down(jax, name, arguments):
    from jax.example_libraries import optimizers

    init, update, get_params = getattr(optimizers, name)(*arguments)
    params = {"w": jax.numpy.array([[1.0, -2.0], [0.5, 3.0]]), "b": jax.numpy.array(1.0)}

    def loss(p):
        return jax.numpy.sum(p["w"] ** 2) + p["b"] ** 2

    def step(i, state):
        return update(i, jax.grad(loss)(get_params(state)), state)

    state = jax.lax.fori_loop(0, 100, step, init(params))
    assert loss(get_params(state)) < 0.1 * loss(params)
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    assert get_params(again)["b"] == get_params(state)["b"]


def test_first_steps_of_optimizers(jax):
    """By hand, from x = 1 and g = 2."""
    from jax.example_libraries import optimizers

    def after(opt):
        return float(opt.params_fn(opt.update_fn(0, 2.0, opt.init_fn(jax.numpy.array(1.0)))))

    assert after(optimizers.sgd(0.1)) == pytest.approx(0.8)
    assert after(optimizers.nesterov(0.1, 0.5)) == pytest.approx(1 - 0.1 * 3)
    assert after(optimizers.adam(0.1)) == pytest.approx(0.9)
    assert after(optimizers.rmsprop(0.1)) == pytest.approx(1 - 0.1 * 2 / np.sqrt(0.4))
    assert after(optimizers.adagrad(0.1)) == pytest.approx(1 - 0.1 * 0.1)
    schedule = optimizers.piecewise_constant([10, 20], [1.0, 0.1, 0.01])
    assert [float(schedule(i)) for i in (0, 11, 30)] == pytest.approx([1.0, 0.1, 0.01])
    assert optimizers.polynomial_decay(1.0, 10, 0.0)(5) == pytest.approx(0.5)
    assert optimizers.inverse_time_decay(1.0, 10, 1.0)(10) == pytest.approx(0.5)
    assert float(optimizers.l2_norm(optimizers.clip_grads({"a": jax.numpy.array([3.0, 4.0])}, 1.0))
                 ) == pytest.approx(1.0)


def test_layers(jax):
    from jax.example_libraries import stax

    net = stax.serial(
        stax.Conv(4, (3, 3), padding="SAME"), stax.BatchNorm(), stax.Relu, stax.MaxPool((2, 2)),
        stax.FanOut(2), stax.parallel(stax.Identity, stax.Tanh), stax.FanInSum, stax.Flatten,
        stax.Dense(5), stax.Dropout(0.9), stax.LogSoftmax)
    init, apply = net
    key = jax.random.key(0)
    shape, params = init(key, (-1, 8, 8, 3))
    assert shape == (-1, 5)
    out = apply(params, jax.numpy.ones((2, 8, 8, 3)), rng=key)
    assert out.shape == (2, 5)
    np.testing.assert_allclose(np.exp(out).sum(-1), 1, rtol=1e-5)
    pool = stax.AvgPool((2, 2), padding="SAME")[1]
    np.testing.assert_allclose(pool((), jax.numpy.ones((1, 3, 3, 1))), 1, rtol=1e-6)


def test_derivatives_beside_differences(jax):
    from jax.test_util import check_grads, check_jvp, check_vjp

    x = jax.numpy.array([0.3, 0.7])
    f = jax.numpy.sin
    check_grads(f, (x,), 2)
    check_jvp(f, lambda p, t: jax.jvp(f, p, t), (x,))
    check_vjp(f, lambda *p: jax.vjp(f, *p), (x,))
    with pytest.raises(AssertionError):
        check_jvp(f, lambda p, t: jax.jvp(jax.numpy.cos, p, t), (x,))
    with pytest.raises(AssertionError):
        check_vjp(f, lambda *p: jax.vjp(jax.numpy.cos, *p), (x,))


def test_a_platform_that_is_not_there(jax):
    with pytest.raises(RuntimeError, match="Unknown backend"):
        jax.devices("tpu")


def test_jitted_functions_are_told_by_libraries(jax):
    jitted = jax.jit(lambda x, n=1: x * n)
    assert str(inspect.signature(jitted, follow_wrapped=False)) == "(x, n=1)"


def test_each_shape_is_traced(jax):
    seen = []
    jitted = jax.jit(lambda x: seen.append(x.shape) or x)
    for n in (2, 3, 4, 3):
        jitted(jax.numpy.ones(n))
    assert seen == [(2,), (3,), (4,)]
