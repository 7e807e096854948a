"""export.md: its examples run, and export_format.md says what the code does."""

import doctest
from pathlib import Path

from functrans.export import container, parameters, plain, programs, sizes

DOCS = Path(__file__).parents[2] / "docs"


def test_examples():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    page = DOCS / "guide" / "export.md"
    result = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert result.attempted >= 15
    assert result.failed == 0


def test_the_format_has_the_limits_of_the_code():
    text = (DOCS / "reference" / "export_format.md").read_text()
    assert f"Version {container.FORMAT_VERSION}." in text
    assert container.MAGIC.hex(" ").upper() in text
    assert f"Lists nest {plain.DEPTH}\n" in text
    assert f"Programs call programs {programs.MOST_LEVELS} deep" in text
    assert f"{programs.MOST_EQUATIONS:,} equations at most" in text
    assert f"{sizes.MOST_TERMS} operations at most in\n  one, {sizes.MOST_TERMS_OF_ALL:,}" in text
    assert f"(by an integer up to {sizes.MOST_POWER})" in text
    assert Path(parameters.__file__).match("functrans/export/parameters.py")
    assert "`functrans/export/parameters.py`" in text
