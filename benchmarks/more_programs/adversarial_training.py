"""Adversarial training with distillation, by PGD, of depthwise convolutions (Madry et al. 2018)."""

import itertools

import numpy as np

FIELD = "robustness"
SIZES = {
    "tiny": dict(batch=4, side=8, widths=(4, 8), attacks=2, classes=5),
    "small": dict(batch=8, side=16, widths=(8, 16), attacks=2, classes=10),
    "large": dict(batch=128, side=32, widths=(32, 64, 128), attacks=3, classes=100),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 5e-2}  # the sign of a slope near zero is another


def make(lib, batch, side, widths, attacks, classes):
    jnp = lib.numpy
    layout = ("NHWC", "HWIO", "NHWC")

    def conv(x, w, stride=1, groups=1):
        return lib.lax.conv_general_dilated(x, w, (stride, stride), "SAME",
                                            dimension_numbers=layout,
                                            feature_group_count=groups)  # fmt: skip

    def batch_norm(norm, state, x, training):
        if training:
            mean, variance = jnp.mean(x, axis=(0, 1, 2)), jnp.var(x, axis=(0, 1, 2))
            state = {"mean": 0.9 * state["mean"] + 0.1 * mean,
                     "variance": 0.9 * state["variance"] + 0.1 * variance}  # fmt: skip
        else:
            mean, variance = state["mean"], state["variance"]
        return norm["gain"] * (x - mean) * lib.lax.rsqrt(variance + 1e-3) + norm["bias"], state

    def network(params, states, x, training):
        x = conv(x, params["stem"])
        new = []
        for layer, (first, second) in zip(params["layers"], states):
            x = conv(x, layer["depth"], 2, x.shape[-1])
            x, first = batch_norm(layer["norm1"], first, x, training)
            x = conv(lib.nn.silu(x), layer["point"])
            x, second = batch_norm(layer["norm2"], second, x, training)
            squeeze = lib.nn.sigmoid(jnp.mean(x, axis=(1, 2)) @ layer["gate"])
            x = lib.nn.silu(x) * squeeze[:, None, None]
            new.append((first, second))
        return jnp.mean(x, axis=(1, 2)) @ params["head"], new

    def divergence(logits, teacher):
        p = lib.nn.softmax(teacher)
        return jnp.mean(jnp.sum(p * (jnp.log(p + 1e-8) - lib.nn.log_softmax(logits)), axis=-1))

    def attack(params, states, x, labels):
        def loss(moved):
            logits, _ = network(params, states, moved, False)
            scores = lib.nn.log_softmax(logits)
            return -jnp.sum(jnp.take_along_axis(scores, labels[:, None], axis=1))

        def ascend(_, moved):
            slope = lib.grad(loss)(moved)
            moved = moved + 0.01 * slope / (jnp.abs(slope) + 1e-4)
            return jnp.clip(jnp.clip(moved, x - 0.03, x + 0.03), 0, 1)

        return lib.lax.fori_loop(0, attacks, ascend, x)

    def loss(params, states, x, moved, labels, teacher):
        logits, states = network(params, states, moved, True)
        smooth = 0.9 * lib.nn.one_hot(labels, classes) + 0.1 / classes
        hard = -jnp.mean(jnp.sum(smooth * lib.nn.log_softmax(logits), axis=-1))
        clean, states = network(params, states, x, True)
        return hard + 4 * divergence(clean / 4, teacher / 4), states

    def step(params, states, x, labels, teacher):
        moved = lib.lax.stop_gradient(attack(params, states, x, labels))
        (value, states), slope = lib.value_and_grad(loss, has_aux=True)(
            params, states, x, moved, labels, teacher
        )
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in lib.tree.leaves(slope)))
        slope = lib.tree.map(lambda g: g / jnp.maximum(1.0, norm), slope)
        return lib.tree.map(lambda p, g: p - 0.1 * g, params, slope), slope, states, value

    rng = np.random.default_rng(0)

    def draw(*shape):
        fan = np.prod(shape[:-1])
        return (rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float32)

    def norm(n):
        return {"gain": np.ones(n, np.float32), "bias": np.zeros(n, np.float32)}

    def state(n):
        return {"mean": np.zeros(n, np.float32), "variance": np.ones(n, np.float32)}

    sizes = (widths[0], *widths)
    params = {
        "stem": draw(3, 3, 3, widths[0]),
        "layers": [{"depth": draw(3, 3, 1, m), "norm1": norm(m), "point": draw(1, 1, m, n),
                    "norm2": norm(n), "gate": draw(n, n)}
                   for m, n in itertools.pairwise(sizes)],
        "head": draw(widths[-1], classes),
    }
    states = [(state(m), state(n)) for m, n in itertools.pairwise(sizes)]
    x = rng.random((batch, side, side, 3)).astype(np.float32)
    labels = rng.integers(0, classes, batch).astype(np.int32)
    teacher = rng.standard_normal((batch, classes)).astype(np.float32)
    return step, (params, states, x, labels, teacher)
