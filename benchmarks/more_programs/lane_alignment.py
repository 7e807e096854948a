"""Lanes: scores of local alignments with affine gaps, a pair a lane (Smith and Waterman 1981)."""

import numpy as np

FIELD = "bioinformatics"
SIZES = {
    "tiny": dict(lanes=8, query=6, target=9),
    "small": dict(lanes=128, query=16, target=24),
    "large": dict(lanes=2**14, query=48, target=128),
}
TOLERANCE = 0.0


def make(lib, lanes, query, target):
    jnp = lib.numpy
    opening, extending = 11, 1

    def score(matrix, a, b, length):
        def row(state, letter_and_place):
            h, f, best, where = state
            letter, place = letter_and_place

            def cell(carry, above):
                diagonal, left, gap = carry
                up, down_gap, other = above
                gap = jnp.maximum(gap - extending, left - opening)
                down_gap = jnp.maximum(down_gap - extending, up - opening)
                here = jnp.maximum(diagonal + matrix[letter, other], 0)
                here = jnp.maximum(here, jnp.maximum(gap, down_gap))
                return (up, here, gap), (here, down_gap)

            start = (jnp.int32(0), jnp.int32(0), jnp.int32(-1000))
            _, (h, f) = lib.lax.scan(cell, start, (h, f, a))
            top = jnp.where(place < length, jnp.max(h), 0)
            where = jnp.where(top > best, place, where)
            return (h, f, jnp.maximum(best, top), where), None

        start = (jnp.zeros(query, jnp.int32), jnp.full(query, -1000, dtype=jnp.int32),
                 jnp.int32(0), jnp.int32(0))  # fmt: skip
        (_, _, best, where), _ = lib.lax.scan(row, start, (b, jnp.arange(target)))
        return best, where

    def search(matrix, a, b, lengths):
        best, where = lib.vmap(score, in_axes=(None, 0, 0, 0))(matrix, a, b, lengths)
        top, _index = lib.lax.top_k(best, 4)
        return best, where, top, jnp.bincount(jnp.minimum(best, 127), length=128)

    rng = np.random.default_rng(0)
    half = rng.integers(-4, 3, (20, 20))
    matrix = np.triu(half) + np.triu(half, 1).T + np.diag(np.full(20, 6))
    a = rng.integers(0, 20, (lanes, query)).astype(np.int8)
    b = rng.integers(0, 20, (lanes, target)).astype(np.int8)
    b[:, 2 : 2 + query // 2] = a[:, query // 4 : query // 4 + query // 2]
    lengths = rng.integers(target // 2, target + 1, lanes).astype(np.int32)
    return search, (matrix.astype(np.int32), a, b, lengths)
