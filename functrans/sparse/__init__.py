"""Sparse arrays as pytrees, with the names of jax.experimental.sparse."""

from functrans.core.errors import explain_missing_names
from functrans.sparse import linalg as linalg
from functrans.sparse import operators as operators
from functrans.sparse.base import (
    CuSparseEfficiencyWarning,
    JAXSparse,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
)
from functrans.sparse.bcoo import BCOO, bcoo_fromdense, bcoo_todense
from functrans.sparse.bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from functrans.sparse.convolutions import bcoo_conv_general_dilated
from functrans.sparse.creation import empty, eye, random_bcoo
from functrans.sparse.derivatives import grad, jacfwd, jacobian, jacrev, value_and_grad
from functrans.sparse.formats import (
    COO,
    CSC,
    CSR,
    coo_fromdense,
    coo_matmat,
    coo_matvec,
    coo_todense,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
    csr_todense,
)
from functrans.sparse.gathers import bcoo_gather
from functrans.sparse.jacobians import jacobian_sparsity, sparse_hessian, sparse_jacobian
from functrans.sparse.layout import (
    bcoo_eliminate_zeros,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_transpose,
    bcoo_update_layout,
)
from functrans.sparse.movement import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
)
from functrans.sparse.products import (
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_extract,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from functrans.sparse.sparsify import sparsify, todense

__all__ = [
    "BCOO", "BCSR", "COO", "CSC", "CSR", "CuSparseEfficiencyWarning", "JAXSparse",
    "SparseEfficiencyError", "SparseEfficiencyWarning", "bcoo_broadcast_in_dim",
    "bcoo_concatenate", "bcoo_conv_general_dilated", "bcoo_dot_general",
    "bcoo_dot_general_sampled", "bcoo_dynamic_slice", "bcoo_eliminate_zeros", "bcoo_extract",
    "bcoo_fromdense", "bcoo_gather", "bcoo_multiply_dense", "bcoo_multiply_sparse",
    "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices",
    "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "bcoo_update_layout",
    "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract",
    "bcsr_fromdense", "bcsr_sum_duplicates", "bcsr_todense", "coo_fromdense", "coo_matmat",
    "coo_matvec", "coo_todense", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense",
    "empty", "eye", "grad", "jacfwd", "jacobian", "jacobian_sparsity", "jacrev", "linalg",
    "random_bcoo", "sparse_hessian", "sparse_jacobian", "sparsify", "todense", "value_and_grad",
]

explain_missing_names(globals())
