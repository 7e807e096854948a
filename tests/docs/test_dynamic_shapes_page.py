"""docs/guide/dynamic_shapes.md: its examples run."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "dynamic_shapes.md"


def test_examples():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert result.attempted >= 20
    assert result.failed == 0
