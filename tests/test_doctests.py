"""Every example in a docstring of the package runs, under the module's installed name."""

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import functrans
import functrans.errors  # which gives the exceptions their examples
import functrans.numpy
from functrans import lax
from functrans._runtime import EagerOp

_FOLDERS = ("functrans.core", "functrans.transforms", "functrans.primitives", "functrans.lowering",
            "functrans.numpy", "functrans.lax", "functrans.random", "functrans.nn",
            "functrans.scipy", "functrans.image", "functrans.experimental",
            "functrans.per_sample", "functrans.inspect", "functrans.export", "functrans.mutable",
            "functrans.extend", "functrans.interpreters")

# What every example knows, besides what it imports and the names of its module.
NAMES: dict[str, Any] = {"ft": functrans, "jnp": functrans.numpy, "lax": lax, "np": numpy}


def _modules() -> Iterator[str]:
    yield "functrans"
    # The editable install puts the repository's root on the package's path: only what belongs.
    for info in pkgutil.iter_modules(functrans.__path__, "functrans."):
        if info.name in _FOLDERS:
            package = importlib.import_module(info.name)
            yield info.name
            for inner in pkgutil.walk_packages(package.__path__, info.name + "."):
                yield inner.name
        elif not info.ispkg and info.name != "functrans._runtime":
            yield info.name


class Finder(doctest.DocTestFinder):
    """Finds the examples of functions that a module publishes in a wrapper, too.

    Those that the runtime calls without Python are looked up where they are published.
    """

    def _from_module(self, module: Any, object: Any) -> bool:
        return super()._from_module(module, inspect.unwrap(object))  # type: ignore[misc]

    def _find(self, tests: Any, obj: Any, name: str, module: Any, source_lines: Any, globs: Any,
              seen: Any) -> None:
        super()._find(tests, obj, name, module, source_lines, globs, seen)  # type: ignore[misc]
        if obj is module and name in ("functrans.numpy", "functrans.lax"):
            tests += [doctest.DocTestParser().get_doctest(op.__doc__ or "", globs, f"{name}.{n}",
                                                          None, 0)
                      for n, op in vars(module).items() if isinstance(op, EagerOp)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", sorted(set(_modules())))
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in Finder(exclude_empty=True).find(module, name, globs=NAMES | vars(module)):
        runner.run(test)
    assert runner.failures == 0
