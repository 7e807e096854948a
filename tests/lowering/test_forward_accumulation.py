"""Gradients of loops to few numbers run forward, and are those of reverse mode."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.evaluate import eval_jaxpr
from functrans.lowering.passes import pipeline
from functrans.lowering.passes.pipeline import simplify

RNG = np.random.default_rng(0)
LANES = 5
STEPS = 6
WALKED = RNG.normal(size=(STEPS, 3))
WEIGHT = RNG.normal(size=(3, 3)) / 2


def walk(step, s, xs=None):
    return lax.scan(step, s, xs, length=None if xs is not None else STEPS)


def lorenz(rho, s):
    def step(s, _):
        x, y, z = s
        d = jnp.stack([10 * (y - x), x * (rho - z) - y, x * y - 8 / 3 * z])
        return s + 0.01 * d, None
    return jnp.sum(walk(step, s)[0] ** 2)


def van_der_pol(mu, s):
    def step(c, _):
        x, v = c
        return (x + 0.1 * v, v + 0.1 * (mu * (1 - x * x) * v - x)), None
    x, v = walk(step, (s[0], s[1]))[0]
    return x * v


def logistic(r, s):
    def step(x, _):
        return r * x * (1 - x), None
    return walk(step, 1 / (1 + s[0] ** 2))[0]


def heat(k, s):
    """Places of a lane mix."""
    def step(u, _):
        return u + k * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)), None
    return jnp.sum(jnp.sin(walk(step, jnp.tile(s, 4))[0]))


def loss_at_each_step(k, s):
    def step(s, x):
        s = jnp.tanh(WEIGHT.astype(s.dtype) @ s * k) + 0.1 * x
        return s, s
    walked = WALKED.astype(s.dtype)
    _, ys = walk(step, s, walked)
    return jnp.mean((ys - walked) ** 2) + jnp.sum(ys[:, 0])


def sum_in_the_carry(k, s):
    def step(c, _):
        s, total = c
        s = jnp.sin(k * s)
        return (s, total + jnp.sum(s * s)), None
    return walk(step, (s, jnp.sum(s) * 0))[0][1]


def choices(k, s):
    def step(s, x):
        return jnp.where(s > 0, jnp.sqrt(jnp.where(s > 0, s, 1)) * k, s - k * x), None
    return jnp.sum(walk(step, s, WALKED.astype(s.dtype))[0])


def nested(k, s):
    def step(s, _):
        def inner(s, _):
            return s + 0.1 * jnp.sin(k * s), None
        return lax.scan(inner, s, None, length=3)[0] * 0.9, None
    return jnp.sum(walk(step, s)[0])


def backwards(k, s):
    def step(s, x):
        return jnp.cos(s * k) + x, None
    return jnp.sum(lax.scan(step, s, WALKED.astype(s.dtype), reverse=True)[0])


def places(k, s):
    def step(s, i):
        return s.at[i % 3].set(k * jnp.sin(s[(i + 1) % 3])), None
    return jnp.sum(walk(step, s, jnp.arange(STEPS))[0])


def outside(k, s):
    """The coefficient is used before, within and after the loop."""
    def step(s, x):
        return s * jnp.exp(-k * x * x), jnp.sum(s)
    end, sums = walk(step, s, WALKED.astype(s.dtype))
    return jnp.sum(end) * k + jnp.sum(sums * sums)


def root_of_mean(k, s):
    """The cotangents are known after the loop."""
    def step(s, x):
        s = jnp.sin(k * s) + 0.1 * x
        return s, s[0] * s[1]
    _, ys = walk(step, s, WALKED.astype(s.dtype))
    return jnp.sqrt(jnp.mean(ys ** 2) + 1)


def log_of_sum(k, s):
    """One cotangent for all steps is known after the loop."""
    def step(c, x):
        s, total = c
        s = jnp.sin(k * s) + 0.1 * x
        return (s, total + jnp.sum(s * s)), jnp.sum(s)
    (_, total), sums = walk(step, (s, jnp.sum(s) * 0), WALKED.astype(s.dtype))
    return jnp.log(total) * jnp.sin(jnp.sum(sums))


LOSSES = [lorenz, van_der_pol, logistic, heat, loss_at_each_step, root_of_mean, log_of_sum,
          sum_in_the_carry, choices, nested, backwards, places, outside]


def given(dtype, lanes=LANES):
    return (RNG.uniform(0.2, 0.9, lanes).astype(dtype),
            RNG.normal(size=(lanes, 3)).astype(dtype))


def simplified(fun, args):
    closed = ft.make_jaxpr(fun)(*args)
    return simplify(closed.jaxpr.hoist_consts()), closed.consts


def scans(jaxpr):
    return [e for e in jaxpr.eqns if e.primitive.name == "scan"]


def without(monkeypatch, fun, args):
    """The results with reverse mode as it is."""
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "accumulate_forward", lambda jaxpr, log=None: jaxpr)
        jaxpr, consts = simplified(fun, args)
    return eval_jaxpr(jaxpr, (), *consts, *args)


def check(monkeypatch, fun, args):
    """The one loop of the gradient, whose values are those of reverse mode."""
    jaxpr, consts = simplified(fun, args)
    found = eval_jaxpr(jaxpr, (), *consts, *args)
    tol = 2e-5 if args[0].dtype == np.float32 else 1e-12
    for x, y in zip(found, without(monkeypatch, fun, args), strict=True):
        np.testing.assert_allclose(x, y, rtol=tol, atol=tol)
    (loop,) = scans(jaxpr)
    return loop


@pytest.mark.parametrize("loss", LOSSES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gradient_of_each_lane(monkeypatch, loss, dtype):
    args = given(dtype)
    check(monkeypatch, ft.vmap(ft.value_and_grad(loss)), args)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda f: f.__name__)
def test_the_gradient_of_a_lane_alone_and_of_a_mean(monkeypatch, loss):
    k, s = given("float64")
    check(monkeypatch, ft.value_and_grad(loss), (k[0], s[0]))

    def mean(k, s):
        return jnp.mean(ft.vmap(loss, (None, 0))(k, s))
    check(monkeypatch, ft.grad(mean), (k[0], s))


@pytest.mark.parametrize("name, most", [
    ("lorenz", 0), ("van_der_pol", 0), ("heat", 0), ("sum_in_the_carry", 0), ("nested", 0),
    ("loss_at_each_step", 3), ("root_of_mean", 2)])
def test_no_more_is_recorded_than_the_loss_reads(name, most):
    jaxpr, _ = simplified(ft.vmap(ft.value_and_grad(globals()[name])), given("float32"))
    (loop,) = scans(jaxpr)
    stacks = loop.outvars[loop.params["num_carry"]:]
    assert sum(v.aval.size for v in stacks) <= most * STEPS * LANES


@pytest.mark.parametrize("numbers, loops", [(1, 1), (2, 1), (3, 2)])
def test_gradients_to_several_numbers(monkeypatch, numbers, loops):
    """Two are carried along, three are not: neither as scalars nor as an array."""
    def loss(k, s):
        def step(s, x):
            return jnp.sin(s * k[0]) + jnp.cos(k[-1] * x) * k[numbers // 2], None
        return jnp.sum(walk(step, s, WALKED)[0])

    ks = RNG.uniform(0.2, 0.9, (numbers, LANES)), RNG.normal(size=(LANES, 3))
    for fun, args in [
            (ft.vmap(ft.grad(loss), (1, 0)), ks),
            (ft.vmap(ft.grad(lambda k, s: loss(list(k), s)), ((0,) * numbers, 0)),
             (tuple(ks[0]), ks[1])),
            (ft.grad(lambda k, s: jnp.sum(ft.vmap(loss, (None, 0))(k, s))), (ks[0][:, 0], ks[1]))]:
        flat, tree = ft.tree.flatten(args)

        def call(*flat, fun=fun, tree=tree):
            return ft.tree.leaves(fun(*ft.tree.unflatten(tree, flat)))
        jaxpr, consts = simplified(call, flat)
        assert len(scans(jaxpr)) == loops
        for x, y in zip(eval_jaxpr(jaxpr, (), *consts, *flat), without(monkeypatch, call, flat),
                        strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def two_of_long_steps(k, s):
    """The arithmetic of a second tangent is more than a record."""
    def loss(a, b):
        def step(s, _):
            for _ in range(6):
                s = jnp.sin(a * s) * b + jnp.tanh(s)
            return s, None
        return jnp.sum(walk(step, s)[0])
    return ft.grad(loss, (0, 1))(k, 2 * k)


def gradient_to_start(k, s):
    return ft.grad(lorenz, argnums=1)(k, s)


def not_linear(k, s):
    """The second loop multiplies what it carries by itself."""
    def step(s, _):
        return jnp.sin(k * s), s
    end, ys = walk(step, s)
    return lax.scan(lambda c, y: (c * c * 0.1 + y, None), end, ys, reverse=True)[0]


def walks_on(k, s):
    """The second loop walks in the direction of the first."""
    def step(s, _):
        return jnp.sin(k * s), s
    end, ys = walk(step, s)
    return jnp.sum(lax.scan(lambda c, y: (c * y, None), end, ys)[0])


def collects(k, s):
    """What the second loop collects is read."""
    return ft.grad(lambda xs: jnp.sum(walk(lambda s, x: (jnp.sin(k * s + x), None), s, xs)[0]))(
        WALKED)


@pytest.mark.parametrize("fun", [two_of_long_steps, gradient_to_start, not_linear, walks_on,
                                 collects], ids=lambda f: f.__name__)
def test_other_loops_stay(monkeypatch, fun):
    k, s = given("float64")
    args = k[0], s[0]
    jaxpr, consts = simplified(fun, args)
    assert len(scans(jaxpr)) == 2
    for x, y in zip(eval_jaxpr(jaxpr, (), *consts, *args), without(monkeypatch, fun, args),
                    strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_lane_alone_is_decided_as_among_others():
    k, s = given("float64")
    for loss in LOSSES:
        (alone,), (both,) = [scans(simplified(fun, args)[0]) for fun, args in [
            (ft.value_and_grad(loss), (k[0], s[0])), (ft.vmap(ft.value_and_grad(loss)), (k, s))]]
        assert alone.params["length"] == both.params["length"] == STEPS


def test_what_a_choice_does_not_take_may_have_no_derivative(monkeypatch):
    """The tangent there is infinite or NaN, and is not chosen."""
    def loss(k, s):
        return jnp.sum(walk(lambda s, _: (jnp.where(s > 0, jnp.sqrt(s), 0.5 * s) * k, None), s)[0])

    args = np.full(4, 0.7), np.array([[0.0], [-1.0], [0.5], [-0.0]])
    fun = ft.vmap(ft.grad(loss))
    assert np.all(np.isfinite(without(monkeypatch, fun, args)[0]))
    check(monkeypatch, fun, args)


def test_calls_within_are_seen_through(monkeypatch):
    check(monkeypatch, ft.vmap(ft.value_and_grad(ft.jit(loss_at_each_step))), given("float64"))


def test_loops_within_a_loop(monkeypatch):
    """Gradient descent: the gradient is computed in the body of a loop."""
    def descent(k, s):
        def step(k, _):
            return k - 0.01 * ft.grad(lorenz)(k, s), None
        return lax.scan(step, k, None, length=9)[0]

    k, s = given("float64")
    loop = check(monkeypatch, ft.vmap(descent), (k, s))
    assert len(scans(loop.params["jaxpr"])) == 1


@pytest.mark.parametrize("loss", [lorenz, loss_at_each_step, choices, nested],
                         ids=lambda f: f.__name__)
def test_compiled(loss):
    args = given("float32")
    fun = ft.vmap(ft.value_and_grad(loss))
    for x, y in zip(ft.jit(fun)(*args), fun(*args), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5)


def random_loss(seed):
    """A body of ten random operations on two carried values, an element and the coefficient."""
    rng = np.random.default_rng(seed)
    unary = [jnp.sin, jnp.tanh, lambda x: x * x * 0.3, lambda x: jnp.sqrt(1 + x * x), jnp.cos,
             lambda x: jnp.roll(x, 1), lambda x: jnp.where(x > 0, x, 0.1 * x),
             lambda x: jnp.broadcast_to(jnp.sum(x) * 0.3, x.shape), jnp.flip,
             lambda x: x[np.array([2, 0, 1])], lambda x: x.at[np.array([1, 2])].add(0.5 * x[:2]),
             lambda x: WEIGHT.astype(x.dtype) @ x, jnp.cumsum]
    binary = [lambda x, y: x * y * 0.5, lambda x, y: x + y, lambda x, y: x - y,
              lambda x, y: x / (2 + y * y), jnp.maximum,
              lambda x, y: jnp.where(x > y, y, x)]
    plan = [(rng.integers(2), rng.integers(99), rng.integers(99), rng.integers(99))
            for _ in range(10)]
    ends = rng.integers(4, 14, 3)

    def loss(k, s):
        def step(carry, x):
            values = [*carry, x, k * jnp.ones_like(x)]
            for two, op, i, j in plan:
                values.append(binary[op % len(binary)](values[i % len(values)],
                                                       values[j % len(values)])
                              if two else unary[op % len(unary)](values[i % len(values)]))
            a, b, y = [jnp.tanh(values[e]) for e in ends]
            return (a, b + 0.1 * k * carry[0]), y
        (a, b), ys = walk(step, (s, s * s), WALKED.astype(s.dtype))
        return jnp.sum(a * b) + jnp.mean(ys ** 2)
    return loss


@pytest.mark.parametrize("seed", range(12))
def test_random_bodies(monkeypatch, seed):
    k, s = given("float64")
    loss = random_loss(seed)
    for fun, args in [(ft.vmap(ft.value_and_grad(loss)), (k, s)),
                      (ft.value_and_grad(loss), (k[0], s[0]))]:
        jaxpr, consts = simplified(fun, args)
        assert len(scans(jaxpr)) == 1
        found = eval_jaxpr(jaxpr, (), *consts, *args)
        assert simplify(jaxpr) is jaxpr
        for x, y in zip(found, without(monkeypatch, fun, args), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)
