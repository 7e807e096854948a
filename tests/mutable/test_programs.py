"""Twelve programs that write into their arrays, unchanged: values, derivatives, vmap and jit."""

import numpy as np
import pytest

import functrans as ft
from functrans.test_util import check_grads

from .programs import PROGRAMS


def parts(name):
    function, arguments, rest = PROGRAMS[name]
    pure = ft.numpy_code(function)
    return function, lambda *args: pure(*args, *rest), arguments, rest


def close(got, wanted):
    for g, w in zip(ft.tree.leaves(got), ft.tree.leaves(wanted), strict=True):
        assert isinstance(g, ft.Array) and g.dtype == np.asarray(w).dtype
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name):
    function, pure, arguments, rest = parts(name)
    before = [a.copy() for a in arguments]
    wanted = function(*arguments, *rest)
    close(pure(*arguments), wanted)
    close(ft.jit(pure)(*arguments), wanted)
    for a, b in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name):
    _, pure, arguments, _ = parts(name)

    def floating(*args):
        return [x for x in ft.tree.leaves(pure(*args)) if x.dtype == np.float64]

    check_grads(floating, arguments, order=1, modes=("fwd", "rev"))
    gradient = ft.grad(lambda *args: sum(x.sum() for x in floating(*args)))
    close(ft.jit(gradient)(*arguments), np.asarray(gradient(*arguments)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_vmap(name):
    function, pure, arguments, rest = parts(name)
    lanes = [np.stack([a, 0.9 * a, 1.2 * a]) for a in arguments]
    got = ft.jit(ft.vmap(pure))(*lanes)
    wanted = [function(*[lane[i] for lane in lanes], *rest) for i in range(3)]
    wanted = ft.tree.map(lambda *xs: np.stack(xs), *wanted)
    close(got, wanted)
