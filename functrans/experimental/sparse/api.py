"""jax.experimental.sparse.api: arrays from shapes, and dense ones from sparse ones."""

from functrans.core.errors import explain_missing_names
from functrans.sparse import empty, eye, todense

__all__ = ["empty", "eye", "todense"]

explain_missing_names(globals())
