"""Names of jax.lax that are compositions, beside NumPy, exact integers and loops."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import ArgumentError, DTypeError, KeyTypeError, ShapeError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                                   "uint64"])
def test_high_words(dtype):
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, -1 if info.min else 1, 0, 1, 2, info.max - 1, info.max]
    some = [int(v) for v in RNG.integers(info.min, info.max, 12, dtype=dtype)]
    x = np.array([*ends, *some], dtype)
    a, b = (v.ravel() for v in np.broadcast_arrays(x[:, None], x[None]))
    width = 8 * x.dtype.itemsize
    expected = [(int(u) * int(v)) >> width for u, v in zip(a, b)]
    for run in (lax.mulhi, ft.jit(lax.mulhi)):
        assert run(a, b).tolist() == expected
    with pytest.raises(DTypeError, match="of two integers"):
        lax.mulhi(np.float32(1), np.float32(1))


@pytest.mark.parametrize("dtype, bits, target", [
    ("float32", (5, 10), "float16"), ("float32", (8, 7), "bfloat16"),
    ("float64", (8, 23), "float32"), ("float64", (5, 10), "float16"),
    ("float16", (5, 10), "float16")])
def test_fewer_bits_are_a_conversion(dtype, bits, target):
    x = np.concatenate([RNG.normal(size=200) * 10.0 ** RNG.integers(-12, 12, 200),
                        [0.0, -0.0, np.inf, -np.inf, np.nan, 65519.9, 65520, 1 + 2**-11, 6.2e-5]])
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
        expected = np.asarray(jnp.asarray(x).astype(target).astype(dtype))
        tiny = float(jnp.finfo(target).tiny)
        expected = np.where(np.abs(expected) < tiny, np.copysign(0, x), expected)  # no subnormals
        near = np.abs(np.abs(x) - tiny) < tiny * 1e-2
    for run in (lax.reduce_precision, ft.jit(lax.reduce_precision, static_argnums=(1, 2))):
        found = np.asarray(run(x, *bits))
        assert found.dtype == x.dtype
        if dtype == target:
            np.testing.assert_array_equal(found, x)
        else:
            np.testing.assert_array_equal(found[~near], expected[~near])
    assert ft.grad(lambda v: lax.reduce_precision(v, 5, 2))(1.3).item() == 1
    with pytest.raises(ArgumentError, match="0 bits of exponent"):
        lax.reduce_precision(1.0, 0, 3)
    with pytest.raises(DTypeError):
        lax.reduce_precision(np.int32(1), 5, 3)


def test_igamma_in_its_first_argument():
    a, x = np.array([0.3, 2.0, 7.5, 2.0, 1.0]), np.array([0.5, 3.0, 6.0, 0.0, 500.0])
    h = 1e-6
    expected = (np.asarray(lax.igamma(a + h, x)) - np.asarray(lax.igamma(a - h, x))) / (2 * h)
    np.testing.assert_allclose(lax.igamma_grad_a(a, x), expected, atol=1e-8)


def test_shapes():
    x = jnp.arange(6).reshape(2, 3)
    for reps in ((2, 1), (1, 3), (0, 2), (2, 2)):
        np.testing.assert_array_equal(lax.tile(x, reps), np.tile(np.asarray(x), reps))
    with pytest.raises(ShapeError, match=r"numpy\.tile"):
        lax.tile(x, (2,))
    assert lax.broadcast_shapes((2, 1), (3,), ()) == (2, 3) and lax.broadcast_shapes() == ()
    with pytest.raises(ShapeError, match=r"lax\.broadcast_shapes: shapes \(2,\), \(3,\)"):
        lax.broadcast_shapes((2,), (3,))
    assert lax.broadcast_to_rank(x, 4).shape == (1, 1, 2, 3)
    with pytest.raises(ShapeError, match="2 axes are more than 1"):
        lax.broadcast_to_rank(x, 1)
    y = lax.broadcast_like(x[:, :1], jnp.zeros((4, 2, 3)))
    np.testing.assert_array_equal(y, np.broadcast_to(np.asarray(x[:, :1]), (4, 2, 3)))
    with pytest.raises(ShapeError, match="does not broadcast"):
        lax.broadcast_like(x, x[:, :1])
    for axis in (0, 1, -1):
        parts = lax.unstack(x, axis)
        np.testing.assert_array_equal(lax.stack(parts, axis), x)
        assert isinstance(parts, tuple) and len(parts) == x.shape[axis]
    with pytest.raises(ArgumentError, match="no arrays"):
        lax.stack([])
    assert lax.empty((2, 0), "int8").dtype == np.int8 and lax.dtype(x) == np.int32
    assert lax.stage(np.float32(1)).dtype == np.float32
    assert lax.shape_as_value(()).shape == (0,) and lax.shape_as_value((2, 3)).tolist() == [2, 3]
    symbolic = ft.jit(lambda v: lax.shape_as_value((v.shape[0], 3)), dynamic_shapes=({0: "n"},))
    assert symbolic(jnp.zeros(5)).tolist() == [5, 3]


@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 0), (2, 2))])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
def test_shapes_of_convolutions(padding, strides):
    x, w = jnp.zeros((2, 9, 8, 3)), jnp.zeros((3, 2, 3, 4))
    dims = ("NHWC", "HWIO", "NHWC")
    out = lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=dims)
    assert lax.conv_general_shape_tuple(x.shape, w.shape, strides, padding, dims) == out.shape
    plain = lax.conv_shape_tuple((2, 3, 9, 8), (4, 3, 3, 2), strides, padding)
    assert (plain[0], *plain[2:], plain[1]) == out.shape
    of = ("NHWC", "HWOI", "NHWC")
    out = lax.conv_transpose(x, jnp.zeros((3, 2, 3, 4)), strides, padding, dimension_numbers=dims)
    # in JAX's words the kernel is that of the forward convolution
    assert lax.conv_transpose_shape_tuple(x.shape, (3, 2, 4, 3), strides, padding, of) == out.shape
    assert lax.conv_general_permutations(dims) == ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    window = (1, 3, 2, 1)
    out = lax.reduce_window(x, 0.0, lax.add, window, (1, *strides, 1),
                            padding if isinstance(padding, str) else ((0, 0), *padding, (0, 0)))
    pads = lax.padtype_to_pads(x.shape, window, (1, *strides, 1), padding) \
        if isinstance(padding, str) else ((0, 0), *padding, (0, 0))
    assert lax.reduce_window_shape_tuple(x.shape, window, (1, *strides, 1), pads) == out.shape


def test_kernels_of_their_own():
    x, w = RNG.normal(size=(2, 7, 6, 3)), RNG.normal(size=(3, 2, 3, 4))
    dims = ("NHWC", "HWIO", "NHWC")
    same = lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=dims)
    rows = w.transpose(2, 0, 1, 3).reshape(1, 1, 3 * 3 * 2, 4)  # features first, then the window
    everywhere = np.broadcast_to(rows, (*same.shape[1:3], *rows.shape[2:]))
    local = lambda x, k: lax.conv_general_dilated_local(x, k, (2, 1), "SAME", (3, 2),
                                                        dimension_numbers=dims)
    np.testing.assert_allclose(local(x, everywhere), same, rtol=1e-10)
    kernels = RNG.normal(size=everywhere.shape)
    np.testing.assert_allclose(ft.jit(local)(x, kernels), local(x, kernels), rtol=1e-10)
    one = np.where(np.arange(everywhere.shape[0])[:, None, None, None] == 1, kernels, 0)
    out = np.asarray(local(x, one))
    assert (out[:, [0, 2, 3]] == 0).all() and (out[:, 1] != 0).any()
    ft.test_util.check_grads(local, (x[:1, :3, :2], kernels[:2, :2]), order=1)
    with pytest.raises(ShapeError, match="18 elements in a window"):
        local(x, kernels[:, :, :5])


def test_exchange_along_named_axes():
    x = RNG.normal(size=(3, 2, 3, 4))
    both = ft.vmap(lambda v: lax.all_to_all(v, "i", 1, 0), axis_name="i")(x)
    np.testing.assert_array_equal(both, x.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(
        ft.vmap(lambda v: lax.pswapaxes(v, "i", 1), axis_name="i")(x), x.transpose(2, 1, 0, 3))
    y = RNG.normal(size=(2, 4, 6))
    tiled = ft.vmap(lambda v: lax.all_to_all(v, "i", 0, 1, tiled=True), axis_name="i")(y)
    blocks = [[y[j, 2 * i:2 * i + 2] for j in range(2)] for i in range(2)]
    np.testing.assert_array_equal(tiled, np.stack([np.concatenate(b, 1) for b in blocks]))
    ft.test_util.check_grads(ft.vmap(lambda v: lax.all_to_all(v, "i", 1, 0) ** 2, axis_name="i"),
                             (x,), order=2)
    sent = ft.vmap(lambda v: lax.pbroadcast(v, "i", 1), axis_name="i")(y)
    np.testing.assert_array_equal(sent, np.stack([y[1], y[1]]))
    same = ft.vmap(lambda v: lax.pcast(v, "i", to="varying"), axis_name="i")(y)
    np.testing.assert_array_equal(same, y)
    with pytest.raises(ArgumentError, match="an element for each position"):
        ft.vmap(lambda v: lax.all_to_all(v, "i", 1, 0), axis_name="i")(y)
    with pytest.raises(ArgumentError, match="position 2"):
        ft.vmap(lambda v: lax.pbroadcast(v, "i", 2), axis_name="i")(y)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_bits_of_a_state(dtype):
    state = jnp.array([1, 2, 3, 2**32 - 2], "uint32")[jnp.array([0, 1, 3, 2])]
    new, bits = lax.rng_bit_generator(state, (3, 7), dtype)
    assert bits.shape == (3, 7) and bits.dtype == dtype and new.dtype == state.dtype
    again = ft.jit(lambda s: lax.rng_bit_generator(s, (3, 7), dtype))(state)
    assert (again[1] == bits).all() and (again[0] == new).all()
    _, long = lax.rng_bit_generator(state, (64,), dtype)
    assert (long[:21] == bits.ravel()).all()  # the counter goes on, over the end of its low word
    _, following = lax.rng_bit_generator(new, (8,), dtype)
    used = 22 if dtype == "uint64" else 24
    assert (long[used:used + 8] == following).all()
    mean = np.asarray(lax.rng_bit_generator(state, (4000,), dtype)[1]).astype(float).mean()
    assert abs(mean / np.iinfo(dtype).max - 0.5) < 0.03
    wide = jnp.array([5, 6], "uint64")
    assert lax.rng_bit_generator(wide, (2,), algorithm=lax.RandomAlgorithm.RNG_PHILOX)[0].dtype \
        == np.uint64
    with pytest.raises(KeyTypeError, match="four words"):
        lax.rng_bit_generator(jnp.zeros(3, "uint32"), (2,))


def test_bits_without_a_state():
    one, two = (lax.rng_uniform(2.0, 3.0, (50,)) for _ in range(2))
    assert ((one >= 2) & (one < 3)).all() and (one != two).any()
    f = ft.jit(lambda: lax.rng_uniform(jnp.int32(0), jnp.int32(1000), (20,)))
    assert f().dtype == np.int32 and (f() != f()).any()
    with pytest.raises(DTypeError, match="one dtype"):
        lax.rng_uniform(jnp.float32(0), jnp.int32(1), (2,))


def test_platforms_and_names():
    with ft.config.default_device("cpu"):
        run = ft.jit(lambda x: lax.platform_dependent(x, cpu=jnp.sin, cuda=jnp.cos))
        assert run(1.0).item() == pytest.approx(np.sin(1))
        assert lax.platform_dependent(1.0, tpu=jnp.cos, default=jnp.exp).item() > 2
        with pytest.raises(ArgumentError, match="nothing for cpu, and no default"):
            lax.platform_dependent(1.0, cuda=jnp.cos)
    f = lax.composite(lambda x, *, n: x ** n, name="my.power", version=2)
    assert ft.grad(lambda x: f(x, n=3))(2.0).item() == 12 and f(2.0, n=3) == 8
    assert lax.RoundingMethod.TO_NEAREST_EVEN == 1
    assert lax.round(jnp.array([0.5, 1.5]), lax.RoundingMethod.TO_NEAREST_EVEN).tolist() == [0, 2]


def test_primitives_have_their_names():
    for name in lax.__all__:
        if name.endswith("_p"):
            primitive = getattr(lax, name)
            assert primitive.name and hasattr(primitive, "bind"), name
    traced = ft.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0)
    assert [e.primitive for e in traced.jaxpr.eqns] == [lax.sin_p, lax.add_p]
