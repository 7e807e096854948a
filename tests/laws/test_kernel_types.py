"""Kernels of every primitive in every dtype, as Triton's own compiler types them.

The interpreter of Triton, which other laws run kernels by, takes what the compiler refuses: an
unsigned number beside a negative one, say.
"""

import pytest

import functrans as ft
from functrans.lowering.passes.narrow_formats import FLOATS, INTEGERS
from tests.laws.network_checks import program_units, to_triton_ir
from tests.laws.primitives import Case, all_cases, differentiable_cases, groups, variants
from tests.laws.programs import derivatives_of, values_of

NARROW = {"f": FLOATS, "i": INTEGERS}
TARGET = "cuda:90"


def check(fun, args, what):
    """All kernels pass the first stage of Triton."""
    types = ft.tree.map(lambda a: ft.ShapeDtypeStruct(a.shape, a.dtype), args)
    for unit in program_units(ft.lower(fun, *types, target=TARGET), TARGET):
        try:
            to_triton_ir(unit)
        except Exception as error:
            error.add_note(f"{unit.name} of {what}\n{unit.source}")
            raise




@pytest.mark.one_in(40)
@pytest.mark.parametrize("cases", groups(all_cases(), 4), ids=lambda cases: str(cases[0]))
def test_values(cases: list[Case]):
    for case in cases:
        for v in variants(case):
            check(lambda *xs, v=v: tuple(v.outs(*xs)), v.args, (case, [a.dtype for a in v.args]))


@pytest.mark.thorough
@pytest.mark.parametrize("cases", groups(all_cases(), 4), ids=lambda cases: str(cases[0]))
def test_values_of_few_bits(cases: list[Case]):
    for case in cases:
        for v in variants(case, NARROW):
            check(lambda *xs, v=v: tuple(v.outs(*xs)), v.args, (case, [a.dtype for a in v.args]))


@pytest.mark.one_in(40)
@pytest.mark.parametrize("cases", groups(all_cases(), 4), ids=lambda cases: str(cases[0]))
def test_mapped_values(cases: list[Case]):
    for case in cases:
        fun, args = values_of(case)
        check(fun, args, case)


@pytest.mark.one_in(80)
@pytest.mark.parametrize("cases", groups(differentiable_cases(), 4),
                         ids=lambda cases: str(cases[0]))
def test_derivatives(cases: list[Case]):
    for case in cases:
        fun, args = derivatives_of(case, twice=True)
        check(fun, args, case)
