"""docs/guide/sparse.md: its examples run."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "sparse.md"


def test_examples_run():
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted > 10 and not found.failed
