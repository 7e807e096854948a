"""lax.reduce by any function, approx_max_k, ragged and scaled products, beside NumPy and loops."""

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import ArgumentError, ShapeError

X = np.random.default_rng(0).normal(size=(3, 5, 4))
KNOWN = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("axes", [(1,), (0, 2), (), (0, 1, 2)])
def test_reductions_by_their_names(name, axes):
    op, expected = getattr(lax, name), KNOWN[name].reduce(X, axes, initial=0.5)
    if not axes:
        expected = KNOWN[name](X, 0.5)
    np.testing.assert_allclose(lax.reduce(X, 0.5, op, axes), expected, rtol=1e-12)
    by_function = lax.reduce(X, 0.5, lambda a, b: op(a, b), axes)
    np.testing.assert_allclose(by_function, expected, rtol=1e-12)
    text = str(ft.make_jaxpr(lambda x: lax.reduce(x, np.float64(0.5), op, axes))(X))
    assert "concatenate" not in text


def test_any_function_of_trees():
    def first_larger(a, b):
        return ft.tree.map(lambda u, v: jnp.where(a[0] >= b[0], u, v), a, b)

    index = np.broadcast_to(np.arange(5)[:, None], (3, 5, 4)).astype(np.int32)
    for run in (lax.reduce, ft.jit(lax.reduce, static_argnums=(2, 3))):
        values, places = run((X, index), (-np.inf, np.int32(-1)), first_larger, (1,))
        np.testing.assert_array_equal(values, X.max(1))
        np.testing.assert_array_equal(places, X.argmax(1))
    lanes = ft.vmap(lambda x, i: lax.reduce((x, i), (-np.inf, np.int32(-1)), first_larger, (0,)))
    np.testing.assert_array_equal(lanes(X, index)[1], X.argmax(1))
    branch = lambda a, b: lax.cond(a > b, lambda: a, lambda: b)
    np.testing.assert_array_equal(lax.reduce(X, -np.inf, branch, (0, 1)), X.max((0, 1)))
    assert lax.reduce(np.zeros((0, 2)), 3.0, branch, (0,)).tolist() == [3, 3]


def test_the_order_is_kept():
    def product(a, b):  # of affine maps, which do not commute
        return a[0] * b[0], b[0] * a[1] + b[1]

    scale, shift = X[0, :, 0], X[1, :, 0]
    found = lax.reduce((scale, shift), (1.0, 0.0), product, (0,))
    value = (1.0, 0.0)
    for s, t in zip(scale, shift):
        value = product(value, (s, t))
    np.testing.assert_allclose([float(v) for v in found], value, rtol=1e-12)
    ft.test_util.check_grads(lambda s, t: lax.reduce((s, t), (1.0, 0.0), product, (0,)),
                             (scale, shift), order=2)


def test_reduce_refuses():
    with pytest.raises(ArgumentError, match="initial value for each"):
        lax.reduce((X, X), (0.0,), lambda a, b: a, (0,))
    with pytest.raises(ShapeError, match="initial values are scalars"):
        lax.reduce(X, np.zeros(2), lax.add, (0,))
    with pytest.raises(ArgumentError, match="another tree"):
        lax.reduce(X, 0.0, lambda a, b: (a, b), (0,))


def test_largest_and_smallest():
    for axis in (0, 1, -1):
        values, places = lax.approx_max_k(X, 2, axis)
        np.testing.assert_array_equal(values, -np.sort(-X, axis).take([0, 1], axis))
        np.testing.assert_array_equal(np.take_along_axis(X, np.asarray(places), axis), values)
        values, places = lax.approx_min_k(X, 2, axis, recall_target=0.5)
        np.testing.assert_array_equal(values, np.sort(X, axis).take([0, 1], axis))


SIZES = np.array([2, 0, 2], np.int32)


def groups_of(sizes, rows):
    ends = np.cumsum(sizes)
    return [int(np.searchsorted(ends, i, "right")) for i in range(rows)]


def test_ragged_rows():
    lhs, rhs = X[0], np.random.default_rng(1).normal(size=(3, 4, 2))
    expected = np.stack([lhs[i] @ rhs[g] if g < 3 else np.zeros(2)
                         for i, g in enumerate(groups_of(SIZES, 5))])
    for run in (lax.ragged_dot, ft.jit(lax.ragged_dot)):
        np.testing.assert_allclose(run(lhs, rhs, SIZES), expected, rtol=1e-12)
    ft.test_util.check_grads(lambda a, b: lax.ragged_dot(a, b, SIZES), (lhs, rhs), order=1)
    sizes = np.array([SIZES, [1, 1, 3], [0, 5, 0]])
    lanes = ft.vmap(lax.ragged_dot, (0, None, 0))(X, rhs, sizes)
    for i in range(3):
        np.testing.assert_allclose(lanes[i], lax.ragged_dot(X[i], rhs, sizes[i]), rtol=1e-12)
    numbers = lax.RaggedDotDimensionNumbers((((2,), (1,)), ((), ())), (1,), (0,))
    np.testing.assert_allclose(lax.ragged_dot_general(X, rhs, sizes, numbers), lanes, rtol=1e-12)
    batched = lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (0,))), (1,), (1,))
    own = np.stack([rhs, 2 * rhs, rhs + 1])
    out = lax.ragged_dot_general(X, own, sizes, batched)
    for i in range(3):
        np.testing.assert_allclose(out[i], lax.ragged_dot(X[i], own[i], sizes[i]), rtol=1e-12)


def test_ragged_sums_and_batches():
    y = np.random.default_rng(2).normal(size=(3, 5, 2))
    of_sum = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((0,), (0,))), (1,), ())
    out = lax.ragged_dot_general(X, y, np.array([2, 3], np.int32), of_sum)
    parts = [np.einsum("bkm,bkn->bmn", X[:, s], y[:, s]) for s in (slice(0, 2), slice(2, 5))]
    np.testing.assert_allclose(out, np.stack(parts), rtol=1e-12)
    of_batch = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((0,), (0,))), (0,), ())
    out = lax.ragged_dot_general(X, y, np.array([1, 2], np.int32), of_batch)
    np.testing.assert_allclose(out, np.einsum("bkm,bkn->bmn", X, y), rtol=1e-12)
    with pytest.raises(ShapeError, match="2 sizes for 3 groups"):
        lax.ragged_dot(X[0], np.ones((3, 4, 2)), np.array([2, 3], np.int32))
    with pytest.raises(ArgumentError, match="group_offset"):
        lax.ragged_dot(X[0], np.ones((3, 4, 2)), SIZES, group_offset=np.array([0]))
    with pytest.raises(ShapeError, match="ragged_dot_general"):
        lax.ragged_dot(X, np.ones((3, 4, 2)), SIZES)


def test_scaled_products():
    rng = np.random.default_rng(3)
    a = rng.normal(size=(2, 3, 8)).astype(ml_dtypes.float8_e4m3fn)
    b = rng.normal(size=(2, 8, 4)).astype(ml_dtypes.float8_e4m3fn)
    sa = (2.0 ** rng.integers(-3, 3, (2, 3, 2))).astype(ml_dtypes.float8_e8m0fnu)
    sb = (2.0 ** rng.integers(-3, 3, (2, 4, 4))).astype(ml_dtypes.float8_e8m0fnu)
    wide = [v.astype(np.float32) for v in (a, b, sa, sb)]
    expected = (wide[0] * wide[2].repeat(4, 2)) @ (wide[1] * wide[3].repeat(2, 1))
    found = lax.scaled_dot(a, b, lhs_scale=sa, rhs_scale=sb, preferred_element_type=np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert lax.scaled_dot(a, b).dtype == jnp.bfloat16
    with pytest.raises(ShapeError, match="scales are of elements"):
        lax.scaled_dot(a, b, lhs_scale=sa[:, :, :1].repeat(3, 2))
