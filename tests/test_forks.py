"""A forked child of a test ends where it is, whatever it raises."""

import ast
import os
from pathlib import Path

from tests.forks import holds_in_child

TESTS = Path(__file__).parent


def test_a_child_that_fails_says_so_and_ends(capfd):
    here = os.getpid()
    assert holds_in_child(lambda: os.getpid() != here)
    assert not holds_in_child(lambda: False)
    assert not holds_in_child(lambda: 1 // 0 == 0)
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert not holds_in_child(lambda: sum(range(10**12)) > 0, seconds=1)
    assert os.getpid() == here


def forks(text: str) -> list[int]:
    """Lines of calls of os.fork; in texts of programs that tests start it is their own affair."""
    return [node.lineno for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Attribute) and node.attr == "fork"]


def test_tests_fork_nowhere_else():
    assert forks("import os\nos.fork()\n'os.fork()'") == [2]
    found = {}
    for file in TESTS.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if "os.fork(" in text and file.name != "forks.py" and (lines := forks(text)):
            found[str(file.relative_to(TESTS))] = lines
    assert found == {}
