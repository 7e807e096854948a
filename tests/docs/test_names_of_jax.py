"""docs/reference/names_of_jax.md says what the package has."""

import pytest

from tests.docs import names_of_jax

EXPLAINED = ("jax", "jax.numpy", "jax.lax", "jax.random", "jax.nn", "jax.tree", "jax.tree_util",
             "jax.errors", "jax.dtypes", "jax.debug", "jax.dlpack", "jax.core",
             "jax.custom_derivatives", "jax.ad_checkpoint", "jax.stages", "jax.profiler",
             "jax.experimental.jet", "jax.experimental.ode", "jax.experimental.checkify",
             "jax.export", "jax.extend.core")


def test_the_page_is_what_the_package_has():
    assert names_of_jax.PAGE.read_text() == names_of_jax.page(), \
        "python -m tests.docs.names_of_jax writes the page anew"


@pytest.mark.parametrize("module", EXPLAINED)
def test_what_is_missing_is_explained(module):
    here = names_of_jax.module_here(module)
    silent = [name for name in names_of_jax.NAMES[module]
              if not names_of_jax.has(here, name) and not names_of_jax.instead(module, name)]
    assert not silent, "an entry in functrans/core/foreign_names.py says what to write instead"


def test_names_that_exist_are_not_explained_away():
    """The page tells what is here by asking, so that an empty module would have no names."""
    assert names_of_jax.has(names_of_jax.module_here("jax.numpy"), "sin")
    assert not names_of_jax.has(names_of_jax.module_here("jax.numpy"), "no_such_function")
    assert names_of_jax.module_here("jax.no_such_module") is None
    assert "| jax.numpy |" in names_of_jax.page()
