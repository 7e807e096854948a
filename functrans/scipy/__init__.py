"""Functions with the names of SciPy, on arrays and tracers; SciPy itself is not needed."""

from functrans.scipy import linalg, special, stats

__all__ = ["linalg", "special", "stats"]
