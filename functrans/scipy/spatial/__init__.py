"""Distances, rotations and sets of points, with the names of scipy.spatial."""

from functrans.core.errors import explain_missing_names
from functrans.scipy.spatial import distance, transform
from functrans.scipy.spatial.halfspaces import (
    HalfspaceIntersection,
    Rectangle,
    SphericalVoronoi,
    tsearch,
)
from functrans.scipy.spatial.hulls import ConvexHull, Delaunay, Voronoi
from functrans.scipy.spatial.neighbors import KDTree, cKDTree
from functrans.scipy.spatial.plots import (
    convex_hull_plot_2d,
    delaunay_plot_2d,
    voronoi_plot_2d,
)
from functrans.scipy.spatial.points import (
    distance_matrix,
    geometric_slerp,
    minkowski_distance,
    minkowski_distance_p,
    procrustes,
)
from functrans.scipy.spatial.simplices import QhullError

__all__ = [
    "ConvexHull", "Delaunay", "HalfspaceIntersection", "KDTree", "QhullError", "Rectangle",
    "SphericalVoronoi", "Voronoi", "cKDTree", "convex_hull_plot_2d", "delaunay_plot_2d",
    "distance", "distance_matrix", "geometric_slerp", "minkowski_distance",
    "minkowski_distance_p", "procrustes", "transform", "tsearch", "voronoi_plot_2d",
]

explain_missing_names(globals())
