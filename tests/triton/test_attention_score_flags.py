"""Checked attention is one kernel, and says of NaN and infinities what the CPU says."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core import config
from functrans.core.errors import CheckError

RNG = np.random.default_rng(4)
SHAPE = (2, 2, 40, 16)
Q, K, V, CT = (RNG.normal(size=SHAPE).astype("f") for _ in range(4))


def causal(q, k, v):
    scores = q @ jnp.swapaxes(k, -1, -2) / 4
    mask = jnp.tri(q.shape[-2], dtype=bool)
    return ft.nn.softmax(jnp.where(mask, scores, -np.inf)) @ v


def plain(q, k, v):
    return ft.nn.softmax(q @ jnp.swapaxes(k, -1, -2) / 4) @ v


def padded(q, k, v):
    scores = jnp.where(jnp.arange(k.shape[-2]) < 7, q @ jnp.swapaxes(k, -1, -2) / 4, -np.inf)
    return ft.nn.softmax(scores) @ v


def sunk(q, k, v):
    """Queries of the first rows see nothing, and are 0."""
    mask = jnp.tri(q.shape[-2], k=-3, dtype=bool)
    return ft.nn.softmax(q @ jnp.swapaxes(k, -1, -2), where=mask) @ v


WAYS = {"causal": causal, "plain": plain, "padded": padded, "sunk": sunk}


def gradient(fun):
    return lambda q, k, v, ct: ft.vjp(fun, q, k, v)[1](ct)


def checked_on(backend, fun, args):
    with ft.config.use_backend(backend):
        return ft.checked(fun)(*args)


def kernels(fun, count):
    args = [ft.ShapeDtypeStruct(SHAPE, "float32")] * count
    with config.scope(checks=frozenset(config.CHECKS)):
        compiled = ft.jit(fun).lower(*args, target="cuda:90").compile()
    return [k.name for k in compiled.kernels]


@pytest.mark.parametrize("name", WAYS)
def test_checked_attention_is_one_kernel(name):
    fun = WAYS[name]
    assert kernels(fun, 3).count("attention") == 1
    found = kernels(gradient(fun), 4)
    assert [n for n in found if n.startswith("attention")] == [
        "attention", "attention_gradient_q", "attention_gradient_kv"]
    assert "matmul" not in found


@pytest.mark.parametrize("name", WAYS)
def test_finite_numbers_pass(name):
    fun = WAYS[name]
    for f, args in ((fun, (Q, K, V)), (gradient(fun), (Q, K, V, CT))):
        expected = ft.tree.leaves(checked_on("c", f, args))
        for y, e in zip(ft.tree.leaves(checked_on("triton", f, args)), expected, strict=True):
            np.testing.assert_allclose(y, e, rtol=2e-4, atol=2e-5)


def at(x, value, *place):
    y = x.copy()
    y[place] = value
    return y


BAD = {  # numbers that a row sees
    "NaN in a query": (at(Q, np.nan, 1, 0, 12, 3), K, V, CT),
    "NaN in a key": (Q, at(K, np.nan, 0, 1, 5, 3), V, CT),
    "NaN in a value": (Q, K, at(V, np.nan, 0, 1, 5, 3), CT),
    "scores that overflow": (at(Q, 3e30, 1, 1, 20), at(K, 3e30, 1, 1, 4), V, CT),
    "NaN in a cotangent": (Q, K, V, at(CT, np.nan, 1, 1, 30, 2)),
    "cotangents that overflow": (Q, K, at(V, 2e30, 1, 1, 4), at(CT, 2e30, 1, 1, 30)),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", WAYS)
def test_errors_are_those_of_the_cpu(name, bad):
    fun = WAYS[name]
    ways = [(gradient(fun), BAD[bad])]
    if "cotangent" not in bad:
        ways.append((fun, BAD[bad][:3]))
    for f, args in ways:
        said = []
        for backend in ("c", "triton"):
            with pytest.raises(CheckError) as error:
                checked_on(backend, f, args)
            said.append(str(error.value))
        assert said[0] == said[1]
