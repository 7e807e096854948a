"""jax.experimental.sparse.transform: functions of dense arrays on sparse ones."""

from functrans.core.errors import explain_missing_names
from functrans.sparse import sparsify

__all__ = ["sparsify"]

explain_missing_names(globals())
