"""Factorizations and systems of small matrices as kernels, against NumPy, and as they compile."""

import itertools
import re
import warnings
from functools import partial

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import HostStepWarning
from functrans.core.evaluate import interpret
from functrans.lax.linalg import cholesky, lu, triangular_solve
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.schedule.target import HOPPER, cuda_target
from functrans.lowering.triton.emulator.interpret import InterpretedProgram
from functrans.lowering.triton.libraries.complex_systems import is_real_and_fast
from functrans.lowering.triton.libraries.replace import replace_by_library_calls
from functrans.lowering.triton.libraries.small_systems import is_small, is_small_and_fast
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.program import write_program
from functrans.lowering.triton.steps.spec import HostStep, Launch
from tests.triton.emulated import check, program_of

la = jnp.linalg
RNG = np.random.default_rng(0)
SIZES = [1, 2, 3, 5, 8, 17, 33]


def matrices(*lead, n, dtype="float32"):
    return (RNG.normal(size=(*lead, n, n)) + 2 * np.sqrt(n) * np.eye(n)).astype(dtype)


def definite(*lead, n, dtype="float32"):
    x = RNG.normal(size=(*lead, n, n))
    return (x @ x.swapaxes(-1, -2) / n + np.eye(n)).astype(dtype)


def run(fun, *args, tolerance=1e-4):
    """No step on the host, and the values of NumPy."""
    program = check(fun, *args, tolerance=tolerance)
    assert not any(isinstance(step, HostStep) for step in program.steps)
    return program


def values(fun, *args):
    jaxpr, program, _ = program_of(fun, *args)
    return InterpretedProgram(program)(args), interpret(jaxpr, args)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-4), ("float64", 1e-11)])
@pytest.mark.parametrize("n", SIZES)
def test_factors_solutions_and_determinants(n, dtype, tolerance):
    a, p, b = (f(3, n=n, dtype=dtype) for f in (matrices, definite, matrices))
    run(lambda a: (cholesky(a, symmetrize_input=False), *lu(a)), p, tolerance=tolerance)
    run(lambda a, b: (la.solve(a, b[..., :2]), la.inv(a), la.det(a / 4), *la.slogdet(a)), a, b,
        tolerance=tolerance)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("n, sides, dtype", [(1, 300, "float32"), (5, 1025, "float32"),
                                             (16, 600, "float32"), (7, 257, "float64")])
@pytest.mark.parametrize("left", [True, False])
def test_triangles_with_many_right_hand_sides(n, sides, dtype, left):
    a = matrices(2, n=n, dtype=dtype)
    b = RNG.normal(size=(2, n, sides) if left else (2, sides, n)).astype(dtype)
    for lower, transpose_a, unit_diagonal in itertools.product([True, False], repeat=3):
        solve = partial(triangular_solve, left_side=left, lower=lower, transpose_a=transpose_a,
                        unit_diagonal=unit_diagonal)
        program = run(solve, a / n + np.eye(n, dtype=dtype), b,
                      tolerance=1e-4 if dtype == "float32" else 1e-11)
        (step,) = [s for s in program.steps if isinstance(s, Launch)]
        assert "z0 = " in program.sources[step.module]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("n, k", [(3, 1), (5, 4), (17, 3)])
@pytest.mark.parametrize("left, lower, transpose_a, unit",
                         [*itertools.product((0, 1), repeat=4)])
def test_triangular_systems(left, lower, transpose_a, unit, n, k):
    """NaN in what is not read stays unseen."""
    a = matrices(2, n=n) / 4
    b = RNG.normal(size=(2, n, k) if left else (2, k, n)).astype("f")
    hidden = np.triu(np.ones((n, n)), 1) if lower else np.tril(np.ones((n, n)), -1)
    hidden = hidden + np.eye(n) if unit else hidden
    flags = {"left_side": left, "lower": lower, "transpose_a": transpose_a, "unit_diagonal": unit}

    def fun(a, b):
        return triangular_solve(a, b, **flags)

    noisy = np.where(hidden, np.float32(np.nan), a)
    (found,), (expected,) = values(fun, noisy, b)[0], values(fun, a, b)[1]
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4)
    run(fun, a, b)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("n", [33, 48, 50, 64])
def test_factors_by_panels(n):
    noisy = definite(2, n=n) + np.triu(np.full((n, n), np.float32(np.nan)), 1)
    (found,), _ = values(lambda a: cholesky(a, symmetrize_input=False), noisy)
    expected = np.linalg.cholesky(np.tril(noisy) + np.tril(noisy, -1).swapaxes(1, 2))
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


@pytest.mark.parametrize("m, n", [(4, 7), (7, 4), (1, 5), (9, 2)])
def test_factors_of_rectangles(m, n):
    run(lambda a: lu(a), RNG.normal(size=(2, m, n)).astype("f"))


def test_pivots_are_those_of_lapack():
    """The first of equal ones, of the rows as they stand."""
    a = np.array([[1, 2, 3, 0], [-4, 1, 1, 2], [4, 0, 1, 1], [4, 4, -4, 1]], "f")
    stack = np.stack([a, a[::-1], np.abs(a), np.ones((4, 4), "f")])
    (f, p, o), (ef, ep, eo) = values(lambda a: lu(a), stack)
    np.testing.assert_array_equal(p, ep)
    np.testing.assert_array_equal(o, eo)
    np.testing.assert_allclose(f, ef, 1e-6, 1e-6)


def test_what_has_no_factor_is_nan_and_singular_systems_are_not_finite():
    a = definite(3, n=5)
    a[1, 2, 2] = -1
    a[2, 4, 4] = np.nan
    (found,), (expected,) = values(lambda a: cholesky(a, symmetrize_input=False), a)
    np.testing.assert_allclose(found[:2], expected[:2], 1e-5, 1e-6)
    assert np.isnan(found[1:][:, *np.tril_indices(5)]).all()
    assert (found[:, *np.triu_indices(5, 1)] == 0).all()
    large = definite(2, n=40)
    large[1, 30, 30] = -1
    (found,), (expected,) = values(lambda a: cholesky(a, symmetrize_input=False), large)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)
    b = matrices(2, n=4)
    b[1, 2] = b[1, 1]
    found, _ = values(lambda a: (la.solve(a, a[..., :1] + 1), la.det(a), *la.slogdet(a)), b)
    assert np.isfinite(found[0][0]).all() and not np.isfinite(found[0][1]).all()
    np.testing.assert_allclose(found[1][1], 0, atol=1e-3)
    zero, _ = values(lambda a: (*la.slogdet(a), la.det(a)), np.zeros((1, 3, 3), "f"))
    assert [float(x[0]) for x in zero] == [0, -np.inf, 0]


def test_more_sides_than_a_program_has():
    a, b = matrices(2, n=3), RNG.normal(size=(2, 3, 150)).astype("f")
    run(lambda a, b: (la.solve(a, b), triangular_solve(a, b, left_side=True)), a, b)


def test_lanes_and_derivatives():
    a, b = definite(4, n=3), RNG.normal(size=(4, 3)).astype("f")

    def fun(a, b):
        factor = la.cholesky(a)
        z = triangular_solve(factor, b, left_side=True, lower=True)
        return z @ z + jnp.log(jnp.diagonal(factor)).sum() + b @ la.solve(a, b) + la.slogdet(a)[1]

    run(lambda a, b: ft.vmap(ft.value_and_grad(fun))(a, b), a, b, tolerance=1e-3)
    run(lambda a, b: ft.vmap(lambda a, b: ft.jvp(ft.grad(fun), (a, b), (a, b)))(a, b), a, b,
        tolerance=1e-3)


@pytest.mark.thorough
@pytest.mark.parametrize("lanes", [0, 16])
def test_a_filter_is_one_kernel(lanes):
    """A loop whose body solves small systems can be one, whose programs have lanes of their own."""
    a, noise = 0.1 * matrices(n=4), definite(n=4)

    def filtered(ys, scale):
        q = scale * noise

        def step(carry, y):
            m, p = carry
            p = a @ p @ a.T + q
            s = p + q
            v = y - a @ m
            gain = la.solve(s, p).T
            return (a @ m + gain @ v, p - gain @ p), v @ la.solve(s, v) + la.slogdet(s)[1]

        return ft.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), ys)[1].sum()

    lead = (lanes,) * bool(lanes)
    fun = ft.vmap(filtered) if lanes else filtered
    program = run(fun, RNG.normal(size=(*lead, 5, 4)).astype("f"),
                  RNG.uniform(1, 2, lead).astype("f"), tolerance=1e-3)
    (note,) = [note for note in program.notes if "one kernel" in note]
    assert int(note.split()[-2]) > 1 if lanes else int(note.split()[-2]) == 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("left", [True, False])
def test_lanes_of_a_loop_with_one_matrix(left):
    """They are right-hand sides, which programs share out."""
    a = 0.1 * matrices(n=3) + np.eye(3, dtype="f")

    def walked(x):
        def step(x, _):
            b = x[:, None] if left else x[None]
            return jnp.sin(triangular_solve(a, b, left_side=left, lower=True)).reshape(3), None

        return ft.lax.scan(step, x, None, length=4)[0]

    program = run(ft.vmap(walked), RNG.normal(size=(64, 3)).astype("f"))
    (programs,) = [found[1] for note in program.notes
                   if (found := re.search(r"one kernel of (\d+) programs", note))]
    assert int(programs) > 1


def test_symbolic_stacks_share_a_kernel():
    def text(count):
        s = ft.ShapeDtypeStruct((count, 5, 5), "float32")
        closed = ft.make_jaxpr(lambda a: cholesky(a, symmetrize_input=False))(s)
        return [t for t in write_program(simplify(closed.jaxpr)).sources if "cholesky" in t]

    assert text(1000) == text(2000) != text(1)


# --------------------------------------------------------------------------- the choice


def equation(fun, *shapes, dtype="float32"):
    args = [ft.ShapeDtypeStruct(s, dtype) for s in shapes]
    return simplify(ft.make_jaxpr(fun)(*args).jaxpr).eqns[-1]


def factor(a):
    return cholesky(a, symmetrize_input=False)


@pytest.mark.parametrize("dtype, tolerance", [("complex64", 1e-4), ("complex128", 1e-12)])
def test_complex_systems_are_real_ones_of_twice_as_many_rows(dtype, tolerance):
    def solutions(a, b):
        return jnp.linalg.solve(a, b), ft.vmap(jnp.linalg.solve, (0, None))(a, b[0])

    a = (definite(64, n=3) + 1j * matrices(64, n=3)).astype(dtype)
    b = (matrices(64, n=3) - 1j * matrices(64, n=3)).astype(dtype)[..., :2]
    jaxpr = ft.make_jaxpr(solutions)(a, b).jaxpr.hoist_consts()
    program = write_program(replace_by_library_calls(simplify(jaxpr), lambda name: True))
    assert [s.kernel for s in program.steps if isinstance(s, Launch)].count("solve") == 1
    assert not any(isinstance(s, HostStep) for s in program.steps)
    for x, y in zip(InterpretedProgram(program)([a, b]), interpret(jaxpr, [a, b]), strict=True):
        np.testing.assert_allclose(x, y, tolerance, tolerance)


def test_libraries_take_large_complex_systems():
    assert is_real_and_fast(equation(jnp.linalg.solve, (4096, 8, 8), (4096, 8, 2),
                                     dtype="complex64"), HOPPER)
    assert not is_real_and_fast(equation(jnp.linalg.solve, (4, 40, 40), (4, 40, 2),
                                         dtype="complex64"), HOPPER)


def test_libraries_take_what_kernels_do_not():
    assert is_small_and_fast(equation(factor, (4096, 16, 16)), HOPPER)
    assert is_small_and_fast(equation(factor, (4096, 64, 64)), HOPPER)
    assert is_small_and_fast(equation(la.inv, (32, 64, 64)), HOPPER)
    factors = equation(lambda a: lu(a)[0], (4096, 64, 64))
    assert is_small(factors) and not is_small_and_fast(factors, HOPPER)
    assert is_small_and_fast(equation(la.solve, (100, 4, 4), (100, 4, 1)), HOPPER)
    assert not is_small_and_fast(equation(factor, (4096, 65, 65)), HOPPER)
    assert not is_small(equation(factor, (4, 4), dtype="complex64"))
    # a GPU of few multiprocessors: the library is no slower there
    few = cuda_target(90, 4)
    assert not is_small_and_fast(equation(factor, (4096, 64, 64)), few)

    def replaced(shape, target, is_there=lambda name: True):
        closed = ft.make_jaxpr(factor)(ft.ShapeDtypeStruct(shape, "float32"))
        return str(replace_by_library_calls(simplify(closed.jaxpr), is_there, target))

    assert "cholesky" in replaced((4096, 16, 16), HOPPER)
    assert "library" in replaced((4096, 64, 64), few)
    with warnings.catch_warnings():  # without a library there is nothing to say
        warnings.simplefilter("error", HostStepWarning)
        assert "cholesky" in replaced((4096, 64, 64), few, lambda name: False)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 4, 64])
def test_kernels_compile(n, dtype):
    s = ft.ShapeDtypeStruct

    def fun(a, b):
        return (cholesky(a, symmetrize_input=False), lu(a), la.solve(a, b), la.det(a),
                la.slogdet(a + 1), triangular_solve(a, b, left_side=True, lower=True),
                triangular_solve(a, a, transpose_a=True))

    jaxpr = simplify(ft.make_jaxpr(fun)(s((100, n, n), dtype), s((100, n, 3), dtype)).jaxpr)
    program = write_program(jaxpr)
    assert sum(isinstance(step, Launch) for step in program.steps) >= 6
    assert all(binaries(program, HOPPER))
