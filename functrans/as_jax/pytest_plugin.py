"""Tests of a library on functrans: `pytest -p functrans.as_jax.pytest_plugin`.

It has to be named on the command line, since conftest files may import JAX: the first hook that
pytest calls of a plugin, when it has imported it, is the one for options.
"""

from functrans.as_jax.installation import install

__all__ = ["pytest_addoption"]


def pytest_addoption() -> None:
    """Let functrans answer for JAX before any conftest file is read."""
    install()
