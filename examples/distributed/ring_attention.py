"""Sequence parallel: a sequence lies on the devices in parts, and keys and values go round a ring.

No device ever has all keys: each adds up the attention of its queries to the part that is there,
with the running maximum and sum of a softmax in parts, and passes the part on (Liu et al. 2023).
Gradients go round the ring in the other direction by themselves.
"""

import numpy as np
from mesh import everywhere, one_mesh

import functrans as ft
from functrans import lax
from functrans import numpy as jnp
from functrans.sharding import NamedSharding, P


def ring_attention(mesh, causal=True):
    """Attention of arrays [length, heads, d] that are divided along the length."""
    n = mesh.size
    onward = [(i, (i + 1) % n) for i in range(n)]

    def part(q, k, v):
        here, length = lax.axis_index("x"), q.shape[0]
        rows = here * length + jnp.arange(length)

        def visit(carry, step):
            k, v, top, total, out = carry
            source = (here - step) % n  # whose part has come round
            columns = source * length + jnp.arange(length)
            scores = jnp.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
            if causal:
                scores = jnp.where(rows[:, None] >= columns, scores, -1e30)
            new_top = jnp.maximum(top, scores.max(-1))
            weights = jnp.exp(scores - new_top[..., None])
            shrink = jnp.exp(top - new_top)
            total = total * shrink + weights.sum(-1)
            out = out * shrink[..., None] + jnp.einsum("hqk,khd->hqd", weights, v)
            return (lax.ppermute(k, "x", onward), lax.ppermute(v, "x", onward), new_top, total,
                    out), None

        heads, d = q.shape[1:]
        first = (k, v, jnp.full((heads, length), -1e30, q.dtype), jnp.zeros((heads, length),
                                                                            q.dtype),
                 jnp.zeros((heads, length, d), q.dtype))
        (_, _, _, total, out), _ = lax.scan(visit, first, jnp.arange(n))
        return (out / total[..., None]).swapaxes(0, 1)

    return ft.shard_map(part, mesh, (P("x"),) * 3, P("x"))


def train(mesh, steps=3):
    rng = np.random.default_rng(0)
    attention = ring_attention(mesh)
    w = ft.device_put(rng.normal(size=(3, 8, 2, 4)) / 3, NamedSharding(mesh, P()))

    @ft.jit
    def step(w, x, y):
        def loss(w):
            q, k, v = jnp.einsum("ld,sdhe->slhe", x, w)
            return ((attention(q, k, v) - y) ** 2).mean()

        value, grad = ft.value_and_grad(loss)(w)
        return value, w - 0.5 * grad

    losses = []
    for _ in range(steps):
        x, y = ft.device_put((rng.normal(size=(16, 8)), rng.normal(size=(16, 2, 4))),
                             NamedSharding(mesh, P("x")))
        value, w = step(w, x, y)
        losses.append(float(value))
    return losses, everywhere(w)


if __name__ == "__main__":
    print(train(one_mesh())[0])
