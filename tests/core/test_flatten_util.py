"""ravel_pytree: a tree as a vector and back."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ShapeError
from functrans.flatten_util import ravel_pytree

TREES = [
    {"a": np.arange(6.0).reshape(2, 3), "b": [np.float64(7.0), np.zeros((0, 2))]},
    (np.ones(2, np.float32), np.arange(3, dtype=np.int32), True),
    [],
    np.float32(3.0),
]


@pytest.mark.parametrize("tree", TREES, ids=range(len(TREES)))
def test_round_trips(tree):
    flat, unravel = ravel_pytree(tree)
    leaves = [np.asarray(x) for x in ft.tree.leaves(tree)]
    assert flat.shape == (sum(x.size for x in leaves),)
    back = unravel(flat)
    assert ft.tree.structure(back) == ft.tree.structure(tree)
    for x, y in zip(ft.tree.leaves(back), leaves, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_inside_transformations():
    tree = {"w": jnp.arange(4.0).reshape(2, 2), "b": jnp.ones(2)}
    flat, unravel = ravel_pytree(tree)

    def loss(v):
        t = unravel(v)
        return (t["w"] @ t["b"]).sum()

    assert ft.hessian(loss)(flat).shape == (6, 6)
    np.testing.assert_array_equal(
        ft.jit(lambda t: ravel_pytree(ft.grad(lambda t: loss(ravel_pytree(t)[0]))(t))[0])(tree),
        ft.grad(loss)(flat))  # fmt: skip
    with pytest.raises(ShapeError, match="the tree has 6 elements"):
        unravel(jnp.zeros(5))
