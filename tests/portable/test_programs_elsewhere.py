"""Exported programs and the laws of primitives on ARM in qemu, and with the vectors of AVX2."""

from pathlib import Path

import pytest

import functrans as ft
from functrans.core.errors import ExportError
from tests.export.c_programs import PROGRAMS
from tests.laws.primitives import Case, all_cases, differentiable_cases, groups
from tests.laws.programs import derivatives_of, together, values_of
from tests.laws.test_compiled_laws import BY_DIFFERENCES
from tests.laws.test_primitive_laws import assert_same
from tests.portable.exported import run
from tests.portable.machines import ARM, ARM_MISSING, ARM_TOOLS, BY_GCC, X86_AVX2
from tests.portable.machines import missing as missing_tools

pytestmark = pytest.mark.portable

NOT_IN_C = ("calls a Python function", "raises an error in Python", "LAPACK", "computes nothing")
"""Why a sample is no C program, in the words of the error."""


@pytest.fixture(autouse=True)
def tools():
    assert not missing_tools(ARM_TOOLS), ARM_MISSING


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
@pytest.mark.parametrize("machine", BY_GCC, ids=str)
def test_exported_programs(machine, program, tmp_path, record_property):
    program.check(run(machine, program.fun, program.args, tmp_path, openmp=True),
                  program.expected())
    record_property(f"exported programs on {machine}", 1)


def first(cases: list[Case]) -> str:
    return str(cases[0])


def results_on(machine, programs, folder: Path):
    """What each computes there; None for one that is no C program."""
    fun, args = together(programs)
    try:
        outs = run(machine, fun, args, folder)
    except ExportError as error:
        if len(programs) == 1:
            assert any(why in str(error) for why in NOT_IN_C), error
            return [None]
        return [results_on(machine, [p], folder / str(k))[0] for k, p in enumerate(programs)]
    return ft.tree.unflatten(ft.tree.structure(ft.eval_shape(fun, *args)), outs)


def exported(machine, cases, programs, folder, record_property):
    """The cases that are C programs, with their functions, arguments and results there."""
    results = results_on(machine, programs, folder)
    found = [(*program, out) for program, out in zip(programs, results, strict=True)
             if out is not None]
    record_property(f"samples on {machine}", len(found))
    record_property(f"samples without C on {machine}", len(cases) - len(found))
    return found


@pytest.mark.parametrize("cases", groups(all_cases(), 12), ids=first)
@pytest.mark.parametrize("machine", [ARM, X86_AVX2], ids=str)
def test_values_are_eager_values(machine, cases: list[Case], tmp_path, record_property):
    programs = [values_of(case) for case in cases]
    for fun, args, found in exported(machine, cases, programs, tmp_path, record_property):
        for actual, right, tolerance in zip(found, fun(*args), (1e-5, 1e-4), strict=True):
            assert_same(actual, right, tolerance)


@pytest.mark.parametrize("cases", groups(differentiable_cases(), 12), ids=first)
@pytest.mark.parametrize("machine", [ARM, X86_AVX2], ids=str)
def test_derivatives_are_eager_derivatives(machine, cases: list[Case], tmp_path, record_property):
    programs = [derivatives_of(case, twice=True) for case in cases]
    tolerance = 2e-5 if cases[0].primitive.name in BY_DIFFERENCES else 1e-8
    for fun, args, found in exported(machine, cases, programs, tmp_path, record_property):
        for actual, right in zip(found, fun(*args), strict=True):
            assert_same(actual, right, tolerance)
