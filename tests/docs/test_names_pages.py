"""docs/reference/names_of_jax.md and names_of_scipy.md say what the package has."""

import pytest

from tests.docs import names_of_jax, names_of_scipy
from tests.docs.names_pages import has

PAGES = {"jax": names_of_jax.PAGE, "scipy": names_of_scipy.PAGE}
EXPLAINED = ("jax", "jax.numpy", "jax.lax", "jax.random", "jax.nn", "jax.tree", "jax.tree_util",
             "jax.errors", "jax.dtypes", "jax.debug", "jax.dlpack", "jax.core",
             "jax.custom_derivatives", "jax.ad_checkpoint", "jax.stages", "jax.profiler",
             "jax.experimental.jet", "jax.experimental.ode", "jax.experimental.checkify",
             "jax.export", "jax.extend.core", *names_of_scipy.PAGE.names)


@pytest.mark.parametrize("library", PAGES)
def test_a_page_is_what_the_package_has(library):
    page = PAGES[library]
    assert page.path.read_text() == page.text(), \
        f"python -m tests.docs.names_of_{library} writes the page anew"


@pytest.mark.parametrize("module", EXPLAINED)
def test_what_is_missing_is_explained(module):
    silent = PAGES[module.split(".")[0]].unexplained(module)
    assert not silent, "an entry in functrans/core/foreign_names.py says what to write instead"


def test_names_that_exist_are_not_explained_away():
    """A page tells what is here by asking, so that an empty module would have no names."""
    page = names_of_jax.PAGE
    assert has(page.module_here("jax.numpy"), "sin")
    assert not has(page.module_here("jax.numpy"), "no_such_function")
    assert page.module_here("jax.no_such_module") is None
    assert "| jax.numpy |" in page.text()


@pytest.mark.parametrize("module", names_of_scipy.MODULES)
def test_modules_that_are_said_to_be_missing_are(module):
    assert names_of_scipy.PAGE.module_here(module) is None
