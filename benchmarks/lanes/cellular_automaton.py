"""Elementary cellular automata of 128 cells in a ring, each of its own rule (Wolfram 1983)."""

import numpy as np

FIELD = "complex systems"
SIZES = {
    "tiny": dict(lanes=64, steps=8),
    "small": dict(lanes=2**16, steps=256),
    "large": dict(lanes=2**20, steps=256),
}
TOLERANCE = 0.0  # whole numbers
UNROLL = 2


def make(lib, lanes, steps):
    jnp = lib.numpy

    def run(cells, rule):
        def step(_, state):
            cells, total = state
            left = (cells << 1) | (jnp.roll(cells, 1) >> 31)
            right = (cells >> 1) | (jnp.roll(cells, -1) << 31)
            new = jnp.zeros_like(cells)
            for pattern in range(8):
                match = left if pattern & 4 else ~left
                match = match & (cells if pattern & 2 else ~cells)
                match = match & (right if pattern & 1 else ~right)
                new = new | jnp.where((rule >> pattern) & 1 == 1, match, jnp.zeros_like(match))
            return new, total + jnp.sum(lib.lax.population_count(new).astype(jnp.int32))

        return lib.lax.fori_loop(0, steps, step, (cells, jnp.int32(0)))

    rng = np.random.default_rng(0)
    cells = rng.integers(0, 2**32, (lanes, 4), dtype=np.uint32)
    rule = rng.integers(0, 256, lanes, dtype=np.uint32)
    return lib.vmap(run), (cells, rule)


def outputs(lanes, steps):
    """The last cells, and how many lived, of all steps together."""
    return [((lanes, 4), np.uint32), ((lanes,), np.int32)]


BY_HAND = r"""
// Bit by bit, `one` where the condition is 1 and `zero` elsewhere.
LANE word choose(word condition, word one, word zero) {
    return (condition & one) | (~condition & zero);
}

LANE void lane(int i, const unsigned *cells_of, const unsigned *rules, unsigned *last,
               int *totals) {
    word cells[4], next[4], gives[8], rule = load(rules, i);
    UNROLLED
    for (int k = 0; k < 4; k++) cells[k] = load(cells_of, i, 4, k);
    UNROLLED
    for (int k = 0; k < 8; k++) gives[k] = word(0u) - ((rule >> k) & word(1u));
    whole total = 0;
    for (int step = 0; step < STEPS; step++) {
        UNROLLED
        for (int k = 0; k < 4; k++) {
            word here = cells[k];
            word left = (here << 1) | (cells[(k + 3) % 4] >> 31);
            word right = (here >> 1) | (cells[(k + 1) % 4] << 31);
            next[k] = choose(left, choose(here, choose(right, gives[7], gives[6]),
                                          choose(right, gives[5], gives[4])),
                             choose(here, choose(right, gives[3], gives[2]),
                                    choose(right, gives[1], gives[0])));
        }
        UNROLLED
        for (int k = 0; k < 4; k++) {
            cells[k] = next[k];
            total = total + ones(next[k]);
        }
    }
    UNROLLED
    for (int k = 0; k < 4; k++) store(last, i, cells[k], 4, k);
    store(totals, i, total);
}
"""
