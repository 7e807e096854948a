"""Small systems written out give what the library gives."""

from __future__ import annotations

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.core.evaluate import interpret
from functrans.lowering.passes.small_systems import write_out_systems
from functrans.primitives.solve import solve_p, triangular_solve_p
from tests.lowering.test_passes import program_of

rng = np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_solutions(n):
    a = rng.normal(size=(5, n, n))
    a[0, 0, 0] = 0  # rows are exchanged
    b = rng.normal(size=(5, n, 2))
    before, _ = program_of(ft.numpy.linalg.solve, a, b)
    after = write_out_systems(before)
    assert not any(eqn.primitive is solve_p for eqn in after.eqns)
    if n > 1:
        np.testing.assert_allclose(interpret(after, [a, b])[0], np.linalg.solve(a, b), rtol=1e-9)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("left_side", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("unit_diagonal", [False, True])
def test_triangular_solutions(lower, left_side, transpose_a, unit_diagonal):
    def solve(a, b):
        return lax.linalg.triangular_solve(a, b, left_side=left_side, lower=lower,
                                           transpose_a=transpose_a, unit_diagonal=unit_diagonal)

    a, b = rng.normal(size=(4, 3, 3)) + 3 * np.eye(3), rng.normal(size=(4, 3, 3))
    before, _ = program_of(solve, a, b)
    after = write_out_systems(before)
    assert not any(eqn.primitive is triangular_solve_p for eqn in after.eqns)
    np.testing.assert_allclose(interpret(after, [a, b])[0], interpret(before, [a, b])[0],
                               rtol=1e-12)


def test_singular_systems_are_not_finite():
    a, b = np.ones((2, 2)), np.array([[1.0], [2.0]])
    before, _ = program_of(ft.numpy.linalg.solve, a, b)
    with np.errstate(all="ignore"):
        assert not np.isfinite(interpret(write_out_systems(before), [a, b])[0]).any()
