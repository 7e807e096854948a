"""Programs as libraries ask JAX for them."""

import functrans as ft
import functrans.numpy as jnp
from functrans.as_jax.parts.jaxprs import make_jaxpr


def test_known_and_traced_scalars_make_the_same_program():
    programs = []

    def f(traced):
        for scalar in (traced, jnp.array(2.0)):
            programs.append(make_jaxpr(lambda x, s=scalar: x * s + 1.0)(3.0))
        return traced

    ft.jit(f)(2.0)
    of_traced, of_known = programs
    assert str(of_traced.jaxpr) == str(of_known.jaxpr)
    assert len(of_traced.consts) == len(of_known.consts) == 1
    assert of_known.consts[0].item() == 2.0
    assert ft.make_jaxpr(lambda x: x * jnp.array(2.0))(3.0).consts == ()
    closed, shape = make_jaxpr(lambda n, x: x * n, 0, return_shape=True)(2, 3.0)
    assert shape == ft.ShapeDtypeStruct((), "float32", weak_type=True) and not closed.consts
