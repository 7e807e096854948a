"""Training by gradient transformations: AdamW with a warm-up and a cosine, clipping by the global
norm, accumulation of gradients, masks, L-BFGS with a line search, and losses."""

import functools

import jax
import jax.numpy as jnp
import optax

LIBRARIES = ["optax"]
KEYS = jax.random.split(jax.random.key(0), 4)
X = jax.random.normal(KEYS[0], (256, 16))
Y = jnp.argmax(X @ jax.random.normal(KEYS[1], (16, 4)), axis=1)


def parameters():
    return {"hidden": jax.random.normal(KEYS[2], (16, 32)) * 0.3, "bias": jnp.zeros(32),
            "out": jax.random.normal(KEYS[3], (32, 4)) * 0.3}


def loss(params, x, y):
    logits = jnp.tanh(x @ params["hidden"] + params["bias"]) @ params["out"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def optimizer():
    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.05, 10, 100)
    decayed = lambda params: jax.tree.map(lambda p: p.ndim > 1, params)
    return optax.chain(optax.clip_by_global_norm(1.0),
                       optax.adamw(schedule, weight_decay=1e-3, mask=decayed))


@functools.partial(jax.jit, static_argnums=0)
def step(tx, params, state):
    value, grads = jax.value_and_grad(loss)(params, X, Y)
    updates, state = tx.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


def trained(tx, steps):
    params = parameters()
    state = tx.init(params)
    for _ in range(steps):
        params, state, _ = step(tx, params, state)
    return params


def by_lbfgs(steps):
    tx = optax.lbfgs()
    value = functools.partial(loss, x=X, y=Y)
    value_and_grad = optax.value_and_grad_from_state(value)

    @jax.jit
    def descend(params, state):
        now, grad = value_and_grad(params, state=state)
        updates, state = tx.update(grad, state, params, value=now, grad=grad, value_fn=value)
        return optax.apply_updates(params, updates), state

    params = parameters()
    state = tx.init(params)
    for _ in range(steps):
        params, state = descend(params, state)
    return params


def program():
    tx, params = optimizer(), parameters()
    return step, (tx, params, tx.init(params))


def results():
    accumulated = optax.MultiSteps(optax.sgd(0.5), 4).gradient_transformation()
    return {"loss before": loss(parameters(), X, Y),
            "after AdamW": loss(trained(optimizer(), 60), X, Y),
            "after accumulated steps": loss(trained(accumulated, 40), X, Y),
            "after L-BFGS": loss(by_lbfgs(5), X, Y),
            "norm of the parameters": optax.global_norm(parameters())}


if __name__ == "__main__":
    for name, value in results().items():
        print(f"{name}: {float(value):.4f}")
