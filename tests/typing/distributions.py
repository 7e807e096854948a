"""The stub of functrans.scipy.stats: its distributions are made by tables, unseen by checkers.

Families with the same parameters share a class, and one more where they have the same moments.
`python -m tests.typing.distributions` writes it.
"""

from __future__ import annotations

import inspect
import sys
import types
from pathlib import Path

from functrans.scipy import stats
from functrans.scipy.stats.base import Discrete, Distribution

STUB = Path(stats.__file__).with_suffix(".pyi")
MOMENTS = ("mean", "var", "std", "entropy")
HEAD = '''\
"""What type checkers know of distributions; tests/typing/distributions.py writes it."""
# ruff: noqa: F401 -- names that are others where they are made are exported, too

from typing import Any

'''


def parameters(signature):
    """`a: ArrayLike, loc: ArrayLike = ...`; `~` stands for a blank that ends no line."""
    return [f"{p.name}:~ArrayLike" + ("" if p.default is p.empty else "~=~...")
            for p in signature.parameters.values()]


def method_text(name, arguments):
    """A method on lines of at most 100 characters."""
    head = f"    def {name}("
    lines, line = [], head
    for word in f"{', '.join(['self', *arguments])})~->~Array:~...".split(" "):
        if len(line) + len(word) > 100:
            lines.append(line.rstrip())
            line = " " * len(head)
        line += word + " "
    return "\n".join([*lines, line.rstrip()]).replace("~", " ")


def own_text(family, methods):
    return [method_text(m, parameters(inspect.signature(getattr(family, m)))) for m in methods]


def documented(family):
    """The base of all of this kind: what each method is, which its overrides inherit."""
    # no DistributionFamily, which is a module: checkers take it to have every attribute
    lines = [f"class _{kind(family)}Family:", "    name: str",
             "    def rvs(self, key: Array, *args: Any, **kwargs: Any) -> Array:",
             '        """Random numbers from a key; the shape is that of the parameters."""']
    for name in (*family.functions, "median"):
        said = inspect.getdoc(getattr(family, name)).partition(" of the distribution ")[0]
        lines += [f"    def {name}(self, *args: Any, **kwargs: Any) -> Array:",
                  f'        """{said.rstrip(",")}."""']
    return "\n".join(lines)


def imports(families):
    """The names that are no distributions of numbers, from where they are."""
    homes = {("base", "DistributionFamily", "DistributionFamily")}
    for name in set(stats.__all__) - set(families):
        value = getattr(stats, name)
        if isinstance(value, types.ModuleType) and not isinstance(value, stats.DistributionFamily):
            homes.add(("", name, name))  # a module of the package
            continue
        owner = type(value) if isinstance(value, stats.DistributionFamily) else \
            inspect.unwrap(value)
        there = name if hasattr(sys.modules[owner.__module__], name) else owner.__name__
        homes.add((owner.__module__.rpartition(".")[2], there, name))
    return [f"from functrans.scipy.stats{home and '.'}{home} import {there} as {name}"
            for home, there, name in sorted(homes)]


def kind(family):
    return "Discrete" if isinstance(family, Discrete) else "Continuous"


def class_name(family):
    return "_".join(["", kind(family), *(s.strip("_") for s in family.shapes)])


def text():
    families = {n: v for n in stats.__all__ if isinstance(v := getattr(stats, n), Distribution)}
    blocks = ["\n".join([*imports(families),
                         "from functrans.typing import Array, ArrayLike, ShapeLike"]),
              documented(families["norm"]), documented(families["poisson"])]
    lines, classes = [], {}
    for name, family in families.items():
        base = class_name(family)
        if base not in classes:
            classes[base] = family.shapes
            draw = ["key:~Array", *parameters(inspect.Signature(family._parameters())), "*",
                    "shape:~ShapeLike~|~None~=~None"]
            blocks.append("\n".join([
                f"class {base}(_{kind(family)}Family):", method_text("rvs", draw),
                *own_text(family, [*family.functions, "median"])]))
        assert classes[base] == family.shapes, name
        moments = [m for m in MOMENTS if m in vars(family)]
        own = "_".join([base, *moments])
        if own not in classes:
            classes[own] = moments
            blocks.append("\n".join([f"class {own}({base}):", *own_text(family, moments)]))
        lines.append(f"{name}: {own}")
    return HEAD + "\n\n".join([*blocks, "\n".join(lines)]) + "\n"


if __name__ == "__main__":
    STUB.write_text(text())
