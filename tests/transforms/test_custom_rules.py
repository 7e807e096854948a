"""custom_jvp and custom_vjp: rules are used by every transform; closures; structures; errors."""

import functools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import CustomRuleError
from functrans.transforms.tangents import SymbolicZero

X = np.float64(0.7)


def wrong_sine():
    """sin with 10 cos as derivative: tells whether the rule is used."""
    @ft.custom_jvp
    def sine(x):
        return jnp.sin(x)

    sine.defjvps(lambda t, out, x: 10.0 * jnp.cos(x) * t)
    return sine


def wrong_sine_backward():
    @ft.custom_vjp
    def sine(x):
        return jnp.sin(x)

    sine.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (10.0 * jnp.cos(x) * ct,))
    return sine


def derived(fun):
    """`fun` with the derivative that it has, given by a rule that is its jvp."""
    @ft.custom_jvp
    def call(*args):
        return fun(*args)

    @call.defjvp
    def rule(primals, tangents):
        return ft.jvp(fun, primals, tangents)

    return call


@pytest.mark.parametrize("make", [wrong_sine, wrong_sine_backward])
def test_the_rule_is_used_in_every_composition(make):
    sine = make()
    expected = 10 * np.cos(X)
    wraps = [lambda f: f, ft.jit, ft.checkpoint, lambda f: ft.jit(ft.jit(f)),
             lambda f: lambda x: lax.cond(x > 0, f, lambda y: y, x),
             lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, length=1)[0],
             lambda f: lambda x: lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])),
                                                (0, x))[1],
             lambda f: lambda x: ft.vmap(f)(jnp.stack([x, x]))[0],
             lambda f: lambda x: ft.vmap(f, chunk_size=1)(jnp.stack([x, x]))[1]]
    for wrap in wraps:
        fun = wrap(sine)
        np.testing.assert_allclose(fun(X), np.sin(X))
        np.testing.assert_allclose(ft.grad(fun)(X), expected)
        np.testing.assert_allclose(ft.jit(ft.grad(fun))(X), expected)
        np.testing.assert_allclose(ft.vmap(ft.grad(fun))(np.stack([X, X])), [expected] * 2)
        np.testing.assert_allclose(ft.jacrev(fun)(X), expected)
        if make is wrong_sine:
            np.testing.assert_allclose(ft.jvp(fun, (X,), (1.0,))[1], expected)
            np.testing.assert_allclose(ft.linearize(fun, X)[1](1.0), expected)


@pytest.mark.parametrize("outer", [ft.grad, ft.jacfwd, lambda f: ft.jit(ft.grad(f)),
                                   lambda f: lambda x: ft.vmap(ft.grad(f))(x[None])[0]])
def test_the_rule_is_used_by_outer_derivatives_too(outer):
    """A rule calls its own function: the outer derivative of that call is by the rule again."""
    @ft.custom_jvp
    def strange(x):
        return x

    strange.defjvp(lambda primals, tangents: (
        strange(*primals), 3.0 * strange(primals[0]) * tangents[0]))
    np.testing.assert_allclose(ft.grad(strange)(X), 3 * X)
    np.testing.assert_allclose(outer(ft.grad(strange))(X), 9 * X)
    np.testing.assert_allclose(outer(ft.grad(ft.jit(strange)))(X), 9 * X)
    np.testing.assert_allclose(outer(ft.grad(ft.grad(strange)))(X), 27 * X)


BODIES = {
    "jit": ft.jit(jnp.sin),
    "checkpoint": ft.checkpoint(jnp.sin),
    "cond": lambda a: lax.cond(a > 0, jnp.sin, jnp.cos, a),
    "scan": lambda a: lax.scan(lambda c, _: (jnp.sin(c) * a, None), a, length=3)[0],
    "while": lambda a: lax.while_loop(lambda s: s < 2.0, lambda s: s * s * 0.2 + s * a + 0.2, a),
    "fori": lambda a: lax.fori_loop(0, 3, lambda i, s: jnp.sin(s) * a, a),
    "map": lambda a: lax.map(lambda b: jnp.sin(b) * a, jnp.stack([a, a])).sum(),
    "custom": derived(jnp.sin),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", BODIES)
def test_a_rule_that_is_the_jvp_of_a_program(name):
    """Its body computes values and tangents in one go; only the tangents are linear."""
    body = BODIES[name]

    def plain(a):
        return jnp.sin(body(a)) * a

    def ruled(a):
        return jnp.sin(derived(body)(a)) * a

    expected = ft.jvp(plain, (X,), (1.0,))
    for fun in (ruled, ft.jit(ruled), lambda a: lax.cond(a > 0, ruled, lambda b: b, a)):
        for actual in (ft.value_and_grad(fun)(X), ft.jit(ft.value_and_grad(fun))(X),
                       [v[0] for v in ft.vmap(ft.value_and_grad(fun))(X[None])]):
            np.testing.assert_allclose(actual, expected, rtol=1e-12)
        np.testing.assert_allclose(ft.grad(ft.grad(fun))(X), ft.grad(ft.grad(plain))(X))


@pytest.mark.parametrize("name", ["jit", "checkpoint", "cond", "scan", "while", "fori"])
def test_such_a_rule_in_a_closure(name):
    body = BODIES[name]

    def plain(x):
        return body(x + jnp.cos(x)) * x

    def ruled(x):
        return derived(lambda a: body(a + jnp.cos(x)) * x)(x)

    np.testing.assert_allclose(ruled(X), plain(X))
    for derivative in (ft.grad, ft.jacfwd, lambda f: ft.jit(ft.grad(f))):
        np.testing.assert_allclose(derivative(ruled)(X), ft.grad(plain)(X))


def test_an_endless_tower_of_rules():
    """Each derivative is another function with a rule of its own."""
    def wave(order, x):
        @ft.custom_jvp
        def sine(a):
            return ft.pure_callback(lambda v: np.sin(v + order * np.pi / 2),
                                    ft.ShapeDtypeStruct(a.shape, a.dtype), a,
                                    vmap_method="broadcast_all")

        sine.defjvp(lambda p, t: (sine(*p), t[0] * wave(order + 1, p[0])))
        return sine(x)

    fun = functools.partial(wave, 0)
    for wrap in (lambda f: f, ft.jit, ft.checkpoint):
        np.testing.assert_allclose(ft.grad(wrap(fun))(X), np.cos(X))
        np.testing.assert_allclose(ft.grad(ft.grad(wrap(fun)))(X), -np.sin(X))
        np.testing.assert_allclose(ft.jit(ft.grad(ft.grad(ft.grad(wrap(fun)))))(X), -np.cos(X))


def test_closures_over_tracers_of_every_transform():
    def fun(x):
        scale = x * 2.0

        @ft.custom_jvp
        def power(a):
            return a ** 3 * scale

        power.defjvp(lambda p, t: (power(*p), 3 * p[0] ** 2 * scale * t[0]))
        return power(x) + lax.fori_loop(0, 2, lambda i, s: power(s) * 0.3, x)

    def plain(x):
        s = x
        for _ in range(2):
            s = s ** 3 * 2 * x * 0.3
        return x ** 4 * 2 + s

    for order in range(1, 4):
        f, g = fun, plain
        for _ in range(order):
            f, g = ft.grad(f), ft.grad(g)
        np.testing.assert_allclose(f(X), g(X))
        np.testing.assert_allclose(ft.jit(f)(X), g(X))
        np.testing.assert_allclose(ft.vmap(f)(np.stack([X, 2 * X])), [g(X), g(2 * X)])
    stack = np.stack([X, 2 * X])
    np.testing.assert_allclose(ft.grad(lambda v: ft.vmap(fun)(v).sum())(stack),
                               [ft.grad(plain)(v) for v in stack])


def test_closure_of_custom_vjp_under_grad_of_vmap():
    def fun(x):
        scale = x * 2.0

        @ft.custom_vjp
        def cube(a):
            return a ** 3 * scale

        cube.defvjp(lambda a: (cube(a), (a, scale)), lambda r, ct: (ct * 3 * r[0] ** 2 * r[1],))
        return cube(x)

    stack = np.stack([X, 2 * X])
    np.testing.assert_allclose(ft.grad(lambda v: ft.vmap(fun)(v).sum())(stack), 8 * stack ** 3)


def test_nondiff_argnums_may_be_functions_and_come_first_in_rules():
    @functools.partial(ft.custom_vjp, nondiff_argnums=(0, 2))
    def apply(f, x, n):
        return f(x) ** n

    apply.defvjp(lambda f, x, n: (f(x) ** n, x), lambda f, n, x, ct: (ct * n * 100.0,))
    np.testing.assert_allclose(ft.grad(lambda x: apply(jnp.sin, x, 3))(X), 300.0)
    np.testing.assert_allclose(ft.jit(ft.grad(lambda x: apply(jnp.sin, x, 3)))(X), 300.0)


def test_symbolic_zeros_say_what_is_asked_for():
    seen = []

    @ft.custom_vjp
    def two(a, b):
        return a * 1.0, b * 1.0

    def forward(a, b):
        seen.append((a.perturbed, b.perturbed))
        return (a.value * 1.0, b.value * 1.0), None

    def backward(_, cts):
        seen.append(tuple(isinstance(ct, SymbolicZero) for ct in cts))
        return tuple(None if isinstance(ct, SymbolicZero) else ct for ct in cts)

    two.defvjp(forward, backward, symbolic_zeros=True)
    assert float(ft.grad(lambda a: two(a, 2.0)[0])(X)) == 1.0
    assert seen == [(True, False), (False, True)]


def test_integer_arguments_and_outputs():
    @ft.custom_vjp
    def take(x, i):
        return x[i], i + 1

    take.defvjp(lambda x, i: (take(x, i), (x, i)),
                lambda r, ct: (jnp.zeros_like(r[0]).at[r[1]].set(ct[0]),
                               np.zeros((), ft.float0)))
    x = np.arange(3.0)
    for wrap in (lambda f: f, ft.jit):
        np.testing.assert_allclose(ft.grad(wrap(lambda x: take(x, jnp.int32(1))[0]))(x), [0, 1, 0])
    rows = ft.vmap(ft.grad(lambda x, i: take(x, i)[0]), in_axes=(None, 0))(x, np.array([2, 0]))
    np.testing.assert_allclose(rows, [[0, 0, 1], [1, 0, 0]])


def test_forward_mode_of_custom_vjp_is_refused_and_reverse_then_forward_is_not():
    sine = wrong_sine_backward()
    for fun in (sine, ft.jit(sine), ft.vmap(sine, in_axes=None, axis_size=2)):
        with pytest.raises(CustomRuleError, match=r"forward-mode differentiation of .* sine"):
            ft.jvp(fun, (X,), (1.0,))
    np.testing.assert_allclose(ft.jacfwd(ft.grad(sine))(X), -10 * np.sin(X))


@pytest.mark.parametrize(("result", "text"), [
    (lambda x, ct: ct, "returned Array"), (lambda x, ct: (ct, ct), "returned 2 entries"),
    (lambda x, ct: (jnp.stack([ct, ct]),), r"f64\[2\]"), (lambda x, ct: ({"a": ct},), "structure")])
def test_wrong_cotangents_are_refused(result, text):
    @ft.custom_vjp
    def f(x):
        return x * 2.0

    f.defvjp(lambda x: (x * 2.0, x), result)
    with pytest.raises(CustomRuleError, match=text):
        ft.grad(f)(X)


def test_rules_run_once_per_derivative():
    calls = []

    @ft.custom_vjp
    def f(x):
        calls.append("fun")
        return x * 2.0

    def forward(x):
        calls.append("fwd")
        return x * 2.0, None

    def backward(_, ct):
        calls.append("bwd")
        return (ct * 2.0,)

    f.defvjp(forward, backward)
    f(X)
    assert calls == ["fun"]
    calls.clear()
    _, pull = ft.vjp(f, X)
    assert calls == ["fwd"]
    pull(1.0)
    pull(1.0)
    assert calls == ["fwd", "bwd", "bwd"]


def test_methods_keywords_and_defaults():
    class Scale:
        def __init__(self, by):
            self.by = by

        @functools.partial(ft.custom_jvp, nondiff_argnums=(0,))
        def apply(self, x, shift=1.0):
            return x * self.by + shift

        @apply.defjvp
        def rule(self, primals, tangents):
            x, shift = primals
            return self.apply(x, shift), tangents[0] * 7.0 + tangents[1]

    scale = Scale(2.0)
    assert float(scale.apply(3.0, shift=4.0)) == 10.0
    assert float(ft.grad(scale.apply)(X)) == 7.0
    assert float(ft.jit(ft.grad(lambda x: scale.apply(x, shift=x)))(X)) == 8.0


def test_without_rules():
    for make in (ft.custom_jvp, ft.custom_vjp):
        with pytest.raises(CustomRuleError, match="has no rule"):
            make(lambda x: x)(X)
