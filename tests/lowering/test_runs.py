"""What is said to be neighbours in memory is: all places of tiles, computed one by one."""

import os

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from functrans.lowering.loops.index import Index, LoopVar, Quotient
from functrans.lowering.loops.runs import visible_run

MANY = int(os.environ.get("FUNCTRANS_EXAMPLES", "0"))
EXAMPLES = settings(max_examples=MANY or 150, deadline=None, derandomize=not MANY, database=None,
                    print_blob=False, suppress_health_check=list(HealthCheck))
ROW, PLACE = LoopVar("o", 3), LoopVar("i", 192)
NUMBERS = (2, 3, 4, 6, 8, 12, 16, 40, 48, 96)


def steps():
    number = st.sampled_from(NUMBERS)
    return st.lists(st.one_of(
        st.tuples(st.just("add"), number), st.tuples(st.just("mul"), number),
        st.tuples(st.just("div"), number), st.tuples(st.just("rem"), number),
        st.tuples(st.just("apart"), number, number), st.tuples(st.just("row"), number),
        st.tuples(st.just("plus"), number)), min_size=1, max_size=5)


def index_of(chain):
    index = Index.of(PLACE)
    for name, *n in chain:
        if name == "add":
            index = index + n[0]
        elif name == "mul":
            index = index * n[0]
        elif name == "div":
            index = index // n[0]
        elif name == "rem":
            index = index % n[0]
        elif name == "row":
            index = index + Index.of(ROW) * n[0]
        elif name == "plus":
            index = index + Index.of(PLACE) * n[0]
        else:  # a dimension between the two parts
            index = index // n[0] * (n[0] * n[1]) + index % n[0]
    return index


@given(steps(), st.sampled_from((4, 16, 64)))
@example([("apart", 48, 3)], 64)
@example([("rem", 12), ("apart", 6, 4)], 16)
@example([("row", 2), ("apart", 8, 3)], 16)
@example([("add", 2), ("apart", 8, 3)], 16)
@example([("apart", 6, 2), ("apart", 4, 2)], 16)  # runs of 2 within runs of 4
@example([("div", 6), ("mul", 8), ("plus", 1)], 16)
@example([("div", 3), ("mul", 6), ("plus", 1), ("apart", 4, 3)], 16)
@EXAMPLES
def test_runs_go_on_in_all_tiles(chain, width):
    index = index_of(chain)
    run = visible_run(index, PLACE, width)
    assert width % run == 0
    for row in range(ROW.high):
        places = [place_of(index, row, i) for i in range(PLACE.high)]
        for start in range(0, PLACE.high, run):
            assert places[start:start + run] == [*range(places[start], places[start] + run)]


def place_of(index, row, i):
    """What an index is for the values of the loop variables."""
    total = index.const
    for atom, c in index.terms.items():
        if isinstance(atom, LoopVar):
            total += c * (i if atom is PLACE else row)
        else:
            inner = place_of(atom.index, row, i)
            total += c * (inner // atom.divisor if isinstance(atom, Quotient)
                          else inner % atom.divisor)
    return total


@pytest.mark.parametrize("chain, run", [
    ([], 64), ([("row", 3), ("add", 5)], 64), ([("mul", 2)], 1), ([("div", 2)], 1),
    ([("apart", 64, 3)], 64), ([("apart", 48, 3)], 16), ([("apart", 40, 3)], 8),
    ([("apart", 42, 3)], 2), ([("apart", 3, 3)], 1), ([("apart", 8, 3), ("row", 7)], 8),
    ([("add", 4), ("apart", 8, 3)], 4), ([("row", 12), ("apart", 8, 3)], 4),
    ([("add", 1), ("apart", 8, 3)], 1)])
def test_runs_are_as_long_as_powers_of_two_divide(chain, run):
    assert visible_run(index_of(chain), PLACE, 64) == run
