"""Gathers and scatters of one element of each row as one-hot selections."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.passes.indexing import rewrite_row_gather_as_one_hot
from functrans.lowering.passes.pipeline import simplify
from tests.triton.emulated import check, kernels_of

RNG = np.random.default_rng(8)
X = RNG.normal(size=(6, 10)).astype("f")
DEEP = RNG.normal(size=(2, 3, 10)).astype("f")
LABELS = np.array([0, 9, -1, -10, 4, 4], "i4")
OUTSIDE = np.array([0, 10, -11, 200, 4, -10], "i4")


def picked(x, y):
    return jnp.take_along_axis(x, y[..., None], -1)


def scores(x, y):
    return picked(ft.nn.log_softmax(x, -1), y)


def primitives(fun, *args):
    jaxpr = rewrite_row_gather_as_one_hot(simplify(ft.make_jaxpr(fun)(*args).jaxpr.hoist_consts()))
    return {eqn.primitive.name for eqn in jaxpr.eqns}


CASES = {
    "labels": (X, LABELS), "outside": (X, OUTSIDE), "two axes": (DEEP, LABELS.reshape(2, 3)),
    "wide labels": (X, LABELS.astype("i8")), "narrow labels": (X, np.abs(LABELS).astype("u1")),
    "halves": (X.astype("float16"), LABELS),
}


@pytest.mark.parametrize("name", CASES)
def test_losses_and_their_gradients(name):
    x, y = CASES[name]
    check(scores, x, y)
    check(ft.grad(lambda x, y: (scores(x, y) * jnp.arange(6.0).reshape(y.shape)[..., None]).sum()),
          x, y)


def test_places_that_are_clipped():
    loss = ft.vmap(lambda x, y: ft.nn.log_softmax(x)[y])
    for y in (LABELS, OUTSIDE):
        check(loss, X, y)
        check(ft.grad(lambda x, y: (loss(x, y) * np.arange(6, dtype="f")).sum()), X, y)


def test_what_is_not_picked_by_itself_stays():
    assert "gather" not in primitives(scores, X, LABELS)
    assert "gather" in primitives(picked, X, LABELS)  # x is there
    assert "gather" not in primitives(lambda x, y: picked(x * 2, y), X, LABELS)
    assert "gather" in primitives(lambda x, y: (x * 2)[y], X, LABELS)  # whole rows
    assert "gather" in primitives(lambda x, y: (x * 2)[jnp.arange(6)[::-1], y], X, LABELS)
    assert "gather" in primitives(scores, np.zeros((2, 5000), "f"), LABELS[:2])
    assert "scatter_add" in primitives(lambda x, y: x.at[jnp.arange(6), y].add(1), X, LABELS)
    assert "scatter_add" not in primitives(ft.grad(lambda x, y: picked(x, y).sum()), X, LABELS)
    assert "scatter_add" in primitives(ft.grad(lambda x, y: x[y].sum()), X, LABELS)


def test_nothing_else_of_a_row_counts():
    x = np.full((2, 4), np.inf, "f")
    x[0, 1], x[1, 2] = 3, -2
    program = check(lambda x, y: picked(x * 2, y), x, np.array([1, 2], "i4"))
    assert len(kernels_of(program)) == 1


def test_a_loss_with_its_gradient_is_one_kernel_and_a_sum():
    x = RNG.normal(size=(4096, 10)).astype("f")
    loss = lambda x, y: -scores(x, y).mean()
    gradients = ft.value_and_grad(lambda x, b, y: loss(x + b, y), (0, 1))
    program = check(gradients, x, X[0], RNG.integers(0, 10, 4096).astype("i4"))
    assert len(kernels_of(program)) == 2
