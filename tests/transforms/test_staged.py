"""make_jaxpr, eval_shape, closure_convert, ShapeDtypeStruct, and printed programs."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.check import check_jaxpr
from functrans.core.errors import ConcretizationError, DTypeError
from functrans.core.evaluate import eval_jaxpr
from tests.transforms.functions import FUNCTIONS

F3 = ft.ShapeDtypeStruct((3,), "float32")


@pytest.mark.parametrize(("fun", "args", "text"), [
    (jnp.sin, (F3,), "{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }"),
    (lambda x: 2.0 * x + 1, (F3,),
     "{ lambda ; a:f32[3]. let b:f32[3] = mul 2.0:f32[] a c:f32[3] = add b 1.0:f32[] in (c,) }"),
    (lambda x: (), (F3,), "{ lambda ; a:f32[3]. let  in () }"),
    (lambda p: {"y": p["x"], "n": None}, ({"x": 1.0},), "{ lambda ; a:f32[]. let  in (a,) }"),
])
def test_printed_programs(fun, args, text):
    printed = " ".join(str(ft.make_jaxpr(fun)(*args)).split())
    assert printed == " ".join(text.split())


def test_make_jaxpr_arguments():
    jaxpr, shape = ft.make_jaxpr(lambda x, n: {"y": x * n}, static_argnums=1,
                                 return_shape=True)(F3, 3)
    assert len(jaxpr.jaxpr.invars) == 1
    assert shape == {"y": ft.ShapeDtypeStruct((3,), "float32")}
    y = jnp.arange(3.0)
    closed = ft.make_jaxpr(lambda x: x * y)(F3)
    assert len(closed.consts) == 1 and closed.consts[0] is y


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_and_their_derivatives_are_well_formed(name):
    """And evaluate to the same."""
    fun = FUNCTIONS[name]
    x = np.array([0.6, -0.9, 1.3])
    total = lambda v: fun(v).sum()
    for program in (fun, ft.grad(total), ft.vmap(ft.grad(total))):
        arg = np.stack([x, x * 0.9]) if program is not fun and "vmap" in program.__name__ else x
        closed = ft.make_jaxpr(program)(arg)
        check_jaxpr(closed)
        assert str(closed).startswith("{ lambda ")
        (out,) = ft.jit(lambda v, c=closed: eval_jaxpr(c.jaxpr, c.consts, v))(arg)
        np.testing.assert_allclose(out, program(jnp.asarray(arg)), rtol=1e-9, atol=1e-9)


def test_types_stand_for_arguments():
    aval = ft.typeof(jnp.ones((2, 3)))
    assert ft.eval_shape(lambda x, y: x @ y.T, aval, jnp.ones((4, 3))).shape == (2, 4)
    assert ft.make_jaxpr(jnp.sin)(aval).in_avals == (aval,)


def test_objects_that_stand_for_an_array():
    class Variable:
        def __init__(self, value):
            self.value = value

        def __jax_array__(self):
            return self.value

    def f(x):
        v = Variable(x)
        return jnp.matmul(v, jnp.ones(3)) + jnp.asarray(v)[0] + 2 * jnp.sum(v)

    x = jnp.arange(3.0)
    assert f(x) == ft.jit(f)(x) == 9.0
    assert ft.grad(f)(x).tolist() == [4.0, 3.0, 3.0]
    with pytest.raises(TypeError, match="takes arrays"):
        jnp.sin(Variable)  # the class is none


def test_make_jaxpr_with_names_of_axes():
    closed = ft.make_jaxpr(lambda x: lax.psum(x, "i") / lax.axis_size("i"), (), [("i", 4)])(1.0)
    assert [e.primitive.name for e in closed.jaxpr.eqns] == ["psum", "div"]
    assert "4.0" in str(closed)
    with pytest.raises(ft.errors.AxisNameError, match="'i'"):
        lax.psum(1.0, "i")


def test_eval_shape_computes_nothing():
    def fun(x, p):
        ft.debug.callback(lambda v: 1 / 0, x)
        return {"y": x @ p["w"], "n": x.astype("int8")}

    out = ft.eval_shape(fun, ft.ShapeDtypeStruct((2, 10 ** 6), "float32"),
                        {"w": ft.ShapeDtypeStruct((10 ** 6, 5), "float32")})
    assert out["y"] == ft.ShapeDtypeStruct((2, 5), "float32")
    assert (out["n"].shape, out["n"].dtype) == ((2, 10 ** 6), np.int8)
    assert ft.eval_shape(lambda x, n=2: x * n, 1.0).weak_type


def test_shape_dtype_struct():
    a = ft.ShapeDtypeStruct((2, 3), np.float64)
    assert (a.ndim, a.size, a.shape, a.dtype) == (2, 6, (2, 3), np.float64)
    assert a == ft.ShapeDtypeStruct([2, 3], "float64") and hash(a) == hash(
        ft.ShapeDtypeStruct([2, 3], "float64"))
    assert a != ft.ShapeDtypeStruct((3, 2), "float64")
    with pytest.raises(DTypeError):
        ft.ShapeDtypeStruct((), "float63")


def test_closure_convert_hoists_floating_values_only():
    def solve(x, scale, index):
        converted, values = ft.closure_convert(lambda y: y * scale + index, x)
        return converted(x, *values), len(values)

    out, count = solve(2.0, jnp.float32(3.0), jnp.int32(1))
    assert float(out) == 7.0 and count <= 1

    def outer(scale):
        table = jnp.stack([scale, scale * 2])
        converted, values = ft.closure_convert(lambda y: (y * table).sum(), 1.0)
        assert len(values) == 1
        return converted(5.0, *[v * 2 for v in values])

    assert float(ft.grad(outer)(1.0)) == 30.0
    assert float(ft.jit(outer)(1.0)) == 30.0


@ft.custom_jvp
def with_rule(x):
    return jnp.sin(x)


with_rule.defjvps(lambda t, out, x: jnp.cos(x) * t)

HIGHER_ORDER = {
    "jit": (lambda x: ft.jit(jnp.sin)(x), ["jit[", "sin", "lambda"]),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), ["cond[", "sin", "cos"]),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c * 2, x), ["while", "lt"]),
    "scan": (lambda x: lax.scan(lambda c, a: (c * a, c), 1.0, x), ["scan[", "length=3", "mul"]),
    "checkpoint": (lambda x: ft.checkpoint(jnp.tanh)(x), ["checkpoint[", "tanh"]),
    "custom_jvp": (lambda x: with_rule(x), ["custom_jvp_call[", "sin"]),
}


@pytest.mark.parametrize("name", HIGHER_ORDER)
def test_bodies_are_printed_inside_and_read_by_depth(name):
    fun, parts = HIGHER_ORDER[name]
    text = str(ft.make_jaxpr(fun)(F3))
    positions = [text.find(p) for p in parts]
    assert min(positions) >= 0, text
    assert text.count("{") == text.count("}") >= 2


@pytest.mark.parametrize("ask", [
    lambda n: n % 2, lambda n: n % 2 == 0, lambda n: n == 1, lambda n: n != 1, lambda n: not n,
    lambda n: (n, 3) == (4, 3), lambda n: n in (4, 8), lambda n: n > 4,
])
@pytest.mark.parametrize("trace", [ft.make_jaxpr, ft.jit, ft.grad, ft.export.export])
def test_no_branch_on_a_size_is_taken_without_a_call(trace, ask):
    def f(x):
        return (x * 2 if ask(x.shape[0]) else x).sum()

    rows = ft.ShapeDtypeStruct((ft.dim("B"), 3), "float32")
    traced = trace(f) if trace in (ft.make_jaxpr, ft.export.export) else ft.make_jaxpr(trace(f))
    with pytest.raises(ConcretizationError, match=r"B.*is not known here"):
        traced(rows)


def test_branches_that_bounds_decide_are_taken_without_a_call():
    def f(x):
        n = x.shape[0]
        return x * 2 if n and n % 2 == 0 and n != 3 and n == x.shape[0] else x.no_such_method()

    rows = ft.ShapeDtypeStruct((ft.dim("B", min=4, multiple_of=2), 3), "float32")
    assert len(ft.make_jaxpr(f)(rows).eqns) == 1
    assert ft.dim("B") != 3  # outside of traces sizes are compared as they are written
