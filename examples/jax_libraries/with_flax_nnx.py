"""NNX modules: an MLP with batch norm, dropout and streams of random numbers, a transformer by
`nnx.scan` over layers that `nnx.vmap` makes, and an ensemble, by `nnx.split` and `nnx.merge`."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

LIBRARIES = ["flax"]
MISSING = "variables that are references or types of hijax, which are options of NNX"
KEYS = jax.random.split(jax.random.key(0), 4)
X = jax.random.normal(KEYS[0], (64, 16))
Y = jnp.argmax(X @ jax.random.normal(KEYS[1], (16, 4)), axis=1)
TOKENS = jax.random.randint(KEYS[2], (8, 24), 0, 32)


class MLP(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(16, 32, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(32, momentum=0.9, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.last = nnx.Linear(32, 4, rngs=rngs)

    def __call__(self, x):
        return self.last(self.dropout(nnx.relu(self.norm(self.first(x)))))


class Block(nnx.Module):
    def __init__(self, rngs):
        self.attend = nnx.MultiHeadAttention(4, 32, dropout_rate=0.1, decode=False, rngs=rngs)
        self.norms = nnx.List([nnx.LayerNorm(32, rngs=rngs) for _ in range(2)])
        self.up = nnx.Linear(32, 128, rngs=rngs)
        self.down = nnx.Linear(128, 32, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.attend(self.norms[0](x), mask=mask)
        return x + self.dropout(self.down(nnx.gelu(self.up(self.norms[1](x)))))


class Transformer(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(32, 32, rngs=rngs)
        self.positions = nnx.Param(0.02 * jax.random.normal(rngs.params(), (24, 32)))
        self.layers = nnx.vmap(lambda rngs: Block(rngs))(rngs.split(3))
        self.norm = nnx.LayerNorm(32, rngs=rngs)

    def __call__(self, tokens):
        mask = nnx.make_causal_mask(tokens)
        layer = nnx.scan(lambda x, block: block(x, mask), in_axes=(nnx.Carry, 0),
                         out_axes=nnx.Carry)
        x = layer(self.embed(tokens) + self.positions, self.layers)
        return self.embed.attend(self.norm(x))


def loss(model, x, y):
    logits = model(x)[:, :-1] if y.ndim > 1 else model(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@nnx.jit
def step(model, optimizer, x, y):
    value, grads = nnx.value_and_grad(loss)(model, x, y)
    optimizer.update(model, grads)
    return value


def trained(model, x, y, steps):
    model.train()
    optimizer = nnx.Optimizer(model, optax.adamw(3e-3), wrt=nnx.Param)
    for _ in range(steps):
        now = step(model, optimizer, x, y)
    model.eval()
    return now


def ensemble():
    make = nnx.vmap(lambda rngs: MLP(rngs))
    each = nnx.vmap(lambda model, x: model(x), in_axes=(0, None))
    return each(make(nnx.Rngs(params=3, dropout=4).split(5)), X).mean((1, 2))


def program():
    model = Transformer(nnx.Rngs(params=0, dropout=1))
    model.train()
    optimizer = nnx.Optimizer(model, optax.adamw(3e-3), wrt=nnx.Param)
    return step, (model, optimizer, TOKENS, TOKENS[:, 1:])


def results():
    mlp = MLP(nnx.Rngs(params=0, dropout=1))
    now = trained(mlp, X, Y, 30)
    graph, params, rest = nnx.split(mlp, nnx.Param, ...)
    halved = nnx.merge(graph, jax.tree.map(lambda p: p / 2, params), rest)
    transformer = Transformer(nnx.Rngs(params=0, dropout=1))
    last = trained(transformer, TOKENS, TOKENS[:, 1:], 10)
    shapes = nnx.eval_shape(lambda: Transformer(nnx.Rngs(0)))
    return {"loss of the MLP": now, "with the running averages": loss(mlp, X, Y),
            "with halved parameters": loss(halved, X, Y), "running mean": mlp.norm.mean[...],
            "numbers drawn for dropout": mlp.dropout.rngs.count[...],
            "loss of the transformer": last, "an ensemble": ensemble(),
            "norm of its parameters": optax.global_norm(nnx.state(transformer, nnx.Param)),
            "number of its parameters": sum(s.size for s in jax.tree.leaves(
                nnx.state(shapes, nnx.Param)))}


if __name__ == "__main__":
    for name, value in results().items():
        print(f"{name}: {jnp.ravel(jnp.asarray(value))[0]:.4f}")
