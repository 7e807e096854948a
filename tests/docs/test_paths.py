"""Files that pages name are there: a page that was written before a move says so here."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
FOLDERS = ("functrans", "primitives", "lowering", "csrc", "tests", "benchmarks", "examples")
NAMED = re.compile(r"`([\w/]+\.(?:py|cpp|h|c))`")


@pytest.fixture(scope="module")
def files():
    return {f"/{path.relative_to(ROOT)}" for folder in FOLDERS
            for path in (ROOT / folder).rglob("*") if path.is_file()}


def missing(text, files):
    """Paths in backticks, from any folder on, that are of no file."""
    return [name for name in NAMED.findall(text)
            if not any(file.endswith(f"/{name}") for file in files)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page, files):
    assert missing(page.read_text(), files) == []


def test_a_missing_file_is_found(files):
    assert missing("`core/table.py` and `core/tables.py`", files) == ["core/tables.py"]
