"""Linen modules: an MLP with batch norm and dropout, whose statistics are a mutable collection, and
a transformer by `nn.scan` over rematerialised layers, trained by a TrainState."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import serialization
from flax.training.train_state import TrainState

LIBRARIES = ["flax"]
MISSING = "checkpoints by orbax, which is for JAX alone"
KEYS = jax.random.split(jax.random.key(0), 4)
X = jax.random.normal(KEYS[0], (64, 16))
Y = jnp.argmax(X @ jax.random.normal(KEYS[1], (16, 4)), axis=1)
TOKENS = jax.random.randint(KEYS[2], (8, 24), 0, 32)


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        for width in (32, 32):
            x = nn.Dense(width, use_bias=False)(x)
            x = nn.relu(nn.BatchNorm(use_running_average=not train, momentum=0.9)(x))
            x = nn.Dropout(0.1, deterministic=not train)(x)
        return nn.Dense(4)(x)


class Block(nn.Module):
    train: bool

    @nn.compact
    def __call__(self, x, mask):
        attend = nn.MultiHeadDotProductAttention(4, dropout_rate=0.1, deterministic=not self.train)
        x = x + attend(nn.LayerNorm()(x), mask=mask)
        h = nn.Dense(128)(nn.LayerNorm()(x))
        return x + nn.Dropout(0.1, deterministic=not self.train)(nn.Dense(32)(nn.gelu(h))), None


class Transformer(nn.Module):
    @nn.compact
    def __call__(self, tokens, train):
        embed = nn.Embed(32, 32)
        x = embed(tokens) + self.param("positions", nn.initializers.normal(0.02), (24, 32))
        layers = nn.scan(nn.remat(Block), variable_axes={"params": 0}, in_axes=nn.broadcast,
                         split_rngs={"params": True, "dropout": True}, length=3)
        x, _ = layers(train)(x, nn.make_causal_mask(tokens))
        return embed.attend(nn.LayerNorm()(x))


class State(TrainState):
    batch_stats: dict


def loss(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@functools.partial(jax.jit, static_argnames="sequence")
def step(state, x, y, key, sequence):
    def value(params):
        variables = {"params": params, "batch_stats": state.batch_stats}
        logits, new = state.apply_fn(variables, x, train=True, rngs={"dropout": key},
                                     mutable=["batch_stats"])
        return loss(logits[:, :-1] if sequence else logits, y), new

    (now, new), grads = jax.value_and_grad(value, has_aux=True)(state.params)
    stats = new.get("batch_stats", {})
    return state.apply_gradients(grads=grads, batch_stats=stats), now


def start(model, x):
    variables = model.init(KEYS[3], x, train=False)
    return State.create(apply_fn=model.apply, params=variables["params"], tx=optax.adamw(3e-3),
                        batch_stats=variables.get("batch_stats", {}))


def trained(model, x, y, steps):
    state = start(model, x)
    for key in jax.random.split(jax.random.key(1), steps):
        state, now = step(state, x, y, key, y.ndim > 1)
    return state, now


def program():
    return (functools.partial(step, sequence=True),
            (start(Transformer(), TOKENS), TOKENS, TOKENS[:, 1:], KEYS[3]))


def results():
    mlp, now = trained(MLP(), X, Y, 30)
    variables = {"params": mlp.params, "batch_stats": mlp.batch_stats}
    fixed = MLP().bind(variables)
    stored = serialization.from_bytes(variables, serialization.to_bytes(variables))
    transformer, last = trained(Transformer(), TOKENS, TOKENS[:, 1:], 10)
    shapes = jax.eval_shape(functools.partial(Transformer().init, train=False), KEYS[3], TOKENS)
    return {"loss of the MLP": now, "with the running averages": loss(fixed(X, train=False), Y),
            "after msgpack": loss(MLP().apply(stored, X, train=False), Y),
            "running mean": mlp.batch_stats["BatchNorm_0"]["mean"],
            "loss of the transformer": last,
            "norm of its parameters": optax.global_norm(transformer.params),
            "number of its parameters": sum(s.size for s in jax.tree.leaves(shapes)),
            "lines of its summary": len(Transformer().tabulate(
                KEYS[3], TOKENS, train=False, console_kwargs={"width": 120}).splitlines())}


if __name__ == "__main__":
    for name, value in results().items():
        print(f"{name}: {jnp.ravel(jnp.asarray(value))[0]:.4f}")
