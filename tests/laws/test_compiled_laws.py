"""Every primitive in compiled programs: its values, derivatives and maps are the eager ones.

Samples of a primitive are computed by one program, which compiles in a third of their time.
"""

import pytest

import functrans as ft
from tests.laws.primitives import Case, all_cases, differentiable_cases, groups
from tests.laws.programs import derivatives_of, together, values_of
from tests.laws.test_primitive_laws import assert_same

BY_DIFFERENCES = {"random_gamma_grad", "zeta"}
"""Their derivatives in one argument are central differences, which multiply roundings by 1e5 each
time."""


def names(cases):
    return str(cases[0])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("cases", groups(all_cases(), 6), ids=names)
def test_compiled_values_are_eager_values(cases: list[Case]):
    fun, args = together([values_of(case) for case in cases])
    with ft.config.use_backend("c"):
        found = ft.jit(fun)(*args)
    for actual, expected in zip(found, fun(*args), strict=True):
        for a, e, tolerance in zip(actual, expected, (1e-5, 1e-4), strict=True):
            assert_same(a, e, tolerance)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("cases", groups(differentiable_cases(), 8), ids=names)
def test_compiled_derivatives_are_eager_derivatives(cases: list[Case]):
    fun, args = together([derivatives_of(case, twice=True) for case in cases])
    with ft.config.use_backend("c"):
        found = ft.jit(fun)(*args)
    tolerance = 2e-5 if cases[0].primitive.name in BY_DIFFERENCES else 1e-8
    for actual, expected in zip(found, fun(*args), strict=True):
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e, tolerance)
