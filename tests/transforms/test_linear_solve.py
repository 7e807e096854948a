"""custom_linear_solve: its derivatives are those of the solution, whatever finds it."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import NotDifferentiableError, ShapeError, TreeMismatchError

RNG = np.random.default_rng(0)
A = RNG.standard_normal((5, 5)) + 4 * np.eye(5)
B = RNG.standard_normal(5)
MANY_A, MANY_B = np.stack([A, A.T, 2 * A]), np.stack([B, -B, B + 1])


def blind_solve(matvec, b):
    """By the dense matrix, in a loop that reverse mode could not go through: it has no value."""
    matrix = lax.stop_gradient(ft.vmap(matvec, out_axes=1)(jnp.eye(5, dtype=b.dtype)))
    return ft.pure_callback(np.linalg.solve, b, matrix, b, vmap_method="sequential")


def by_rule(a, b):
    return lax.custom_linear_solve(lambda x: a @ x, b, blind_solve, blind_solve)


TRANSFORMED = {
    "value": lambda f: f,
    "jvp": lambda f: lambda a, b: ft.jvp(f, (a, b), (a.T, b + 1)),
    "jacfwd": lambda f: ft.jacfwd(f, (0, 1)),
    "jacrev": lambda f: ft.jacrev(f, (0, 1)),
    "second": lambda f: ft.jacfwd(ft.grad(lambda a, b: jnp.sin(f(a, b)).sum(), 1), (0, 1)),
    "twice_back": lambda f: ft.jacrev(ft.grad(lambda a, b: jnp.sin(f(a, b)).sum()), 1),
    "linearize": lambda f: lambda a, b: ft.linearize(f, a, b)[1](a.T, b),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(lambda a, b: f(a, b).sum()), (0, 1)),
}


@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_are_those_of_the_solution(name, compiled):
    around = ft.jit if compiled else lambda f: f
    expected = TRANSFORMED[name](jnp.linalg.solve)(A, B)
    found = around(TRANSFORMED[name](by_rule))(jnp.asarray(A), jnp.asarray(B))
    for x, y in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_lanes_have_their_own_systems(axes):
    a, b = A if axes[0] is None else MANY_A, B if axes[1] is None else MANY_B

    def gradients(f):
        return ft.vmap(ft.grad(lambda a, b: (f(a, b) ** 2).sum(), (0, 1)), axes)

    for x, y in zip(gradients(by_rule)(a, b), gradients(jnp.linalg.solve)(a, b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)


def test_symmetric_systems_of_trees_with_something_else():
    def solve(matvec, b):
        return {"x": b["x"] / 2, "y": b["y"] / 3}, 7

    def system(scale, b):
        return lax.custom_linear_solve(
            lambda v: {"x": 2 * scale * v["x"], "y": 3 * scale * v["y"]}, b, solve,
            symmetric=True, has_aux=True)  # fmt: skip

    b = {"x": jnp.ones(2), "y": jnp.ones(())}
    (found, aux), pullback = ft.vjp(lambda s: system(s, b), jnp.float32(1.0))
    assert aux == 7 and found["x"].tolist() == [0.5, 0.5]
    np.testing.assert_allclose(pullback((found, jnp.zeros((), "int32")))[0], -0.5 - 1 / 9, 1e-6)


def test_integers_in_the_matrix_have_no_tangents():
    index = np.array([2, 0, 1])

    def solution(weight, b):
        return lax.custom_linear_solve(lambda x: weight * x[index], b,
                                       lambda f, b: (b / weight)[np.argsort(index)],
                                       lambda f, b: b[index] / weight)  # fmt: skip

    value = ft.grad(lambda w, b: (solution(w, b) * np.arange(3)).sum(), (0, 1))
    w, b = jnp.array([1.0, 2.0, 4.0]), jnp.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(value(w, b)[1], np.arange(3)[index] / np.asarray(w), rtol=1e-6)


def test_exported_programs_keep_the_rule():
    def loss(a, b):
        return (lax.custom_linear_solve(lambda x: a * x, b, lambda f, b: b / a, symmetric=True)
                ** 2).sum()  # fmt: skip

    a, b = np.float32(2.0), np.arange(3, dtype=np.float32)
    data = ft.export.export(ft.grad(loss))(a, b).serialize()
    found = ft.export.deserialize(data).call(a, b)
    np.testing.assert_allclose(found, ft.grad(loss)(a, b), rtol=1e-6)
    primal = ft.export.deserialize(ft.export.export(loss)(a, b).serialize())
    np.testing.assert_allclose(primal.call(a, b), loss(a, b), rtol=1e-6)


def test_mistakes_are_told():
    b = jnp.ones(3)
    with pytest.raises(TreeMismatchError, match="the result of matvec"):
        lax.custom_linear_solve(lambda x: (x, x), b, lambda f, b: b)
    with pytest.raises(ShapeError, match="the result of solve holds"):
        lax.custom_linear_solve(lambda x: x, b, lambda f, b: b[:2])
    with pytest.raises(TreeMismatchError, match="is no pair"):
        lax.custom_linear_solve(lambda x: x, b, lambda f, b: b, has_aux=True)
    with pytest.raises(NotDifferentiableError, match="without transpose_solve"):
        ft.grad(lambda b: lax.custom_linear_solve(lambda x: x, b, lambda f, b: b).sum())(b)
