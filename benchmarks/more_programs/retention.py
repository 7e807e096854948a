"""An SGD step of a retentive network in chunks, with decaying states (Sun et al. 2023)."""

import numpy as np

FIELD = "language models"
SIZES = {
    "tiny": dict(batch=2, length=16, chunk=4, width=16, heads=2, layers=1, words=20),
    "small": dict(batch=2, length=64, chunk=16, width=48, heads=4, layers=2, words=100),
    "large": dict(batch=4, length=2048, chunk=128, width=512, heads=8, layers=2, words=8192),
}


def make(lib, batch, length, chunk, width, heads, layers, words):
    jnp = lib.numpy
    depth, chunks = width // heads, length // chunk
    decay = (1 - 2.0 ** (-5 - np.arange(heads))).astype(np.float32)
    i = np.arange(chunk)
    powers = decay[:, None, None] ** np.maximum(i[:, None] - i[None, :], 0)
    mask = np.where(i[:, None] >= i[None, :], powers, 0).astype(np.float32)
    inward = (decay[:, None] ** (chunk - i - 1)).astype(np.float32)
    outward = (decay[:, None] ** (i + 1)).astype(np.float32)
    across = (decay**chunk).astype(np.float32)

    def rotate(x, angles):
        """Pairs of channels turned by an angle that grows with the position."""
        even, odd = x[..., ::2], x[..., 1::2]
        cos, sin = jnp.cos(angles), jnp.sin(angles)
        turned = jnp.stack([even * cos - odd * sin, odd * cos + even * sin], axis=-1)
        return turned.reshape(x.shape)

    def retain(q, k, v):
        """The parallel form within a chunk, a recurrent state from chunk to chunk."""
        def step(state, qkv):
            q, k, v = qkv
            scores = jnp.einsum("bhid,bhjd->bhij", q, k) * mask
            inner = jnp.einsum("bhij,bhjd->bhid", scores, v)
            outer = jnp.einsum("bhid,bhde->bhie", q * outward[..., None], state)
            new = jnp.einsum("bhjd,bhje->bhde", k * inward[..., None], v)
            return across[:, None, None] * state + new, inner + outer

        state = jnp.zeros((batch, heads, depth, depth))
        parts = [jnp.moveaxis(x.reshape(batch, heads, chunks, chunk, depth), 2, 0)
                 for x in (q, k, v)]  # fmt: skip
        _, out = lib.lax.scan(step, state, tuple(parts))
        return jnp.moveaxis(out, 0, 2).reshape(batch, heads, length, depth)

    def normalise(x):
        return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)

    def block(params, x):
        h = normalise(x)
        q, k, v, gate = (h @ params[name] for name in ("q", "k", "v", "gate"))
        q, k, v = (y.reshape(batch, length, heads, depth).swapaxes(1, 2) for y in (q, k, v))
        rates = 10000.0 ** -jnp.linspace(0, 1, depth // 2)
        angles = jnp.arange(length)[:, None] * rates
        y = retain(rotate(q, angles), rotate(k, angles) / float(np.sqrt(depth)), v)
        y = normalise(y).swapaxes(1, 2).reshape(batch, length, width)
        x = x + (lib.nn.silu(gate) * y) @ params["out"]
        h = normalise(x)
        return x + (lib.nn.gelu(h @ params["up"])) @ params["down"]

    def loss(params, text):
        x = params["embedding"][text[:, :-1]]
        for each in params["blocks"]:
            x = block(each, x)
        logits = normalise(x) @ params["embedding"].T
        of_next = jnp.take_along_axis(logits, text[:, 1:, None], axis=-1)[..., 0]
        return jnp.mean(lib.nn.logsumexp(logits, axis=-1) - of_next)

    def step(params, momentum, text):
        value, slope = lib.value_and_grad(loss)(params, text)
        momentum = lib.tree.map(lambda m, g: 0.9 * m + g, momentum, slope)
        return lib.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum, value

    rng = np.random.default_rng(0)

    def draw(rows, columns):
        return (rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)

    def draw_block():
        square = {name: draw(width, width) for name in ("q", "k", "v", "gate", "out")}
        return square | {"up": draw(width, 2 * width), "down": draw(2 * width, width)}

    params = {
        "embedding": (draw(words, width) * np.sqrt(words / width)).astype(np.float32),
        "blocks": [draw_block() for _ in range(layers)],
    }
    momentum = lib.tree.map(np.zeros_like, params)
    text = rng.integers(0, words, (batch, length + 1)).astype(np.int32)
    return step, (params, momentum, text)
