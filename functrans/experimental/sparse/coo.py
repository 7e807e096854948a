"""jax.experimental.sparse.coo: matrices by coordinates."""

from functrans.core.errors import explain_missing_names
from functrans.sparse import COO, coo_fromdense, coo_matmat, coo_matvec, coo_todense

__all__ = ["COO", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense"]

explain_missing_names(globals())
