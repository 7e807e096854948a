"""Functions of a float64 vector of three elements, one for each thing a program may contain.

Their values are smooth near the points where the tests look, so that finite differences of the
function itself are a reference for every transform of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.transforms.tangents import SymbolicZero

WEIGHTS = np.array([[0.3, -0.5, 0.2], [0.7, 0.1, -0.4], [-0.2, 0.6, 0.5]])
POLICIES = {
    "none": None,
    "everything": ft.checkpoint_policies.everything_saveable,
    "nothing": ft.checkpoint_policies.nothing_saveable,
    "dots": ft.checkpoint_policies.dots_saveable,
    "dots_without_batch": ft.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "names": ft.checkpoint_policies.save_only_these_names("hidden"),
    "other_names": ft.checkpoint_policies.save_any_names_but_these("hidden"),
}

FUNCTIONS: dict[str, Callable[[Any], Any]] = {}
REVERSE_ONLY: set[str] = set()


def function(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    FUNCTIONS[fun.__name__] = fun
    return fun


def reverse_only(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function with a custom_vjp inside: forward mode needs a reverse pass first."""
    REVERSE_ONLY.add(fun.__name__)
    return function(fun)


@function
def elementwise(x):
    return jnp.sin(x) * jnp.exp(-x ** 2) + x ** 3 / (1.0 + x * x) - 2.0 * jnp.tanh(x[::-1])


@function
def reductions(x):
    return jnp.stack([x.mean() * x.prod(), jnp.var(x), ft.nn.logsumexp(x), x.max() * x.min(),
                      jnp.linalg.norm(x)])


@function
def products(x):
    hidden = jnp.tanh(WEIGHTS @ x)
    return jnp.outer(hidden, x) @ WEIGHTS + jnp.einsum("i,ij,j->", x, WEIGHTS, hidden)


@function
def convolution(x):
    image = jnp.outer(x, jnp.sin(x)).reshape(1, 1, 3, 3)
    kernel = (WEIGHTS[:2, :2] * x[0]).reshape(1, 1, 2, 2)
    out = lax.conv_general_dilated(image, kernel, (1, 2), [(1, 0), (0, 1)], rhs_dilation=(1, 1))
    return lax.reduce_window(out[0, 0], 0.0, lax.add, (2, 1), (1, 1), "VALID")


@function
def indexing(x):
    grid = jnp.outer(x, x)
    picked = grid[jnp.array([2, 0, 2]), ::-1] + grid[..., None, 1]
    changed = x.at[1:].multiply(x[:2]).at[jnp.array([0, 0])].add(x[2]).at[-1].set(x[0] ** 2)
    return picked.at[0, jnp.array([True, False, True])].add(changed[0]) * changed


@function
def dynamic_indexing(x):
    start = jnp.argmax(x)
    part = lax.dynamic_slice_in_dim(jnp.concatenate([x, x ** 2]), start, 3)
    return lax.dynamic_update_slice_in_dim(part, x[:1] * 2.0, start - 1, 0) * jnp.take(
        x, start + 1, mode="wrap") + x.at[start + 7].get(mode="fill", fill_value=0.5)


@function
def conditional(x):
    inner = lax.cond(x[0] > x[1], lambda a: jnp.sin(a), lambda a: a ** 2, x)
    return lax.cond(x.sum() > 0.0, lambda a, b: a * b, lambda a, b: jnp.exp(a) - b, inner, x)


@function
def switching(x):
    return lax.switch(jnp.argmax(x), [lambda a: a * a[0], lambda a: jnp.cos(a) * x,
                                      lambda a: a[::-1] ** 2], x)


@function
def while_loop(x):
    return lax.while_loop(lambda s: jnp.sum(s ** 2) < 30.0, lambda s: s * 1.3 + jnp.sin(s) * x, x)


@function
def dynamic_loop(x):
    return lax.fori_loop(0, 2 + jnp.argmax(x), lambda i, s: jnp.sin(s) * x + i * 0.1, x)


@function
def scanned(x):
    def body(carry, a):
        state, count = carry
        state = jnp.tanh(WEIGHTS @ state + a * x)
        return (state, count + 1), (state.sum() * count, None)

    (state, _), (ys, _) = lax.scan(body, (x, 0), jnp.array([0.5, -1.0, 0.3]), reverse=True)
    return state + ys


@function
def nested_loops(x):
    def body(carry, a):
        carry = lax.fori_loop(0, 2, lambda i, s: s * 0.5 + jnp.sin(s) * a, carry)
        return lax.cond(a > 0.5, lambda s: s * x, lambda s: s + x ** 2, carry), carry[0]

    last, firsts = lax.scan(body, x, x[::-1] + 1.0, unroll=2)
    return last * firsts


@function
def mapped_and_associative(x):
    rows = lax.map(lambda a: a * x + jnp.sin(a), x, batch_size=2)
    return lax.associative_scan(lambda a, b: a * b + 0.5, rows, axis=1)


@function
def with_custom_jvp(x):
    scale = x[0] * 2.0

    @functools.partial(ft.custom_jvp, nondiff_argnums=(0,))
    def power(n, a):
        return a ** n * scale

    @power.defjvp
    def rule(n, primals, tangents):
        (a,), (t,) = primals, tangents
        return power(n, a), n * a ** (n - 1) * scale * t

    return power(3, x) + lax.fori_loop(0, 2, lambda i, s: s * 0.5 + power(2, s), x)


@reverse_only
def with_custom_vjp(x):
    scale = x[0] * 2.0

    @functools.partial(ft.custom_vjp, nondiff_argnums=(1,))
    def power(a, n):
        return a ** n * scale

    def forward(a, n):
        return a ** n * scale, (a, scale)

    def backward(n, residuals, ct):
        a, s = residuals
        return (ct * n * a ** (n - 1) * s,)

    power.defvjp(forward, backward)
    return power(x, 3) + ft.jit(lambda a: power(a, 2))(jnp.sin(x))


@reverse_only
def symbolic_zeros(x):
    @ft.custom_vjp
    def product(a, b, c):
        return a * b, c + 1.0

    def forward(a, b, c):
        residuals = (a.value if b.perturbed else None, b.value if a.perturbed else None)
        return (a.value * b.value, c.value + 1.0), residuals

    def backward(residuals, cts):
        a, b = residuals
        ct, other = (None if isinstance(c, SymbolicZero) else c for c in cts)
        return (None if b is None or ct is None else ct * b,
                None if a is None or ct is None else ct * a, other)

    product.defvjp(forward, backward, symbolic_zeros=True)
    return product(x, jnp.cos(x), x)[0] + product(x, WEIGHTS[0], x * 2.0)[1]


@function
def checkpointed(x):
    def layer(h, key):
        hidden = ft.checkpoint_name(jnp.tanh(WEIGHTS @ h * x), "hidden")
        return jnp.sin(hidden @ WEIGHTS) + h * key

    for i, policy in enumerate(POLICIES.values()):
        x = ft.checkpoint(layer, policy=policy, prevent_cse=i % 2 == 0,
                          static_argnums=1)(x, 0.1 * i)
    return x


@function
def checkpointed_loop(x):
    def body(s, a):
        return ft.checkpoint(lambda s, a: jnp.sin(s * a) + x * s)(s, a), s.sum()

    last, sums = lax.scan(ft.checkpoint(body), x, x)
    return last * sums


@function
def stopped(x):
    return x ** 2 * (1.0 + lax.stop_gradient(jnp.floor(x))) + ft.stop_gradient(jnp.sign(x))


@function
def collectives(x):
    def each(a, b):
        total = lax.psum(a * b, "i")
        gathered = lax.all_gather(a, "i")
        shifted = lax.ppermute(b * a, "i", [(0, 1), (1, 2), (2, 0)])
        position = lax.axis_index("i")
        return total * a + gathered[::-1] @ x + shifted * position + lax.pmean(jnp.sin(a), "i") + \
            lax.pmax(a, "i") * lax.pmin(b, "i")

    return ft.vmap(each, axis_name="i")(x, jnp.cos(x))


def host(order: int, x: Any) -> Any:
    """The derivative of this order of sin, by NumPy outside of the program."""
    @ft.custom_jvp
    def sine(a):
        spec = ft.ShapeDtypeStruct(a.shape, a.dtype)
        return ft.pure_callback(lambda v: np.sin(v + order * np.pi / 2), spec, a,
                                vmap_method="broadcast_all")

    sine.defjvp(lambda primals, tangents: (
        sine(*primals), tangents[0] * host(order + 1, primals[0])))
    return sine(x)


@function
def called_back(x):
    return host(0, x) * x + host(1, x[0] * x)


@function
def sorting(x):
    values, where = lax.top_k(x * x[::-1] + x, 2)
    return jnp.sort(jnp.sin(2.0 * x)) * jnp.cumsum(x) + jnp.cumprod(x[jnp.argsort(-x)]) + \
        values.sum() * x[where[0]] + lax.cummax(x)


@function
def complex_numbers(x):
    z = lax.complex(x, jnp.cos(x)) * (0.5 + 1j)
    w = jnp.exp(1j * z) * jnp.conj(z) + jnp.fft.fft(z)
    return jnp.abs(w) + jnp.real(z * w) - jnp.angle(w + 5.0) + jnp.linalg.norm(w)


@ft.tree_util.register_dataclass
@dataclass
class Layer:
    weight: Any
    bias: Any


class Pair(NamedTuple):
    first: Any
    second: Any


@function
def trees(x):
    def apply(layer, pair, options):
        assert options["nothing"] is None
        return {"out": Layer(jnp.tanh(layer.weight @ pair.first + layer.bias), None),
                "rest": [pair.second * options["scale"], ()]}

    layer = Layer(WEIGHTS * x[0], x)
    pair = Pair(x, jnp.stack([x, x ** 2]))
    options = {"scale": x[1], "nothing": None}
    mapped = ft.jit(ft.vmap(apply, in_axes=(None, Pair(None, 0), None), out_axes={
        "out": None, "rest": 1}))(layer, pair, options)
    gradient = ft.grad(lambda l, p: apply(l, p, options)["out"].weight.sum())(layer, pair)
    return mapped["out"].weight + mapped["rest"][0].sum(1) + gradient.bias


@function
def linear_algebra(x):
    matrix = jnp.outer(x, x) + jnp.diag(2.0 + jnp.sin(x))
    return jnp.linalg.solve(matrix, x) + jnp.linalg.cholesky(matrix)[2] * jnp.linalg.det(matrix) + \
        jnp.linalg.eigh(matrix)[0][0]


@function
def jitted(x):
    @functools.partial(ft.jit, static_argnums=1, static_argnames="flag")
    def power(a, n, *, flag):
        return a ** n * scale if flag else a

    scale = x[1]
    inner = ft.jit(functools.partial(power, flag=True), static_argnums=1, inline=True)
    return ft.jit(lambda a: inner(a, 2) + power(a, 3, flag=True) * power(a, 0, flag=False))(x)


@function
def derivatives_inside(x):
    def energy(a):
        return jnp.sum(jnp.sin(a) * x * a)

    force = ft.grad(energy)(x)
    curvature = ft.hvp(energy, (x,), (force,))
    _, push = ft.linearize(lambda a: a * jnp.sin(x), x)
    (back,) = ft.linear_transpose(push, x)(force)
    per_sample = ft.vmap(ft.grad(lambda a: jnp.tanh(a * x).sum()))(x)
    converted, values = ft.closure_convert(energy, x)
    return force + curvature * back + per_sample + ft.grad(converted)(x * 0.5, *values)


@function
def attention(x):
    query = jnp.outer(x, jnp.array([1.0, 0.5])).reshape(1, 3, 1, 2)
    out = ft.nn.dot_product_attention(query, query * 0.5, jnp.sin(query), is_causal=True)
    return out.reshape(3, 2) * ft.nn.softmax(x)[:, None] + ft.nn.gelu(x)[:, None]


@function
def plain_numpy(x):
    rolled = np.concatenate([x[1:], x[:1]]) * np.float64(2.0)
    return np.sin(x) * np.sum(x ** 2, axis=0) + np.einsum("i,ij->j", x, WEIGHTS) / \
        np.linalg.norm(x) + rolled + np.where(x > 0, x, 1.0)


@function
def noise(x):
    key = ft.random.key(3)
    draws = ft.random.normal(key, (3,), dtype="float64")
    noise = ft.random.uniform(ft.random.fold_in(key, 1), (3,), dtype="float64")
    return x * draws + noise * x[0] ** 2
