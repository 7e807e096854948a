"""Nearest points in a k-d tree that stands in an array, without a stack (Wald 2022)."""

import numpy as np

FIELD = "computational geometry"
SIZES = {
    "tiny": dict(lanes=64, depth=4),
    "small": dict(lanes=2**14, depth=14),
    "large": dict(lanes=2**18, depth=16),
}
UNROLL = 4


def make(lib, lanes, depth):
    jnp = lib.numpy
    count = 2**depth - 1

    def nearest(query, points):
        def going(state):
            return state[0] >= 0

        def advance(state):
            node, previous, level, best, found = state
            parent = ((node + 1) >> 1) - 1
            point, down = points[node], previous < node
            square = jnp.sum((query - point) ** 2)
            closer = down & (square < best)
            best, found = jnp.where(closer, square, best), jnp.where(closer, node, found)
            beyond = (query - point)[level % 3]
            right = (beyond > 0).astype(jnp.int32)
            near, far = 2 * node + 1 + right, 2 * node + 2 - right
            back = jnp.where((previous == near) & (beyond**2 < best), far, parent)
            target = jnp.where(down, jnp.where(near < count, near, parent), back)
            return target, node, jnp.where(target > node, level + 1, level - 1), best, found

        start = (0, -1, 0, jnp.inf, 0)
        _, _, _, best, found = lib.lax.while_loop(going, advance, start)
        return found, best

    def search(queries, points):
        return lib.vmap(nearest, in_axes=(0, None))(queries, points)

    rng = np.random.default_rng(0)
    cloud = rng.normal(0, 1, (1, count, 3)).astype(np.float32)
    points = []
    for level in range(depth):  # the middle of each part along the axis is a node, parts double
        order = np.argsort(cloud[:, :, level % 3], axis=1)
        cloud = np.take_along_axis(cloud, order[:, :, None], axis=1)
        middle = cloud.shape[1] // 2
        points.append(cloud[:, middle])
        halves = np.stack([cloud[:, :middle], cloud[:, middle + 1 :]], axis=1)
        cloud = halves.reshape(2 ** (level + 1), middle, 3)
    queries = rng.normal(0, 1, (lanes, 3)).astype(np.float32)
    return search, (queries, np.concatenate(points))


def outputs(lanes, depth):
    """The nodes of the nearest points, and the squares of their distances."""
    return [((lanes,), np.int32), ((lanes,), np.float32)]


BY_HAND = r"""
LANE void lane(int i, const float *queries, const float *points, int *nearest, float *squares) {
    real x = load(queries, i, 3, 0), y = load(queries, i, 3, 1), z = load(queries, i, 3, 2);
    real best = 1e30f;
    whole node = 0, previous = -1, axis = 0, found = 0;
    mask going = best > 0.0f;
    while (any_lane(going)) {
        whole at = select(going, node * 3, whole(0));
        real dx = x - gather(points, at), dy = y - gather(points, at + 1);
        real dz = z - gather(points, at + 2);
        mask down = previous < node;
        real square = dx * dx + dy * dy + dz * dz;
        mask closer = going & down & (square < best);
        best = select(closer, square, best);
        found = select(closer, node, found);
        real beyond = select(axis == whole(0), dx, select(axis == whole(1), dy, dz));
        whole right = select(beyond > 0.0f, whole(1), whole(0));
        whole near = node * 2 + 1 + right, far = node * 2 + 2 - right;
        whole parent = ((node + 1) >> 1) - 1;
        mask other = (previous == near) & (beyond * beyond < best);
        whole target = select(down, select(near < whole((1 << DEPTH) - 1), near, parent),
                              select(other, far, parent));
        axis = select(target > node, select(axis == whole(2), whole(0), axis + 1),
                      select(axis == whole(0), whole(2), axis - 1));
        previous = node;
        node = select(going, target, node);
        going &= target >= whole(0);
    }
    store(nearest, i, found);
    store(squares, i, best);
}
"""
