"""mypy --strict and pyright on programs of users: one without errors, one of mistakes.

Both know the type of every `assert_type`, and find every mistake.
"""

import contextlib
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.typing import distributions, program

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FILES = [HERE / "program.py", HERE / "mistakes.py"]


def layout():
    """The package as it is once installed, in links: what `make typecheck` makes."""
    package = ROOT / "build" / "typing" / "functrans"
    package.mkdir(parents=True, exist_ok=True)
    for path in [*(ROOT / "functrans").iterdir(), ROOT / "primitives", ROOT / "lowering"]:
        with contextlib.suppress(FileExistsError):  # another test process made it
            (package / path.name).symlink_to(path)


def output_of(*command):
    layout()
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True,
                          text=True)
    assert done.returncode in (0, 1), done.stderr or done.stdout
    return done.stdout


def found_by_mypy():
    # with the options and the cache of make typecheck, after which this takes two seconds
    text = output_of("mypy", *FILES)
    found = re.findall(r"^tests/typing/(\w+)\.py:(\d+): error: .*  \[([a-z-]+)\]$", text, re.M)
    assert len(found) == text.count("error:"), text
    return {(name, int(line), code) for name, line, code in found}


def found_by_pyright():
    text = output_of("pyright", "--project", ROOT, "--pythonpath", sys.executable, "--outputjson",
                     *FILES)
    return {(Path(one["file"]).stem, one["range"]["start"]["line"] + 1, one["rule"])
            for one in json.loads(text)["generalDiagnostics"] if one["severity"] == "error"}


def expected():
    """The codes of mypy (`arg-type`) and the rules of pyright (`reportCallIssue`), by line."""
    lines = (HERE / "mistakes.py").read_text().splitlines()
    said = defaultdict(set)
    for number, line in enumerate(lines, start=1):
        for code in filter(None, line.partition("  # error: ")[2].split(", ")):
            said[code.startswith("report")].add(("mistakes", number, code))
    return said


def test_each_mistake_is_to_be_found_by_both():
    said = expected()
    lines = [{line for _, line, _ in said[by]} for by in (False, True)]
    assert lines[0] == lines[1] and len(lines[0]) >= 60
    assert (HERE / "program.py").read_text().count("assert_type(") > 100


@pytest.mark.parametrize("checker", [found_by_mypy, found_by_pyright])
def test_programs_of_users_have_the_errors_that_they_should_have(checker):
    assert checker() == expected()[checker is found_by_pyright]


def test_stub_of_distributions_is_up_to_date():
    assert distributions.STUB.read_text() == distributions.text()


def test_program_runs():
    program.main()
