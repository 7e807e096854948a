"""The tests that libraries ship, on functrans: `python -m tests.ecosystem.library_tests [optax]`.

Counted are those that pass with JAX in an environment of the same versions; `with_jax.json` has
which do not. `--record python` runs them with the JAX of another interpreter and writes that file;
`--write` writes what passes into docs/guide/jax_libraries.md.
Exits with 1 where fewer than 98 % of those pass.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from tests.ecosystem import page

HERE = Path(__file__).parent
RECORD = HERE / "with_jax.json"
LIBRARIES = ("chex", "optax")
ENOUGH = 0.98
PLUGIN = ("-p", "functrans.as_jax.pytest_plugin")

# tests that end what the tests after them need, by class and name
LEFT_OUT = {
    # runs the exit functions of the process, of which one empties the registry of trees of optree
    "chex": ["chex._src.asserts_chexify_test.AssertsChexifyTest::test_uninspected_checks"],
}


@dataclass(frozen=True)
class Outcome:
    """What became of each test of a library, by "class::name": passed, failed or skipped."""

    library: str
    tests: dict[str, str]

    def of(self, what: str) -> set[str]:
        return {name for name, outcome in self.tests.items() if outcome == what}


def run(library: str, python: str, plugin: tuple[str, ...], workers: int,
        show: bool = False) -> Outcome:
    """Run the tests of a library with an interpreter."""
    left_out = [f"--deselect={_node(test)}" for test in LEFT_OUT.get(library, []) if plugin]
    place = _place(library, python)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        subprocess.run(
            [python, "-m", "pytest", *plugin, "-c", HERE / "pytest.ini", "--rootdir", place.parent,
             "-n", str(workers), place, f"--junitxml={report}", *left_out],
            cwd=folder, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            stdout=None if show else subprocess.DEVNULL, check=False)
        if not report.exists():
            raise SystemExit(f"the tests of {library} did not run with {python}")
        return Outcome(library, outcomes(report))


def _place(library: str, python: str) -> Path:
    """Where an interpreter has a library.

    The folder above it is pytest's root, so that a test has one name wherever it is installed.
    """
    found = subprocess.run(
        [python, "-c", "import importlib.util, sys; "
         "print(*importlib.util.find_spec(sys.argv[1]).submodule_search_locations)", library],
        capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"{python} does not have {library}:\n{found.stderr}")
    return Path(found.stdout.strip())


def _node(test: str) -> str:
    """The argument of pytest for a test by its class and name."""
    cls, _, name = test.partition("::")
    module, _, cls = cls.rpartition(".")
    return f"{module.replace('.', '/')}.py::{cls}::{name}"


def outcomes(report: Path) -> dict[str, str]:
    """What a report in the format of JUnit says of each test; the worst of several entries."""
    found: dict[str, str] = {}
    order = ("passed", "skipped", "failed")
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        kinds = {child.tag for child in case}
        now = "failed" if kinds & {"failure", "error"} else \
            "skipped" if "skipped" in kinds else "passed"
        found[name] = max(now, found.get(name, now), key=order.index)
    return found


def recorded(library: str) -> tuple[int, set[str]]:
    """How many tests there are with JAX, and which of them do not pass."""
    entry = json.loads(RECORD.read_text())["libraries"][library]
    return entry["tests"], {f"{cls}::{name}" for cls, names in entry["not passing"].items()
                            for name in names}


def record(outcome: Outcome, version: str) -> None:
    """Write down which tests do not pass with JAX."""
    data = json.loads(RECORD.read_text()) if RECORD.exists() else {"libraries": {}}
    by_class = defaultdict(list)
    for name in sorted(set(outcome.tests) - outcome.of("passed")):
        cls, _, test = name.partition("::")
        by_class[cls].append(test)
    data.pop("note", None)
    data["jax"] = version
    data["libraries"][outcome.library] = {"tests": len(outcome.tests), "not passing": by_class}
    RECORD.write_text(json.dumps(data, indent=1) + "\n")


def compared(outcome: Outcome) -> tuple[int, int, list[str]]:
    """How many of the tests that pass with JAX pass, how many these are, and which do not."""
    tests, not_passing = recorded(outcome.library)
    expected = tests - len(not_passing)
    passed = outcome.of("passed") - not_passing
    return len(passed), expected, sorted(set(outcome.tests) - not_passing - passed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("libraries", nargs="*", default=LIBRARIES)
    parser.add_argument("--record", metavar="PYTHON", help="an interpreter with JAX")
    parser.add_argument("--write", action="store_true", help="write docs/guide/jax_libraries.md")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="show what pytest prints")
    given = parser.parse_args()
    if given.write and set(given.libraries) != set(LIBRARIES):
        parser.error("--write writes the whole list: give no names")
    enough, lines = True, []
    for library in given.libraries:
        if given.record:
            version = subprocess.run(
                [given.record, "-c", "import importlib.metadata as m; print(m.version('jax'))"],
                capture_output=True, text=True, check=True).stdout.strip()
            record(run(library, given.record, (), given.workers, given.show), version)
            continue
        passed, expected, others = compared(
            run(library, sys.executable, PLUGIN, given.workers, given.show))
        lines.append(f"- {library}: {passed:,} of {expected:,} ({passed / expected:.1%})")
        print(f"{lines[-1]} of the tests that pass with JAX pass")
        for name in others:
            print(f"  not: {name}")
        enough &= passed >= ENOUGH * expected
    if given.write:
        page.write("list of tests", "\n".join(lines))
    sys.exit(not enough)


if __name__ == "__main__":
    main()
