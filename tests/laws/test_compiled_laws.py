"""Every primitive in compiled programs: its values, derivatives and maps are the eager ones."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.core import dtypes
from tests.laws.primitives import Case, all_cases, differentiable_cases
from tests.laws.test_primitive_laws import assert_same, smooth_function

CASES = all_cases()
SMOOTH = differentiable_cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiled_values_are_eager_values(case: Case):
    """Alone, and mapped over two elements, in one program."""
    def both(args, stacked):
        mapped = ft.vmap(case.outs)(*stacked) if stacked else []
        return case.outs(*args), mapped

    stacked = [np.stack([a, a[::-1].copy() if a.ndim and dtypes.kind(a.dtype) in "f"
                         and not case.primitive.name.startswith(("cholesky", "triangular_solve"))
                         else a]) for a in case.args]
    with ft.config.use_backend("c"):
        outs, mapped = ft.jit(both)(list(case.args), stacked)
    expected, expected_mapped = both(list(case.args), stacked)
    assert_same(outs, expected)
    assert_same(mapped, expected_mapped, 1e-4)


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_compiled_derivatives_are_eager_derivatives(case: Case):
    """Forward, reverse, reverse over reverse, and mapped reverse, in one program."""
    fun, args = smooth_function(case)

    def loss(*xs):
        squares = [lax.mul(lax.abs(o), lax.abs(o)) for o in fun(*xs)]
        return sum(lax.reduce_sum(s, range(s.ndim)) for s in squares)

    every = tuple(range(len(args)))
    gradient = ft.grad(loss, every)

    def derivatives(args, stacked):
        pushed = ft.jvp(fun, tuple(args), tuple(map(np.ones_like, args)))[1]
        second = ft.grad(lambda *xs: sum(lax.reduce_sum(lax.abs(g), range(g.ndim))
                                         for g in gradient(*xs)), every)(*args)
        return pushed, gradient(*args), second, ft.vmap(gradient)(*stacked)

    stacked = [np.stack([a, a]) for a in args]
    expected = derivatives(list(args), stacked)
    with ft.config.use_backend("c"):
        actual = ft.jit(derivatives)(list(args), stacked)
    for a, e in zip(actual, expected, strict=True):
        assert_same(a, e, 1e-8)
