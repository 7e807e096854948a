"""Operations that users define by `extend.core.Primitive` and the tables of `interpreters`."""

import functools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.core import ShapedArray
from functrans.errors import ArgumentError, CustomRuleError, MissingRuleError, RegistrationError
from functrans.extend import core
from functrans.extend import linear_util as lu
from functrans.extend.core import Primitive
from functrans.interpreters import ad, batching, mlir, partial_eval, xla
from functrans.test_util import check_grads


def fused():
    """x * y + z, with every rule that there is, each written for this operation alone."""
    p = Primitive("fused_mul_add")

    def zero_of(t):
        return ad.instantiate_zeros(t)

    p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))

    @p.def_abstract_eval
    def types(x, y, z):
        assert x.shape == y.shape == z.shape
        return ShapedArray(x.shape, x.dtype)

    mlir.register_lowering(p, mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False))

    def push(primals, tangents):
        x, y, z = primals
        t, u, v = tangents
        out = p.bind(x, y, z)
        return out, p.bind(zero_of(t), y, p.bind(x, zero_of(u), zero_of(v)))

    ad.primitive_jvps[p] = push

    def back(ct, x, y, z):
        nothing = jnp.zeros(ct.shape, ct.dtype)
        ct_x = p.bind(ct, y, nothing) if ad.is_undefined_primal(x) else None
        ct_y = p.bind(x, ct, nothing) if ad.is_undefined_primal(y) else None
        return ct_x, ct_y, ct if ad.is_undefined_primal(z) else None

    ad.primitive_transposes[p] = back

    def mapped(args, dims):
        size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
        return p.bind(*map(batching.bdim_at_front, args, dims, [size] * 3)), 0

    batching.primitive_batchers[p] = mapped
    return p


P = fused()


def square_add(a, b):
    return P.bind(a, a, b)


def test_eager_calls_evaluate_the_impl():
    assert square_add(2.0, 10.0).item() == 14.0
    assert isinstance(square_add(2.0, 10.0), ft.Array)
    x = np.arange(3.0)
    assert square_add(x, x).dtype == np.float64


def test_compiled_calls_run_the_lowering():
    assert ft.jit(square_add)(2.0, 10.0).item() == 14.0
    assert "fused_mul_add" in str(ft.make_jaxpr(square_add)(2.0, 10.0))
    eqn = ft.make_jaxpr(square_add)(2.0, 10.0).jaxpr.eqns[0]
    assert eqn.primitive is P and not eqn.primitive.multiple_results
    with ft.config.use_backend("reference"):
        assert ft.jit(square_add)(2.0, 10.0).item() == 14.0
    assert "mul" in ft.lower(square_add, 2.0, 10.0, target="cuda:90").compile().as_text()


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_derivatives_by_the_rules(wrap):
    out, tangent = ft.jvp(wrap(square_add), (2.0, 10.0), (1.0, 1.0))
    assert (out.item(), tangent.item()) == (14.0, 5.0)
    assert ft.grad(wrap(square_add))(2.0, 10.0).item() == 4.0
    assert wrap(ft.grad(square_add, argnums=(0, 1)))(2.0, 10.0)[1].item() == 1.0
    assert ft.grad(ft.grad(wrap(square_add)))(2.0, 10.0).item() == 2.0
    x = np.linspace(0.5, 1.0, 3)
    check_grads(wrap(lambda a, b: jnp.sin(square_add(jnp.cos(a), b))), (x, x + 1), order=2)


def test_batching_by_the_rule():
    x, y = np.arange(3.0), np.ones(3)
    expected = [square_add(a, b).item() for a, b in zip(x, y, strict=True)]
    for f in (ft.vmap(square_add), ft.jit(ft.vmap(square_add)), ft.vmap(ft.jit(square_add))):
        np.testing.assert_array_equal(f(x, y), expected)
    np.testing.assert_array_equal(ft.vmap(ft.grad(square_add))(x, y), 2 * x)
    np.testing.assert_array_equal(ft.jacfwd(ft.vmap(square_add), argnums=1)(x, y), np.eye(3))


def test_in_loops_checkpoints_and_checks():
    def looped(x):
        return ft.lax.scan(lambda c, _: (square_add(c, x), c), x, None, length=3)[0]

    slope = ft.grad(looped)(0.5).item()
    step = 1e-6
    wide = [looped(np.float64(0.5 + s)).item() for s in (step, -step)]
    assert slope == pytest.approx((wide[0] - wide[1]) / (2 * step), rel=1e-4)
    assert ft.grad(ft.checkpoint(looped))(0.5).item() == pytest.approx(slope)
    assert ft.experimental.jet.jet(square_add, (2.0, 1.0), ([1.0], [0.0]))[1][0].item() == 4.0
    with ft.debug_nans(), pytest.raises(ft.errors.NotFiniteError):
        ft.jit(lambda x: square_add(jnp.log(x), x))(-1.0)


def test_parameters_and_several_results():
    p = Primitive("scaled_pair")  # its parameter is called as one of rules in the package is
    p.multiple_results = True
    p.def_abstract_eval(lambda x, *, axis: [x.update(shape=(2, *x.shape)), x])
    mlir.register_lowering(p, mlir.lower_fun(
        lambda x, *, axis: [jnp.stack([x, axis * x]), axis * x]))
    ad.deflinear2(p, lambda cts, x, *, axis: [
        (0.0 if isinstance(cts[0], ad.Zero) else cts[0][0] + axis * cts[0][1])
        + (0.0 if isinstance(cts[1], ad.Zero) else axis * cts[1])])
    batching.fancy_primitive_batchers[p] = lambda mapped, args, dims, *, axis: (
        p.bind(batching.bdim_at_front(args[0], dims[0], mapped.size), axis=axis), [1, 0])
    pair = functools.partial(p.bind, axis=3.0)
    x = np.arange(1.0, 4.0)
    for f in (pair, ft.jit(lambda v: pair(v))):
        both, single = f(x)
        np.testing.assert_array_equal(both, [x, 3 * x])
        np.testing.assert_array_equal(single, 3 * x)
    np.testing.assert_array_equal(ft.grad(lambda v: pair(v)[0].sum())(x), np.full(3, 4.0))
    np.testing.assert_array_equal(ft.grad(lambda v: pair(v)[1].sum())(x), np.full(3, 3.0))
    rows = np.arange(6.0).reshape(2, 3)
    both, single = ft.vmap(pair)(rows)
    np.testing.assert_array_equal(both, np.stack([rows, 3 * rows], axis=1))
    np.testing.assert_array_equal(single, 3 * rows)
    check_grads(lambda v: [jnp.sin(o) for o in pair(v)], (x,), order=2)


def test_a_batching_rule_of_the_older_form_is_given_size_and_name():
    p = Primitive("rows")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: 2.0 * x, multiple_results=False))
    seen = []

    def rule(size, name, trace_type, operands, axes):
        seen.append((size, name, trace_type))
        return p.bind(*operands), axes[0]

    batching.axis_primitive_batchers[p] = rule
    assert ft.vmap(p.bind, axis_name="i")(jnp.ones(3)).tolist() == [2, 2, 2]
    assert seen == [(3, "i", None)]


def test_zeros_and_undefined_operands_are_trees_without_leaves():
    aval = jnp.ones(2).aval
    for cls in (ad.Zero, ad.UndefinedPrimal):
        assert ft.tree.leaves([cls(aval), 1.0]) == [1.0]
        again = ft.tree.map(lambda x: x, {"a": cls(aval)})["a"]
        assert type(again) is cls and again.aval == aval
    zero = ft.vmap(lambda t: t["x"], in_axes=({"x": 0, "none": None},))(
        {"x": jnp.ones(2), "none": ad.Zero(aval)})
    assert zero.tolist() == [1, 1]


def elementwise(name, fun):
    p = Primitive(name)
    p.def_abstract_eval(lambda *avals, **params: ft.eval_shape(
        functools.partial(fun, **params), *avals_of(avals)).aval)
    mlir.register_lowering(p, mlir.lower_fun(fun, multiple_results=False))
    p.def_impl(functools.partial(xla.apply_primitive, p))
    return p


def avals_of(avals):
    return [ft.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]


def test_rules_by_their_short_forms():
    times = elementwise("times", lambda x, y: x * y)
    ad.defbilinear(times, lambda ct, x, y: times.bind(ct, y), lambda ct, x, y: times.bind(x, ct))
    batching.defbroadcasting(times)
    root = elementwise("root", lambda x: x ** 0.5)
    ad.defjvp2(root, lambda t, out, x: t / (2 * out))
    batching.defvectorized(root)
    total = elementwise("total", lambda x, *, axes: x.sum(axes))
    ad.deflinear2(total, lambda ct, x, *, axes: [
        jnp.broadcast_to(jnp.expand_dims(ct, axes), x.aval.shape)])
    batching.defreducer(total)

    def f(x, y):
        return total.bind(root.bind(times.bind(x, y)), axes=(0,))

    x, y = np.linspace(1, 2, 6).reshape(2, 3), np.linspace(2, 3, 6).reshape(2, 3)
    np.testing.assert_allclose(f(x, y), np.sqrt(x * y).sum(0))
    check_grads(f, (x, y), order=2)
    np.testing.assert_allclose(ft.vmap(f)(x, y), np.sqrt(x * y).sum(1))
    np.testing.assert_allclose(ft.vmap(f, (1, None))(x, y[:, 0]), np.sqrt(x.T * y[:, 0]).sum(1))
    np.testing.assert_allclose(ft.vmap(times.bind, (0, None))(x, y),
                               x[:, None] * y[None])


def test_what_was_not_given_is_named():
    p = Primitive("bare")
    with pytest.raises(NotImplementedError, match="bare has no evaluation"):
        p.bind(1.0)
    with pytest.raises(MissingRuleError, match="type rule"):
        ft.jit(p.bind)(1.0)
    p.def_abstract_eval(lambda x: x)
    p.def_impl(lambda x: x)
    with pytest.raises(MissingRuleError, match="no lowering"):
        ft.jit(p.bind)(1.0)
    with pytest.raises(MissingRuleError, match="derivative"):
        ft.grad(p.bind)(1.0)
    ad.primitive_jvps[p] = lambda primals, tangents: (p.bind(*primals), p.bind(*tangents))
    assert ft.jvp(p.bind, (1.0,), (2.0,))[1].item() == 2.0
    with pytest.raises(MissingRuleError, match="transpose"):
        ft.grad(p.bind)(1.0)
    with pytest.raises(MissingRuleError, match="batching"):
        ft.vmap(p.bind)(np.ones(2))
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x, multiple_results=False))
    assert ft.jit(p.bind)(1.0).item() == 1.0


def test_rules_that_are_wrong_are_refused():
    p = Primitive("wrong")
    p.def_abstract_eval(lambda x: x)
    p.def_impl(lambda x: np.zeros((2, 2)))
    with pytest.raises(CustomRuleError, match="shape"):
        p.bind(1.0)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x[None], multiple_results=False))
    with pytest.raises(CustomRuleError, match=r"f32\[1\]"):
        ft.jit(p.bind)(1.0)
    with pytest.raises(ArgumentError, match="no MLIR"):
        mlir.register_lowering(p, lambda ctx, x: [x])
    with pytest.raises(ArgumentError, match="tpu"):
        mlir.register_lowering(p, mlir.lower_fun(lambda x: x), platform="tpu")
    p.def_abstract_eval(lambda x: 3)
    with pytest.raises(CustomRuleError, match="type rule"):
        ft.jit(p.bind)(1.0)
    ad.deflinear(p, lambda ct: [])
    p.def_abstract_eval(lambda x: x)
    p.def_impl(lambda x: x)
    with pytest.raises(CustomRuleError, match="0 cotangents"):
        ft.grad(p.bind)(1.0)


def test_rules_of_the_packages_own_operations():
    sin_p, mul_p = ft.extend.core.primitives.sin_p, ft.extend.core.primitives.mul_p
    with pytest.raises(RegistrationError, match="sin"):
        ad.primitive_jvps[sin_p] = lambda primals, tangents: None
    with pytest.raises(ArgumentError, match="no primitive"):
        batching.primitive_batchers["sin"] = None
    x = jnp.float32(0.5)
    out, tangent = ad.primitive_jvps[sin_p]((x,), (x,))
    np.testing.assert_allclose([out, tangent], [np.sin(0.5), 0.5 * np.cos(0.5)], rtol=1e-6)
    assert isinstance(ad.primitive_jvps[sin_p]((x,), (ad.Zero(x.aval),))[1], ad.Zero)
    cts = ad.get_primitive_transpose(mul_p)(x, ad.UndefinedPrimal(x.aval), jnp.float32(4.0))
    assert cts[0].item() == 2.0 and cts[1] is None
    assert sin_p not in ad.primitive_transposes and sin_p in batching.primitive_batchers
    assert P in ad.primitive_jvps and ad.primitive_jvps.get(Primitive("q")) is None


def test_an_interpreter_of_programs():
    """As one writes it for JAX: inverse functions, by walking the equations backwards."""
    inverse = {core.primitives.exp_p: jnp.log, core.primitives.tanh_p: jnp.arctanh}

    def inverted(f):
        def run(y):
            closed = ft.make_jaxpr(f)(y)
            env = {closed.jaxpr.outvars[0]: y}
            for eqn in reversed(closed.jaxpr.eqns):
                assert not any(isinstance(a, core.Literal) for a in eqn.invars)
                env[eqn.invars[0]] = inverse[eqn.primitive](env[eqn.outvars[0]])
            return env[closed.jaxpr.invars[0]]
        return run

    f = lambda x: jnp.exp(jnp.tanh(x))
    assert inverted(f)(f(0.25)).item() == pytest.approx(0.25, rel=1e-5)
    assert ft.grad(inverted(f))(f(0.25)).item() == pytest.approx(1 / ft.grad(f)(0.25).item(),
                                                                  rel=1e-4)


def test_programs_by_hand():
    aval = ShapedArray((3,), np.dtype(np.float32))
    new = core.gensym()
    x, y = new(aval), new(aval)
    eqn = core.new_jaxpr_eqn([x], [y], core.primitives.sin_p, {})
    jaxpr = core.Jaxpr(constvars=(), invars=(x,), eqns=(eqn,), outvars=(y,))
    core.check_jaxpr(jaxpr)
    v = np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, ()))(v)[0], np.sin(v),
                               rtol=1e-6)
    traced, types, consts = partial_eval.trace_to_jaxpr_dynamic(
        lu.wrap_init(lambda a, b: [a * 2, b + v]), [aval, aval])
    assert len(types) == 2 and len(consts) == 1 and consts[0].shape == (3,)
    first, used = partial_eval.dce_jaxpr(traced, [True, False])
    assert used == [True, False] and len(first.eqns) == 1
    np.testing.assert_array_equal(
        core.jaxpr_as_fun(core.ClosedJaxpr(first, consts))(v)[0], 2 * v)
    assert partial_eval.dce_jaxpr(traced, True)[1] == [True, True]
    assert len(partial_eval.dce_jaxpr(traced, [False, True], instantiate=True)[0].invars) == 2
    assert core.mapped_aval(3, 0, aval).shape == ()
    assert core.unmapped_aval(4, 1, aval).shape == (3, 4)
    assert core.primal_dtype_to_tangent_dtype("int32") == ft.float0
    assert core.valid_jaxtype(1.0) and not core.valid_jaxtype("a")
    assert core.concrete_or_error(int, 3.7) == 3
    with pytest.raises(ft.errors.ConcretizationTypeError, match="the size"):
        ft.jit(lambda n: core.concrete_or_error(int, n, "the size"))(3)


def test_the_current_trace_is_told():
    seen = []

    def look(x):
        seen.append((core.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                     core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                     core.unsafe_get_axis_names_DO_NOT_USE(),
                     core.nonempty_axis_env_DO_NOT_USE()))
        return x

    look(1.0)
    ft.jit(look)(1.0)
    ft.vmap(look, axis_name="i")(np.ones(2))
    assert seen == [(False, False, [], False), (True, False, [], False), (False, True, ["i"], True)]

    @ft.jit
    def known(x):
        with core.take_current_trace() as trace:
            assert core.find_top_trace() is None and trace is not None
            two = int(jnp.float32(1.0) + 1)
            with core.set_current_trace(trace):
                return x * two

    assert known(2.0).item() == 4.0


def test_transformations_of_functions():
    @lu.transformation_with_aux
    def counted(name, *args):
        out = yield args, {}
        yield out, (name, len(args))

    @lu.transformation2
    def negated(f, *args):
        return -f(*args)

    base = lu.wrap_init(lambda x, y, scale: scale * (x + y), {"scale": 10})
    fun, kept = counted(negated(base), "sum")
    with pytest.raises(lu.StoreException):
        kept()
    assert fun.call_wrapped(1, 2) == -30 and kept() == ("sum", 2)
    _, nothing = counted(base, "other")
    assert lu.merge_linear_aux(kept, nothing) == (True, ("sum", 2))
    assert lu.merge_linear_aux(nothing, kept) == (False, ("sum", 2))
    with pytest.raises(lu.StoreException, match="2 of"):
        lu.merge_linear_aux(kept, kept)
    runs = []
    known = lu.cache(lambda f, *args: runs.append(1) or f.call_wrapped(*args))
    assert [known(base, 1, 2), known(base, 1, 2), known(negated(base), 1, 2)] == [30, 30, -30]
    assert len(runs) == 2 and ft.extend.core.call_impl(base, 1, 2) == 30
