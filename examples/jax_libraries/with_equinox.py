"""Modules as trees: an MLP, a convolutional network and a transformer, trained by filter_jit,
filter_value_and_grad and filter_vmap; checkpointing, state of batch norm, and files."""

import io

import equinox as eqx
import jax
import jax.numpy as jnp

LIBRARIES = ["equinox"]
KEYS = jax.random.split(jax.random.key(2), 8)


class Network(eqx.Module):
    """Two convolutions, pooling and a linear layer, for images of 12 x 12."""

    layers: list

    def __init__(self, key):
        a, b, c = jax.random.split(key, 3)
        self.layers = [eqx.nn.Conv2d(1, 4, 3, key=a), jax.nn.relu, eqx.nn.MaxPool2d(2, 2),
                       eqx.nn.Conv2d(4, 8, 3, key=b), jax.nn.relu, jnp.ravel,
                       eqx.nn.Linear(72, 3, key=c)]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Block(eqx.Module):
    """A block of a transformer, for sequences of vectors of 16."""

    attention: eqx.nn.MultiheadAttention
    norms: list
    mlp: eqx.nn.MLP

    def __init__(self, key):
        a, b = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(4, 16, key=a)
        self.norms = [eqx.nn.LayerNorm(16), eqx.nn.LayerNorm(16)]
        self.mlp = eqx.nn.MLP(16, 16, 32, 1, key=b)

    def __call__(self, x):
        y = jax.vmap(self.norms[0])(x)
        x = x + self.attention(y, y, y, mask=jnp.tril(jnp.ones((len(x), len(x)), bool)))
        return x + eqx.filter_checkpoint(jax.vmap(self.mlp))(jax.vmap(self.norms[1])(x))


@eqx.filter_jit
def step(model, x, y):
    def loss(model):
        return jnp.mean((eqx.filter_vmap(model)(x) - y) ** 2)

    value, grads = eqx.filter_value_and_grad(loss)(model)
    return eqx.apply_updates(model, jax.tree.map(lambda g: -0.05 * g, grads)), value


def models():
    """Each with inputs and targets."""
    return {
        "MLP": (eqx.nn.MLP(8, 2, 32, 2, key=KEYS[0]), jax.random.normal(KEYS[1], (64, 8)),
                jax.random.normal(KEYS[2], (64, 2))),
        "CNN": (Network(KEYS[3]), jax.random.normal(KEYS[4], (8, 1, 12, 12)), jnp.ones((8, 3))),
        "transformer": (Block(KEYS[5]), jax.random.normal(KEYS[6], (4, 10, 16)),
                        jnp.zeros((4, 10, 16)))}


def read_again(model):
    """The model after it was written to a file and read."""
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, model)
    file.seek(0)
    return eqx.tree_deserialise_leaves(file, model)


def program():
    return step, models()["transformer"]


def results():
    found = {}
    for name, (model, x, y) in models().items():
        for _ in range(20):
            model, value = step(model, x, y)
        found[f"{name}: loss"] = value
        found[f"{name}: read again"] = step(read_again(model), x, y)[1]
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, "batch", mode="batch")
    out, state = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(
        jax.random.normal(KEYS[7], (16, 3)), state)
    found["variance after batch norm"] = out.var()
    return found


if __name__ == "__main__":
    for name, value in results().items():
        print(f"{name}: {float(value):.4f}")
