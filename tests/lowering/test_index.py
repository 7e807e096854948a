"""Index arithmetic: what an index simplifies to has the value of what was asked for."""

import itertools
import os

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from functrans.core.dims import dim
from functrans.lowering.loops.index import (
    ZERO,
    Index,
    LoopVar,
    Quotient,
    Remainder,
    at_least_zero,
    flatten,
    strides_of,
    unflatten,
)

MANY = int(os.environ.get("FUNCTRANS_EXAMPLES", "0"))
EXAMPLES = settings(max_examples=MANY or 200, deadline=None, derandomize=not MANY, database=None,
                    print_blob=False, suppress_health_check=list(HealthCheck))
A, B = LoopVar("a", 6), LoopVar("b", 4)
PLACES = list(itertools.product(range(6), range(4)))
NUMBERS = (1, 2, 3, 4, 6, 8, 12)


def value(index, a, b):
    """What an index is for the values of the loop variables."""
    total = index.const
    for atom, c in index.terms.items():
        if isinstance(atom, LoopVar):
            total += c * (a if atom is A else b)
        else:
            inner = value(atom.index, a, b)
            # divisions are those of C, which agree with Python's for numbers that are not negative
            assert inner >= 0
            assert isinstance(atom, (Quotient, Remainder))
            total += c * (inner // atom.divisor if isinstance(atom, Quotient)
                          else inner % atom.divisor)
    return total


def steps():
    number = st.sampled_from(NUMBERS)
    return st.lists(st.one_of(
        st.tuples(st.just("add"), st.integers(-6, 12)), st.tuples(st.just("mul"), number),
        st.tuples(st.just("div"), number), st.tuples(st.just("div"), number),
        st.tuples(st.just("rem"), number),
        st.tuples(st.just("plus"), st.sampled_from((A, B))),
        st.tuples(st.just("again"), number),
        st.tuples(st.just("side by side"), number, number)), min_size=2, max_size=8)


@given(st.sampled_from((1, 4, 5)), st.sampled_from((0, 1)), steps())
@example(1, 0, [("div", 2), ("add", 2), ("div", 2)])
@EXAMPLES
def test_arithmetic(p, q, chain):
    index = Index.of(A) * p + Index.of(B) * q
    expected = [p * a + q * b for a, b in PLACES]
    for name, n, *more in chain:
        if name in ("div", "rem", "again", "side by side") and min(expected) < 0:
            continue  # kernels divide what is not negative
        if name == "add":
            index, expected = index + n, [e + n for e in expected]
        elif name == "mul":
            index, expected = index * n, [e * n for e in expected]
        elif name == "div":
            index, expected = index // n, [e // n for e in expected]
        elif name == "rem":
            index, expected = index % n, [e % n for e in expected]
        elif name == "plus":
            index = index + Index.of(n)
            expected = [e + (a if n is A else b) for e, (a, b) in zip(expected, PLACES)]
        elif name == "again":  # what a reshape there and back leaves
            index = (index // n) * n + index % n
        else:  # the last two dimensions of three
            index = (index // n) % more[0] * n + index % n
            expected = [e % (n * more[0]) for e in expected]
        assert [value(index, a, b) for a, b in PLACES] == expected
        low, high = index.bounds()
        assert low <= min(expected)
        assert max(expected) <= high


def test_dimensions_that_stay_side_by_side_are_one():
    i = Index.of(LoopVar("i", 768))
    patch = (16, 16, 3)
    y, x, c = unflatten(i, patch)
    assert flatten((y, x, c), (224, 224, 3)) == i // 48 * 672 + i % 48
    assert flatten((x, c), patch[1:]) == c + x * 3 == i % 48
    assert flatten((y, x, c), patch) == i
    # of another stride, and of what is not the quotient
    assert len(flatten((x, c), (16, 4)).terms) == len((i // 4 % 16 * 3 + c).terms) == 2


@given(st.lists(st.sampled_from((1, 2, 3, 4)), min_size=1, max_size=4))
@EXAMPLES
def test_places_there_and_back(shape):
    variables = [LoopVar(f"v{k}", n) for k, n in enumerate(shape)]
    index = tuple([Index.of(v) if v.high > 1 else ZERO for v in variables])
    assert unflatten(flatten(index, shape), shape) == index


@given(st.sampled_from((1, 4, 5)), st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3),
       st.lists(st.sampled_from((1, 2, 3, 4, 6)), min_size=6, max_size=6))
@example(4, [4, 2], [1, 1, 1, 4, 1, 1])  # quotients and remainders that join, and cancel
@EXAMPLES
def test_a_place_is_the_sum_of_its_steps(p, numbers, sizes):
    whole = Index.of(A) * p + Index.of(B)
    index = [part for n in numbers for part in divmod(whole, n)] + [whole * -1, ZERO + 3]
    shape = sizes[-len(index):] if len(index) <= len(sizes) else [2] * len(index)
    total = ZERO
    for i, stride in zip(index, strides_of(shape), strict=True):
        total = total + i * stride
    found = flatten(index, shape)
    assert found == total and list(found.terms) == list(total.terms)
    assert [value(found, a, b) for a, b in PLACES] == [sum(
        value(i, a, b) * s for i, s in zip(index, strides_of(shape))) for a, b in PLACES]


def test_what_is_left_to_divide_by_a_symbolic_size_is_not_negative():
    """C rounds towards zero: `(4 * n - i) // n` is not `4 + -i // n` there."""
    n = dim("n", min=2)
    place = Index({LoopVar("i", 4 * n, 1): -1}, 4 * n)
    quotient, remainder = divmod(place, n)
    for atom in (*quotient.terms, *remainder.terms):
        assert at_least_zero(atom.index.bounds()[0])
