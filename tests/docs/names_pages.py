"""Pages of the names that another library has, with what there is in their place.

The names are in a file of `tests/data`, by module, without what modules import for themselves.
Whether a name is here is asked of the package; what to write instead is what the error for a
missing name says (`functrans/core/foreign_names.py`).
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from functrans.core.foreign_names import FUNCTIONS, MODULE_NAMES
from functrans.core.missing_names import PUBLIC_MODULES

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
DATA = Path(__file__).parents[1] / "data"


class NamesPage:
    """A page of docs/reference; `ours` is what a module's name begins with here, for `theirs`.

    `modules` says why a whole module is not here, as a row of the table.
    """

    def __init__(self, name: str, theirs: str, ours: str, head: str,
                 modules: dict[str, str] | None = None) -> None:
        data = json.loads((DATA / f"{theirs}_names.json").read_text())
        self.version = data["version"]
        self.names = {module: names.split() for module, names in data["modules"].items()}
        self.path, self.theirs, self.ours = REFERENCE / f"{name}.md", theirs, ours
        self.head, self.modules = head.format(version=self.version), modules or {}

    def module_here(self, module: str) -> Any:
        """Our module for one of theirs; None where there is none."""
        name = module.replace(self.theirs, self.ours, 1)
        try:
            return importlib.import_module(name)
        except ImportError:
            parent, _, last = name.rpartition(".")
            try:
                return getattr(importlib.import_module(parent), last, None)
            except (ImportError, AttributeError):
                return None

    def instead(self, module: str, name: str) -> str:
        """What to write in place of a name, or why there is nothing; "" where nobody said."""
        known = MODULE_NAMES.get(module.replace(self.theirs, self.ours, 1), {}).get(name) \
            or FUNCTIONS.get(name)
        if known is not None:
            return known
        for other in PUBLIC_MODULES:
            if name in getattr(importlib.import_module(other), "__all__", ()):
                return f"{other}.{name}"
        return ""

    def unexplained(self, module: str) -> list[str]:
        """The names that are missing without a word."""
        if module in self.modules:
            return []
        here = self.module_here(module)
        return [name for name in self.names[module]
                if not has(here, name) and not self.instead(module, name)]

    def text(self) -> str:
        found = {module: [name for name in names if has(self.module_here(module), name)]
                 for module, names in self.names.items()}
        lines = [self.head.rstrip("\n")]
        for module, names in self.names.items():
            lines.append(f"| {module} | {len(names)} | {len(found[module])} |")
        every, have = (sum(map(len, table.values())) for table in (self.names, found))
        lines.append(f"| all | {every} | {have} |")
        for module, names in self.names.items():
            lines += ["", f"## {module}", ""]
            if module in self.modules:
                lines.append(self.modules[module])
            else:
                lines += self._names(module, names, found[module])
        return "\n".join(lines) + "\n"

    def _names(self, module: str, names: list[str], here: list[str]) -> list[str]:
        listed = ", ".join(f"`{n}`" for n in here)
        if len(here) == len(names):
            return [f"All of: {listed}."]
        return [*[f"There are {listed}.", ""] * bool(here), "| not here | instead |", "|---|---|",
                *[f"| `{n}` | {cell(self.instead(module, n)) or 'nothing yet'} |"
                  for n in names if n not in here]]


def has(here: Any, name: str) -> bool:
    return here is not None and hasattr(here, name)


def cell(text: str) -> str:
    """Code, and the reason behind its `#`, as a cell of a table."""
    code, _, why = text.partition("#")
    code = code.strip().replace("|", "\\|")
    parts = [f"`{code}`"] if code and code != "nothing" else []
    return "; ".join([*parts, why.strip()] if why else parts)
