"""Programs and their equations as text."""

import functrans as ft
import functrans.numpy as jnp


def test_an_equation_alone_is_printed_with_types_and_operands():
    jaxpr = ft.make_jaxpr(lambda x: jnp.sin(x) * x)(jnp.ones(3))
    assert [str(eqn) for eqn in jaxpr.eqns] == ["b:f32[3] = sin a", "c:f32[3] = mul a b"]
