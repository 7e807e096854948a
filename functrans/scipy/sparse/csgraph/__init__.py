"""Algorithms on graphs, with the names of scipy.sparse.csgraph.

A graph is a matrix of weights from each node to each: dense, where zeros, infinities and NaN are no
edges, or sparse, where all that is stored are edges.
"""

from functrans.core.errors import publish
from functrans.scipy.sparse.csgraph.components import (
    breadth_first_order,
    breadth_first_tree,
    connected_components,
    depth_first_order,
    depth_first_tree,
    reconstruct_path,
)
from functrans.scipy.sparse.csgraph.conversions import (
    csgraph_from_dense,
    csgraph_from_masked,
    csgraph_masked_from_dense,
    csgraph_to_dense,
    csgraph_to_masked,
)
from functrans.scipy.sparse.csgraph.flows import maximum_flow
from functrans.scipy.sparse.csgraph.laplacian_matrices import laplacian
from functrans.scipy.sparse.csgraph.matchings import (
    maximum_bipartite_matching,
    min_weight_full_bipartite_matching,
    structural_rank,
)
from functrans.scipy.sparse.csgraph.orderings import minimum_spanning_tree, reverse_cuthill_mckee
from functrans.scipy.sparse.csgraph.shortest import (
    bellman_ford,
    construct_dist_matrix,
    dijkstra,
    floyd_warshall,
    johnson,
    shortest_path,
    yen,
)
from functrans.scipy.sparse.csgraph.walks import NegativeCycleError

__all__ = [
    "NegativeCycleError", "bellman_ford", "breadth_first_order", "breadth_first_tree",
    "connected_components", "construct_dist_matrix", "csgraph_from_dense", "csgraph_from_masked",
    "csgraph_masked_from_dense", "csgraph_to_dense", "csgraph_to_masked", "depth_first_order",
    "depth_first_tree", "dijkstra", "floyd_warshall", "johnson", "laplacian",
    "maximum_bipartite_matching", "maximum_flow", "min_weight_full_bipartite_matching",
    "minimum_spanning_tree", "reconstruct_path", "reverse_cuthill_mckee", "shortest_path",
    "structural_rank", "yen",
]

publish(globals(), __all__)
