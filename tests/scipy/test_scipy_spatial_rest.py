"""Half spaces, cells on a sphere, boxes, pictures and rigid transforms beside scipy.spatial."""

import numpy as np
import pytest
import scipy.spatial
from scipy.spatial import transform as known_transform

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import spatial
from functrans.scipy.spatial.transform import RigidTransform, Rotation, RotationSpline
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)


def rows(a):
    return np.array(sorted(map(tuple, (np.asarray(a).round(8) + 0.0).tolist())))


@pytest.mark.parametrize("dims", [2, 3, 4])
def test_half_spaces(dims):
    normals = rng.standard_normal((10, dims))
    spaces = np.c_[normals, -1 - rng.random(10)]
    ours, known = (m.HalfspaceIntersection(spaces, np.zeros(dims))
                   for m in (spatial, scipy.spatial))
    same(rows(ours.intersections), rows(known.intersections), 1e-6, 1e-6)
    same((ours.dual_area, ours.dual_volume), (known.dual_area, known.dual_volume))
    assert sorted(ours.dual_vertices.tolist()) == sorted(known.dual_vertices.tolist())
    assert sorted(ours.dual_facets) == sorted(map(sorted, known.dual_facets))
    check_grads(lambda h: spatial.HalfspaceIntersection(h, np.zeros(dims)).intersections,
                (spaces,), 1)


def test_corners_of_many_planes_are_one():
    cube = np.concatenate([np.c_[s * np.eye(3), -np.ones(3)] for s in (1, -1)])
    found = spatial.HalfspaceIntersection(cube, [0.1, 0.2, 0.0])
    assert found.intersections.shape == (8, 3)
    found.add_halfspaces([[1.0, 1, 1, -1.5]])
    assert found.intersections.shape == (10, 3)
    with pytest.raises(spatial.QhullError, match="less than 0"):
        spatial.HalfspaceIntersection(cube, [2.0, 0, 0])
    with pytest.raises(spatial.QhullError, match="plane"):
        spatial.ConvexHull(np.c_[np.arange(5.0), np.arange(5.0)])


def test_cells_on_a_sphere():
    p = rng.standard_normal((20, 3))
    p = 2 * p / np.linalg.norm(p, axis=1, keepdims=True) + [1, 2, 3]
    ours, known = (m.SphericalVoronoi(p, 2, np.array([1.0, 2, 3]))
                   for m in (spatial, scipy.spatial))
    same(rows(ours.vertices), rows(known.vertices))
    same(ours.calculate_areas(), known.calculate_areas())
    same(jnp.sum(ours.calculate_areas()), 16 * np.pi)
    for region, other in zip(ours.regions, known.regions, strict=True):
        u, v = np.asarray(ours.vertices)[region], known.vertices[other]
        v = np.roll(v, -int(np.argmin(np.abs(v - u[0]).sum(1))), 0)
        assert np.allclose(u, v) or np.allclose(u, np.r_[v[:1], v[:0:-1]])
    angle = np.sort(rng.random(7) * 6)
    circle = spatial.SphericalVoronoi(np.c_[np.cos(angle), np.sin(angle)])
    gaps = np.diff(np.append(angle, angle[0] + 2 * np.pi))
    same(circle.calculate_areas(), (gaps + np.roll(gaps, 1)) / 2)

    def areas(p):
        unit = p / jnp.linalg.norm(p, axis=1, keepdims=True)
        return spatial.SphericalVoronoi(unit).calculate_areas()

    check_grads(areas, ((p[:7] - [1, 2, 3]) / 2,), 1)
    for wrong in ({"radius": 3}, {"points": p[[0, 0, 1, 2, 3]]}, {"points": p[:3]},
                  {"radius": None}):
        with pytest.raises(ArgumentError, match="SphericalVoronoi"):
            spatial.SphericalVoronoi(**{"points": p, "radius": 2, "center": [1.0, 2, 3], **wrong})


def test_boxes():
    pairs = [(m.Rectangle([2, 1.0], [0, 3.0]), m.Rectangle([5, 6.0], [4, 4.0]))
             for m in (spatial, scipy.spatial)]
    point = np.array([3, 0.5])
    for p in (1.0, 2.0, 3.0, np.inf):
        for name, i in (("min_distance_point", 0), ("max_distance_point", 0),
                        ("min_distance_rectangle", 1), ("max_distance_rectangle", 1)):
            found, known = (getattr(a, name)(b if i else point, p) for a, b in pairs)
            same(found, known, 1e-6, what=(name, p))
    for u, v in zip(*(a.split(0, 1.0) for a, _ in pairs), strict=True):
        same((u.mins, u.maxes, u.volume()), (v.mins, v.maxes, v.volume()))
    assert repr(pairs[0][0]) == "<Rectangle [(0.0, 2.0), (1.0, 3.0)]>"
    mesh = spatial.Delaunay(np.array([[0, 0], [1, 0], [0, 1.0]]))
    assert spatial.tsearch(mesh, [[0.2, 0.2], [2, 2.0]]).tolist() == [0, -1]
    with pytest.raises(ArgumentError, match="Delaunay"):
        spatial.tsearch(np.ones((3, 2)), [[0.0, 0]])


class Axes:
    """What pictures are drawn on, which keeps what it is told."""

    figure = "figure"

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args, **options: (self.calls.append((name, args)), (0, 1))[1]


def test_pictures():
    points = rng.random((9, 2))
    for name, made in (("delaunay_plot_2d", spatial.Delaunay(points)),
                       ("convex_hull_plot_2d", spatial.ConvexHull(points)),
                       ("voronoi_plot_2d", spatial.Voronoi(points))):
        axes = Axes()
        pytest.importorskip("matplotlib")
        assert getattr(spatial, name)(made, axes) == "figure"
        assert {"set_xlim", "plot"} < {call for call, _ in axes.calls}
        with pytest.raises(ArgumentError, match="of a plane"):
            getattr(spatial, name)(points)


def test_rotation_splines():
    q, t = rng.standard_normal((6, 4)), np.cumsum(rng.random(6) + 0.3)
    turns = known_transform.Rotation.from_quat(q)
    at = rng.uniform(t[0] - 0.1, t[-1] + 0.1, 12)
    small = known_transform.Rotation.from_rotvec(rng.standard_normal((6, 3)) * 1e-4)
    for known_turns, count in ((turns, 6), (turns, 2), (small, 6)):
        chosen = known_turns[:count]
        ours = RotationSpline(t[:count], Rotation.from_quat(chosen.as_quat()))
        known = known_transform.RotationSpline(t[:count], chosen)
        same(ours(at).as_matrix(), known(at).as_matrix())
        for order in (1, 2):
            same(ours(at, order), known(at, order), 1e-8)
            same(ours(t[1], order), known(t[1], order), 1e-8)
    check_grads(lambda r, t: RotationSpline(t, Rotation.from_rotvec(r))(at, 2),
                (turns.as_rotvec(), t), 1)
    for wrong in (t[::-1], t[:3]):
        with pytest.raises((ArgumentError, ShapeError), match="times"):
            RotationSpline(wrong, Rotation.from_quat(q))


def test_rigid_transforms():
    quat, moves, v = rng.standard_normal((6, 4)), *rng.standard_normal((2, 6, 3))
    a = RigidTransform.from_components(moves, Rotation.from_quat(quat))
    b = known_transform.RigidTransform.from_components(
        moves, known_transform.Rotation.from_quat(quat))
    same((a.as_matrix(), a.apply(v), a.apply(v, True), a.as_exp_coords(), a.translation),
         (b.as_matrix(), b.apply(v), b.apply(v, True), b.as_exp_coords(), b.translation))
    screws, dual = b.as_exp_coords(), rng.standard_normal((6, 8))
    same(RigidTransform.from_exp_coords(screws).as_matrix(), b.as_matrix())
    for first in (False, True):
        same(np.abs(a.as_dual_quat(scalar_first=first)), np.abs(b.as_dual_quat(scalar_first=first)))
        same(RigidTransform.from_dual_quat(dual, scalar_first=first).as_matrix(),
             known_transform.RigidTransform.from_dual_quat(dual, scalar_first=first).as_matrix())
    same((a * a[0]).as_matrix(), (b * b[0]).as_matrix())
    for n in (0, 1, -1, 2, 0.5):
        same((a**n).as_matrix(), (b**n).as_matrix(), what=n)
    weights = rng.random(6)
    same((a.mean().as_matrix(), a.mean(weights).as_matrix()),
         (b.mean().as_matrix(), b.mean(weights).as_matrix()))
    skewed = b.as_matrix()
    skewed[:, :3, :3] += 0.05 * rng.standard_normal((6, 3, 3))
    same(RigidTransform(skewed).as_matrix(), known_transform.RigidTransform(skewed).as_matrix())
    assert (a.shape, len(a), a[0].single, len(list(a))) == ((6,), 6, True, 6)
    assert RigidTransform.concatenate([a, a[0]]).shape == (7,)
    same(RigidTransform.identity(3).as_matrix(), np.tile(np.eye(4), (3, 1, 1)))
    # trees, which go through jit and vmap
    same(ft.jit(lambda a, v: a.apply(v))(a, v), b.apply(v))
    same(ft.vmap(lambda a, v: a.apply(v))(a, v), b.apply(v))
    check_grads(lambda c, v: RigidTransform.from_exp_coords(c).apply(v), (screws[:2], v[:2]), 2)
    check_grads(lambda c: RigidTransform.from_exp_coords(c).as_exp_coords(), (0 * screws[:1],), 1)
    for wrong in (lambda: RigidTransform(np.ones((4, 4))), lambda: len(a[0]),
                  lambda: RigidTransform(np.diag([1.0, 1, -1, 1])),
                  lambda: RigidTransform.from_rotation(quat)):
        with pytest.raises(ArgumentError, match="RigidTransform"):
            wrong()
