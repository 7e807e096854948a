"""Pages: one element with its own style and script, in a notebook or as a file that needs no other.

Style and scripts stand in files beside this one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from functrans.core.errors import ArgumentError, shown

__all__ = ["fold", "fragment", "json_data", "save_page", "table", "template"]


@cache
def template(name: str) -> str:
    """The text of a file beside this one."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def fragment(body: str, scripts: Sequence[str] = (), label: str = "") -> str:
    """An element with the common style, and what the scripts of these names do to it.

    Without scripts (in a notebook that is not trusted) it can be read, too.
    """
    code = "\n".join(map(template, scripts))
    script = f"<script>{code}</script>" if code else ""
    return (f'<div class="ft-view" role="region" aria-label="{escape(label, quote=True)}">'
            f"<style>{template('common.css')}</style>{body}{script}</div>")


def save_page(path: str | Path, title: str, body: str) -> None:
    """Write an element as a page of its own. Raises ArgumentError unless the name is of HTML."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ArgumentError(f"the page is HTML, and {shown(str(path))} is no name for that.",
                            fix='save("page.html"), which any browser opens')
    text = template("page.html").replace("TITLE", escape(title)).replace("BODY", body)
    Path(path).write_text(text, encoding="utf-8")


def json_data(name: str, value: Any) -> str:
    """Data for a script, in the page: no text of it ends the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return (f'<script type="application/json" data-ft="{name}">'
            f"{text.replace('</', '<' + chr(92) + '/')}</script>")


def fold(title: str, body: str, is_open: bool = False, note: str = "") -> str:
    """A part that folds; nothing where it is empty."""
    if not body:
        return ""
    state = " open" if is_open else ""
    told = f' <span class="dim">{escape(note)}</span>' if note else ""
    return (f'<details class="part"{state}><summary><h4>{escape(title)}</h4>{told}</summary>'
            f"{body}</details>")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "",
          wide: bool = False) -> str:
    """Rows of cells that are HTML; cells of titles that begin with `#` are numbers.

    Cells of a `wide` one stand below each other where there is little room.
    """
    if not rows:
        return ""
    kind = ' class="stack"' if wide else ""
    kinds = [' class="n"' if h.startswith("#") else "" for h in heads]
    head = "".join(f'<th scope="col"{number}>{escape(h.lstrip("#"))}</th>'
                   for h, number in zip(heads, kinds, strict=True))
    labels = [f' data-label="{escape(h.lstrip("#"), quote=True)}"' * wide for h in heads]
    body = "".join("<tr>" + "".join(
        f"<td{number}{label}>{cell}</td>" for cell, number, label in
        zip(row, kinds, labels, strict=True)) + "</tr>" for row in rows)
    told = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table{kind}>{told}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
