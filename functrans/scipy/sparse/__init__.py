"""Linear systems whose matrix is known by its products alone, with the names of scipy.sparse."""

from functrans.core.errors import explain_missing_names
from functrans.scipy.sparse import linalg

__all__ = ["linalg"]

explain_missing_names(globals())
