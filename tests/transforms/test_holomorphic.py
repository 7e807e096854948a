"""Which derivatives take complex arguments and results: JAX's rules, for all four."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import FunctransError, NonScalarGradError

Z = 1 + 2j
REAL_OF_COMPLEX = lambda z: (z * z).real
COMPLEX_OF_REAL = lambda x: jnp.sin(x) * 1j
INTEGER = lambda x: x.astype("int32")
DERIVATIVES = {"grad": ft.grad, "value_and_grad": ft.value_and_grad, "jacfwd": ft.jacfwd,
               "jacrev": ft.jacrev, "hessian": ft.hessian}
# (function, argument, holomorphic): which derivatives exist
RULES = [
    (jnp.sin, Z, True, {"grad", "value_and_grad", "jacfwd", "jacrev", "hessian"}),
    (jnp.sin, Z, False, set()),
    (jnp.sin, 1.0, True, set()),
    (REAL_OF_COMPLEX, Z, True, set()),
    (REAL_OF_COMPLEX, Z, False, {"grad", "value_and_grad", "jacrev"}),
    (COMPLEX_OF_REAL, 1.0, False, {"jacfwd"}),
    (jnp.sin, 1, False, set()),
    (jnp.sin, 1.0, False, {"grad", "value_and_grad", "jacfwd", "jacrev", "hessian"}),
    (INTEGER, 1.0, False, {"jacfwd"}),
]


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("rule", RULES, ids=lambda r: "-".join(map(str, r[1:3])))
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_what_is_differentiated(name, rule, wrap):
    fun, x, holomorphic, exists = rule
    derivative = wrap(DERIVATIVES[name](fun, holomorphic=holomorphic))
    if name in exists:
        assert ft.tree.leaves(derivative(x))
        return
    with pytest.raises(TypeError) as refusal:
        derivative(x)
    assert isinstance(refusal.value, FunctransError)
    text = str(refusal.value)
    assert "Fix:" in text and ("jac" in text or "grad" in text)


def test_values():
    assert complex(ft.jacfwd(COMPLEX_OF_REAL)(1.0)) == pytest.approx(1j * np.cos(1))
    for jacobian in (ft.jacfwd, ft.jacrev, ft.grad):
        assert complex(jacobian(jnp.sin, holomorphic=True)(Z)) == pytest.approx(np.cos(Z))
    assert complex(ft.hessian(jnp.sin, holomorphic=True)(Z)) == pytest.approx(-np.sin(Z))
    assert complex(ft.jacrev(REAL_OF_COMPLEX)(Z)) == pytest.approx(2 * Z)


def test_one_real_result_among_complex_ones_is_refused():
    with pytest.raises(TypeError, match="complex result"):
        ft.jacrev(lambda z: (z, z.real), holomorphic=True)(Z)
    with pytest.raises(TypeError, match="complex result"):
        ft.jacfwd(lambda z: (z, z.real), holomorphic=True)(Z)
    with pytest.raises(TypeError, match="real results"):
        ft.jacrev(lambda x: (x, x * 1j))(1.0)
    with pytest.raises(NonScalarGradError, match="holomorphic"):
        ft.grad(jnp.sin)(Z)
