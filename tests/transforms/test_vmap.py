"""vmap: axes of every kind, nesting, names and collectives, chunks."""

from typing import NamedTuple

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import (
    ArgumentError,
    AxisNameError,
    AxisSizeError,
    FunctransError,
    NonArrayError,
)

A = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("in_axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("out_axis", [0, 1, -1, -2])
def test_axes_of_one_argument(in_axis, out_axis):
    out = ft.vmap(lambda x: x.T * 2, in_axes=in_axis, out_axes=out_axis)(A)
    rows = [2 * x.T for x in np.moveaxis(A, in_axis, 0)]
    np.testing.assert_array_equal(out, np.stack(rows, out_axis))


class Pair(NamedTuple):
    x: object
    y: object


def test_in_axes_are_prefixes():
    def fun(p, q):
        return p["a"][0] * p["a"][1] + p["b"].x - p["b"].y * q

    def tree(a, b, c, d):
        return {"a": (a, b), "b": Pair(c, d)}

    v = np.arange(1.0, 4.0)
    expected = v * v + v - v * v
    for axes, p, q in (
            (0, tree(v, v, v, v), v),
            ((0, 0), tree(v, v, v, v), v),
            ([0, 0], tree(v, v, v, v), v),
            (({"a": 0, "b": None}, 0), tree(v, v, 2.0, 1.0), v),
            (({"a": (0, None), "b": Pair(None, 0)}, None), tree(v, 2.0, 1.0, v), 3.0)):
        out = ft.vmap(fun, in_axes=axes)(p, q)
        if axes in (0, (0, 0), [0, 0]):
            np.testing.assert_array_equal(out, expected)
        elif axes[1] == 0:
            np.testing.assert_array_equal(out, v * v + 2 - v)
        else:
            np.testing.assert_array_equal(out, 2 * v + 1 - 3 * v)


def test_out_axes_are_prefixes():
    def fun(x):
        return {"a": (x, x * 2), "b": [x + 1, None], "c": 5.0}

    axes = {"a": (0, 1), "b": -1, "c": None}
    out = ft.vmap(fun, in_axes=1, out_axes=axes)(A[0])
    np.testing.assert_array_equal(out["a"][0], A[0].T)
    np.testing.assert_array_equal(out["a"][1], 2 * A[0])
    np.testing.assert_array_equal(out["b"][0], A[0] + 1)
    assert float(out["c"]) == 5.0
    with pytest.raises(ArgumentError, match="out_axes is None"):
        ft.vmap(fun, out_axes=None)(A)


def test_unmapped_outputs_are_repeated():
    out = ft.vmap(lambda x: (1.0, jnp.arange(2)), out_axes=(0, 1))(A)
    np.testing.assert_array_equal(out[0], [1, 1])
    np.testing.assert_array_equal(out[1], [[0, 0], [1, 1]])


def test_keywords_are_mapped_along_axis_0():
    np.testing.assert_array_equal(
        ft.vmap(lambda x, *, y: x + y, in_axes=None)(1.0, y=np.arange(3.0)), [1, 2, 3])


def test_axis_size():
    np.testing.assert_array_equal(ft.vmap(lambda: 2.0, axis_size=3)(), [2, 2, 2])
    np.testing.assert_array_equal(ft.vmap(lambda x: x, in_axes=None, axis_size=2)(1.0), [1, 1])
    with pytest.raises(AxisSizeError, match="no argument is mapped"):
        ft.vmap(lambda x: x, in_axes=None)(1.0)
    with pytest.raises(AxisSizeError, match="axis_size=4"):
        ft.vmap(lambda x: x, axis_size=4)(np.ones(3))
    with pytest.raises(AxisSizeError, match=r"size 3.*size 4"):
        ft.vmap(lambda x, y: x + y)(np.ones(3), {"k": np.ones((4, 2))})


def test_size_zero_and_one():
    assert ft.vmap(lambda x: x * 2)(np.ones((0, 3))).shape == (0, 3)
    assert ft.jit(ft.vmap(ft.grad(lambda x: (x ** 2).sum())))(np.ones((0, 3))).shape == (0, 3)
    assert ft.vmap(lambda x: x * 2)(np.ones((1, 3))).shape == (1, 3)


def test_nested_pairwise():
    x, y = np.arange(3.0), np.arange(4.0)
    outer = ft.vmap(ft.vmap(lambda a, b: a - b, (None, 0)), (0, None))
    np.testing.assert_array_equal(outer(x, y), np.subtract.outer(x, y))
    deep = ft.vmap(ft.vmap(ft.vmap(lambda a: a.sum() * 0 + 1), in_axes=1), in_axes=2)
    assert deep(np.ones((2, 3, 4, 5))).shape == (4, 3, 2)


def test_reductions_over_a_named_axis():
    x = np.array([[1.0, 5.0], [3.0, 2.0], [2.0, 4.0]])
    for name, expected in (("psum", x.sum(0)), ("pmean", x.mean(0)), ("pmax", x.max(0)),
                           ("pmin", x.min(0))):
        collective = getattr(lax, name)
        whole = ft.vmap(lambda r, c=collective: c(r, "i"), axis_name="i")(x)
        np.testing.assert_allclose(whole, np.stack([expected] * 3))
        once = ft.vmap(lambda r, c=collective: c(r, "i"), axis_name="i", out_axes=None)(x)
        np.testing.assert_allclose(once, expected)
        staged = ft.jit(ft.vmap(ft.jit(lambda r, c=collective: c(r, "i")), axis_name="i"))(x)
        np.testing.assert_allclose(staged, whole)
    tree = ft.vmap(lambda r: lax.psum({"r": r, "one": 1}, "i"), axis_name="i")(x)
    np.testing.assert_allclose(tree["one"], 3)
    np.testing.assert_allclose(tree["r"][0], x.sum(0))


def test_moving_collectives():
    x = np.arange(6.0).reshape(3, 2)
    gathered = ft.vmap(lambda r: lax.all_gather(r, "i"), axis_name="i")(x)
    np.testing.assert_array_equal(gathered, np.stack([x] * 3))
    tiled = ft.vmap(lambda r: lax.all_gather(r, "i", axis=0, tiled=True), axis_name="i")(x)
    np.testing.assert_array_equal(tiled, np.stack([x.reshape(-1)] * 3))
    shifted = ft.vmap(lambda r: lax.ppermute(r, "i", [(0, 1), (1, 2)]), axis_name="i")(x)
    np.testing.assert_array_equal(shifted, [[0, 0], x[0], x[1]])
    position = ft.vmap(lambda r: lax.axis_index("i") * 10, axis_name="i")(x)
    np.testing.assert_array_equal(position, [0, 10, 20])
    assert int(ft.vmap(lambda r: lax.axis_size("i"), axis_name="i", out_axes=None)(x)) == 3


def test_collectives_differentiate():
    x = np.array([0.3, 0.8, -0.5])

    def normalised(v):
        return ft.vmap(lambda a: jnp.exp(a) / lax.psum(jnp.exp(a), "i"), axis_name="i")(v)

    softmax = np.exp(x) / np.exp(x).sum()
    expected = np.diag(softmax) - np.outer(softmax, softmax)
    for jacobian in (ft.jacfwd, ft.jacrev):
        np.testing.assert_allclose(jacobian(normalised)(x), expected, atol=1e-12)
        np.testing.assert_allclose(jacobian(ft.jit(normalised))(x), expected, atol=1e-12)
    inside = ft.vmap(ft.grad(lambda a: lax.psum(a * a, "i")), axis_name="i")(x)
    np.testing.assert_allclose(inside, 2 * x * 3)  # each element's output counts, as in JAX


def test_two_names():
    x = np.arange(6.0).reshape(2, 3)

    def fun(a):
        return (lax.psum(a, "i"), lax.psum(a, "j"), lax.psum(a, ("i", "j")),
                lax.axis_index("i") * 10 + lax.axis_index("j"))

    rows, columns, total, position = ft.vmap(ft.vmap(fun, axis_name="j"), axis_name="i")(x)
    np.testing.assert_array_equal(rows, [x.sum(0)] * 2)
    np.testing.assert_array_equal(columns, np.stack([x.sum(1)] * 3, 1))
    np.testing.assert_array_equal(total, np.full((2, 3), x.sum()))
    np.testing.assert_array_equal(position, [[0, 1, 2], [10, 11, 12]])


def test_unknown_name():
    with pytest.raises(AxisNameError, match="'j'"):
        ft.vmap(lambda a: lax.psum(a, "j"), axis_name="i")(np.ones(2))


def test_collectives_inside_control_flow():
    x = np.arange(3.0)

    def fun(a):
        return lax.fori_loop(0, 2, lambda i, s: s + lax.psum(s, "i"), a)

    first = x + x.sum()
    np.testing.assert_allclose(ft.vmap(fun, axis_name="i")(x), first + first.sum())


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 7, 8, 100])
def test_chunks(chunk):
    x = np.random.default_rng(0).standard_normal((7, 3))
    w = np.arange(3.0)

    def fun(row, w):
        return {"y": jnp.tanh(row @ w), "pair": (row * w, 3.0)}

    axes = {"y": 0, "pair": (1, None)}
    whole = ft.vmap(fun, (0, None), axes)(x, w)
    parts = ft.vmap(fun, (0, None), axes, chunk_size=chunk)
    for mapped in (parts, ft.jit(parts)):
        ft.tree.map(np.testing.assert_allclose, mapped(x, w), whole)
    gradients = ft.grad(lambda w: ft.vmap(fun, (0, None), axes)(x, w)["y"].sum())(w)
    for grad in (ft.grad, lambda f: ft.jit(ft.grad(f))):
        np.testing.assert_allclose(grad(lambda w: parts(x, w)["y"].sum())(w), gradients)
    per_row = ft.vmap(ft.grad(lambda w, row: fun(row, w)["y"]), (None, 0), chunk_size=chunk)(w, x)
    np.testing.assert_allclose(per_row.sum(0), gradients)


def test_chunks_bound_the_size_of_intermediate_values():
    """Of all values in the program, also in its loops, none is as large as without chunks."""
    x = np.ones((64, 8))

    def fun(row):
        return jnp.sin(jnp.outer(row, row)).sum()

    def largest(mapped):
        return max(sizes_in(ft.make_jaxpr(ft.grad(lambda x: mapped(x).sum()))(x).jaxpr))

    assert largest(ft.vmap(fun)) == 64 * 8 * 8
    assert largest(ft.vmap(fun, chunk_size=4)) == max(64 * 8, 4 * 8 * 8)


def sizes_in(jaxpr):
    for eqn in jaxpr.eqns:
        yield from (int(v.aval.size) for v in eqn.outvars)
        for value in eqn.params.values():
            for sub in value if isinstance(value, tuple) else (value,):
                if hasattr(sub, "eqns"):
                    yield from sizes_in(sub)


def test_wrong_chunks():
    for bad in (0, -1, 2.0):
        with pytest.raises(ArgumentError, match="chunk_size"):
            ft.vmap(lambda x: x, chunk_size=bad)
    with pytest.raises(ArgumentError, match="exclude each other"):
        ft.vmap(lambda x: x, axis_name="i", chunk_size=2)(np.ones(4))


@pytest.mark.parametrize("axes", [(0, 0, 0), ("a",), (0, {"z": 0}), (0, 7)])
def test_wrong_in_axes(axes):
    with pytest.raises(FunctransError, match="in_axes"):
        ft.vmap(lambda x, y: x, in_axes=axes)(np.ones(3), np.ones(3))


def test_branches_and_loops_follow_each_element():
    x = np.array([0.5, 3.0, 40.0, -2.0])

    def collatz(a):
        return lax.while_loop(lambda s: s[0] < 50, lambda s: (s[0] * 2 + 1, s[1] + 1),
                              (jnp.abs(a), 0))[1]

    np.testing.assert_array_equal(ft.vmap(collatz)(x), [int(collatz(v)) for v in x])
    chosen = ft.vmap(lambda a: lax.cond(a > 1, jnp.sin, jnp.cos, a))(x)
    np.testing.assert_allclose(chosen, np.where(x > 1, np.sin(x), np.cos(x)))
    with pytest.raises(TypeError, match=r"where|cond"):
        ft.vmap(lambda a: a if a > 0 else -a)(x)


def test_arguments_without_an_axis_may_be_no_arrays():
    """As JAX's: samplers give the density as an argument that is the same for all chains."""
    def chained(fun, x, how, *, shift):
        return fun(x) + (how["scale"] if how["name"] == "scaled" else 0) + shift

    x = jnp.arange(3.0)
    how = {"name": "scaled", "scale": 2.0}
    mapped = ft.vmap(chained, in_axes=(None, 0, None))
    assert mapped(jnp.sin, x, how, shift=x).tolist() == (jnp.sin(x) + 2 + x).tolist()
    run = ft.jit(lambda x: ft.grad(lambda x: mapped(jnp.sin, x, how, shift=x).sum())(x))
    np.testing.assert_allclose(run(x), np.cos(x) + 1, rtol=1e-6)
    for axes in (0, (0, 0, None), (None, 0, {"name": 0, "scale": None})):
        with pytest.raises(NonArrayError, match="argument"):
            ft.vmap(chained, in_axes=axes)(jnp.sin, x, how, shift=x)
