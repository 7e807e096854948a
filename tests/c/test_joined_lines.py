"""Long lines whose pieces are read from one of several operands, and those that a border is in."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

CHUNK = 4096  # elements of a piece of a long line


@pytest.mark.parametrize("sizes", [
    (CHUNK, CHUNK), (CHUNK + 1, CHUNK - 1), (5_000, 3), (1, 9_000), (3 * CHUNK, 0, 2 * CHUNK),
    (4_500, 1, 7_000), (100, 200, 20_000, 5), (2_047,) * 5])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
def test_vectors_one_after_the_other(sizes, dtype):
    rng = np.random.default_rng(0)
    parts = [(10 * rng.normal(size=n)).astype(dtype) for n in sizes]
    joined = np.concatenate(parts)
    arrays = list(map(jnp.asarray, parts))
    assert np.array_equal(ft.jit(lambda *xs: jnp.concatenate(xs))(*arrays), joined)
    if dtype == "float64":
        wanted = np.concatenate([np.maximum(p, 0) + 1 for p in parts]) * joined[::-1]
        f = ft.jit(lambda *xs: jnp.concatenate([jnp.maximum(x, 0) + 1 for x in xs])
                   * jnp.concatenate(xs)[::-1])
        assert np.array_equal(f(*arrays), wanted)


@pytest.mark.parametrize("low, high", [(0, 3), (1, 0), (5_000, 1), (CHUNK, CHUNK), (-3, 7)])
def test_padded_lines(low, high):
    x = np.random.default_rng(1).normal(size=10_000)
    wanted = np.pad(x, (max(low, 0), high), constant_values=2.0)[max(-low, 0):]
    f = ft.jit(lambda x: ft.lax.pad(x, 2.0, ((low, high, 0),)))
    assert np.array_equal(f(jnp.asarray(x)), wanted)


def test_lines_of_sizes_that_are_not_known():
    f = ft.jit(lambda x, y: jnp.concatenate([x, 2 * y, x]),
               dynamic_shapes={"x": {0: "n"}, "y": {0: "m"}})
    for n, m in ((10_000, 4_097), (3, 9_000), (9_000, 1)):
        x, y = np.arange(n) * 0.5, np.arange(m) + 0.25
        assert np.array_equal(f(jnp.asarray(x), jnp.asarray(y)), np.concatenate([x, 2 * y, x]))


def test_whole_pieces_are_copied():
    """What elements are gathered for is a piece with a border in it, and no other."""
    shapes = [ft.ShapeDtypeStruct((50_000,), "float64")] * 2
    explained = ft.explain(lambda x, y: jnp.concatenate([x, y]), *shapes, target="cpu")
    source = explained.source(explained.kernels[0].name)
    whole, mixed = source.split("} else {\n", 1)
    assert "load_f64x" in whole and "gather" not in whole and "gather" in mixed
