"""Every public name of JAX has an answer: an object, or the reason why there is none."""

import importlib

import pytest

from functrans.as_jax.errors import MissingInJax, MissingJaxModule
from functrans.as_jax.regions import TABLE
from functrans.as_jax.regions.top_level import VERSION
from functrans.as_jax.table import ABSENT, load
from tests.docs.names_of_jax import PAGE

UNANSWERED = {
    # primitives of formats and decompositions that are compositions here
    "jax.experimental.sparse", "jax.lax.linalg",
}


def test_the_table_follows_the_version_of_the_list():
    assert PAGE.version == VERSION
    assert set(PAGE.names) <= set(TABLE)


@pytest.mark.parametrize("module", PAGE.names)
def test_every_name_has_an_answer(jax, module):
    there = importlib.import_module(module)
    for name in PAGE.names[module]:
        try:
            getattr(there, name)
        except (MissingInJax, MissingJaxModule):
            assert TABLE[module].why_absent(name) or module in UNANSWERED, name


@pytest.mark.parametrize("module", TABLE)
def test_entries_are_there(module):
    """A name of the table that was moved away would be found when a library asks for it."""
    entry = TABLE[module]
    for name, place in entry.names.items():
        assert load(place) is not None, name
    for source in entry.sources:
        importlib.import_module(source)
    for name in entry.refused:
        assert entry.find(name) is ABSENT


def test_parents_are_in_the_table():
    for module in TABLE:
        parent = module.rpartition(".")[0]
        assert not parent or parent in TABLE, module


def test_what_is_only_ours_is_not_of_jax(jax):
    names = set(PAGE.names["jax"]) | {"extend", "example_libraries", "sharding", "lib", "version",
                                 "monitoring", "pmap"}
    for name in ("explain", "per_sample", "optim", "hvp", "numpy_code", "checked", "as_jax"):
        assert name not in names
        assert not hasattr(jax, name), name
