"""k-means++ seeds, drawn by squared distance, and Lloyd's iterations (Arthur, Vassilvitskii)."""

import numpy as np

FIELD = "clustering"
SIZES = {
    "tiny": dict(points=40, features=3, clusters=4, iterations=2),
    "small": dict(points=4000, features=16, clusters=32, iterations=10),
    "large": dict(points=500000, features=64, clusters=256, iterations=20),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 5e-2}


def make(lib, points, features, clusters, iterations):
    jnp, lax, random = lib.numpy, lib.lax, lib.random

    def seeds(key, x):
        first, rest = random.split(key)
        centres = jnp.zeros((clusters, features)).at[0].set(x[random.randint(first, (), 0, points)])
        nearest = jnp.sum((x - centres[0]) ** 2, axis=-1)

        def choose(i, carry):
            centres, nearest = carry
            index = random.categorical(random.fold_in(rest, i), jnp.log(nearest + 1e-20))
            centre = x[index]
            nearest = jnp.minimum(nearest, jnp.sum((x - centre) ** 2, axis=-1))
            return centres.at[i].set(centre), nearest

        return lax.fori_loop(1, clusters, choose, (centres, nearest))[0]

    def lloyd(centres, x):
        squares = jnp.sum((x[:, None] - centres[None]) ** 2, axis=-1)
        label = jnp.argmin(squares, axis=1)
        count = jnp.bincount(label, length=clusters)
        total = jnp.zeros_like(centres).at[label].add(x)
        new = jnp.where(count[:, None] > 0, total / jnp.maximum(count, 1)[:, None], centres)
        return new, jnp.mean(jnp.min(squares, axis=1))

    def step(seed, x):
        start = seeds(random.key(seed), x)
        centres, inertia = lax.scan(lambda c, _: lloyd(c, x), start, None, length=iterations)
        return start, centres, inertia

    rng = np.random.default_rng(0)
    middles = 4 * rng.standard_normal((clusters, features))
    x = middles[rng.integers(0, clusters, points)] + rng.standard_normal((points, features))
    return step, (np.uint32(0), x.astype(np.float32))
