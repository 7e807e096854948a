"""Derivatives of every primitive in kernels of the Triton backend, which the interpreter runs.

The samples of a primitive are one program: values that they share, such as a constant that several
updates start from, are in its memory once.
"""

import pytest

import functrans as ft
from tests.laws.primitives import Case, differentiable_cases, groups
from tests.laws.programs import derivatives_of
from tests.laws.test_primitive_laws import assert_same


@pytest.mark.parametrize("cases", groups(differentiable_cases()), ids=lambda cases: str(cases[0]))
def test_derivatives_are_eager_derivatives(cases: list[Case]):
    made = [derivatives_of(case, twice=False) for case in cases]

    def everything(*args):
        return [fun(*a) for (fun, _), a in zip(made, args, strict=True)]

    with ft.config.use_backend("triton"):
        found = ft.jit(everything)(*[args for _, args in made])
    for actual, (fun, args) in zip(found, made, strict=True):
        for a, e in zip(actual, fun(*args), strict=True):
            assert_same(a, e, 1e-8)
