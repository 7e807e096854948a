"""On a GPU: the functions of lanes that are threads, as exact as they are said to be."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
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
    return lax.fori_loop(0, 1, lambda _, s: (jnp.sin(x), jnp.cos(x)), (x, x))


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


def quotients(x, y):
    """By a divisor that stays the same in a loop."""
    return lax.fori_loop(0, 2, lambda k, s: s[::-1] / y, jnp.stack([x, x * y]))[0]


def test_quotients_by_what_stays_the_same():
    x = (RNG.uniform(1, 2, 50_000) * 2.0 ** RNG.integers(-30, 30, 50_000)).astype("f")
    y = (RNG.uniform(1, 2, 50_000) * 2.0 ** RNG.integers(-40, 40, 50_000)).astype("f")
    y[::2] *= -1
    found = np.asarray(ft.jit(ft.vmap(quotients))(ft.device_put(x, "gpu"), y))
    with np.errstate(all="ignore"):
        expected = (x / y) / y
    is_normal = (np.abs(expected) > 1e-36) & (np.abs(x / y) > 1e-36)
    np.testing.assert_array_equal(found[is_normal], expected[is_normal])


def test_special_quotients():
    special = np.float32([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2, 3, 1e-40, 3e38, 1e-30])
    x, y = map(np.ravel, np.meshgrid(special, special))
    found = ft.jit(ft.vmap(quotients))(ft.device_put(x, "gpu"), y)
    with np.errstate(all="ignore"):
        expected = (x / y) / y
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-45)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])


def test_powers_of_minus_three_halves():
    x = np.concatenate([RNG.uniform(1, 4, 50_000) * 4.0 ** RNG.integers(-30, 30, 50_000),
                        [0, -0.0, np.inf, np.nan, -1, 1e-44, 1e-38, 3e38]]).astype("f")
    lane = ft.vmap(lambda x: lax.fori_loop(0, 1, lambda k, s: x ** -1.5, x))
    found = np.asarray(ft.jit(lane)(ft.device_put(x, "gpu"))).astype(np.float64)
    with np.errstate(all="ignore"):
        expected = x.astype(np.float64) ** -1.5
        rounded = expected.astype("f")
        unit = np.spacing(rounded).astype(np.float64)
    assert np.max(np.abs(found[:50_000] - expected[:50_000]) / unit[:50_000]) < 4
    np.testing.assert_array_equal(found[50_000:-1], rounded[50_000:-1])


@pytest.mark.parametrize("c", [-1 / 3, 1 / 3, 0.2, -0.25, 0.45, -1e-3])
def test_powers_that_are_like_roots(c):
    x = np.concatenate([10 ** RNG.uniform(-44, 38.5, 50_000), RNG.uniform(0.5, 2, 50_000),
                        [0, -0.0, np.inf, -np.inf, np.nan, -1, -np.pi, 1]]).astype("f")
    power = ft.jit(lambda x: x ** np.float32(c))
    found = np.asarray(power(ft.device_put(x, "gpu"))).astype(np.float64)
    with np.errstate(all="ignore"):
        expected = x.astype(np.float64) ** np.float64(np.float32(c))
    unit = np.spacing(expected[:100_000].astype("f")).astype(np.float64)
    assert np.max(np.abs(found[:100_000] - expected[:100_000]) / unit) < 2.3
    np.testing.assert_array_equal(found[100_000:], expected[100_000:])
