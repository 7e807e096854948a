"""Hulls, triangulations, cells and nearest points beside SciPy's."""

import numpy as np
import pytest
import scipy.spatial as theirs

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import spatial
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(2)
PLANE, SPACE = rng.normal(size=(25, 2)), rng.normal(size=(18, 3))
GRID = np.stack(np.meshgrid(*[np.arange(3.0)] * 3), -1).reshape(-1, 3)


def as_sets(simplices):
    return {tuple(sorted(s)) for s in np.asarray(simplices).tolist()}


@pytest.mark.parametrize("points", [PLANE, SPACE, GRID, rng.normal(size=(12, 4))],
                         ids=["plane", "space", "grid", "four"])
def test_hulls(points):
    ours, golden = spatial.ConvexHull(points), theirs.ConvexHull(points)
    assert set(ours.vertices.tolist()) == set(golden.vertices.tolist())
    same(ours.volume, golden.volume)
    same(ours.area, golden.area)
    if points is not GRID:
        assert as_sets(ours.simplices) == as_sets(golden.simplices)
        order, other = np.lexsort(np.asarray(ours.equations).T), np.lexsort(golden.equations.T)
        same(ours.equations[order], golden.equations[other])
    inside = np.asarray(ours.equations)
    assert (inside[:, :-1] @ points.T + inside[:, -1:] < 1e-9).all()
    near = np.asarray(ours.neighbors)
    assert all(i in near[j] for i, row in enumerate(near) for j in row)


def test_the_corners_of_a_plane_go_around():
    ours, golden = spatial.ConvexHull(PLANE).vertices.tolist(), theirs.ConvexHull(PLANE).vertices
    start = ours.index(golden[0])
    assert ours[start:] + ours[:start] == golden.tolist()


@pytest.mark.parametrize("points", [PLANE, SPACE], ids=["plane", "space"])
def test_triangulations_and_cells(points):
    ours, golden = spatial.Delaunay(points), theirs.Delaunay(points)
    assert as_sets(ours.simplices) == as_sets(golden.simplices)
    assert as_sets(ours.convex_hull) == as_sets(golden.convex_hull)
    places = rng.normal(size=(3, 7, points.shape[1])) * 1.5
    found, expected = np.asarray(ours.find_simplex(places)), golden.find_simplex(places)
    assert found.shape == expected.shape and ((found < 0) == (expected < 0)).all()
    for i, j in zip(found.ravel(), expected.ravel(), strict=True):
        assert i < 0 or set(ours.simplices[i].tolist()) == set(golden.simplices[j].tolist())
    cells, golden = spatial.Voronoi(points), theirs.Voronoi(points)
    # a wedge with one vertex is a ridge as well, which Qhull leaves out in space
    ridges = {p: v for p, v in cells.ridge_dict.items() if len(v) >= points.shape[1]}
    assert set(ridges) == as_sets(golden.ridge_points)
    assert len(cells.ridge_points) == len(cells.ridge_vertices) >= len(ridges)
    key = {tuple(sorted(p)): v for p, v in zip(golden.ridge_points.tolist(),
                                               golden.ridge_vertices, strict=True)}
    for pair, vertices in ridges.items():
        ours_, theirs_ = (sorted(np.round(at[[v for v in each if v >= 0]], 6).tolist())
                          for at, each in ((np.asarray(cells.vertices), vertices),
                                           (golden.vertices, key[pair])))
        assert ours_ == theirs_ and (-1 in vertices) == (-1 in key[pair])
    for i in range(len(points)):
        one, two = cells.regions[i], golden.regions[golden.point_region[i]]
        assert len(one) == len(two) and (-1 in one) == (-1 in two)


def test_derivatives_of_volumes_and_vertices():
    check_grads(lambda x: spatial.ConvexHull(x).volume, (SPACE,), 1, modes=["rev"])
    check_grads(lambda x: spatial.ConvexHull(x).area, (PLANE,), 1, modes=["fwd"])
    check_grads(lambda x: spatial.ConvexHull(x).equations, (PLANE,), 1, modes=["fwd"])
    check_grads(lambda x: spatial.Voronoi(x).vertices, (PLANE[:6],), 1, modes=["fwd"])


def test_nearest_points():
    tree, golden = spatial.KDTree(SPACE), theirs.KDTree(SPACE)
    at = rng.normal(size=(2, 5, 3))
    for k in (1, 3, [2, 4], 20):
        for p in (1.0, 2.0, np.inf):
            same(tree.query(at, k, p=p), golden.query(at, k, p=p))
    same(tree.query(at[0, 0], 2), golden.query(at[0, 0], 2))
    same(tree.query(at, 4, distance_upper_bound=0.8), golden.query(at, 4, distance_upper_bound=0.8))
    assert tree.query_ball_point(at[0], 1.0).tolist() == [
        sorted(v) for v in golden.query_ball_point(at[0], 1.0)]
    same(tree.query_ball_point(at, 1.0, return_length=True),
         golden.query_ball_point(at, 1.0, return_length=True))
    assert tree.query_pairs(0.9) == golden.query_pairs(0.9)
    other, second = spatial.KDTree(at[0]), theirs.KDTree(at[0])
    assert tree.query_ball_tree(other, 1.0) == golden.query_ball_tree(second, 1.0)
    radii = np.array([0.5, 1.0, 2.0])
    for cumulative in (True, False):
        same(tree.count_neighbors(other, radii, cumulative=cumulative),
             golden.count_neighbors(second, radii, cumulative=cumulative))
    box = np.mod(SPACE, 1.0)
    same(spatial.KDTree(box, boxsize=1.0).query(np.mod(at, 1.0), 3),
         theirs.KDTree(box, boxsize=1.0).query(np.mod(at, 1.0), 3))
    same(tree.sparse_distance_matrix(other, 1.0),
         golden.sparse_distance_matrix(second, 1.0).toarray())


def test_nearest_points_under_transforms(monkeypatch):
    def three(points, at):
        return spatial.KDTree(points).query(at, 3)[0]

    check_grads(three, (SPACE, SPACE[:4] + 0.1), 1)
    monkeypatch.setattr("functrans.scipy.spatial.neighbors._AT_ONCE", 64)
    tree = spatial.KDTree(SPACE)
    same(ft.jit(lambda t, x: t.query(x, 2))(tree, PLANE @ np.ones((2, 3))),
         theirs.KDTree(SPACE).query(PLANE @ np.ones((2, 3)), 2))


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="plane"):
        spatial.ConvexHull(np.ones((5, 2)) * np.arange(5)[:, None])
    with pytest.raises(ShapeError, match="n > dims"):
        spatial.Delaunay(PLANE[:2])
    with pytest.raises(ArgumentError, match="traced"):
        ft.jit(lambda x: spatial.ConvexHull(x).volume)(PLANE)
    with pytest.raises(ArgumentError, match="finite"):
        spatial.Voronoi(np.full((4, 2), np.nan))
    with pytest.raises(ArgumentError, match="k is 0"):
        spatial.KDTree(PLANE).query([0.0, 0.0], 0)
    with pytest.raises(ShapeError, match="coordinates"):
        spatial.KDTree(PLANE).query(jnp.zeros(3))
    with pytest.raises(ArgumentError, match="return_length"):
        ft.jit(lambda x: spatial.KDTree(PLANE).query_ball_point(x, 1.0))(PLANE[0])
