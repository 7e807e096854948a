"""Every example in a docstring of the package runs, under the module's installed name."""

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import functrans

_FOLDERS = ("functrans.core", "functrans.transforms", "functrans.primitives", "functrans.lowering",
            "functrans.numpy", "functrans.lax", "functrans.random", "functrans.nn",
            "functrans.scipy", "functrans.image", "functrans.experimental",
            "functrans.per_sample", "functrans.inspect", "functrans.export", "functrans.mutable",
            "functrans.extend", "functrans.interpreters")


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
    """Finds the examples of functions that a module publishes in a wrapper, too."""

    def _from_module(self, module: Any, object: Any) -> bool:
        return super()._from_module(module, inspect.unwrap(object))  # type: ignore[misc]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", sorted(set(_modules())))
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in Finder(exclude_empty=True).find(module, name):
        runner.run(test)
    assert runner.failures == 0
