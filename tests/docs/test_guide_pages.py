"""The examples of the guide's pages run."""

import doctest

import pytest

from tests.docs.pages import DOCS, FIRST

# Each with the least number of examples; pages with more to test have a file of their own.
PAGES = {
    FIRST.name: 5, "guide/quickstart.md": 15, "guide/coming_from_jax.md": 4,
    "guide/coming_from_pytorch.md": 15, "guide/sharp_bits.md": 30, "guide/dp_sgd.md": 15,
    "guide/custom_rules.md": 12, "guide/loops.md": 12, "guide/profiling.md": 12,
    "guide/gpu.md": 3, "guide/training.md": 20, "guide/debugging.md": 12,
}


@pytest.mark.parametrize("page", PAGES)
def test_examples(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=flags)
    assert result.attempted >= PAGES[page]
    assert result.failed == 0
