"""functrans.scipy.spatial and .cluster beside SciPy: distances, rotations, k-means."""

import warnings

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.spatial
import scipy.spatial.distance
from scipy.spatial import transform as known

import functrans as ft
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import spatial
from functrans.scipy.cluster import vq
from functrans.scipy.spatial import distance
from functrans.scipy.spatial.transform import Rotation, Slerp
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair, same

rng = np.random.default_rng(0)
A, B = rng.random((5, 4)), rng.random((3, 4))
A[0] = B[0]
METRICS = ["braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine",
           "euclidean", "hamming", "jaccard", "jensenshannon", "mahalanobis", "minkowski",
           "seuclidean", "sqeuclidean"]


@pytest.mark.parametrize("metric", METRICS)
def test_distances(metric):
    # the root of a distance that is 0 to roundoff
    both = Pair(distance, scipy.spatial.distance)
    both("cdist", A, B, metric, atol=1e-7)
    both("pdist", A, metric, atol=1e-7)
    if metric not in ("jensenshannon", "mahalanobis", "seuclidean"):
        w = rng.random(4)
        both(metric, A[1], B[1], w=w)


def test_distances_of_masks():
    both = Pair(distance, scipy.spatial.distance)
    a, b, w = A > 0.5, B > 0.4, rng.random(4)
    for metric in ("dice", "rogerstanimoto", "russellrao", "sokalsneath", "yule"):
        for weights in (None, w):
            both(metric, a[1], b[1], w=weights)
        both("cdist", a, b, metric)
    both("directed_hausdorff", A, B)
    pairs = distance.pdist(A)
    for name, given in (("num_obs_y", pairs), ("is_valid_y", pairs), ("is_valid_y", pairs[:4]),
                        ("num_obs_dm", distance.squareform(pairs)),
                        ("is_valid_dm", distance.squareform(pairs)), ("is_valid_dm", A)):
        assert getattr(distance, name)(given) == getattr(scipy.spatial.distance, name)(
            np.asarray(given))
    with pytest.raises(ShapeError, match="4 distances"):
        distance.num_obs_y(pairs[:4])


def test_sets_of_points():
    both = Pair(spatial, scipy.spatial)
    for p in (1, 2, 3, np.inf):
        both("minkowski_distance", A, B[0], p)
        both("minkowski_distance_p", A, B[0], p)
        both("distance_matrix", A, B, p)
    both("procrustes", A[1:4], B)
    ends = A[1] / np.linalg.norm(A[1]), B[1] / np.linalg.norm(B[1])
    both("geometric_slerp", *ends, np.linspace(0, 1, 5))
    both("geometric_slerp", *ends, 0.3)
    check_grads(lambda a: spatial.procrustes(a, B)[2], (A[1:4],), 1)
    check_grads(lambda t: spatial.geometric_slerp(*ends, t), (np.array([0.2, 0.7]),), 1)
    with pytest.raises(ArgumentError, match="unit sphere"):
        spatial.geometric_slerp(A[1], B[1], 0.5)


def test_other_distances():
    both = Pair(distance, scipy.spatial.distance)
    both("cdist", A, B, "minkowski", p=3)
    pairs = scipy.spatial.distance.pdist(A)
    both("squareform", pairs)
    both("squareform", scipy.spatial.distance.squareform(pairs))
    same(distance.cdist(A, B, lambda u, v: ((u - v) ** 2).sum()), distance.cdist(
        A, B, "sqeuclidean"))
    check_grads(distance.cdist, (A[1:], B), 1)
    assert np.isfinite(np.asarray(ft.grad(lambda a: distance.pdist(a).sum())(np.ones((3, 2))))
                       ).all()
    with pytest.raises(ArgumentError, match="no metric"):
        distance.cdist(A, B, "euclid")
    with pytest.raises(ShapeError, match="n points"):
        distance.squareform(np.ones(4))


Q = rng.standard_normal((6, 4))
OURS, THEIRS = Rotation.from_quat(Q), known.Rotation.from_quat(Q)


def test_forms_of_rotations():
    for name, args in (("as_matrix", ()), ("as_rotvec", ()), ("as_rotvec", (True,)),
                       ("as_mrp", ()), ("magnitude", ())):
        same(getattr(OURS, name)(*args), getattr(THEIRS, name)(*args))
    same(OURS.as_quat(True, True), THEIRS.as_quat(canonical=True, scalar_first=True))
    for name in ("matrix", "rotvec", "mrp", "quat"):
        form = getattr(THEIRS, f"as_{name}")()
        same(getattr(Rotation, f"from_{name}")(form).as_matrix(), THEIRS.as_matrix())
    v = rng.standard_normal((6, 3))
    same(OURS.apply(v), THEIRS.apply(v))
    same(OURS[2].apply(v, inverse=True), THEIRS[2].apply(v, True))
    same((OURS * OURS.inv()[1]).as_matrix(), (THEIRS * THEIRS.inv()[1]).as_matrix())
    same(OURS.mean().as_matrix(), THEIRS.mean().as_matrix())
    w = np.arange(1.0, 7)
    same(OURS.mean(w).as_matrix(), THEIRS.mean(w).as_matrix())
    assert len(Rotation.concatenate([OURS, OURS[0]])) == 7
    same(Rotation.identity(2).as_matrix(), np.stack([np.eye(3)] * 2))


@pytest.mark.parametrize("seq", ["xyz", "XYZ", "zxz", "ZXZ", "zyx", "YXY", "XZY"])
def test_angles(seq):
    same(OURS.as_euler(seq), THEIRS.as_euler(seq), atol=1e-8)
    angles = rng.standard_normal((6, 3))
    same(Rotation.from_euler(seq, angles).as_matrix(),
         known.Rotation.from_euler(seq, angles).as_matrix())
    locked = known.Rotation.from_euler(seq, [[0.3, 0 if seq[0] == seq[2] else np.pi / 2, 0.4]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy's, for the gimbal lock
        theirs = locked.as_euler(seq)
    same(Rotation.from_matrix(locked.as_matrix()).as_euler(seq), theirs, atol=1e-7)


def test_few_axes():
    for seq, angles in (("x", np.float64(0.3)), ("xy", np.array([0.3, 0.4])),
                        ("z", np.array([[0.1], [0.2]])), ("X", np.array([0.3]))):
        same(Rotation.from_euler(seq, angles).as_matrix(),
             known.Rotation.from_euler(seq, angles).as_matrix())
    assert len(Rotation.from_euler("z", np.array([0.1, 0.2, 0.3]))) == 3
    for seq in ("xX", "xx", "abc", "xyzx"):
        with pytest.raises(ArgumentError, match="seq"):
            Rotation.from_euler(seq, np.ones(len(seq)))


def test_ways_between_rotations():
    times = np.array([0, 1.0, 2.5, 3, 4, 6])
    ours, theirs = Slerp.init(times, OURS), known.Slerp(times, THEIRS)
    for at in (np.array([0, 0.5, 2.6, 5.9, 6]), 0.5):
        same(ours(at).as_matrix(), theirs(at).as_matrix())
    with pytest.raises(ShapeError, match="6 rotations"):
        Slerp.init(times[:3], OURS)


def test_rotations_are_trees_and_differentiated():
    v = np.array([[0, 0, 0], [0.1, 0.2, 0.3], [2.0, 1.0, 0.5]])
    check_grads(lambda v: Rotation.from_rotvec(v).as_matrix(), (v,), 2)
    check_grads(lambda v: Rotation.from_rotvec(v).as_rotvec(), (v,), 1)
    same(ft.jit(ft.vmap(lambda r: r.magnitude()))(OURS), THEIRS.magnitude())
    drawn = Rotation.random(ft.random.key(0), 4000)
    assert abs(np.asarray(drawn.as_matrix()).mean(axis=0)).max() < 0.03


X = rng.standard_normal((60, 2))
X[:20] += 5
X[20:40, 0] -= 5
GUESS = X[[0, 25, 50]]


def test_clusters():
    both = Pair(vq, scipy.cluster.vq)
    both("vq", X, GUESS)
    both("whiten", X)
    both("kmeans", X, GUESS)
    both("kmeans2", X, GUESS, minit="matrix")
    both("kmeans", X[:, 0], GUESS[:, 0])
    _, distortion = scipy.cluster.vq.kmeans(X, GUESS)
    codes, found = vq.kmeans(X, 3, key=ft.random.key(1))
    assert codes.shape == (3, 2) and float(found) < distortion + 1e-6
    for minit in ("random", "points", "++"):
        codes, labels = vq.kmeans2(X, 3, minit=minit, key=ft.random.key(1))
        assert codes.shape == (3, 2) and set(labels.tolist()) <= {0, 1, 2}
    with pytest.raises(ArgumentError, match="draws where it begins"):
        vq.kmeans(X, 3)
    with pytest.raises(ShapeError, match="same features"):
        vq.vq(X, GUESS[:, :1])
