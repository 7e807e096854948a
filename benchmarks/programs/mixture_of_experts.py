"""Loss and gradient of a layer of experts with top-2 routing by one-hot dispatch (GShard 2021)."""

import numpy as np

FIELD = "language"
SIZES = {
    "tiny": dict(tokens=32, experts=4, width=16, hidden=32),
    "small": dict(tokens=256, experts=4, width=64, hidden=128),
    "large": dict(tokens=4096, experts=8, width=512, hidden=1024),
}


def make(lib, tokens, experts, width, hidden):
    jnp, nn = lib.numpy, lib.nn
    chosen = 2
    capacity = 5 * chosen * tokens // (4 * experts)

    def route(logits):
        probs = nn.softmax(logits)
        gates, index = lib.lax.top_k(probs, chosen)
        gates = gates / jnp.sum(gates, axis=-1, keepdims=True)
        masks = nn.one_hot(index, experts)  # tokens, chosen, experts
        # the place of a token in the buffer of its expert: first choices come first
        flat = masks.transpose(1, 0, 2).reshape(chosen * tokens, experts)
        place = (jnp.cumsum(flat, axis=0) - flat).reshape(chosen, tokens, experts)
        place = jnp.sum(place.transpose(1, 0, 2) * masks, axis=-1).astype(jnp.int32)
        slots = nn.one_hot(place, capacity)  # zero where the buffer is full
        dispatch = jnp.einsum("tke,tkc->tec", masks, slots)
        combine = jnp.einsum("tk,tke,tkc->tec", gates, masks, slots)
        # the balance of the load, as Switch Transformers have it
        balance = experts * jnp.sum(jnp.mean(masks[:, 0], axis=0) * jnp.mean(probs, axis=0))
        return dispatch, combine, balance

    def layer(params, x):
        # routers stay in full precision, so that rounding moves no token
        logits = jnp.matmul(x, params["router"], precision="highest")
        dispatch, combine, balance = route(logits)
        inputs = jnp.einsum("tec,td->ecd", dispatch, x)
        hiddens = nn.gelu(jnp.einsum("ecd,edh->ech", inputs, params["widen"]))
        outputs = jnp.einsum("ech,ehd->ecd", hiddens, params["narrow"])
        return jnp.einsum("tec,ecd->td", combine, outputs), balance

    def loss(params, x, target):
        y, balance = layer(params, x)
        return jnp.mean((x + y - target) ** 2) + 0.01 * balance

    rng = np.random.default_rng(0)

    def normal(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)

    params = {
        "router": normal(width, experts),
        "widen": normal(experts, width, hidden),
        "narrow": normal(experts, hidden, width),
    }
    x = rng.standard_normal((tokens, width)).astype(np.float32)
    target = rng.standard_normal((tokens, width)).astype(np.float32)
    return lib.value_and_grad(loss, argnums=(0, 1)), (params, x, target)
