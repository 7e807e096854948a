"""Of wide tables of cases some run each time, and all of them in `make thorough`.

`@pytest.mark.one_in(n)` takes one in n of a test's cases. A number that does not divide the lengths
of crossed tables takes every row of each. `@pytest.mark.one_sample_in(n)` takes one in n of the
samples of each primitive, whose names are those of the primitive and a number.
"""

import gc
from collections import Counter

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    seen = Counter()
    for item in items:
        for name in ("one_in", "one_sample_in"):
            mark = item.get_closest_marker(name)
            if mark is not None:
                (n,) = mark.args
                cases = item.nodeid.rpartition("-" if name == "one_sample_in" else "[")[0]
                if seen[cases] % n:
                    item.add_marker(pytest.mark.thorough)
                seen[cases] += 1


def pytest_collection_finish():
    """Collect garbage seldom, and not among the tests: programs that are kept are many objects."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
