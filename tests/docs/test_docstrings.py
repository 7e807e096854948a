"""Docstrings become reStructuredText in which code is code and nothing else is markup."""

import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[2] / "docs" / "extensions" / "docstrings.py"
SPEC = importlib.util.spec_from_file_location("docstrings", PATH)
docstrings = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(docstrings)


def rst(text):
    return "\n".join(docstrings.to_rst(text.split("\n"))).rstrip("\n")


def test_code_and_what_looks_like_markup():
    assert rst("`f(*args)` of x_ and *y*, a|b.") == r"``f(*args)`` of x\_ and \*y\*, a\|b."
    assert rst("(`grad`)s, `x`s and the\n`next\nline`.") == "(``grad``)s, ``x``\\ s and the\n" \
        "``next line``."


def test_examples_stay():
    example = ">>> f(2 * x)\n... # a `comment`\nArray([1., 2.])"
    assert rst(f"Sum.\n{example}\n\nThen `more`.") == f"Sum.\n\n{example}\n\nThen ``more``."


def test_what_is_indented_keeps_its_lines():
    assert rst("As in\n\n    a = b * c\n    d") == "As in\n\n::\n\n       a = b * c\n       d"
    assert rst("- one `a`\n  goes on\n- two") == "- one ``a``\n  goes on\n- two"
