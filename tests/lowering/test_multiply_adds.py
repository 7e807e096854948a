"""Products and sums inside of loops round once, alike in a lane among others and alone."""

from fractions import Fraction

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.lowering.c.isa import host_isa
from functrans.lowering.passes.multiply_adds import contract_products
from functrans.lowering.passes.pipeline import simplify
from functrans.primitives.fused import fma, fma_p

RNG = np.random.default_rng(0)
X = np.linspace(0.1, 2, 40)


def count(fun, *args):
    """How many multiply-adds the loops of a program have, and how many equations are outside."""
    contracted = contract_products(simplify(ft.jit(fun).lower(*args).jaxpr))
    assert contract_products(contracted) is contracted

    def of(jaxpr):
        return sum((eqn.primitive is fma_p) + sum(map(of, ft.core.jaxpr.subjaxprs(eqn)))
                   for eqn in jaxpr.eqns)

    return of(contracted)


def loop(step):
    return lambda x: lax.fori_loop(0, 5, lambda _, s: step(s, x), x)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("step", "expected"), [
    (lambda s, x: s * x + x, 1), (lambda s, x: x - s * x, 1), (lambda s, x: s * x - x, 1),
    (lambda s, x: s**2 + x**2, 1), (lambda s, x: 2.0 - s * 0.25, 1),
    (lambda s, x: s * s - (x - s) * s, 0),  # is 0 where both are equal
    (lambda s, x: jnp.where(s * x > 1, s * x, 0) + x, 0),  # the product is read twice
])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_contracted(step, expected, dtype):
    x = X.astype(dtype)
    assert count(loop(step), x) == expected
    found, alone = ft.jit(ft.vmap(loop(step)))(x), ft.jit(loop(step))
    np.testing.assert_array_equal(found, [alone(a) for a in x])
    np.testing.assert_allclose(found, ft.vmap(loop(step))(x), rtol=1e-4)


def test_outside_of_loops_each_operation_rounds():
    assert count(lambda x: x * x + x, X) == 0
    assert count(loop(lambda s, x: (s * x + x).astype(s.dtype)), X.astype("float16")) == 0


def test_differences_of_equal_products_are_zero():
    """The imaginary part of a number times its conjugate."""
    def step(s, x):
        return s * x - x * s
    assert not np.asarray(ft.jit(loop(step))(X)).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_rounding(dtype):
    """What a product lacks, of which nothing is left where it rounds itself."""
    x, y = (RNG.uniform(1, 2, 200).astype(dtype) for _ in range(2))
    exact = [float(Fraction(float(a)) * Fraction(float(b)) - Fraction(float(a * b)))
             for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(fma(x, y, -(x * y)), np.array(exact, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_loops_round_once(dtype):
    x = X.astype(dtype)
    expected = x
    for _ in range(5):
        expected = np.asarray(fma(expected, x, x)) if host_isa().fma else expected * x + x
    step = loop(lambda s, x: s * x + x)
    np.testing.assert_array_equal(ft.jit(ft.vmap(step))(x), expected)
    np.testing.assert_array_equal(ft.jit(step)(x), expected)
