"""The notebooks of the repository as pages: copies in `notebooks/`, which links in pages lead to.

In the repository a page links to `../../notebooks/`, so that it also leads somewhere on GitHub.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from sphinx.application import Sphinx

FOLDER = "notebooks"


def copy_notebooks(source: Path) -> None:
    """The stored notebooks below `source`; one that has not changed is not touched."""
    folder = source / FOLDER
    folder.mkdir(exist_ok=True)
    originals = {path.name: path for path in (source.parent / FOLDER).glob("*.ipynb")}
    for old in folder.iterdir():
        if old.name not in originals:
            old.unlink()
    for name, path in originals.items():
        copy = folder / name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copy(path, copy)


def link_to_copies(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = source[0].replace(f"](../../{FOLDER}/", f"](../{FOLDER}/")


def setup(app: Sphinx) -> dict[str, bool]:
    copy_notebooks(Path(app.srcdir))
    app.connect("source-read", link_to_copies)
    return {"parallel_read_safe": True}
