"""jax.experimental.sparse.csr: matrices of compressed rows and columns."""

from functrans.core.errors import explain_missing_names
from functrans.sparse import (
    CSC,
    CSR,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
    csr_todense,
)

__all__ = [
    "CSC", "CSR", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense",
]

explain_missing_names(globals())
