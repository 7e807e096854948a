"""Programs on JAX's libraries, on functrans: `python -m tests.ecosystem.examples [name ...]`.

`--jax python` runs them with the JAX of another interpreter too, compares results and times, and
`--write` writes the table of docs/guide/jax_libraries.md.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "jax_libraries"
PAGE = ROOT / "docs" / "guide" / "jax_libraries.md"
WORKER = Path(__file__).with_name("worker.py")
BEGIN, END = "<!-- the table begins -->", "<!-- the table ends -->"
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Run:
    """What an example gave, and how long it took."""

    results: dict[str, Any]
    first: float
    steady: float
    missing: str
    libraries: list[str]
    what: str


def run(path: Path, python: str, ours: bool) -> Run:
    """Run an example with an interpreter; raises SystemExit with its errors where it fails."""
    how = ["-m", "functrans.as_jax"] if ours else []
    done = subprocess.run([python, *how, WORKER, path], capture_output=True, text=True, check=False,
                          cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{path.name} failed with {python}:\n{done.stderr[-4000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    found.pop("imports")
    return Run(**found)


def differences(ours: Run, theirs: Run) -> list[str]:
    """The results that are not those of JAX."""
    if ours.results.keys() != theirs.results.keys():
        return sorted(ours.results.keys() ^ theirs.results.keys())
    return [name for name, value in ours.results.items()
            if not np.allclose(value, theirs.results[name], TOLERANCE, TOLERANCE)]


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.2f} s"


def row(ours: Run, theirs: Run | None) -> str:
    """The row of the table for an example."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ours.libraries)
    what = " ".join(ours.what.split())
    cells = [versions, what, " ".join(ours.missing.split()) or "nothing known"]
    for mine, other in ((ours.first, theirs and theirs.first),
                        (ours.steady, theirs and theirs.steady)):
        cells.append(milliseconds(mine) + (f" ({milliseconds(other)})" if other else ""))
    return f"| {' | '.join(cells)} |"


HEAD = """\
| library | what runs | what does not, and why | first call (JAX) | then (JAX) |
|---|---|---|---|---|
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="of examples; all where there are none")
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter with JAX and the libraries")
    parser.add_argument("--write", action="store_true", help="write docs/guide/jax_libraries.md")
    given = parser.parse_args()
    paths = sorted(EXAMPLES.glob("*.py"))
    rows, wrong = [], False
    for path in paths:
        if given.names and path.stem not in given.names:
            continue
        ours = run(path, sys.executable, ours=True)
        theirs = run(path, given.jax, ours=False) if given.jax else None
        other = differences(ours, theirs) if theirs else []
        wrong |= bool(other)
        rows.append(row(ours, theirs))
        print(rows[-1])
        for name in other:
            print(f"  {name} differs: {ours.results.get(name)}, "
                  f"with JAX {theirs and theirs.results.get(name)}")
    if given.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(before + BEGIN + "\n" + HEAD + "\n".join(rows) + "\n" + END
                        + rest.partition(END)[2])
    sys.exit(wrong)


if __name__ == "__main__":
    main()
