"""The notebook on JAX's libraries, run anew: `python -m tests.ecosystem.notebook`.

Exits with 1 where a cell fails, or gives other kinds of outputs than those that are stored.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat

FOLDER = Path(__file__).parents[2] / "notebooks"


def main() -> None:
    sys.path.insert(0, str(FOLDER))
    import execute  # noqa: PLC0415  (a script, of no package)

    path = FOLDER / f"{execute.NEEDS_LIBRARIES}.ipynb"
    same = execute.kinds_of(execute.execute(path)) == execute.kinds_of(nbformat.read(path, 4))
    print(f"{path.name}: " + ("runs" if same else
                              f"other outputs than those stored: notebooks/execute.py {path.stem}"))
    sys.exit(not same)


if __name__ == "__main__":
    main()
