"""Personalised page ranks by power iteration over the links of a graph (Page and others 1999)."""

import numpy as np

FIELD = "graphs"
SIZES = {
    "tiny": dict(pages=50, links=4, seeds=2, rounds=3),
    "small": dict(pages=4_000, links=8, seeds=4, rounds=15),
    "server": dict(pages=40_000, links=12, seeds=8, rounds=20),
    "large": dict(pages=1_000_000, links=16, seeds=8, rounds=30),
}


def make(lib, pages, links, seeds, rounds):
    jnp = lib.numpy

    def ranks(start, source, target, share):
        def one(rank, _):
            sent = rank[source] * share[source][:, None]
            arrived = lib.ops.segment_sum(sent, target, num_segments=pages)
            new = 0.15 * start + 0.85 * arrived
            new = new / jnp.sum(new, axis=0)
            return new, jnp.max(jnp.abs(new - rank), axis=0)

        return lib.lax.scan(one, start, None, length=rounds)

    rng = np.random.default_rng(0)
    source = np.repeat(np.arange(pages), links)
    target = (rng.random(pages * links) ** 2 * pages).astype(np.int32)
    start = rng.random((pages, seeds)).astype(np.float32)
    start /= start.sum(0)
    share = np.full(pages, 1 / links, np.float32)
    return ranks, (start, source.astype(np.int32), target, share)
