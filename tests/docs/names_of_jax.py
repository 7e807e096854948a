"""docs/reference/names_of_jax.md, written anew: `python -m tests.docs.names_of_jax`.

`tests/data/jax_names.json` has the public names of JAX's modules, without what these import for
themselves. Whether a name is here is asked of the package; what to write instead is what the error
for a missing name says (`functrans/core/foreign_names.py`).
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from functrans.core.foreign_names import FUNCTIONS, MODULE_NAMES
from functrans.core.missing_names import PUBLIC_MODULES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reference" / "names_of_jax.md"
DATA = json.loads((Path(__file__).parents[1] / "data" / "jax_names.json").read_text())
NAMES = {module: names.split() for module, names in DATA["modules"].items()}

HEAD = """\
# Names of JAX

For those who look for a name of JAX.

Every public name of JAX {version}, by module, and what there is in its place where functrans does
not have it. Code is what to write instead. What behaves differently under the same name is in
[Differences from JAX](differences_from_jax.md). This page is written by
`python -m tests.docs.names_of_jax`, and a test fails where it is not what the package has.

| module of JAX | names | in functrans |
|---|---|---|
"""


def module_here(module: str) -> Any:
    """Our module for one of JAX; None where there is none."""
    try:
        return importlib.import_module(module.replace("jax", "functrans", 1))
    except ImportError:
        parent, _, name = module.replace("jax", "functrans", 1).rpartition(".")
        try:
            return getattr(importlib.import_module(parent), name, None)
        except ImportError:
            return None


def has(here: Any, name: str) -> bool:
    return here is not None and hasattr(here, name)


def instead(module: str, name: str) -> str:
    """What to write in place of a name, or why there is nothing; "" where nobody said."""
    ours = module.replace("jax", "functrans", 1)
    known = MODULE_NAMES.get(ours, {}).get(name) or FUNCTIONS.get(name)
    if known is not None:
        return known
    for other in PUBLIC_MODULES:
        if name in getattr(importlib.import_module(other), "__all__", ()):
            return f"{other}.{name}"
    return ""


def cell(text: str) -> str:
    """Code, and the reason behind its `#`, as a cell of a table."""
    code, _, why = text.partition("#")
    code = code.strip().replace("|", "\\|")
    parts = [f"`{code}`"] if code and code != "nothing" else []
    return "; ".join([*parts, why.strip()] if why else parts)


def page() -> str:
    found = {module: [name for name in names if has(module_here(module), name)]
             for module, names in NAMES.items()}
    lines = [HEAD.format(version=DATA["jax"]).rstrip("\n")]
    for module, names in NAMES.items():
        lines.append(f"| {module} | {len(names)} | {len(found[module])} |")
    every, have = (sum(map(len, table.values())) for table in (NAMES, found))
    lines.append(f"| all | {every} | {have} |")
    for module, names in NAMES.items():
        here = found[module]
        lines += ["", f"## {module}", ""]
        if len(here) == len(names):
            lines.append("All of: " + ", ".join(f"`{n}`" for n in names) + ".")
            continue
        if here:
            lines += ["There are " + ", ".join(f"`{n}`" for n in here) + ".", ""]
        lines += ["| not here | instead |", "|---|---|"]
        lines += [f"| `{n}` | {cell(instead(module, n)) or 'nothing yet'} |"
                  for n in names if n not in here]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
