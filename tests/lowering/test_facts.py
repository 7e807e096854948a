"""What tests of a kernel say about others: an outcome that follows is no branch of its own."""

import itertools
import operator

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.loops.expr import ExprBuilder, reachable_expressions
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


@pytest.mark.parametrize("scale", [1, 3, 1 << 31])
@pytest.mark.parametrize("const", [-7, 0, 4])
def test_tests_of_places_are_comparisons(const, scale):
    """Each test is true where its bounds hold, with what the bounds of a variable leave open."""
    i = LoopVar("i", 9)
    index = Index({i: scale}, const)
    for low, high in itertools.product(range(-8, 30, 3), repeat=2):
        low, high = low * max(scale // 3, 1), high * max(scale // 3, 1) + 1
        if low >= high:
            continue
        s = ExprBuilder(lambda t: True)
        found = s.when([(index, low, high)], lambda s=s: s.const(True, "bool"),
                       lambda s=s: s.const(False, "bool"))
        held = [low <= k * scale + const < high for k in range(9)]
        assert [_value(found, k) for k in range(9)] == held
        if 0 < sum(held) < 9 and scale < 1 << 31:
            assert all(a.dtype == "i32" for e in reachable_expressions([found])
                       if e.op in ("ge", "lt", "eq") for a in e.args)


def _value(e, k):
    """An expression of comparisons where the loop variable is k."""
    if e.op == "const":
        return e.aux.item()
    if e.op == "index":
        value = e.aux.const + sum(c * k for c in e.aux.terms.values())
        assert -2**(int(e.dtype[1:]) - 1) <= value < 2**(int(e.dtype[1:]) - 1)
        return value
    if e.op == "select":
        return _value(e.args[1 if _value(e.args[0], k) else 2], k)
    return {"ge": operator.ge, "lt": operator.lt, "eq": operator.eq,
            "and": operator.and_}[e.op](*[_value(a, k) for a in e.args])
