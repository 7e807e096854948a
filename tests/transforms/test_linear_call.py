"""linear_call, and the other names of custom_derivatives."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import custom_derivatives as cd
from functrans.errors import CustomRuleError, NotDifferentiableError
from functrans.test_util import check_grads

A = np.arange(1.0, 7.0).reshape(2, 3) / 5


def product(a, x):
    """a @ x["v"], whose transpose is written by hand."""
    return cd.linear_call(lambda r, x: {"y": r @ x["v"]}, lambda r, ct: {"v": r.T @ ct["y"]},
                          a, {"v": x})["y"]


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_derivatives_of_all_orders(wrap):
    x = np.arange(3.0)
    f = wrap(lambda a, x: jnp.sin(product(a, jnp.cos(x))))
    np.testing.assert_allclose(f(A, x), np.sin(A @ np.cos(x)))
    check_grads(f, (A, x), order=2)


def test_the_transpose_is_the_one_that_was_given():
    def tenfold(r, x):
        return cd.linear_call(lambda r, x: r * x, lambda r, ct: 10 * r * ct, r, x)

    assert ft.jvp(lambda x: tenfold(2.0, x), (3.0,), (1.0,))[1].item() == 2.0
    assert ft.grad(tenfold, argnums=1)(2.0, 3.0).item() == 20.0
    assert ft.jit(ft.grad(tenfold, argnums=1))(2.0, 3.0).item() == 20.0
    # transposed twice it is the function again; a residual is differentiated as the function says
    back = ft.linear_transpose(lambda x: tenfold(2.0, x), 1.0)
    assert back(1.0)[0].item() == 20.0
    assert ft.linear_transpose(lambda ct: back(ct)[0], 1.0)(1.0)[0].item() == 2.0
    assert ft.grad(tenfold)(2.0, 3.0).item() == 3.0


def test_batches_are_loops():
    xs = np.arange(12.0).reshape(4, 3)
    many = np.stack([A, 2 * A, -A, A + 1])
    value = lambda a, x: (product(a, x) ** 2).sum()
    for axes, args in (((None, 0), (A, xs)), ((0, None), (many, xs[0])), ((0, 0), (many, xs))):
        found = ft.vmap(ft.grad(value, argnums=(0, 1)), axes)(*args)
        lanes = [[arg if ax is None else arg[i] for arg, ax in zip(args, axes, strict=True)]
                 for i in range(4)]
        for k in (0, 1):
            np.testing.assert_allclose(
                found[k], [ft.grad(value, argnums=(0, 1))(*lane)[k] for lane in lanes])


def test_closures_are_differentiated():
    def f(scale, x):
        return cd.linear_call(lambda r, x: scale * x, lambda r, ct: scale * ct, (), x)

    assert ft.grad(f)(2.0, 3.0).item() == 3.0 and ft.grad(f, argnums=1)(2.0, 3.0).item() == 2.0
    check_grads(lambda s, x: f(s * s, x), (0.5, 1.5), order=2)


def test_what_is_wrong_is_told():
    with pytest.raises(CustomRuleError, match="structure"):
        cd.linear_call(lambda r, x: x, lambda r, ct: (ct, ct), 1.0, 2.0)
    with pytest.raises(CustomRuleError, match=r"f32\[2\]"):
        cd.linear_call(lambda r, x: x, lambda r, ct: jnp.stack([ct, ct]), 1.0, 2.0)
    with pytest.raises(NotDifferentiableError, match="residual"):
        ft.linear_transpose(lambda r: cd.linear_call(
            lambda r, x: r * x, lambda r, ct: r * ct, r, 1.0), 1.0)(1.0)


def test_zeros_and_values_of_rules():
    seen = []

    @cd.custom_vjp
    def f(x, n):
        return x * n

    def forward(x, n):
        seen.append((x.perturbed, n.perturbed))
        return f(*cd.custom_vjp_primal_tree_values((x, n))), n.value

    def backward(n, ct):
        return (cd.zero_from_primal(n) if isinstance(ct, cd.SymbolicZero) else ct * n), \
            cd.zero_from_primal(n, symbolic_zeros=True)

    f.defvjp(forward, backward, symbolic_zeros=True)
    assert ft.grad(f)(2.0, 3.0).item() == 3.0 and seen == [(True, False)]
    assert cd.zero_from_primal(np.arange(3)).dtype == ft.float0
    eqn, = ft.make_jaxpr(f)(2.0, 3.0).jaxpr.eqns
    assert eqn.primitive is cd.custom_vjp_call_p
