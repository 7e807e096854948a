"""Dead-code elimination keeps what decides a size that is still used."""

import numpy as np

import functrans as ft
from functrans.core.avals import ShapedArray
from functrans.core.evaluate import interpret
from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.prune import prune_jaxpr
from functrans.core.sizes import learn_sizes
from functrans.primitives.shape import iota_p


def doubled_until_ten(x):
    return ft.lax.while_loop(lambda c: c < 10.0, lambda c: c * c, x)


def test_the_loop_that_decides_a_size_stays_when_only_the_size_is_used():
    jaxpr = ft.make_jaxpr(ft.grad(doubled_until_ten))(2.0).jaxpr
    at = next(i for i, e in enumerate(jaxpr.eqns) if e.primitive.decided_sizes(e.params))
    loop = jaxpr.eqns[at]
    (name,) = loop.primitive.decided_sizes(loop.params)
    size = next(v.aval.shape[0] for v in loop.outvars if v.aval.shape)
    assert size.name == name
    count = Var(ShapedArray((size,), np.dtype(np.int32)))
    iota = Equation(iota_p, (), (count,), {"dtype": np.dtype(np.int32), "shape": (size,),
                                           "dimension": 0})
    program = Jaxpr((), jaxpr.invars, (*jaxpr.eqns[:at + 1], iota), (count,))
    assert len(prune_jaxpr(program).eqns) >= 2
    (counted,) = interpret(program, [np.float32(2.0)])
    np.testing.assert_array_equal(counted, [0, 1])  # 2, 4, 16


def test_a_size_is_learned_from_an_expression():
    n = ft.Dim("n")
    sizes = {}
    learn_sizes(sizes, (2 * n - 1,), (7,))
    assert sizes == {"n": 4}
    learn_sizes(sizes, (ft.Dim("m") + n,), (9,))
    assert sizes == {"n": 4, "m": 5}
