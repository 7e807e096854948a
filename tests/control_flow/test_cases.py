"""Every case: values, derivatives of three orders, vmap, jit, and their compositions."""

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.test_util import check_grads
from tests.control_flow.cases import CASES, check_staged, float64

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def close(actual, expected, rtol=1e-8):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=rtol, atol=1e-10)


def numerical(python, x, step=1e-6):
    """The derivative of a Python function by Richardson's extrapolation of central differences."""
    coarse = (python(x + 2 * step) - python(x - 2 * step)) / (4 * step)
    return (4 * (python(x + step) - python(x - step)) / (2 * step) - coarse) / 3


@every_case
def test_values(case):
    for x in case.points:
        close(case.fun(float64(x)), case.python(x))


@every_case
def test_first_derivatives(case):
    for x in case.points:
        expected = numerical(case.python, x)
        _, tangent = ft.jvp(case.fun, (float64(x),), (float64(1.0),))
        close(tangent, expected, 1e-5)
        close(ft.grad(case.fun)(float64(x)), tangent)


@every_case
def test_higher_derivatives(case):
    check_grads(case.fun, (float64(case.points[0]),), order=2, rtol=1e-4, atol=1e-4)
    x = float64(case.points[0])
    third = ft.grad(ft.grad(ft.grad(case.fun)))(x)
    close(ft.jacfwd(ft.grad(ft.jacfwd(case.fun)))(x), third)


@every_case
def test_staged_programs_are_well_formed(case):
    x = float64(case.points[0])
    xs = float64(*case.points)
    for fun in (case.fun, ft.grad(case.fun), ft.grad(ft.grad(case.fun)),
                ft.jacfwd(ft.grad(case.fun))):
        check_staged(fun, x)
        check_staged(ft.vmap(fun), xs)


@pytest.mark.one_in(2)
@every_case
def test_jit(case):
    x = float64(case.points[0])
    gradient = ft.grad(case.fun)(x)
    close(ft.jit(case.fun)(x), case.fun(x))
    close(ft.jit(ft.grad(case.fun))(x), gradient)
    close(ft.grad(ft.jit(case.fun))(x), gradient)
    close(ft.jit(ft.grad(ft.jit(ft.grad(case.fun))))(x), ft.grad(ft.grad(case.fun))(x))


@every_case
def test_vmap_equals_a_loop(case):
    xs = float64(*case.points)
    for fun in (case.fun, ft.grad(case.fun), ft.grad(ft.grad(case.fun)), ft.jit(ft.grad(case.fun)),
                lambda x: ft.jvp(case.fun, (x,), (x,))[1]):
        close(ft.vmap(fun)(xs), [fun(float64(x)) for x in case.points])


@every_case
def test_gradient_of_vmap(case):
    xs = float64(*case.points)
    first = [ft.grad(case.fun)(float64(x)) for x in case.points]
    second = [ft.grad(ft.grad(case.fun))(float64(x)) for x in case.points]

    def total(xs):
        return ft.vmap(case.fun)(xs).sum()

    close(ft.grad(total)(xs), first)
    close(ft.jit(ft.grad(total))(xs), first)
    close(ft.grad(lambda xs: ft.grad(total)(xs).sum())(xs), second)
    close(ft.grad(lambda xs: ft.vmap(ft.grad(case.fun))(xs).sum())(xs), second)


@every_case
def test_vmap_of_vmap(case):
    grid = float64(*case.points)[:, None] * float64(1.0, 1.1)
    expected = [[ft.grad(case.fun)(float64(x * s)) for s in (1.0, 1.1)] for x in case.points]
    close(ft.vmap(ft.vmap(ft.grad(case.fun)))(grid), expected)
    close(ft.vmap(ft.grad(lambda row: ft.vmap(case.fun)(row).sum()))(grid), expected)


@every_case
def test_checkpoint(case):
    x = float64(case.points[0])
    kept = ft.checkpoint(case.fun)
    close(ft.grad(kept)(x), ft.grad(case.fun)(x))
    close(ft.grad(ft.grad(kept))(x), ft.grad(ft.grad(case.fun))(x))
    xs = float64(*case.points)
    close(ft.vmap(ft.grad(kept))(xs), ft.vmap(ft.grad(case.fun))(xs))


@every_case
def test_inside_a_scan(case):
    """The body of another loop: what a while records in it cannot be stacked."""
    def fun(x):
        return lax.scan(lambda c, a: (c + case.fun(a) * x, c), x, float64(*case.points))[0]

    def unrolled(x):
        c = x
        for a in case.points:
            c = c + case.fun(float64(a)) * x
        return c

    def nested(x):
        return lax.scan(lambda c, _: (case.fun(c) * 0.01 + x, c), x, length=2)[0]

    def nested_unrolled(x):
        c = x
        for _ in range(2):
            c = case.fun(c) * 0.01 + x
        return c

    x = float64(case.points[0])
    for looped, expected in ((fun, unrolled), (nested, nested_unrolled)):
        close(looped(x), expected(x))
        close(ft.grad(looped)(x), ft.grad(expected)(x))
        close(ft.grad(ft.grad(looped))(x), ft.grad(ft.grad(expected))(x))
        check_staged(ft.grad(looped), x)


@every_case
def test_disable_jit(case):
    x = case.points[0]
    with ft.disable_jit():
        close(case.fun(float64(x)), case.python(x))
        close(ft.grad(case.fun)(float64(x)), numerical(case.python, x), 1e-5)
