"""A user's mistakes, and the errors of mypy for them: one a line, by its code."""

from __future__ import annotations

import functrans as ft
import functrans.numpy as jnp
from functrans import lax, random
from functrans.typing import Array


def energy(x: Array, scale: float = 1.0) -> Array:
    return scale * jnp.sum(x ** 2)


x = jnp.ones(3)
x[0] = 1.0  # error: index
x.sun()  # error: attr-defined
jnp.sin("x")  # error: arg-type
jnp.sin([1.0, 2.0])  # error: arg-type
jnp.sum(x, axis="rows")  # error: arg-type
jnp.sum(x, axes=0)  # error: call-arg
jnp.zeros((2, "3"))  # error: arg-type
jnp.where(x > 0, x)  # error: call-overload
jnp.searchsorted(x, 1.0, side="middle")  # error: arg-type
lax.add(x)  # error: call-arg
random.normal(random.key(0), dtype=3.0)  # error: arg-type
name: str = jnp.mean(x)  # error: assignment
ft.jit(energy)(x, scale="2")  # error: arg-type
ft.jit(energy, static_argnames=1)  # error: call-overload
ft.grad(energy)(x, 1.0, 2.0)  # error: call-arg
ft.vmap(3)  # error: arg-type
ft.lax.scan(energy, x, x)  # error: arg-type
ft.checkpoint(energy)(x, scale=None)  # error: arg-type
