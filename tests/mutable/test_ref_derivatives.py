"""Derivatives with references among the arguments: beside JAX, and as pure functions of values."""

import json
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import ad, lax
from functrans.errors import (
    ArgumentError,
    CustomRuleError,
    DTypeError,
    IntegerGradError,
    LeakedTracerError,
    NonArrayError,
    NonScalarGradError,
    ShapeError,
)

from .reference_programs import PROGRAMS, RULES, backward_rule, shown

OF_JAX = json.loads((Path(__file__).parents[1] / "data" / "references.json").read_text())
KNOWN = {**OF_JAX["unchecked"], **{k: v for k, v in OF_JAX["results"].items() if v is not None}}


def close(got, want):
    assert ft.tree.structure(got) == ft.tree.structure(want)
    for g, w in zip(ft.tree.leaves(got), ft.tree.leaves(want), strict=True):
        if isinstance(w, str):
            assert g == w
        else:
            np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_of_jax(name):
    close(shown(PROGRAMS[name](ft)), KNOWN[name])


def looped(x, r):
    def step(c, i):
        r[i] = r[i] * c + r[i - 1]
        return jnp.sin(c) + r[0], r[...].sum()
    return lax.scan(step, x, jnp.arange(3))[1].sum()


def branched(x, r):
    lax.cond(x > 0, lambda: r.addupdate(x * r[...]), lambda: None)
    return (ft.jit(lambda x, r: x * r[...])(x, r) ** 2).sum()


def recomputed(x, r):
    @ft.checkpoint
    def g(x, r):
        y = jnp.sin(x) * r[...]
        r[...] = jnp.exp(y)
        return y.sum()

    return g(x, r) * g(2 * x, r)


def ruled(x, r):
    @ft.custom_jvp
    def f(x, r):
        r[...] = r[...] * x
        return x ** 2

    @f.defjvp
    def rule(primals, tangents):
        (x, r), (t, of_r) = primals, tangents
        of_r[...] = of_r[...] * x + r[...] * t
        r[...] = r[...] * x
        return x ** 2, 2 * x * t

    return f(x, r) + ft.jit(f)(x, r) * r[...].sum()


def written_by_parts(x, r):
    r[1:] = x * r[:2]
    ft.ref.swap(r, 0, x)
    return (r[...] ** 3).sum()


BODIES = [looped, branched, recomputed, ruled, written_by_parts]
X, R = np.float64(0.7), np.array([0.3, -0.4, 0.8])
T, S = np.float64(1.3), np.array([0.5, 0.2, -0.9])


def pure(f):
    """`f` of a value in place of the reference, with the last value as a further result."""
    def of_value(x, value):
        r = ft.new_ref(value)
        return f(x, r), ft.freeze(r)
    return of_value


def pull_of(f, x, value, ct, state):
    r, of_x, of_r = ft.new_ref(value), ft.new_ref(jnp.zeros_like(x)), ft.new_ref(state)
    out, pull = ft.vjp(f, x, r)
    pull.with_refs(of_x, of_r)(ct)
    return out, r[...], of_x[...], of_r[...]


def push_of(f, x, value, t, state):
    r, of_r = ft.new_ref(value), ft.new_ref(state)
    out, push = ft.linearize(f, x, r)
    return out, r[...], push(t, of_r), of_r[...]


def same(got, want):
    for g, w in zip(ft.tree.leaves(got), ft.tree.leaves(want), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", BODIES, ids=lambda f: f.__name__)
def test_derivatives_are_those_of_the_function_of_values(f):
    (out, last), pull = ft.vjp(pure(f), X, R)
    want = (out, last, *pull((T, S)))
    same(pull_of(f, X, R, T, S), want)
    same(ft.jit(lambda *args: pull_of(f, *args))(X, R, T, S), want)
    tangent, of_last = ft.jvp(pure(f), (X, R), (T, S))[1]
    pushed = (out, last, tangent, of_last)
    same(push_of(f, X, R, T, S), pushed)
    same(ft.jit(lambda *args: push_of(f, *args))(X, R, T, S), pushed)
    r, of_r = ft.new_ref(R), ft.new_ref(S)
    same((*ft.jvp(f, (X, r), (T, of_r)), r[...], of_r[...]), (out, tangent, last, of_last))
    r = ft.new_ref(R)
    same((ft.value_and_grad(f, (0, 1))(X, r), r[...]),
         ((out, ft.grad(lambda *args: pure(f)(*args)[0], (0, 1))(X, R)), last))


@pytest.mark.parametrize("f", BODIES, ids=lambda f: f.__name__)
def test_lanes_and_second_derivatives(f):
    args = [np.stack([a, 0.9 * a]) for a in (X, R, T, S)]
    lanes = ft.jit(ft.vmap(lambda *args: pull_of(f, *args)))(*args)
    for i in range(2):
        same(ft.tree.map(lambda x, i=i: x[i], lanes), pull_of(f, *[a[i] for a in args]))

    def of_pulled(g):
        return ft.grad(lambda x: sum(jnp.sum(y * y) for y in g(x)))(X)

    def of_values(x):
        out, pull = ft.vjp(pure(f), x, R)
        return (*out, *pull((T, S)))

    same(of_pulled(lambda x: pull_of(f, x, R, T, S)), of_pulled(of_values))


def test_pullbacks_of_references_leave_jit():
    r, of_r = ft.new_ref(R), ft.new_ref(S)
    out, pull = ft.jit(lambda x, r: ft.vjp(written_by_parts, x, r))(X, r)
    gradient = ft.jit(lambda pull, s: pull.with_refs(ad.GradValue(), s)(T))(pull, of_r)[0]
    same((out, r[...], gradient, of_r[...]), pull_of(written_by_parts, X, R, T, S))
    forward, backward = ft.fwd_and_bwd(written_by_parts, argnums=(0, 1))
    _, residuals = forward(X, ft.new_ref(R))
    same(backward(residuals, T), pull_of(written_by_parts, X, R, T, 0 * S)[2:])


def test_integers_in_references_have_no_derivative():
    def f(d):
        d["n"][...] += 1
        return d["x"] ** 2

    n = ft.new_ref(3)
    with pytest.raises(IntegerGradError, match="allow_int"):
        ft.grad(f)({"x": 2.0, "n": n})
    found = ft.grad(f, allow_int=True)({"x": 2.0, "n": n})
    assert found["x"].item() == 4.0 and found["n"].dtype == ft.float0 and n[...].item() == 4
    _, push = ft.linearize(f, {"x": 2.0, "n": n})
    assert push({"x": 1.0, "n": np.zeros((), ft.float0)}).item() == 4.0 and n[...].item() == 5


def test_what_does_not_fit():
    def f(x, r):
        return (x * r[...]).sum()

    r = ft.new_ref(jnp.ones(3))
    out, pull = ft.vjp(f, 2.0, r)
    assert out.item() == 3 * 2 and [g.tolist() for g in pull(1.0)] == [3.0, [2.0, 2.0, 2.0]]
    g = ft.new_ref(0.0)
    assert pull.with_refs(g, ad.DontWant())(1.0) == (ad.GradRef(), ad.DidntWant())
    _, push = ft.linearize(f, 2.0, r)
    one = ft.new_ref(jnp.ones(3))
    for wrong, error, match in (
            (lambda: pull.with_refs(g, ft.new_ref(0.0)), ShapeError, "cotangent"),
            (lambda: pull.with_refs(g, ft.new_ref(jnp.ones(3, "float16"))), DTypeError, "dtype"),
            (lambda: ft.vjp(lambda r, s: f(r[0], s), r, r), ArgumentError, "one reference is two"),
            (lambda: push(1.0, jnp.ones(3)), ArgumentError, r"new_ref\(t\)"),
            (lambda: push(1.0, ft.new_ref(0.0)), ShapeError, "tangent"),
            (lambda: ft.linearize(lambda r, s: f(r[0], s), one, r)[1](one, one), ArgumentError,
             "one reference is two"),
            (lambda: ft.vjp(lambda r: r, r), NonArrayError, "returned Ref"),
            (lambda: ft.grad(lambda r: r[...])(r), NonScalarGradError, "scalar"),
            (lambda: ft.jacrev(f, 1)(2.0, r), NonArrayError, "make it inside"),
            (lambda: ft.jacfwd(f, 1)(2.0, r), NonArrayError, "make it inside")):
        with pytest.raises(error, match=match):
            wrong()
    with pytest.raises(ArgumentError, match="one reference is two"):
        ft.vjp(lambda r, s: f(r[0], s), one, r)[1].with_refs(r, r)
    assert r[...].tolist() == one[...].tolist() == [1.0, 1.0, 1.0]


def test_one_reference_is_seen_by_both_of_its_names():
    r, t = ft.new_ref(3.0), ft.new_ref(1.0)
    f = lambda a: (a.addupdate(1.0), a[...] * r[...])[1]
    assert [x.item() for x in ft.jvp(f, (r,), (t,))] == [16.0, 8.0]
    assert ft.grad(f)(r).item() == 2 * 5 and r[...].item() == 5.0


def test_rules_of_references():
    @ft.custom_jvp
    def f(x, r):
        r[...] += 1
        return x * r[...]

    @f.defjvp
    def rule(primals, tangents):
        kept = ft.new_ref(0.0)
        kept[...] = 7 * tangents[0]
        primals[1][...] += 1
        return primals[0] * primals[1][...], kept[...]

    r = ft.new_ref(2.0)
    assert ft.grad(f)(1.0, r).item() == 7.0 and r[...].item() == 3.0
    with pytest.raises(LeakedTracerError, match="as an argument"):
        ft.vmap(lambda x: f(x, r))(jnp.ones(2))  # one for all lanes, which each would write
    with pytest.raises(ArgumentError, match="one reference is two"):
        both(r, r)
    with pytest.raises(CustomRuleError, match="freezes"):
        ft.grad(freezing)(1.0, r)
    assert r[...].item() == 3.0


@ft.custom_jvp
def both(r, s):
    return r[...] + s[...]


both.defjvps(None, None)


@ft.custom_jvp
def freezing(x, r):
    return x


@freezing.defjvp
def frozen_rule(primals, tangents):
    ft.freeze(tangents[1])
    return primals[0], tangents[0]


@ft.custom_vjp
def identity(x, r):
    return x


identity.defvjp(lambda x, r: (x, None), lambda _, ct: (ct, None))


def test_a_rule_that_only_reads_keeps_the_derivative_of_what_is_there():
    def f(x):
        r = ft.new_ref(x * x)
        return identity(x, r) * r[...]

    assert ft.grad(f)(3.0).item() == 27.0 and ft.grad(ft.grad(f))(3.0).item() == 18.0

    def of_inner(x):
        r = ft.new_ref(x * x)
        return ft.grad(lambda y: identity(y, r) * y)(1.0) * r[...]

    assert ft.grad(of_inner)(3.0).item() == 12.0


def test_a_pushforward_of_a_compiled_function_of_references():
    r = ft.new_ref(3.0)
    _, push = ft.linearize(lambda x: ft.jit(lambda x, r: x * r[...])(x, r), 2.0)
    assert push(1.0).item() == 3.0


def of_values(name):
    """A rule of `RULES` as one of the value and the last value: the cotangent of what is there at
    last is one of what was there at first, and of the value that the rule returns one for."""
    fun, kept, backward = RULES[name]

    def run(x, v):
        r = ft.new_ref(v)
        return fun(x, r), r[...]

    def pull(saved, cts):
        of_x, of_v = backward(saved, cts[0])
        return of_x, cts[1] if of_v is None else cts[1] + of_v

    f = ft.custom_vjp(run)
    f.defvjp(lambda x, v: (run(x, v), kept(x, ft.new_ref(v))), pull)

    def of_cell(x, r):
        y, r[...] = f(x, r[...])
        return y
    return of_cell


@pytest.mark.one_in(1)
@pytest.mark.parametrize("name", ["returns", "reads", "writes", "replaces"])
def test_rules_of_references_are_rules_of_values(name):
    def program(f):
        def run(x, v):
            r = ft.new_ref(jnp.sin(v))
            y = f(x, r)
            r[...] = r[...] * jnp.cos(x)
            z = ft.jit(f)(y, r) + lax.cond(x > 0, lambda: f(x, r), lambda: x)
            z = z + ft.checkpoint(lambda x: f(x, r) * x)(y)
            return lax.fori_loop(0, 2, lambda i, c: jnp.sin(f(c, r)), z) * r[...]
        return run

    mine, pure = program(backward_rule(ft, name)), program(of_values(name))
    x, v = np.float64(0.7), np.float64(-0.4)
    for transform in (ft.value_and_grad, lambda f, argnums: ft.jit(ft.value_and_grad(f, argnums)),
                      lambda f, argnums: ft.value_and_grad(ft.jit(f), argnums)):
        same(transform(mine, (0, 1))(x, v), transform(pure, (0, 1))(x, v))
    same(ft.grad(ft.grad(mine))(x, v), ft.grad(ft.grad(pure))(x, v))
    xs, vs = np.linspace(0.3, 0.9, 3), np.linspace(-0.5, 0.8, 3)
    lanes = ft.jit(ft.vmap(ft.grad(mine, (0, 1))))(xs, vs)
    same(lanes, [np.stack(a) for a in zip(*[ft.grad(pure, (0, 1))(a, b)
                                            for a, b in zip(xs, vs, strict=True)], strict=True)])
    same(ft.grad(lambda v: ft.vmap(mine, (0, None))(xs, v).sum())(v),
         ft.grad(lambda v: sum(pure(a, v) for a in xs))(v))


@pytest.mark.parametrize("compiled", [False, True])
def test_cotangents_that_rules_return_for_references(compiled):
    f = backward_rule(ft, "returns")
    f = ft.jit(f) if compiled else f
    r, of_r = ft.new_ref(3.0), ft.new_ref(0.5)
    assert [x.item() for x in ft.grad(f, (0, 1))(2.0, r)] == [21.0, 11.0]
    _, pull = ft.vjp(f, 2.0, r)
    pull.with_refs(ad.GradValue(), of_r)(2.0)
    assert of_r[...].item() == 22.5 and r[...].item() == 3.0
    n = ft.new_ref(3)
    assert ft.grad(lambda x: f(x, n))(2.0).item() == 21.0  # an integer has no cotangent

    wrong = ft.custom_vjp(lambda d: d["x"] * d["r"][...])
    wrong.defvjp(lambda d: (d["x"], None), lambda _, ct: ({"x": ct, "r": jnp.ones(2)},))
    with pytest.raises(CustomRuleError, match=r"the cotangent of argument 0 .* is f32\[2\]"):
        ft.grad((ft.jit(wrong) if compiled else wrong), allow_int=True)({"x": 1.0, "r": r})
