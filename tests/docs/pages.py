"""The pages of the site as their sources: headings, links, and what follows what."""

from __future__ import annotations

import ast
import os
import re
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
FIRST = DOCS / "index.md"
API = DOCS / "reference" / "api"
FENCE = re.compile(r"^(```+)(.*?)\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def reference_modules() -> list[str]:
    """The modules that have a page of names; the script that writes the pages needs Sphinx."""
    tree = ast.parse((DOCS / "extensions" / "api_pages.py").read_text())
    return next(list(ast.literal_eval(node.value)) for node in tree.body
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MODULES")


def pages() -> list[Path]:
    """The pages that are written by hand or by a script, without notebooks and pages of names."""
    return sorted(path for path in DOCS.rglob("*.md")
                  if path != DOCS / "README.md")


@cache
def prose(page: Path) -> str:
    """The text without code and directives."""
    return FENCE.sub("", page.read_text())


def slug(heading: str) -> str:
    """The anchor of a heading, as MyST and GitHub make it."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower().replace("`", ""))
    return kept.strip().replace(" ", "-")


def headings(page: Path) -> dict[str, str]:
    """Of each anchor the text below its heading, up to the next one, code included."""
    if page.suffix != ".md":
        return {}
    parts = re.split(r"^#+ (.*)$", masked_comments(page.read_text()), flags=re.MULTILINE)
    anchors = {}
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        anchors[slug(heading)] = text
    return anchors


def masked_comments(text: str) -> str:
    """Lines of code that begin with a number sign are no headings."""
    return FENCE.sub(lambda m: m[0].replace("\n#", "\n #"), text)


def links(page: Path) -> list[tuple[Path, str]]:
    """The pages of this site that a page's text links to, with the anchors."""
    found = []
    for target in LINK.findall(prose(page)):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        found.append((Path(os.path.normpath(page.parent / name)) if name else page, anchor))
    return found


def contents(page: Path) -> list[Path]:
    """The pages in the tables of contents of a page."""
    found = []
    for _, info, body in FENCE.findall(page.read_text()):
        if info.strip() != "{toctree}":
            continue
        for line in body.splitlines():
            entry = re.sub(r".*<(.*)>", r"\1", line.strip())
            if entry and not entry.startswith(":"):
                found.append(Path(os.path.normpath(page.parent / entry)))
    return found
