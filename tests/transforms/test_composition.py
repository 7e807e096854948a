"""Every transform on every kind of function, and on what other transforms made of it.

By induction: a composition C = T(C') is compared with what T means for C' evaluated eagerly (a loop
for vmap, finite differences for derivatives, C' itself for jit and checkpoint), and C' has been
compared in the same way before.
"""

import functools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import CustomRuleError
from tests.transforms.functions import FUNCTIONS, REVERSE_ONLY

POINT = np.array([0.6, -0.9, 1.3])
DIRECTION = np.array([0.7, 0.4, -0.5])
SCALES = np.array([1.0, 0.8, 1.1])
MAX_ORDER = 3


def total(fun):
    """A scalar function that depends on all outputs, each with another weight."""
    def scalar(x):
        out = fun(x)
        return jnp.vdot(jnp.cos(jnp.arange(out.size, dtype="float64") + 0.3).reshape(out.shape),
                        out)
    return scalar


def pullback(fun):
    def pulled(x):
        out, pull = ft.vjp(fun, x)
        return pull(jnp.sin(jnp.arange(out.size, dtype="float64") + 1.0).reshape(out.shape))[0]
    return pulled


def over_scales(mapped):
    return lambda x: mapped(jnp.outer(SCALES, x))


TRANSFORMS = {
    "jit": ft.jit,
    "checkpoint": ft.checkpoint,
    "vmap": lambda f: over_scales(ft.vmap(f)),
    "chunks": lambda f: over_scales(ft.vmap(f, chunk_size=2, out_axes=-1)),
    "grad": lambda f: ft.grad(total(f)),
    "vjp": pullback,
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (DIRECTION,))[1],
    "linearize": lambda f: lambda x: ft.linearize(f, x)[1](DIRECTION),
    "jacfwd": ft.jacfwd,
    "jacrev": ft.jacrev,
    "hessian": lambda f: ft.hessian(total(f)),
    "hvp": lambda f: lambda x: ft.hvp(total(f), (x,), (DIRECTION,)),
}
NAMES = list(TRANSFORMS)
ORDERS = {"grad": 1, "vjp": 1, "jvp": 1, "linearize": 1, "jacfwd": 1, "jacrev": 1, "hessian": 2,
          "hvp": 2}
FORWARD = {"jvp", "linearize", "jacfwd"}
REVERSE = {"grad", "vjp", "jacrev", "hessian", "hvp"}


class Composition:
    """A function after some transforms, the innermost first; values at a few points are kept."""

    def __init__(self, name, path=()):
        self.name = name
        self.path = path
        self.fun = functools.reduce(lambda f, t: TRANSFORMS[t](f), path, FUNCTIONS[name])
        self.order = sum(ORDERS.get(t, 0) for t in path)

    def then(self, transform):
        return Composition(self.name, (*self.path, transform))

    def allows(self, transform):
        return (self.order + ORDERS.get(transform, 0) <= MAX_ORDER
                and (self.name not in REVERSE_ONLY or self.allows_backward_rule(transform)))

    def allows_backward_rule(self, transform):
        """Forward mode comes after reverse mode, which has replaced the function by its rules."""
        return bool(REVERSE & set(self.path)) or transform not in FORWARD

    @functools.cache  # noqa: B019  a few compositions live in one test
    def at(self, step):
        """The eager value at POINT moved by `step` in DIRECTION."""
        return np.asarray(self.fun(jnp.array(POINT + step * DIRECTION)))

    def total_at(self, step):
        return float(np.asarray(total(lambda x: jnp.asarray(self.at(step)))(None)))

    def slope(self, values):
        h = 1e-5
        return (values(h) - values(-h)) / (2 * h)


def contract(outer, inner):
    """(what the last transform gave, what finite differences or a loop give), to be compared."""
    last = outer.path[-1]
    value = outer.at(0.0)
    if last in ("jit", "checkpoint"):
        return value, inner.at(0.0)
    if last in ("vmap", "chunks"):
        rows = [np.asarray(inner.fun(jnp.array(s * POINT))) for s in SCALES]
        return value, np.stack(rows, 0 if last == "vmap" else -1)
    if last in ("jvp", "linearize"):
        return value, inner.slope(inner.at)
    if last in ("jacfwd", "jacrev"):
        return value @ DIRECTION, inner.slope(inner.at)
    if last == "grad":
        return value @ DIRECTION, inner.slope(inner.total_at)
    if last == "vjp":
        weights = np.sin(np.arange(inner.at(0.0).size) + 1.0)
        return value @ DIRECTION, inner.slope(inner.at).reshape(-1) @ weights
    h = 1e-3  # second derivatives, by a five-point difference
    f = inner.total_at
    curvature = (16 * (f(h) + f(-h)) - f(2 * h) - f(-2 * h) - 30 * f(0.0)) / (12 * h * h)
    if last == "hessian":
        np.testing.assert_allclose(value, value.T, rtol=1e-8, atol=1e-8 * np.abs(value).max())
        return DIRECTION @ value @ DIRECTION, curvature
    return value @ DIRECTION, curvature


def check(outer, inner, in_jit):
    actual, expected = contract(outer, inner)
    exact = outer.path[-1] in ("jit", "checkpoint", "vmap", "chunks")
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)),
                abs(inner.total_at(0.0)) if inner.path or not exact else 1.0)
    tolerance = (1e-9 if exact else 2e-5) * scale
    message = " of ".join((*reversed(outer.path), outer.name))
    assert actual.shape == np.shape(expected), message
    np.testing.assert_allclose(actual, expected, rtol=tolerance / scale, atol=tolerance,
                               err_msg=message)
    if in_jit:
        np.testing.assert_allclose(ft.jit(outer.fun)(POINT), outer.at(0.0), rtol=1e-8,
                                   atol=1e-8 * scale, err_msg=f"jit of {message}")


def compose(name, first, share, triples):
    """The pairs that begin with `first`, one of `share` of them, and some triples of them.

    The next function takes others; under jit too is a quarter of what is compared.
    """
    base = Composition(name)
    if not base.allows(first):
        with pytest.raises(CustomRuleError, match="forward-mode"):
            base.then(first).at(0.0)
        return
    inner = base.then(first)
    turn = list(FUNCTIONS).index(name) + NAMES.index(first)
    check(inner, base, in_jit=triples or turn % 4 == 0)
    for i, second in enumerate(NAMES):
        if (i + turn) % share or not inner.allows(second):
            continue
        pair = inner.then(second)
        check(pair, inner, in_jit=(i + turn) % ((4 if triples else 8) * share) == 0)
        if not triples or (turn - i) % len(NAMES):
            continue
        for j, third in enumerate(NAMES):
            if (j + turn // 2) % 2 == 0 and pair.allows(third):
                check(pair.then(third), pair, in_jit=(j + turn) % 4 == 0)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compositions(name, first):
    """Every pair meets 3 functions."""
    compose(name, first, share=9, triples=False)


@pytest.mark.thorough
@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compositions_of_three(name, first):
    """Every pair meets 15 functions, every triple at least one."""
    compose(name, first, share=2, triples=True)
