"""Tests of a library on functrans: `pytest -p functrans.as_jax.pytest_plugin`.

It has to be named on the command line, since conftest files may import JAX.
"""

from functrans.as_jax.installation import install

install()
