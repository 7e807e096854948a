"""Docstrings of the package as reStructuredText: prose with `code` in single backticks.

Docstrings are written to be read in a terminal. A backtick there means code, an asterisk or an
underscore means itself, and what is indented keeps its lines.
"""

from __future__ import annotations

import re

CODE = re.compile(r"`([^`]+)`")
SPECIAL = re.compile(r"([\\*_|])")


def to_rst(lines: list[str]) -> list[str]:
    """The same text for docutils: examples and indented lines stay as they are."""
    out: list[str] = []
    for block in blocks(lines):
        if block[0].lstrip().startswith(">>>"):
            out += block
        elif block[0].startswith(" "):
            out += ["::", "", *(f"   {line}" for line in block)]
        else:
            out += prose(block)
        out.append("")
    return out


def blocks(lines: list[str]) -> list[list[str]]:
    """Runs of lines without an empty one, cut at examples and where the indentation changes."""
    found: list[list[str]] = []
    open_ = False
    for line in lines:
        if not line.strip():
            open_ = False
            continue
        if not open_ or is_another(line, found[-1][0]):
            found.append([])
        found[-1].append(line.rstrip())
        open_ = True
    return found


def is_another(line: str, first: str) -> bool:
    """Whether a line begins another block than the one that begins with `first`."""
    if in_example([first]):
        return False
    turned = line.startswith(" ") != first.startswith(" ")
    return in_example([line]) or (turned and not is_item(first))


def in_example(block: list[str]) -> bool:
    return block[0].lstrip().startswith(">>>")


def is_item(line: str) -> bool:
    return line.startswith("- ")


def prose(block: list[str]) -> list[str]:
    """A paragraph, or a list whose items begin with a hyphen."""
    text = "\n".join(block)
    parts = CODE.split(text)
    out = ""
    for i, part in enumerate(parts):
        if i % 2 == 0:
            out += SPECIAL.sub(r"\\\1", part)
            continue
        code = " ".join(part.split())
        before = "\\ " if out and (out[-1].isalnum() or out[-1] in ")]}") else ""
        after = parts[i + 1][:1]
        out += f"{before}``{code}``" + ("\\ " if after.isalnum() or after in ("(", "[") else "")
    return out.split("\n")
