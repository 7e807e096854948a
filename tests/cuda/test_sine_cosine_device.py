"""On a GPU: the sines and cosines of lanes, within two units of the last place."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax

pytestmark = pytest.mark.gpu
RNG = np.random.default_rng(0)
ANGLES = np.concatenate([
    RNG.uniform(-10, 10, 20_000), 10 ** RNG.uniform(-40, 38.5, 20_000),
    -(10 ** RNG.uniform(4, 6, 10_000)), np.arange(1, 5000) * (np.pi / 2),
    [0.0, -0.0, 131072.0, np.nextafter(np.float32(131072), np.float32(0)), 3.4e38],
]).astype("f")


def lane(x):
    """A loop, so that a lane is a thread."""
    return lax.fori_loop(0, 1, lambda _, s: (fnp.sin(x), fnp.cos(x)), (x, x))


def test_sine_and_cosine():
    found = ft.jit(ft.vmap(lane))(ft.device_put(ANGLES, "gpu"))
    for y, exact in zip(map(np.asarray, found), (np.sin, np.cos), strict=True):
        expected = exact(ANGLES.astype(np.float64))
        unit = np.spacing(np.abs(expected).astype("f")).astype(np.float64)
        assert np.max(np.abs(y - expected) / unit) < 2
        assert np.array_equal(np.signbit(y), np.signbit(expected))


def test_no_number_of_infinities():
    x = np.float32([np.inf, -np.inf, np.nan])
    for y in ft.jit(ft.vmap(lane))(ft.device_put(x, "gpu")):
        assert np.isnan(np.asarray(y)).all()
