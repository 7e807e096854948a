"""Functions of a lane whose loops and branches go their own ways, and their arguments."""

from __future__ import annotations

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans import lax

LANES = 256
LENGTHS = np.array([0, 1, 2, 1000, *range(LANES - 4)], np.int32)  # of steps
_draw = np.random.default_rng(0)
X = _draw.uniform(0.5, 2, LANES).astype(np.float32)
Y = _draw.uniform(-1, 1, (LANES, 3)).astype(np.float32)
W = np.random.default_rng(1).uniform(-0.6, 0.6, (LANES, 40)).astype(np.float32)
TABLE = _draw.uniform(-1, 1, 40).astype(np.float32)


def _own_length(x, n):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, jnp.sin(s[1]) * 2), (0, x))


def _nested(x, n):
    def outer(state):
        def inner(s):
            return s[0] + 1, s[1] * 0.5 + s[0]
        k, y, total = state
        m, y = lax.while_loop(lambda s: s[0] < k % 5, inner, (0, y))
        return k + 1, y, total + m
    return lax.while_loop(lambda s: s[0] < n % 50, outer, (0, x, 0))


def _branches(x, n):
    def step(k, y):
        return lax.cond((k + n) % 3 == 0, lambda y: lax.fori_loop(
            0, 100, lambda _, z: z * 0.99 + 0.01, y), lambda y: y * 1.5 - 1, y)
    return lax.fori_loop(0, 7, step, x)


def _switch(x, n):
    def step(k, y):
        return lax.switch(n % 4, [lambda y: y + 1, lambda y: y * 0.5, jnp.sin, lambda y: -y], y)
    return lax.fori_loop(0, 9, step, x)


def _table(x, n):
    def step(k, s):
        i, total = s
        i = (i * 7 + k) % 40
        return i, total + jnp.asarray(TABLE)[i] * x
    return lax.fori_loop(0, 30, step, (n % 40, 0.0))


def _small_vector(y, n):
    def step(k, y):
        y = jnp.roll(y, 1) + 0.1 * jnp.stack([y[1], -y[0], y[0] * y[2]])
        y = y.at[(n + k) % 3].multiply(0.5)
        return y / (1 + jnp.abs(y[jnp.argmax(y)]))
    return lax.fori_loop(0, 20, step, y)


def _film(y, n):
    def step(y, k):
        y = jnp.cross(y, jnp.array([0.1, 0.2, 0.3], jnp.float32)) + y
        return y / (1 + k), y[0]
    return lax.scan(step, y, jnp.arange(12, dtype=jnp.float32), reverse=True)


def _draws(x, n):
    def going(s):
        return (s[0] < n % 40) & (s[1] < 20)
    def step(s):
        key = ft.random.fold_in(ft.random.key(3), s[0] + n)
        return s[0] + 1, s[1] + jnp.sum(ft.random.uniform(key, (2,)))
    return lax.while_loop(going, step, (0, x))


def _system(y, n):
    a = jnp.outer(y, y) + 2 * jnp.eye(3)
    def step(_, b):
        return jnp.linalg.solve(a[:, ::-1], b)
    return lax.fori_loop(0, n[()] * 0 + 5, step, y)


def _wide_integers(x, n):
    def step(s):
        k, h = s
        return k - 1, (h ^ (h >> 7)) * np.uint32(2654435761) + k.astype(jnp.uint32)
    return lax.while_loop(lambda s: s[0] > 0, step, (n, x.astype(jnp.uint32)))


def _doubles(x, n):
    x = x.astype(jnp.float64)
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, jnp.exp(-s[1])), (0, x))


def _custom(x, n):
    @ft.custom_jvp
    def root(v):
        return jnp.sqrt(v)
    root.defjvp(lambda v, t: (root(*v), t[0] / (2 * root(*v))))
    return ft.jvp(lambda v: lax.fori_loop(0, 8, lambda _, u: root(u) + v, v), (x,), (x,))


def _around(x, n):
    """What is computed before a loop, between two, and after them."""
    y = jnp.exp(-x * jnp.arange(3, dtype=jnp.float32))
    y, film = lax.scan(lambda y, k: (y * 0.9 + k, y * 2), y, jnp.arange(4, dtype=jnp.float32))
    k, z = lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + 1), (0, y[::-1]))
    return film + x, z - y, jnp.maximum(z, film[-1]), k


def _films(x, n):
    """A film as it is, and as matrices."""
    def step(y, _):
        z = y
        for _ in range(8):
            z = z * 0.9 + 0.1
        return z, y
    _, film = lax.scan(step, x * jnp.ones(2, jnp.float32), None, length=150)
    return film, film.reshape(75, 2, 2), n


def _pairs(y, n):
    """All pairs of three points, each with itself, too; some points are nowhere."""
    y = jnp.where(n == 5, jnp.inf, jnp.where(n == 6, jnp.nan, y))
    def step(_, y):
        apart = y[None, :] - y[:, None]
        near = (apart * apart + 0.01) ** -1.5
        return y + 0.001 * jnp.stack([apart[0, k] * near[0, k] + apart[1, k] * near[1, k]
                                      for k in range(3)])
    return lax.fori_loop(0, 20, step, y)


def _rules(x, n):
    """Bits by many masks that a loop does not change."""
    def step(_, c):
        for k in range(10):
            c = c ^ jnp.where((n >> k) & 1 == 1, c << 1, 0) ^ jnp.where(n > 20 * k, 0, c >> 3)
        return c, lax.population_count(c)
    return lax.scan(lambda c, k: step(k, c), n.astype(jnp.uint32) * 77 + 1, None, length=15)


def _one_side(x, n):
    """Loops that only one side of some choices reads, and one that both do."""
    def walk(x, n):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + 1), (0, x))
    few = n < 100
    k, y = walk(x, n % 40)
    m, z = walk(y, k + 3)
    both = walk(x + 1, n % 7)[1]
    pair = jnp.stack([z, z * both])
    dark = walk(x + 2, n % 11)[0] > 6
    return jnp.where(few, jnp.sin(z), 0.0), jnp.where(few, pair, both), jnp.where(few, -1, m), \
        jnp.where(dark, 0.0, jnp.maximum(both - 1.9, 0.0))


def _extremes(y, n):
    """Places of extremes in arithmetic, in tables, modulo a size."""
    y = jnp.where(n == 5, jnp.nan, y)
    def step(k, y):
        least, most = jnp.argmin(y), jnp.argmax(y)
        other = jnp.asarray([2, 0, 1])[(least - 2 + k) % 3]
        return y.at[most].add(-0.3 * y[least]).at[other - 1].multiply(0.9)
    return lax.fori_loop(0, 12, step, y)


def _running_sums(y, n):
    def step(k, y):
        return lax.cummax(y) * 0.5 + 0.1 * jnp.cumsum(y)[(n + k) % 3]
    return lax.fori_loop(0, 9, step, y)


def _weights(w, n):
    """A network of the lane's own weights and a table of all lanes in a loop, long results."""
    table = jnp.asarray(TABLE)
    shared = table.reshape(4, 10)

    def step(k, s):
        first = w[:32].reshape(8, 4)
        hidden = jnp.tanh(first @ s + w[(n + k) % 40])
        return jnp.sin(shared[:, :8] @ hidden + shared[:, 9]) + table[(k + n) % 40]

    s = lax.fori_loop(0, 9, step, w[36:])
    return s, jnp.cos(w[:36]) * w[1:37] + s[0]


def _stacked(x, n):
    """What the loop stacks is a result, and is read after it, with more than one element a step."""
    last, (one, two) = lax.scan(lambda c, _: (c * 0.9, (c, jnp.stack([c, c + 1]))), x, None,
                                length=6)
    two = two.reshape(12)
    return one, 1 - one * one, two, two[1:] - two[:-1] * n, last


PROGRAMS = {
    "own_length": (_own_length, (X, LENGTHS), 0),
    "nested": (_nested, (X, LENGTHS), 0),
    "branches": (_branches, (X, LENGTHS), 0),
    "switch": (_switch, (X, LENGTHS), 0),
    "table": (_table, (X, LENGTHS), 0),
    "one_side": (_one_side, (X, LENGTHS), 0),
    "extremes": (_extremes, (Y, LENGTHS), 0),
    "running_sums": (_running_sums, (Y, LENGTHS), 0),
    "small_vector": (_small_vector, (Y, LENGTHS), 0),
    "film": (_film, (Y, LENGTHS), 0),
    "draws": (_draws, (X, LENGTHS), 0),
    "system": (_system, (Y, LENGTHS), 1e-4),
    "wide_integers": (_wide_integers, (X, LENGTHS), 0),
    "doubles": (_doubles, (X, LENGTHS), 0),
    "around": (_around, (X, LENGTHS), 0),
    "pairs": (_pairs, (Y, LENGTHS), 0),
    "rules": (_rules, (X, LENGTHS), 0),
    "films": (_films, (X, LENGTHS), 0),
    "custom": (_custom, (X, LENGTHS), 0),
    "stacked": (_stacked, (X, LENGTHS), 0),
    "weights": (_weights, (W, LENGTHS), 2e-5),
    "gradient": (lambda x, n: ft.value_and_grad(lambda v: lax.fori_loop(
        0, 30, lambda k, u: jnp.sin(u) * v + k, v))(x), (X, LENGTHS), 1e-6),
}
