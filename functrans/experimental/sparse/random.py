"""jax.experimental.sparse.random: random sparse arrays."""

from functrans.core.errors import explain_missing_names
from functrans.sparse import random_bcoo

__all__ = ["random_bcoo"]

explain_missing_names(globals())
