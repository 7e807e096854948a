"""jax.experimental.sparse.util: errors and warnings."""

from functrans.core.errors import explain_missing_names
from functrans.sparse import (
    CuSparseEfficiencyWarning,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
)

__all__ = [
    "CuSparseEfficiencyWarning", "SparseEfficiencyError", "SparseEfficiencyWarning",
]

explain_missing_names(globals())
