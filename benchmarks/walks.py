"""How far a reader follows one program: files and switches between files, and the rooms' imports.

    python benchmarks/walks.py [--mypy] [--json FILE]

A *walk* is one call of the framework, seen through `sys.setprofile` of the calling thread. An
*entry* is a `call` event of it: the start of a Python function or lambda, the start or resumption
of a generator function, where the code is in a file of the package, which is functrans/,
primitives/ or lowering/. Other code (NumPy, Triton, the standard library, the user's function, the
extension in C++) does not count; nor do the bodies of modules and classes, nor comprehensions and
generator expressions, which are expressions of the function that they stand in. *Files* are the
distinct files entered; a *switch* is an entry into another file than that of the entry before it,
and the first entry is one: returns are no entries, and calls within a file no switches.

The walks are those of the gradient of `tanh(x @ x).sum()`, each in a process of its own with an
empty cache of programs and all modules imported:

- the first call of its `jit` on a CPU: C;
- its lowering and compilation for an H100, which needs no GPU: `ft.lower(..., target="cuda:90")`
  and `compile()`, as the first call on a GPU does. Worker processes that compile kernels are not
  seen;
- the second call on the CPU: no Python at all, so 0 files.

Of the sources are counted: import statements from room to room, where a room is a folder of
functrans/ or primitives/, all of functrans/*.py, or any folder of lowering/; names of classes that
are defined more than once; lines of lowering/; with --mypy the errors of `mypy --strict`.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import functrans as ft

ROOT = Path(__file__).parent.parent
FOLDERS = {"functrans": "functrans", "primitives": "functrans.primitives",
           "lowering": "functrans.lowering"}
WALKS = {"cpu first call": "CPU, first call", "cuda:90 first call": "H100, lowered and compiled",
         "cpu second call": "CPU, second call"}
MOST_PAIRS, SHOWN_PAIRS = 25, 10
EXPRESSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class Walk:
    """Counts entries into files of the package, as a context: `files` and `switches`."""

    def __init__(self) -> None:
        self.entries: Counter[str] = Counter()
        """Functions entered, by file."""
        self.pairs: Counter[tuple[str | None, str]] = Counter()
        """Switches, by the file of the entry before and the file entered."""
        self._places: dict[str, str | None] = {}
        self._last: str | None = None

    @property
    def files(self) -> int:
        return len(self.entries)

    @property
    def switches(self) -> int:
        return self.pairs.total()

    def record(self) -> dict[str, Any]:
        """The counts, as they are written to a file."""
        between = [[a, b, n] for (a, b), n in self.pairs.most_common(MOST_PAIRS)]
        return {"files": self.files, "switches": self.switches, "entries": self.entries.total(),
                "most switches": between, "entries by file": dict(self.entries.most_common())}

    def __enter__(self) -> Walk:
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name in EXPRESSIONS \
                or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        name = code.co_filename
        if name not in self._places:
            self._places[name] = place_of(name)
        file = self._places[name]
        if file is None:
            return
        self.entries[file] += 1
        if file != self._last:
            self.pairs[self._last, file] += 1
            self._last = file


def place_of(filename: str) -> str | None:
    """The path of a file of the package below its root; None of others."""
    path = Path(filename)
    if path.is_absolute() and path.is_relative_to(ROOT):
        path = path.relative_to(ROOT)
        return str(path) if path.parts[0] in FOLDERS else None
    return None


def modules() -> Iterator[tuple[str, Path]]:
    """The modules of the package by name, and their files."""
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            yield ".".join((package, *(p for p in parts if p != "__init__"))), path


# --- walks


def take(name: str) -> dict[str, Walk]:
    """The walks of a process: on a CPU both calls, as the second one needs the first."""
    for module, _ in modules():
        importlib.import_module(module)
    x = np.ones((64, 64), np.float32)
    gradient = ft.grad(lambda x: ft.numpy.tanh(x @ x).sum())
    if name == "cuda:90 first call":
        with Walk() as walk:
            ft.lower(gradient, x, target="cuda:90").compile()
        return {name: walk}
    compiled = ft.jit(gradient)
    with Walk() as first:
        compiled(x)
    return {"cpu first call": first, "cpu second call": second_call(compiled, x)}


def second_call(compiled: Callable[..., Any], *args: Any) -> Walk:
    """The walk of a call like one before."""
    with Walk() as walk:
        compiled(*args)
    return walk


def walks() -> dict[str, dict[str, Any]]:
    """The record of each walk, in a process of its own with an empty cache."""
    found: dict[str, dict[str, Any]] = {}
    for name in ("cpu first call", "cuda:90 first call"):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "XDG_CACHE_HOME": folder, "PYTHONHASHSEED": "0"}
            done = subprocess.run([sys.executable, __file__, "--walk", name], env=environment,
                                  check=True, stdout=subprocess.PIPE, text=True)
        found |= json.loads(done.stdout.splitlines()[-1])
    return {name: found[name] for name in WALKS}


# --- sources


def room_of(path: Path) -> str:
    """The room of a file: its folder, without those below a folder of functrans/ or primitives/."""
    parts = path.relative_to(ROOT).parts[:-1]
    return "/".join(parts if parts[0] == "lowering" else parts[:2])


def edges(trees: dict[Path, ast.Module]) -> Counter[tuple[str, str]]:
    """Import statements from a room to another one, by the two."""
    files = dict(modules())
    found: Counter[tuple[str, str]] = Counter()
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                inner = [f"{node.module}.{a.name}" for a in node.names]
                names = [n if n in files else node.module for n in inner]
            else:
                continue
            here = room_of(path)
            there = {room_of(files[n]) for n in names if n in files} - {here}
            found.update((here, room) for room in there)
    return found


def repeated_classes(trees: dict[Path, ast.Module]) -> dict[str, list[str]]:
    """Names of classes that are defined more than once, and where."""
    places: dict[str, list[str]] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def lines_of(folder: str) -> dict[str, int]:
    """Lines of the files of a folder and how many files they are."""
    paths = list((ROOT / folder).rglob("*.py"))
    return {"files": len(paths), "lines": sum(len(p.read_text().splitlines()) for p in paths)}


def mypy_errors() -> dict[str, int]:
    """Errors of `mypy --strict` for the whole package by room, over the layout once installed."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "functrans")
        package.mkdir()
        for path in [*(ROOT / "functrans").iterdir(), ROOT / "primitives", ROOT / "lowering"]:
            (package / path.name).symlink_to(path)
        configuration = (ROOT / "pyproject.toml").read_text()
        configuration = re.sub(r'^(mypy_path|packages|modules) = (\[[^]]*\]|.*)$', "",
                               configuration, flags=re.M)
        Path(folder, "pyproject.toml").write_text(configuration)
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "-p", "functrans",
                               "--cache-dir", str(ROOT / ".mypy_cache" / "walks")],
                              cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"mypy does not run: {done.stderr or done.stdout}")
    found: Counter[str] = Counter()
    for line in done.stdout.splitlines():
        if (error := re.match(r"functrans/([^:]*):\d+: error:", line)) is not None:
            parts = error[1].split("/")
            found[parts[0] if len(parts) > 1 else "modules of functrans/"] += 1
    return dict(found.most_common())


# --- what is shown


def record(with_mypy: bool) -> dict[str, Any]:
    """All counts, as they are written to a file."""
    trees = {path: ast.parse(path.read_text()) for _, path in modules()}
    between = edges(trees)
    both_ways = sorted([a, b] for a, b in between if a < b and (b, a) in between)
    found: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "python": sys.version.split()[0],
        "walks": walks(),
        "import edges": {
            "edges": len(between), "statements": between.total(), "both ways": both_ways,
            "table": {room: {b: n for (a, b), n in sorted(between.items()) if a == room}
                      for room in sorted({a for a, _ in between})},
        },
        "repeated classes": repeated_classes(trees),
        "lowering": lines_of("lowering"),
    }
    if with_mypy:
        errors = mypy_errors()
        found["mypy"] = {"errors": sum(errors.values()), "by room": errors}
    return found


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    print(f"{'walk':<28}{'files':>8}{'switches':>10}{'entries':>9}")
    for name, walk in found["walks"].items():
        print(f"{WALKS[name]:<28}{walk['files']:>8,}{walk['switches']:>10,}{walk['entries']:>9,}")
    for name, walk in found["walks"].items():
        if walk["most switches"]:
            print(f"\nmost switches, {WALKS[name]}:")
        for before, after, n in walk["most switches"][:SHOWN_PAIRS]:
            print(f"  {n:4} {before} -> {after}")
    known = found["import edges"]
    print(f"\nimports between rooms: {known['edges']} edges, {known['statements']:,} statements")
    width = max(map(len, known["table"]))
    for room, to in known["table"].items():
        print(f"  {room:<{width}} -> {', '.join(f'{b} {n}' for b, n in to.items())}")
    pairs = ", ".join(f"{a} and {b}" for a, b in known["both ways"]) or "none"
    print(f"  rooms that import each other: {pairs}")
    print(f"\nclass names that are defined more than once: {len(found['repeated classes'])}")
    for name, places in found["repeated classes"].items():
        print(f"  {name}: {', '.join(places)}")
    size = found["lowering"]
    print(f"\nlowering/: {size['lines']:,} lines in {size['files']} files")
    if "mypy" in found:
        rooms = ", ".join(f"{room} {n}" for room, n in found["mypy"]["by room"].items())
        print(f"errors of mypy --strict: {found['mypy']['errors']}{f' ({rooms})' * bool(rooms)}")


def main() -> int:
    parser = argparse.ArgumentParser(description="How far a reader follows one program.")
    parser.add_argument("--mypy", action="store_true", help="errors of mypy --strict too: a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts to a file")
    parser.add_argument("--walk", choices=["cpu first call", "cuda:90 first call"],
                        help=argparse.SUPPRESS)  # what the processes of the walks run
    options = parser.parse_args()
    if options.walk:
        print(json.dumps({name: walk.record() for name, walk in take(options.walk).items()}))
        return 0
    found = record(options.mypy)
    show(found)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
