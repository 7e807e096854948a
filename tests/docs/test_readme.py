"""README.md: its examples run, and what it says that others do not have is there."""

import doctest
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax

README = Path(__file__).parents[2] / "README.md"


def test_examples():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(README), module_relative=False, optionflags=flags)
    assert result.attempted >= 8
    assert result.failed == 0


def test_reverse_mode_through_loops():
    def until_100(x):
        return lax.while_loop(lambda c: c < 100.0, lambda c: c * x, x)

    assert float(ft.grad(until_100)(3.0)) == 5 * 3**4
    power = ft.jit(ft.grad(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x, x)))
    assert float(power(2.0, 3)) == 4 * 2**3


def test_numpy_differentiates_in_float64():
    x = np.arange(3.0)
    gradient = ft.grad(lambda x: np.einsum("i,i->", np.sin(x), x))(x)
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, np.sin(x) + x * np.cos(x), rtol=1e-14)
    with pytest.raises(TypeError, match="busday_count is not covered"):
        ft.jit(np.busday_count)(x, x)


def test_chunks_compose_with_grad():
    squares = ft.vmap(lambda v: v**2, chunk_size=2)
    assert ft.grad(lambda x: squares(x).sum())(jnp.arange(5.0)).tolist() == [0, 2, 4, 6, 8]


def test_custom_rules_close_over_traced_values():
    def outer(a):
        @ft.custom_jvp
        def scaled(x):
            return a * x

        scaled.defjvp(lambda primals, tangents: (scaled(*primals), a * tangents[0]))
        return scaled(a)

    assert float(ft.grad(outer)(3.0)) == 6.0
