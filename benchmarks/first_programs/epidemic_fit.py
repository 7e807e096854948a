"""An epidemic in age groups fitted to counts of cases, by Adam through the integrator (SEIR)."""

import numpy as np

FIELD = "epidemiology"
SIZES = {
    "tiny": dict(groups=2, days=5, rounds=2),
    "small": dict(groups=6, days=60, rounds=12),
    "large": dict(groups=64, days=365, rounds=60),
}


def make(lib, groups, days, rounds):
    jnp = lib.numpy

    def rates(state, params, contacts, people, day):
        s, e, i, _ = state
        beta = jnp.exp(params["beta"]) * (1 + params["season"] * jnp.cos(2 * jnp.pi * day / 365))
        beta = beta * lib.nn.sigmoid(params["lockdown"] * (30 - day) / 10)
        force = beta * (contacts @ (i / people)) * jnp.exp(params["age"])
        incubation, recovery = jnp.exp(params["incubation"]), jnp.exp(params["recovery"])
        new, sick, well = force * s, incubation * e, recovery * i
        return -new, new - sick, sick - well, well

    def day_of(state, day, params, contacts, people):
        def f(y, t):
            return rates(y, params, contacts, people, t)

        def plus(y, k, h):
            return tuple(a + h * b for a, b in zip(y, k, strict=True))

        for part in range(2):
            t, h = day + part / 2, 0.5
            k1 = f(state, t)
            k2 = f(plus(state, k1, h / 2), t + h / 2)
            k3 = f(plus(state, k2, h / 2), t + h / 2)
            k4 = f(plus(state, k3, h), t + h)
            state = tuple(y + h / 6 * (a + 2 * b + 2 * c + d)
                          for y, a, b, c, d in zip(state, k1, k2, k3, k4, strict=True))
        cases = jnp.exp(params["incubation"]) * state[1]
        return state, lib.nn.sigmoid(params["report"]) * cases

    def loss(params, contacts, people, cases):
        seeds = people * jnp.exp(params["seed"])
        start = (people - seeds, seeds, jnp.zeros_like(people), jnp.zeros_like(people))
        _, expected = lib.lax.scan(lambda y, d: day_of(y, d, params, contacts, people), start,
                                   jnp.arange(days, dtype=jnp.float32))
        expected, shape = expected + 0.1, jnp.exp(params["shape"])
        log_p = (lib.scipy.special.gammaln(cases + shape) - lib.scipy.special.gammaln(shape)
                 + shape * jnp.log(shape / (shape + expected))
                 + cases * jnp.log(expected / (shape + expected)))
        return -jnp.mean(log_p) + 0.01 * jnp.sum(params["age"] ** 2), expected

    def fit(params, contacts, people, cases):
        def step(carry, n):
            params, m, v = carry
            (value, _), g = lib.value_and_grad(loss, has_aux=True)(params, contacts, people, cases)
            m = lib.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
            v = lib.tree.map(lambda a, b: 0.99 * a + 0.01 * b * b, v, g)
            rise = n + 1.0
            params = lib.tree.map(
                lambda p, a, b: p - 0.03 * (a / (1 - 0.9**rise))
                / (jnp.sqrt(b / (1 - 0.99**rise)) + 1e-6), params, m, v)
            return (params, m, v), value

        zeros = lib.tree.map(jnp.zeros_like, params)
        (params, _, _), values = lib.lax.scan(step, (params, zeros, zeros),
                                              jnp.arange(rounds, dtype=jnp.float32))
        return params, values, loss(params, contacts, people, cases)[1]

    rng = np.random.default_rng(0)
    contacts = rng.uniform(0.2, 1.5, (groups, groups))
    contacts = (contacts + contacts.T) / groups
    people = rng.uniform(1e4, 5e4, groups)
    cases = rng.poisson(20 * np.exp(np.linspace(0, 2, days))[:, None] * np.ones(groups))
    params = dict(beta=-0.5, season=0.1, lockdown=0.5, incubation=-1.5, recovery=-1.8, report=0.0,
                  seed=-6.0, shape=1.0, age=np.zeros(groups))
    params = {k: np.asarray(v, np.float32) for k, v in params.items()}
    return fit, (params, *(a.astype(np.float32) for a in (contacts, people, cases)))
