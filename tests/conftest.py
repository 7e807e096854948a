"""Of wide tables of cases some run each time, and all of them in `make thorough`.

`@pytest.mark.one_in(n)` takes one in SHARE * n of a test's cases, of crossed tables along their
diagonals, so that every row of a table that is crossed with one of as many rows or more is among
them. `@pytest.mark.one_sample_in(n)` takes one in SHARE * n of the samples of each primitive, whose
names are those of the primitive and a number.
"""

import gc
import os
from collections import Counter

import pytest
from _pytest.mark.structures import ParameterSet

SHARE = 2
"""Of the tables all tests together have time for, in twenty minutes of two cores."""


def pytest_configure(config):
    """Without tests that need a GPU none is seen: programs would be compiled for it."""
    if "not gpu" in config.option.markexpr:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    samples = Counter()
    for item in items:
        if (mark := item.get_closest_marker("one_in")) and diagonal(item) % (SHARE * mark.args[0]):
            item.add_marker(pytest.mark.thorough)
        if mark := item.get_closest_marker("one_sample_in"):
            primitive = item.nodeid.rpartition("-")[0]
            if samples[primitive] % (SHARE * mark.args[0]):
                item.add_marker(pytest.mark.thorough)
            samples[primitive] += 1


def diagonal(item) -> int:
    """The sum of a case's places in the tables that its test is crossed with."""
    return sum(place_in(mark, item.callspec) for mark in item.iter_markers("parametrize"))


def place_in(mark, callspec) -> int:
    """Where a table has the values of a case: pytest's own numbers are those of the whole product,
    in the versions that have them."""
    names, table = mark.args[:2]
    names = [n.strip() for n in names.split(",")] if isinstance(names, str) else [*names]
    wanted = [callspec.params[name] for name in names]
    for place, row in enumerate(table):
        values = row.values if isinstance(row, ParameterSet) else row if len(names) > 1 else [row]
        if all(value is want for value, want in zip(values, wanted, strict=True)):
            return place
    return callspec.indices[names[0]]


def pytest_collection_finish():
    """Collect garbage seldom, and not among the tests: programs that are kept are many objects."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
