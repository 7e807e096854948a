"""TransE with negative sampling and sparse Adagrad updates of rows (Bordes et al. 2013)."""

import numpy as np

FIELD = "knowledge graphs"
SIZES = {
    "tiny": dict(entities=20, relations=3, width=6, batch=8, negatives=3, steps=2),
    "small": dict(entities=500, relations=20, width=32, batch=64, negatives=8, steps=4),
    "large": dict(entities=200000, relations=1000, width=128, batch=2048, negatives=16, steps=8),
}


def make(lib, entities, relations, width, batch, negatives, steps):
    jnp = lib.numpy

    def score(head, relation, tail):
        return jnp.sum(jnp.sqrt((head + relation - tail) ** 2 + 1e-4), axis=-1)

    def loss(rows, head_side):
        head, relation, tail, other = rows
        good = score(head, relation, tail)[:, None]
        bad_head = score(other, relation[:, None], tail[:, None])
        bad_tail = score(head[:, None], relation[:, None], other)
        bad = jnp.where(head_side, bad_head, bad_tail)
        weights = lib.lax.stop_gradient(lib.nn.softmax(-0.1 * bad, axis=1))
        margin = lib.nn.softplus(good - width) + jnp.sum(
            weights * lib.nn.softplus(width - bad), axis=1, keepdims=True)  # fmt: skip
        return jnp.mean(margin)

    def adagrad(table, memory, index, slope):
        """Only the rows that were seen are changed; a row seen twice gets both."""
        memory = memory.at[index].add(jnp.mean(slope**2, axis=-1))
        scaled = slope / jnp.sqrt(memory[index] + 1e-8)[..., None]
        return table.at[index].add(-0.05 * scaled), memory

    def step(state, given):
        things, thing_memory, kinds, kind_memory = state
        key, triples = given
        which, side = lib.random.split(key)
        other = lib.random.randint(which, (batch, negatives), 0, entities)
        head_side = lib.random.bernoulli(side, 0.5, (batch, negatives))
        h, r, t = triples[:, 0], triples[:, 1], triples[:, 2]
        rows = (things[h], kinds[r], things[t], things[other])
        value, slopes = lib.value_and_grad(loss)(rows, head_side)
        index = jnp.concatenate([h, t, other.ravel()])
        slope = jnp.concatenate([slopes[0], slopes[2], slopes[3].reshape(-1, width)])
        things, thing_memory = adagrad(things, thing_memory, index, slope)
        kinds, kind_memory = adagrad(kinds, kind_memory, r, slopes[1])
        norms = jnp.linalg.norm(things[h], axis=-1)
        things = things.at[h].multiply((1 / jnp.maximum(norms, 1.0))[:, None] ** 0)
        return (things, thing_memory, kinds, kind_memory), (value, jnp.mean(norms))

    def epoch(seed, things, kinds, triples):
        keys = lib.random.split(lib.random.key(seed), steps)
        state = (things, jnp.zeros(entities), kinds, jnp.zeros(relations))
        (_, thing_memory, kinds, _), trace = lib.lax.scan(step, state, (keys, triples))
        return thing_memory, kinds, trace

    rng = np.random.default_rng(0)
    things = (0.3 * rng.standard_normal((entities, width))).astype(np.float32)
    kinds = (0.3 * rng.standard_normal((relations, width))).astype(np.float32)
    popular = (entities * rng.random((steps, batch, 2)) ** 2).astype(np.int32)
    kind = rng.integers(0, relations, (steps, batch, 1)).astype(np.int32)
    triples = np.concatenate([popular[..., :1], kind, popular[..., 1:]], axis=-1)
    return epoch, (np.uint32(0), things, kinds, triples)
