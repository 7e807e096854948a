"""Derivatives of every primitive in kernels of the Triton backend, which the interpreter runs.

The samples of a primitive are one program: values that they share, such as a constant that several
updates start from, are in its memory once.
"""

import pytest

import functrans as ft
from functrans.primitives.conv import conv_general_dilated_p
from tests.laws.primitives import Case, differentiable_cases, groups
from tests.laws.programs import derivatives_of, together
from tests.laws.test_primitive_laws import assert_same

CASES = [c for c in differentiable_cases() if c.primitive is not conv_general_dilated_p]
CONVOLUTIONS = [c for c in differentiable_cases() if c.primitive is conv_general_dilated_p]


def check(cases: list[Case]):
    fun, args = together([derivatives_of(case, twice=False) for case in cases])
    with ft.config.use_backend("triton"):
        found = ft.jit(fun)(*args)
    for actual, expected in zip(found, fun(*args), strict=True):
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e, 1e-8)


@pytest.mark.one_in(6)
@pytest.mark.one_sample_in(2)
@pytest.mark.parametrize("cases", groups(CASES, 4), ids=lambda cases: str(cases[0]))
def test_derivatives_are_eager_derivatives(cases: list[Case]):
    check(cases)


@pytest.mark.one_in(8)  # each takes the interpreter 15 s
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_derivatives_of_convolutions(case: Case):
    check([case])
