"""docs/reference/glossary.md: every name that it cites exists, and every group has entries."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "glossary.md").read_text()
FOLDERS = {"primitives": ROOT / "primitives", "lowering": ROOT / "lowering"}
ROOMS = "core|transforms|primitives|lowering|export|inspect|distributed"
CITED = re.findall(rf"`((?:{ROOMS})(?:\.\w+)+)`", PAGE)


def defined_in(path):
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))


def exists(name):
    *folders, module, last = name.split(".")
    head, *rest = [*folders, module]
    base = FOLDERS.get(head, ROOT / "functrans" / head)
    path = base.joinpath(*rest).with_suffix(".py")
    return path.is_file() and last in defined_in(path)


def test_the_page_cites_names():
    assert len(CITED) > 60
    assert not exists("core.jaxpr.NoSuchName")
    assert not exists("core.no_such_module.Jaxpr")


@pytest.mark.parametrize("name", sorted(set(CITED)))
def test_the_name_exists(name):
    assert exists(name)


def test_every_group_has_entries():
    groups = PAGE.split("\n## ")[1:]
    assert [g.partition("\n")[0] for g in groups] == [
        "Language", "Transforms", "Passes", "Schedule", "Memory", "C emitter", "GPU emitter",
        "Runtime", "Several devices", "Store", "Inspect"]
    assert all(re.search(r"^- \*\*", g, re.M) for g in groups)
