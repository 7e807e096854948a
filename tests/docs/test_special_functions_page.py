"""special_functions.md names every function and distribution, and its examples run."""

import doctest
import re
from pathlib import Path

from functrans.scipy import special, stats

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "special_functions.md"


def test_every_function_is_named():
    named = set(re.findall(r"`([A-Za-z_0-9]+)[` ]", PAGE.read_text()))
    assert set(special.__all__) <= named
    assert set(stats.__all__) <= named


def test_examples():
    assert doctest.testfile(str(PAGE), module_relative=False).failed == 0
