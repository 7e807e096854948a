"""Every primitive with all of its sizes named: values and derivatives are those of known sizes."""

import pytest

import functrans as ft
from tests.laws.primitives import Case, all_cases, differentiable_cases
from tests.laws.programs import derivatives_of
from tests.laws.sizes import larger, named, outcome
from tests.laws.test_primitive_laws import assert_same

CASES = [c for c in all_cases() if any(n > 1 for a in c.args for n in a.shape)]
SMOOTH = [c for c in differentiable_cases() if any(n > 1 for a in c.args for n in a.shape)]


def check_at_sizes(fun, jitted, args, tolerance):
    """The program of named sizes gives what one for these very sizes gives."""
    with ft.config.dynamic_shapes("off"):
        expected = outcome(ft.jit(fun), args)
    actual = outcome(jitted, args)
    if isinstance(expected, type):  # the parameters fit other sizes only
        assert isinstance(actual, type) and issubclass(actual, expected)
    else:
        assert not isinstance(actual, type), actual
        assert_same(actual, expected, tolerance)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_at_two_sets_of_sizes(case: Case):
    jitted = ft.jit(case.outs, dynamic_shapes=named(case.args))
    with ft.config.use_backend("c"):
        for args in (case.args, larger(case.args), case.args):
            check_at_sizes(case.outs, jitted, args, 1e-5)


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_derivatives_of_named_sizes(case: Case):
    fun, args = derivatives_of(case, twice=False)
    jitted = ft.jit(lambda *xs: fun(list(xs[:len(args[0])]), list(xs[len(args[0]):])),
                    dynamic_shapes=named([*args[0], *args[1]]))
    with ft.config.use_backend("c"):
        assert_same(ft.tree.leaves(jitted(*args[0], *args[1])), ft.tree.leaves(fun(*args)), 1e-8)
