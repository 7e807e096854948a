"""The pages of names: one for each public module, written from what it publishes (`__all__`).

They are in `reference/api/` while the site is built and are no part of the repository, so that no
name is missing there and none is left behind.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docstrings import to_rst
from sphinx.application import Sphinx

FOLDER = "reference/api"

# Each with what a reader would call it, in the order of the page that lists them.
MODULES = {
    "functrans": "Transformations, arrays and devices",
    "functrans.numpy": "NumPy's functions",
    "functrans.numpy.linalg": "Linear algebra, by NumPy's names",
    "functrans.numpy.fft": "Fourier transforms, by NumPy's names",
    "functrans.lax": "Operations and control flow",
    "functrans.lax.linalg": "Factorizations",
    "functrans.nn": "Neural networks",
    "functrans.nn.initializers": "Initial values of weights",
    "functrans.optim": "Optimizers",
    "functrans.random": "Random numbers",
    "functrans.per_sample": "Gradients of single samples",
    "functrans.tree": "Pytrees",
    "functrans.tree_util": "Pytrees, by long names",
    "functrans.scipy.special": "Special functions",
    "functrans.scipy.stats": "Distributions and statistics",
    "functrans.scipy.linalg": "Linear algebra, by SciPy's names",
    "functrans.scipy.signal": "Signals",
    "functrans.scipy.fft": "Fourier transforms, by SciPy's names",
    "functrans.scipy.optimize": "Minima, roots and fits",
    "functrans.scipy.integrate": "Integrals and differential equations",
    "functrans.scipy.interpolate": "Interpolation",
    "functrans.scipy.ndimage": "Images of any rank",
    "functrans.image": "Resizing images",
    "functrans.experimental.sparse": "Sparse arrays",
    "functrans.experimental.jet": "Derivatives of all orders",
    "functrans.experimental.ode": "Differential equations with adjoints",
    "functrans.experimental.checkify": "Errors as values",
    "functrans.custom_batching": "Batching rules of functions",
    "functrans.custom_derivatives": "Derivative rules of functions",
    "functrans.checkpoint_policies": "What checkpoint keeps",
    "functrans.ad_checkpoint": "Recomputing in the backward pass",
    "functrans.config": "Settings",
    "functrans.debug": "Looking into running programs",
    "functrans.errors": "Exceptions",
    "functrans.dtypes": "Dtypes",
    "functrans.export": "Exported programs",
    "functrans.weights": "Parameters in files",
    "functrans.quantize": "Quantized weights",
    "functrans.mixed_precision": "Mixed precision",
    "functrans.sharding": "Several devices",
    "functrans.stages": "Stages of a compilation",
    "functrans.profiler": "Traces of calls",
    "functrans.dlpack": "Sharing memory with other libraries",
    "functrans.test_util": "Checking derivatives",
    "functrans.extend.core": "What programs are made of",
}


def page_name(module: str) -> str:
    return f"{FOLDER}/{module}"


def write_pages(source: Path) -> None:
    """The pages below `source`; a page that has not changed is not touched."""
    folder = source / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {f"{module}.rst": page(module, title) for module, title in MODULES.items()}
    wanted["index.rst"] = contents()
    for old in folder.glob("*.rst"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def contents() -> str:
    rows = "".join(f"   {module.removeprefix('functrans.')}: {title} <{module}>\n"
                   for module, title in MODULES.items())
    return (
        "Every public name\n=================\n\n"
        "For those who know what they look for. A page has a module's names, each with its\n"
        "signature and an example. Examples begin where these lines end:\n\n"
        ".. code-block:: python\n\n   import numpy as np\n   import functrans as ft\n"
        "   import functrans.numpy as jnp\n   from functrans import lax\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{rows}"
    )


def page(module: str, title: str) -> str:
    """Tables of the names of a module by kind, then each of them."""
    found = importlib.import_module(module)
    summary = (inspect.getdoc(found) or "").partition("\n\n")[0].split("\n")
    head = f"{title}: ``{module}``"
    lines = [head, "=" * len(head), "", "For those who look up a name or a signature.",
             "In examples ``ft`` is functrans and ``jnp`` is functrans.numpy.", "",
             *to_rst(summary), f".. currentmodule:: {module}", ""]
    entries: list[str] = []
    for heading, names in groups(found):
        directive = {"Functions": "autofunction", "Classes": "autoclass"}.get(heading)
        lines += [heading, "-" * len(heading), ""]
        if directive is None:
            lines += [", ".join(f"``{name}``" for name in names) + ".", ""]
            continue
        lines += [".. list-table::", "   :widths: 25 75", ""]
        for name in names:
            lines += [f"   * - :py:obj:`~{module}.{name}`",
                      f"     - {first_sentence(getattr(found, name))}"]
        lines.append("")
        for name in names:
            entries += [f".. {directive}:: {name}"]
            if directive == "autoclass":
                entries += ["   :members:"]
                entries += ["   :no-index:"] if home_of(getattr(found, name)) != module else []
            entries += [""]
    return "\n".join([*lines, *(["Each of them", "------------", "", *entries] if entries else [])])


def first_sentence(value: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    first = (inspect.getdoc(value) or "").partition("\n\n")[0].split("\n")
    return " ".join(to_rst(first)).strip()


def groups(module: Any) -> Iterator[tuple[str, list[str]]]:
    """Public names by what they are; modules have pages of their own."""
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": [], "Dtypes and constants": []}
    for name in sorted(module.__all__, key=str.lower):
        value = getattr(module, name)
        if not inspect.ismodule(value) and not name.startswith("__"):
            kinds[kind_of(value)].append(name)
    return ((heading, names) for heading, names in kinds.items() if names)


def kind_of(value: Any) -> str:
    if inspect.isclass(value) and (value.__module__ or "").startswith("functrans"):
        return "Classes"
    named = callable(value) and hasattr(value, "__name__") and not inspect.isclass(value)
    return "Functions" if named and "jax" not in type(value).__module__ else "Dtypes and constants"


@functools.cache
def home_of(cls: type) -> str:
    """The first of the modules that publish a class: the index has it there."""
    found = ((name, importlib.import_module(name)) for name in MODULES)
    return next(name for name, module in found
                if any(getattr(module, public) is cls for public in module.__all__))


def without_last_blank(app: Sphinx, name: str, source: list[str]) -> None:
    """Examples without the empty line that ends the last result for doctest."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def process_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any,
                      lines: list[str]) -> None:
    lines[:] = to_rst(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    write_pages(Path(app.srcdir))
    app.connect("source-read", without_last_blank)
    app.connect("autodoc-process-docstring", process_docstring)
    return {"parallel_read_safe": True}
