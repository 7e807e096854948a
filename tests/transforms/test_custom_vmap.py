"""Functions with batching rules of their own: where the rule runs, and what is refused."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import CustomRuleError
from functrans.custom_batching import custom_vmap, sequential_vmap
from functrans.test_util import check_grads

X = np.array([0.5, -1.0, 2.0])


def told():
    """sin(x) * y, whose rule adds 100, and what the rule was given."""
    calls = []

    @custom_vmap
    def f(x, y):
        return {"out": jnp.sin(x) * y}

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        calls.append((axis_size, in_batched, np.shape(x), np.shape(y)))
        return {"out": jnp.sin(x) * y + 100}, {"out": in_batched[0]}

    return f, calls


@pytest.mark.parametrize("run", [
    lambda f: ft.vmap(f, (0, None)), lambda f: ft.jit(ft.vmap(f, (0, None))),
    lambda f: ft.vmap(ft.jit(f), (0, None)), lambda f: lambda x, y: ft.vmap(f, (1, None))(
        jnp.stack([x])[0][None].T.reshape(1, 3), y)["out"][:, 0]])
def test_the_rule_is_vmap(run):
    f, calls = told()
    got = run(f)(X, 2.0)
    got = got["out"] if isinstance(got, dict) else got
    np.testing.assert_allclose(got, np.sin(X) * 2 + 100)
    size, flags, x, y = calls[0]
    assert (size, flags, x[0], y) == (3, (True, False), 3, ())


def test_without_a_mapped_argument_the_function_runs():
    f, calls = told()
    np.testing.assert_allclose(f(X, 2.0)["out"], np.sin(X) * 2)
    np.testing.assert_allclose(ft.jit(f)(X, 2.0)["out"], np.sin(X) * 2)
    mapped = ft.vmap(lambda z: f(1.0, 2.0)["out"] + z)(X)
    np.testing.assert_allclose(mapped, np.sin(1) * 2 + X, rtol=1e-6)
    assert calls == []


def test_rules_map_one_axis_and_see_which_leaves_have_it():
    f, calls = told()
    table = ft.vmap(ft.vmap(f, (0, None)), (None, 0))(X, X)["out"]
    np.testing.assert_allclose(table, np.sin(X) * X[:, None] + 100)
    assert calls[0][1] == (True, False)

    @custom_vmap
    def g(pair, z):
        return pair["a"] + z, pair["b"]

    seen = []

    @g.def_vmap
    def rule(axis_size, in_batched, pair, z):
        seen.append(in_batched)
        return (pair["a"] + z, pair["b"]), (True, False)

    total, other = ft.vmap(g, ({"a": 0, "b": None}, 0))({"a": X, "b": 7.0}, X)
    assert seen == [({"a": True, "b": False}, True)]
    np.testing.assert_allclose(total, 2 * X)
    np.testing.assert_allclose(other, [7, 7, 7])


@pytest.mark.parametrize("run", [lambda f: f, ft.jit])
def test_derivatives_are_those_of_the_function(run):
    f, _ = told()
    h = run(lambda x, y: f(x, y)["out"])
    check_grads(h, (0.3, 1.2), order=2)
    np.testing.assert_allclose(ft.vmap(ft.grad(h), (0, None))(X, 2.0), 2 * np.cos(X))
    total = run(lambda x: ft.vmap(h, (0, None))(x, 2.0).sum())
    np.testing.assert_allclose(ft.grad(total)(X), 2 * np.cos(X))


@pytest.mark.parametrize("run", [lambda f: f, ft.jit])
def test_sequential_vmap(run):
    shapes = []

    @sequential_vmap
    def f(x, y):
        shapes.append(np.shape(x))
        return x * y, y

    product, same = run(ft.vmap(f, (0, None)))(X, 2.0)
    np.testing.assert_allclose(product, 2 * X)
    np.testing.assert_allclose(same, [2, 2, 2])
    assert set(shapes) == {()}
    both = run(ft.vmap(ft.vmap(f)))(np.stack([X, X]), np.stack([X, 2 * X]))[0]
    np.testing.assert_allclose(both, [X * X, 2 * X * X])
    np.testing.assert_allclose(ft.vmap(ft.grad(lambda x: f(x, 3.0)[0]))(X), [3, 3, 3])


def rule_that_returns(result):
    f = custom_vmap(lambda x: x)
    f.def_vmap(lambda axis_size, in_batched, x: result(x))
    return f


@pytest.mark.parametrize(("result", "message"), [
    (lambda x: x, "not a pair"),
    (lambda x: ((x, x), True), "another structure"),
    (lambda x: (x, (True, False)), "another structure"),
    (lambda x: (x, 1), "out_batched .* is 1"),
    (lambda x: (x.sum(), True), r"is f64\[\], and batched"),
    (lambda x: (x, False), r"is f64\[3\], and not batched"),
    (lambda x: (x[:2], True), r"is f64\[2\], and batched"),
    (lambda x: (x.astype("int32"), True), r"is i32\[3\]"),
])
def test_what_a_rule_must_return(result, message):
    f = rule_that_returns(result)
    f(1.0)
    with pytest.raises(CustomRuleError, match=message):
        ft.vmap(lambda x: (f(1.0), f(x)))(X)


def test_no_rule_and_closures():
    with pytest.raises(CustomRuleError, match="has no rule"):
        custom_vmap(lambda x: x)(1.0)

    def closes(z):
        f = custom_vmap(lambda x: x * z)
        f.def_vmap(lambda axis_size, in_batched, x: (x, True))
        return f(1.0)

    for run in (closes, ft.jit(closes)):
        with pytest.raises(CustomRuleError, match="closes over a value that vmap maps"):
            ft.vmap(run)(X)
    assert closes(2.0) == 2


def test_keywords_methods_and_names():
    @custom_vmap
    def scaled(x, factor=2.0):
        """Scales."""
        return x * factor

    scaled.def_vmap(lambda axis_size, in_batched, x, factor: (x * factor, True))
    assert scaled.__doc__ == "Scales." and scaled.__name__ == "scaled"
    np.testing.assert_allclose(ft.vmap(lambda x: scaled(x, factor=3.0))(X), 3 * X)
    np.testing.assert_allclose(ft.vmap(scaled)(X), 2 * X)
    back, = ft.linear_transpose(ft.jit(lambda x: scaled(x, 2.0)), 1.0)(3.0)
    assert back == 6
