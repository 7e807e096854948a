"""Gradients of a generator and a critic of transposed convolutions (Radford et al. 2016: DCGAN)."""

import itertools

import numpy as np

FIELD = "generative models"
SIZES = {
    "tiny": dict(batch=3, latent=6, base=8, levels=2),
    "small": dict(batch=8, latent=16, base=16, levels=2),
    "large": dict(batch=128, latent=128, base=64, levels=4),
}
TOLERANCE = {"cpu": 5e-3, "gpu": 5e-2}  # batch norms


def make(lib, batch, latent, base, levels):
    jnp, nn, lax = lib.numpy, lib.nn, lib.lax
    names = ("NHWC", "HWIO", "NHWC")
    widths = [base * 2**k for k in reversed(range(levels))]

    def norm(x):
        mean = jnp.mean(x, axis=(0, 1, 2))
        return (x - mean) * lax.rsqrt(jnp.var(x, axis=(0, 1, 2)) + 1e-5)

    def generate(params, z):
        x = nn.relu(norm((z @ params["project"]).reshape(batch, 4, 4, widths[0])))
        for k, w in enumerate(params["up"]):
            x = lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=names)
            x = nn.relu(norm(x)) if k < levels - 1 else jnp.tanh(x)
        return x

    def judge(params, x):
        for k, w in enumerate(params["down"]):
            x = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=names)
            x = nn.leaky_relu(norm(x) if k else x, 0.2)
        return (x.reshape(batch, -1) @ params["judge"])[:, 0]

    def critic_loss(critic, generator, z, real):
        fake = lax.stop_gradient(generate(generator, z))
        return jnp.mean(nn.softplus(-judge(critic, real)) + nn.softplus(judge(critic, fake)))

    def generator_loss(generator, critic, z):
        return jnp.mean(nn.softplus(-judge(critic, generate(generator, z))))

    def step(generator, critic, z, real):
        a = lib.value_and_grad(critic_loss)(critic, generator, z, real)
        b = lib.value_and_grad(generator_loss)(generator, critic, z)
        return a, b

    rng = np.random.default_rng(0)

    def draw(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    outs = [*widths[1:], 3]
    generator = {"project": draw(latent, 16 * widths[0]),
                 "up": [2 * draw(4, 4, a, b) for a, b in zip(widths, outs)]}
    ins = [3, *reversed(widths)]
    critic = {"down": [draw(4, 4, a, b) for a, b in itertools.pairwise(ins)],
              "judge": draw(16 * widths[0], 1)}
    side = 4 * 2**levels
    return step, (generator, critic, draw(batch, latent) * np.float32(np.sqrt(batch)),
                  np.tanh(rng.standard_normal((batch, side, side, 3))).astype(np.float32))
