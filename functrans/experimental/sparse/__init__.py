"""Sparse arrays, as in `jax.experimental.sparse`: the names of `functrans.sparse`."""

from functrans.core.errors import explain_missing_names
from functrans.experimental.sparse import (
    ad,
    api,
    bcoo,
    bcsr,
    coo,
    csr,
    random,
    transform,
    util,
)
from functrans.sparse import *  # noqa: F403
from functrans.sparse import __all__ as _names

__all__ = [*_names, "ad", "api", "bcoo", "bcsr", "coo", "csr", "random", "transform", "util"]

explain_missing_names(globals())
