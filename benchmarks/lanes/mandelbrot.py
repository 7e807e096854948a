"""Escape times of the Mandelbrot set (Brooks and Matelski 1978)."""

import numpy as np

FIELD = "fractals"
SIZES = {
    "tiny": dict(pixels=64, steps=32),
    "small": dict(pixels=512, steps=512),
    "large": dict(pixels=2048, steps=512),
}
TOLERANCE = 5e-2  # at the edge of the set a count depends on the last digit
AXES, UNROLL = 2, 4


def make(lib, pixels, steps):
    def count(y, x):
        def going(state):
            u, v, i = state
            return (u * u + v * v <= 4) & (i < steps)

        def advance(state):
            u, v, i = state
            return u * u - v * v + x, 2 * u * v + y, i + 1

        return lib.lax.while_loop(going, advance, (0.0, 0.0, 0))[2]

    y = np.linspace(-1.25, 1.25, pixels, dtype=np.float32)
    x = np.linspace(-2, 0.5, pixels, dtype=np.float32)
    return lib.vmap(lib.vmap(count, in_axes=(None, 0)), in_axes=(0, None)), (y, x)


def outputs(pixels, steps):
    """How many steps each pixel took."""
    return [((pixels, pixels), np.int32)]


BY_HAND = r"""
LANE void lane(int i, const float *y_of, const float *x_of, int *counts) {
#ifdef __CUDACC__
    // a warp has 8 x 4 pixels, which take about equally long
    int tile = i / 32, within = i % 32;
    int column = tile % (PIXELS / 8) * 8 + within % 8, row = tile / (PIXELS / 8) * 4 + within / 8;
#else
    int column = i % PIXELS, row = i / PIXELS;
#endif
    real x = load(x_of, column), y = y_of[row];
    real u = 0.0f, v = 0.0f, uu = 0.0f, vv = 0.0f;
    whole count = 0;
    mask going = uu <= 4.0f;
    for (int step = 0; step < STEPS && any_lane(going); step++) {
        v = 2.0f * u * v + y;
        u = uu - vv + x;
        uu = u * u;
        vv = v * v;
        count = select(going, count + 1, count);
        going &= uu + vv <= 4.0f;  // where it is not, they may grow without bound
    }
    store(counts, row * PIXELS + column, count);
}
"""
