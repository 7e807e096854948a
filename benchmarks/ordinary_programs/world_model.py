"""Gradient of a recurrent model of what a robot will see and earn (Hafner et al. 2020: Dreamer)."""

import numpy as np

FIELD = "reinforcement learning"
SIZES = {
    "tiny": dict(batch=2, length=4, side=8, width=4, state=8, chance=4, actions=2),
    "small": dict(batch=4, length=8, side=16, width=8, state=32, chance=8, actions=4),
    "large": dict(batch=32, length=32, side=64, width=32, state=256, chance=32, actions=6),
}
TOLERANCE = {"cpu": 5e-3, "gpu": 3e-2}


def make(lib, batch, length, side, width, state, chance, actions):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    names = ("NHWC", "HWIO", "NHWC")

    def encode(layers, x):
        for p in layers:
            x = nn.silu(lax.conv_general_dilated(x, p["w"], (2, 2), "SAME",
                                                 dimension_numbers=names) + p["b"])
        return x.reshape(x.shape[0], -1)

    def decode(p, x):
        n = side // 2 ** len(p["layers"])
        x = (x @ p["first"]).reshape(x.shape[0], n, n, -1)
        for q in p["layers"]:
            x = lax.conv_transpose(nn.silu(x), q["w"], (2, 2), "SAME",
                                   dimension_numbers=names) + q["b"]
        return x

    def normal(x, p):
        mean, spread = jnp.split(x @ p["w"] + p["b"], 2, axis=-1)
        return mean, nn.softplus(spread) + 0.1

    def loss(params, seen, action, reward, noise):
        code = encode(params["encoder"], seen.reshape(-1, side, side, 3))
        code = code.reshape(length, batch, -1)

        def advance(carry, at):
            h, z = carry
            code, action, noise = at
            x = nn.silu(jnp.concatenate([z, action], axis=-1) @ params["in"])
            r, u, n = jnp.split(x @ params["x"] + params["gates"], 3, axis=-1)
            hr, hu, hn = jnp.split(h @ params["h"], 3, axis=-1)
            u = nn.sigmoid(u + hu - 1)
            h = u * jnp.tanh(n + nn.sigmoid(r + hr) * hn) + (1 - u) * h
            prior = normal(h, params["prior"])
            mean, spread = normal(jnp.concatenate([h, code], axis=-1), params["posterior"])
            z = mean + spread * noise
            return (h, z), (h, z, prior, (mean, spread))

        start = jnp.zeros((batch, state)), jnp.zeros((batch, chance))
        _, (h, z, prior, posterior) = lax.scan(advance, start, (code, action, noise))
        both = jnp.concatenate([h, z], axis=-1).reshape(length * batch, -1)
        picture = decode(params["decoder"], both).reshape(seen.shape)
        earned = (nn.silu(both @ params["reward1"]) @ params["reward2"]).reshape(reward.shape)
        (a, s), (b, t) = posterior, prior
        apart = jnp.log(t / s) + (s**2 + (a - b) ** 2) / (2 * t**2) - 0.5
        return (jnp.mean((picture - seen) ** 2) + jnp.mean((earned - reward) ** 2)
                + 0.1 * jnp.mean(jnp.sum(apart, axis=-1)))

    def step(params, *batch):
        return lib.value_and_grad(loss)(params, *batch)

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    def draw_layer(*shape):
        return {"w": draw(*shape), "b": np.zeros(shape[-1], np.float32)}

    widths = [width * 2**k for k in range(3)]
    flat = (side // 8) ** 2 * widths[-1]
    params = {"encoder": [draw_layer(4, 4, a, b) for a, b in zip((3, *widths), widths)],
              "in": draw(chance + actions, state), "x": draw(state, 3 * state),
              "gates": np.zeros(3 * state, np.float32), "h": draw(state, 3 * state),
              "prior": draw_layer(state, 2 * chance),
              "posterior": draw_layer(state + flat, 2 * chance),
              "decoder": {"first": draw(state + chance, flat), "layers": [
                  draw_layer(4, 4, a, b) for a, b in zip(widths[::-1], (*widths[-2::-1], 3))]},
              "reward1": draw(state + chance, state), "reward2": draw(state, 1)}
    seen = rng.random((length, batch, side, side, 3)).astype(np.float32)
    return step, (params, seen, rng.standard_normal((length, batch, actions)).astype(np.float32),
                  rng.standard_normal((length, batch)).astype(np.float32),
                  rng.standard_normal((length, batch, chance)).astype(np.float32))
