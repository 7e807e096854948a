"""checkpoint: the same derivatives, fewer values kept, each policy keeping what it says."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import StaticArgumentError
from tests.transforms.functions import POLICIES

W = np.random.default_rng(0).standard_normal((4, 4))
X = np.linspace(-1.0, 1.0, 4)


def layer(x):
    hidden = ft.checkpoint_name(W @ x, "hidden")
    return jnp.sin(W @ jnp.cos(jnp.tanh(hidden))) + x


def deep(wrap):
    def fun(x):
        for _ in range(3):
            x = wrap(layer)(x)
        return jnp.sum(x ** 2)
    return fun


@pytest.mark.one_in(3)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("prevent_cse", [True, False])
def test_derivatives_do_not_change(policy, prevent_cse):
    plain = deep(lambda f: f)
    kept = deep(lambda f: ft.checkpoint(f, policy=POLICIES[policy], prevent_cse=prevent_cse))
    np.testing.assert_allclose(kept(X), plain(X))
    for derivative in (ft.grad, ft.hessian, ft.jacfwd, lambda f: ft.jit(ft.grad(f)),
                       lambda f: ft.grad(ft.jit(f)), lambda f: ft.grad(ft.checkpoint(f)),
                       lambda f: lambda x: ft.vmap(ft.grad(f))(jnp.stack([x, 2 * x]))):
        np.testing.assert_allclose(derivative(kept)(X), derivative(plain)(X), rtol=1e-9)


def operations(jaxpr, count=None):
    count = {} if count is None else count
    for eqn in jaxpr.eqns:
        count[eqn.primitive.name] = count.get(eqn.primitive.name, 0) + 1
        for value in eqn.params.values():
            if hasattr(value, "eqns"):
                operations(value, count)
    return count


@pytest.mark.parametrize(("policy", "again"), [
    ("none", {"dot_general": 2, "tanh": 1}), ("nothing", {"dot_general": 2, "tanh": 1}),
    ("everything", {"dot_general": 0}), ("dots", {"dot_general": 0, "tanh": 1}),
    ("names", {"dot_general": 1, "tanh": 1}), ("other_names", {"dot_general": 2, "tanh": 1}),
])
def test_policies_recompute_what_they_do_not_keep(policy, again):
    """Operations of the program of the gradient, compared with that without checkpoint."""
    def count(wrap):
        fun = lambda x: wrap(layer)(x).sum()
        return operations(ft.make_jaxpr(ft.grad(fun))(X).jaxpr)

    plain = count(lambda f: f)
    kept = count(lambda f: ft.checkpoint(f, policy=POLICIES[policy]))
    assert {name: kept.get(name, 0) - plain.get(name, 0) for name in again} == again


def test_a_scan_of_checkpointed_steps_keeps_carries_only():
    def looped(wrap):
        return lambda x: lax.scan(lambda c, _: (wrap(layer)(c), None), x, length=10)[0].sum()

    def stacked(wrap):
        """Arrays with one row per step in the program of the gradient."""
        jaxpr = ft.make_jaxpr(ft.grad(looped(wrap)))(X).jaxpr
        return sum(v.aval.shape[:1] == (10,) for eqn in jaxpr.eqns for v in eqn.outvars)

    assert stacked(ft.checkpoint) == 1
    assert stacked(lambda f: f) > 2
    np.testing.assert_allclose(ft.grad(looped(ft.checkpoint))(X),
                               ft.grad(looped(lambda f: f))(X), rtol=1e-9)


def test_static_arguments_keywords_and_trees():
    @ft.checkpoint
    def plain(p, *, scale):
        return {"y": p["x"] * scale, "none": None}

    assert float(ft.grad(lambda x: plain({"x": x}, scale=3.0)["y"])(2.0)) == 3.0
    power = ft.checkpoint(lambda x, n: x ** n if n > 1 else x, static_argnums=(1,))
    assert float(ft.grad(power)(2.0, 3)) == 12.0
    assert float(ft.grad(power)(2.0, 1)) == 1.0
    assert ft.remat is ft.checkpoint
    assert plain.__name__ == "checkpoint_plain"


def test_closures_and_integers():
    def fun(x, n):
        return ft.checkpoint(lambda y: jnp.sin(y * x) + n)(x)

    expected = 2 * X * np.cos(X ** 2)
    gradient = ft.grad(lambda x: fun(x, jnp.arange(4)).sum())(X)
    np.testing.assert_allclose(gradient, expected)
    np.testing.assert_allclose(ft.vmap(ft.grad(fun), (0, None))(X, 2), expected)


def test_static_arguments_are_python_values():
    def f(x, flag, *, power=1, names=()):
        assert isinstance(flag, bool) and isinstance(names, list | tuple)
        return jnp.sin(x) ** power if flag else x * len(names)

    want = float(ft.grad(lambda x: jnp.sin(x) ** 2)(0.3))
    for made, args, kwargs in (
            (ft.checkpoint(f, static_argnums=1), (0.3, True), {"power": 2.0}),
            (ft.checkpoint(f, static_argnums=(-1,)), (0.3, True), {"power": 2.0}),
            (ft.checkpoint(f, static_argnames="flag"), (0.3, True), {"power": 2.0}),
            (ft.checkpoint(f, static_argnames=("flag", "power")), (0.3,),
             {"flag": True, "power": 2}),
            (ft.remat(f, static_argnums=1), (0.3,), {"flag": True, "power": 2.0})):
        assert float(ft.grad(made)(*args, **kwargs)) == pytest.approx(want, rel=1e-6)
        assert float(ft.jit(ft.grad(made), static_argnums=1, static_argnames=("flag", "power"))(
            *args, **kwargs)) == pytest.approx(want, rel=1e-6)
    made = ft.checkpoint(f, static_argnames=("flag", "names"))
    assert float(ft.grad(made)(0.3, False, names=["a", "b"])) == 2.0  # which need not be hashable
    with pytest.raises(StaticArgumentError, match="checkpoint: static_argnames names 'flags'"):
        ft.checkpoint(f, static_argnames="flags")
    with pytest.raises(StaticArgumentError, match="checkpoint: static_argnums=5 is out of range"):
        ft.checkpoint(f, static_argnums=5)
