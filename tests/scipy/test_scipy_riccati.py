"""Riccati's equations, RQ factors and the form of matrices, beside SciPy's."""

import numpy as np
import pytest
import scipy.linalg as theirs

import functrans as ft
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import linalg
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair, same

rng = np.random.default_rng(1)
A, B = rng.normal(size=(5, 5)), rng.normal(size=(5, 2))
Q, R = np.eye(5) * 2 + 0.3, np.array([[2.0, 0.3], [0.3, 1.0]])
E, S = np.eye(5) + 0.1 * rng.normal(size=(5, 5)), 0.1 * rng.normal(size=(5, 2))
pair = Pair(linalg, theirs)


@pytest.mark.parametrize("name", ["solve_continuous_are", "solve_discrete_are"])
def test_riccati(name):
    pair(name, A, B, Q, R, rtol=1e-8)
    pair(name, A, B, Q, R, E, S, rtol=1e-8)
    pair(name, A + 0.2j * A.T, B * (1 + 0.5j), Q, R, rtol=1e-8)
    solve = getattr(linalg, name)
    check_grads(lambda a, b, q, r: solve(a, b, q + q.T, r + r.T), (
        A[:3, :3], B[:3], Q[:3, :3], R), 1, rtol=1e-4, atol=1e-4)
    both = np.stack([A, 0.5 * A])
    lanes = ft.jit(ft.vmap(lambda a: solve(a, B, Q, R)))(both)
    for got, a in zip(lanes, both, strict=True):
        same(got, getattr(theirs, name)(a, B, Q, R), 1e-8, 1e-8)
    with pytest.raises(ShapeError, match="q has shape"):
        solve(A, B, Q[:4, :4], R)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_rq(shape):
    a = rng.normal(size=shape)
    for mode in ("full", "economic"):
        r, q = linalg.rq(a, mode=mode)
        for ours, golden in zip((r, q), theirs.rq(a, mode=mode), strict=True):
            assert ours.shape == golden.shape
            same(np.abs(ours), np.abs(golden)) if shape[0] <= shape[1] and mode == "economic" \
                else None
        same(r @ q, a)
    assert linalg.rq(a, mode="r").shape == shape
    with pytest.raises(ArgumentError, match="mode"):
        linalg.rq(a, mode="q")


def test_forms():
    symmetric = A + A.T
    assert linalg.issymmetric(symmetric) and not linalg.issymmetric(A)
    assert linalg.issymmetric(symmetric + 1e-9 * A, atol=1e-7)
    assert linalg.ishermitian(symmetric + 1j * (A - A.T))
    band = np.triu(np.tril(A, 1), -3)
    assert tuple(map(int, linalg.bandwidth(band))) == theirs.bandwidth(band)
    pair("eigvalsh_tridiagonal", np.arange(5.0), np.ones(4))
    pair("expm_cond", A / 3, rtol=1e-6)
    w, v = theirs.eig(A)
    pair("cdf2rdf", w, v)
    pair("cdf2rdf", np.stack([w, w]), np.stack([v, v]))
    sketch = linalg.clarkson_woodruff_transform(A, 3, rng=2)
    same(np.asarray(sketch).shape, (3, 5))
