"""Simplices between known points: Delaunay's triangulation, and the faces of the convex hull."""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.errors import ArgumentError
from functrans.core.source import user_source


class QhullError(ArgumentError, RuntimeError):
    """Points have no hull, or no triangulation: they are in a plane of fewer dimensions."""


_APEX = 1e6  # the height of a point above all, in units of the extent
_SHAKEN = 1e-10  # how far points are moved, so that there are no more in a plane than span it
_IN_PLANE = 1e-10  # how far above a face a point is that belongs to its plane
_FLAT = 1e-8  # of a simplex whose corners were moved out of a plane, relative to its sides


def delaunay(points: Any) -> Any:
    """The simplices (m, dims + 1) of Delaunay's triangulation of known points (n, dims).

    They are the lower faces of the convex hull of the points lifted to a paraboloid, to which one
    point after the other is added; of points on one sphere one of the triangulations is taken.
    Source: Brown, Inf. Process. Lett. 9 (1979); Preparata and Shamos (1985), ch. 3.4.2.
    """
    n, dims = points.shape
    spread = np.ptp(points, axis=0).max()
    unit = (points - points.mean(0)) / (spread or 1.0)
    _, first = np.unique(unit, axis=0, return_index=True)
    near = unit + _SHAKEN * np.random.default_rng(0).random(unit.shape)
    lifted = np.column_stack([near, (near**2).sum(1)])
    lifted = np.concatenate([lifted, [[0.0] * dims + [_APEX]]])
    start = _spanning(unit, np.sort(first))
    corners = [*start, n]
    inside = lifted[start].mean(0) + np.eye(dims + 1)[dims] * 0.5
    faces, _, _ = _grown(lifted, corners, np.sort(first), inside, 0.0)
    below = faces[(faces != n).all(1)]
    sides = unit[below[:, 1:]] - unit[below[:, :1]]
    lengths = np.linalg.norm(sides, axis=-1).prod(1)
    return below[np.abs(np.linalg.det(sides)) > _FLAT * lengths]


def hull(points: Any) -> tuple[Any, Any, Any]:
    """The faces (m, dims) of the convex hull of known points, their outward normals and offsets.

    Points in a plane of a face are no corners of it. Far points come first: most others are inside.
    """
    spread = np.ptp(points, axis=0).max() or 1.0
    middle = points.mean(0)
    unit = (points - middle) / spread
    order = np.argsort(-np.linalg.norm(unit, axis=1), kind="stable")
    start = _spanning(unit, order)
    faces, normals, offsets = _grown(unit, start, order, unit[start].mean(0), _IN_PLANE)
    return faces, normals, offsets * spread + normals @ middle


def _grown(lifted: Any, corners: list[int], order: Any, inside: Any, margin: float
           ) -> tuple[Any, Any, Any]:
    """The faces of the hull of a simplex and of the points that are added in an order."""
    size = lifted.shape[1]
    faces = np.array([[c for c in corners if c != left] for left in corners])
    normals, offsets = _planes(lifted, faces, inside)
    taken = set(corners)
    for i in order:
        if int(i) in taken:
            continue
        sees = normals @ lifted[i] > offsets + margin
        if not sees.any():
            continue
        lost = faces[sees]
        ridges = np.sort(np.concatenate([np.delete(lost, j, axis=1) for j in range(size)]), 1)
        found, counts = np.unique(ridges, axis=0, return_counts=True)
        edge = found[counts == 1]
        new = np.column_stack([edge, np.full(len(edge), i)])
        more = _planes(lifted, new, inside)
        faces = np.concatenate([faces[~sees], new])
        normals = np.concatenate([normals[~sees], more[0]])
        offsets = np.concatenate([offsets[~sees], more[1]])
    return faces, normals, offsets


def _spanning(unit: Any, candidates: Any) -> list[int]:
    """dims + 1 points that span the space, each far from the plane of those before it."""
    dims = unit.shape[1]
    chosen = [int(candidates[0])]
    basis = np.zeros((0, dims))
    for _ in range(dims):
        off = unit[candidates] - unit[chosen[0]]
        off = off - off @ basis.T @ basis
        size = np.linalg.norm(off, axis=1)
        at = int(np.argmax(size))
        if size[at] < 1e-10:
            raise QhullError("functrans.scipy: the points lie in a plane of fewer "
                             f"dimensions than {dims}.", where=user_source(),
                             why="no simplex is between them.",
                             fix="fewer coordinates, or another point")
        basis = np.concatenate([basis, off[at:at + 1] / size[at]])
        chosen.append(int(candidates[at]))
    return chosen


def _planes(lifted: Any, faces: Any, inside: Any) -> tuple[Any, Any]:
    """Outward normals of length 1 and offsets of the planes through faces."""
    sides = lifted[faces[:, 1:]] - lifted[faces[:, :1]]
    sides = sides / np.linalg.norm(sides, axis=-1, keepdims=True)
    normals = np.linalg.svd(sides)[2][:, -1]
    # of the corners the lowest has the least roundoff in its height
    low = faces[np.arange(len(faces)), np.argmin(lifted[faces, -1], axis=1)]
    offsets = (normals * lifted[low]).sum(1)
    flip = np.where(normals @ inside > offsets, -1.0, 1.0)
    return normals * flip[:, None], offsets * flip
