"""functrans.scipy.cluster.hierarchy beside SciPy."""

import numpy as np
import pytest
import scipy.cluster.hierarchy as theirs

import functrans as ft
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy.cluster import hierarchy
from functrans.scipy.spatial.distance import pdist
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair, same

X = np.random.default_rng(4).normal(size=(14, 3))
METHODS = ["single", "complete", "average", "weighted", "centroid", "median", "ward"]
pair = Pair(hierarchy, theirs)


@pytest.mark.parametrize("method", METHODS)
def test_linkages(method):
    pair("linkage", X, method)
    pair(method, np.asarray(pdist(X)))
    Z = theirs.linkage(X, method)
    if method not in ("centroid", "median"):  # whose heights may fall: SciPy sorts them
        pair("cut_tree", Z)
    for name in ("maxdists", "inconsistent", "leaves_list", "cophenet"):
        pair(name, Z)
    pair("inconsistent", Z, 5)
    pair("inconsistent", Z, 20)
    for t in (1.0, 1.7, 2.5, 9.0):
        pair("fcluster", Z, t, "distance")
        pair("fcluster", Z, t / 2)
    for count in (1, 2, 3, 7, 13):
        pair("fcluster", Z, count, "maxclust")
    T = theirs.fcluster(Z, 3, "maxclust")
    same(hierarchy.leaders(Z, T), theirs.leaders(Z, T))
    pair("maxinconsts", Z, theirs.inconsistent(Z))
    pair("is_monotonic", Z)
    assert hierarchy.to_tree(Z).pre_order() == theirs.to_tree(Z).pre_order()


def test_data_and_correlation():
    Z = theirs.linkage(X, "average")
    pair("fclusterdata", X, 1.0)
    pair("fclusterdata", X, 3, "maxclust", "cityblock", method="complete")
    pair("cophenet", Z, np.asarray(pdist(X)))
    pair("cut_tree", Z, height=[0.5, 2.0])
    R = theirs.inconsistent(Z)
    pair("fcluster", Z, 0.8, "monocrit", monocrit=theirs.maxinconsts(Z, R))
    pair("fcluster", Z, 3, "maxclust_monocrit", monocrit=theirs.maxdists(Z))
    assert hierarchy.is_valid_linkage(Z) and hierarchy.is_valid_im(R)
    assert hierarchy.correspond(Z, pdist(X)) and not hierarchy.correspond(Z, X[0])
    assert not hierarchy.is_isomorphic([1, 1, 2], [1, 2, 2])


def test_transforms():
    def heights(x):
        return hierarchy.linkage(x, "average")[:, 2]

    check_grads(heights, (X[:6],), 1, modes=["fwd", "rev"])
    both = np.stack([X, X[::-1] * 2])
    labels = ft.vmap(lambda x: hierarchy.fclusterdata(x, 3, "maxclust", method="ward"))
    for got, x in zip(ft.jit(labels)(both), both, strict=True):
        same(got, theirs.fclusterdata(x, 3, "maxclust", method="ward"))


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="method"):
        hierarchy.linkage(X, "nearest")
    with pytest.raises(ShapeError, match="observations"):
        hierarchy.linkage(X[:1])
    with pytest.raises(ShapeError, match="linkage"):
        hierarchy.fcluster(X, 1.0)
    with pytest.raises(ArgumentError, match="joined twice"):
        hierarchy.to_tree([[0.0, 1, 1, 2], [0, 3, 2, 3]])
    with pytest.raises(ArgumentError, match="no partition"):
        hierarchy.leaders(theirs.linkage(X), np.arange(14) % 2)
    with pytest.raises(ArgumentError, match="traced"):
        ft.jit(lambda z: hierarchy.leaders(z, np.ones(14)))(theirs.linkage(X))
