"""Eager operations refuse what a trace refuses: nothing is promoted or broadcast in silence."""

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax

X, I, WIDE = jnp.ones(3), jnp.arange(3), jnp.ones((2, 3))


@pytest.mark.parametrize("operation", [
    lambda x, i, wide: lax.select_n(x > 0, x, i), lambda x, i, wide: lax.select_n(x > 0, x, wide),
    lambda x, i, wide: lax.clamp(x, x, i), lambda x, i, wide: lax.concatenate([x, i], 0),
    lambda x, i, wide: lax.dot_general(x, i, (((0,), (0,)), ((), ()))),
    lambda x, i, wide: lax.add(x, i), lambda x, i, wide: lax.mul(x, wide),
], ids=["select dtypes", "select shapes", "clamp", "concatenate", "dot_general", "add", "mul"])
def test_mixed_operands_are_refused_alike(operation):
    with pytest.raises(TypeError) as eager:
        operation(X, I, WIDE)
    with pytest.raises(TypeError) as staged:
        ft.jit(operation)(X, I, WIDE)
    assert str(eager.value).splitlines()[0] == str(staged.value).splitlines()[0]
