"""Dictionary learning on image patches: codes by FISTA, then a step (Beck and Teboulle 2009)."""

import numpy as np

FIELD = "signal processing"
SIZES = {
    "tiny": dict(images=1, side=12, patch=4, atoms=10, iterations=4),
    "small": dict(images=2, side=32, patch=6, atoms=48, iterations=10),
    "large": dict(images=4, side=128, patch=8, atoms=256, iterations=30),
}


def make(lib, images, side, patch, atoms, iterations):
    jnp = lib.numpy

    def patches(pictures):
        """All patches of each image, with their means removed."""
        found = lib.lax.conv_general_dilated_patches(
            pictures[:, None], (patch, patch), (2, 2), "VALID"
        )
        rows = jnp.moveaxis(found, 1, -1).reshape(-1, patch * patch)
        return rows - jnp.mean(rows, axis=1, keepdims=True)

    def largest_eigenvalue(gram):
        def power(_, v):
            v = gram @ v
            return v / jnp.linalg.norm(v)

        v = lib.lax.fori_loop(0, 10, power, jnp.ones(atoms) / float(np.sqrt(atoms)))
        return v @ gram @ v

    def shrink(x, by):
        return jnp.sign(x) * jnp.maximum(jnp.abs(x) - by, 0)

    def codes(dictionary, rows, sparsity):
        gram, projected = dictionary @ dictionary.T, rows @ dictionary.T
        rate = 1 / (1.1 * largest_eigenvalue(gram))

        def iterate(state, _):
            z, y, t = state
            new = shrink(y - rate * (y @ gram - projected), rate * sparsity)
            after = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
            return (new, new + (t - 1) / after * (new - z), after), jnp.mean(jnp.abs(new))

        z = jnp.zeros_like(projected)
        (z, _, _), trace = lib.lax.scan(iterate, (z, z, jnp.float32(1)), None, length=iterations)
        return z, trace

    def step(dictionary, pictures, sparsity):
        rows = patches(pictures)
        z, trace = codes(dictionary, rows, sparsity)
        residual = rows - z @ dictionary
        dictionary = dictionary + 2 * z.T @ residual / len(rows)
        norms = jnp.linalg.norm(dictionary, axis=1, keepdims=True)
        return dictionary / norms, trace, jnp.mean(residual**2), jnp.mean(jnp.abs(z), axis=0)

    rng = np.random.default_rng(0)
    dictionary = rng.standard_normal((atoms, patch * patch))
    dictionary /= np.linalg.norm(dictionary, axis=1, keepdims=True)
    pictures = np.cumsum(rng.standard_normal((images, side, side)), axis=2) / 4
    return step, (dictionary.astype(np.float32), pictures.astype(np.float32), np.float32(0.3))
