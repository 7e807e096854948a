"""References that functions are given: derivatives, backward rules, programs written down."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import ad, lax
from functrans.core.check import check_jaxpr
from functrans.core.evaluate import eval_jaxpr
from functrans.errors import (
    ArgumentError,
    DonatedArrayError,
    DTypeError,
    LeakedTracerError,
    NonArrayError,
    ShapeError,
    TreeMismatchError,
)
from functrans.test_util import check_grads


def values(*refs):
    return [r[...].tolist() for r in refs]


@pytest.mark.parametrize("around", [lambda f: f, ft.jit])
def test_references_are_operands_of_branches(around):
    r = ft.new_ref(2.0)

    def times(factor):
        def branch(x, r):
            r[...] = factor * x * r[...]
            return factor
        return branch

    f = around(lambda i, r: lax.switch(i, [times(1.0), times(3.0), times(5.0)], 2.0, r))
    assert [f(i, r).item() for i in (1, 0, 2)] == [3.0, 1.0, 5.0] and r[...].item() == 240.0
    assert lax.cond(False, times(1.0), times(0.5), 1.0, r).item() == 0.5
    assert r[...].item() == 120.0


def test_checkpoints_write_into_references():
    def f(x, checkpoint):
        states = ft.new_ref(jnp.zeros(3, x.dtype))

        def step(c, i):
            states[i] = jnp.sin(c)
            return c * x + states[i], None

        c, _ = lax.scan(checkpoint(step), x, jnp.arange(3))
        return (ft.freeze(states) ** 2).sum() + c

    x = np.float64(0.7)
    check_grads(lambda x: f(x, ft.checkpoint), (x,), order=2)
    for transform in (ft.grad, lambda g: ft.jit(ft.grad(g)), ft.hessian,
                      lambda g: lambda x: ft.vmap(ft.grad(g))(jnp.stack([x, 2 * x]))):
        np.testing.assert_allclose(transform(lambda x: f(x, ft.checkpoint))(x),
                                   transform(lambda x: f(x, lambda g: g))(x))
    r, n = ft.new_ref(2.0), ft.new_ref(0)

    @ft.checkpoint
    def g(x, r):
        y = jnp.sin(x) * r[...]
        r[...] = lax.stop_gradient(x)
        n[...] += 1
        return y

    # computed again with what it read, not with what it wrote, and written once
    np.testing.assert_allclose(ft.grad(g)(1.0, r), 2 * np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(ft.jit(ft.grad(g))(3.0, r), np.cos(3.0), rtol=1e-6)
    assert values(r, n) == [3.0, 2]


@pytest.mark.parametrize("around", [lambda f: f, ft.jit])
def test_tangents_of_references(around):
    def f(x, r, n):
        r[0] = x * r[1]
        n[...] += 1
        return r[...].sum()

    r, t = ft.new_ref(jnp.array([2.0, 3.0])), ft.new_ref(jnp.array([0.0, 10.0]))
    n, no = ft.new_ref(1), np.zeros((), ft.float0)
    got = around(lambda r, t, n: ft.jvp(f, (5.0, r, n), (1.0, t, no)))(r, t, n)
    assert [x.item() for x in got] == [18.0, 63.0]
    assert values(r, t, n) == [[15.0, 3.0], [53.0, 10.0], 2]
    with pytest.raises(ArgumentError, match="its tangent a float"):
        ft.jvp(f, (5.0, r, n), (1.0, 1.0, no))
    with pytest.raises(ArgumentError, match="one reference is two"):
        ft.jvp(f, (5.0, r, n), (1.0, r, no))


def test_cotangents_are_added_to_references():
    def loss(p, x):
        return (p["w"] * jnp.sin(x)).sum() * p["b"]

    params = {"w": jnp.arange(3.0), "b": jnp.array(2.0)}
    sums = {"w": ft.new_ref(jnp.zeros(3)), "b": ft.new_ref(0.0)}
    xs = jnp.linspace(0.0, 1.0, 12).reshape(4, 3)

    @ft.jit
    def accumulate(sums, xs):
        def step(_, x):
            out, pull = ft.vjp(loss, params, x)
            return None, (out, pull.with_refs(sums, ad.DontWant())(1.0)[1])
        return lax.scan(step, None, xs)[1]

    _, rest = accumulate(sums, xs)
    assert rest == ad.DidntWant()
    want = ft.grad(lambda p: ft.vmap(lambda x: loss(p, x))(xs).sum())(params)
    np.testing.assert_allclose(sums["w"][...], want["w"], rtol=1e-6)
    np.testing.assert_allclose(sums["b"][...], want["b"], rtol=1e-6)
    _, pull = ft.vjp(lambda x, y: (x * y).sum(), jnp.ones(3), jnp.ones(3))
    for wrong, error in ((ft.new_ref(0.0), ShapeError), (None, TreeMismatchError),
                         (ft.new_ref(jnp.zeros(3, "float16")), DTypeError)):
        with pytest.raises(error, match="with_refs"):
            pull.with_refs(ad.GradValue(), wrong)


@ft.custom_vjp
def noted(x, r):
    """x, whose cotangent is noted: an order of calls that a sum would not show."""
    return x


def note(r, ct):
    r[...] = 2 * r[...] + ct
    return ct, None


noted.defvjp(lambda x, r: (x, r), note)


def many_calls(x, r):
    y = noted(2 * x, r)
    y = ft.jit(lambda y, r: noted(3 * y, r))(y, r)
    y = lax.fori_loop(0, 3, lambda i, y: noted(2 * y, r), y)
    y = lax.cond(y > 0, lambda y, r: noted(y * y, r), lambda y, r: y, y, r)
    return ft.checkpoint(lambda y: noted(jnp.sin(y), r))(y)


def plainly(x, start):
    """The same in Python, backwards by hand."""
    steps = [(2, 0), (3, 0), (2, 0), (2, 0), (2, 0), (None, 1), (None, 2)]
    inputs = []
    for factor, kind in steps:
        inputs.append(x)
        x = factor * x if kind == 0 else x * x if kind == 1 else np.sin(x)
    ct = 1.0
    for (factor, kind), x in zip(reversed(steps), reversed(inputs), strict=True):
        start = 2 * start + ct
        ct *= factor if kind == 0 else 2 * x if kind == 1 else np.cos(x)
    return ct, start


@pytest.mark.parametrize("transform", [
    ft.grad, lambda f: ft.jit(ft.grad(f)), lambda f: ft.grad(ft.jit(f)),
    lambda f: lambda x, r: ft.vjp(lambda x: f(x, r), x)[1](1.0)[0],
    lambda f: lambda x, r: ft.jit(lambda p: p(1.0)[0])(
        ft.jit(lambda x: ft.vjp(lambda x: f(x, r), x)[1])(x))])
def test_backward_rules_write_in_order(transform):
    r, state = ft.new_ref(jnp.array(0.5, "float64")), 0.5
    run = transform(many_calls)
    for _ in range(2):
        grad, state = plainly(0.1, state)
        np.testing.assert_allclose(run(np.float64(0.1), r), grad)
        np.testing.assert_allclose(r[...], state)


def test_backward_rules_of_mapped_references():
    x = jnp.arange(1.0, 4.0)
    want = [[1.0, 1.0, 1.0], (x * jnp.cos(x) + jnp.sin(x)).tolist()]

    def lane(x, r):
        return noted(jnp.sin(x), r) * x

    for f in (lambda x, r: ft.vmap(ft.grad(lane))(x, r),
              lambda x, r: ft.grad(lambda x: ft.vmap(lane)(x, r).sum())(x),
              lambda x, r: ft.grad(lambda x: ft.jit(ft.vmap(lane))(x, r).sum())(x),
              lambda x, r: ft.grad(lambda x: ft.vmap(ft.jit(lane))(x, r).sum())(x),
              lambda x, r: ft.grad(lambda x: lax.scan(lambda c, xr: (c + lane(*xr), None), 0.0,
                                                      (x, r))[0])(x)):
        r = ft.new_ref(jnp.zeros(3))
        np.testing.assert_allclose(f(x, r), want[1], rtol=1e-6)
        np.testing.assert_allclose(r[...], x, rtol=1e-6)
    r = ft.new_ref(0.0)
    with pytest.raises(LeakedTracerError, match="written into a reference"):
        ft.grad(lambda x: ft.vmap(lambda x: noted(x, r))(x).sum())(x)


def test_rules_count_their_runs():
    @ft.custom_vjp
    def f(x, n):
        n[...] += 1
        return x * x

    def forward(x, n):
        n[...] += 10
        return x * x, (x, n)

    def backward(saved, ct):
        x, n = saved
        n[...] += 100
        return 2 * x * ct, None

    f.defvjp(forward, backward)
    n, seen = ft.new_ref(0), []
    for run in (f, ft.jit(f), ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f)),
                lambda x, n: lax.fori_loop(0, 2, lambda i, x: f(x, n), x),
                ft.grad(lambda x, n: lax.fori_loop(0, 2, lambda i, x: f(x, n), x))):
        before = n[...].item()
        run(1.5, n)
        seen.append(n[...].item() - before)
    assert seen == [1, 1, 110, 110, 110, 2, 220]
    assert ft.grad(lambda x: f(x, ft.new_ref(x)))(1.0).item() == 2.0
    with pytest.raises(ArgumentError, match="float64"):
        ft.grad(ft.jit(f))(1.0, ft.new_ref(jnp.array(0, "int64")))
    frozen = ft.new_ref(1.0)
    ft.freeze(frozen)
    for wrong in (f, ft.jit(f), lambda x, r: ft.typeof(r), ft.make_jaxpr(f), ft.jit(f).lower,
                  lambda x, r: lax.cond(True, lambda r: r[...], lambda r: r[...], r)):
        with pytest.raises(DonatedArrayError, match="frozen"):
            wrong(1.0, frozen)


def test_programs_of_references():
    r, q = ft.new_ref(jnp.arange(3.0)), ft.new_ref(1.0)

    def f(x, q):
        r[0] = x
        q[...] += r[1]
        return {"y": x + q[...]}

    closed, shape = ft.make_jaxpr(f, return_shape=True)(2.0, q)
    check_jaxpr(closed)
    assert list(map(str, closed.in_avals)) == ["f32[]", "Ref{f32[]}"] and closed.consts == (r,)
    assert shape == {"y": ft.ShapeDtypeStruct((), "float32")} == ft.eval_shape(f, 2.0, q)
    assert ft.jit(f).eval_shape(2.0, q)["y"].shape == () and ft.typeof(r) != ft.typeof(r[...])
    assert values(r, q) == [[0.0, 1.0, 2.0], 1.0]  # nothing ran
    run = lambda x, q: eval_jaxpr(closed.jaxpr, closed.consts, x, q)
    for i, program in enumerate((run, ft.jit(run))):
        assert [x.item() for x in program(5.0 + i, q)] == [7.0 + 2 * i]
        assert values(r, q) == [[5.0 + i, 1.0, 2.0], 2.0 + i]
    with pytest.raises(NonArrayError, match="takes a reference"):
        run(1.0, jnp.ones(()))
    reads = ft.make_jaxpr(lambda x: x * r[2])(1.0)
    r[2] = 7.0  # which a program reads when it runs
    assert eval_jaxpr(reads.jaxpr, reads.consts, 3.0)[0].item() == 21.0
    compiled = ft.jit(f).lower(2.0, q).compile()
    other = ft.new_ref(10.0)
    assert compiled(2.0, other)["y"].item() == 13.0
    assert values(r, q, other) == [[2.0, 1.0, 7.0], 3.0, 11.0]
    converted, found = ft.closure_convert(lambda x: f(x, q), 1.0)
    assert converted(4.0, *found)["y"].item() == 8.0 and values(r, q) == [[4.0, 1.0, 7.0], 4.0]
