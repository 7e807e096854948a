"""What tests of a kernel say about others: an outcome that follows is no branch of its own."""

import itertools

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.loops.expr import ExprBuilder
from functrans.lowering.loops.index import Index, LoopVar

ROWS = LoopVar("o", 12)
AT = Index.of(ROWS) % 6  # 0 to 5
TESTS = [(AT, 0, 4), (AT - 4, 0, 2), (AT, 0, 1), (AT + 1, 3, 6), (AT, 2, 3)]


def holds(test, at):
    index, low, high = test
    return low <= at + index.const < high


@pytest.mark.parametrize("given", list(itertools.combinations(TESTS, 2)))
def test_what_facts_decide_is_so_wherever_they_hold(given):
    for outcomes in itertools.product((True, False), repeat=2):
        facts = dict(zip(given, outcomes, strict=True))
        places = [at for at in range(6) if all(holds(t, at) == v for t, v in facts.items())]
        builder = ExprBuilder(lambda _: True, {}, facts)
        for test in TESTS:
            decided = builder._decided(test)
            assert decided is None or {holds(test, at) for at in places} <= {decided}
            if test[0].const == given[0][0].const == given[1][0].const == 0 and places \
                    and places == list(range(places[0], places[-1] + 1)) \
                    and len({holds(test, at) for at in places}) == 1:
                assert decided is not None  # places in a row are an interval


def test_borders_of_a_stencil_are_written_once_each():
    """Rows at the top, at the bottom and between them: three loops, not one for each of 2^3."""
    def stencil(x):
        y = jnp.pad(x, ((2, 1), (0, 0)))
        return y[:-3] + 2 * y[1:-2] - 3 * y[3:] * x

    x = ft.ShapeDtypeStruct((48, 64), "float32")
    explained = ft.explain(ft.jit(lambda x: stencil(stencil(x))), x, target="cpu")
    (kernel,) = explained.kernels[-1:]
    assert explained.source(kernel.name).count("for (i64 i = ") <= 4
