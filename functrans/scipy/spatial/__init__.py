"""Distances, rotations and sets of points, with the names of scipy.spatial."""

from functrans.core.errors import explain_missing_names
from functrans.scipy.spatial import distance, transform
from functrans.scipy.spatial.hulls import ConvexHull, Delaunay, Voronoi
from functrans.scipy.spatial.neighbors import KDTree, cKDTree
from functrans.scipy.spatial.points import (
    distance_matrix,
    geometric_slerp,
    minkowski_distance,
    minkowski_distance_p,
    procrustes,
)

__all__ = ["ConvexHull", "Delaunay", "KDTree", "Voronoi", "cKDTree", "distance",
           "distance_matrix", "geometric_slerp", "minkowski_distance", "minkowski_distance_p",
           "procrustes", "transform"]

explain_missing_names(globals())
