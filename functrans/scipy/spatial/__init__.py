"""Distances and rotations, with the names of scipy.spatial."""

from functrans.core.errors import explain_missing_names
from functrans.scipy.spatial import distance, transform

__all__ = ["distance", "transform"]

explain_missing_names(globals())
