"""Programs and their equations as text."""

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans.core.jaxpr import subjaxprs


def test_an_equation_alone_is_printed_with_types_and_operands():
    jaxpr = ft.make_jaxpr(lambda x: jnp.sin(x) * x)(jnp.ones(3))
    assert [str(eqn) for eqn in jaxpr.eqns] == ["b:f32[3] = sin a", "c:f32[3] = mul a b"]


def test_what_a_jaxpr_has():
    def f(x):
        _, ys = ft.lax.scan(lambda c, y: (c + y, jnp.sin(c)), x[0], x)
        return jnp.where(ys > 0, ys, 2).astype(jnp.float16)

    jaxpr = ft.make_jaxpr(f)(np.ones(3, np.float32)).jaxpr
    assert jaxpr.primitives == {eqn.primitive for eqn in jaxpr.eqns}
    assert [eqn.primitive.name for eqn in jaxpr.calls if eqn.primitive.name == "scan"] == ["scan"]
    assert set(jaxpr.calls) == {eqn for eqn in jaxpr.eqns if any(True for _ in subjaxprs(eqn))}
    assert {np.dtype(np.float32), np.dtype(np.float16), np.dtype(bool)} <= jaxpr.dtypes
    assert np.dtype(np.float64) not in jaxpr.dtypes
    assert not ft.make_jaxpr(jnp.sin)(1.0).jaxpr.calls
