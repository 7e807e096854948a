"""Large systems, eigenvalues and least squares, with the names of scipy.sparse.linalg.

`A` is a matrix, dense or sparse, or what multiplies by it: a `LinearOperator`, and for `cg`,
`gmres` and `bicgstab` a function, of arrays or trees of arrays. Derivatives are those of the
solution, by another solve: they are as exact as both are.
"""

from functrans.core.errors import publish
from functrans.scipy.sparse.eigenvalues import eigs, eigsh, lobpcg, svds
from functrans.scipy.sparse.krylov import bicgstab, cg, gmres, spsolve
from functrans.scipy.sparse.maps import LinearOperator, aslinearoperator
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

__all__ = ["LinearOperator", "aslinearoperator", "bicgstab", "cg", "eigs", "eigsh",
           "expm_multiply", "factorized", "gmres", "lobpcg", "lsmr", "lsqr", "minres", "norm",
           "onenormest", "spsolve", "spsolve_triangular", "svds"]

publish(globals(), __all__)
