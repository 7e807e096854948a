"""Haiku modules by `hk.transform_with_state`: an MLP with batch norm, whose averages are state, and
dropout, a transformer by `hk.layer_stack` over rematerialised layers, and a GRU."""

import functools

import haiku as hk
import jax
import jax.numpy as jnp
import optax

LIBRARIES = ["dm-haiku"]
MISSING = """`jaxpr_info`, which asks equations for JAX's name stacks, generators of one's own, and
keys of `rbg`"""
KEYS = jax.random.split(jax.random.key(0), 4)
X = jax.random.normal(KEYS[0], (64, 16))
Y = jnp.argmax(X @ jax.random.normal(KEYS[1], (16, 4)), axis=1)
TOKENS = jax.random.randint(KEYS[2], (8, 24), 0, 32)
TX = optax.adamw(3e-3)


def dropout(x, train):
    return hk.dropout(hk.next_rng_key(), 0.1, x) if train else x


def mlp(x, train):
    for width in (32, 32):
        x = hk.Linear(width, with_bias=False)(x)
        x = dropout(jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, is_training=train)), train)
    return hk.Linear(4)(x)


class Block(hk.Module):
    def __call__(self, x, mask, train):
        norm = functools.partial(hk.LayerNorm, -1, True, True)
        attend = hk.MultiHeadAttention(4, 8, w_init=hk.initializers.VarianceScaling(1.0))
        h = norm(name="before_attention")(x)
        x = x + dropout(attend(h, h, h, mask), train)
        return x + dropout(hk.nets.MLP([128, 32], activation=jax.nn.gelu)(
            norm(name="before_mlp")(x)), train)


def transformer(tokens, train):
    embed = hk.Embed(32, 32)
    start = hk.initializers.RandomNormal(0.02)
    x = embed(tokens) + hk.get_parameter("positions", (24, 32), init=start)
    mask = jnp.tril(jnp.ones((1, 1, 24, 24), bool))
    layer = hk.remat(lambda x: Block()(x, mask, train))
    x = hk.layer_stack(3)(layer)(x)
    return hk.LayerNorm(-1, True, True)(x) @ embed.embeddings.T


MLP, TRANSFORMER = hk.transform_with_state(mlp), hk.transform_with_state(transformer)


def loss(params, state, key, x, y, model, train=True):
    logits, state = model.apply(params, state, key, x, train)
    logits = logits[:, :-1] if y.ndim > 1 else logits
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), state


@functools.partial(jax.jit, static_argnames="model")
def step(params, state, moments, key, x, y, model):
    (now, state), grads = jax.value_and_grad(loss, has_aux=True)(params, state, key, x, y, model)
    updates, moments = TX.update(grads, moments, params)
    return optax.apply_updates(params, updates), state, moments, now


def trained(model, x, y, steps):
    params, state = model.init(KEYS[3], x, True)
    moments = TX.init(params)
    keys = hk.PRNGSequence(1)
    for _ in range(steps):
        params, state, moments, now = step(params, state, moments, next(keys), x, y, model)
    return params, state, now


def recurrent(tokens):
    """A recurrent network over the tokens, by `hk.scan` inside of `hk.dynamic_unroll`."""
    core = hk.GRU(16)
    xs = jnp.moveaxis(hk.Embed(32, 8)(tokens), 1, 0)
    return hk.dynamic_unroll(core, xs, core.initial_state(len(tokens)))[0].mean((1, 2))


def program():
    params, state = TRANSFORMER.init(KEYS[3], TOKENS, True)
    return (functools.partial(step, model=TRANSFORMER),
            (params, state, TX.init(params), KEYS[3], TOKENS, TOKENS[:, 1:]))


def results():
    params, state, now = trained(MLP, X, Y, 30)
    gru = hk.transform(recurrent)
    weights, _, last = trained(TRANSFORMER, TOKENS, TOKENS[:, 1:], 10)
    return {"loss of the MLP": now,
            "with the averages": loss(params, state, None, X, Y, MLP, train=False)[0],
            "running mean": state["batch_norm/~/mean_ema"]["average"],
            "a GRU": gru.apply(gru.init(KEYS[3], TOKENS), None, TOKENS),
            "loss of the transformer": last,
            "norm of its parameters": optax.global_norm(weights),
            "number of its parameters": hk.data_structures.tree_size(weights),
            "modules in its summary": len(hk.experimental.tabulate(
                lambda tokens: transformer(tokens, True), columns=("module",))(
                    TOKENS).splitlines())}


if __name__ == "__main__":
    for name, value in results().items():
        print(f"{name}: {jnp.ravel(jnp.asarray(value))[0]:.4f}")
