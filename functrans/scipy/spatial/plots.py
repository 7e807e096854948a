"""Pictures of hulls, triangulations and cells of a plane, by matplotlib where it is installed."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from functrans.core.errors import ArgumentError, publish
from functrans.core.source import user_source
from functrans.scipy.spatial.hulls import ConvexHull, Delaunay, Voronoi

__all__ = ["convex_hull_plot_2d", "delaunay_plot_2d", "voronoi_plot_2d"]


def _points(name: str, of: Any, kind: type[Any], ax: Any) -> tuple[Any, Any]:
    """The points, which are in a plane, and the axes to draw on."""
    if not isinstance(of, kind) or of.ndim != 2:
        raise ArgumentError(f"functrans.scipy.spatial.{name} takes a {kind.__name__} of a plane.",
                            where=user_source(), fix=f"{kind.__name__}(points)  # (n, 2)")
    points = np.asarray(of.points)
    if ax is None:
        try:
            ax = importlib.import_module("matplotlib.pyplot").figure().gca()
        except ImportError:
            raise ArgumentError(f"functrans.scipy.spatial.{name} needs matplotlib.",
                                where=user_source(), fix="pip install matplotlib") from None
    margin = 0.1 * np.ptp(points, axis=0)
    low, high = points.min(0) - margin, points.max(0) + margin
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    return points, ax


def _lines(ax: Any, segments: list[Any], **options: Any) -> None:
    collections = importlib.import_module("matplotlib.collections")
    ax.add_collection(collections.LineCollection(segments, **options), autolim=False)


def delaunay_plot_2d(tri: Delaunay, ax: Any = None) -> object:
    """The figure of a triangulation of a plane, on new axes or `ax`.

    Raises ArgumentError for other dimensions, and without matplotlib.
    """
    points, ax = _points("delaunay_plot_2d", tri, Delaunay, ax)
    limits = ax.get_xlim(), ax.get_ylim()
    ax.plot(*points.T, "o")
    ax.triplot(*points.T, np.asarray(tri.simplices))
    ax.set_xlim(limits[0])
    ax.set_ylim(limits[1])
    figure: object = ax.figure
    return figure


def convex_hull_plot_2d(hull: ConvexHull, ax: Any = None) -> object:
    """The figure of a convex hull of a plane; see `delaunay_plot_2d`."""
    points, ax = _points("convex_hull_plot_2d", hull, ConvexHull, ax)
    ax.plot(*points.T, "o", scalex=False, scaley=False)
    _lines(ax, list(points[np.asarray(hull.simplices)]), colors="k", linestyle="solid")
    figure: object = ax.figure
    return figure


def voronoi_plot_2d(vor: Voronoi, ax: Any = None, *, show_points: bool = True,
                    show_vertices: bool = True, line_colors: Any = "k", line_width: float = 1.0,
                    line_alpha: float = 1.0, point_size: float | None = None) -> object:
    """The figure of Voronoi's cells of a plane, dashed to infinity; see `delaunay_plot_2d`."""
    points, ax = _points("voronoi_plot_2d", vor, Voronoi, ax)
    vertices = np.asarray(vor.vertices)
    if show_points:
        ax.plot(*points.T, ".", markersize=point_size, scalex=False, scaley=False)
    if show_vertices:
        ax.plot(*vertices.T, "o", scalex=False, scaley=False)
    middle, spread = points.mean(0), np.ptp(points, axis=0)
    reach = spread.max() * abs(spread.max() / spread.min())
    finite, infinite = [], []
    for pair, ridge in zip(np.asarray(vor.ridge_points), vor.ridge_vertices):
        known = [v for v in ridge if v >= 0]
        if len(known) == len(ridge):
            finite.append(vertices[known])
            continue
        along = points[pair[1]] - points[pair[0]]
        across = np.array([-along[1], along[0]]) / np.linalg.norm(along)
        outward = np.sign(across @ (points[pair].mean(0) - middle)) * across
        start = vertices[known[0]]
        infinite.append(np.stack([start, start + outward * reach]))
    for segments, style in ((finite, "solid"), (infinite, "dashed")):
        _lines(ax, segments, colors=line_colors, lw=line_width, alpha=line_alpha, linestyle=style)
    figure: object = ax.figure
    return figure


publish(globals(), __all__)
