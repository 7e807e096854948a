"""Shape manipulation, joining, splitting, repeating and editing against NumPy."""

import numpy as np
import pytest
from reference import check, compare, integers, normal

import functrans as ft
import functrans.numpy as jnp

X = normal(2, 3, 4)


@pytest.mark.parametrize("call", [
    ("reshape", (6, 4)), ("reshape", (-1,)), ("reshape", (2, -1, 2)), ("reshape", 24),
    ("transpose",), ("transpose", (1, 0, 2)), ("transpose", (-1, 0, 1)),
    ("permute_dims", (2, 0, 1)),
    ("matrix_transpose",), ("swapaxes", 0, -1), ("moveaxis", 0, -1), ("moveaxis", (0, 1), (-1, 0)),
    ("rollaxis", 2), ("rollaxis", 0, 3), ("rollaxis", -1, 1), ("expand_dims", 0),
    ("expand_dims", (0, -1)), ("ravel",), ("ravel", "F"), ("flip",), ("flip", 1), ("flip", (0, -1)),
    ("flipud",), ("fliplr",), ("rot90",), ("rot90", 2), ("rot90", 3), ("rot90", -1, (1, 2)),
    ("roll", 1), ("roll", -5), ("roll", 2, 1), ("roll", (1, 2), (0, 2)), ("roll", 3, (0, 1)),
    ("broadcast_to", (5, 2, 3, 4)), ("tile", 2), ("tile", (2, 1, 3)), ("tile", (2, 1, 1, 2)),
    ("repeat", 2), ("repeat", 3, 1), ("repeat", 0, 2), ("resize", (5, 6)), ("resize", (2, 2)),
    ("atleast_1d",), ("atleast_2d",), ("atleast_3d",), ("squeeze",), ("astype", np.int32),
    ("unstack",), ("size",), ("shape",), ("ndim",), ("copy",)])
def test_manipulation(call):
    name, *args = call
    compare(name, X, *args)


def test_reshape_orders_and_refusals():
    compare("reshape", X, (4, 6), order="F")
    compare("squeeze", normal(1, 3, 1), 0)
    compare("squeeze", normal(1, 3, 1))
    for text, shape in [("24 elements does not fit", (5, 5)), ("does not fit", (-1, 5)),
                        ("does not fit", (-1, -1))]:
        with pytest.raises(ValueError, match=text):
            jnp.reshape(X, shape)
    with pytest.raises(ValueError, match="not of size 1"):
        jnp.squeeze(X, 0)
    with pytest.raises(ValueError, match="do not broadcast"):
        jnp.broadcast_to(X, (2, 3, 5))
    check(jnp.reshape(jnp.zeros((0, 3)), (-1, 3)), np.zeros((0, 3)))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_at_least(shape):
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        compare(name, normal(*shape))
    check(jnp.atleast_2d(1.0, jnp.ones(2)), [np.ones((1, 1)), np.ones((1, 2))])


def test_broadcasting():
    compare("broadcast_shapes", (2, 1), (3,), ())
    check(jnp.broadcast_arrays(X, X[0, :1]), list(np.broadcast_arrays(X, X[0, :1])))
    with pytest.raises(ValueError, match="do not broadcast"):
        jnp.broadcast_shapes((2,), (3,))


def test_roll_by_a_traced_shift():
    for shift in (-7, 0, 3):
        check(ft.jit(lambda s: jnp.roll(X, s, 1))(shift), np.roll(X, shift, 1))
    assert ft.jit(lambda: jnp.roll(jnp.zeros((0,)), 1))().shape == (0,)


def test_joining():
    a, b = normal(2, 3), normal(2, 3, seed=1)
    for axis in (0, 1, -1, None):
        compare("concatenate", [a, b], axis)
    compare("concatenate", [a, integers(1, 3)])
    compare("concatenate", a)
    for axis in (0, 1, -1):
        compare("stack", [a, b], axis)
    for name in ("vstack", "hstack", "dstack", "column_stack"):
        compare(name, [a, b])
        compare(name, [a[0], b[0]])
    compare("hstack", [np.float32(1), np.float32(2)])
    compare("block", [[a, b], [b, a]])
    compare("block", [[a, np.zeros((2, 1), np.float32)], [np.ones((1, 4), np.float32)]])
    compare("block", [a[0], 1.0])
    compare("append", a, b)
    compare("append", a, b, axis=1)
    with pytest.raises(ValueError, match=r"\(2, 3\), \(3,\) differ"):
        jnp.concatenate([a, a.T[:, 0]])
    with pytest.raises(ValueError, match="different shapes"):
        jnp.stack([a, a.T])
    with pytest.raises(ValueError, match="no arrays"):
        jnp.concatenate([])


@pytest.mark.parametrize("sections", [2, [1], [1, 3], [0, 5], [3, 1]])
def test_splitting(sections):
    x = normal(4, 6, 2)
    compare("split", x, sections)
    compare("split", x, sections, 1)
    compare("array_split", x, 3, 0)
    for name in ("vsplit", "hsplit", "dsplit"):
        compare(name, x, sections)
    compare("hsplit", normal(4), sections)
    with pytest.raises(ValueError, match="does not split into 4"):
        jnp.split(x, 4, 1)


def test_repeat_with_counts():
    counts = np.array([2, 0, 3], np.int32)
    compare("repeat", X, counts, axis=1)
    compare("repeat", X[0, :, 0], counts)
    check(jnp.repeat(X, counts, 1, total_repeat_length=5), np.repeat(X, counts, 1))
    check(ft.jit(lambda c: jnp.repeat(X, c, 1, total_repeat_length=4))(counts),
          np.repeat(X, counts, 1)[:, :4])
    padded = jnp.repeat(jnp.arange(3), counts, total_repeat_length=7)
    assert padded.tolist() == [0, 0, 2, 2, 2, 2, 2]
    with pytest.raises(TypeError, match="total_repeat_length"):
        ft.jit(lambda c: jnp.repeat(X, c, 1))(counts)


@pytest.mark.parametrize("obj", [1, -1, [0, 2], slice(None, None, 2), [True, False, True], []])
def test_delete(obj):
    compare("delete", X, obj, 1)
    compare("delete", X[0, :, 0], obj)


def test_delete_traced():
    check(ft.jit(lambda i: jnp.delete(X, i, 1))(1), np.delete(X, 1, 1))
    check(ft.jit(lambda i: jnp.delete(X, i, 2, assume_unique_indices=True))(np.array([3, 0])),
          np.delete(X, [3, 0], 2))


@pytest.mark.parametrize("obj", [0, 1, -1, 3, [0, 2], [3, 1, 1], slice(0, 2)])
def test_insert(obj):
    compare("insert", X, obj, 9.0, 1)
    compare("insert", X[0, :, 0], obj, 9)
    compare("insert", X[0, :, 0], [1, 2], np.array([5, 6], np.float32))
    compare("insert", X[0], 1, np.arange(4, dtype=np.float32), 0)
    compare("insert", X[0], 1, np.arange(3, dtype=np.float32), 1)


def test_trim_zeros():
    x = np.array([0, 0, 1, 2, 0, 3, 0], np.float32)
    for trim in ("fb", "f", "b"):
        compare("trim_zeros", x, trim)
    compare("trim_zeros", np.zeros(3, np.float32))


def test_apply():
    compare("apply_along_axis", lambda v: v.sum(), 1, X)
    compare("apply_along_axis", lambda v: v * 2, 0, X)
    check(jnp.apply_along_axis(jnp.diag, -1, X[0]), np.apply_along_axis(np.diag, -1, X[0]))
    check(jnp.apply_along_axis(jnp.diag, 0, X[0]), np.apply_along_axis(np.diag, 0, X[0]))
    check(jnp.apply_over_axes(jnp.sum, X, (0, 2)), np.apply_over_axes(np.sum, X, (0, 2)))


@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_bits(bitorder):
    x = integers(3, 11, low=0, high=2, dtype=np.uint8)
    for axis in (None, 0, 1):
        compare("packbits", x, axis, bitorder=bitorder)
        compare("unpackbits", integers(3, 2, low=0, high=256, dtype=np.uint8), axis,
                bitorder=bitorder)
    compare("unpackbits", np.array([[3], [200]], np.uint8), 1, count=5)
    compare("unpackbits", np.array([3, 200], np.uint8), count=20)
    compare("unpackbits", np.array([3, 200], np.uint8), count=-3)


def test_vectorize():
    f = jnp.vectorize(lambda a, b: jnp.where(a > b, a, b))
    check(f(X, X[0, :1]), np.maximum(X, X[0, :1]))
    check(f(jnp.ones((1, 1)), jnp.zeros(3)), np.ones((1, 3)))
    g = jnp.vectorize(jnp.matmul, signature="(n,m),(m)->(n)")
    check(g(X, X[:, 0]), np.einsum("bnm,bm->bn", X, X[:, 0]))
    check(g(X[0], X[:, 0]), np.einsum("nm,bm->bn", X[0], X[:, 0]))
    h = jnp.vectorize(lambda a, n: a * n, excluded={1})
    check(h(X, 3), X * 3)
    with pytest.raises(ValueError, match="'m' has sizes"):
        g(X, X[:, 0, :2])
    with pytest.raises(ValueError, match="no signature"):
        jnp.vectorize(jnp.dot, signature="n->m")(X)


def test_index_tricks():
    check(jnp.r_[1:3, 0, [4, 5]], np.r_[1:3, 0, [4, 5]])
    check(jnp.r_[X[0], X[1]], np.r_[X[0], X[1]])
    check(jnp.c_[X[0, 0], X[0, 1]], np.c_[X[0, 0], X[0, 1]])
    assert jnp.s_[1:2, ...] == np.s_[1:2, ...]
    with pytest.raises(ValueError, match="a text comes first"):
        jnp.r_["x", 1]
