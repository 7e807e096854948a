"""Files for those who carry on: workflows, hooks, templates and the changelog are up to date."""

import re
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import functrans as ft

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = {path.name: path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml")}
TARGETS = [command for text in WORKFLOWS.values()
           for command in re.findall(r"^ +- run: (.*)", text, re.MULTILINE)]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()


def test_tests_that_the_makefile_chooses_are_there():
    text = (ROOT / "Makefile").read_text().replace("\\\n", "")
    chosen = " ".join(re.findall(r"^(?:QUICK|COMPILING) := (.*)", text, re.MULTILINE)).split()
    assert len(chosen) > 20
    for test in chosen:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists(), path
        assert not name or f"def {name}(" in (ROOT / path).read_text(), test


@pytest.mark.parametrize("command", dict.fromkeys(TARGETS))
def test_workflows_call_targets_of_the_makefile(command):
    assert re.fullmatch(r"make( [\w=]+)+", command)
    done = subprocess.run([*command.split()[:-1], f"PYTHON={sys.executable}", "--dry-run"],
                          cwd=ROOT, capture_output=True, text=True)
    assert command.endswith(" PYTHON=python") and done.returncode == 0, done.stderr


def test_the_matrix_has_every_python_that_the_package_names():
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"]
             if re.search(r"Python :: 3\.\d+$", c)]
    matrices = re.findall(r"python: \[(.*)\]", WORKFLOWS["tests.yml"])
    tested, free_threaded = [re.findall(r'"([\w.]+)"', text) for text in matrices]
    assert tested == named and f">={named[0]}" == PROJECT["requires-python"]
    assert free_threaded and all(p.endswith("t") and p[:-1] in named for p in free_threaded)


def test_hooks_have_the_version_of_ruff_that_is_pinned():
    (pin,) = [r for r in PROJECT["optional-dependencies"]["test"] if r.startswith("ruff")]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    version = re.search(r"ruff-pre-commit\n    rev: v([\d.]+)", hooks)[1]
    assert SpecifierSet(pin.removeprefix("ruff")).contains(version)
    assert "entry: make typecheck" in hooks


def test_the_bug_report_names_the_file_of_a_defect():
    prefix = re.search(r'prefix="([\w-]+)"', (ROOT / "lowering/defect_report.py").read_text())[1]
    form = (ROOT / ".github/ISSUE_TEMPLATE/bug_report.yml").read_text()
    assert "DefectError" in form and prefix in form


def test_the_changelog_has_its_form():
    titles = re.findall(r"^## \[(.*?)\](?: - (.*))?$", CHANGELOG, re.MULTILINE)
    assert titles[0] == ("Unreleased", "")
    assert titles[1][0] == ft.__version__
    days = [date.fromisoformat(day) for _, day in titles[1:]]
    assert days == sorted(days, reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)", CHANGELOG, re.MULTILINE)) <= kinds
    assert len(re.findall(r"^## ", CHANGELOG, re.MULTILINE)) == len(titles)
