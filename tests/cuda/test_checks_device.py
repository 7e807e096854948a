"""Checked programs on a GPU find what the CPU finds, and have the results of unchecked ones."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import CheckError

pytestmark = pytest.mark.gpu
RNG = np.random.default_rng(9)


def normal(*shape):
    return RNG.standard_normal(shape, np.float32)


def root(x):
    ft.check(x.sum() < 1e9, "large", x=x)
    return jnp.where(x > 0, jnp.sqrt(x), 0.0).sum()


def attend(q, k, v):
    scores = q @ jnp.swapaxes(k, -1, -2) / 8
    return ft.nn.softmax(jnp.where(jnp.tri(q.shape[-2], dtype=bool), scores, -np.inf)) @ v


def attention(q, k, v):
    return ft.value_and_grad(lambda *qkv: (attend(*qkv) ** 2).sum(), (0, 1, 2))(q, k, v)


def layers(x, w):
    return jnp.log(jnp.tanh(x @ w) @ w.T + 30).sum(0)


def scanned(x):
    return ft.lax.scan(lambda c, row: (c + jnp.log(row), (c * row).sum()), jnp.zeros(x.shape[1]), x)


X = abs(normal(3000))
ROWS = abs(normal(20, 3000)) + 1
A, W = normal(500, 60), normal(60, 130) / 8
Q, K, V = (normal(2, 3, 128, 64) for _ in range(3))


def at(x, value, *place):
    y = x.copy()
    y[place] = value
    return y


PROGRAMS = {  # a function, arguments that pass, and such as do not
    "elements": (root, [X], [at(X, -1, 17)]),
    "a condition": (root, [X], [X * 1e9]),
    "rows": (lambda x: ft.nn.softmax(x).max(1), [ROWS], [at(ROWS, np.nan, 3, 4)]),
    "a backward pass": (ft.grad(lambda x: jnp.sqrt(x).sum()), [X + 1], [at(X, 0, 5)]),
    "products": (layers, [A, W], [at(A, np.nan, 499, 59), W]),
    "products in a backward pass": (ft.grad(lambda x, w: layers(x, w).sum(), 1), [A, W],
                                    [at(A, np.nan, 499, 59), W]),
    "attention": (attention, [Q, K, V], [at(Q, np.nan, 1, 2, 100, 3), K, V]),
    "scores that overflow": (attend, [Q, K, V], [at(Q, 3e30, 1, 2, 100), at(K, 3e30, 1, 2, 4), V]),
    "a loop": (scanned, [ROWS], [at(ROWS, -1, 13, 2999)]),
    "an index": (lambda x, i: x[i] * 2, [X, np.array([1, 2])], [X, np.array([1, 3000])]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_found_on_a_gpu_is_what_is_found_on_the_cpu(name):
    fun, passes, fails = PROGRAMS[name]
    there = [ft.device_put(x, "gpu") for x in passes]
    found = ft.tree.leaves(ft.checked(fun)(*there))
    for y, e in zip(found, ft.tree.leaves(ft.jit(fun)(*there)), strict=True):
        np.testing.assert_allclose(y, e, rtol=1e-5, atol=1e-5)
    run = ft.checked(fun)
    said = []
    for device in ("cpu", "gpu"):
        for _ in range(2):  # the second call is the runtime's
            with pytest.raises(CheckError) as error:
                run(*[ft.device_put(x, device) for x in fails])
            said.append(str(error.value))
    assert len(set(said)) == 1
    run(*there)


def test_marks_of_many_elements():
    x = ft.device_put(np.zeros((5000, 4100), np.float32), "gpu")
    run = ft.jit(lambda x, limit: ((x > limit).any(), (x.sum(1) > limit).any(), x + 1))
    for limit, expected in ((-1.0, True), (0.0, False), (-1.0, True)):
        found = run(x, limit)
        assert [bool(f) for f in found[:2]] == [expected] * 2
