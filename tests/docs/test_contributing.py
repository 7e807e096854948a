"""CONTRIBUTING.md: its examples run, and its commands, tests, files and targets are there."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
COMMANDS = [re.sub(r"\s+#.*", "", line) for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
            for line in block.splitlines()]
MAKES = [c for c in COMMANDS if c.startswith("make ")] + re.findall(r"`(make [^`]+)`", PAGE)
SHORT = re.findall(r"^# make (\w+)", (ROOT / "Makefile").read_text(), re.MULTILINE)


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def commands(start: str) -> list[list[str]]:
    return [shlex.split(c)[len(start.split()):] for c in COMMANDS if c.startswith(start)]


def test_examples_run(monkeypatch):
    monkeypatch.chdir(ROOT)
    result = doctest.testfile(str(ROOT / "CONTRIBUTING.md"), module_relative=False,
                              optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.attempted >= 12
    assert result.failed == 0


def test_every_command_is_of_a_kind_that_is_checked_here():
    known = ("make ", "python -m pytest ", "python -m tests.lowering.golden ",
             "python benchmarks/", "python notebooks/execute.py ")
    assert [c for c in COMMANDS if not c.startswith(known)] == []
    assert all(len(commands(start)) >= 1 for start in known)


@pytest.mark.parametrize("command", dict.fromkeys(MAKES))
def test_targets(command):
    run(*shlex.split(command), "--dry-run", f"PYTHON={sys.executable}")


def test_the_makefile_lists_its_targets():
    """Those that users call are in its header, and the page has them."""
    text = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)", text, re.MULTILINE)[1].split())
    assert set(SHORT) <= targets
    assert targets - set(SHORT) == {"driver", "lint", "typecheck", "clean"}
    named = {word for command in MAKES for word in command.split()[1:]}
    assert targets - named == {"demo", "driver", "clean"}


@pytest.mark.parametrize("options", {tuple(c[1:]): None for c in commands("python -m pytest")},
                         ids=" ".join)
def test_tests_are_there(options):
    """pytest fails where a file or an id is unknown, not where one of several has none."""
    files = [c[0] for c in commands("python -m pytest") if tuple(c[1:]) == options]
    found = run(sys.executable, "-m", "pytest", "--collect-only", "-qq", *files, *options)
    assert [file for file in files if file.partition("::")[0] not in found] == []


def test_golden_texts_are_written(tmp_path):
    (names,) = commands("python -m tests.lowering.golden")
    run(sys.executable, "-m", "tests.lowering.golden", "--to", str(tmp_path), *names)
    for name in names:
        kept = ROOT / "tests" / "lowering" / "golden" / "texts" / f"{name}.txt"
        assert (tmp_path / f"{name}.txt").read_text() == kept.read_text()


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("python benchmarks/")])
def test_benchmarks_have_these_options(command):
    _, script, *arguments = shlex.split(command)
    options = re.findall(r"--[\w-]+", run(sys.executable, script, "--help"))
    assert [a for a in arguments if a.startswith("--") and a not in options] == []


def test_notebooks_of_commands_are_there():
    options = run(sys.executable, "notebooks/execute.py", "--help")
    assert [name for names in commands("python notebooks/execute.py") for name in names
            if name not in options] == []


def test_files_are_there():
    text = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    names = [name for name in re.findall(r"`([\w./-]+)`", text)
             if ("/" in name or re.search(r"\.(md|py|toml|txt|ipynb)$", name))]
    made = {"build/coverage/", "build/docs/"}
    assert len(names) > 20
    places = [ROOT, ROOT / "notebooks"]
    assert [n for n in names if n not in made and not any((p / n).exists() for p in places)] == []
