"""Loss and gradient of a diagonal state space model, by associative scan (Gu et al. 2022: S4D)."""

import numpy as np

FIELD = "state space models"
SIZES = {
    "tiny": dict(batch=2, length=16, width=8, states=4, layers=1),
    "small": dict(batch=2, length=256, width=16, states=8, layers=2),
    "large": dict(batch=4, length=2048, width=64, states=16, layers=2),
}


def make(lib, batch, length, width, states, layers):
    jnp, nn = lib.numpy, lib.nn

    def combine(left, right):
        a1, b1 = left
        a2, b2 = right
        return a2 * a1, a2 * b1 + b2

    def ssm(p, u):  # length, width
        a = -jnp.exp(p["log_decay"]) + 1j * p["frequency"]  # width, states
        dt = jnp.exp(p["log_dt"])[:, None]
        a_bar = jnp.exp(a * dt)
        b_bar = (a_bar - 1.0) / a
        drive = b_bar * u[:, :, None]
        decay = jnp.broadcast_to(a_bar, drive.shape)
        _, x = lib.lax.associative_scan(combine, (decay, drive))
        c = p["c_real"] + 1j * p["c_imag"]
        return 2 * jnp.sum(c * x, axis=-1).real + p["skip"] * u

    def block(p, u):
        mean = jnp.mean(u, axis=-1, keepdims=True)
        var = jnp.var(u, axis=-1, keepdims=True)
        normed = (u - mean) / jnp.sqrt(var + 1e-5)
        y = nn.gelu(ssm(p, normed)) @ p["mix"]
        value, gate = jnp.split(y, 2, axis=-1)
        return u + value * nn.sigmoid(gate)

    def network(params, u):
        u = u @ params["encoder"]
        for p in params["layers"]:
            u = block(p, u)
        return jnp.mean(u, axis=0) @ params["decoder"]

    def loss(params, u, labels):
        logits = lib.vmap(network, in_axes=(None, 0))(params, u)
        picked = jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], axis=1)
        return -jnp.mean(picked)

    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    params = {
        "encoder": normal(3, width),
        "decoder": normal(width, 10),
        "layers": [
            {
                "log_decay": np.full((width, states), np.log(0.5), np.float32),
                "frequency": np.tile(np.pi * np.arange(states, dtype=np.float32), (width, 1)),
                "log_dt": rng.uniform(np.log(1e-3), np.log(1e-1), width).astype(np.float32),
                "c_real": normal(width, states),
                "c_imag": normal(width, states),
                "skip": np.ones(width, np.float32),
                "mix": normal(width, 2 * width),
            }
            for _ in range(layers)
        ],
    }
    u = rng.standard_normal((batch, length, 3)).astype(np.float32)
    labels = rng.integers(10, size=batch, dtype=np.int32)
    return lib.value_and_grad(loss), (params, u, labels)
