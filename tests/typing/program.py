"""A user's program in which mypy --strict and pyright find no error, and whose types they know.

`assert_type` says what `reveal_type`, or an editor, would show.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, assert_type

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans import lax, nn, optim, random
from functrans.transforms.jit.retrace import Retraces
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
    assert_type(gradients, Params)
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


@ft.tree_util.register_static
class Model:
    @ft.jit
    def predict(self, x: Array) -> Array:
        return x * 2

    @ft.checkpoint
    def rectified(self, x: Array) -> Array:
        return relu(x)


@ft.jit(inline=True)
def doubled(x: Array) -> Array:
    return x * 2


@partial(ft.custom_vjp, nondiff_argnums=(1,))
def kept(x: Array, times: int) -> Array:
    return x * times


kept.defvjp(lambda x, times: (x * times, None), lambda times, _, ct: (ct * times,))


@ft.checkpoint(prevent_cse=False)
def cheap(x: Array) -> Array:
    return jnp.sin(x)


@ft.vmap(in_axes=(0, None))
def each(x: Array, y: Array) -> Array:
    return x * y


def lorenz(state: Array, _: None) -> tuple[Array, Array]:
    x, y, z = state
    slope = jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])
    return state + 0.01 * slope, state


def energy(x: Array) -> Array:
    return jnp.sum(x ** 2)


def measured(x: Array) -> tuple[Array, str]:
    return energy(x), "energy"


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
    assert_type(jnp.finfo(x.dtype), np.finfo[Any])
    assert_type(jnp.iinfo("int32").max, int)
    assert_type(ft.scipy.special.erf(x), Array)
    assert_type(ft.scipy.stats.norm.logpdf(x, loc=1.0), Array)
    assert_type(lax.sort((x, x), num_keys=1), tuple[Array, ...])
    assert_type(float(x.max()), float)
    for row in x:
        assert_type(row, Array)


def operators() -> None:
    x, n = jnp.ones(3), np.ones(3)
    assert_type(x @ x, Array)
    assert_type(x + 1, Array)
    assert_type(1 - x, Array)
    assert_type(x * n, Array)
    assert_type(x / 2.0, Array)
    assert_type(x // x, Array)
    assert_type(x % 2, Array)
    assert_type(divmod(x, x), tuple[Array, Array])
    assert_type(-x, Array)
    assert_type(abs(x), Array)
    assert_type(~(x > 0), Array)
    assert_type((x > 0) & (x < 2), Array)
    assert_type(x == x, Array)
    assert_type(x != 1, Array)
    assert_type(round(x), Array)
    assert_type(len(x), int)
    assert_type(int(x[0]), int)
    assert_type(bool(x[0] > 0), bool)
    assert_type(complex(x[0]), complex)
    assert_type(1.0 in x, bool)
    assert_type(np.asarray(x).shape, tuple[Any, ...])


def attributes() -> None:
    x = jnp.ones((2, 2))
    assert_type(x.dtype, np.dtype[Any])
    assert_type(x.ndim, int)
    assert_type(x.size, int)
    assert_type(x.nbytes, int)
    assert_type(x.weak_type, bool)
    assert_type(x.mT, Array)
    assert_type(x.real, Array)
    assert_type(x.device, ft.Device)
    assert_type(x.devices(), set[ft.Device])
    assert_type(x.block_until_ready(), Array)
    assert_type(x.at[0].add(1.0), Array)
    assert_type(x.at[0, 1].get(), Array)
    assert_type(x.at[:].max(x), Array)
    assert_type(x.mean(), Array)
    assert_type(x.std(axis=0, ddof=1), Array)
    assert_type(x.argmax(axis=1), Array)
    assert_type(x.reshape(4), Array)
    assert_type(x.reshape((2, -1)), Array)
    assert_type(x.transpose(1, 0), Array)
    assert_type(x.nonzero(size=4), tuple[Array, ...])
    assert_type(x.tobytes(), bytes)
    assert_type(x.view("int32"), Array)


def functions() -> None:
    x, key = jnp.ones((3, 3)), random.key(0)
    assert_type(jnp.sin(1.0), Array)
    assert_type(jnp.add(x, 1), Array)
    assert_type(jnp.einsum("ij,jk", x, x), Array)
    assert_type(jnp.meshgrid(x[0], x[1]), list[Array])
    assert_type(jnp.histogram(x), tuple[Array, Array])
    assert_type(jnp.shape(x), tuple[int, ...])
    assert_type(jnp.linalg.solve(x, x), Array)
    assert_type(jnp.linalg.eigh(x).eigenvalues, Array)
    assert_type(jnp.linalg.qr(x).Q, Array)
    assert_type(jnp.linalg.slogdet(x).logabsdet, Array)
    assert_type(jnp.fft.rfft(x), Array)
    assert_type(lax.sin(x), Array)
    assert_type(lax.dot_general(x, x, (((1,), (0,)), ((), ()))), Array)
    assert_type(lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), Array)
    assert_type(lax.switch(1, [jnp.sin, jnp.cos], x), Array)
    assert_type(lax.map(jnp.sin, x), Array)
    assert_type(lax.stop_gradient(x), Array)
    assert_type(nn.softmax(x, axis=0), Array)
    assert_type(nn.one_hot(jnp.arange(3), 3), Array)
    assert_type(nn.initializers.glorot_normal()(key, (2, 2), "float32"), Array)
    assert_type(random.split(key), Array)
    assert_type(random.bernoulli(key, 0.5, (3,)), Array)
    assert_type(ft.scipy.linalg.cholesky(x), Array)
    assert_type(ft.scipy.special.logsumexp(x, axis=0), Array)
    assert_type(ft.scipy.signal.convolve(x[0], x[1]), Array)
    assert_type(ft.scipy.stats.gamma.rvs(key, 2.0, scale=3.0, shape=(2,)), Array)
    assert_type(ft.scipy.stats.norm.std(scale=2.0), Array)
    assert_type(ft.device_put(np.ones(2)), Array)
    assert_type(ft.device_get(x), np.ndarray)


def derivatives(params: Params) -> None:
    x = jnp.ones(3)
    assert_type(ft.hessian(energy)(x), Array)
    assert_type(ft.grad(loss, argnums=1)(params, x, x), Array)
    assert_type(ft.value_and_grad(loss, 1)(params, x, x), tuple[Array, Array])
    assert_type(ft.eval_shape(energy, x), ft.ShapeDtypeStruct)
    assert_type(ft.eval_shape(energy, x).shape, tuple[ft.Dim | int, ...])


def trees(params: Params) -> None:
    optimizer = optim.adam(1e-3)
    assert_type(optimizer, optim.GradientTransformation)
    updates, _ = optimizer.update(params, optimizer.init(params), params)
    assert_type(updates, Params)
    assert_type(optim.apply_updates(params, updates), Params)
    assert_type(optim.global_norm(params), Array)
    assert_type(ft.tree.map(jnp.zeros_like, params), Params)
    assert_type(ft.tree.map(jnp.shape, params), Any)
    assert_type(ft.device_put(params), Params)
    assert_type(ft.block_until_ready(params), Params)
    assert_type(ft.flatten_util.ravel_pytree(params)[0], Array)
    assert_type(lax.fori_loop(0, 3, lambda i, p: p, params), Params)


def decorated() -> None:
    x = jnp.ones(3)
    assert_type(power(x, rounds=2), Array)
    assert_type(relu(x), Array)
    assert_type(Model().predict(x), Array)
    assert_type(Model().rectified(x), Array)
    assert_type(doubled(x), Array)
    assert kept(x, 2).shape == (3,)  # pyright knows nothing of a partial class
    assert_type(cheap(x), Array)
    assert_type(each(x, x), Array)
    assert_type(ft.jit(ft.vmap(jnp.sin))(x), Array)


def transforms() -> None:
    key, other = random.split(random.key(0))
    x = random.uniform(key, (4, 3))
    params = [layer(k, s) for k, s in zip(random.split(other), [(3, 8), (8, 2)], strict=True)]
    y = jnp.zeros(4, int)
    params, value = step(params, x, y)
    assert_type(value, Array)
    assert step.lower(params, x, y).compile().memory_analysis()["outputs"]
    losses = ft.vmap(loss, in_axes=(None, 0, 0))(params, x[:, None], y[:, None])
    assert_type(losses, Array)
    per_sample = ft.vmap(ft.grad(loss), in_axes=(None, 0, 0))(params, x[:, None], y[:, None])
    assert_type(per_sample, Params)
    assert ft.tree.leaves(per_sample)[0].shape[0] == 4
    out, tangent = ft.jvp(power, (x,), (jnp.ones_like(x),))
    assert_type(out + tangent, Array)
    out, pull = ft.vjp(relu, x)
    assert_type(out, Array)
    (ct,) = pull(out)
    assert_type(ct, Array)
    assert ct.shape == x.shape
    last, path = lax.scan(lorenz, jnp.ones(3), None, length=5)
    assert_type(last, Array)
    assert_type(path, Array)
    rounds = lax.while_loop(lambda n: n < 9, lambda n: n * 2, jnp.ones(()))
    assert_type(rounds, Array)
    assert_type(ft.checkpoint(predict)(params, np.ones((1, 3))), Array)
    assert_type(ft.grad(loss)(params, x, y), Params)
    assert_type(ft.grad(jnp.sin)(1.0), Array)
    assert_type(ft.grad(measured, has_aux=True)(x[0]), tuple[Array, str])
    assert_type(ft.value_and_grad(measured, has_aux=True)(x[0]), tuple[tuple[Array, str], Array])
    assert_type(ft.jacfwd(relu)(x[0]), Array)
    assert_type(ft.jacrev(cheap)(x[0]), Array)
    assert_type(ft.hvp(energy, (x[0],), (x[0],)), Array)
    assert_type(ft.linearize(energy, x[0])[0], Array)
    assert_type(ft.vjp(energy, x[0], has_aux=False)[1](1.0), tuple[Array])
    assert_type(ft.pure_callback(np.sin, ft.ShapeDtypeStruct((), "float32"), 1.0), Array)
    assert_type(ft.explain_retrace(step), Retraces)
    assert ft.make_jaxpr(power)(x).jaxpr.eqns


def main() -> None:
    arrays()
    operators()
    attributes()
    functions()
    trees([layer(random.key(1), (2, 3))])
    decorated()
    transforms()
