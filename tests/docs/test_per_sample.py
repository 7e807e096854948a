"""docs/guide/per_sample.md: its examples run, and it shows every function of the module."""

import doctest
from pathlib import Path

from functrans import per_sample

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "per_sample.md"


def test_examples():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert result.attempted >= 30
    assert result.failed == 0


def test_every_function_is_shown():
    text = PAGE.read_text()
    functions = [name for name in per_sample.__all__ if name.islower()]
    assert functions
    assert not [name for name in functions if f"per_sample.{name}(" not in text]
