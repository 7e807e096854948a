"""Large systems, eigenvalues and least squares, with the names of scipy.sparse.linalg.

`A` is a matrix, dense or sparse, or what multiplies by it: a `LinearOperator`, and for `cg`,
`gmres` and `bicgstab` a function, of arrays or trees of arrays. Derivatives are those of the
solution, by another solve: they are as exact as both are.
"""

from functrans.core.errors import publish
from functrans.scipy.sparse.augmented import gcrotmk, lgmres
from functrans.scipy.sparse.biorthogonal import bicg, cgs, qmr, tfqmr
from functrans.scipy.sparse.eigenvalues import eigs, eigsh, lobpcg, svds
from functrans.scipy.sparse.factors import SuperLU, spilu, splu
from functrans.scipy.sparse.krylov import bicgstab, cg, gmres, spsolve
from functrans.scipy.sparse.laplacians import LaplacianNd
from functrans.scipy.sparse.maps import LinearOperator, aslinearoperator
from functrans.scipy.sparse.matrices import (
    ArpackError,
    ArpackNoConvergence,
    MatrixRankWarning,
    expm,
    funm_multiply_krylov,
    inv,
    is_sptriangular,
    matrix_power,
    spbandwidth,
    use_solver,
)
from functrans.scipy.sparse.solvers import (
    expm_multiply,
    factorized,
    lsmr,
    lsqr,
    minres,
    norm,
    onenormest,
    spsolve_triangular,
)

__all__ = ["ArpackError", "ArpackNoConvergence", "LaplacianNd", "LinearOperator",
           "MatrixRankWarning", "SuperLU", "aslinearoperator", "bicg", "bicgstab", "cg", "cgs",
           "eigs", "eigsh", "expm", "expm_multiply", "factorized", "funm_multiply_krylov",
           "gcrotmk", "gmres", "inv", "is_sptriangular", "lgmres", "lobpcg", "lsmr", "lsqr",
           "matrix_power", "minres", "norm", "onenormest", "qmr", "spbandwidth", "spilu", "splu",
           "spsolve", "spsolve_triangular", "svds", "tfqmr", "use_solver"]

publish(globals(), __all__)
