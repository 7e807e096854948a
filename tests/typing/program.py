"""A user's program in which mypy --strict finds no error, and whose types it knows.

`assert_type` says what an editor would show.
"""

from __future__ import annotations

from typing import Any, NamedTuple, assert_type

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans import lax, nn, random
from functrans.typing import Array, ArrayLike, DTypeLike, Shape


class Layer(NamedTuple):
    weights: Array
    bias: Array


Params = list[Layer]


def layer(key: Array, shape: Shape, dtype: DTypeLike = "float32") -> Layer:
    weights = random.normal(key, shape, dtype) / jnp.sqrt(float(shape[0]))
    assert_type(weights, Array)
    return Layer(weights, jnp.zeros(shape[1:], dtype))


def predict(params: Params, x: ArrayLike) -> Array:
    hidden = jnp.asarray(x)
    for one in params[:-1]:
        hidden = nn.gelu(hidden @ one.weights + one.bias)
    return jnp.dot(hidden, params[-1].weights) + params[-1].bias


def loss(params: Params, x: Array, y: Array) -> Array:
    scores = nn.log_softmax(predict(params, x))
    assert_type(scores, Array)
    return -jnp.mean(jnp.take_along_axis(scores, y[:, None], axis=-1))


@ft.jit
def step(params: Params, x: Array, y: Array) -> tuple[Params, Array]:
    value, gradients = ft.value_and_grad(loss)(params, x, y)
    assert_type(value, Array)
    updated: Params = ft.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
    return updated, value


@ft.jit(static_argnames="rounds")
def power(x: Array, rounds: int = 3) -> Array:
    return lax.fori_loop(0, rounds, lambda i, y: y * x, jnp.ones_like(x))


@ft.custom_jvp
def relu(x: Array) -> Array:
    return jnp.maximum(x, 0.0)


@relu.defjvp
def relu_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    return relu(x), jnp.where(x > 0, t, 0.0)


def lorenz(state: Array, _: None) -> tuple[Array, Array]:
    x, y, z = state
    slope = jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])
    return state + 0.01 * slope, state


def arrays() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    assert_type(x, Array)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.T + 1, Array)
    assert_type(2.0 ** -x, Array)
    assert_type(x > np.ones(3), Array)
    assert_type(x[0, None, ::2].sum(axis=0, keepdims=True), Array)
    assert_type(x.at[0].set(1.0).astype(jnp.float16), Array)
    assert_type(jnp.add.reduce(x, axis=0), Array)
    assert_type(jnp.where(x > 2, x, 0), Array)
    assert_type(jnp.where(x > 2), tuple[Array, ...])
    assert_type(jnp.unique(x), Array)
    assert_type(jnp.split(x, 2), list[Array])
    assert_type(jnp.linspace(0, 1, 3, retstep=True), tuple[Array, Array])
    assert_type(jnp.linalg.svd(x).S, Array)
    assert_type(jnp.linalg.svd(x, compute_uv=False), Array)
    assert_type(jnp.concatenate([x, np.ones((1, 3)), [[1, 2, 3]]]), Array)
    assert_type(jnp.array([[1, 2], [3, 4]], dtype=np.float32), Array)
    assert_type(jnp.finfo(x.dtype).eps, Any)
    assert_type(ft.scipy.special.erf(x), Array)
    assert_type(ft.scipy.stats.norm.logpdf(x, loc=1.0), Array)
    assert_type(lax.sort((x, x), num_keys=1), tuple[Array, ...])
    assert_type(float(x.max()), float)
    for row in x:
        assert_type(row, Array)


def transforms() -> None:
    key, other = random.split(random.key(0))
    x = random.uniform(key, (4, 3))
    params = [layer(k, s) for k, s in zip(random.split(other), [(3, 8), (8, 2)], strict=True)]
    y = jnp.zeros(4, int)
    params, value = step(params, x, y)
    assert_type(value, Array)
    assert step.lower(params, x, y).compile().memory_analysis()["outputs"]
    each = ft.vmap(loss, in_axes=(None, 0, 0))(params, x[:, None], y[:, None])
    assert_type(each, Array)
    per_sample = ft.vmap(ft.grad(loss), in_axes=(None, 0, 0))(params, x[:, None], y[:, None])
    assert ft.tree.leaves(per_sample)[0].shape[0] == 4
    out, tangent = ft.jvp(power, (x,), (jnp.ones_like(x),))
    assert_type(out + tangent, Array)
    out, pull = ft.vjp(relu, x)
    (ct,) = pull(out)
    assert ct.shape == x.shape
    last, path = lax.scan(lorenz, jnp.ones(3), None, length=5)
    assert_type(last, Array)
    assert_type(path, Array)
    rounds = lax.while_loop(lambda n: n < 9, lambda n: n * 2, jnp.ones(()))
    assert_type(rounds, Array)
    assert_type(ft.checkpoint(predict)(params, np.ones((1, 3))), Array)
    assert ft.make_jaxpr(power)(x).jaxpr.eqns


def main() -> None:
    arrays()
    transforms()
