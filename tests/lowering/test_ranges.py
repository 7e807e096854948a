"""Integers stay within the bounds that are known of them, and comparisons are what they are."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from functrans.lowering.loops.index import Computed, Index, LoopVar
from functrans.lowering.loops.ranges import KnownRanges

VALUES = st.integers(-40, 40)
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum,
          "min": np.minimum, "rem": np.fmod, "and": np.bitwise_and}
TESTS = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
         "eq": np.equal, "ne": np.not_equal}


@st.composite
def steps(draw):
    """Leaves with a value and the size of their range, and operations on what stands before."""
    leaves = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 31)), min_size=1,
                           max_size=3))
    operations = draw(st.lists(st.tuples(
        st.sampled_from([*BINARY, "const", "neg", "select"]), st.integers(0, 99),
        st.integers(0, 99), VALUES), max_size=12))
    return leaves, operations


@settings(max_examples=300)
@given(steps())
def test_bounds(program):
    leaves, operations = program
    s = KnownRanges(lambda t: True)
    known = []
    for k, (value, more) in enumerate(leaves):
        e = s.index(Index.of(LoopVar(f"i{k}", value + more)), "i32")
        known.append((e, np.int32(value)))
    for name, i, j, value in operations:
        (a, x), (b, y) = known[i % len(known)], known[j % len(known)]
        if name == "const":
            known.append((s.const(np.int32(value), "i32"), np.int32(value)))
        elif name == "neg":
            known.append((s.op("neg", a), -x))
        elif name == "select":
            test = s.op("lt", a, s.const(np.int32(value), "i32"), dtype="bool")
            known.append((s.op("select", test, a, b, dtype="i32"), x if x < value else y))
        elif name != "rem" or y != 0:
            with np.errstate(over="ignore"):
                known.append((s.op(name, a, b), BINARY[name](x, y)))
    for e, x in known:
        low, high = s.bounds(e)
        assert low <= x <= high
        for name, test in TESTS.items():
            for other, y in known:
                found = s.op(name, e, other, dtype="bool")
                assert found.op != "const" or bool(found.aux) == test(x, y)


def test_what_is_in_bounds_is_not_moved():
    s = KnownRanges(lambda t: True)
    place = s.op("rem", s.index(Index.of(LoopVar("i", 100)), "i32"), s.const(np.int32(7), "i32"))
    zero, top = s.const(np.int32(0), "i32"), s.const(np.int32(6), "i32")
    assert s.op("min", s.op("max", place, zero), top) is place
    assert s.op("lt", place, zero, dtype="bool").aux == np.False_
    assert s.index(Index.of(Computed(place, 7)), "i32") is place


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["sin", "exp", "abs", "neg", "tanh", "sqrt", "select"]),
                          st.integers(0, 9)), max_size=6),
       st.floats(width=32), st.floats(-3, 3, width=32))
def test_bounds_of_floats(operations, x, bound):
    """Whatever is decided holds of NaN, too."""
    s = KnownRanges(lambda t: True)
    limit = s.const(np.float32(bound), "f32")
    known = [(s.op("convert", s.index(Index.of(LoopVar("i", 9)), "i32"), dtype="f32"),
              np.float32(x)), (limit, np.float32(bound))]
    for name, k in operations:
        a, value = known[k % len(known)]
        if name == "select":
            test = s.op("lt", a, limit, dtype="bool")
            known.append((s.op("select", test, a, limit, dtype="f32"),
                          value if value < bound else np.float32(bound)))
            continue
        with np.errstate(all="ignore"):
            known.append((s.op(name, a), {"neg": np.negative}.get(name, getattr(
                np, name, None))(value)))
    for a, x in known:
        for b, y in known:
            for name, test in TESTS.items():
                found = s.op(name, a, b, dtype="bool")
                assert found.op != "const" or bool(found.aux) == bool(test(x, y))
