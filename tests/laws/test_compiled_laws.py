"""Every primitive in compiled programs: its values, derivatives and maps are the eager ones."""

import pytest

import functrans as ft
from tests.laws.primitives import Case, all_cases, differentiable_cases
from tests.laws.programs import derivatives_of, values_of
from tests.laws.test_primitive_laws import assert_same

CASES = all_cases()
SMOOTH = differentiable_cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiled_values_are_eager_values(case: Case):
    fun, args = values_of(case)
    with ft.config.use_backend("c"):
        actual = ft.jit(fun)(*args)
    for a, e, tolerance in zip(actual, fun(*args), (1e-5, 1e-4), strict=True):
        assert_same(a, e, tolerance)


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_compiled_derivatives_are_eager_derivatives(case: Case):
    fun, args = derivatives_of(case, twice=True)
    with ft.config.use_backend("c"):
        actual = ft.jit(fun)(*args)
    for a, e in zip(actual, fun(*args), strict=True):
        assert_same(a, e, 1e-8)
