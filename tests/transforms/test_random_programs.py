"""The laws of the transforms on random programs.

More examples than a test run has time for: FUNCTRANS_EXAMPLES=5000 pytest on this file, with
another seed each time.
"""

import os

import numpy as np
from hypothesis import HealthCheck, example, given, settings

import functrans as ft
import functrans.numpy as jnp
from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.check import check_jaxpr
from functrans.core.evaluate import eval_jaxpr, interpret
from functrans.core.staging import stage
from functrans.lowering.passes.batch_chunks import batches_of, in_chunks
from functrans.lowering.passes.pipeline import simplify
from tests.transforms import programs

MANY = int(os.environ.get("FUNCTRANS_EXAMPLES", "0"))
EXAMPLES = settings(max_examples=MANY or 6, deadline=None, derandomize=not MANY, database=None,
                    print_blob=False, suppress_health_check=list(HealthCheck))


def assert_close(actual, expected, tolerance=1e-9):
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        a, e = np.asarray(a), np.asarray(e)
        assert a.dtype == e.dtype
        assert a.shape == e.shape
        if a.dtype != dtypes.float0:
            np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)


def draw_tangents(arrays, seed):
    """Random tangents; float0 for integers."""
    rng = np.random.default_rng(seed)
    tangents = []
    for a in map(np.asarray, arrays):
        if a.dtype.kind in "iub":
            tangents.append(np.zeros(a.shape, dtypes.float0))
            continue
        t = rng.standard_normal(a.shape)
        tangents.append(np.asarray(t + 1j * rng.standard_normal(a.shape) if a.dtype.kind == "c"
                                   else t))
    return tangents


def moved(arrays, tangents, step):
    return [a if t.dtype == dtypes.float0 else a + step * t
            for a, t in zip(arrays, tangents, strict=True)]


def stacked(arrays):
    """Three elements per array: the array, and two others with values of the same kind."""
    return [np.stack([a, a[::-1] if a.ndim else a + 1, (a * 3) // 2 if a.dtype.kind == "i" else
                      a * 0.7]) for a in arrays]


def program_and_inputs(test):
    return given(programs.programs(), programs.inputs())(EXAMPLES(test))


@program_and_inputs
def test_jit_and_the_reference_evaluator_equal_eager(program, arrays):
    def fun(*xs):
        return programs.outputs(program, list(xs))

    eager = fun(*map(ft.numpy.asarray, arrays))
    closed = stage(fun, [get_aval(a) for a in arrays])
    check_jaxpr(closed)
    assert_close(interpret(closed.jaxpr.hoist_consts(), [*closed.consts, *arrays]), eager)
    assert_close(ft.jit(fun)(*arrays), eager)
    assert_close(ft.jit(fun)(*arrays), eager)


@program_and_inputs
def test_derivatives(program, arrays):
    def fun(*xs):
        return programs.outputs(program, list(xs))

    tangents = draw_tangents(arrays, 0)
    outs, pushed = ft.jvp(fun, arrays, tangents)
    assert_close(outs, fun(*map(ft.numpy.asarray, arrays)))
    assert_finite_differences(fun, arrays, tangents, pushed)
    cts = draw_tangents(outs, 1)
    pulled = ft.vjp(fun, *arrays)[1](cts)
    np.testing.assert_allclose(inner(cts, pushed), inner(pulled, tangents), rtol=1e-7, atol=1e-7)
    linear_outs, push = ft.linearize(fun, *arrays)
    assert_close(linear_outs, outs)
    assert_close(push(*tangents), pushed, 1e-7)
    staged = ft.jit(lambda xs, ts: ft.jvp(fun, xs, ts))(arrays, tangents) if not any(
        t.dtype == dtypes.float0 for t in tangents) else (outs, pushed)
    assert_close(staged[1], pushed, 1e-7)
    floating = [i for i, a in enumerate(arrays) if a.dtype.kind != "i"]
    back = ft.jit(lambda xs, cs: [ft.vjp(fun, *xs)[1](with_float0(cs, cts))[i] for i in floating])
    assert_close(back(arrays, [c for c in cts if c.dtype != dtypes.float0]),
                 [pulled[i] for i in floating], 1e-7)


def with_float0(given, cts):
    rest = iter(given)
    return [c if c.dtype == dtypes.float0 else next(rest) for c in cts]


def inner(xs, ys):
    return sum(float(np.sum(np.asarray(x) * np.asarray(y)).real)
               for x, y in zip(xs, ys, strict=True) if x.dtype != dtypes.float0)


def assert_finite_differences(fun, arrays, tangents, pushed):
    """At one of several steps: programs have kinks, and steep parts."""
    errors = []
    for step in (1e-5, 1e-6, 1e-4):
        plus, minus = (fun(*map(ft.numpy.asarray, moved(arrays, tangents, s)))
                       for s in (step, -step))
        worst = 0.0
        for p, m, t in zip(plus, minus, pushed, strict=True):
            if t.dtype != dtypes.float0:
                numeric = (np.asarray(p) - np.asarray(m)) / (2 * step)
                scale = 1.0 + np.abs(np.asarray(t))
                worst = max(worst, float(np.max(np.abs(np.asarray(t) - numeric) / scale,
                                                initial=0.0)))
        errors.append(worst)
        if worst < 1e-4:
            return
    raise AssertionError(f"the jvp differs from finite differences: {errors}")


@program_and_inputs
def test_vmap(program, arrays):
    def fun(*xs):
        return programs.outputs(program, list(xs))

    batches = stacked(arrays)
    rows = [fun(*[ft.numpy.asarray(b[i]) for b in batches]) for i in range(3)]
    loop = [np.stack([np.asarray(x) for x in column]) for column in zip(*rows, strict=True)]
    assert_close(ft.vmap(fun)(*batches), loop, 1e-8)
    assert_close(ft.jit(ft.vmap(fun))(*batches), loop, 1e-8)
    assert_close(ft.vmap(ft.jit(fun))(*batches), loop, 1e-8)
    assert_close(ft.vmap(fun, chunk_size=2)(*batches), loop, 1e-8)


# a scan whose factors, which its gradient keeps, are the same for all lanes
SHARED = (*[programs.Node(0, (0, 0, 0), 0, ())] * 3, programs.Node(267, (0, 0, 0), 0, (
    programs.Node(13, (0, 0, 0), 0, (programs.Node(0, (0, 0, 0), 0, ()),)),)))


@program_and_inputs
@example(SHARED, [np.array([0.41088506, -0.69063986, -1.37707943])])
def test_batches_in_chunks(program, arrays):
    """Whatever axis of a batch and of its gradient is cut, the program computes the same."""
    batches = stacked(arrays)
    floating = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]

    def fun(*xs):
        return programs.outputs(program, list(xs))

    def total(*fs):
        outs = ft.vmap(fun)(*replaced(batches, floating, fs))
        return sum(jnp.sum(jnp.sin(jnp.real(o))) for o in outs if programs.kind_of(o) != "i")

    def both(*xs):
        return [*ft.vmap(fun)(*xs), *ft.grad(total, tuple(range(len(floating))))(
            *[xs[i] for i in floating])]

    jaxpr = ft.make_jaxpr(both)(*batches)
    whole = simplify(jaxpr.jaxpr.hoist_consts())
    inputs = [*jaxpr.consts, *batches]
    expected = eval_jaxpr(whole, (), *inputs)
    for batch in batches_of(whole):
        for chunk in {1, 2} - {batch.size}:
            cut = in_chunks(batch, chunk)
            if cut is not None:
                check_jaxpr(cut)
                assert_close(eval_jaxpr(cut, (), *inputs), expected, 1e-7)


@program_and_inputs
def test_vmap_and_derivatives_commute(program, arrays):
    batches = stacked(arrays)
    ints = [b for b in batches if b.dtype.kind == "i"]
    floats = [b for b in batches if b.dtype.kind != "i"]

    def fun(whole, xs):
        return [o for o in programs.outputs(program, [*whole, *xs]) if programs.kind_of(o) != "i"]

    tangents = draw_tangents(floats, 2)
    inside = ft.vmap(lambda w, xs, ts: ft.jvp(lambda a: fun(w, a), (xs,), (ts,)))(
        ints, floats, tangents)
    outs, outside = ft.jvp(lambda a: ft.vmap(fun)(ints, a), (floats,), (tangents,))
    assert_close(inside[1], outside, 1e-7)
    cts = draw_tangents(outs, 3)
    pulled = ft.vjp(lambda a: ft.vmap(fun)(ints, a), floats)[1](cts)[0]
    each = ft.vmap(lambda w, xs, cs: ft.vjp(lambda a: fun(w, a), xs)[1](cs)[0])(ints, floats, cts)
    assert_close(each, pulled, 1e-7)
    assert_close(ft.vmap(lambda w, xs, ts: ft.linearize(lambda a: fun(w, a), xs)[1](ts))(
        ints, floats, tangents), outside, 1e-7)


@program_and_inputs
def test_compiled_programs_equal_eager_ones(program, arrays):
    """Values, both derivatives, and maps of values and gradients, each in one compiled program."""
    floating = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]

    def fun(*xs):
        return programs.outputs(program, list(xs))

    def real(*xs):
        outs = [jnp.real(o) for o in fun(*xs) if programs.kind_of(o) != "i"]
        return sum(jnp.sum(jnp.sin(o)) for o in outs)

    def derivatives(*xs):
        return ft.grad(real, floating)(*xs)

    def pushed(*xs):
        inputs = [xs[i] for i in floating]
        return ft.jvp(lambda *fs: real(*replaced(xs, floating, fs)), inputs,
                      [jnp.cos(x) for x in inputs])

    batches = stacked(arrays)
    with ft.config.use_backend("c"):
        compiled = [ft.jit(f)(*xs) for f, xs in (
            (fun, arrays), (ft.vmap(fun), batches), (derivatives, arrays), (pushed, arrays),
            (ft.vmap(derivatives), batches))]
    eager = [f(*map(ft.numpy.asarray, xs)) for f, xs in (
        (fun, arrays), (ft.vmap(fun), batches), (derivatives, arrays), (pushed, arrays),
        (ft.vmap(derivatives), batches))]
    for actual, expected, tolerance in zip(compiled, eager, (1e-9, 1e-8, 1e-7, 1e-7, 1e-7),
                                           strict=True):
        assert_close(actual, expected, tolerance)


def replaced(xs, places, values):
    """A list with the values at some places replaced."""
    rest = iter(values)
    return [next(rest) if i in places else x for i, x in enumerate(xs)]
