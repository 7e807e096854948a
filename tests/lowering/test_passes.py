"""The engine of the passes: inlining, common subexpressions, folding, dead code, the log."""

import numpy as np

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.check import check_jaxpr
from functrans.core.evaluate import interpret
from functrans.core.jaxpr import Jaxpr, Literal, literal_text
from functrans.lowering.passes.pipeline import simplify


def program_of(fun, *args):
    closed = ft.make_jaxpr(fun)(*args)
    return closed.jaxpr.hoist_consts(), [np.asarray(c) for c in closed.consts]


def assert_same_values(before, after, arrays, rtol=1e-5, atol=1e-6):
    for a, b in zip(interpret(after, arrays), interpret(before, arrays), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a.astype(np.complex128), b.astype(np.complex128),
                                       rtol=rtol, atol=atol)


def simplified(fun, *args, rtol=1e-5, atol=1e-6):
    """The simplified program of `fun`, checked: well-formed, a fixpoint, and of the same values."""
    before, consts = program_of(fun, *args)
    log = []
    after = simplify(before, log)
    check_jaxpr(after)
    again = []
    assert simplify(after, again) is after, "\n".join(map(str, again))
    assert [a.aval.dtype for a in after.outvars] == [a.aval.dtype for a in before.outvars]
    assert all(eqn.source is not None for eqn in after.eqns)
    assert bool(log) == (after is not before)
    assert all(map(str, log))
    leaves = [np.asarray(x) for x in ft.tree.leaves(args)]
    assert_same_values(before, after, [*consts, *leaves], rtol, atol)
    return after


def golden(fun, *args, text, **tolerances):
    """Assert that the simplified program of `fun` reads as `text`, whatever the line breaks."""
    actual = str(simplified(fun, *args, **tolerances))
    assert actual.split() == text.split(), actual


def spelled(jaxpr):
    """A program in one line: `c = mul a b; d = neg c -> d`, without types."""
    names = {}

    def name(atom):
        if isinstance(atom, Literal):
            return literal_text(atom.value)
        return names.setdefault(atom, "abcdefghijklmnopqrstuvwxyz"[len(names)])

    def value(x):
        if isinstance(x, Jaxpr):
            return f"{{{spelled(x)}}}"
        if isinstance(x, tuple):
            return f"({','.join(map(value, x))})"
        return str(x)

    lines = []
    for var in (*jaxpr.constvars, *jaxpr.invars):
        name(var)
    for eqn in jaxpr.eqns:
        ins = " ".join(map(name, eqn.invars))
        params = " ".join(f"{k}={value(v)}" for k, v in eqn.params.items()
                          if (k, v) != ("weak_type", False))
        outs = " ".join(map(name, eqn.outvars))
        lines.append(f"{outs} = {eqn.primitive.name}{f'[{params}]' if params else ''} {ins}")
    return "; ".join(lines) + f" -> {' '.join(map(name, jaxpr.outvars))}"


RNG = np.random.default_rng(0)


def array(*shape, dtype=np.float32):
    return np.asarray(RNG.uniform(0.5, 2.0, shape) if shape else RNG.uniform(0.5, 2.0), dtype)


x3, y3 = array(3), array(3)


def test_calls_become_their_bodies():
    inner = ft.jit(lambda x: jnp.sin(x))

    @ft.custom_jvp
    def custom(x):
        return inner(x) * 2.0

    custom.defjvp(lambda p, t: (custom(*p), t[0]))

    @ft.custom_vjp
    def other(x, y):
        return custom(x) + y

    other.defvjp(lambda x, y: (other(x, y), ()), lambda r, ct: (ct, ct))
    golden(lambda x, y: ft.jit(ft.checkpoint(other))(x, y), x3, y3, text="""
        { lambda ; a:f32[3] b:f32[3]. let
            c:f32[3] = sin a
            d:f32[3] = mul c 2.0:f32[]
            e:f32[3] = add d b
          in (e,) }""")


def test_equal_calls_are_computed_once():
    inner = ft.jit(lambda x: jnp.exp(x))
    golden(lambda x: inner(x) - ft.jit(jnp.exp)(x) * inner(x), x3, text="""
        { lambda ; a:f32[3]. let
            b:f32[3] = exp a
            c:f32[3] = mul b b
            d:f32[3] = sub b c
          in (d,) }""")


def test_the_recomputation_of_a_checkpoint_stays():
    after = simplified(ft.grad(ft.checkpoint(lambda x: jnp.sin(jnp.sin(jnp.exp(x))))),
                       np.float32(0.3))
    names = [eqn.primitive.name for eqn in after.eqns]
    assert names.count("optimization_barrier") == 1
    assert names.index("exp") > names.index("optimization_barrier")
    both = simplified(ft.value_and_grad(ft.checkpoint(lambda x: jnp.sin(jnp.sin(jnp.exp(x))))),
                      np.float32(0.3))
    assert [eqn.primitive.name for eqn in both.eqns].count("exp") == 2


def test_loops_that_decide_sizes_are_inlined_twice():
    def doubled(x):
        return lax.while_loop(lambda c: c < 10.0, lambda c: c * c, x)

    def loss(x, y):
        f = ft.jit(doubled)
        return f(x) * f(y)

    for x, y in ((2.0, 3.0), (1.5, 9.0), (11.0, 1.1)):
        simplified(ft.grad(loss, (0, 1)), np.float32(x), np.float32(y))


def test_commutative_operands_are_ordered():
    golden(lambda x, y: (x * y + y * x, jnp.maximum(x, y) == jnp.maximum(y, x)), x3, y3, text="""
        { lambda ; a:f32[3] b:f32[3]. let
            c:f32[3] = mul a b
            d:f32[3] = add c c
            e:f32[3] = max a b
            f:bool[3] = eq e e
          in (d, f) }""")


def test_literals_agree_in_bits():
    after = simplified(lambda x: (jnp.arctan2(jnp.float32(0.0), x), jnp.arctan2(
        jnp.float32(-0.0), x)), x3)
    assert len(after.eqns) == 2


def test_different_random_numbers_are_different():
    def fun(key):
        return [ft.random.uniform(k, (2,)) for k in ft.random.split(key)]

    a, b = (np.asarray(x) for x in ft.jit(fun)(ft.random.key(0)))
    assert (a != b).all()


def test_scalars_of_literals_fold():
    def fun(x):
        n = jnp.sqrt(lax.full((), 4.0, np.float32)) + lax.full((), 1.0, np.float32)
        return x * n

    golden(fun, x3, text="""
        { lambda ; a:f32[3]. let b:f32[3] = mul a 3.0:f32[] in (b,) }""")


def test_effects_stay_in_order():
    seen = []

    def fun(x):
        ft.debug.callback(lambda v: seen.append(("first", float(v))), x)
        jnp.sin(x)
        ft.debug.callback(lambda v: seen.append(("second", float(v))), x)
        ft.debug.callback(lambda v: seen.append(("second", float(v))), x)
        return x

    before, _ = program_of(fun, np.float32(1.0))
    after = simplify(before)
    assert [e.primitive.name for e in after.eqns] == ["debug_callback"] * 3
    interpret(after, [np.float32(1.0)])
    assert seen == [("first", 1.0), ("second", 1.0), ("second", 1.0)]


def test_the_log_says_what_happened():
    before, _ = program_of(lambda x: ft.jit(jnp.exp)(x) + jnp.exp(x), x3)
    log = []
    simplify(before, log)
    assert [(c.table, c.before) for c in log] == [("inline", "jit"), ("cse", "exp f32[3]")]
    assert all("test_passes.py" in str(c) for c in log)
