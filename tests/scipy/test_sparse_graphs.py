"""Algorithms on graphs beside SciPy's, on random graphs, dense and sparse."""

import warnings

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph as theirs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ArgumentError, ConcretizationError, ShapeError
from functrans.scipy import sparse
from functrans.scipy.sparse import csgraph
from functrans.test_util import check_grads
from tests.scipy.comparing import same

rng = np.random.default_rng(0)
PATHS = ("shortest_path", "floyd_warshall", "dijkstra", "bellman_ford", "johnson")


def graph_of(n, edges, low=0.1, seed=0):
    """Edges with weights that are all different, so that paths are unique."""
    draw = np.random.default_rng(seed)
    at = draw.integers(0, n, (2, edges), dtype=np.int32)
    held = scipy.sparse.coo_array((draw.uniform(low, 1, edges), tuple(at)), shape=(n, n)).tocsr()
    held.setdiag(0)
    held.eliminate_zeros()
    return held


G = graph_of(12, 30)


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 9))
    return graph_of(n, draw(st.integers(0, 3 * n)), seed=draw(st.integers(0, 10**6)))


def relabelled(labels):
    """Labels by the order in which they occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(graphs(), st.booleans(), st.booleans())
def test_random_graphs(held, directed, dense):
    mine = held.toarray() if dense else sparse.csr_array(held)
    n = held.shape[0]
    for name in PATHS:
        same(getattr(csgraph, name)(mine, directed=directed, return_predecessors=True),
             getattr(theirs, name)(held, directed=directed, return_predecessors=True), 1e-12, 1e-12)
    for connection in ("weak", "strong"):
        count, labels = csgraph.connected_components(mine, directed, connection)
        other, wanted = theirs.connected_components(held, directed, connection)
        assert int(count) == other
        same(relabelled(np.asarray(labels)), relabelled(wanted))
    for name in ("breadth_first_order", "depth_first_order"):
        same(getattr(csgraph, name)(mine, n - 1, directed),
             getattr(theirs, name)(held, n - 1, directed))
    for name in ("breadth_first_tree", "depth_first_tree"):
        same(getattr(csgraph, name)(mine, 0, directed).toarray(),
             getattr(theirs, name)(held, 0, directed).toarray())
    same(csgraph.minimum_spanning_tree(mine).toarray(),
         theirs.minimum_spanning_tree(held).toarray())
    assert sorted(np.asarray(csgraph.reverse_cuthill_mckee(mine)).tolist()) == list(range(n))
    assert int(csgraph.structural_rank(mine)) == theirs.structural_rank(held)
    match = np.asarray(csgraph.maximum_bipartite_matching(mine, "column"))
    assert (match >= 0).sum() == (theirs.maximum_bipartite_matching(held, "column") >= 0).sum()
    used = match[match >= 0]
    assert np.unique(used).size == used.size
    assert all(held.toarray()[u, v] for u, v in enumerate(match) if v >= 0)
    whole = (held * 10).astype(np.int32)
    if n > 1:
        found = csgraph.maximum_flow(sparse.csr_array(whole), 0, n - 1)
        assert found.flow_value == theirs.maximum_flow(whole, 0, n - 1).flow_value
        flow = found.flow.toarray()
        same(flow, -flow.T)
        assert (np.asarray(flow) <= whole.toarray()).all()
        assert not np.asarray(flow).sum(1)[1:-1].any() and flow[0].sum() == found.flow_value
        for k in (1, 4):
            same(csgraph.yen(mine, 0, n - 1, k, directed=directed),
                 theirs.yen(held, 0, n - 1, k, directed=directed), 1e-12, 1e-12)


def test_options_of_paths():
    mine = sparse.csr_array(G)
    for options in ({"indices": 3}, {"indices": [0, -1]}, {"unweighted": True}):
        for name in ("dijkstra", "bellman_ford", "johnson", "shortest_path"):
            same(getattr(csgraph, name)(mine, **options), getattr(theirs, name)(G, **options))
    same(csgraph.dijkstra(mine, limit=0.5), theirs.dijkstra(G, limit=0.5))
    for directed in (True, False):
        options = {"indices": [2, 5, 7], "min_only": True, "return_predecessors": True,
                   "directed": directed}
        same(csgraph.dijkstra(mine, **options), theirs.dijkstra(G, **options))
    same(ft.jit(lambda g: csgraph.dijkstra(g, **options))(mine), theirs.dijkstra(G, **options),
         1e-12, 1e-12)
    for method in ("auto", "FW", "D", "BF", "J"):
        same(csgraph.shortest_path(mine, method), theirs.shortest_path(G, method))
    down = G.toarray() - 0.3 * (G.toarray() > 0.6)
    down = np.triu(down)  # without cycles
    for name in ("bellman_ford", "johnson", "floyd_warshall", "shortest_path"):
        same(getattr(csgraph, name)(down), getattr(theirs, name)(down), 1e-12, 1e-12)
    same(csgraph.yen(down, 0, 11, 3), theirs.yen(down, 0, 11, 3), 1e-12, 1e-12)
    _, before = csgraph.yen(mine, 0, 11, 3, return_predecessors=True)
    _, wanted = theirs.yen(G, 0, 11, 3, return_predecessors=True)
    same(before, wanted)
    distances, before = csgraph.shortest_path(mine, return_predecessors=True)
    same(csgraph.construct_dist_matrix(mine, before), distances, 1e-12, 1e-12)
    same(csgraph.construct_dist_matrix(G.toarray(), before, null_value=-1),
         theirs.construct_dist_matrix(G, np.asarray(before), null_value=-1), 1e-12, 1e-12)
    same(csgraph.reconstruct_path(mine, before[0]).toarray(),
         theirs.reconstruct_path(G, np.asarray(before[0])).toarray())
    zero = scipy.sparse.csr_array((np.array([0.0, 1.0]), [1, 2], [0, 1, 2, 2]))  # stored: an edge
    same(csgraph.dijkstra(sparse.csr_array(zero)), theirs.dijkstra(zero))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PATHS)
def test_derivatives_and_transforms_of_paths(name):
    fun = getattr(csgraph, name)
    held, mine = G.toarray(), sparse.csr_array(G)
    finite = lambda d: jnp.where(jnp.isinf(d), 0, d)
    for directed in (True, False):
        lengths = lambda x, d=directed: finite(fun(mine.with_data(x), directed=d))
        check_grads(lengths, (mine.data,), order=1, modes=("fwd", "rev"))
        same(ft.jit(lambda g, d=directed: fun(g, directed=d))(held),
             getattr(theirs, name)(held, directed=directed), 1e-12, 1e-12)
    lanes = ft.vmap(lambda x: fun(mine.with_data(x)))(jnp.stack([mine.data, 2 * mine.data]))
    same(lanes[1], 2 * getattr(theirs, name)(G), 1e-12, 1e-12)
    same(ft.jit(fun)(mine), getattr(theirs, name)(G), 1e-12, 1e-12)


def test_cycles_of_negative_weight():
    cycle = np.array([[0.0, 1.0], [-2.0, 0.0]])
    for name in ("bellman_ford", "johnson", "floyd_warshall", "shortest_path"):
        with pytest.raises(csgraph.NegativeCycleError):
            getattr(csgraph, name)(cycle)
    assert np.isnan(np.asarray(ft.jit(csgraph.floyd_warshall)(cycle))).all()
    with pytest.raises(ArgumentError, match="johnson"):
        csgraph.dijkstra(cycle)


def test_laplacians():
    loops = G + scipy.sparse.eye_array(12)
    options = [{}, {"normed": True}, {"use_out_degree": True}, {"symmetrized": True},
               {"normed": True, "symmetrized": True, "use_out_degree": True}]
    x = rng.normal(size=12)
    for given_options in options:
        wanted, diagonal = theirs.laplacian(loops.toarray(), return_diag=True, **given_options)
        for mine in (loops.toarray(), sparse.csr_array(loops), sparse.coo_array(loops)):
            found, other = csgraph.laplacian(mine, return_diag=True, **given_options)
            same(found.toarray() if sparse.issparse(found) else found, wanted, 1e-12, 1e-12)
            same(other, diagonal, 1e-12, 1e-12)
            for form in ("lo", "function"):
                held = csgraph.laplacian(mine, form=form, **given_options)
                same(held @ x if form == "lo" else held(x), wanted @ x, 1e-12, 1e-12)
        product = lambda g, o=given_options: csgraph.laplacian(g, form="function", **o)(x)
        if len(given_options) > 1:
            same(ft.jit(product)(mine), wanted @ x, 1e-12, 1e-12)
    same(csgraph.laplacian(np.array([[0, 2], [1, 0]])), [[1, -2], [-1, 2]])
    check_grads(lambda g: csgraph.laplacian(g, normed=True), (rng.uniform(1, 2, (4, 4)),), order=1,
                modes=("fwd", "rev"))


def test_conversions():
    dense = np.array([[0.0, 2.0, np.inf], [np.nan, 0.0, -1.0], [3.0, 0.0, 0.0]])
    for options in ({}, {"null_value": -1.0}, {"null_value": np.nan, "infinity_null": False},
                    {"nan_null": False, "null_value": 2.0}):
        found, wanted = csgraph.csgraph_from_dense(dense, **options), \
            theirs.csgraph_from_dense(dense, **options)
        same((found.data, found.indices, found.indptr),
             (wanted.data, wanted.indices, wanted.indptr))
        if options.get("nan_null", True):  # SciPy's has infinity for edges that are NaN
            same(csgraph.csgraph_to_dense(found, 7.0), theirs.csgraph_to_dense(wanted, 7.0))
        masked = csgraph.csgraph_masked_from_dense(dense, **options)
        other = theirs.csgraph_masked_from_dense(dense, **options)
        assert (masked.mask == other.mask).all()
        same(csgraph.csgraph_from_masked(masked).toarray(),
             theirs.csgraph_from_masked(other).toarray())
    held = csgraph.csgraph_to_masked(sparse.csr_array(G))
    assert (held.mask == theirs.csgraph_to_masked(G).mask).all()
    twice = sparse.coo_array((np.array([3.0, 2.0]), ([0, 0], [1, 1])), shape=(2, 2))
    assert float(csgraph.csgraph_to_dense(twice)[0, 1]) == 2.0
    same(csgraph.shortest_path(held), theirs.shortest_path(held), 1e-12, 1e-12)


def test_lightest_matchings():
    for shape in ((5, 5), (4, 7), (7, 4), (1, 3)):
        weights = rng.normal(size=shape)
        weights[rng.uniform(size=shape) < 0.2] = np.inf
        held = scipy.sparse.csr_array(np.where(np.isinf(weights), 0, weights))
        for maximize in (False, True):
            try:
                wanted = theirs.min_weight_full_bipartite_matching(held, maximize)
            except ValueError:
                with pytest.raises(ArgumentError, match="no full"):
                    csgraph.min_weight_full_bipartite_matching(held, maximize)
                continue
            for mine in (sparse.csr_array(held), held.toarray()):
                same(csgraph.min_weight_full_bipartite_matching(mine, maximize), wanted)
            if shape[0] == 4:
                same(ft.jit(lambda g, m=maximize: csgraph.min_weight_full_bipartite_matching(g, m))(
                    mine), wanted)
    with pytest.raises(ArgumentError, match="no full"):
        csgraph.min_weight_full_bipartite_matching(np.array([[1.0, 0.0], [1.0, 0.0]]))
    wide = scipy.sparse.random_array((60, 80), density=0.2, rng=1)
    whole = np.asarray(csgraph.maximum_bipartite_matching(sparse.csr_array(wide)))
    assert whole.shape == (80,) and (whole >= 0).sum() == theirs.structural_rank(wide.tocsr())
    square = scipy.sparse.csr_array(rng.uniform(1, 2, (50, 50)))
    row, column = csgraph.min_weight_full_bipartite_matching(sparse.csr_array(square))
    r, c = theirs.min_weight_full_bipartite_matching(square)
    same(square.toarray()[row, column].sum(), square.toarray()[r, c].sum())


def bandwidth(held, order):
    rows, columns = held.toarray()[np.ix_(order, order)].nonzero()
    return abs(rows - columns).max()


def test_orders_that_bring_edges_to_the_diagonal():
    shuffle = rng.permutation(30)
    line = scipy.sparse.diags_array(np.ones(29), offsets=1, shape=(30, 30)).tocsr()[shuffle]
    line = line[:, shuffle]
    assert bandwidth(line, csgraph.reverse_cuthill_mckee(sparse.csr_array(line))) == 1
    both = (line + line.T).tocsr()
    assert bandwidth(both, csgraph.reverse_cuthill_mckee(sparse.csr_array(both), True)) == 1
    grid = scipy.sparse.kronsum(scipy.sparse.diags_array(np.ones(5), offsets=1, shape=(6, 6)),
                                scipy.sparse.diags_array(np.ones(4), offsets=1, shape=(5, 5)))
    grid = grid.tocsr()[shuffle][:, shuffle]
    mine = bandwidth(grid, csgraph.reverse_cuthill_mckee(sparse.csr_array(grid)))
    assert mine <= bandwidth(grid, theirs.reverse_cuthill_mckee(grid)) + 1


def test_what_jit_takes():
    mine = sparse.csr_array(G)
    same(ft.jit(lambda g: csgraph.connected_components(g)[1])(mine),
         csgraph.connected_components(mine)[1])
    same(ft.jit(csgraph.reverse_cuthill_mckee)(mine), csgraph.reverse_cuthill_mckee(mine))
    assert int(ft.jit(csgraph.structural_rank)(G.toarray())) == theirs.structural_rank(G)
    for name in ("minimum_spanning_tree", "csgraph_from_dense"):
        with pytest.raises(ConcretizationError, match="outside of jit"):
            ft.jit(lambda g, n=name: getattr(csgraph, n)(g).data)(G.toarray())
    with pytest.raises(ConcretizationError):
        ft.jit(lambda g: csgraph.breadth_first_order(g, 0)[1])(G.toarray())
    tree = lambda x: csgraph.minimum_spanning_tree(mine.with_data(x)).sum()
    g = np.asarray(ft.grad(tree)(mine.data))
    assert set(g.tolist()) == {0.0, 1.0} and g.sum() == csgraph.minimum_spanning_tree(mine).nnz


def test_graphs_without_nodes():
    none = np.zeros((0, 0))
    for name in PATHS:
        assert getattr(csgraph, name)(none).shape == (0, 0)
    assert csgraph.laplacian(sparse.csr_array((0, 0))).shape == (0, 0)
    assert int(csgraph.connected_components(none)[0]) == 0
    assert csgraph.minimum_spanning_tree(none).shape == (0, 0)
    assert csgraph.reverse_cuthill_mckee(none).shape == (0,)
    assert csgraph.maximum_bipartite_matching(np.zeros((0, 3))).tolist() == [-1] * 3
    assert csgraph.min_weight_full_bipartite_matching(np.zeros((0, 3)))[0].shape == (0,)


WRONG = {
    "no square": (lambda: csgraph.shortest_path(np.ones((2, 3))), ShapeError),
    "method": (lambda: csgraph.shortest_path(np.ones((2, 2)), "X"), ArgumentError),
    "node": (lambda: csgraph.dijkstra(np.ones((2, 2)), indices=5), ArgumentError),
    "name": (lambda: csgraph.breadth_first_order(np.ones((2, 2)), "a"), ArgumentError),
    "start": (lambda: csgraph.breadth_first_order(np.ones((2, 2)), 2), ArgumentError),
    "complex": (lambda: csgraph.connected_components(np.ones((2, 2)) * 1j), ArgumentError),
    "capacities": (lambda: csgraph.maximum_flow(sparse.csr_array(np.ones((2, 2))), 0, 1),
                   ArgumentError),
    "same nodes": (lambda: csgraph.maximum_flow(sparse.csr_array(np.ones((2, 2), int)), 0, 0),
                   ArgumentError),
    "connection": (lambda: csgraph.connected_components(np.ones((2, 2)), True, "x"), ArgumentError),
    "no paths": (lambda: csgraph.yen(np.ones((2, 2)), 0, 1, 0), ArgumentError),
    "predecessors": (lambda: csgraph.construct_dist_matrix(np.ones((2, 2)), np.ones(2, int)),
                     ArgumentError),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes(name):
    fun, error = WRONG[name]
    with pytest.raises(error, match="Where"), warnings.catch_warnings():
        fun()
