"""The laws that every primitive obeys, on every sample that it carries."""

import functools
import itertools

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.check import check_jaxpr
from functrans.core.evaluate import eval_jaxpr, interpret
from functrans.core.staging import stage
from functrans.primitives.elementwise import Elementwise
from functrans.test_util import check_grads
from tests.laws.primitives import Case, all_cases, differentiable_cases

CASES = all_cases()
SMOOTH = differentiable_cases()
each_case = pytest.mark.parametrize("case", CASES, ids=str)
each_smooth_case = pytest.mark.parametrize("case", SMOOTH, ids=str)


def assert_same(actual, expected, tolerance=1e-5):
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        a, e = np.asarray(a), np.asarray(e)
        assert a.shape == e.shape
        assert a.dtype == e.dtype
        if dtypes.kind(a.dtype) in "fc":
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(a.astype(wide), e.astype(wide), rtol=tolerance,
                                       atol=tolerance)
        else:
            np.testing.assert_array_equal(a, e)


def smooth_function(case: Case):
    """The floating results as a function of the floating operands, and these operands."""
    at = case.floating

    def fun(*xs):
        args = list(case.args)
        for i, x in zip(at, xs, strict=True):
            args[i] = x
        return [o for o in case.outs(*args) if dtypes.kind(o.dtype) in "fc"]

    return fun, tuple(case.args[i] for i in at)


@each_case
def test_type_rule_is_the_type_of_the_result(case):
    types = case.primitive.type(*map(get_aval, case.args), **case.params)
    types = list(types) if case.primitive.multiple_results else [types]
    for out, aval in zip(case.outs(*case.args), types, strict=True):
        assert (out.shape, out.dtype) == (aval.shape, aval.dtype)


@pytest.mark.one_sample_in(5)
@each_case
def test_staged_is_eager(case):
    closed = stage(case.outs, [get_aval(a) for a in case.args])
    check_jaxpr(closed)
    eager = case.outs(*case.args)
    assert_same(eval_jaxpr(closed.jaxpr, closed.consts, *case.args), eager)
    assert_same(interpret(closed.jaxpr.hoist_consts(), [*closed.consts, *case.args]), eager)
    assert_same(ft.jit(case.outs)(*case.args), eager)


@each_case
def test_vmap_is_a_loop(case):
    eager = case.outs(*case.args)
    count = len(case.args)
    for mapped in itertools.product((False, True), repeat=count):
        if not any(mapped) or (count > 4 and sum(mapped) not in (1, count)):
            continue
        for axis in (0, -1):
            in_axes = tuple(axis if m else None for m in mapped)
            stacked = [np.stack([a, a], axis) if m else a
                       for a, m in zip(case.args, mapped, strict=True)]
            outs = ft.vmap(case.outs, in_axes=in_axes)(*stacked)
            assert_same(outs, [np.stack([np.asarray(e)] * 2) for e in eager], 1e-4)


@each_case
def test_vmap_over_different_elements(case):
    """Every operand mapped, with elements that differ where the operand is floating."""
    if not case.args:
        assert_same(ft.vmap(lambda _: case.outs(), axis_size=2)(np.zeros(2)),
                    [np.stack([np.asarray(o)] * 2) for o in case.outs()])
        return
    other = tuple(a[::-1].copy() if a.ndim and dtypes.kind(a.dtype) in "fc" and
                  not case.primitive.name.startswith(("cholesky", "triangular_solve")) else a
                  for a in case.args)
    rows = [case.outs(*case.args), case.outs(*other)]
    stacked = [np.stack(pair) for pair in zip(case.args, other, strict=True)]
    expected = [np.stack([np.asarray(a), np.asarray(b)]) for a, b in zip(*rows, strict=True)]
    assert_same(ft.vmap(case.outs)(*stacked), expected, 1e-4)


@pytest.mark.one_sample_in(2)
@each_smooth_case
def test_derivatives_are_finite_differences(case):
    fun, args = smooth_function(case)
    check_grads(fun, args, order=2, atol=2e-4, rtol=2e-4)


@each_smooth_case
def test_forward_and_reverse_are_adjoint(case):
    fun, args = smooth_function(case)
    rng = np.random.default_rng(0)

    def draw(x):
        x = np.asarray(x)
        noise = rng.standard_normal(x.shape)
        return (noise + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c"
                else np.asarray(noise)).astype(x.dtype)

    tangents = tuple(draw(a) for a in args)
    outs, pushed = ft.jvp(fun, args, tangents)
    cts = [draw(o) for o in outs]
    pulled = ft.vjp(fun, *args)[1](cts)
    left = sum(np.sum(np.asarray(c) * np.asarray(p)).real
               for c, p in zip(cts, pushed, strict=True))
    right = sum(np.sum(np.asarray(g) * t).real for g, t in zip(pulled, tangents, strict=True))
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


@pytest.mark.one_sample_in(6)
@each_smooth_case
def test_linearize_is_jvp(case):
    fun, args = smooth_function(case)
    tangents = tuple(np.ones_like(a) for a in args)
    _, expected = ft.jvp(fun, args, tangents)
    _, push = ft.linearize(fun, *args)
    assert_same(push(*tangents), expected, 1e-9)
    assert_same(ft.jit(lambda *ts: push(*ts))(*tangents), expected, 1e-9)


@pytest.mark.one_sample_in(6)
@each_smooth_case
def test_vmap_and_jvp_commute(case):
    fun, args = smooth_function(case)
    stacked = tuple(np.stack([a, a]) for a in args)
    tangents = tuple(np.stack([np.ones_like(a), 2 * np.ones_like(a)]) for a in args)
    inner = ft.vmap(lambda xs, ts: ft.jvp(fun, xs, ts)[1])(stacked, tangents)
    outer = ft.jvp(ft.vmap(fun), stacked, tangents)[1]
    assert_same(inner, outer, 1e-9)
    assert_same(ft.jit(ft.vmap(lambda xs, ts: ft.jvp(fun, xs, ts)[1]))(stacked, tangents), inner,
                1e-9)


@pytest.mark.one_sample_in(6)
@each_smooth_case
def test_vmap_of_grad_is_a_loop(case):
    fun, args = smooth_function(case)

    def loss(*xs):
        squares = [lax.mul(lax.abs(o), lax.abs(o)) for o in fun(*xs)]
        return functools.reduce(lax.add, [lax.reduce_sum(s, range(s.ndim)) for s in squares])

    gradient = ft.grad(loss, tuple(range(len(args))))
    alone = gradient(*args)
    stacked = tuple(np.stack([a, a]) for a in args)
    for transformed in (ft.vmap(gradient), ft.jit(ft.vmap(gradient)), ft.vmap(ft.jit(gradient))):
        assert_same(transformed(*stacked), [np.stack([np.asarray(g)] * 2) for g in alone], 1e-8)


BINARY = [c for c in SMOOTH if isinstance(c.primitive, Elementwise) and c.index == 0
          and len(c.args) == 2 and not c.params]


@pytest.mark.parametrize("case", BINARY, ids=str)
def test_a_python_scalar_beside_float64_keeps_its_digits(case):
    """Derivatives with a Python scalar operand are those with the same float64 scalar."""
    x, y = case.args
    scalar = float(y[0, 0]) + 1e-9
    tangent = np.ones_like(x)
    actual = ft.jvp(lambda v: case.outs(v, scalar), (x,), (tangent,))[1]
    expected = ft.jvp(lambda v: case.outs(v, np.float64(scalar)), (x,), (tangent,))[1]
    assert_same(actual, expected, 1e-14)
