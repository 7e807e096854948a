"""What the backward pass keeps, by type, name and line."""

import functrans as ft
import functrans.numpy as jnp
from functrans import ad_checkpoint

TABLE = jnp.arange(1000.0)
X, W = ft.ShapeDtypeStruct((2, 3), "float32"), ft.ShapeDtypeStruct((3, 4), "float32")


def network(x, w, p):
    hidden = ad_checkpoint.checkpoint_name(x @ w, "hidden")
    return jnp.sin(hidden).sum() + jnp.cos(p["a"]) * TABLE.max()


def origins(f, *args, **kwargs):
    return [f"{aval} {origin.partition(' at ')[0]}"
            for aval, origin in ad_checkpoint.saved_residuals(f, *args, **kwargs)]


def test_arguments_results_and_lines():
    found = ad_checkpoint.saved_residuals(network, X, W, {"a": 1.0})
    assert {str(a) for a, _ in found} == {"f32[2,3]", "f32[3,4]", "f32[2,4]", "f32[]"}
    cos = next(origin for _, origin in found if origin.startswith("output of cos"))
    assert "test_residuals.py" in cos and "jnp.sin(hidden)" in cos
    assert origins(network, X, W, {"a": 1.0}) == origins(ft.jit(network), X, W, {"a": 1.0})


def test_checkpoints_keep_what_their_policy_says():
    named = ft.checkpoint(
        network, policy=ad_checkpoint.checkpoint_policies.save_only_these_names("hidden"))
    inputs = {"f32[2,3] from the argument x", "f32[3,4] from the argument w",
              "f32[] from the argument p['a']", "f32[1000] from a constant"}
    assert {*origins(named, X, W, p={"a": 1.0})} == {*inputs, "f32[2,4] named 'hidden'"}
    assert {*origins(ft.checkpoint(network), X, W, {"a": 1.0})} <= inputs


def test_policies_may_return_what_jaxs_do():
    decided = {"sin": ad_checkpoint.Saveable, "cos": ad_checkpoint.Recompute,
               "exp": ad_checkpoint.Offloadable("device", "pinned_host")}

    def policy(primitive, *avals, **params):
        return decided.get(primitive.name, False)

    def f(x):
        return jnp.tanh(jnp.exp(jnp.cos(jnp.sin(x) * x) * x) * x)

    kept = {o.split()[3] for o in origins(ft.checkpoint(f, policy=policy), 0.5)
            if "output" in o}
    assert kept == {"sin", "exp"}
    assert ft.grad(ft.checkpoint(f, policy=policy))(0.5) == ft.grad(f)(0.5)


def test_they_are_printed(capsys):
    ad_checkpoint.print_saved_residuals(lambda x: jnp.sin(x), 1.0)
    assert capsys.readouterr().out.startswith("f32[] output of cos at ")
