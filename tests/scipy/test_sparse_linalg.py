"""Krylov methods: the solutions of dense solvers and their derivatives, on matrices and trees."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, TreeMismatchError
from functrans.scipy.sparse import linalg

RNG = np.random.default_rng(0)
N = 8
Q = RNG.standard_normal((N, N))
B = RNG.standard_normal(N)
MATRICES = {"cg": Q @ Q.T + np.eye(N), "bicgstab": Q + 4 * np.eye(N), "gmres": Q + 4 * np.eye(N)}
DTYPES = {"float32": 2e-5, "float64": 1e-10, "complex64": 2e-5, "complex128": 1e-10}


def system(name, dtype):
    a, b = MATRICES[name], B
    if dtype.startswith("complex"):
        skew = np.triu(RNG.standard_normal((N, N)), 1)
        a, b = a + 0.5j * (skew - skew.T), b + 1j * B[::-1]
    return a.astype(dtype), b.astype(dtype)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MATRICES)
def test_solutions(name, dtype):
    (a, b), near = system(name, dtype), DTYPES[dtype]
    solve = ft.jit(lambda a, b: getattr(linalg, name)(a, b, tol=near / 10)[0])
    found = solve(a, b)
    assert found.dtype == dtype
    assert np.linalg.norm(a @ found - b) <= near * np.linalg.norm(b)
    v, back = ft.vjp(solve, a, b)
    expected = ft.vjp(jnp.linalg.solve, a, b)[1](np.asarray(v))
    for x, y in zip(back(v), expected, strict=True):
        assert np.linalg.norm(x - y) <= 100 * near * np.linalg.norm(y)


@pytest.mark.parametrize("name", MATRICES)
def test_options(name):
    a, b = system(name, "float64")
    solve = getattr(linalg, name)
    scale = np.diag(1 / np.diag(a))
    exact = np.linalg.solve(a, b)
    for options in ({"M": scale}, {"M": lambda r: scale @ r}, {"x0": exact + 0.1},
                    {"atol": 1e-9, "tol": 0.0}):  # fmt: skip
        found, _ = solve(lambda x: a @ x, b, **{"tol": 1e-10} | options)
        np.testing.assert_allclose(found, exact, atol=1e-7)
    np.testing.assert_array_equal(solve(a, b, x0=exact + 1, maxiter=0)[0], exact + 1)
    assert not solve(a, np.zeros(N))[0].any()
    lanes = ft.vmap(lambda b: solve(a, b, tol=1e-10)[0])(np.stack([b, 1e3 * b, 0 * b]))
    np.testing.assert_allclose(lanes, np.stack([exact, 1e3 * exact, 0 * exact]), atol=1e-5)


@pytest.mark.parametrize("name", MATRICES)
def test_trees(name):
    b = {"a": jnp.arange(3.0), "b": (jnp.ones((2, 2)),)}
    found, _ = getattr(linalg, name)(lambda t: {"a": 2 * t["a"], "b": (4 * t["b"][0],)}, b)
    np.testing.assert_allclose(found["a"], np.arange(3) / 2, atol=1e-6)
    np.testing.assert_allclose(found["b"][0], np.full((2, 2), 0.25), atol=1e-6)


def test_restarts():
    a = 2 * np.eye(30) + np.diag(np.ones(29), 1)
    found, info = linalg.gmres(a, np.ones(30), restart=4, tol=1e-9)
    np.testing.assert_allclose(found, np.linalg.solve(a, np.ones(30)), atol=1e-7)
    assert info == 0


def test_mistakes_are_told():
    with pytest.raises(ShapeError, match=r"the matrix has shape \(2, 3\)"):
        linalg.cg(np.ones((2, 3)), np.ones(2))
    with pytest.raises(ShapeError, match="x0 has shape"):
        linalg.cg(np.eye(2), np.ones(2), np.ones(3))
    with pytest.raises(TreeMismatchError, match="x0"):
        linalg.bicgstab(np.eye(2), np.ones(2), [np.ones(2)])
    with pytest.raises(ArgumentError, match="solve_method"):
        linalg.gmres(np.eye(2), np.ones(2), solve_method="other")
