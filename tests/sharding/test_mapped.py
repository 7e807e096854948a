"""`pmap` and `smap` over virtual devices of the CPU, beside `vmap`."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.errors import AxisSizeError, ShapeError

with ft.config.cpu_devices(4):
    FOUR = ft.devices("cpu")


def step(x, scale):
    total = ft.lax.psum(x, "i")
    return {"part": x * scale - total, "all": total, "at": ft.lax.axis_index("i")}


@pytest.mark.parametrize("devices", [FOUR, FOUR[:1]])
@pytest.mark.parametrize("size", [4, 3])
def test_pmap_is_vmap(devices, size):
    x = jnp.arange(size * 6.0).reshape(2, size, 3)
    axes, out_axes = (1, None), {"part": -1, "all": None, "at": 0}
    mapped = ft.pmap(step, "i", in_axes=axes, out_axes=out_axes, devices=devices)
    expected = ft.vmap(step, axes, {"part": -1, "all": 0, "at": 0}, axis_name="i")(x, 2.0)
    got = mapped(x, 2.0)
    assert np.allclose(got["part"], expected["part"])
    assert np.array_equal(got["at"], expected["at"])
    assert np.allclose(got["all"], expected["all"][0])

    def loss(f, all_of):
        return lambda x: (f(x, 2.0)["part"] ** 2).sum() + all_of(f(x, 2.0)["all"]).sum()

    wanted = ft.grad(loss(ft.vmap(step, axes, {"part": -1, "all": 0, "at": 0}, axis_name="i"),
                          lambda a: a[0]))(x)
    assert np.allclose(ft.grad(loss(mapped, lambda a: a))(x), wanted, rtol=1e-5)


def test_pmap_takes_static_arguments_and_keywords():
    power = ft.pmap(lambda x, n, y=0.0: x ** n + y, static_broadcasted_argnums=1, devices=FOUR)
    assert power(jnp.arange(4.0), 3, y=jnp.ones(4)).tolist() == [1.0, 2.0, 9.0, 28.0]
    assert power(jnp.arange(4.0), 2).tolist() == [0.0, 1.0, 4.0, 9.0]
    assert len(power(jnp.arange(4.0), 2).sharding.device_set) == 4


def test_what_pmap_refuses():
    double = ft.pmap(lambda x, y: x + y, devices=FOUR)
    with pytest.raises(ShapeError, match="needs as many devices, and there are 4"):
        double(jnp.ones(5), jnp.ones(5))
    with pytest.raises(AxisSizeError, match=r"sizes \[3, 4\]"):
        double(jnp.ones(4), jnp.ones(3))
    with pytest.raises(ShapeError, match="has no axis 0"):
        double(1.0, jnp.ones(3))


def test_smap_is_shard_map():
    mesh = ft.make_mesh((2, 2), ("x", "y"), devices=FOUR)
    x = jnp.arange(32.0).reshape(4, 8)

    def f(x):
        return x * 2, ft.lax.psum(x.sum(), "y")

    with ft.set_mesh(mesh):
        wide, total = ft.smap(f, in_axes=-1, out_axes=(-1, None), axis_name="y")(x)
        assert np.allclose(wide, 2 * x) and float(total) == x.sum()
        with pytest.raises(ShapeError, match="in_axes has 2 for an array of 2 axes"):
            ft.smap(f, in_axes=2, out_axes=0, axis_name="y")(x)


def test_ragged_exchange_writes_what_is_sent():
    rng = np.random.default_rng(0)
    n, each, rows, room = 3, 2, 12, 20
    count = rng.integers(0, 3, (n, n * each))  # of slice k of each sender
    starts = np.cumsum(count, 1) - count
    x = rng.normal(size=(n, rows, 2)).astype(np.float32)
    incoming = np.transpose(count.reshape(n, n, each), (1, 0, 2)).reshape(n, -1)
    offsets = np.cumsum(incoming, 1) - incoming
    to = np.transpose(offsets.reshape(n, n, each), (1, 0, 2)).reshape(n, -1)
    out = np.full((n, room, 2), -1.0, np.float32)
    expected = out.copy()
    for s in range(n):
        for k in range(n * each):
            expected[k // each, to[s, k]:to[s, k] + count[s, k]] = \
                x[s, starts[s, k]:starts[s, k] + count[s, k]]

    def exchange(*parts):
        return ft.lax.ragged_all_to_all(*parts, axis_name="i")

    args = [jnp.asarray(v) for v in (x, out, starts, count, to, incoming)]
    assert np.array_equal(ft.vmap(exchange, axis_name="i")(*args), expected)
    assert np.array_equal(ft.pmap(exchange, "i", devices=FOUR[:n])(*args), expected)
    ft.test_util.check_grads(lambda x, out: ft.vmap(exchange, axis_name="i")(x, out, *args[2:]),
                             (args[0], args[1]), order=1, atol=1e-2, rtol=1e-2)


def test_tokens_and_sends():
    pairs = [(0, 1), (1, 2), (2, 0)]

    def around(x):
        token = ft.lax.psend(x, "i", pairs)
        return ft.lax.precv(ft.lax.after_all(token).mark is not None and token, x, "i", pairs)

    x = jnp.arange(6.0).reshape(3, 2)
    assert np.array_equal(ft.vmap(around, axis_name="i")(x), np.roll(x, 1, 0))
    with pytest.raises(ft.errors.ArgumentError, match="was sent"):
        ft.vmap(lambda x: ft.lax.precv(ft.lax.psend(x, "i", pairs), x, "i", [(0, 1)]),
                axis_name="i")(x)
    with pytest.raises(ft.errors.ArgumentError, match="is not one that psend gave"):
        ft.lax.precv(ft.lax.create_token(), x, "i", pairs)
    seen = []
    token = ft.jit(lambda: ft.lax.after_all(ft.lax.create_token()))()
    seen.append(token.block_until_ready())
    assert "Token" in repr(seen)


def test_names_of_compositions_compute():
    x = jnp.arange(4.0)
    lax = ft.lax
    assert lax.square_p.bind(x).tolist() == [0.0, 1.0, 4.0, 9.0]
    assert ft.jit(lambda x: lax.squeeze_p.bind(x[None], dimensions=(0,)))(x).shape == (4,)
    assert lax.approx_top_k_p.bind(x, k=2, is_max_k=True)[0].tolist() == [3.0, 2.0]
    assert float(lax.regularized_incomplete_beta_p.bind(1.0, 1.0, 0.25)) == 0.25
    assert str(lax.linalg.ormqr_p) == "ormqr" and not lax.square_p.multiple_results
    key = ft.random.key(0)
    assert np.array_equal(ft.random.random_gamma_p.bind(key, x + 1), ft.random.gamma(key, x + 1))


@pytest.mark.parametrize("word, precision", [
    ("BF16_BF16_F32_X3", "HIGH"), ("TF32_TF32_F32", "DEFAULT"), ("F32_F32_F32", "HIGHEST"),
    ("BF16_BF16_F32_X9", "HIGHEST"), ("F16_F16_F32", "DEFAULT")])
def test_algorithms_of_products_are_precisions(word, precision):
    x = jnp.ones((2, 2))
    for given in (word, ft.lax.DotAlgorithmPreset[word]):
        printed = str(ft.make_jaxpr(lambda x, given=given: ft.lax.dot(x, x, precision=given))(x))
        assert f"precision={precision} " in printed or f"precision={precision}]" in printed
    wide = ft.lax.DotAlgorithm(np.float32, np.float32, np.float32)
    assert wide.precision is ft.lax.Precision.HIGHEST
    with pytest.raises(ft.errors.ArgumentError, match="is no precision"):
        ft.lax.dot(x, x, precision=ft.lax.DotAlgorithm(np.int8, np.int8, np.int32))
    with pytest.raises(ft.errors.ArgumentError, match="one is positive"):
        ft.lax.Tolerance()
