"""Sparse arrays, linear systems and graphs, with the names of scipy.sparse."""

from functrans.core.errors import publish
from functrans.scipy.sparse import csgraph, linalg
from functrans.scipy.sparse.arithmetic import sparray, spmatrix
from functrans.scipy.sparse.compressed import (
    bsr_array,
    bsr_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
)
from functrans.scipy.sparse.construction import (
    diags,
    diags_array,
    eye,
    eye_array,
    identity,
    rand,
    random,
    random_array,
    spdiags,
)
from functrans.scipy.sparse.coordinates import coo_array, coo_matrix, dia_array, dia_matrix
from functrans.scipy.sparse.host_arrays import dok_array, dok_matrix, lil_array, lil_matrix
from functrans.scipy.sparse.joining import (
    block_array,
    block_diag,
    bmat,
    expand_dims,
    find,
    hstack,
    kron,
    kronsum,
    load_npz,
    permute_dims,
    save_npz,
    swapaxes,
    tril,
    triu,
    vstack,
)
from functrans.scipy.sparse.questions import (
    SparseWarning,
    get_index_dtype,
    issparse,
    isspmatrix,
    isspmatrix_bsr,
    isspmatrix_coo,
    isspmatrix_csc,
    isspmatrix_csr,
    isspmatrix_dia,
    isspmatrix_dok,
    isspmatrix_lil,
    safely_cast_index_arrays,
)
from functrans.sparse.base import SparseEfficiencyWarning

__all__ = [
    "SparseEfficiencyWarning", "SparseWarning", "block_array", "block_diag", "bmat", "bsr_array",
    "bsr_matrix", "coo_array", "coo_matrix", "csc_array", "csc_matrix", "csgraph", "csr_array",
    "csr_matrix", "dia_array", "dia_matrix", "diags", "diags_array", "dok_array", "dok_matrix",
    "expand_dims", "eye", "eye_array", "find", "get_index_dtype", "hstack", "identity", "issparse",
    "isspmatrix", "isspmatrix_bsr", "isspmatrix_coo", "isspmatrix_csc", "isspmatrix_csr",
    "isspmatrix_dia", "isspmatrix_dok", "isspmatrix_lil", "kron", "kronsum", "lil_array",
    "lil_matrix", "linalg", "load_npz", "permute_dims", "rand", "random", "random_array",
    "safely_cast_index_arrays", "save_npz", "sparray", "spdiags", "spmatrix", "swapaxes", "tril",
    "triu", "vstack",
]

publish(globals(), __all__)
