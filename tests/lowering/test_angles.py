"""Sine and cosine of one angle in one call: the bits that each has alone."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 1e5, 3e9, -7e20, 1e38, np.pi / 2, -np.pi]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 5, 1000])
def test_bits_are_those_of_each_alone(dtype, n):
    rng = np.random.default_rng(n)
    x = (rng.normal(size=n) * 10.0 ** rng.integers(-8, 9, n)).astype(dtype)
    x = np.concatenate([x, np.array(SPECIAL, dtype)]) if n > 1 else x
    both = ft.jit(lambda x: (jnp.sin(x), jnp.cos(x)))
    assert "sine_cosine" in ft.lower(both, x).compile().as_text()
    for found, function in zip(both(x), (jnp.sin, jnp.cos), strict=True):
        alone = ft.jit(function)(x)
        assert np.asarray(found).tobytes() == np.asarray(alone).tobytes()


def test_the_order_and_the_loop_do_not_matter():
    x = np.linspace(-4, 4, 300).astype("f4")

    def walk(x):
        def step(carry, _):
            angle = carry * 1.5 + 0.1
            return jnp.cos(angle) - jnp.sin(angle) * 0.5, angle
        return ft.lax.scan(step, x, None, length=20)

    program = ft.jit(ft.vmap(walk))
    assert "sine_cosine" in ft.lower(program, x).compile().as_text()
    carry = x.astype("f8")
    for _ in range(20):
        angle = carry * 1.5 + 0.1
        carry = np.cos(angle) - np.sin(angle) * 0.5
    np.testing.assert_allclose(program(x)[0], carry, 1e-2, 1e-2)
    wide = ft.jit(ft.vmap(walk))(x.astype("f8"))
    np.testing.assert_allclose(wide[0], carry, 1e-7, 1e-7)


def test_angles_of_other_loops_stay_apart():
    x = np.linspace(0, 9, 500).astype("f4")

    def f(x):
        s = jnp.sin(x)
        return jnp.cos(x) * s.sum(), s

    found, s = ft.jit(f)(x)
    np.testing.assert_allclose(s, np.sin(x.astype("f8")), 1e-5, 1e-6)
    np.testing.assert_allclose(found, np.cos(x.astype("f8")) * np.sin(x.astype("f8")).sum(), 1e-3,
                               1e-2)
