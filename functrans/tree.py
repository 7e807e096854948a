"""Pytrees under short names: `ft.tree.map`, `ft.tree.leaves` and so on, as in jax.tree."""

from functrans.core.errors import publish
from functrans.core.tree import broadcast_prefix as broadcast_prefix
from functrans.core.tree import tree_all as all
from functrans.core.tree import tree_any as any
from functrans.core.tree import tree_broadcast as broadcast
from functrans.core.tree import tree_flatten as flatten
from functrans.core.tree import tree_flatten_with_path as flatten_with_path
from functrans.core.tree import tree_leaves as leaves
from functrans.core.tree import tree_leaves_with_path as leaves_with_path
from functrans.core.tree import tree_map as map
from functrans.core.tree import tree_map_with_path as map_with_path
from functrans.core.tree import tree_reduce as reduce
from functrans.core.tree import tree_structure as structure
from functrans.core.tree import tree_transpose as transpose
from functrans.core.tree import tree_unflatten as unflatten
from functrans.core.tree_levels import static as static
from functrans.core.tree_levels import tree_reduce_associative as reduce_associative

__all__ = [
    "all",
    "any",
    "broadcast",
    "broadcast_prefix",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]

publish(globals(), __all__)
