"""Batches of small products and of short rows that are gathered, as code of their own."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

RNG = np.random.default_rng(0)
BATCH = 100
EQUATIONS = ("bij,bj->bi", "bji,bj->bi", "bj,bij->bi", "bij,bj->ib", "bij,bkj->bik", "bij,bjk->bki")


def text_of(fun, *args):
    return ft.jit(fun).lower(*args).compile().as_text()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_products(equation, dtype):
    """In one program, so that a compiler starts once."""
    sizes = [{"b": BATCH, "i": i, "j": j, "k": 3} for i, j in (
        (3, 3), (2, 5), (4, 4), (8, 8), (16, 8), (5, 16), (3, 1), (7, 7), (13, 2))]
    terms = equation.split("->")[0].split(",")
    args = [[RNG.standard_normal([n[c] for c in t]).astype(dtype) for t in terms] for n in sizes]

    def products(args):
        return [jnp.einsum(equation, *a, precision="highest") for a in args]

    for found, a in zip(ft.jit(products)(args), args, strict=True):
        expected = np.einsum(equation, *(x.astype(np.longdouble) for x in a))
        np.testing.assert_allclose(found, expected.astype(dtype), rtol=1e-4, atol=1e-4)


def test_products_by_vectors_are_no_calls_of_the_library():
    a, x = RNG.standard_normal((BATCH, 3, 3)), RNG.standard_normal((BATCH, 3))
    assert ".batch1 = 100" not in text_of(ft.vmap(jnp.matmul), a, x)
    assert ".batch1 = 100" in text_of(ft.vmap(jnp.matmul), np.ones((BATCH, 32, 32)),
                                      np.ones((BATCH, 32)))


def test_short_rows_of_places_are_one_line():
    """Corners of triangles: vectors are full, and not three elements long."""
    values, corners = RNG.standard_normal(50), RNG.integers(0, 50, (40, 3))
    text = text_of(lambda v, c: jnp.where(v > 0, v, 0.5)[c], values, corners)
    assert "i < 120" in text
    assert "i < 3;" not in text
