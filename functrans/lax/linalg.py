"""Dense linear algebra with the names of jax.lax.linalg; operands are floating or complex."""

from functrans.core.composed import ComposedPrimitive
from functrans.core.errors import publish
from functrans.lax.banded import tridiagonal_solve
from functrans.lax.householder import householder_product, ormqr
from functrans.lax.pivoted import qr
from functrans.lax.qdwh import qdwh
from functrans.lax.updates import cholesky_update, symmetric_product
from functrans.primitives.algorithms import EighImplementation, EigImplementation, SvdAlgorithm
from functrans.primitives.linalg import (
    cholesky,
    cholesky_p,
    lu,
    lu_p,
    lu_pivots_to_permutation,
    lu_pivots_to_permutation_p,
    qr_p,
)
from functrans.primitives.schur import (
    hessenberg,
    hessenberg_p,
    schur,
    schur_p,
    tridiagonal,
    tridiagonal_p,
)
from functrans.primitives.solve import triangular_solve, triangular_solve_p
from functrans.primitives.spectral import eig, eig_p, eigh, eigh_p, svd, svd_p

cholesky_update_p = ComposedPrimitive("cholesky_update", cholesky_update)
householder_product_p = ComposedPrimitive("householder_product", householder_product)
ormqr_p = ComposedPrimitive("ormqr", ormqr)
symmetric_product_p = ComposedPrimitive("symmetric_product", symmetric_product)
tridiagonal_solve_p = ComposedPrimitive("tridiagonal_solve", tridiagonal_solve)

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_p",
    "cholesky_update",
    "cholesky_update_p",
    "eig",
    "eig_p",
    "eigh",
    "eigh_p",
    "hessenberg",
    "hessenberg_p",
    "householder_product",
    "householder_product_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "ormqr",
    "ormqr_p",
    "qdwh",
    "qr",
    "qr_p",
    "schur",
    "schur_p",
    "svd",
    "svd_p",
    "symmetric_product",
    "symmetric_product_p",
    "triangular_solve",
    "triangular_solve_p",
    "tridiagonal",
    "tridiagonal_p",
    "tridiagonal_solve",
    "tridiagonal_solve_p",
]

publish(globals(), __all__)
