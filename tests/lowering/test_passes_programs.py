"""Simplified programs compute the same: samples of all primitives, random programs, derivatives.

More examples than a test run has time for: FUNCTRANS_EXAMPLES=5000 pytest on this file.
"""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import functrans as ft
from functrans.core.check import check_jaxpr
from functrans.core.evaluate import interpret
from functrans.lowering.passes import scans
from functrans.lowering.passes.pipeline import simplify
from tests.laws.primitives import all_cases, has_derivative
from tests.lowering.test_passes import program_of
from tests.transforms import programs

MANY = int(os.environ.get("FUNCTRANS_EXAMPLES", "0"))
EXAMPLES = settings(max_examples=MANY or 25, deadline=None, derandomize=not MANY, database=None,
                    print_blob=False, phases=(Phase.generate,),
                    suppress_health_check=list(HealthCheck))


def check_same(fun, arrays, tolerance=1e-8):
    jaxpr, consts = program_of(fun, *arrays)
    after = simplify(jaxpr)
    check_jaxpr(after)
    log = []
    assert simplify(after, log) is after, "\n".join(map(str, log))
    actual = interpret(after, [*consts, *arrays])
    expected = interpret(jaxpr, [*consts, *arrays])
    for a, b in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        elif a.dtype.kind != "V":
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def program_and_inputs(test):
    return given(programs.programs(), programs.inputs())(EXAMPLES(test))


@program_and_inputs
def test_random_programs(program, arrays):
    check_same(lambda *xs: programs.outputs(program, list(xs)), arrays)


@program_and_inputs
def test_their_gradients(program, arrays):
    floats = [i for i, a in enumerate(arrays) if a.dtype.kind != "i"]

    def loss(xs):
        given = iter(xs)
        whole = [next(given) if i in floats else ft.numpy.asarray(a)
                 for i, a in enumerate(arrays)]
        outs = [o for o in programs.outputs(program, whole) if programs.kind_of(o) == "f"]
        return sum((ft.numpy.sum(ft.numpy.sin(o)) for o in outs), start=ft.numpy.float64(0.0))

    xs = [arrays[i] for i in floats]
    check_same(lambda *xs: ft.grad(loss)(list(xs)), xs, 1e-7)


@program_and_inputs
def test_their_batches(program, arrays):
    batches = [np.stack([a, a]) for a in arrays]
    check_same(ft.vmap(lambda *xs: programs.outputs(program, list(xs))), batches)


def loss_in_floats(program, arrays):
    """The places of floating inputs, and a loss of a program in these."""
    floats = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]

    def loss(*xs):
        given = iter(xs)
        whole = [next(given) if i in floats else ft.numpy.asarray(a)
                 for i, a in enumerate(arrays)]
        return ft.numpy.sum(ft.numpy.sin(programs.run(program, whole).astype("float64").real))

    return floats, loss


@program_and_inputs
def test_their_gradients_by_sample(program, arrays):
    floats, loss = loss_in_floats(program, arrays)

    xs = [np.stack([arrays[i], 0.5 * arrays[i]]) for i in floats]
    argnums = tuple(range(len(xs)))
    check_same(ft.vmap(ft.grad(loss, argnums)), xs, 1e-7)


@program_and_inputs
def test_their_short_loops(program, arrays):
    floats, loss = loss_in_floats(program, arrays)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scans, "SHORTEST", 2)
        check_same(ft.grad(loss, tuple(range(len(floats)))), [arrays[i] for i in floats], 1e-7)


@pytest.mark.one_sample_in(3)
@pytest.mark.parametrize("case", all_cases(), ids=str)
def test_every_primitive(case):
    check_same(case.apply, list(case.args), 1e-5 if any(
        a.dtype.itemsize < (16 if a.dtype.kind == "c" else 8) for a in case.args) else 1e-12)


@pytest.mark.one_sample_in(3)
@pytest.mark.parametrize("case", [c for c in all_cases() if has_derivative(c)], ids=str)
def test_every_derivative(case):
    wide = case.wide()

    def derivative(*args):
        fixed = [a if i in wide.floating else b for i, (a, b) in enumerate(zip(args, wide.args))]
        outs, pull = ft.vjp(lambda *xs: wide.apply(*[
            xs[wide.floating.index(i)] if i in wide.floating else a
            for i, a in enumerate(fixed)]), *[fixed[i] for i in wide.floating])
        return pull(outs)

    check_same(derivative, list(wide.args), 1e-9)


EMPTY = {
    "repeated": lambda x: (ft.numpy.broadcast_to(x, (0, 3)).sum(0), x[:0].sum()),
    "extremum": lambda x: ft.numpy.broadcast_to(x, (0, 3)).max(0, initial=1.0),
    "product": lambda x: ft.numpy.broadcast_to(x[:, None], (3, 0)) @ ft.numpy.ones((0, 2)),
    "sum_of_product": lambda x: (ft.numpy.ones((0, 3)) @ x[:, None]).sum(0),
    "joined": lambda x: ft.numpy.concatenate([x[:0], x[:0]]),
    "cumulated": lambda x: ft.numpy.cumsum(x[:0]),
}


@pytest.mark.parametrize("name", EMPTY)
def test_nothing(name):
    check_same(EMPTY[name], [np.array([np.inf, 1.0, -np.inf])])
