"""The version is stated in functrans/version.py alone, and everything else follows it."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import functrans as ft

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_installed_distribution_has_it():
    """Where this fails after a new version, the environment is older: make installs it again."""
    assert importlib.metadata.version("functrans") == ft.__version__


def test_the_build_reads_it_from_its_file():
    assert PROJECT["project"]["dynamic"] == ["version"] and "version" not in PROJECT["project"]
    settings = PROJECT["tool"]["scikit-build"]["metadata"]["version"]
    assert settings["provider"] == "scikit_build_core.metadata.regex"
    # the default expression of this provider
    found = re.findall(r"""^__version__ *= *(['"])v?(.+?)\1""",
                       (ROOT / settings["input"]).read_text(), re.MULTILINE)
    assert [text for _, text in found] == [ft.__version__]


def test_no_other_source_states_it():
    folders = ("functrans", "primitives", "lowering", "csrc", "tests", "benchmarks", "examples")
    sources = [*ROOT.glob("*.t*"), *(path for name in folders for path in (ROOT / name).rglob("*")
                                     if path.suffix in (".py", ".cpp", ".c", ".h"))]
    stated = re.compile(rf"""version\w*["']? *[=:(] *["']?{re.escape(ft.__version__)}\b""", re.I)
    found = [path.relative_to(ROOT).as_posix() for path in sources
             if stated.search(path.read_text(encoding="utf-8"))]
    assert found == ["functrans/version.py"]
