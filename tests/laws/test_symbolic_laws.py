"""Every primitive with all of its sizes named: values and derivatives are those of known sizes."""

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core import dtypes
from functrans.core.avals import get_aval
from tests.laws.primitives import Case, all_cases, differentiable_cases, groups
from tests.laws.sizes import distinct, larger, named, outcome
from tests.laws.test_primitive_laws import assert_same

CASES = [c for c in all_cases() if any(n > 1 for a in c.args for n in a.shape)]
SMOOTH = [c for c in differentiable_cases() if any(n > 1 for a in c.args for n in a.shape)]


def check_at_sizes(expected, jitted, args, tolerance):
    """The program of named sizes gives what is expected at these very sizes."""
    actual = outcome(jitted, args)
    if isinstance(expected, type):  # the parameters fit other sizes only
        assert isinstance(actual, type)
    else:
        assert not isinstance(actual, type), actual
        assert_same(actual, expected, tolerance)


def fits(case: Case) -> bool:
    """Whether other sizes make sense with the parameters; they repeat indices."""
    args = larger(case.args)
    typed = outcome(lambda *xs: case.primitive.type(*map(get_aval, xs), **case.params), args)
    return "unique_indices" not in case.params and not any(
        isinstance(found, type) for found in (typed, outcome(case.outs, args)))


@pytest.mark.one_in(3)
@pytest.mark.one_sample_in(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_at_two_sets_of_sizes(case: Case):
    jitted = ft.jit(case.outs, dynamic_shapes=named(case.args))
    with ft.config.use_backend("c"):
        expected = outcome(case.outs, case.args)
        check_at_sizes(expected, jitted, case.args, 1e-5)
        others = larger(case.args)
        if fits(case):
            check_at_sizes(outcome(case.outs, others), jitted, others, 1e-5)
        else:  # whatever a program of these sizes does
            with ft.config.dynamic_shapes("off"):
                at_others = outcome(ft.jit(case.outs), others)
            check_at_sizes(at_others, jitted, others, 1e-5)
        check_at_sizes(expected, jitted, case.args, 1e-5)


def derivatives(case: Case):
    """Forward, reverse and mapped reverse, of the floating operands, as a function of all."""
    at = case.floating

    def found(*args):
        def fun(*xs):
            here = list(args)
            for i, x in zip(at, xs, strict=True):
                here[i] = x
            return [o for o in case.outs(*here) if dtypes.kind(o.dtype) in "fc"]

        def loss(*xs):
            return sum(lax.reduce_sum(s, range(s.ndim)) for s in
                       (lax.mul(lax.abs(o), lax.abs(o)) for o in fun(*xs)))

        xs = tuple([jnp.asarray(args[i]) for i in at])
        gradient = ft.grad(loss, tuple(range(len(xs))))
        return (ft.jvp(fun, xs, tuple(map(jnp.ones_like, xs)))[1], gradient(*xs),
                ft.vmap(gradient)(*[jnp.stack([x, x]) for x in xs]))

    return found


@pytest.mark.one_in(6)
@pytest.mark.one_sample_in(5)
@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_derivatives_at_two_sets_of_sizes(case: Case):
    fun = derivatives(case)
    jitted = ft.jit(fun, dynamic_shapes=named(case.args))
    with ft.config.use_backend("c"):
        others = [distinct(larger(case.args))] if fits(case) else []
        for args in (case.args, *others):
            check_at_sizes(outcome(fun, args), jitted, args, 1e-8)


@pytest.mark.one_in(9)
@pytest.mark.parametrize("cases", groups([c for c in CASES if fits(c)]),
                         ids=lambda cases: str(cases[0]))
def test_values_in_kernels_of_triton(cases: list[Case]):
    """All samples of a primitive in one program: equal sizes have one name."""
    def everything(*args):
        return [case.outs(*a) for case, a in zip(cases, args, strict=True)]

    jitted = ft.jit(everything, dynamic_shapes=[named(c.args) for c in cases])
    with ft.config.use_backend("triton"):
        for args in ([list(c.args) for c in cases], [larger(c.args) for c in cases]):
            for actual, expected in zip(jitted(*args), everything(*args), strict=True):
                assert_same(actual, expected, 1e-4)
