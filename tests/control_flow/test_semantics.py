"""Calling conventions, types, closures, named axes, and what is saved for the backward pass."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.check import check_jaxpr
from functrans.core.evaluate import interpret
from functrans.core.jaxpr import subjaxprs
from functrans.core.prune import prune_jaxpr


def equations(jaxpr, name):
    """All equations of one primitive, those of bodies included."""
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == name:
            yield eqn
        for body in subjaxprs(eqn):
            yield from equations(body, name)


def test_cond_forms():
    assert float(lax.cond(True, lambda x: x + 1, lambda x: x, 1.0)) == 2.0
    assert float(lax.cond(False, lambda x: x + 1, lambda x: x, operand=1.0)) == 1.0
    assert float(lax.cond(False, 1.0, lambda x: x, 5.0, lambda x: -x)) == -5.0
    assert int(lax.cond(3, lambda: 1, lambda: 2)) == 1
    assert lax.cond(True, lambda _: None, lambda _: None, None) is None
    out = lax.cond(jnp.array(False), lambda t: {"a": t["x"]}, lambda t: {"a": t["y"]},
                   {"x": 1, "y": 2})
    assert int(out["a"]) == 2


def test_a_function_that_is_several_branches_is_traced_once():
    calls = []

    def square(x):
        calls.append(x)
        return x ** 2

    def run(i, x):
        return lax.switch(i, [square, jnp.sin, square, square], x) + lax.cond(
            i > 2, square, square, x)

    assert ft.jit(ft.grad(run, 1))(2, 3.0) == 12.0
    assert len(calls) == 2
    np.testing.assert_allclose(ft.vmap(run)(jnp.arange(4), jnp.full(4, 2.0)),
                               [8.0, 4 + np.sin(2.0), 8.0, 8.0], 1e-6)


def test_what_is_done_where_a_condition_holds_is_traced_first():
    order = []
    lax.cond(False, lambda x: order.append("true") or x, lambda x: order.append("false") or x, 1.0)
    lax.switch(1, [lambda x, i=i: order.append(i) or x for i in range(3)], 1.0)
    assert order == ["true", "false", 0, 1, 2]


def test_switch_clamps():
    branches = [lambda: 10, lambda: 20, lambda: 30]
    assert [int(lax.switch(i, branches)) for i in (-5, 0, 1, 2, 7)] == [10, 10, 20, 30, 30]
    assert ft.vmap(lambda i: lax.switch(i, branches))(jnp.arange(4)).tolist() == [10, 20, 30, 30]
    assert int(lax.switch(0, [lambda x: x * 2], 4)) == 8


def test_branch_outputs_give_way_when_weak():
    x = jnp.array(1.5, dtype="float64")
    for chosen in (True, False):
        out = lax.cond(chosen, lambda x: x, lambda x: 0.0, x)
        assert out.dtype == np.float64
        check_jaxpr(ft.make_jaxpr(lambda x, p=chosen: lax.cond(p, lambda x: x, lambda x: 0, x))(x))


def test_initial_carry_gives_way_when_weak():
    xs = jnp.arange(3.0).astype("float64")
    total, _ = lax.scan(lambda c, x: (c + x, None), 0, xs)
    assert total.dtype == np.float64 and float(total) == 3.0
    out = lax.while_loop(lambda c: c < 4, lambda c: c + jnp.float32(1.5), 0)
    assert out.dtype == np.float32 and float(out) == 4.5
    half, _ = lax.scan(lambda c, x: (0.0, c), jnp.float16(2.0), length=2)
    assert half.dtype == np.float16


def test_trees_and_none():
    carry, ys = lax.scan(lambda c, x: ({"n": c["n"] + x["a"]}, (x["b"], None)), {"n": 0.0},
                         {"a": jnp.arange(3.0), "b": jnp.ones((3, 2))})
    assert float(carry["n"]) == 3.0 and ys[0].shape == (3, 2) and ys[1] is None


@pytest.mark.parametrize("length", [0, 1, 4])
@pytest.mark.parametrize("reverse", [False, True])
def test_lengths(length, reverse):
    xs = jnp.arange(float(length))

    def fun(c, xs):
        return lax.scan(lambda c, x: (c * 0.5 + x, c * x), c, xs, reverse=reverse, unroll=2)

    carry, ys = fun(1.0, xs)
    expected, outs = 1.0, []
    for x in list(range(length))[::-1 if reverse else 1]:
        outs.append(expected * x)
        expected = expected * 0.5 + x
    assert float(carry) == pytest.approx(expected)
    assert ys.tolist() == pytest.approx(outs[::-1 if reverse else 1])
    gradient = ft.grad(lambda c: fun(c, xs)[0] + fun(c, xs)[1].sum())(1.0)
    steps = ft.jvp(lambda c: fun(c, xs)[0] + fun(c, xs)[1].sum(), (1.0,), (1.0,))[1]
    assert float(gradient) == pytest.approx(float(steps))
    with ft.disable_jit():
        eager = fun(1.0, xs)
    assert eager[1].shape == ys.shape and float(eager[0]) == pytest.approx(float(carry))


def test_loop_without_iterations_has_the_identity_as_derivative():
    loop = lambda x: lax.while_loop(lambda c: c < 0.0, lambda c: c * c, x)
    assert float(ft.grad(loop)(2.0)) == 1.0
    assert ft.vmap(ft.grad(loop))(jnp.array([2.0, 3.0])).tolist() == [1.0, 1.0]
    assert float(ft.grad(lambda x: lax.fori_loop(3, 1, lambda i, c: c * c, x))(2.0)) == 1.0


def test_lanes_that_are_done_make_no_nan():
    """At the value where a lane stops, the derivative of one more iteration is infinite."""
    def loop(x, n):
        return lax.fori_loop(0, n, lambda i, c: jnp.sqrt(jnp.maximum(c - 1.0, 0.0)) + 0.0 * x, x)

    xs, counts = jnp.array([2.0, 3.0, 17.0]), jnp.array([1, 1, 2])
    out = ft.vmap(ft.grad(loop))(xs, counts)
    assert np.isfinite(out).all()
    expected = [float(ft.grad(loop)(x, int(n))) for x, n in zip([2.0, 3.0, 17.0], [1, 1, 2])]
    assert out.tolist() == pytest.approx(expected)


def test_closures_over_tracers():
    def fun(x):
        y = jnp.sin(x)
        table = jnp.arange(3.0) * x
        out = lax.scan(lambda c, i: (c * y + table[i], table), x, jnp.arange(3))
        return lax.cond(x > 0, lambda: out[0] + y, lambda: y) + out[1].sum() \
            + lax.while_loop(lambda c: c < y + 3, lambda c: c + y, x)

    x = jnp.array(0.7, dtype="float64")
    step = 1e-6
    numerical = (fun(x + step) - fun(x - step)) / (2 * step)
    assert float(ft.grad(fun)(x)) == pytest.approx(float(numerical), rel=1e-6)
    assert float(ft.jit(ft.grad(fun))(x)) == pytest.approx(float(numerical), rel=1e-6)
    stacked = ft.vmap(ft.grad(fun))(jnp.stack([x, x * 2]))
    assert float(stacked[0]) == pytest.approx(float(numerical), rel=1e-6)


def test_collectives_inside_bodies():
    xs = jnp.array([1.0, 2.0, 3.0])

    def fun(x):
        carry, index = lax.scan(
            lambda c, _: (c + lax.psum(c * x, "i"), lax.axis_index("i")), x, length=2)
        return carry * (1 + index[0])

    first = xs + (xs * xs).sum()
    expected = (first + (first * xs).sum()) * np.array([1, 2, 3])
    np.testing.assert_allclose(ft.vmap(fun, axis_name="i")(xs), expected, rtol=1e-6)
    np.testing.assert_allclose(ft.jit(ft.vmap(fun, axis_name="i"))(xs), expected, rtol=1e-6)
    gradient = ft.grad(lambda xs: ft.vmap(fun, axis_name="i")(xs).sum())(xs)
    step = 1e-2
    for i in range(3):
        shift = step * np.eye(3, dtype=np.float32)[i]
        high, low = (ft.vmap(fun, axis_name="i")(xs + s).sum() for s in (shift, -shift))
        assert float(gradient[i]) == pytest.approx(float(high - low) / (2 * step), rel=1e-2)


def test_collectives_where_no_operand_is_mapped():
    xs = jnp.zeros(3)
    out = ft.vmap(lambda x: lax.scan(lambda c, _: (c + lax.axis_index("i"), None), 0, length=2)[0],
                  axis_name="i")(xs)
    assert out.tolist() == [0, 2, 4]
    out = ft.vmap(lambda x: lax.while_loop(lambda c: c < lax.axis_index("i"), lambda c: c + 1, 0),
                  axis_name="i")(xs)
    assert out.tolist() == [0, 1, 2]
    out = ft.vmap(lambda x: lax.cond(lax.axis_index("i") > 0, lambda: 5, lambda: 7),
                  axis_name="i")(xs)
    assert out.tolist() == [7, 5, 5]


def test_map_with_batches():
    xs = jnp.arange(7.0)
    square = lambda x: (x ** 2, x > 2)
    expected = lax.map(square, xs)
    for size in (1, 2, 3, 7, 10):
        out = lax.map(square, xs, batch_size=size)
        assert out[0].tolist() == expected[0].tolist() and out[1].tolist() == expected[1].tolist()
    np.testing.assert_allclose(
        ft.grad(lambda xs: lax.map(jnp.sin, xs, batch_size=3).sum())(xs), np.cos(xs), rtol=1e-6)


@pytest.mark.parametrize("size", range(8))
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_associative_scan(size, reverse, axis):
    shape = [2, 2]
    shape[axis] = size
    x = jnp.arange(1.0, 1.0 + 2 * size).reshape(shape)
    flip = (lambda y: np.flip(y, axis)) if reverse else (lambda y: y)
    out = lax.associative_scan(lambda a, b: a * b, x, reverse=reverse, axis=axis)
    np.testing.assert_allclose(out, flip(np.cumprod(flip(np.asarray(x)), axis)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("size", [7, 8, 10, 16, 17, 33])
@pytest.mark.parametrize("reverse", [False, True])
def test_compiled_associative_scan(size, reverse):
    x = np.random.default_rng(size).uniform(0.5, 1.5, (size, 3)).astype(np.float32)

    def f(x):
        return lax.associative_scan(lambda a, b: a * b, x, reverse=reverse)

    assert np.allclose(ft.jit(f)(x), f(jnp.array(x)), rtol=1e-5)


def test_associative_scan_is_ordered():
    """Composition of affine maps is not commutative."""
    a, b = jnp.array([2.0, 3.0, 0.5, 1.0, 4.0]), jnp.array([1.0, 0.0, 2.0, 5.0, 1.0])
    out = lax.associative_scan(lambda f, g: (f[0] * g[0], g[0] * f[1] + g[1]), (a, b))
    x = 0.0
    for i in range(5):
        x = float(a[i]) * x + float(b[i])
        assert float(out[1][i]) == pytest.approx(x)


def test_dynamic_loop_transposes():
    a = jnp.array(np.random.default_rng(0).normal(size=(3, 3)))
    x = jnp.array([1.0, 2.0, 3.0], dtype="float64")

    def transposed(n):
        return ft.linear_transpose(
            lambda t: lax.fori_loop(0, n, lambda i, c: (a * i) @ c + t, t), x)(x)[0]

    expected = ft.linear_transpose(
        lambda t: lax.scan(lambda c, i: ((a * i) @ c + t, None), t, jnp.arange(3))[0], x)(x)[0]
    np.testing.assert_allclose(transposed(3), expected)
    np.testing.assert_allclose(ft.jit(transposed)(3), expected)


def test_loop_invariant_residuals_are_not_stacked():
    w, xs = jnp.ones((5, 5)), jnp.ones((7, 5))

    def loss(w, c):
        return lax.scan(lambda c, x: (jnp.tanh((2.0 * w).T @ c + x), None), c, xs)[0].sum()

    closed = ft.make_jaxpr(ft.grad(loss))(w, jnp.ones(5))
    shapes = [v.aval.shape for eqn in equations(closed.jaxpr, "scan")
              for v in (*eqn.invars, *eqn.outvars)]
    assert (5, 5) in shapes and (7, 5) in shapes
    assert (7, 5, 5) not in shapes


def test_unused_results_are_not_computed():
    def fun(x):
        (used, _), _ = lax.scan(
            lambda c, a: ((jnp.sin(c[0]) * a, jnp.cos(c[1])), (c[0], jnp.exp(c[1]))), (x, x),
            jnp.arange(3.0))
        out = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x, jnp.log(c[2])),
                             (0, x, x))
        return used + out[1] + lax.cond(x > 0, lambda: (x, jnp.tan(x)), lambda: (x, x))[0]

    x = jnp.float32(0.3)
    closed = ft.make_jaxpr(fun)(x)
    pruned = prune_jaxpr(closed.jaxpr)
    check_jaxpr(pruned)
    for name in ("cos", "exp", "log", "tan"):
        assert not list(equations(pruned, name)) and list(equations(closed.jaxpr, name))
    (out,) = interpret(pruned.hoist_consts(), [*map(np.asarray, closed.consts), np.asarray(x)])
    np.testing.assert_allclose(out, fun(x), rtol=1e-6)


def test_jitted_loops_of_different_lengths_in_one_program():
    loop = ft.jit(lambda x: lax.while_loop(lambda c: c < 10.0, lambda c: c * c * x + 0.3, x))
    plain = lambda x: lax.while_loop(lambda c: c < 10.0, lambda c: c * c * x + 0.3, x)
    both = lambda f: lambda x: f(x) * f(2.0 * x) + f(1.1 * x)
    x = jnp.array(1.3, dtype="float64")
    for order in (ft.grad, lambda f: ft.grad(ft.grad(f)), lambda f: ft.jacfwd(ft.grad(f))):
        expected = order(both(plain))(x)
        np.testing.assert_allclose(order(both(loop))(x), expected, rtol=1e-10)
        np.testing.assert_allclose(ft.jit(order(both(loop)))(x), expected, rtol=1e-10)
        check_jaxpr(ft.make_jaxpr(order(both(loop)))(x))


def test_halves_and_integers():
    x = jnp.array([1.0, 2.0], dtype="bfloat16")
    out = lax.fori_loop(0, 3, lambda i, c: c * 2 + i, x)
    assert out.dtype == x.dtype and out.astype("float32").tolist() == [12.0, 20.0]
    gradient = ft.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x).sum())(x)
    assert gradient.dtype == x.dtype
    assert gradient.astype("float32").tolist() == [4.0, 32.0]


def test_random_keys_and_side_values_in_loops():
    def step(carry, key):
        return carry + ft.random.normal(key, (2,)).sum(), carry

    keys = ft.random.split(ft.random.key(0), 4)
    total, _ = lax.scan(step, jnp.float32(0.0), keys)
    expected = sum(float(ft.random.normal(k, (2,)).sum()) for k in keys)
    assert float(total) == pytest.approx(expected, rel=1e-5)
