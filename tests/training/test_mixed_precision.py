"""Policies cast floating leaves alone; scales grow, shrink, and keep gradients."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import mixed_precision as mp
from functrans.core.errors import ArgumentError


def test_policies():
    policy = mp.get_policy("params=float32,compute=bf16,output=half")
    assert policy == mp.Policy("float32", "bfloat16", "float16")
    assert mp.get_policy("bfloat16") == mp.Policy("bfloat16", "bfloat16", "bfloat16")
    tree = {"w": jnp.ones(2), "n": jnp.arange(2), "k": ft.random.key(0), "f": 2.0}
    cast = policy.cast_to_compute(tree)
    assert (cast["w"].dtype, cast["n"].dtype, cast["f"]) == ("bfloat16", "int32", 2.0)
    assert cast["k"] is tree["k"]
    assert policy.cast_to_param(cast)["w"].dtype == "float32"
    assert policy.cast_to_output(cast)["w"].dtype == "float16"
    for text in ("params=int8", "compute:float16", "wide"):
        with pytest.raises(ArgumentError, match="get_policy got"):
            mp.get_policy(text)


def test_scales_keep_gradients_from_underflow():
    """The gradient of a small loss in float16 is 0 without a scale."""
    def loss(w, scale):
        half = w.astype("float16")
        return scale.scale((half * half * np.float16(1e-4)).sum().astype("float32"))

    w = jnp.full(4, 1e-4, "float32")
    scale = mp.StaticLossScale(jnp.array(2.0**15))
    gradient = scale.unscale(ft.grad(loss)(w, scale))
    np.testing.assert_allclose(gradient, np.full(4, 2e-8), rtol=0.02)
    assert not np.asarray(ft.grad(loss)(w, mp.NoLossScale())).all()


@pytest.mark.parametrize("run", [lambda f: f, ft.jit])
def test_dynamic_scales(run):
    adjust = run(lambda s, ok: s.adjust(ok))
    scale = mp.DynamicLossScale(jnp.array(2.0**10), jnp.array(0), period=jnp.array(3))
    seen = []
    for ok in (True, True, True, True, False, True, True, True):
        scale = adjust(scale, ok)
        seen.append((float(np.log2(scale.loss_scale)), int(scale.counter)))
    assert seen == [(10, 1), (10, 2), (11, 0), (11, 1), (10, 0), (10, 1), (10, 2), (11, 0)]
    smallest = adjust(mp.DynamicLossScale(jnp.array(1.0), jnp.array(0)), False)
    assert smallest.loss_scale == 1
    largest = mp.DynamicLossScale(jnp.array(3e38, "float32"), jnp.array(0), period=jnp.array(1))
    assert np.isfinite(adjust(largest, True).loss_scale)


def test_a_step_is_left_out_where_gradients_are_not_finite():
    @ft.jit
    def step(w, scale, x):
        gradient = scale.unscale(ft.grad(lambda w: scale.scale((w * x).sum()))(w))
        ok = mp.all_finite(gradient)
        return mp.select_tree(ok, w - gradient, w), scale.adjust(ok)

    w, scale = jnp.ones(2), mp.DynamicLossScale(jnp.array(8.0), jnp.array(0))
    after, scale = step(w, scale, jnp.array([np.inf, 1.0]))
    assert after.tolist() == [1, 1] and scale.loss_scale == 4
    after, scale = step(w, scale, jnp.array([0.5, 1.0]))
    assert after.tolist() == [0.5, 0] and scale.counter == 1
    assert bool(mp.all_finite({})) and not bool(mp.all_finite([1.0, np.nan]))
