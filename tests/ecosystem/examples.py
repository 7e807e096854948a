"""Programs on JAX's libraries, on functrans: `python -m tests.ecosystem.examples [name ...]`.

`--jax python` runs them with the JAX of another interpreter too, and compares results and times;
`--write` writes the table of docs/guide/jax_libraries.md. Its times are those of the last run with
JAX (`times.json`): of both in one sitting, or of none.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

from tests.ecosystem import page

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "jax_libraries"
TIMES = Path(__file__).with_name("times.json")
WORKER = Path(__file__).with_name("worker.py")
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


def row(ours: Run, times: dict[str, list[float]] | None) -> str:
    """The row of the table for an example."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ours.libraries)
    what = " ".join(ours.what.split())
    cells = [versions, what, " ".join(ours.missing.split()) or "nothing known"]
    for which in ("first", "then"):
        mine, other = times[which] if times else (None, None)
        cells.append(f"{milliseconds(mine)} ({milliseconds(other)})" if mine else "")
    return f"| {' | '.join(cells)} |"


def ratios(times: dict[str, dict[str, list[float]]]) -> str:
    """How times compare in the mean, as a sentence."""
    first, then = (geometric_mean([a / b for a, b in (entry[which] for entry in times.values())])
                   for which in ("first", "then"))
    return (f"In the geometric mean a first call takes {first:.2f} of JAX's time, "
            f"and a later one {then:.2f}.")


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
    times = json.loads(TIMES.read_text())
    for path in paths:
        if given.names and path.stem not in given.names:
            continue
        ours = run(path, sys.executable, ours=True)
        theirs = run(path, given.jax, ours=False) if given.jax else None
        other = differences(ours, theirs) if theirs else []
        wrong |= bool(other)
        if theirs:
            times[path.stem] = {"first": [ours.first, theirs.first],
                                "then": [ours.steady, theirs.steady]}
        rows.append(row(ours, times.get(path.stem)))
        print(rows[-1])
        for name in other:
            print(f"  {name} differs: {ours.results.get(name)}, "
                  f"with JAX {theirs and theirs.results.get(name)}")
    if given.write and given.names:
        parser.error("--write writes the whole table: give no names")
    if given.write:
        page.write("table", HEAD + "\n".join(rows) + "\n\n" + ratios(times))
        TIMES.write_text(json.dumps(times, indent=1, sort_keys=True) + "\n")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
