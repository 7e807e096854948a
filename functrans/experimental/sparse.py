"""Sparse arrays, as in `jax.experimental.sparse`: the names of `functrans.sparse`."""

from functrans.core.errors import explain_missing_names
from functrans.sparse import *  # noqa: F403
from functrans.sparse import __all__ as __all__

explain_missing_names(globals())
