"""An RMSProp step on replayed frames of games, with a target network (Mnih et al. 2015: DQN)."""

import numpy as np

FIELD = "reinforcement learning"
SIZES = {
    "tiny": dict(batch=3, side=36, actions=4, widths=(4, 8, 8), hidden=16),
    "small": dict(batch=16, side=44, actions=6, widths=(8, 16, 16), hidden=64),
    "large": dict(batch=512, side=84, actions=18, widths=(32, 64, 64), hidden=512),
}


def make(lib, batch, side, actions, widths, hidden):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    kernels, strides = (8, 4, 3), (4, 2, 1)

    def network(params, frames):
        x = frames.astype(jnp.float32) / 255
        for p, stride in zip(params["convolutions"], strides):
            x = lax.conv_general_dilated(x, p["w"], (stride, stride), "VALID",
                                         dimension_numbers=("NCHW", "OIHW", "NCHW"))
            x = nn.relu(x + p["b"][:, None, None])
        x = x.reshape(batch, -1)
        value, advantage = (nn.relu(x @ p["w1"] + p["b1"]) @ p["w2"] for p in params["heads"])
        return value + advantage - jnp.mean(advantage, axis=1, keepdims=True)

    def loss(params, frozen, frames, action, reward, after, ended):
        q = jnp.take_along_axis(network(params, frames), action[:, None], axis=1)[:, 0]
        best = jnp.max(network(frozen, after), axis=1)
        error = q - lax.stop_gradient(reward + 0.99 * (1 - ended) * best)
        return jnp.mean(jnp.where(jnp.abs(error) < 1, 0.5 * error**2, jnp.abs(error) - 0.5))

    def step(params, squares, frozen, *batch):
        value, slope = lib.value_and_grad(loss)(params, frozen, *batch)
        squares = lib.tree.map(lambda s, g: 0.95 * s + 0.05 * g * g, squares, slope)
        params = lib.tree.map(lambda p, s, g: p - 1e-3 * g / jnp.sqrt(s + 1e-3), params, squares,
                              slope)
        frozen = lib.tree.map(lambda old, new: 0.995 * old + 0.005 * new, frozen, params)
        return params, squares, frozen, value

    rng = np.random.default_rng(0)

    def draw(*shape, fan):
        return (rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float32)

    def draw_params():
        convolutions, before, n = [], 4, side
        for kernel, stride, width in zip(kernels, strides, widths):
            convolutions.append({"w": draw(width, before, kernel, kernel, fan=before * kernel**2),
                                 "b": np.zeros(width, np.float32)})
            before, n = width, (n - kernel) // stride + 1
        flat = n * n * before
        heads = [{"w1": draw(flat, hidden, fan=flat), "b1": np.zeros(hidden, np.float32),
                  "w2": draw(hidden, outs, fan=hidden)} for outs in (1, actions)]
        return {"convolutions": convolutions, "heads": heads}

    params, frozen = draw_params(), draw_params()
    frames, after = rng.integers(0, 256, (2, batch, 4, side, side)).astype(np.uint8)
    return step, (params, lib.tree.map(np.zeros_like, params), frozen, frames,
                  rng.integers(0, actions, batch).astype(np.int32),
                  rng.standard_normal(batch).astype(np.float32), after,
                  (rng.random(batch) < 0.1).astype(np.float32))
