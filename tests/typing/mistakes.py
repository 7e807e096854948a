# ruff: noqa: B018
"""A user's mistakes, and what mypy and pyright say of them: a code and a rule, one line each."""

from __future__ import annotations

import functrans as ft
import functrans.numpy as jnp
from functrans import lax, nn, optim, random
from functrans.typing import Array


def energy(x: Array, scale: float = 1.0) -> Array:
    return scale * jnp.sum(x ** 2)


@ft.jit
def scaled(x: Array, *, by: Array) -> Array:
    return x * by


@ft.jit(static_argnames="rounds")
def power(x: Array, rounds: int) -> Array:
    return x ** rounds


@ft.custom_jvp
def clipped(x: Array, low: float) -> Array:
    return jnp.maximum(x, low)


@ft.custom_vjp
def kept(x: Array, scale: Array) -> Array:
    return x * scale


class Model:
    @ft.jit
    def predict(self, x: Array) -> Array:
        return x


x = jnp.ones(3)
params = {"w": x}
# what an array is
x[0] = 1.0  # error: index, reportIndexIssue
del x[0]  # error: attr-defined, reportIndexIssue
x.sun()  # error: attr-defined, reportAttributeAccessIssue
x.shap  # error: attr-defined, reportAttributeAccessIssue
x.at[0].added(1.0)  # error: attr-defined, reportAttributeAccessIssue
x.at.set(1.0)  # error: attr-defined, reportAttributeAccessIssue
x.reshape("3")  # error: arg-type, reportArgumentType
x.sum(axis="rows")  # error: arg-type, reportArgumentType
x.astype()  # error: call-arg, reportCallIssue
x + "1"  # error: operator, reportOperatorIssue
x @ None  # error: operator, reportOperatorIssue
x.shape + 1  # error: operator, reportOperatorIssue
name: str = jnp.mean(x)  # error: assignment, reportAssignmentType
# functions of arrays
jnp.sin("x")  # error: arg-type, reportArgumentType
jnp.sin([1.0, 2.0])  # error: arg-type, reportArgumentType
jnp.sin(x, x)  # error: arg-type, call-arg, reportCallIssue
jnp.sinus(x)  # error: attr-defined, reportAttributeAccessIssue
jnp.sum(x, axis="rows")  # error: arg-type, reportArgumentType
jnp.sum(x, axes=0)  # error: call-arg, reportCallIssue
jnp.zeros((2, "3"))  # error: arg-type, reportArgumentType
jnp.where(x > 0, x)  # error: call-overload, reportArgumentType
jnp.dot(x)  # error: call-arg, reportCallIssue
jnp.searchsorted(x, 1.0, side="middle")  # error: arg-type, reportArgumentType
jnp.linalg.norm(x, order=2)  # error: call-arg, reportCallIssue
jnp.linalg.svd(x).V  # error: attr-defined, reportAttributeAccessIssue
jnp.fft.fft(x, n="8")  # error: arg-type, reportArgumentType
lax.add(x)  # error: call-arg, reportCallIssue
lax.sin("x")  # error: arg-type, reportArgumentType
lax.scan(energy, x, x)  # error: arg-type, reportArgumentType
nn.softmax(x, axes=0)  # error: call-arg, reportCallIssue
nn.one_hot(x)  # error: call-arg, reportCallIssue
random.normal(random.key(0), dtype=3.0)  # error: arg-type, reportArgumentType
random.key("seed")  # error: arg-type, reportArgumentType
ft.scipy.special.erf("x")  # error: arg-type, reportArgumentType
ft.scipy.linalg.cholesky(x, upper=True)  # error: call-arg, reportCallIssue
ft.scipy.stats.norm.pdf(x, mean=0.0)  # error: call-arg, reportCallIssue
ft.scipy.stats.norm.logpdf("x")  # error: arg-type, reportArgumentType
ft.scipy.stats.gamma.cdf(x)  # error: call-arg, reportCallIssue
ft.scipy.stats.poisson.pdf(x, 2.0)  # error: attr-defined, reportAttributeAccessIssue
ft.scipy.stats.normal.pdf(x)  # error: attr-defined, reportAttributeAccessIssue
optim.adam("fast")  # error: arg-type, reportArgumentType
optim.adam(1e-3).updates(params)  # error: attr-defined, reportAttributeAccessIssue
optim.apply_updates(params)  # error: call-arg, reportCallIssue
# transforms
ft.gard(energy)  # error: attr-defined, reportAttributeAccessIssue
ft.scipy.specials.erf(x)  # error: attr-defined, reportAttributeAccessIssue
ft.jit(energy)(x, scale="2")  # error: arg-type, reportArgumentType
ft.jit(energy)()  # error: call-arg, reportCallIssue
ft.jit(energy).lowered(x)  # error: attr-defined, reportAttributeAccessIssue
ft.jit(energy, static_argnames=1)  # error: call-overload, reportArgumentType, reportCallIssue
ft.jit(energy, static_argnum=1)  # error: call-overload, reportCallIssue
scaled(x, x)  # error: call-arg, reportCallIssue
scaled(x, by="2")  # error: arg-type, reportArgumentType
power(x)  # error: call-arg, reportCallIssue
power(x, round=2)  # error: call-arg, reportCallIssue
clipped(x, "0")  # error: arg-type, reportArgumentType
kept(x)  # error: call-arg, reportCallIssue
Model().predict(x, x)  # error: call-arg, reportCallIssue
ft.grad(energy)(x, 1.0, 2.0)  # error: call-arg, reportCallIssue
ft.grad(energy)(params)  # error: arg-type, reportArgumentType
ft.grad(energy)(x=x)  # error: call-arg, reportCallIssue
ft.grad(energy)(x).append(x)  # error: attr-defined, reportAttributeAccessIssue
ft.value_and_grad(energy)(x, scale=None)  # error: arg-type, reportArgumentType
ft.vmap(3)  # error: call-overload, reportArgumentType, reportCallIssue
ft.vmap(energy, in_axis=0)  # error: call-overload, reportCallIssue
ft.vmap(energy)("x")  # error: arg-type, reportArgumentType
ft.checkpoint(energy)(x, scale=None)  # error: arg-type, reportArgumentType
ft.jacfwd(energy)(x, scale="2")  # error: arg-type, reportArgumentType
ft.hessian(energy)(x, scales=2.0)  # error: call-arg, reportCallIssue
ft.jvp(energy, (x,))  # error: call-overload, reportCallIssue
ft.tree.map(jnp.zeros_like)  # error: call-overload, reportCallIssue
ft.tree.leaves()  # error: call-arg, reportCallIssue
