"""Random walks on a graph whose edges stand in a table, collecting what stands at its nodes."""

import numpy as np

FIELD = "networks"
SIZES = {
    "tiny": dict(lanes=64, nodes=32, rounds=2),
    "small": dict(lanes=2**14, nodes=2**12, rounds=16),
    "large": dict(lanes=2**20, nodes=2**14, rounds=16),
}
UNROLL = 2


def make(lib, lanes, nodes, rounds):
    jnp = lib.numpy

    def walk(key, edges, prizes, start):
        def walk_on(count, state):
            def step(_, state):
                node, total, bits = state
                node = edges[node, bits & 3]
                return node, total + prizes[node], bits >> 2

            bits = lib.random.bits(lib.random.fold_in(key, count))
            return lib.lax.fori_loop(0, 16, step, (*state, bits))[:2]

        return lib.lax.fori_loop(0, rounds, walk_on, (start, 0.0))

    def simulate(seed, edges, prizes):
        key = lib.random.key(seed)
        start = jnp.arange(lanes, dtype=jnp.int32)
        return lib.vmap(lambda lane: walk(lib.random.fold_in(key, lane), edges, prizes,
                                          lane % nodes))(start)  # fmt: skip

    rng = np.random.default_rng(0)
    edges = rng.integers(0, nodes, (nodes, 4), dtype=np.int32)
    prizes = rng.uniform(0, 1, nodes).astype(np.float32)
    return simulate, (np.uint32(0), edges, prizes)


def outputs(lanes, nodes, rounds):
    """The last nodes, and what was collected."""
    return [((lanes,), np.int32), ((lanes,), np.float32)]


BY_HAND = r"""
LANE void lane(int i, const unsigned *seed, const int *edges, const float *prizes, int *last,
               float *totals) {
    random_key key = fold_in({word(0u), word(*seed)}, to_word(lane_index(i)));
    whole node = lane_index(i) & whole(NODES - 1);
    real total = 0.0f;
    for (int round = 0; round < ROUNDS; round++) {
        word bits = random_bits(fold_in(key, word((unsigned)round)), 0);
        UNROLLED
        for (int step = 0; step < 16; step++) {
            node = gather(edges, node * 4 + to_whole(bits & word(3u)));
            total = total + gather(prizes, node);
            bits = bits >> 2;
        }
    }
    store(last, i, node);
    store(totals, i, total);
}
"""
