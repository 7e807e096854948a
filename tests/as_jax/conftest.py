"""`jax`, while functrans answers for it: afterwards nothing is left."""

import importlib
import sys

import pytest

from functrans import as_jax


@pytest.fixture
def jax():
    known = set(sys.modules)
    path = list(sys.meta_path)
    with as_jax.install():
        yield importlib.import_module("jax")
    assert sys.meta_path == path
    assert not [m for m in set(sys.modules) - known if m.partition(".")[0] in ("jax", "jaxlib")]
