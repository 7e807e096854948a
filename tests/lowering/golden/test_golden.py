"""Whole programs against their golden texts."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lowering.golden import FOLDER
from tests.lowering.golden.programs import PROGRAMS
from tests.lowering.golden.stages import text_of


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name: str) -> None:
    expected = (FOLDER / f"{name}.txt").read_text()
    found = text_of(name, *PROGRAMS[name])
    assert found == expected, "\n".join([
        *difflib.unified_diff(expected.splitlines(), found.splitlines(), "golden", "now",
                              lineterm=""),
        f"\nIf that is meant: python -m tests.lowering.golden {name}"])


def test_every_text_is_of_a_program() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == PROGRAMS.keys()


def test_another_process_finds_the_same(tmp_path: Path) -> None:
    """Orders of sets and of earlier programs, and the number of cores, are in no text."""
    names = list(PROGRAMS)[::-1]
    core = min(os.sched_getaffinity(0))
    subprocess.run([sys.executable, "-m", "tests.lowering.golden", "--to", str(tmp_path), *names],
                   check=True, env={**os.environ, "PYTHONHASHSEED": "1"},
                   cwd=Path(__file__).parents[3],
                   preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == \
        {p.name: p.read_text() for p in FOLDER.iterdir()}


def test_texts_have_no_names_of_classes() -> None:
    """What is behind the first section is numbers and words in lower case."""
    for path in FOLDER.iterdir():
        plans = path.read_text().partition("\n\nCPU, ")[2]
        assert plans
        assert set(re.findall(r"\w*[A-Z]\w*", plans)) <= {"GPU", "FLOP"}, path.name
