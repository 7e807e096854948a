"""Programs as one writes them for NumPy, with arrays that are filled, and their arguments."""

import itertools

import numpy as np
from numpy import zeros_like

rng = np.random.default_rng(0)


def heat(u, steps):
    """Finite differences with ghost cells, filled anew before each step."""
    padded = np.zeros((u.shape[0] + 2, u.shape[1] + 2))
    padded[1:-1, 1:-1] = u
    inner = padded[1:-1, 1:-1]
    for _ in range(steps):
        padded[0, :], padded[-1, :] = padded[1, :], padded[-2, :]
        padded[:, 0] = padded[:, 1]
        padded[:, -1] = padded[:, -2]
        laplacian = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
        laplacian -= 4 * inner
        inner += 0.1 * laplacian
    return inner


def gauss_seidel(a, b, sweeps):
    """Each unknown from the newest values of the others."""
    x = np.zeros(len(b))
    for _ in range(sweeps):
        for i in range(len(b)):
            x[i] = (b[i] - a[i, :i] @ x[:i] - a[i, i + 1:] @ x[i + 1:]) / a[i, i]
    return x


def viterbi(log_start, log_step, log_seen):
    """The likeliest path, walked back through the arguments of the maxima, and its score."""
    steps, states = log_seen.shape
    score = np.empty((steps, states))
    back = np.zeros((steps, states), dtype=int)
    score[0] = log_start + log_seen[0]
    for t in range(1, steps):
        candidates = score[t - 1][:, None] + log_step
        back[t] = candidates.argmax(axis=0)
        score[t] = candidates.max(axis=0) + log_seen[t]
    path = np.zeros(steps, dtype=int)
    path[-1] = score[-1].argmax()
    for t in range(steps - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return score[-1, path[-1]], path


def histogram_filter(prior, likelihoods, move):
    """Bayes' rule and a motion with noise on a ring of cells."""
    belief = prior.copy()
    history = np.empty((len(likelihoods), len(prior)))
    for t, likelihood in enumerate(likelihoods):
        moved = np.zeros_like(belief)
        for shift, weight in enumerate(move):
            moved += weight * np.roll(belief, shift)
        belief[:] = moved * likelihood
        belief /= belief.sum()
        history[t] = belief
    return history


def thomas(lower, diagonal, upper, right):
    """A tridiagonal system, eliminated in copies of its diagonals."""
    c, d = np.copy(upper), np.array(right)
    c[0] /= diagonal[0]
    d[0] /= diagonal[0]
    n = len(d)
    for i in range(1, n):
        pivot = diagonal[i] - lower[i] * c[i - 1]
        c[i] /= pivot
        d[i] = (d[i] - lower[i] * d[i - 1]) / pivot
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


def floyd_warshall(weights):
    """All shortest paths, by np.minimum into the matrix itself."""
    distance = weights.copy()
    np.fill_diagonal(distance, 0)
    for k in range(len(distance)):
        np.minimum(distance, distance[:, k, None] + distance[k], out=distance)
    return distance


def lu(matrix):
    """L and U in one matrix, eliminated on the spot through views of rows."""
    a = matrix.copy()
    for k in range(len(a) - 1):
        rows = a[k + 1:]
        rows[:, k] /= a[k, k]
        rows[:, k + 1:] -= np.outer(rows[:, k], a[k, k + 1:])
    return a


def prefix_sums(x):
    """By doubling, with views that overlap."""
    out = np.array(x)
    shift = 1
    while shift < len(out):
        out[shift:] += out[:-shift]
        shift *= 2
    return out


def automaton(cells, steps):
    """A soft rule over neighbours on a ring; the newest state is a view that moves along."""
    states = np.zeros((steps + 1, len(cells)))
    states[0] = cells
    for now, following in itertools.pairwise(states):
        following[1:-1] = now[:-2] * (1 - now[2:]) + now[2:] * (1 - now[:-2])
        following[0] = now[-1] * (1 - now[1])
        following[-1] = now[0] + now[-2] * (1 - now[0])
        np.clip(following, 0.05, 0.95, out=following)
    return states


def edit_distance(a, b, gap):
    """Of two sequences of numbers; to exchange costs the difference."""
    table = np.zeros((len(a) + 1, len(b) + 1))
    table[:, 0] = gap * np.arange(len(a) + 1)
    table[0] = gap * np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i, j] = np.min([table[i - 1, j] + gap, table[i, j - 1] + gap,
                                  table[i - 1, j - 1] + abs(a[i - 1] - b[j - 1])])
    return table[-1, -1]


def smooth(u, f, h):
    """Two sweeps of red-black Gauss-Seidel, into u."""
    for start in (1, 2, 1, 2):
        points = u[start:-1:2]
        points[:] = (u[start - 1:-2:2] + u[start + 1::2] + h * h * f[start:-1:2]) / 2


def v_cycle(u, f, h):
    """A V-cycle for -u'' = f: a function that calls itself, and others that write."""
    smooth(u, f, h)
    if len(u) > 3:
        residual = zeros_like(u)
        residual[1:-1] = f[1:-1] + (u[:-2] - 2 * u[1:-1] + u[2:]) / h**2
        coarse = residual[::2].copy()
        coarse[1:-1] = (residual[1:-3:2] + 2 * residual[2:-2:2] + residual[3:-1:2]) / 4
        correction = np.zeros_like(coarse)
        v_cycle(correction, coarse, 2 * h)
        u[::2] += correction
        u[1::2] += (correction[:-1] + correction[1:]) / 2
    smooth(u, f, h)


def multigrid(f):
    u = np.zeros_like(f)
    v_cycle(u, f, 1 / (len(f) - 1))
    return u


def deposit(positions, charges, n):
    """Cloud in cell: each particle is spread over four nodes of a periodic grid."""
    grid = np.zeros((n, n))
    cell = np.floor(positions).astype(int)
    part = positions - cell
    for dx in (0, 1):
        for dy in (0, 1):
            weight = np.abs(1 - dx - part[:, 0]) * np.abs(1 - dy - part[:, 1])
            np.add.at(grid, ((cell[:, 0] + dx) % n, (cell[:, 1] + dy) % n), charges * weight)
    return grid


DOMINANT = rng.uniform(0, 1, (5, 5)) + 5 * np.eye(5)
# of each: the arguments that are differentiated, and those that stay as they are
PROGRAMS = {
    "heat": (heat, (rng.uniform(size=(4, 5)),), (3,)),
    "gauss_seidel": (gauss_seidel, (DOMINANT, rng.normal(size=5)), (2,)),
    "viterbi": (viterbi, tuple(np.log(rng.uniform(0.1, 1, s)) for s in ((3,), (3, 3), (5, 3))), ()),
    "histogram_filter": (histogram_filter, (np.full(6, 1 / 6), rng.uniform(0.2, 1, (3, 6)),
                                            np.array([0.1, 0.8, 0.1])), ()),
    "thomas": (thomas, (rng.uniform(size=6), rng.uniform(3, 4, 6), rng.uniform(size=6),
                        rng.normal(size=6)), ()),
    "floyd_warshall": (floyd_warshall, (rng.uniform(0.2, 2, (5, 5)),), ()),
    "lu": (lu, (DOMINANT,), ()),
    "prefix_sums": (prefix_sums, (rng.normal(size=9),), ()),
    "automaton": (automaton, (rng.uniform(0.3, 0.7, 7),), (3,)),
    "edit_distance": (edit_distance, (rng.normal(size=4), rng.normal(size=3), np.array(0.37)), ()),
    "multigrid": (multigrid, (rng.normal(size=9),), ()),
    "deposit": (deposit, (rng.uniform(0, 4, (6, 2)), rng.normal(size=6)), (4,)),
}
