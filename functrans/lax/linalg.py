"""Dense linear algebra with the names of jax.lax.linalg; operands are floating or complex."""

from functrans.core.errors import publish
from functrans.lax.householder import householder_product, tridiagonal_solve
from functrans.lax.pivoted import qr
from functrans.primitives.linalg import cholesky, lu, lu_pivots_to_permutation
from functrans.primitives.solve import triangular_solve
from functrans.primitives.spectral import eig, eigh, svd

__all__ = [
    "cholesky",
    "eig",
    "eigh",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "qr",
    "svd",
    "triangular_solve",
    "tridiagonal_solve",
]

publish(globals(), __all__)
