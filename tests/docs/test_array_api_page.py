"""docs/guide/array_api.md: its examples run."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "array_api.md"


def test_examples():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert result.attempted >= 7
    assert result.failed == 0
