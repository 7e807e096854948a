"""What loops record for reverse mode is the least from which the rest follows."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.evaluate import eval_jaxpr
from functrans.lowering.passes.minimum_cut import FlowNetwork
from functrans.lowering.passes.pipeline import simplify

RNG = np.random.default_rng(0)
LANES = 500


def lorenz(s, rho):
    def step(s, _):
        d = jnp.stack([10 * (s[1] - s[0]), s[0] * (rho - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])
        s = s + 0.01 * d
        return s * s / (1 + s * s), None
    return jnp.sum(lax.scan(step, s, None, length=6)[0])


def forced(s, rho):
    """What a loop walks over is there already."""
    def step(s, x):
        return s * jnp.tanh(s * x) + rho * x * x, jnp.sum(s)
    end, sums = lax.scan(step, s, RNG_STEPS)
    return jnp.sum(end) + jnp.sum(sums ** 2)


def layers(s, rho):
    """A product is not computed again."""
    def step(s, _):
        h = jnp.tanh(s @ WEIGHT)
        return h * jnp.exp(-h * h) * rho, None
    return jnp.sum(lax.scan(step, s, None, length=5)[0])


RNG_STEPS = RNG.normal(size=(6, 3)).astype("f")
WEIGHT = RNG.normal(size=(3, 3)).astype("f")
LOOPS = {"lorenz": lorenz, "forced": forced, "layers": layers}


def gradient_of(loop):
    return ft.vmap(ft.grad(loop, argnums=(0, 1)))


def recorded(jaxpr):
    """The numbers that an iteration records for a lane."""
    (first, *_) = [e for e in jaxpr.eqns if e.primitive.name == "scan"]
    return sum(v.aval.size for v in first.outvars[first.params["num_carry"]:]) \
        / first.params["length"] / LANES


@pytest.mark.parametrize("name", LOOPS)
def test_the_gradient_is_the_same(name):
    args = RNG.normal(size=(LANES, 3)).astype("f"), RNG.uniform(0, 2, LANES).astype("f")
    fun = gradient_of(LOOPS[name])
    closed = ft.make_jaxpr(fun)(*args)
    simple = simplify(closed.jaxpr.hoist_consts())
    found = eval_jaxpr(simple, (), *closed.consts, *args)
    for x, y, z in zip(found, fun(*args), ft.jit(fun)(*args), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(z, y, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name, most", [("lorenz", 3), ("forced", 4), ("layers", 6)])
def test_few_numbers_are_recorded(name, most):
    args = RNG.normal(size=(LANES, 3)).astype("f"), RNG.uniform(0, 2, LANES).astype("f")
    closed = ft.make_jaxpr(gradient_of(LOOPS[name]))(*args)
    assert recorded(simplify(closed.jaxpr.hoist_consts())) <= most


def test_what_the_user_collects_stays():
    def loop(s):
        def step(s, _):
            s = s * jnp.sin(s)
            return s, jnp.cos(s)
        end, film = lax.scan(step, s, None, length=4)
        return jnp.sum(end), film

    x = RNG.normal(size=100).astype("f")
    (value, film), slope = ft.jit(ft.value_and_grad(loop, has_aux=True))(x)
    (value2, film2), slope2 = ft.value_and_grad(loop, has_aux=True)(x)
    for a, b in ((value, value2), (film, film2), (slope, slope2)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_cuts_separate_and_are_as_large_as_the_flow():
    """Against all cuts of small random networks."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        edges = [(int(a), int(b), float(c)) for a, b, c in zip(
            rng.integers(0, 6, 14), rng.integers(0, 6, 14), rng.integers(1, 9, 14), strict=True)
            if a != b]
        network = FlowNetwork()
        for a, b, c in [(0, 5, 1.0), *edges]:
            network.add(a, b, c)
        least = min(sum(c for a, b, c in [(0, 5, 1.0), *edges]
                        if _side(a, m) and not _side(b, m)) for m in range(16))
        cut = set(network.minimum_cut(0, 5))
        assert sum(c for a, b, c in [(0, 5, 1.0), *edges] if (a, b) in cut) == least


def _side(node, mask):
    return node == 0 or (node != 5 and mask >> (node - 1) & 1)
