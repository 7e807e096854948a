"""Chains of light operations that are longer than Python nests calls, compiled for both targets."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from tests.laws.network_checks import program_units, to_triton_ir

LINKS = 360
"""More than a third of the calls that Python nests."""
X = np.linspace(-1, 1, 48, dtype="f")


def light(x):
    for k in range(LINKS):
        x = x * 0.99 + 0.5 if k % 2 else jnp.maximum(x, -0.1 * k)
    return x


def choices(x):
    for k in range(LINKS):
        x = jnp.where(x > 0.1 * k, x * 0.99, x + 1)
    return x


def turned(x):
    for k in range(LINKS):
        x = x[::-1] * 0.99 + 0.1 * k
    return x


def transposed(x):
    x = x.reshape(6, 8)
    for _ in range(LINKS // 2):
        x = (x.T * 0.99).reshape(-1)[::-1].reshape(6, 8)
    return x


def rolled(x):
    for _ in range(LINKS // 4):
        x = jnp.concatenate([x[1:] * 0.5, x[:1]])
    return x


def integers(x):
    x = x.astype(jnp.int32)
    for k in range(LINKS):
        x = (x ^ k) + 1 if k % 2 else x >> 1 | 3
    return x


def between_rows(x):
    x = light(x.reshape(6, 8))
    return light(x / x.sum(1, keepdims=True))


def mapped_while(x):
    return ft.vmap(lambda v: lax.while_loop(
        lambda s: s[0] < v, lambda s: (s[0] + 1, light(s[1])), (0.0, v))[1])(x)


def gradient(f):
    return ft.grad(lambda x: f(x).sum())


PROGRAMS = {
    "light": light, "choices": choices, "turned": turned, "transposed": transposed,
    "rolled": rolled, "integers": integers, "between rows": between_rows,
    "scan of numbers": lambda x: lax.scan(lambda c, t: (light(c), light(t)), x[0], x),
    "scan of vectors": lambda x: lax.scan(lambda c, t: (light(c) + t, c), x, jnp.stack([x, x])),
    "mapped while": mapped_while,
    "branch": lambda x: lax.cond(x[0] < 0, light, lambda x: -light(x), x),
    "between products": lambda x: light(light(x[:36].reshape(6, 6)) @ x[:36].reshape(6, 6)),
    "gradient": gradient(light), "gradient of turned": gradient(turned),
    "gradient between rows": gradient(between_rows),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name):
    fun = PROGRAMS[name]
    with ft.config.use_backend("c"):
        found = ft.jit(fun)(X)
    with ft.config.use_backend("reference"):
        expected = ft.jit(fun)(X)
    for a, e in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=1e-5, atol=1e-5)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_gpus(name):
    lowered = ft.lower(PROGRAMS[name], ft.ShapeDtypeStruct(X.shape, X.dtype), target="cuda:90")
    units = program_units(lowered, "cuda:90")
    assert units
    for unit in units:
        to_triton_ir(unit)
