"""docs/guide/distributed.md: its examples run."""

import doctest
from pathlib import Path

import functrans as ft

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "distributed.md"


def test_examples_run():
    with ft.config.cpu_devices(1):  # the page sets more, and they end with this
        found = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 15
    assert not found.failed
