"""checked, debug_nans and check: what they find, where they say it is, and what they let pass."""

import itertools
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.avals import get_aval
from functrans.core.errors import (
    ArgumentError,
    CheckError,
    ExportError,
    FailedCheckError,
    NotFiniteError,
    OutOfBoundsError,
)
from functrans.core.jaxpr import Equation, Literal, Var
from functrans.core.prune import prune_jaxpr
from functrans.transforms.checks.nonfinite_propagation import (
    ALL,
    NAN,
    NEGATIVE,
    POSITIVE,
    bits_of,
    constant_bits,
    is_barrier,
    propagation_of,
)
from tests.laws.primitives import all_cases

X = jnp.array([1.0, -1.0, 2.0])
I = jnp.array([1, 12])
TEN = jnp.arange(10.0)


def in_debug_nans(fun):
    def call(*args):
        with ft.debug_nans():
            return fun(*args)
    return call


def in_jit(fun):
    return ft.jit(ft.checked(fun))


WAYS = [ft.checked, in_debug_nans, in_jit, lambda f: in_debug_nans(ft.jit(f))]


def line_of(fun):
    """The line after that on which a function begins."""
    return fun.__code__.co_firstlineno + 1


def error_of(fun, *args):
    with pytest.raises(CheckError) as caught:
        fun(*args)
    return caught.value


# what is found -------------------------------------------------------------------------------

def hidden_nan(x):
    y = jnp.log(x)
    return jnp.where(x > 0, y, 0.0).sum()


@pytest.mark.parametrize("way", WAYS)
def test_a_nan_that_is_hidden_afterwards_is_found(way):
    error = error_of(way(hidden_nan), X)
    assert isinstance(error, NotFiniteError)
    assert isinstance(error, FloatingPointError)
    assert error.where.line == line_of(hidden_nan)
    assert "log gave NaN in 1 of 3 elements" in str(error)
    assert "f32[3] -1..2" in error.why
    assert np.isclose(way(hidden_nan)(abs(X)), np.log(2))


HIDING = {
    "comparison": lambda x: x < 1,
    "conversion": lambda x: x.astype("int32"),
    "selection": lambda x: jnp.where(x < 1e9, 1.0, x * 0),
    "slice": lambda x: x[1:],
    "minimum of +inf": lambda x: jnp.minimum(x, 0.0),
    "exp of -inf": lambda x: jnp.exp(-x),
    "tanh of inf": lambda x: jnp.tanh(x),
    "quotient by inf": lambda x: 1 / x,
    "scatter": lambda x: x.at[0].set(0.0),
    "argmax": lambda x: jnp.argmax(x),
    "is_finite": lambda x: jnp.isfinite(x),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("hide", HIDING.values(), ids=HIDING)
@pytest.mark.parametrize("backend", ["c", "triton", "reference"])
def test_an_infinity_is_found_whatever_becomes_of_it(hide, backend):
    def fun(x):
        return hide(jnp.exp(x))

    with ft.config.use_backend(backend):
        assert "exp gave an infinity" in str(error_of(ft.checked(fun), jnp.array([1e3, 1.0])))
        ft.checked(fun)(jnp.array([1.0, 2.0]))


def test_the_exception_names_the_equation_as_the_jaxpr_prints_it():
    def fun(x):
        return jnp.sqrt(x * 2).sum()

    printed = str(ft.make_jaxpr(fun)(X))
    text = str(error_of(ft.checked(fun), X)).split(": ", 1)[1].partition(".\n")[0]
    assert text == "c:f32[3] = sqrt b"
    assert text in printed


def test_the_first_equation_is_reported_not_what_follows_from_it():
    def fun(x):
        y = x / 0.0
        return jnp.log(y - y).sum()

    assert "div gave" in str(error_of(ft.checked(fun), X))


def test_what_is_looked_for_can_be_chosen():
    assert np.isneginf(ft.checked(jnp.log, errors="nan")(0.0))
    assert np.isnan(ft.checked(jnp.log, errors=("inf", "index"))(-1.0))
    assert ft.checked(lambda x, i: x[i], errors=("nan", "inf"))(TEN, I).tolist() == [1, 9]
    with pytest.raises(NotFiniteError), ft.debug_nans(errors=["inf"]):
        jnp.log(jnp.array(0.0))
    with pytest.raises(ArgumentError, match="no kind of error 'foo'"):
        ft.checked(jnp.log, errors=["foo"])


def test_errors_can_be_pickled():
    error = error_of(ft.checked(jnp.log), -1.0)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# what is none to report ----------------------------------------------------------------------

def masked_softmax(x, mask):
    return (ft.nn.softmax(jnp.where(mask, x, -np.inf)) ** 2).sum()


@pytest.mark.parametrize("way", WAYS)
def test_infinities_that_the_program_writes_down_pass(way):
    found = way(ft.grad(masked_softmax))(TEN, TEN > 3)
    assert np.allclose(found, ft.grad(masked_softmax)(TEN, TEN > 3))


def test_infinities_that_arguments_bring_pass_and_others_beside_them_do_not():
    fun = ft.checked(lambda x, mask: ft.nn.softmax(x + mask))
    mask = jnp.where(TEN > 3, 0.0, -np.inf)
    for _ in range(3):
        assert np.isclose(fun(TEN, mask).sum(), 1)
    assert "add gave NaN" in str(error_of(fun, TEN * np.nan, mask))
    assert "div gave NaN" in str(error_of(fun, TEN, jnp.full(10, -np.inf)))


def test_nan_of_arguments_is_reported_where_something_is_computed_of_it():
    bad = jnp.array([1.0, np.nan])
    assert np.isclose(ft.checked(jnp.nanmean)(bad), 1)
    assert ft.checked(lambda x: jnp.where(jnp.isnan(x), 0.0, x))(bad).tolist() == [1, 0]
    assert "add gave NaN" in str(error_of(ft.checked(lambda x: x + 1), bad))
    assert "tanh gave NaN" in str(error_of(ft.checked(lambda x: jnp.tanh(x)[:1]), bad[::-1]))


def test_nan_that_the_program_fills_in_passes():
    fun = ft.checked(lambda x, i: jnp.take(x, i, mode="fill") * 2)
    assert np.isnan(fun(TEN, I)[1])
    assert np.isnan(ft.checked(lambda x: jnp.where(x > 0, x, np.nan) + 1)(X)[1])
    assert np.isnan(in_debug_nans(lambda x: x.at[0].set(np.nan))(X)[0])


# indices ---------------------------------------------------------------------------------------

READS = {
    "index array": lambda x, i: x[i],
    "two axes": lambda x, i: x.reshape(2, 5)[1, i],
    "get": lambda x, i: x.at[i].get(),
    "promise": lambda x, i: x.at[i].get(mode="promise_in_bounds"),
    "set": lambda x, i: x.at[i].set(0.0),
    "add": lambda x, i: x.at[i].add(1.0),
    "apply": lambda x, i: x.at[i].apply(jnp.sin),
    "take": lambda x, i: jnp.take(x, i),
    "take_along_axis": lambda x, i: jnp.take_along_axis(x, i, 0),
    "dynamic_slice": lambda x, i: lax.dynamic_slice(x, (i[1],), (3,)),
    "dynamic_update_slice": lambda x, i: lax.dynamic_update_slice(x, x[:3], (i[1],)),
    "gather": lambda x, i: lax.gather(
        x, i[:, None], lax.GatherDimensionNumbers((), (0,), (0,)), (1,)),
    "scatter_add": lambda x, i: lax.scatter_add(
        x, i[:, None], x[:2], lax.ScatterDimensionNumbers((), (0,), (0,))),
}
CHOSEN = {
    "clip": lambda x, i: x.at[i].get(mode="clip"),
    "fill": lambda x, i: x.at[i].get(mode="fill", fill_value=0.0),
    "drop": lambda x, i: x.at[i].set(0.0, mode="drop"),
    "wrap": lambda x, i: jnp.take(x, i, mode="wrap"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fun", READS.values(), ids=READS)
def test_an_index_out_of_bounds_is_found(fun, way):
    error = error_of(way(fun), TEN, I)
    assert isinstance(error, OutOfBoundsError)
    assert isinstance(error, IndexError)
    assert "12" in error.what
    assert error.where.filename == __file__
    way(fun)(TEN, jnp.array([1, 2]))
    mapped = way(ft.vmap(fun, (None, 0)))
    mapped(TEN, jnp.array([[1, 2], [0, 1]]))
    assert isinstance(error_of(mapped, TEN, jnp.array([[1, 2], [0, 12]])), OutOfBoundsError)


@pytest.mark.parametrize("fun", CHOSEN.values(), ids=CHOSEN)
def test_a_mode_that_was_asked_for_is_no_error(fun):
    assert np.allclose(ft.checked(fun)(TEN, I), fun(TEN, I))


def test_negative_indices_count_from_the_end():
    assert ft.checked(lambda x, i: x[i])(TEN, jnp.array([-1, -10])).tolist() == [9, 0]
    error_of(ft.checked(lambda x, i: x[i]), TEN, jnp.array([-11]))


def test_an_index_that_nothing_reads_out_of_bounds_outside_of_checks_is_clamped():
    assert (TEN[I]).tolist() == [1, 9]
    assert ft.jit(lambda x, i: x[i])(TEN, I).tolist() == [1, 9]


# check -----------------------------------------------------------------------------------------

def positive(x):
    ft.check(x > 0, "x must be positive, and is {x}", x=x)
    return x * x


@pytest.mark.parametrize("fun", [
    positive, ft.jit(positive), ft.grad(positive), ft.jit(ft.grad(positive)), ft.checked(positive),
    in_debug_nans(positive), lambda x: ft.jvp(positive, (x,), (x,)), ft.hessian(positive),
    ft.checkpoint(positive), ft.grad(ft.checkpoint(positive)), ft.jit(ft.jit(positive)),
    lambda x: lax.fori_loop(0, 2, lambda i, c: positive(c), x),
    ft.jit(lambda x: lax.cond(x < 0, positive, lambda x: x, x)),
])
def test_a_failed_check_stops_every_program(fun):
    error = error_of(fun, -1.5)
    assert isinstance(error, FailedCheckError)
    assert isinstance(error, AssertionError)
    assert "x must be positive, and is -1.5" in error.what
    assert error.where.line == line_of(positive)
    fun(1.5)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, ft.checked, in_debug_nans])
def test_a_check_is_of_each_element_of_a_vmap(wrap):
    fun = wrap(ft.vmap(ft.vmap(positive)))
    error = error_of(fun, jnp.array([[1.0, 2.0], [3.0, -4.0]]))
    assert "and is -4.0 (1 of 4 elements of a vmap; first in element (1, 1))" in error.what
    fun(jnp.ones((2, 2)))


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, ft.checked, in_debug_nans])
def test_lanes_of_a_vmap_fail_only_in_what_they_run(wrap):
    branch = ft.vmap(lambda x: lax.cond(x > 0, positive, lambda x: -x, x))
    assert wrap(branch)(jnp.array([2.0, -3.0])).tolist() == [4, 3]
    loop = ft.vmap(lambda x: lax.while_loop(
        lambda c: c < 10, lambda c: (ft.check(c < 10, "done"), 2 * c + 1)[1], x))
    assert wrap(loop)(jnp.array([1.0, 20.0])).tolist() == [15, 20]


def test_lanes_without_checks_of_their_own_compute_nothing_that_they_do_not_run():
    root = ft.vmap(lambda x: lax.cond(x > 0, jnp.log, lambda x: -x, x))
    assert ft.checked(root)(jnp.array([1.0, -3.0])).tolist() == [0, 3]
    loop = ft.vmap(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c / (10 - c) + 2 * c, x))
    assert np.isfinite(ft.checked(loop)(jnp.array([1.0, 10.0]))).all()


def test_wrong_calls_of_check():
    with pytest.raises(ArgumentError, match="must be boolean"):
        ft.check(1.0, "x")
    with pytest.raises(ArgumentError, match="not text"):
        ft.check(True, 3)
    with pytest.raises(ArgumentError, match=r"no value for it(?s:.*)place=place"):
        ft.check(True, "no {place}")
    for transform in (ft.jit, ft.grad):
        with pytest.raises(ArgumentError, match="without the f"):
            transform(lambda x: (ft.check(x > 0, f"got {x}"), x)[1])(1.0)
    assert error_of(ft.check, False, "no { place").what.startswith("no { place")
    assert "got [1. 2. 3.]" in error_of(
        lambda: ft.check(False, "got {x:.2f}", x=jnp.array([1.0, 2.0, 3.0]))).what
    for wrong in (3, "nans"):
        with pytest.raises(ArgumentError, match=r"nan.*inf.*index"):
            ft.debug_nans(wrong)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, ft.checked])
def test_checks_of_elements_in_loops_that_are_differentiated(wrap):
    def summed(x):
        def body(c, a):
            ft.check(a * 2 < 10, "got {a}", a=a)
            return c * a, None

        return lax.scan(body, 1.0, x)[0]

    assert wrap(ft.grad(summed))(jnp.array([1.0, 2.0, 3.0])).tolist() == [6, 3, 2]
    assert "got 7.0" in error_of(wrap(ft.grad(summed)), jnp.array([1.0, 7.0, 8.0])).what


def test_an_index_out_of_bounds_names_the_modes():
    error = error_of(ft.checked(lambda x, i: x[i]), X, 9)
    assert 'x.at[i].get(mode="clip")' in error.fix
    assert ft.checked(lambda x, i: x.at[i].get(mode="clip"))(X, 9) == X[-1]


# where programs are, and what else they do -----------------------------------------------------

def test_the_iteration_of_a_loop_is_named():
    def scanned(x):
        return lax.scan(lambda c, t: (c * t, jnp.log(c * t)), 1.0, x)

    assert "iteration 1 of the scan" in str(error_of(ft.checked(scanned), X))
    assert "iteration 1 of the scan" in str(error_of(in_debug_nans(scanned), X))

    def repeated(x):
        return lax.while_loop(lambda c: c < 10, lambda c: c * jnp.sqrt(c - 3), x)

    error = error_of(ft.checked(repeated), 3.5)
    assert "iteration 1 of the while loop" in error.why
    assert "sqrt gave NaN" in error.what


def test_a_loop_that_a_nan_keeps_going_ends():
    endless = ft.checked(lambda x: lax.while_loop(
        lambda c: jnp.logical_not(c < 1e-3), lambda c: jnp.sqrt(c - 3), x))
    assert "sqrt gave NaN" in str(error_of(endless, 5.0))


def test_parts_of_programs_are_checked_inside_of_bodies():
    safe = ft.checked(jnp.log)
    loop = ft.jit(lambda x: lax.scan(lambda c, t: (c, safe(t)), 0.0, x)[1])
    assert "log gave NaN" in str(error_of(loop, X))
    outside = ft.jit(lambda x: jnp.log(x) + safe(x + 2))
    assert np.isnan(outside(X)[1])
    assert "div gave infinities" in str(error_of(ft.jit(ft.vmap(ft.grad(safe))), X * 0))


def test_side_effects_happen_once_and_errors_after_them_are_found():
    seen = []

    def told(v):
        seen.append(v.tolist())
        return v * 2

    def fun(x):
        y = ft.io_callback(told, ft.ShapeDtypeStruct((), "float32"), x)
        return jnp.sqrt(y)

    assert "sqrt gave NaN" in str(error_of(ft.checked(fun), -2.0))
    assert seen == [-2]
    loop = ft.checked(lambda x: lax.scan(lambda c, t: (c, fun(t)), 0.0, x)[1])
    seen.clear()
    assert "-2" in error_of(loop, X).why
    assert seen == [1, -1, 2]


def test_donated_arguments_are_kept_for_the_error():
    fun = ft.jit(lambda x: jnp.log(x * 2), donate_argnums=0)
    with ft.debug_nans():
        assert "log gave NaN" in str(error_of(fun, jnp.array([1.0, -1.0])))


def test_one_checked_program_serves_all_named_sizes():
    fun = ft.jit(lambda x, i: (jnp.log(x) * x)[i].sum(), dynamic_shapes={"x": {0: "B"}})
    checked = ft.checked(fun)
    for n in (2, 3, 5):
        assert checked(jnp.ones(n), n - 1) == 0
        error_of(checked, jnp.ones(n), n)
    assert "log gave NaN" in str(error_of(checked, jnp.array([1.0, 1.0, 1.0, -2.0]), 0))
    assert len(ft.explain_retrace(fun)) == 1
    history = ft.checked(lambda x: lax.scan(lambda c, t: (c + t, jnp.log(c)), 0.5, x)[1])
    for n in (2, 3, 4):
        history(jnp.ones(n))
    assert "iteration 1" in error_of(history, -jnp.ones(6)).why


def test_loops_that_record_what_lanes_do_are_checked():
    def power(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (
            c[0] + 1, (ft.check(c[1] < 1e6, "{v} is too large", v=c[1]), c[1] * x)[1]), (0, x))[1]

    slopes = ft.checked(ft.vmap(ft.grad(power)))
    assert slopes(jnp.array([1.0, 2.0])).tolist() == [4, 32]
    assert "is too large" in error_of(slopes, jnp.array([1.0, 1e4])).what


def test_checks_are_exported_and_checked_functions_are_not():
    number = ft.ShapeDtypeStruct((), "float32")
    loaded = ft.export.deserialize(ft.export.export(ft.jit(positive))(number).serialize())
    assert loaded.call(3.0) == 9
    assert "and is -1.5" in error_of(loaded.call, -1.5).what
    with pytest.raises(ExportError, match=r"without ft.checked"):
        ft.export.export(ft.checked(jnp.log))(number).serialize()


def test_random_numbers_pass():
    def draw(key):
        a, b, c = ft.random.split(key, 3)
        return (ft.random.normal(a, (500,)).sum() + ft.random.gamma(b, 2.0, (50,)).sum()
                + ft.random.permutation(c, 10)[0])

    key = ft.random.key(0)
    assert np.isclose(ft.checked(draw)(key), draw(key), rtol=1e-5)


def test_results_are_those_of_the_program():
    def fun(tree, *, scale):
        return {"y": jnp.sin(tree["x"]) * scale, "n": tree["n"] + 1}

    args = {"x": X, "n": jnp.array([1, 2])}
    found, wanted = ft.checked(fun)(args, scale=2.0), fun(args, scale=2.0)
    assert ft.tree.map(np.allclose, found, wanted) == {"y": True, "n": True}
    static = ft.checked(ft.jit(lambda x, n: x ** n, static_argnums=1))
    assert static(X, 2).tolist() == [1, 1, 4]


def test_the_scope_ends_and_belongs_to_its_thread():
    with ft.debug_nans(), ft.debug_nans():
        other = []
        thread = threading.Thread(target=lambda: other.append(float(jnp.log(jnp.array(-1.0)))))
        thread.start()
        thread.join()
    assert np.isnan(other[0])
    assert np.isnan(jnp.log(jnp.array(-1.0)))
    with pytest.raises(NotFiniteError):
        ft.debug_nans()(lambda: jnp.log(jnp.array(-1.0)))()
    with pytest.raises(ArgumentError, match="being traced"):
        ft.jit(in_debug_nans(jnp.log))(X)


# laws ------------------------------------------------------------------------------------------

UNARY = [jnp.exp, jnp.log, jnp.sqrt, jnp.tanh, jnp.abs, lax.neg, lax.rsqrt, jnp.floor, jnp.sin,
         lambda x: x * 1e20, lambda x: x[::-1], lambda x: jnp.cumsum(x), lambda x: x ** 3,
         lambda x: x.astype("float16").astype("float32"), jnp.arctan,
         lambda x: jnp.sort(x), lambda x: x - x.max(), lambda x: x.at[0].set(1.0)]
BINARY = [lax.add, lax.sub, lax.mul, lax.div, lax.max, lax.min, jnp.power,
          lambda x, y: jnp.where(x > y, x, y), lambda x, y: jnp.where(x > 0, y, 1.0)]
STEPS = st.lists(st.tuples(st.integers(0, len(UNARY) + len(BINARY) - 1), st.integers(0, 3)),
                 min_size=1, max_size=7)
NUMBERS = st.lists(st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.0, -90.0, 100.0, 1e30]), min_size=3,
                   max_size=3)


def program(steps):
    def fun(x):
        values = [x]
        for op, at in steps:
            y = values[max(len(values) - 1 - at, 0)]
            values.append(UNARY[op](y) if op < len(UNARY) else
                          BINARY[op - len(UNARY)](values[-1], y))
        return values[-1] > 0, values[len(values) // 2]
    return fun


class Failed(Exception):
    pass


def finite_throughout(jaxpr, args):
    """The results of a program; raises Failed where an equation gives other than finite numbers."""
    env = dict(zip(jaxpr.invars, args, strict=True))
    for eqn in prune_jaxpr(jaxpr).eqns:
        ins = [a.value if isinstance(a, Literal) else env[a] for a in eqn.invars]
        if eqn.primitive.higher_order:
            outs = finite_throughout(*eqn.primitive.called(ins, **eqn.params))
        else:
            outs = eqn.primitive.run(*map(np.asarray, ins), **eqn.params)
            outs = outs if eqn.primitive.multiple_results else [outs]
        if any(bits_of(np.asarray(o)) for o in outs):
            raise Failed
        env.update(zip(eqn.outvars, outs, strict=True))
    return [a.value if isinstance(a, Literal) else env[a] for a in jaxpr.outvars]


@settings(max_examples=80, deadline=None)
@given(STEPS, NUMBERS)
def test_no_failure_is_missed_and_none_is_made_up(steps, numbers):
    fun = program(steps)
    x = np.array(numbers, np.float32)
    with ft.config.use_backend("reference"):
        try:
            finite_throughout(ft.jit(fun).lower(x).jaxpr, [x])
        except Failed:
            error_of(ft.checked(fun), x)
        else:
            ft.checked(fun)(x)


def with_bit(x, bit):
    """x with one element replaced by a NaN or an infinity."""
    out = np.array(x)
    out.reshape(-1)[out.size // 2] = {NAN: np.nan, POSITIVE: np.inf, NEGATIVE: -np.inf}[bit]
    return out


def equation_of(case):
    avals = [get_aval(a) for a in case.args]
    outs = case.primitive.type(*avals, **case.params)
    outvars = tuple(map(Var, outs if case.primitive.multiple_results else [outs]))
    return Equation(case.primitive, tuple(map(Var, avals)), outvars, case.params)


# of others nothing is claimed
CASES = [c for c in all_cases() if (any(a.dtype == np.float32 and a.size for a in c.args)
         and propagation_of(equation_of(c)).makes != ALL) or c.primitive.name == "dot_general"]


@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
def test_primitives_do_with_nan_and_infinities_what_is_known_of_them(case):
    primitive, args, params = case.primitive, case.args, case.params
    eqn = equation_of(case)
    spread = propagation_of(eqn)
    for k, bit in itertools.product(range(len(args)), (NAN, POSITIVE, NEGATIVE)):
        if args[k].dtype != np.float32 or not args[k].size:
            continue
        changed = [with_bit(a, bit) if i == k else a for i, a in enumerate(args)]
        results = primitive.run(*changed, **params)
        results = results if primitive.multiple_results else [results]
        results = results[k:k + 1] if is_barrier(eqn) else results
        has = 0
        for r in results:
            has |= bits_of(np.asarray(r))
        passing = spread.operand(k)
        made = constant_bits(eqn) | spread.makes
        assert not has & ~(passing.may_become(bit) | made), (bit, has)
        if passing.covered(ALL) & bit:
            assert has & passing.may_become(bit), (bit, has)


def test_a_nan_of_the_arguments_is_said_to_be_theirs():
    with pytest.raises(NotFiniteError, match="the NaN came with the arguments"):
        ft.checked(lambda x, w: x @ w)(np.full((3, 3), np.nan, "f"), np.ones((3, 3), "f"))
    with pytest.raises(NotFiniteError, match="an infinity among them"):
        ft.checked(lambda x: x - x)(np.full(3, np.inf, "f"))


def test_results_are_not_the_memory_of_arguments():
    x = np.ones((300, 300), "f")
    run = ft.checked(lambda x: (x, x.T, x.reshape(-1), x + 1))
    for _ in range(2):
        found = run(x)
        x[:] = 7
        assert all((np.asarray(y) == e).all() for y, e in zip(found, (1, 1, 1, 2), strict=True))
        x[:] = 1
