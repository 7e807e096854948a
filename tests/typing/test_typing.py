"""mypy --strict on programs of users: one without errors, one with an error on many lines."""

import re
import subprocess
import sys
from pathlib import Path

from tests.typing import program

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def layout():
    """The package as it is once installed, in links: what `make typecheck` makes."""
    package = ROOT / "build" / "typing" / "functrans"
    package.mkdir(parents=True, exist_ok=True)
    for path in [*(ROOT / "functrans").iterdir(), ROOT / "primitives", ROOT / "lowering"]:
        if not (package / path.name).exists():
            (package / path.name).symlink_to(path)


def errors():
    """What mypy finds in both files, as (name of the file, line, code)."""
    layout()
    # with the options and the cache of make typecheck, after which this takes two seconds
    done = subprocess.run([sys.executable, "-m", "mypy", HERE / "program.py", HERE / "mistakes.py"],
                          cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr or done.stdout
    found = re.findall(r"^tests/typing/(\w+)\.py:(\d+): error: .*  \[([a-z-]+)\]$", done.stdout,
                       re.M)
    assert len(found) == done.stdout.count("error:"), done.stdout
    return [(name, int(line), code) for name, line, code in found]


def test_programs_of_users_have_the_errors_that_they_should_have():
    lines = (HERE / "mistakes.py").read_text().splitlines()
    expected = [("mistakes", i, line.partition("# error: ")[2])
                for i, line in enumerate(lines, start=1) if "# error: " in line]
    assert len(expected) > 15
    assert errors() == expected


def test_program_runs():
    program.main()
