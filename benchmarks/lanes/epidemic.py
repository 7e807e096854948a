"""Epidemics of susceptible, infected and recovered, event by event (Gillespie 1977)."""

import numpy as np

FIELD = "epidemiology"
SIZES = {
    "tiny": dict(lanes=64, people=32),
    "small": dict(lanes=2**12, people=256),
    "large": dict(lanes=2**16, people=1024),
}
TOLERANCE = 1e-2  # an epidemic may end an event earlier
UNROLL = 4


def make(lib, lanes, people):
    jnp = lib.numpy
    contact, end = 2.0, 8.0

    def epidemic(key):
        def going(state):
            _, infected, t, _ = state
            return (infected > 0) & (t < end)

        def event(state):
            susceptible, infected, t, count = state
            u = lib.random.uniform(lib.random.fold_in(key, count), (2,))
            infection = contact / people * (susceptible * infected)
            total = infection + infected
            t = t - jnp.log1p(-u[0]) / total
            spreads = u[1] * total < infection
            susceptible = jnp.where(spreads, susceptible - 1, susceptible)
            infected = jnp.where(spreads, infected + 1, infected - 1)
            return susceptible, infected, t, count + 1

        first = people // 16
        start = (people - first, first, 0.0, 0)
        susceptible, infected, t, count = lib.lax.while_loop(going, event, start)
        return susceptible, infected, t, count

    def simulate(seed):
        key = lib.random.key(seed)
        return lib.vmap(lambda lane: epidemic(lib.random.fold_in(key, lane)))(jnp.arange(lanes))

    return simulate, (np.uint32(0),)


def outputs(lanes, people):
    """Who is susceptible and infected at the end, when that is, and the number of events."""
    shape = (lanes,)
    return [(shape, np.int32), (shape, np.int32), (shape, np.float32), (shape, np.int32)]


BY_HAND = r"""
LANE void lane(int i, const unsigned *seed, int *susceptible_of, int *infected_of, float *end_of,
               int *count_of) {
    random_key key = fold_in({word(0u), word(*seed)}, to_word(lane_index(i)));
    whole susceptible = PEOPLE - PEOPLE / 16, infected = PEOPLE / 16, count = 0;
    real t = 0.0f;
    mask going = t < 8.0f;
    while (any_lane(going)) {
        random_key now = fold_in(key, to_word(count));
        real wait = uniform(now, 0), choice = uniform(now, 1);
        real infection = (2.0f / PEOPLE) * to_real(susceptible * infected);
        real total = infection + to_real(infected);
        mask spreads = choice * total < infection;
        t = select(going, t - logarithm(1.0f - wait) / total, t);
        susceptible = select(going & spreads, susceptible - 1, susceptible);
        infected = select(going, select(spreads, infected + 1, infected - 1), infected);
        count = select(going, count + 1, count);
        going &= (infected > 0) & (t < 8.0f);
    }
    store(susceptible_of, i, susceptible);
    store(infected_of, i, infected);
    store(end_of, i, t);
    store(count_of, i, count);
}
"""
