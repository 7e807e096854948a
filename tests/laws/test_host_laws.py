"""Nothing of a program on a GPU runs on the host but what gpu.md says, and Python."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.core.errors import HostStepError
from functrans.lowering.passes.narrow_numbers import in_bytes
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.host_steps import check_host_steps
from functrans.lowering.triton.libraries.replace import replace_by_library_calls
from functrans.lowering.triton.lower import IN_BYTES
from functrans.lowering.triton.program import write_program
from tests.laws.primitives import Case, all_cases, differentiable_cases, groups, variants
from tests.laws.programs import derivatives_of, together, values_of

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "gpu.md"
ROWS = [line.split("|")[1] for line in PAGE.read_text().split("\n## On the host\n")[1]
        .split("\n## ")[0].splitlines() if line.startswith("| ")][2:]

def documented() -> set[tuple[str, str]]:
    """Primitives and dtypes of the table; `any` stands for all of either."""
    found = set()
    for row in ROWS:
        names = re.findall(r"`(\w+)`", row)
        of = row.partition(" of ")[2] or row.partition(" on ")[2]
        if not of:
            found |= {(name, "any") for name in names}
        elif "any operation" in row:
            found |= {("any", name) for name in names}
        else:
            found |= {(names[0], name) for name in names[1:]}
    return found


TABLE = documented()


def refused(fun, args) -> bool:
    """Whether the program is refused, for a GPU that has the libraries."""
    jaxpr = ft.make_jaxpr(fun)(*args).jaxpr.hoist_consts()
    if jaxpr.decided_names:  # which a bounded program runs
        return False
    try:
        with ft.config.host_steps("error"), warnings.catch_warnings():
            warnings.simplefilter("error")
            written = replace_by_library_calls(simplify(in_bytes(jaxpr, IN_BYTES)),
                                               lambda library: True)
            check_host_steps(write_program(written).steps, warns=True)
    except HostStepError:
        return True
    return False


def is_documented(case: Case) -> bool:
    outs = ft.make_jaxpr(lambda *xs: case.outs(*xs))(*case.args).jaxpr.out_avals
    names = {"any", *[x.dtype.name for x in (*case.args, *outs)]}
    return any((name, dtype) in TABLE for name in (case.primitive.name, "any") for dtype in names)


def values(case):
    fun, args = values_of(case)
    return (lambda *xs: fun(*xs)), args


ON_GPUS = [c for c in all_cases() if (c.primitive.name, "any") not in TABLE]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("cases", groups(ON_GPUS, 8), ids=lambda cases: str(cases[0]))
def test_values_are_computed_by_the_gpu(cases: list[Case]):
    assert not refused(*together([values(case) for case in cases]))


@pytest.mark.one_in(16)
@pytest.mark.parametrize("cases", groups([
    c for c in differentiable_cases() if (c.primitive.name, "any") not in TABLE], 4),
    ids=lambda cases: str(cases[0]))
def test_derivatives_are_computed_by_the_gpu(cases: list[Case]):
    assert not refused(*together([derivatives_of(case, twice=True) for case in cases]))


@pytest.mark.one_in(16)
@pytest.mark.parametrize("cases", groups(all_cases(), 100), ids=lambda cases: str(cases[0]))
def test_dtypes_are_those_of_the_gpu(cases: list[Case]):
    for case in cases:
        for found in variants(case):
            assert not refused(lambda *xs, found=found: found.outs(*xs), found.args) \
                or is_documented(found), [a.dtype for a in found.args]


@pytest.mark.parametrize("row", sorted(TABLE))
def test_the_table_names_nothing_that_has_a_kernel(row):
    name, dtype = row
    found = (v for case in all_cases() if name in (case.primitive.name, "any")
             for v in (variants(case) if dtype != "any" else [case])
             if dtype == "any" or dtype in {a.dtype.name for a in v.args})
    assert any(refused(lambda *xs, v=v: v.outs(*xs), v.args) for v in found)


@pytest.mark.parametrize("n", [2, 32, 33, 70])
def test_gradients_of_windows_of_any_size_are_computed_by_the_gpu(n):
    x = np.arange(80, dtype="f")
    assert not refused(ft.grad(
        lambda x: (lax.reduce_window(x, -np.inf, lax.max, (n,), (1,), "VALID") ** 2).sum()), [x])


def test_a_step_of_the_host_would_be_found():
    x = np.eye(3, dtype="f")
    assert refused(lambda x: ft.numpy.linalg.eigvals(x), [x])
    assert not refused(lambda x: ft.pure_callback(
        lambda v: v, ft.ShapeDtypeStruct(x.shape, x.dtype), x), [x])
