"""Functions with the names of SciPy, on arrays and tracers; SciPy itself is not needed."""

from functrans.core.errors import explain_missing_names
from functrans.scipy import linalg, sparse, special, stats

__all__ = ["linalg", "sparse", "special", "stats"]

explain_missing_names(globals())
